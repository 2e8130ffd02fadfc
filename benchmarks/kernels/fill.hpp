// SPDX-License-Identifier: Apache-2.0
// The matrices of common/seeded_matrix.hpp made in CUDA device memory, the same bits as the host's.
#pragma once

#include <cstdint>

namespace qrane::bench {

/// Fills rows x cols contiguous column-major elements of the current device and waits. Throws std::runtime_error.
void fill_on_device(float* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition);
void fill_on_device(double* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition);

}  // namespace qrane::bench
