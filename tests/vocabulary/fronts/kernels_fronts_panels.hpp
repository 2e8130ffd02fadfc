// SPDX-License-Identifier: Apache-2.0
// Panels of frontal matrices by their definition: which columns are dropped, where V, R and T are, Q orthonormal,
// Qᵀ times the panel is R, nothing else touched.
#pragma once

#include "kernels_fronts_hand.hpp"

namespace qrane::backend::test {

/// Panel k of front f, factored from `before`.
template <class T>
void expect_panel(const HostFronts<T>& before, const HostFronts<T>& after, Index f, Index k) {
  const FrontShape& shape = before.shape(f);
  const FrontState &old = before.state(f), &state = after.state(f);
  const Index rows = old.rows, begin = k * before.panel, n = std::min<Index>(before.panel, shape.cols - begin);
  const Index first = old.position;
  ASSERT_NO_FATAL_FAILURE(expect_panel_form(after, f, k, first));
  const FrontPanelState& panel = after.panel_state(f, k);
  EXPECT_EQ(state.rows, rows);
  EXPECT_EQ(state.position, first + panel.live);
  const Reference v = panel_v(after, f, k), t = panel_t(after, f, k);
  expect_orthonormal<T>(v, t);

  // Qᵀ (panel before) = R; of dropped columns what was dropped stays
  Reference a(panel.height, n);
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < panel.height; ++i) a(i, j) = before.matrix(f, first + i, begin + j);
    for (Index i = first + panel.height; i < rows; ++i)
      ASSERT_EQ(after.matrix(f, i, begin + j), T(0)) << i << ", " << j;
  }
  const Reference qta = reflected(v, t, a);
  Index live = 0, live_pivots = 0;
  Wide dropped = 0, doubt = 0;
  for (Index j = 0; j < n; ++j) {
    SCOPED_TRACE(testing::Message() << "column " << begin + j);
    const bool alive = after.pivot_of(f, begin + j) >= 0, pivotal = begin + j < shape.pivots;
    live += alive, live_pivots += alive && pivotal;
    const Wide rounding = front_rounding<T>(n) * column_norm(a, j);
    Wide error = 0, rest = 0;
    for (Index i = 0; i < panel.height; ++i) {
      const Wide r = i < live ? Wide(after.corner(f, i, begin + j)) : 0, difference = qta(i, j) - r;
      (i < live || alive ? error : rest) += difference * difference;
    }
    ASSERT_LE(std::sqrt(error), rounding) << "QᵀA is not R";
    if (!pivotal || before.tolerance < 0) {
      if (!alive) {
        ASSERT_LE(std::sqrt(rest), rounding) << "rows ran out";
      }
      continue;
    }
    const int e = before.exponents.empty() ? 0 : before.exponents[std::size_t(shape.first_col + begin + j)];
    const Wide length = std::ldexp(alive ? std::fabs(Wide(after.corner(f, live - 1, begin + j))) : std::sqrt(rest), -e);
    if (alive) {
      ASSERT_GE(length, before.tolerance - std::ldexp(rounding, -e)) << "should have been dropped";
      ASSERT_GT(length, 0) << "should have been dropped";
    } else {
      ASSERT_LE(length, before.tolerance + std::ldexp(rounding, -e)) << "should not have been dropped";
      dropped += length * length;
      doubt += std::ldexp(rounding, -e);
    }
  }
  EXPECT_EQ(state.r_rows, old.r_rows + live_pivots);
  const Wide all = std::sqrt(Wide(old.dropped) + dropped);
  EXPECT_LE(std::fabs(std::sqrt(Wide(state.dropped)) - all), doubt + 1e-6 * all);
}

/// Everything but what panel k of these fronts makes is as it was.
template <class T>
void expect_panel_kept_to_itself(const HostFronts<T>& before, HostFronts<T> after, Index k) {
  for (Index f = 0; f < before.count(); ++f) {
    if (k >= before.panel_count(f)) continue;
    const FrontShape& shape = before.shape(f);
    const auto restore = [](auto& to, const auto& from, std::int64_t begin, std::int64_t count) {
      std::copy_n(from.begin() + begin, count, to.begin() + begin);
    };
    for (Index j = k * before.panel; j < std::min<Index>(shape.cols, (k + 1) * before.panel); ++j) {
      const Index first = before.state(f).position;
      restore(after.storage, before.storage, shape.matrix + j * shape.ld + first, shape.ld - first);
      restore(after.storage, before.storage, shape.corner + j * before.panel, before.panel);
      restore(after.storage, before.storage, shape.t + j * before.panel, before.panel);
      restore(after.pivot, before.pivot, shape.columns + j, 1);
    }
    restore(after.panels, before.panels, shape.panels + k, 1);
  }
  EXPECT_TRUE(same_bits(after.storage, before.storage)) << "storage outside the panels changed";
  EXPECT_TRUE(same_bits(after.pivot, before.pivot) && same_bits(after.stair, before.stair) &&
              same_bits(after.r, before.r) && same_bits(after.row_ids, before.row_ids) &&
              same_bits(after.panels, before.panels));
}

/// Panel after panel of all fronts at once: each on the device from what the reference has made of those before.
template <class Fixture, class T>
void check_panels(Fixture& test, HostFronts<T> h) {
  Index panels = 0;
  for (Index f = 0; f < h.count(); ++f) panels = std::max(panels, h.panel_count(f));
  for (Index k = 0; k < panels && !testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE(testing::Message() << "panel " << k);
    std::vector<FrontPanelTask> list;
    std::vector<FrontUpdateTask> updates;
    for (std::int32_t f = 0; f < h.count(); ++f) {
      if (k >= h.panel_count(f)) continue;
      list.push_back({f, std::int32_t(k)});
      Fixture::add_updates(h, f, std::int32_t(k), 256, updates);
    }
    HostFronts<T> after = h, again = h;
    test.factor_panels(after, list);
    test.factor_panels(again, list);
    EXPECT_TRUE(same_bits(after.storage, again.storage) && same_bits(after.states, again.states)) << "other bits";
    for (const FrontPanelTask& task : list) {
      SCOPED_TRACE(testing::Message() << "front " << task.front << ", " << h.state(task.front).rows << " x "
                                      << h.shape(task.front).cols);
      expect_panel(h, after, task.front, k);
    }
    expect_panel_kept_to_itself(h, after, k);
    test.factor_and_update_on_host(h, list, updates);
  }
}

template <class Case>
class FrontPanels : public FrontKernels<Case> {
 public:
  using T = typename Kernels<Case>::T;
  using FrontKernels<Case>::add_updates;
  void factor_panels(HostFronts<T>& h, const std::vector<FrontPanelTask>& list) {
    auto fronts = this->to_device(h);
    factor_front_panels(this->q(), fronts, this->tasks(h, list));
    this->to_host(fronts, h);
  }
  void factor_and_update_on_host(HostFronts<T>& h, std::vector<FrontPanelTask> list,
                                 std::vector<FrontUpdateTask> updates) {
    factor_front_panels(this->reference_, on_host(h), this->host_tasks(h, list));
    update_fronts(this->reference_, on_host(h), this->host_tasks(h, updates));
  }
};
TYPED_TEST_SUITE(FrontPanels, KernelTypes);

TYPED_TEST(FrontPanels, AreFactoredWithinTheirStaircase) {
  using T = typename TestFixture::T;
  check_panels(*this, hand_made<T>(regular_fronts(), 2, 1));
  HostFronts<T> h = hand_made<T>(regular_fronts(), 0, 2);
  h.tolerance = 1e-3;
  check_panels(*this, h);
}

/// Beside low fronts a tall one, for which a backend may take other kernels.
inline std::vector<HandFront> with_a_tall_one(std::vector<HandFront> fronts) {
  fronts.push_back({"tall company", 1100, 40, 36, even_stair(1100, 40, 28), [](Index i, Index j, double random) {
                      return j % 7 == 3 ? 0.0 : j % 7 == 5 ? 1e-3 / 90 * random + std::cos(double(i)) : random;
                    }});
  return fronts;
}

TYPED_TEST(FrontPanels, DropColumnsThatDependOnOthers) {
  using T = typename TestFixture::T;
  for (const auto& fronts : {deficient_fronts(), with_a_tall_one(deficient_fronts())})
    for (const double tolerance : {-1.0, 0.0, 0.05}) {
      SCOPED_TRACE(testing::Message() << "tolerance " << tolerance);
      HostFronts<T> h = hand_made<T>(fronts, 1, 3);
      h.tolerance = tolerance;
      check_panels(*this, h);
    }
}

/// Columns that are nearly dependent, more and more so, down to rounding, and columns of very different lengths.
TYPED_TEST(FrontPanels, OfNearlyDependentColumns) {
  using T = typename TestFixture::T;
  std::vector<HandFront> fronts;
  for (const std::int32_t rows : {200, 1300})
    for (const int kind : {0, 1, 2})
      fronts.push_back({"graded", rows, 70, 60, kind == 1 ? random_stair(rows, 70, 8) : full_stair(rows, 70),
                        [kind](Index i, Index j, double random) {
                          const double small = std::pow(10.0, -double(j % 32) / 3);
                          if (kind == 0) return 1 + small * random;
                          if (kind == 1) return small * random;
                          return std::cos(double(i * (j / 2 + 1))) + small * random * double(j % 2);
                        }});
  for (const double tolerance : {-1.0, 1e-4}) {
    SCOPED_TRACE(testing::Message() << "tolerance " << tolerance);
    HostFronts<T> h = hand_made<T>(fronts, 0, 9);
    h.tolerance = tolerance;
    check_panels(*this, h);
  }
}

// Columns that were scaled are dropped by their true length, and those that the scaling has left as they are: large and
// small ones, whose squares fit.
TYPED_TEST(FrontPanels, LookAtColumnsAsTheyWereBeforeScaling) {
  using T = typename TestFixture::T;
  std::vector<HandFront> fronts = regular_fronts();
  for (HandFront& front : deficient_fronts()) fronts.push_back(front);
  HostFronts<T> h = hand_made<T>(fronts, 1, 4);
  h.tolerance = 0.05;
  for (Index f = 0; f < h.count(); ++f)
    for (Index j = 0; j < h.shape(f).pivots; ++j) h.exponents.push_back(std::int32_t((f + 3 * j) % 120 - 60));
  check_panels(*this, h);
  h.exponents.clear();
  h.tolerance = -1;
  const int large = sizeof(T) == 4 ? 40 : 430, small = sizeof(T) == 4 ? -18 : -330;
  for (Index f = 0; f < h.count(); ++f)
    for (Index j = 0; j < h.all_cols(f); ++j)
      for (Index i = 0; i < h.state(f).rows; ++i) {
        T& value = h.matrix(f, i, j);
        value = std::ldexp(value, j % 3 == 0 ? large : j % 3 == 1 ? small : 0);
      }
  check_panels(*this, h);
}

TYPED_TEST(FrontPanels, PassNaNOnInItsFrontAlone) {
  using T = typename TestFixture::T;
  const std::vector<HandFront> low = {{"a", 90, 30, 20, even_stair(90, 30, 3)},
                                      {"b", 90, 30, 20, full_stair(90, 30)},
                                      {"c", 200, 32, 32, even_stair(200, 32, 7)}};
  std::vector<HandFront> tall = low;
  tall.push_back({"d", 1100, 30, 20, full_stair(1100, 30)});
  for (const auto& fronts : {low, tall})
    for (const Index bad : {0, 13, 29}) {
      SCOPED_TRACE(testing::Message() << "in column " << bad << " of " << fronts.size() << " fronts");
      HostFronts<T> h = hand_made<T>(fronts, 0, 5);
      h.tolerance = 1e-3;
      HostFronts<T> clean = h;
      h.matrix(1, 89, bad) = std::numeric_limits<T>::quiet_NaN();
      std::vector<FrontPanelTask> list;
      for (std::int32_t f = 0; f < h.count(); ++f) list.push_back({f, 0});
      this->factor_panels(clean, list);
      this->factor_panels(h, list);
      for (Index f = 0; f < h.count(); ++f)
        for (Index j = 0; j < h.shape(f).cols; ++j) {
          ASSERT_EQ(h.pivot_of(f, j), j);
          bool finite = true;
          for (Index i = 0; i <= j; ++i) finite = finite && std::isfinite(h.corner(f, i, j));
          ASSERT_EQ(finite, f != 1 || j < bad) << "R of front " << f << ", column " << j;
          if (finite) {
            for (Index i = 0; i <= j; ++i) ASSERT_EQ(h.corner(f, i, j), clean.corner(f, i, j));
          }
        }
    }
}

}  // namespace qrane::backend::test
