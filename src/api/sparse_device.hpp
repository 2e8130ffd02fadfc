// SPDX-License-Identifier: Apache-2.0
// Sparse factorization on an engine's device. Instantiated in sparse_device.cpp for all backends, so that engines
// compile without src/sparse/device/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sparse/factors.hpp"

namespace qrane::detail {

template <class B, class T>
struct SparseDevice {
  using Queue = typename B::Queue;
  static std::unique_ptr<sparse::Factors<T>> factors(const Queue& queue,
                                                     std::shared_ptr<const sparse::Symbolic> symbolic,
                                                     const sparse::NumericOptions& options, Index rhs_cols);
  /// Of each front, the stage that it would have (FactorFacts::stages).
  static std::vector<std::int32_t> stages(const Queue& queue, const sparse::Symbolic& symbolic,
                                          const sparse::NumericOptions& options, Index rhs_cols);
};

}  // namespace qrane::detail
