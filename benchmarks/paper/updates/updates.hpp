// SPDX-License-Identifier: Apache-2.0
// Factorizations that the methods of Andrew and Dingle (by_rotations.hpp) change: what suites compare the product with.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <qrane/context.hpp>
#include <qrane/updatable_qr.hpp>

namespace qrane::paper {

enum class Method {
  paper,       ///< section 3: Householder blocks, and wavefronts of Givens rotations
  paper_dense  ///< section 5, two variants: Householder with fill-in, dense QR of [R; U]
};
const char* to_string(Method method);

template <class T>
struct Updates {
  /// Attaches, refactors, solves, ... as any other. Its work is on a queue of its own.
  UpdatableQR<T> f;
  /// How it is changed from now on; empty: as the product does.
  std::shared_ptr<std::optional<Method>> method;
  /// Milliseconds of the work that the function puts on that queue.
  std::function<double(const std::function<void()>&)> time_ms;
};

/// A factored, with a thin Q or R alone, on the context's device. Changes throw Error{unavailable} for what a method
/// does not do.
template <class T>
Updates<T> make_updates(const Context& context, MatrixView<const T> a, QForm form);

}  // namespace qrane::paper
