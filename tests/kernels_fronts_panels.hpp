// SPDX-License-Identifier: Apache-2.0
// Panels of frontal matrices by their definition: which columns are dropped, where V, R and T are, Q orthonormal,
// Qᵀ times the panel is R, nothing else touched.
#pragma once

#include <functional>

#include "kernels_fronts.hpp"

namespace qrane::backend::test {

/// A front made by hand: its staircase is all that assembly would have to say of it.
struct HandFront {
  std::string name;
  std::int32_t rows, cols, pivots;
  std::vector<std::int32_t> stair;
  std::function<double(Index i, Index j, double random)> value = [](Index, Index, double random) { return random; };
};

/// Fronts without a tree, as they are when they have been assembled; values where the staircase has them, zeros elsewhere.
template <class T>
HostFronts<T> hand_made(const std::vector<HandFront>& fronts, std::int32_t rhs_cols, unsigned seed) {
  HostFronts<T> h;
  h.rhs_cols = rhs_cols;
  std::int64_t columns = 0, first_col = 0;
  for (const HandFront& front : fronts) {
    FrontShape shape{};
    shape.columns = columns, shape.first_row = h.rows, shape.first_col = first_col;
    shape.cols = front.cols, shape.pivots = front.pivots, shape.own_rows = front.rows;
    shape.rows_bound = front.rows + 5;
    h.place(shape);
    columns += front.cols, first_col += front.pivots, h.rows += front.rows;
  }
  h.rhs_ld = h.rows;
  h.forget_results();
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  for (Index f = 0; f < h.count(); ++f) {
    const HandFront& front = fronts[std::size_t(f)];
    h.state(f) = {0, front.rows, 0, 0, 0};
    for (Index j = 0; j < h.all_cols(f); ++j) {
      for (Index i = 0; i < std::min<Index>(h.shape(f).ld, (front.rows + 15) / 16 * 16); ++i) h.matrix(f, i, j) = 0;
      if (j < front.cols) h.stair_of(f, j) = front.stair[std::size_t(j)];
      const Index height = j < front.cols ? front.stair[std::size_t(j)] : front.rows;
      for (Index i = 0; i < height; ++i) h.matrix(f, i, j) = T(front.value(i, j, normal(engine)));
    }
    for (Index i = 0; i < front.rows; ++i) h.row_ids[std::size_t(h.shape(f).row_ids + i)] = std::int32_t(i);
  }
  return h;
}

/// Rows per column at random, all rows in the last one.
inline std::vector<std::int32_t> random_stair(std::int32_t rows, std::int32_t cols, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> leftmost(static_cast<std::size_t>(rows)), stair(static_cast<std::size_t>(cols), 0);
  for (std::int32_t& l : leftmost) l = static_cast<std::int32_t>(engine() % static_cast<unsigned>(cols));
  for (const std::int32_t l : leftmost)
    for (std::int32_t j = l; j < cols; ++j) ++stair[static_cast<std::size_t>(j)];
  return stair;
}
inline std::vector<std::int32_t> full_stair(std::int32_t rows, std::int32_t cols) {
  return std::vector<std::int32_t>(static_cast<std::size_t>(cols), rows);
}
/// `step` more rows with every column.
inline std::vector<std::int32_t> even_stair(std::int32_t rows, std::int32_t cols, double step) {
  std::vector<std::int32_t> stair;
  for (std::int32_t j = 0; j < cols; ++j)
    stair.push_back(j + 1 == cols ? rows : std::min(rows, static_cast<std::int32_t>((j + 1) * step)));
  return stair;
}

/// Staircases of all kinds with columns that nothing drops.
inline std::vector<HandFront> regular_fronts() {
  std::vector<HandFront> all;
  const auto add = [&](std::string name, std::int32_t rows, std::int32_t cols, std::int32_t pivots,
                       std::vector<std::int32_t> stair) {
    all.push_back({std::move(name), rows, cols, pivots, std::move(stair)});
  };
  add("1 x 1", 1, 1, 1, {1});
  add("no rows", 0, 40, 3, full_stair(0, 40));
  add("5 x 3", 5, 3, 2, full_stair(5, 3));
  add("one row", 1, 50, 1, full_stair(1, 50));
  add("a panel", 33, 32, 32, full_stair(33, 32));
  add("rows run out in a panel", 31, 40, 20, random_stair(31, 40, 1));
  add("rows run out before a panel", 7, 90, 5, full_stair(7, 90));
  add("rows run out at a border", 32, 70, 33, even_stair(32, 70, 1));
  add("one row a column", 70, 70, 35, even_stair(70, 70, 1));
  add("few rows at first", 120, 100, 64, even_stair(120, 100, 0.5));
  add("random", 300, 96, 50, random_stair(300, 96, 2));
  add("tall", 700, 65, 65, even_stair(700, 65, 11.3));
  add("taller", 1500, 40, 33, random_stair(1500, 40, 3));
  return all;
}

/// Columns that depend on others, at the borders of panels and inside; with zeros there are no numbers to doubt.
inline std::vector<HandFront> deficient_fronts() {
  std::vector<HandFront> all;
  const auto zero_columns = [&](std::string name, std::int32_t rows, std::int32_t cols, std::int32_t pivots,
                                std::vector<std::int32_t> stair, std::function<bool(Index)> zero) {
    all.push_back({std::move(name), rows, cols, pivots, std::move(stair),
                   [zero](Index, Index j, double random) { return zero(j) ? 0.0 : random; }});
  };
  zero_columns("borders", 150, 100, 97, full_stair(150, 100), [](Index j) { return j == 0 || j == 31 || j == 32 || j == 64 || j == 96; });
  zero_columns("a whole panel", 120, 100, 100, random_stair(120, 100, 4), [](Index j) { return j >= 32 && j < 64; });
  zero_columns("all", 90, 70, 40, full_stair(90, 70), [](Index) { return true; });
  zero_columns("all but the last", 60, 32, 32, even_stair(60, 32, 2), [](Index j) { return j < 31; });
  zero_columns("every other", 45, 64, 60, random_stair(45, 64, 5), [](Index j) { return j % 2 == 0; });
  zero_columns("beyond the pivots", 80, 60, 10, full_stair(80, 60), [](Index j) { return j > 5; });
  all.push_back({"zero rows", 130, 64, 64, full_stair(130, 64),
                 [](Index i, Index, double random) { return i % 3 ? 0.0 : random; }});
  // rank 3 up to 1e-3: far from the tolerance on either side
  all.push_back({"nearly rank 3", 90, 50, 45, full_stair(90, 50), [](Index i, Index j, double random) {
                   double sum = 1e-3 / 30 * random;
                   for (int k = 1; k <= 3; ++k) sum += std::cos(double(k * (i + 1))) * std::sin(double((j + 2) * k));
                   return sum;
                 }});
  return all;
}

/// V of panel k from its first row on, rows as many as its height.
template <class T>
Reference panel_v(const HostFronts<T>& h, Index f, Index k) {
  const FrontPanelState& panel = h.panel_state(f, k);
  const Index begin = k * h.panel, n = std::min<Index>(h.panel, h.shape(f).cols - begin);
  Reference v(panel.height, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < panel.height; ++i) v(i, j) = h.matrix(f, panel.first_row + i, begin + j);
  return v;
}
template <class T>
Reference panel_t(const HostFronts<T>& h, Index f, Index k) {
  const Index begin = k * h.panel, n = std::min<Index>(h.panel, h.shape(f).cols - begin);
  Reference t(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) t(i, j) = h.t(f, i, begin + j);
  return t;
}
/// C - V Tᵀ Vᵀ C.
inline Reference reflected(const Reference& v, const Reference& t, Reference c) {
  const Reference y = multiply(v, false, multiply(t, true, multiply(v, true, c, false), false), false);
  for (std::size_t e = 0; e < c.data.size(); ++e) c.data[e] -= y.data[e];
  return c;
}

template <class T>
Wide front_rounding(Index n) {
  return 30 * Wide(n + 10) * unit_roundoff<T>;
}

/// Q = I - V T Vᵀ: QᵀQ - I = V E Vᵀ with E = TᵀGT - T - Tᵀ, G = VᵀV; its norm² is tr(E G Eᵀ G).
template <class T>
void expect_orthonormal(const Reference& v, const Reference& t) {
  const Reference g = multiply(v, true, v, false);
  Reference e = multiply(t, true, multiply(g, false, t, false), false);
  for (Index j = 0; j < t.cols; ++j)
    for (Index i = 0; i < t.cols; ++i) e(i, j) -= t(i, j) + t(j, i);
  const Reference ege = multiply(multiply(e, false, g, false), false, e, true);
  Wide trace = 0;
  for (Index i = 0; i < t.cols; ++i)
    for (Index j = 0; j < t.cols; ++j) trace += ege(i, j) * g(j, i);
  EXPECT_LE(std::sqrt(std::fabs(trace)), front_rounding<T>(t.cols)) << "Q is not orthonormal";
}

/// V's and T's forms and the books of the rows, panel k of front f. `position`: where the panel had to begin.
template <class T>
void expect_panel_form(const HostFronts<T>& h, Index f, Index k, Index position) {
  const FrontShape& shape = h.shape(f);
  const FrontPanelState& panel = h.panel_state(f, k);
  const Index rows = h.state(f).rows, begin = k * h.panel, n = std::min<Index>(h.panel, shape.cols - begin);
  ASSERT_EQ(panel.first_row, position);
  ASSERT_GE(panel.height, 0);
  ASSERT_LE(panel.first_row + panel.height, rows);
  if (panel.first_row == rows) {
    EXPECT_EQ(panel.height, 0);
  }
  Index row = position;
  for (Index j = begin; j < begin + n; ++j) {
    SCOPED_TRACE(testing::Message() << "column " << j);
    const Index pivot = h.pivot_of(f, j);
    if (pivot < 0) {
      ASSERT_EQ(pivot, -1);
      ASSERT_TRUE(row == rows || (h.tolerance >= 0 && j < shape.pivots)) << "has no reflector";
    } else {
      ASSERT_EQ(pivot, row);
      ++row;
    }
    const Index height = std::min<Index>(rows, std::max<Index>(h.stair[std::size_t(shape.columns + j)], row));
    if (pivot >= 0) {
      ASSERT_GE(panel.first_row + panel.height, height);
    }
    for (Index i = position; i < rows; ++i) {
      const T v = h.matrix(f, i, j);
      if (pivot < 0 || i < pivot || i >= height) {
        ASSERT_EQ(v, T(0)) << "row " << i;
      } else if (i == pivot) {
        ASSERT_EQ(v, T(1));
      }
    }
    const T tau = h.t(f, j - begin, j);
    for (Index i = 0; i < n; ++i)
      if (pivot < 0 || i > j - begin) {
        ASSERT_EQ(h.t(f, i, j), T(0)) << "T, row " << i;
      }
    if (tau != T(0)) {
      ASSERT_TRUE(tau >= T(1) - 4 * std::numeric_limits<T>::epsilon() && tau <= T(2)) << "tau " << tau;
    }
  }
  EXPECT_EQ(panel.live, row - position);
}

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
    for (Index i = first + panel.height; i < rows; ++i) ASSERT_EQ(before.matrix(f, i, begin + j), T(0));
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
    this->q().factor_front_panels(fronts, this->tasks(h, list));
    this->to_host(fronts, h);
  }
  void factor_and_update_on_host(HostFronts<T>& h, std::vector<FrontPanelTask> list, std::vector<FrontUpdateTask> updates) {
    this->reference_.factor_front_panels(on_host(h), this->host_tasks(h, list));
    this->reference_.update_fronts(on_host(h), this->host_tasks(h, updates));
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

TYPED_TEST(FrontPanels, DropColumnsThatDependOnOthers) {
  using T = typename TestFixture::T;
  for (const double tolerance : {-1.0, 0.0, 0.05}) {
    SCOPED_TRACE(testing::Message() << "tolerance " << tolerance);
    HostFronts<T> h = hand_made<T>(deficient_fronts(), 1, 3);
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
  const std::vector<HandFront> fronts = {{"a", 90, 30, 20, even_stair(90, 30, 3)},
                                         {"b", 90, 30, 20, full_stair(90, 30)},
                                         {"c", 200, 32, 32, even_stair(200, 32, 7)}};
  for (const Index bad : {0, 13, 29}) {
    SCOPED_TRACE(testing::Message() << "in column " << bad);
    HostFronts<T> h = hand_made<T>(fronts, 0, 5);
    h.tolerance = 1e-3;
    HostFronts<T> clean = h;
    h.matrix(1, 89, bad) = std::numeric_limits<T>::quiet_NaN();
    const std::vector<FrontPanelTask> list = {{0, 0}, {1, 0}, {2, 0}};
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
