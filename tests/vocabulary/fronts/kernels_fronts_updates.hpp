// SPDX-License-Identifier: Apache-2.0
// Updates of frontal matrices by a panel, against (I - V Tᵀ Vᵀ) C in long double.
#pragma once

#include "kernels_fronts_hand.hpp"

namespace qrane::backend::test {

/// Columns right of panel k in pieces of all widths, not all of them: between some pieces a column is left out.
template <class T>
std::vector<FrontUpdateTask> pieces(const HostFronts<T>& h, std::int32_t f, std::int32_t k, Index most) {
  std::vector<FrontUpdateTask> list;
  const auto end = std::int32_t(h.all_cols(f));
  const std::int32_t widths[] = {1, 33, 7, std::int32_t(most), 16};
  std::int32_t first = std::min(h.shape(f).cols, (k + 1) * h.panel);
  for (int i = f; first < end; ++i) {
    const std::int32_t cols = std::min({end - first, widths[i % 5], std::int32_t(most)});
    list.push_back({f, k, first, cols});
    first += cols + (i % 3 == 2);
  }
  return list;
}

template <class Case>
class FrontUpdates : public FrontKernels<Case> {
 public:
  using T = typename Kernels<Case>::T;
  static constexpr bool has_pairs =
      std::is_same_v<decltype(update_fronts_pair(
                         std::declval<typename Kernels<Case>::Queue&>(),
                         std::declval<const Fronts<typename Kernels<Case>::B, T>&>(),
                         std::declval<const FrontTasks<typename Kernels<Case>::B, FrontUpdateTask>&>())),
                     void>;

  /// By `span` panels: one, or a pair at once.
  void update(HostFronts<T>& h, const std::vector<FrontUpdateTask>& list, int span = 1, std::int32_t blocks = 1) {
    auto fronts = this->to_device(h);
    auto tasks = this->tasks(h, list);
    tasks.blocks = blocks;
    if (span == 1) {
      update_fronts(this->q(), fronts, tasks);
    } else if constexpr (has_pairs) {
      update_fronts_pair(this->q(), fronts, tasks);
    }
    this->to_host(fronts, h);
  }
  Index most_columns(int span) {
    if constexpr (has_pairs) {
      if (span == 2) return this->q().limits(T{}).front_update_pair_cols;
    }
    return this->q().limits(T{}).front_update_cols;
  }
  /// The reference factors panels k to k + span - 1 of all fronts that have them; their updates.
  std::vector<FrontUpdateTask> factor_on_host(HostFronts<T>& h, std::int32_t k, int span = 1) {
    std::vector<FrontUpdateTask> updates;
    for (std::int32_t p = k; p < k + span; ++p) {
      std::vector<FrontPanelTask> panels;
      std::vector<FrontUpdateTask> narrow;  // of the second panel by the first
      for (std::int32_t f = 0; f < h.count(); ++f) {
        if (p >= h.panel_count(f)) continue;
        panels.push_back({f, p});
        if (p > k) narrow.push_back({f, k, p * h.panel, std::min(h.panel, h.shape(f).cols - p * h.panel)});
        if (p == k + span - 1)
          for (FrontUpdateTask task : pieces(h, f, p, most_columns(span))) {
            task.panel = k;
            updates.push_back(task);
          }
      }
      update_fronts(this->reference_, on_host(h), this->host_tasks(h, narrow));
      factor_front_panels(this->reference_, on_host(h), this->host_tasks(h, panels));
    }
    return updates;
  }
  /// Panel after panel, by 1, 2, 4, ... blocks.
  void check(HostFronts<T> h, int span = 1) {
    Index panels = 0;
    for (Index f = 0; f < h.count(); ++f) panels = std::max(panels, h.panel_count(f));
    for (std::int32_t k = 0; k + span <= panels && !testing::Test::HasFailure(); k += span) {
      SCOPED_TRACE(testing::Message() << "panel " << k);
      const std::vector<FrontUpdateTask> list = factor_on_host(h, k, span);
      HostFronts<T> after = h, again = h;
      const std::int32_t blocks = 1 << k / span % 5;
      update(after, list, span, blocks);
      update(again, list, span, blocks);
      EXPECT_TRUE(same_bits(after.storage, again.storage)) << "other bits";
      HostFronts<T> kept = after;
      for (const FrontUpdateTask& task : list) {
        SCOPED_TRACE(testing::Message() << "front " << task.front << ", columns " << task.first << " + " << task.cols);
        Index begin = h.state(task.front).rows, end = 0;  // rows that the panels have
        for (std::int32_t p = k; p < k + span; ++p) {
          const FrontPanelState& panel = h.panel_state(task.front, p);
          begin = std::min<Index>(begin, panel.first_row), end = std::max<Index>(end, panel.first_row + panel.height);
        }
        Reference c(std::max<Index>(end - begin, 0), task.cols);
        for (Index j = 0; j < c.cols; ++j)
          for (Index i = 0; i < c.rows; ++i) c(i, j) = h.matrix(task.front, begin + i, task.first + j);
        Reference expected = c;
        for (std::int32_t p = k; p < k + span; ++p) {
          const FrontPanelState& panel = h.panel_state(task.front, p);
          Reference part(panel.height, task.cols);
          for (Index j = 0; j < c.cols; ++j)
            for (Index i = 0; i < part.rows; ++i) part(i, j) = expected(panel.first_row - begin + i, j);
          part = reflected(panel_v(h, task.front, p), panel_t(h, task.front, p), part);
          for (Index j = 0; j < c.cols; ++j)
            for (Index i = 0; i < part.rows; ++i) expected(panel.first_row - begin + i, j) = part(i, j);
        }
        for (Index j = 0; j < c.cols; ++j) {
          Wide error = 0;
          for (Index i = 0; i < c.rows; ++i) {
            const Wide found = after.matrix(task.front, begin + i, task.first + j);
            error += (found - expected(i, j)) * (found - expected(i, j));
            kept.matrix(task.front, begin + i, task.first + j) = h.matrix(task.front, begin + i, task.first + j);
          }
          ASSERT_LE(std::sqrt(error), front_rounding<T>(h.panel) * column_norm(c, j)) << "column " << task.first + j;
        }
      }
      EXPECT_TRUE(same_bits(kept.storage, h.storage)) << "more than the given columns changed";
      EXPECT_TRUE(same_bits(kept.states, h.states) && same_bits(kept.panels, h.panels) &&
                  same_bits(kept.pivot, h.pivot));
      h.storage = after.storage;
    }
  }
};
TYPED_TEST_SUITE(FrontUpdates, KernelTypes);

/// One of many panels, one of many rows.
template <class T>
HostFronts<T> long_fronts(std::int32_t rows, std::int32_t cols) {
  const std::int32_t wide = small_run() ? 230 : 700, tall = small_run() ? rows / 5 : rows;
  return hand_made<T>(
      {{"wide", 100, wide, 90, random_stair(100, wide, 7)}, {"tall", tall, cols, 130, full_stair(tall, cols)}}, 1, 2);
}

TYPED_TEST(FrontUpdates, AreProductsWithTheReflectors) {
  using T = typename TestFixture::T;
  this->check(hand_made<T>(regular_fronts(), 3, 1));
  this->check(long_fronts<T>(3000, 130));
}

TYPED_TEST(FrontUpdates, WithColumnsThatWereDropped) {
  using T = typename TestFixture::T;
  for (const double tolerance : {-1.0, 0.05}) {
    HostFronts<T> h = hand_made<T>(deficient_fronts(), 2, 3);
    h.tolerance = tolerance;
    this->check(h);
  }
}

/// Where a backend updates by two panels at once.
TYPED_TEST(FrontUpdates, ByPairsAreTheProductsOfBoth) {
  using T = typename TestFixture::T;
  if constexpr (TestFixture::has_pairs) {
    this->check(hand_made<T>(regular_fronts(), 3, 1), 2);
    this->check(long_fronts<T>(5000, 170), 2);
    for (const double tolerance : {-1.0, 0.05}) {
      HostFronts<T> h = hand_made<T>(deficient_fronts(), 2, 3);
      h.tolerance = tolerance;
      this->check(h, 2);
    }
  }
}

TYPED_TEST(FrontUpdates, LeaveNaNInItsColumn) {
  using T = typename TestFixture::T;
  HostFronts<T> h =
      hand_made<T>({{"a", 90, 150, 80, even_stair(90, 150, 2)}, {"b", 90, 40, 40, full_stair(90, 40)}}, 2, 4);
  const std::vector<FrontUpdateTask> list = this->factor_on_host(h, 0);
  HostFronts<T> clean = h;
  h.matrix(0, 11, 77) = std::numeric_limits<T>::quiet_NaN();
  this->update(clean, list);
  this->update(h, list);
  bool spread = false;
  for (Index f = 0; f < h.count(); ++f)
    for (Index j = 32; j < h.all_cols(f); ++j)
      for (Index i = 0; i < h.state(f).rows; ++i) {
        if (f == 0 && j == 77) {
          spread = spread || (i != 11 && std::isnan(h.matrix(f, i, j)));
        } else {
          ASSERT_EQ(h.matrix(f, i, j), clean.matrix(f, i, j)) << "front " << f << ": " << i << ", " << j;
        }
      }
  EXPECT_TRUE(spread) << "NaN was lost";
}

}  // namespace qrane::backend::test
