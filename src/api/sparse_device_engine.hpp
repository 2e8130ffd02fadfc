// SPDX-License-Identifier: Apache-2.0
// What sparse_device.hpp declares; for the files that instantiate it.
#pragma once

#include <utility>

#include "api/sparse_device.hpp"
#include "sparse/device/numeric.hpp"

namespace qrane::detail {

template <class B, class T>
std::unique_ptr<sparse::Factors<T>> make_device_factors(const typename B::Queue& queue,
                                                        std::shared_ptr<const sparse::Symbolic> symbolic,
                                                        const sparse::NumericOptions& options, Index rhs_cols) {
  return std::make_unique<sparse::DeviceNumeric<B, T>>(queue, std::move(symbolic), options, rhs_cols);
}

template <class B, class T>
std::vector<std::int32_t> plan_device_stages(const typename B::Queue& queue, const sparse::Symbolic& symbolic,
                                             const sparse::NumericOptions& options, Index rhs_cols) {
  sparse::DeviceMemory<B, T> memory;
  memory.make_plan(queue, symbolic, options, rhs_cols);
  return memory.plan.staged() ? std::move(memory.plan.stage) : std::vector<std::int32_t>(symbolic.fronts.size(), 0);
}

}  // namespace qrane::detail
