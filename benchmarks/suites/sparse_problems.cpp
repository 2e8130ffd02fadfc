// SPDX-License-Identifier: Apache-2.0
#include "suites/sparse_problems.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <qrane/error.hpp>

#include "io/matrices/matrix_file.hpp"
#include "io/matrices/matrix_market.hpp"

namespace qrane::bench {
namespace {

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
