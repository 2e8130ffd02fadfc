// SPDX-License-Identifier: Apache-2.0
// Sparse factorization on an engine's device; instantiated in sparse_cpu.cpp, sparse_opencl.cpp and sparse_cuda.cpp, so
// that only these know src/sparse/device_numeric.hpp.
#pragma once

#include <memory>

#include "sparse/factors.hpp"

namespace qrane::detail {

template <class B, class T>
std::unique_ptr<sparse::Factors<T>> make_device_factors(const typename B::Queue& queue,
                                                        std::shared_ptr<const sparse::Symbolic> symbolic,
                                                        const sparse::NumericOptions& options, Index rhs_cols);

}  // namespace qrane::detail
