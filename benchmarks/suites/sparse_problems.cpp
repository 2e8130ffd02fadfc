// SPDX-License-Identifier: Apache-2.0
#include "suites/sparse_problems.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include <qrane/error.hpp>

#include "common/seeded_matrix.hpp"
#include "io/matrices/matrix_file.hpp"
#include "io/matrices/matrix_market.hpp"

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

SparseMatrix dense(Index rows, Index cols) {
  Builder a(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) a.add(i, j, uniform_at(5, static_cast<std::uint64_t>(i + j * rows)));
  return a.finish();
}

/// Differences of neighbours on a grid of so many nodes a side, and a small multiple of every node: smoothing.
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

/// Rows of a few entries anywhere.
SparseMatrix scattered(Index rows, Index cols, int per_row) {
  Numbers numbers(static_cast<std::uint64_t>(rows + cols));
  Builder a(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (int k = 0; k < per_row; ++k) a.add(i, numbers.index(cols), numbers.value());
  return a.finish();
}

/// Poses on a walk in the plane: each measures the next, and some measure others near by (three rows a measurement).
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

/// Cameras of nine parameters that look at points of three, two rows an observation; a small multiple of every unknown.
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

/// Flows of several goods through one network whose arcs they share, transposed: rows are flows and the arcs' slack.
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

std::string numbered(const std::string& family, std::initializer_list<Index> sizes) {
  std::string name = family;
  char before = '-';
  for (const Index size : sizes) {
    name += before;
    name += std::to_string(size);
    before = 'x';
  }
  return name;
}

/// Matrices that fill the bands of intensity of the paper's Table V: the first of every family, then the second, and so
/// on, so that a run that is short of time has some of all.
std::vector<SparseProblem> generated() {
  std::vector<SparseProblem> list;
  const auto add = [&](const std::string& family, std::initializer_list<Index> sizes, auto make) {
    list.push_back({numbered(family, sizes), family, "", make});
  };
  for (const Index side : {40, 60, 80, 100, 130, 160, 200, 300})
    add("grid2d", {side}, [side] { return grid(side, 2); });
  for (const Index side : {8, 10, 12, 14, 16, 18, 22, 25}) add("grid3d", {side}, [side] { return grid(side, 3); });
  for (const auto& [count, closures, reach] : {std::array<Index, 3>{1000, 1000, 30},
                                               {2000, 4000, 50},
                                               {3000, 3000, 3000},
                                               {4000, 8000, 200},
                                               {6000, 3000, 6000}})
    add("poses", {count, closures, reach},
        [count = count, closures = closures, reach = reach] { return poses(count, closures, reach); });
  for (const auto& [cameras, points, views] : {std::array<Index, 3>{10, 500, 4}, {40, 2000, 5}, {100, 4000, 6}})
    add("bundle", {cameras, points, views},
        [cameras = cameras, points = points, views = views] { return bundle(cameras, points, views); });
  for (const auto& [nodes, arcs, goods] :
       {std::array<Index, 3>{40, 120, 8}, {60, 200, 10}, {100, 400, 16}, {150, 600, 32}})
    add("flows", {nodes, arcs, goods},
        [nodes = nodes, arcs = arcs, goods = goods] { return flows(nodes, arcs, goods); });
  for (const auto& [rows, cols, per_row] : {std::array<Index, 3>{800, 400, 3},
                                            {1500, 600, 3},
                                            {2000, 1000, 3},
                                            {3000, 1500, 3},
                                            {4000, 1500, 4},
                                            {5000, 2500, 3},
                                            {6000, 2500, 4},
                                            {9000, 3000, 4},
                                            {8000, 4000, 4},
                                            {4000, 1900, 8},
                                            {4500, 2200, 6},
                                            {5000, 1800, 8},
                                            {5000, 2000, 10},
                                            {6000, 2000, 6},
                                            {7000, 2200, 5},
                                            {8000, 1900, 6},
                                            {4000, 2000, 12}})
    add("scattered", {rows, cols, per_row},
        [rows = rows, cols = cols, per_row = per_row] { return scattered(rows, cols, static_cast<int>(per_row)); });
  for (const Index n : {5, 6, 7, 9, 10, 11, 13, 14, 15}) add("nug", {n}, [n] { return assignment_relaxation(n); });
  for (const auto& [p, q, k] :
       {std::array<int, 3>{5, 5, 2}, {5, 6, 2}, {6, 6, 2}, {6, 7, 2}, {7, 7, 2}, {7, 8, 2}, {8, 8, 2}, {6, 7, 3}})
    add("chessboard", {p, q, k}, [p = p, q = q, k = k] { return chessboard_boundary(p, q, k); });
  std::map<std::string, int> count;
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t k = 0; k < list.size(); ++k) order.emplace_back(count[list[k].source]++, k);
  std::sort(order.begin(), order.end());
  std::vector<SparseProblem> mixed;
  for (const auto& [rank, k] : order) mixed.push_back(std::move(list[k]));
  return mixed;
}

/// The goals' matrices in the order of the goals, then what the paper says of them.
const std::vector<std::pair<std::string, std::string>>& known_matrices() {
  static const std::vector<std::pair<std::string, std::string>> list = {
      {"lp_nug20", "Table III"},
      {"ch7-8-b3", "Table III"},
      {"fit2p", ""},
      {"proxy_olesnik0", "stand-in for olesnik0"},
      {"proxy_EternityII_A", "stand-in for EternityII_A"},
      {"pds_20", ""},
      {"proxy_bundle_adjustment", ""},
      {"cre_d", "Table III"},
      {"world", ""},
      {"dfl001", ""},
      {"rail516", ""},
      {"maros_r7", ""},
      {"pilot87", ""},
      {"sphere2500", ""},
      {"proxy_circuit_2", "stand-in for circuit_2"},
      {"d2q06c", ""}};
  return list;
}

/// A file's name without folder, endings and the mark of a transposed matrix or of a Jacobian.
std::string matrix_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  for (const char* ending : {".gz", ".mtx", "_T", "_J"})
    if (name.ends_with(ending)) name.erase(name.size() - std::string(ending).size());
  return name;
}

std::map<std::string, std::string> sparse_files(const std::string& folder) {
  std::map<std::string, std::string> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    const std::string path = entry->path().string();
    if (io::is_matrix_market_path(path) && io::read_matrix_market_header(path).coordinate)
      found.emplace(matrix_name(entry->path()), path);
  }
  detail::check(!fault, ErrorCode::file, folder, ": ", fault.message());
  return found;
}

SparseProblem from_file(const std::string& name, const std::string& paper, const std::string& path) {
  return {name, "file", paper, [path] { return io::read_sparse(path); }};
}

}  // namespace

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

std::string absence(const SparseProblem& problem) {
  return problem.make ? "" : "no file of that name (.mtx, .mtx.gz) in a folder given by --matrices";
}

std::vector<SparseProblem> paper_sparse(const std::string& folder) {
  std::map<std::string, std::string> files;
  if (!folder.empty()) files = sparse_files(folder);
  std::vector<SparseProblem> list;
  for (const auto& [name, paper] : known_matrices()) {
    if (const auto found = files.find(name); found != files.end()) {
      list.push_back(from_file(name, paper, found->second));
      files.erase(found);
    } else if (name == "lp_nug20") {
      list.push_back({name, "nug", paper, [] { return assignment_relaxation(20); }});
    } else if (name == "ch7-8-b3") {
      list.push_back({name, "chessboard", paper, [] { return chessboard_boundary(7, 8, 3); }});
    } else {
      list.push_back({name, "file", paper, nullptr});
    }
  }
  for (const auto& [name, path] : files) list.push_back(from_file(name, "", path));
  for (const Index n : {128, 256, 384})
    list.push_back({numbered("dense", {n, 16 * n}), "dense", "Table I", [n] { return dense(n, 16 * n); }});
  for (const Index n : {128, 256, 384})
    list.push_back({numbered("dense", {16 * n, n}), "dense", "Table II", [n] { return dense(16 * n, n); }});
  for (SparseProblem& problem : generated()) list.push_back(std::move(problem));
  return list;
}

std::vector<SparseProblem> tiled_sparse(const std::string& folder) {
  std::vector<SparseProblem> list;
  for (const char* name : {"cre_d", "pds_20", "fit2p", "rail516", "sphere2500", "proxy_EternityII_A", "lp_nug20"})
    for (SparseProblem& problem : paper_sparse(folder))
      if (problem.name == name) list.push_back(std::move(problem));
  for (SparseProblem& problem : paper_sparse(""))
    if (problem.source == "dense") list.push_back(std::move(problem));
  return list;
}

std::vector<SparseProblem> used_sparse(const std::string& folder) {
  std::vector<std::string> names = {"sphere2500", "cre_d", "pds_20", "proxy_olesnik0"};
  for (const char* name : {"ch7-8-b3", "lp_nug20"})
    if (!folder.empty()) names.push_back(name);
  for (const char* name :
       {"nug-10", "chessboard-7x7x2", "poses-2000x4000x50", "bundle-40x2000x5", "flows-60x200x10", "grid3d-14"})
    if (folder.empty()) names.push_back(name);
  std::vector<SparseProblem> list, all = paper_sparse(folder);
  for (const std::string& name : names)
    for (SparseProblem& problem : all)
      if (problem.name == name) list.push_back(problem);
  return list;
}

std::vector<SparseProblem> smoke_used_sparse(const std::string&) {
  std::vector<SparseProblem> list;
  list.push_back({"nug-5", "nug", "", [] { return assignment_relaxation(5); }});
  list.push_back({"grid2d-12", "grid2d", "", [] { return grid(12, 2); }});
  return list;
}

std::vector<SparseProblem> smoke_sparse(const std::string& folder) {
  std::vector<SparseProblem> list;
  if (!folder.empty())
    for (const auto& [name, path] : sparse_files(folder)) list.push_back(from_file(name, "", path));
  list.push_back({"nug-5", "nug", "", [] { return assignment_relaxation(5); }});
  list.push_back({"chessboard-5x5x2", "chessboard", "", [] { return chessboard_boundary(5, 5, 2); }});
  list.push_back({"grid2d-20", "grid2d", "", [] { return grid(20, 2); }});
  list.push_back({"dense-20x320", "dense", "Table I", [] { return dense(20, 320); }});
  list.push_back({"dense-320x20", "dense", "Table II", [] { return dense(320, 20); }});
  return list;
}

}  // namespace qrane::bench
