// SPDX-License-Identifier: Apache-2.0
// From a factorization to one that can be updated, and updates of batches. Defined in updated_engine.hpp and
// instantiated in updates_cpu.cpp, updates_opencl.cpp and updates_cuda.cpp, so that the engines compile without
// src/update.
#pragma once

#include <memory>

#include "api/state.hpp"
#include "dense/factorization.hpp"

namespace qrane::update {
template <class B, class T>
class BatchUpdates;
}

namespace qrane::detail {

template <class B, class T>
struct Updates {
  /// Takes f over. Throws Error{out_of_memory}; then f is as it was.
  static std::unique_ptr<UpdatableState<T>> take(dense::Factorization<B, T>& f, const plan::DeviceProfile& profile,
                                                 Memory where);
  /// Updates every matrix of f; `updates` keeps the memory that one call leaves to the next, and is made by the first.
  static BatchUpdateReport update(std::shared_ptr<update::BatchUpdates<B, T>>& updates, dense::Factorization<B, T>& f,
                                  const plan::DeviceProfile& profile, const update::BatchUpdateRequest<T>& request);
};

}  // namespace qrane::detail
