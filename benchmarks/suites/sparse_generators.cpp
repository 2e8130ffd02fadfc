// SPDX-License-Identifier: Apache-2.0
#include "suites/sparse_generators.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/seeded_matrix.hpp"

namespace qrane::bench {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Entries in any order; those at one place are added up.
class Builder {
 public:
  Builder(Index rows, Index cols) : rows_(rows), columns_(at(cols)) {}
  void add(Index row, Index col, double value) { columns_[at(col)].emplace_back(row, value); }
  SparseMatrix finish() {
    SparseMatrix a;
    a.rows = rows_;
    a.cols = static_cast<Index>(columns_.size());
    a.col_ptr.push_back(0);
    for (auto& column : columns_) {
      std::stable_sort(column.begin(), column.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
      for (std::size_t k = 0; k < column.size(); ++k) {
        if (k > 0 && column[k].first == column[k - 1].first) {
          a.values.back() += column[k].second;
          continue;
        }
        a.row_idx.push_back(column[k].first);
        a.values.push_back(column[k].second);
      }
      a.col_ptr.push_back(a.nonzeros());
    }
    return a;
  }

 private:
  Index rows_;
  std::vector<std::vector<std::pair<Index, double>>> columns_;
};

/// Numbers in (-1, 1), one after the other.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : seed_(seed) {}
  double value() { return uniform_at(seed_, next_++); }
  /// 0 .. count - 1
  Index index(Index count) {
    return std::min(static_cast<Index>((value() + 1) / 2 * static_cast<double>(count)), count - 1);
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

/// All ways to put k rooks on p x q squares so that none attacks another: squares in ascending rows.
std::vector<std::vector<int>> placements(int p, int q, int k) {
  std::vector<std::vector<int>> all;
  std::vector<int> squares;
  std::vector<char> taken(at(q), 0);
  const auto place = [&](const auto& self, int row) -> void {
    if (static_cast<int>(squares.size()) == k) {
      all.push_back(squares);
      return;
    }
    for (int r = row; r < p; ++r)
      for (int c = 0; c < q; ++c) {
        if (taken[at(c)]) continue;
        taken[at(c)] = 1;
        squares.push_back(r * q + c);
        self(self, r + 1);
        squares.pop_back();
        taken[at(c)] = 0;
      }
  };
  place(place, 0);
  return all;
}

}  // namespace

SparseMatrix dense(Index rows, Index cols) {
  Builder a(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) a.add(i, j, uniform_at(5, static_cast<std::uint64_t>(i + j * rows)));
  return a.finish();
}

SparseMatrix grid(Index side, int dimensions) {
  const Index nodes = dimensions == 2 ? side * side : side * side * side;
  Numbers numbers(static_cast<std::uint64_t>(side));
  Builder a(nodes * (dimensions + 1), nodes);
  Index row = 0, stride = 1;
  for (int d = 0; d < dimensions; ++d, stride *= side)
    for (Index k = 0; k < nodes; ++k) {
      if (k / stride % side == side - 1) continue;
      const double weight = 1.5 + numbers.value();
      a.add(row, k, weight);
      a.add(row++, k + stride, -weight);
    }
  for (Index k = 0; k < nodes; ++k) a.add(row++, k, 0.01);
  return a.finish();
}

SparseMatrix scattered(Index rows, Index cols, int per_row) {
  Numbers numbers(static_cast<std::uint64_t>(rows + cols));
  Builder a(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (int k = 0; k < per_row; ++k) a.add(i, numbers.index(cols), numbers.value());
  return a.finish();
}

SparseMatrix poses(Index count, Index closures, Index reach) {
  Numbers numbers(static_cast<std::uint64_t>(count + closures));
  Builder a(3 * (count + closures), 3 * count);
  Index row = 0;
  const auto measure = [&](Index from, Index to) {
    for (int r = 0; r < 3; ++r, ++row)
      for (int c = 0; c < 3; ++c) {
        a.add(row, 3 * from + c, -(r == c) + 0.3 * numbers.value());
        a.add(row, 3 * to + c, (r == c) + 0.3 * numbers.value());
      }
  };
  for (Index k = 0; k + 1 < count; ++k) measure(k, k + 1);
  for (Index k = 0; k < closures; ++k) {
    const Index from = numbers.index(count);
    Index to = std::clamp<Index>(from + numbers.index(2 * reach) - reach, 0, count - 1);
    if (to == from) to = (from + 1) % count;
    measure(from, to);
  }
  for (int c = 0; c < 3; ++c) a.add(row++, c, 1);
  return a.finish();
}

SparseMatrix bundle(Index cameras, Index points, Index views) {
  Numbers numbers(static_cast<std::uint64_t>(cameras * points));
  const Index unknowns = 9 * cameras + 3 * points;
  Builder a(2 * points * views + unknowns, unknowns);
  Index row = 0;
  for (Index p = 0; p < points; ++p) {
    const Index first = numbers.index(cameras);
    for (Index v = 0; v < views; ++v) {
      const Index camera = (first + v * (1 + numbers.index(3))) % cameras;
      for (int r = 0; r < 2; ++r, ++row) {
        for (int c = 0; c < 9; ++c) a.add(row, 9 * camera + c, numbers.value());
        for (int c = 0; c < 3; ++c) a.add(row, 9 * cameras + 3 * p + c, numbers.value());
      }
    }
  }
  for (Index k = 0; k < unknowns; ++k) a.add(row++, k, 0.01);
  return a.finish();
}

SparseMatrix flows(Index nodes, Index arcs, Index goods) {
  Numbers numbers(static_cast<std::uint64_t>(nodes + goods));
  Builder a(arcs * (goods + 1), nodes * goods + arcs);
  for (Index e = 0; e < arcs; ++e) {
    const Index from = e < nodes ? e : numbers.index(nodes);
    const Index to = e < nodes ? (e + 1) % nodes : (from + 1 + numbers.index(nodes - 1)) % nodes;
    for (Index g = 0; g < goods; ++g) {
      a.add(e * goods + g, nodes * g + from, 1);
      a.add(e * goods + g, nodes * g + to, -1);
      a.add(e * goods + g, nodes * goods + e, 1.5 + numbers.value());
    }
    a.add(arcs * goods + e, nodes * goods + e, 1);
  }
  return a.finish();
}

SparseMatrix assignment_relaxation(Index n) {
  // columns: sum over j of x(i, j) = 1; over i; for i, j, k: sum over l of y(i, j, k, l) = x(i, j); for i, j, l: over k
  const Index pairs = n * n, per_pair = n - 1, by_k = 2 * n, by_l = by_k + pairs * per_pair;
  const Index unknowns = pairs + pairs * per_pair * per_pair / 2;
  const auto other = [](Index x, Index not_this) { return x > not_this ? x - 1 : x; };
  Builder a(unknowns, by_l + pairs * per_pair);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const Index pair = i * n + j;
      a.add(pair, i, 1);
      a.add(pair, n + j, 1);
      for (Index k = 0; k < per_pair; ++k) {
        a.add(pair, by_k + pair * per_pair + k, -1);
        a.add(pair, by_l + pair * per_pair + k, -1);
      }
    }
  Index y = pairs;  // y(i, j, k, l) = y(k, l, i, j) is one unknown
  for (Index i = 0; i < n; ++i)
    for (Index k = i + 1; k < n; ++k)
      for (Index j = 0; j < n; ++j)
        for (Index l = 0; l < n; ++l) {
          if (j == l) continue;
          a.add(y, by_k + (i * n + j) * per_pair + other(k, i), 1);
          a.add(y, by_k + (k * n + l) * per_pair + other(i, k), 1);
          a.add(y, by_l + (i * n + j) * per_pair + other(l, j), 1);
          a.add(y, by_l + (k * n + l) * per_pair + other(j, l), 1);
          ++y;
        }
  return a.finish();
}

SparseMatrix chessboard_boundary(int p, int q, int k) {
  const auto big = placements(p, q, k + 1), small = placements(p, q, k);  // both in lexicographic order
  Builder a(static_cast<Index>(big.size()), static_cast<Index>(small.size()));
  for (std::size_t i = 0; i < big.size(); ++i)
    for (int t = 0; t <= k; ++t) {
      std::vector<int> face = big[i];
      face.erase(face.begin() + t);
      const auto column = std::lower_bound(small.begin(), small.end(), face) - small.begin();
      a.add(static_cast<Index>(i), column, t % 2 ? -1 : 1);
    }
  return a.finish();
}

}  // namespace qrane::bench
