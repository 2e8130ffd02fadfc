// SPDX-License-Identifier: Apache-2.0
// A page of the vocabulary (kernels.hpp) of its own: chains of orthogonal blocks that are known in double.
#pragma once

#include "vocabulary/kernels.hpp"

namespace qrane::backend {

/// Optional, in place of `sweep`: the same with the blocks, products, sums and the carry in double; X and carry_out are
/// rounded as they are written. A backend with `wide_sweep(task)` has max_sweep_carry(T) and max_sweep_block(T), too.
template <class B, class T>
struct WideSweep {
  Sweep<B, T> sweep;                         // its h is not looked at
  typename B::template Pointer<double> h{};  // laid out as Sweep's
};

}  // namespace qrane::backend
