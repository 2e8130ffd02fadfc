// SPDX-License-Identifier: Apache-2.0
// Sparse factorization on an engine's device; instantiated in sparse_cpu.cpp, sparse_opencl.cpp and sparse_cuda.cpp, so
// that only these know src/sparse/device/numeric.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sparse/factors.hpp"

namespace qrane::detail {

template <class B, class T>
std::unique_ptr<sparse::Factors<T>> make_device_factors(const typename B::Queue& queue,
                                                        std::shared_ptr<const sparse::Symbolic> symbolic,
                                                        const sparse::NumericOptions& options, Index rhs_cols);
/// Of each front, where such factors are made.
template <class B, class T>
std::vector<std::int32_t> plan_device_stages(const typename B::Queue& queue, const sparse::Symbolic& symbolic,
                                             const sparse::NumericOptions& options, Index rhs_cols);

}  // namespace qrane::detail
