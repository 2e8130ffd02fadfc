// SPDX-License-Identifier: Apache-2.0
// The way from a factorization to one that can be updated; instantiated in updates_cpu.cpp, updates_opencl.cpp and
// updates_cuda.cpp, so that only these know src/update.
#pragma once

#include <memory>

#include "api/state.hpp"
#include "dense/factorization.hpp"

namespace qrane::detail {

/// A state with copies of f's factors; throws Error{unavailable} for forms that cannot be updated.
template <class B, class T>
std::unique_ptr<QRState<T>> make_updated(dense::Factorization<B, T>& f, const plan::DeviceProfile& profile,
                                         Memory where);

/// Updates of batches: keeps the memory that one update leaves to the next.
template <class B, class T>
class BatchUpdater {
 public:
  virtual ~BatchUpdater() = default;
  virtual BatchUpdateReport update(dense::Factorization<B, T>& f, const BatchUpdateRequest<T>& request) = 0;
};
template <class B, class T>
std::unique_ptr<BatchUpdater<B, T>> make_batch_updater(const typename B::Queue& queue,
                                                       const plan::DeviceProfile& profile);

}  // namespace qrane::detail
