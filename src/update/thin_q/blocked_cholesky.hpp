// SPDX-License-Identifier: Apache-2.0
// Cholesky factors of more columns than the guarded kernel takes at once, right-looking, in double for either scalar.
#pragma once

#include <algorithm>

#include "update/tools.hpp"

namespace qrane::update::detail {

template <class B, class T>
using CholeskyBlock = backend::GuardedCholesky<B, T>;

/// Columns of a block.
template <class B, class T>
Index cholesky_block(const Tools<B, T>& tools) {
  return std::min<Index>(tools.profile.limits.max_cholesky, 128);
}

/// S with g = SᵀS, zeros below. Of g, which is destroyed, the upper triangle counts. A pivot that is not positive, or a
/// diagonal block of a condition beyond `limit`, makes *failed 1. across(block, g12, s12) makes S12 = S11⁻ᵀ G12, the
/// rows of a block to its right; done(j, block) hears of the block at j when S is there up to it.
template <class B, class T, class Across, class Done>
void blocked_cholesky(Tools<B, T>& tools, const DeviceMatrix<B, double>& g, const DeviceMatrix<B, double>& s,
                      typename B::template Pointer<std::int32_t> failed, double limit, Across across, Done done) {
  auto& queue = tools.queue;
  const Index n = g.cols, nb = cholesky_block(tools);
  const DeviceMatrix<B, double> r = tools.scratch.template matrix<double>(nb, nb);
  const DeviceMatrix<B, double> inverse = tools.scratch.template matrix<double>(nb, nb);
  CholeskyBlock<B, T> block;
  block.failed = failed;
  block.condition = tools.scratch.template take<double>(1);
  block.limit = limit;
  block.rounding = 0x1p-53;
  fill(queue, s, 0.0, 0.0);
  for (Index j = 0; j < n; j += nb) {
    const Index b = std::min(nb, n - j), right = n - j - b;
    block.gram = g.block(j, j, b, b);
    block.r = {r.data, b, b, b, 0, 1};
    block.inverse = {inverse.data, b, b, b, 0, 1};
    guarded_cholesky(queue, block);
    copy(queue, block.r, s.block(j, j, b, b), Part::all);
    if (right > 0) {
      const DeviceMatrix<B, double> s12 = s.block(j, j + b, b, right);
      across(block, g.block(j, j + b, b, right), s12);
      gemm(queue, Op::transpose, Op::none, -1.0, s12, s12, 1.0, g.block(j + b, j + b, right, right));
    }
    done(j, block);
  }
}

}  // namespace qrane::update::detail
