// SPDX-License-Identifier: Apache-2.0
#include "sparse/ordering.hpp"

#include <amd.h>
#include <colamd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#if QRANE_WITH_METIS
#include <metis.h>
#endif

namespace qrane::sparse {
namespace {

static_assert(std::is_same_v<SuiteSparse_long, Index>);

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// One column of every set of columns that have the same rows; fills vertex_of and weight.
std::vector<Index> representatives(const Compact& a, ColumnGraph& graph) {
  std::vector<std::uint64_t> hash(a.cols, 0);
  for (Index j = 0; j < a.cols; ++j) {
    for (Index p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) {
      hash[j] += scramble(static_cast<std::uint64_t>(a.row_index[p]) + 1);
    }
  }
  std::vector<Index> by_hash(a.cols);
  std::iota(by_hash.begin(), by_hash.end(), Index{0});
  std::sort(by_hash.begin(), by_hash.end(),
            [&](Index j, Index k) { return hash[j] != hash[k] ? hash[j] < hash[k] : j < k; });
  const auto length = [&](Index j) { return a.col_begin[j + 1] - a.col_begin[j]; };
  std::vector<Index> leader(a.cols);
  std::vector<Index> mark(a.rows, -1);
  // Each column is compared with the first of its hash; sums of 64 scrambled bits that agree by accident cost no more
  // than a vertex too many.
  for (Index from = 0; from < a.cols;) {
    const Index first = by_hash[from];
    Index to = from;
    for (; to < a.cols && hash[by_hash[to]] == hash[first]; ++to) {
      const Index j = by_hash[to];
      leader[j] = j;
      if (j == first) {
        if (to + 1 == a.cols || hash[by_hash[to + 1]] != hash[first]) continue;
        for (Index p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) mark[a.row_index[p]] = first;
        continue;
      }
      const Index* const rows = a.row_index.data();
      if (length(j) == length(first) &&
          std::all_of(rows + a.col_begin[j], rows + a.col_begin[j + 1], [&](Index i) { return mark[i] == first; })) {
        leader[j] = first;
      }
    }
    from = to;
  }
  std::vector<Index> result;
  graph.vertex_of.resize(a.cols);
  for (Index j = 0; j < a.cols; ++j) {  // leaders are the smallest of their sets
    if (leader[j] == j) {
      graph.vertex_of[j] = static_cast<Index>(result.size());
      result.push_back(j);
      graph.weight.push_back(0);
    } else {
      graph.vertex_of[j] = graph.vertex_of[leader[j]];
    }
    ++graph.weight[graph.vertex_of[j]];
  }
  return result;
}

/// The columns of vertices in that order, columns of one vertex side by side.
std::vector<Index> expand(const ColumnGraph& graph, const std::vector<Index>& position) {
  const auto cols = static_cast<Index>(graph.vertex_of.size());
  std::vector<Index> begin(graph.vertices() + 1, 0);
  for (Index v = 0; v < graph.vertices(); ++v) begin[position[v] + 1] = graph.weight[v];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Index> order(cols);
  for (Index j = 0; j < cols; ++j) order[begin[position[graph.vertex_of[j]]]++] = j;
  return order;
}

// COLAMD and AMD come for int and for 64 bits; int is faster, and takes half the memory.

constexpr std::size_t most_short = std::numeric_limits<int>::max();
bool fits_short(std::size_t size) { return size <= most_short; }

int colamd_core(int rows, int cols, int length, int* work, int* order, int* stats) {
  return colamd(rows, cols, length, work, order, nullptr, stats);
}
Index colamd_core(Index rows, Index cols, Index length, Index* work, Index* order, Index* stats) {
  return colamd_l(rows, cols, length, work, order, nullptr, stats);
}

template <class Integer>
std::vector<Index> colamd_by(const Compact& a, std::size_t length) {
  std::vector<Integer> work(length), order(a.col_begin.begin(), a.col_begin.end());
  std::copy(a.row_index.begin(), a.row_index.end(), work.begin());
  Integer stats[COLAMD_STATS];
  const bool done = colamd_core(static_cast<Integer>(a.rows), static_cast<Integer>(a.cols),
                                static_cast<Integer>(length), work.data(), order.data(), stats) != 0;
  detail::check(done, ErrorCode::device, "COLAMD: status ", stats[COLAMD_STATUS]);
  return {order.begin(), order.end() - 1};
}

/// The graph is symmetric and without loops, as AMD's core wants it; it works in the edges' place and some more.
template <class Integer>
std::vector<Index> amd_by(const ColumnGraph& graph, std::size_t length) {
  const auto n = static_cast<Integer>(graph.vertices());
  std::vector<Integer> order(n);
  std::iota(order.begin(), order.end(), Integer{0});
  if (graph.edges.empty()) return {order.begin(), order.end()};
  const auto edges = static_cast<Integer>(graph.edges.size());
  std::vector<Integer> begin(graph.edge_begin.begin(), graph.edge_begin.end()), work(length), count(n), size(n),
      head(n), elements(n), degree(n), mark(n), position(n);
  std::copy(graph.edges.begin(), graph.edges.end(), work.begin());
  for (Integer v = 0; v < n; ++v) count[v] = begin[v + 1] - begin[v];
  const auto core = [&](auto amd) {
    amd(n, begin.data(), work.data(), count.data(), static_cast<Integer>(length), edges, size.data(), position.data(),
        order.data(), head.data(), elements.data(), degree.data(), mark.data(), nullptr, nullptr);
  };
  if constexpr (std::is_same_v<Integer, int>)
    core(amd_2);
  else
    core(amd_l2);
  return {order.begin(), order.end()};
}

}  // namespace

Index dense_row_limit(Index cols) {
  return std::max<Index>(16, static_cast<Index>(10.0 * std::sqrt(static_cast<double>(cols))));
}

ColumnGraph column_graph(const Compact& a) {
  detail::check(has_column_graph(a.cols), ErrorCode::unavailable, "orderings of the graph of A^T A: ", a.cols,
                " columns are too many for it");
  using Vertex = ColumnGraph::Vertex;
  ColumnGraph graph;
  const std::vector<Index> columns = representatives(a, graph);
  const Index limit = dense_row_limit(a.cols);
  // Rows by vertices: of every set of equal columns one entry.
  std::vector<Index> row_begin(a.rows + 1, 0);
  std::vector<Vertex> row_vertices;
  for (Index i = 0; i < a.rows; ++i) {
    row_begin[i + 1] = row_begin[i];
    if (a.row_begin[i + 1] - a.row_begin[i] > limit) continue;
    for (Index p = a.row_begin[i]; p < a.row_begin[i + 1]; ++p) {
      const Index j = a.col_index[p];
      const Index v = graph.vertex_of[j];
      if (columns[v] == j) row_vertices.push_back(static_cast<Vertex>(v));
    }
    row_begin[i + 1] = static_cast<Index>(row_vertices.size());
  }
  std::vector<Vertex> seen(graph.vertices(), -1);
  graph.edge_begin.push_back(0);
  for (Vertex v = 0; v < graph.vertices(); ++v) {
    seen[v] = v;
    for (Index p = a.col_begin[columns[v]]; p < a.col_begin[columns[v] + 1]; ++p) {
      const Index i = a.row_index[p];
      for (Index q = row_begin[i]; q < row_begin[i + 1]; ++q) {
        if (seen[row_vertices[q]] == v) continue;
        seen[row_vertices[q]] = v;
        graph.edges.push_back(row_vertices[q]);
      }
    }
    graph.edge_begin.push_back(static_cast<Index>(graph.edges.size()));
  }
  // Both directions are there, so transposing changes nothing but the order of neighbours, to ascending: METIS finds
  // orderings of up to a fifth fewer flops from it.
  std::vector<Index> next(graph.edge_begin.begin(), graph.edge_begin.end() - 1);
  std::vector<Vertex> sorted(graph.edges.size());
  for (Vertex v = 0; v < graph.vertices(); ++v) {
    for (Index p = graph.edge_begin[v]; p < graph.edge_begin[v + 1]; ++p) sorted[next[graph.edges[p]]++] = v;
  }
  graph.edges = std::move(sorted);
  return graph;
}

std::vector<Index> order_colamd(const Compact& a) {
  const std::size_t length = colamd_l_recommended(a.entries(), a.rows, a.cols);
  detail::check(length > 0, ErrorCode::out_of_memory, "COLAMD: ", a.entries(), " entries are too many");
  return fits_short(length) ? colamd_by<int>(a, length) : colamd_by<Index>(a, length);
}

std::vector<Index> order_amd(const ColumnGraph& graph) {
  const std::size_t edges = graph.edges.size(), length = edges + edges / 5 + graph.weight.size();
  const std::vector<Index> order = fits_short(length) ? amd_by<int>(graph, length) : amd_by<Index>(graph, length);
  std::vector<Index> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<Index>(k);
  return expand(graph, position);
}

#if QRANE_WITH_METIS
bool metis_fits(const ColumnGraph& graph) {
  constexpr auto most = std::numeric_limits<idx_t>::max();
  return graph.vertices() < most && graph.edges.size() < static_cast<std::size_t>(most);
}

std::vector<Index> order_metis(const ColumnGraph& graph) {
  detail::check(metis_fits(graph), ErrorCode::unavailable, "ordering metis: ", graph.edges.size(),
                " edges are too many for its graph");
  std::vector<Index> position(graph.vertices());
  std::iota(position.begin(), position.end(), Index{0});
  if (graph.edges.empty()) return expand(graph, position);
  static_assert(std::is_same_v<idx_t, ColumnGraph::Vertex>);
  idx_t vertices = static_cast<idx_t>(graph.vertices());
  std::vector<idx_t> begin(graph.edge_begin.begin(), graph.edge_begin.end());
  idx_t* const edges = const_cast<idx_t*>(graph.edges.data());  // only read
  std::vector<idx_t> weight(graph.weight.begin(), graph.weight.end());
  std::vector<idx_t> order(graph.vertices()), place(graph.vertices());
  const int status = METIS_NodeND(&vertices, begin.data(), edges, weight.data(), nullptr, order.data(), place.data());
  detail::check(status != METIS_ERROR_MEMORY, ErrorCode::out_of_memory, "METIS: no memory for ", graph.edges.size(),
                " edges");
  detail::check(status == METIS_OK, ErrorCode::device, "METIS: status ", status);
  position.assign(place.begin(), place.end());
  return expand(graph, position);
}
#else
bool metis_fits(const ColumnGraph&) { return false; }

std::vector<Index> order_metis(const ColumnGraph&) {
  throw Error(ErrorCode::unavailable, "ordering metis: this build is without METIS");
}
#endif

}  // namespace qrane::sparse
