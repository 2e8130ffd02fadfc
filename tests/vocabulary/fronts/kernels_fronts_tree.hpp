// SPDX-License-Identifier: Apache-2.0
// Whole trees, by steps and by factor_whole_fronts: R, right-hand sides and ranks judged by S itself.
#pragma once

#include "kernels_fronts_checks.hpp"

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

/// Qᵀ of this front's panels times the front as it was assembled is the R that it holds.
template <class T>
void expect_front(const HostFronts<T>& h, Index f) {
  const FrontShape& shape = h.shape(f);
  const Index rows = h.state(f).rows;
  const Reference original = assembled(h, f);
  Reference a = original;
  Index position = 0;
  for (Index k = 0; k < h.panel_count(f); ++k) {
    const FrontPanelState& panel = h.panel_state(f, k);
    ASSERT_NO_FATAL_FAILURE(expect_panel_form(h, f, k, position));
    position += panel.live;
    const Reference v = panel_v(h, f, k), t = panel_t(h, f, k);
    expect_orthonormal<T>(v, t);
    Reference c(panel.height, shape.cols);
    for (Index j = 0; j < c.cols; ++j)
      for (Index i = 0; i < c.rows; ++i) c(i, j) = a(panel.first_row + i, j);
    c = reflected(v, t, c);
    for (Index j = 0; j < c.cols; ++j)
      for (Index i = 0; i < c.rows; ++i) a(panel.first_row + i, j) = c(i, j);
  }
  EXPECT_EQ(h.state(f).position, position);
  Index live = 0;
  Wide dropped = 0, doubt = 0;
  for (Index j = 0; j < shape.cols; ++j) {
    const bool alive = h.pivot_of(f, j) >= 0, may_drop = j < shape.pivots && h.tolerance >= 0;
    live += alive;
    Wide error = 0, rest = 0;
    for (Index i = 0; i < rows; ++i) {
      const Wide difference = a(i, j) - (i < live ? Wide(h.r_of(f, i, j)) : 0);
      (i < live || alive ? error : rest) += difference * difference;
    }
    const Wide rounding = front_rounding<T>(std::min<Index>(rows, shape.cols)) * column_norm(original, j);
    ASSERT_LE(std::sqrt(error), rounding) << "QᵀF is not R in column " << j;
    ASSERT_LE(std::sqrt(rest), rounding + (may_drop ? h.tolerance : 0)) << "column " << j;
    if (!alive && may_drop) dropped += rest, doubt += rounding;
  }
  EXPECT_LE(std::fabs(std::sqrt(dropped) - std::sqrt(Wide(h.state(f).dropped))), doubt);
}

template <class Case>
class FrontTrees : public FrontKernels<Case> {
 public:
  using T = typename Kernels<Case>::T;
  /// walk(fronts, h, level, list)
  template <class F>
  void check(F&& walk) {
    for (const FrontMatrixCase& c : front_cases())
      for (const std::int32_t rhs_cols : in_turn({0, 3})) {
        SCOPED_TRACE(c.name + ", " + std::to_string(rhs_cols) + " right-hand sides");
        HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, rhs_cols);
        h.tolerance = c.tolerance;
        HostFronts<T> before = h, again = h;
        for (HostFronts<T>* const run : {&h, &again}) {
          auto fronts = this->to_device(*run);
          for (std::size_t level = 0; level < run->levels.size(); ++level)
            walk(fronts, *run, level, [&](const auto& list) { return this->tasks(*run, list); });
          this->to_host(fronts, *run);
        }
        expect_factored(before, h);
        EXPECT_TRUE(same_bits(h.states, again.states) && same_bits(h.r, again.r) && same_bits(h.rhs, again.rhs));
        if (rhs_cols == 0 && with_q_) {
          for (Index f = 0; f < h.count(); ++f) {
            SCOPED_TRACE(testing::Message() << "front " << f);
            expect_front(h, f);
          }
        }
        if (this->HasFailure()) return;
      }
  }
  bool with_q_ = true;
};
TYPED_TEST_SUITE(FrontTrees, KernelTypes);

TYPED_TEST(FrontTrees, ByTheKernelsForLargeFronts) {
  this->check([&](auto& fronts, auto& h, std::size_t level, auto&& list) {
    this->walk_level(this->q(), h, fronts, level, list);
  });
}

TYPED_TEST(FrontTrees, WithSmallFrontsWhole) {
  this->check([&](auto& fronts, auto& h, std::size_t level, auto&& list) {
    this->walk_level_whole(this->q(), h, fronts, level, true, list);
  });
}

TYPED_TEST(FrontTrees, WithSmallFrontsWholeAndWithoutQ) {
  this->with_q_ = false;
  this->check([&](auto& fronts, auto& h, std::size_t level, auto&& list) {
    this->walk_level_whole(this->q(), h, fronts, level, false, list);
  });
}

TYPED_TEST(FrontTrees, HaveTheSameBitsInAnyCompanyWhenDoneWhole) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> together = fronts_of<T>(c.symbolic, c.values, 2);
    together.tolerance = c.tolerance;
    HostFronts<T> alone = together;
    for (HostFronts<T>* const run : {&together, &alone}) {
      auto fronts = this->to_device(*run);
      const auto list = [&](const auto& tasks) { return this->tasks(*run, tasks); };
      for (std::size_t level = 0; level < run->levels.size(); ++level) {
        const std::vector<std::int32_t> all = run->levels[level];
        for (std::size_t k = 0; k < (run == &alone ? all.size() : 1); ++k) {
          if (run == &alone) run->levels[level] = {all[k]};
          this->walk_level_whole(this->q(), *run, fronts, level, true, list);
        }
        run->levels[level] = all;
      }
      this->to_host(fronts, *run);
    }
    EXPECT_TRUE(same_bits(together.states, alone.states) && same_bits(together.r, alone.r) &&
                same_bits(together.rhs, alone.rhs) && same_bits(together.pivot, alone.pivot));
  }
}

TYPED_TEST(FrontTrees, StayAsTheyAreUnderAConditionThatIsNotMet) {
  using T = typename TestFixture::T;
  const FrontMatrixCase c = front_cases().front();
  HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, 1);
  const HostFronts<T> before = h;
  auto fronts = this->to_device(h);
  auto queue = this->q().when(this->flag(0));
  const auto list = [&](const auto& tasks) { return this->tasks(h, tasks); };
  for (std::size_t level = 0; level < h.levels.size(); ++level) {
    this->walk_level(queue, h, fronts, level, list);
    this->walk_level_whole(queue, h, fronts, level, true, list);
  }
  this->to_host(fronts, h);
  EXPECT_TRUE(same_bits(h.storage, before.storage) && same_bits(h.r, before.r) && same_bits(h.rhs, before.rhs) &&
              same_bits(h.states, before.states) && same_bits(h.panels, before.panels) &&
              same_bits(h.stair, before.stair) && same_bits(h.pivot, before.pivot) &&
              same_bits(h.own_slot, before.own_slot) && same_bits(h.cb_slot, before.cb_slot) &&
              same_bits(h.row_ids, before.row_ids));
}

}  // namespace qrane::backend::test
