// SPDX-License-Identifier: Apache-2.0
// Whole trees, by steps and by factor_whole_fronts: R, right-hand sides and ranks judged by S itself.
#pragma once

#include "kernels_fronts.hpp"

namespace qrane::backend::test {

/// R of the whole tree and Qᵀ B by rows of R, from what the fronts left packed.
struct TreeResult {
  Reference r, qtb;
  Wide dropped = 0;
  Index rank = 0;
};

template <class T>
TreeResult tree_result(const HostFronts<T>& h) {
  Index rank = 0;
  for (Index f = 0; f < h.count(); ++f) rank += h.state(f).r_rows;
  TreeResult result{Reference(rank, h.cols), Reference(rank, h.rhs_cols), 0, rank};
  Index row = 0;
  for (Index f = 0; f < h.count(); ++f) {
    const FrontShape& shape = h.shape(f);
    const FrontState& state = h.state(f);
    Index live = 0;
    for (Index j = 0; j < shape.cols; ++j) {
      if (j < shape.pivots) live += h.pivot_of(f, j) >= 0;
      const std::int64_t at = h.packed(f, j);
      const Index col = h.front_cols[std::size_t(shape.columns + j)];
      for (Index i = 0; i < live; ++i) result.r(row + i, col) = h.r[std::size_t(at + i)];
    }
    EXPECT_EQ(live, state.r_rows);
    for (Index j = 0; j < h.rhs_cols; ++j)
      for (Index i = 0; i < state.r_rows; ++i)
        result.qtb(row + i, j) = h.rhs[std::size_t(h.row_ids[std::size_t(shape.row_ids + i)] + j * h.rhs_ld)];
    row += state.r_rows;
    result.dropped += state.dropped;
  }
  return result;
}

template <class T>
Reference dense_s(const HostFronts<T>& h) {
  Reference a(h.rows, h.cols);
  for (Index f = 0; f < h.count(); ++f)
    for (Index r = h.shape(f).first_row; r < h.shape(f).first_row + h.shape(f).own_rows; ++r)
      for (Index p = h.row_begin[std::size_t(r)]; p < h.row_begin[std::size_t(r + 1)]; ++p)
        a(r, h.front_cols[std::size_t(h.shape(f).columns + h.entry_col[std::size_t(p)])]) = h.values[std::size_t(p)];
  return a;
}

/// Rᵀ R = Sᵀ S and Rᵀ (Qᵀ B) = Sᵀ B up to rounding and what was dropped; Q keeps the length of B.
template <class T>
void expect_factored(const HostFronts<T>& before, const HostFronts<T>& after) {
  const TreeResult result = tree_result(after);
  const Reference a = dense_s(before);
  Reference b(before.rows, before.rhs_cols), qtb = b;
  for (Index j = 0; j < before.rhs_cols; ++j)
    for (Index i = 0; i < before.rows; ++i) {
      b(i, j) = before.rhs[std::size_t(i + j * before.rhs_ld)];
      qtb(i, j) = after.rhs[std::size_t(i + j * before.rhs_ld)];
    }
  const Wide rounding = 30 * (std::min(a.rows, a.cols) + 10) * unit_roundoff<T>, dropped = std::sqrt(result.dropped);
  EXPECT_GE(result.dropped, 0);
  if (before.tolerance < 0) {
    EXPECT_EQ(result.dropped, 0);
  }
  const auto compare = [&](const Reference& x, const char* what, const Reference& y, const Reference& rx) {
    const Reference expected = multiply(a, true, y, false), found = multiply(result.r, true, rx, false);
    for (Index j = 0; j < x.cols; ++j)
      for (Index i = 0; i < a.cols; ++i) {
        const Wide length = column_norm(y, j), tolerance = rounding * column_norm(a, i) * length + dropped * length;
        ASSERT_LE(std::fabs(found(i, j) - expected(i, j)), tolerance) << what << " " << i << ", " << j;
      }
  };
  compare(a, "RᵀR", a, result.r);
  compare(b, "RᵀQᵀB", b, result.qtb);
  for (Index j = 0; j < b.cols; ++j)
    EXPECT_NEAR(double(column_norm(qtb, j)), double(column_norm(b, j)), double(rounding * column_norm(b, j)));
}

TYPED_TEST(FrontKernels, FactorsTreesByTheKernelsForLargeFronts) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases())
    for (const std::int32_t rhs_cols : {0, 3}) {
      SCOPED_TRACE(c.name + ", " + std::to_string(rhs_cols) + " right-hand sides");
      HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, rhs_cols);
      h.tolerance = c.tolerance;
      const HostFronts<T> before = h;
      auto fronts = this->to_device(h);
      for (std::size_t level = 0; level < h.levels.size(); ++level)
        this->walk_level(this->q(), h, fronts, level, [&](const auto& list) { return this->tasks(h, list); });
      this->to_host(fronts, h);
      expect_factored(before, h);
      if (this->HasFailure()) return;
    }
}

}  // namespace qrane::backend::test
