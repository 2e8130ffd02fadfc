// SPDX-License-Identifier: Apache-2.0
// Fronts made by hand, for the tests of panels and updates.
#pragma once

#include <functional>

#include "kernels_fronts_checks.hpp"

namespace qrane::backend::test {

/// A front made by hand: its staircase is all that assembly would have to say of it.
struct HandFront {
  std::string name;
  std::int32_t rows, cols, pivots;
  std::vector<std::int32_t> stair;
  std::function<double(Index i, Index j, double random)> value = [](Index, Index, double random) { return random; };
};

/// Fronts without a tree, as they are when they have been assembled; values where the staircase has them, zeros
/// elsewhere.
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
      for (Index i = 0; i < std::min<Index>(h.shape(f).ld, (front.rows + 31) / 32 * 32); ++i) h.matrix(f, i, j) = 0;
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
  const std::int32_t taller = small_run() ? 500 : 1500;
  add("taller", taller, 40, 33, random_stair(taller, 40, 3));
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
  zero_columns("borders", 150, 100, 97, full_stair(150, 100),
               [](Index j) { return j == 0 || j == 31 || j == 32 || j == 64 || j == 96; });
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

}  // namespace qrane::backend::test
