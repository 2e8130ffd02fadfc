// SPDX-License-Identifier: Apache-2.0
#include "sparse/analysis/ordering.hpp"

#include <amd.h>
#include <colamd.h>

#include <algorithm>
#include <bit>
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

/// A hash in which every bit depends on all of x.
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The first column of every set of columns with the same rows; fills vertex_of and weight.
template <class I>
std::vector<I> representatives(const Compact<I>& a, ColumnGraph& graph) {
  using Vertex = ColumnGraph::Vertex;
  const auto cols = static_cast<std::size_t>(a.cols);
  // hash table of vertices by their rows; open addressing, at most half full
  const std::size_t places = std::bit_ceil(2 * cols + 2);
  struct Place {
    std::uint32_t hash = 0;
    Vertex vertex = -1;
  };
  std::vector<Place> table(places);
  std::vector<I> result;
  graph.vertex_of.resize(cols);
  graph.weight.reserve(cols);
  const auto begin = [&](I j) { return a.row_index.begin() + a.col_begin[j]; };
  for (I j = 0; j < a.cols; ++j) {
    std::uint64_t sum = static_cast<std::uint64_t>(a.col_begin[j + 1] - a.col_begin[j]);
    for (I p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p)
      sum = sum * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(a.row_index[p]);
    sum = scramble(sum);
    const auto hash = static_cast<std::uint32_t>(sum >> 32);
    std::size_t at = sum & (places - 1);
    for (;; at = (at + 1) & (places - 1)) {
      Place& place = table[at];
      if (place.vertex < 0) {
        place = {hash, static_cast<Vertex>(result.size())};
        result.push_back(j);
        graph.weight.push_back(0);
        break;
      }
      if (place.hash != hash) continue;
      const I first = result[place.vertex];
      if (std::equal(begin(first), begin(first + 1), begin(j), begin(j + 1))) break;
    }
    graph.vertex_of[j] = table[at].vertex;
    ++graph.weight[table[at].vertex];
  }
  return result;
}

/// The columns of vertices in the order of their positions, columns of one vertex side by side.
template <class I>
std::vector<I> expand(const ColumnGraph& graph, const std::vector<ColumnGraph::Vertex>& position) {
  const auto cols = static_cast<I>(graph.vertex_of.size());
  std::vector<I> begin(graph.vertices() + 1, 0);
  for (Index v = 0; v < graph.vertices(); ++v) begin[position[v] + 1] = graph.weight[v];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<I> order(cols);
  for (I j = 0; j < cols; ++j) order[begin[position[graph.vertex_of[j]]]++] = j;
  return order;
}

// COLAMD and AMD exist for int and 64-bit indices; int is faster and takes half the memory.

constexpr std::size_t most_short = std::numeric_limits<int>::max();
bool fits_short(std::size_t size) { return size <= most_short; }

int colamd_core(int rows, int cols, int length, int* work, int* order, int* stats) {
  return colamd(rows, cols, length, work, order, nullptr, stats);
}
Index colamd_core(Index rows, Index cols, Index length, Index* work, Index* order, Index* stats) {
  return colamd_l(rows, cols, length, work, order, nullptr, stats);
}

template <class Integer, class I>
std::vector<I> colamd_by(const Compact<I>& a, std::size_t length) {
  std::vector<Integer> work(length), order(a.col_begin.begin(), a.col_begin.end());
  std::copy(a.row_index.begin(), a.row_index.end(), work.begin());
  Integer stats[COLAMD_STATS];
  const bool done = colamd_core(static_cast<Integer>(a.rows), static_cast<Integer>(a.cols),
                                static_cast<Integer>(length), work.data(), order.data(), stats) != 0;
  detail::check(done, ErrorCode::device, "COLAMD: status ", stats[COLAMD_STATUS]);
  return {order.begin(), order.end() - 1};
}

/// The graph is symmetric without loops, as AMD's core requires; AMD works in the memory of the edges plus some.
template <class Integer>
std::vector<ColumnGraph::Vertex> amd_by(const ColumnGraph& graph, std::size_t length) {
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

template <class I>
ColumnGraph column_graph(const Compact<I>& a) {
  detail::check(has_column_graph(a.cols), ErrorCode::unavailable, "orderings of the graph of A^T A: ", a.cols,
                " columns are too many for it");
  using Vertex = ColumnGraph::Vertex;
  ColumnGraph graph;
  const std::vector<I> columns = representatives(a, graph);
  const Index limit = dense_row_limit(a.cols);
  // Rows by vertices: of every set of equal columns one entry.
  std::vector<I> row_begin(a.rows + 1, 0);
  std::vector<Vertex> row_vertices;
  row_vertices.reserve(a.col_index.size());
  for (I i = 0; i < a.rows; ++i) {
    row_begin[i + 1] = row_begin[i];
    if (a.row_begin[i + 1] - a.row_begin[i] > limit) continue;
    for (I p = a.row_begin[i]; p < a.row_begin[i + 1]; ++p) {
      const I j = a.col_index[p];
      const Vertex v = graph.vertex_of[j];
      if (columns[v] == j) row_vertices.push_back(v);
    }
    row_begin[i + 1] = static_cast<I>(row_vertices.size());
  }
  std::vector<Vertex> seen(graph.vertices(), -1);
  graph.edge_begin.reserve(graph.vertices() + 1);
  graph.edge_begin.push_back(0);
  for (Vertex v = 0; v < graph.vertices(); ++v) {
    seen[v] = v;
    for (I p = a.col_begin[columns[v]]; p < a.col_begin[columns[v] + 1]; ++p) {
      const I i = a.row_index[p];
      for (I q = row_begin[i]; q < row_begin[i + 1]; ++q) {
        if (seen[row_vertices[q]] == v) continue;
        seen[row_vertices[q]] = v;
        graph.edges.push_back(row_vertices[q]);
      }
    }
    graph.edge_begin.push_back(static_cast<Index>(graph.edges.size()));
  }
  // The graph has both directions, so transposing it only sorts the neighbours. METIS then finds orderings with up to a
  // fifth fewer flops.
  std::vector<Index> next(graph.edge_begin.begin(), graph.edge_begin.end() - 1);
  std::vector<Vertex> sorted(graph.edges.size());
  for (Vertex v = 0; v < graph.vertices(); ++v) {
    for (Index p = graph.edge_begin[v]; p < graph.edge_begin[v + 1]; ++p) sorted[next[graph.edges[p]]++] = v;
  }
  graph.edges = std::move(sorted);
  return graph;
}

template <class I>
std::vector<I> order_colamd(const Compact<I>& a) {
  const std::size_t length = colamd_l_recommended(a.entries(), a.rows, a.cols);
  detail::check(length > 0, ErrorCode::out_of_memory, "COLAMD: ", a.entries(), " entries are too many");
  return fits_short(length) ? colamd_by<int>(a, length) : colamd_by<Index>(a, length);
}

template <class I>
std::vector<I> order_amd(const ColumnGraph& graph) {
  const std::size_t edges = graph.edges.size(), length = edges + edges / 5 + graph.weight.size();
  using Vertex = ColumnGraph::Vertex;
  const std::vector<Vertex> order = fits_short(length) ? amd_by<int>(graph, length) : amd_by<Index>(graph, length);
  std::vector<Vertex> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<Vertex>(k);
  return expand<I>(graph, position);
}

#if QRANE_WITH_METIS
bool metis_fits(const ColumnGraph& graph) {
  constexpr auto most = std::numeric_limits<idx_t>::max();
  return graph.vertices() < most && graph.edges.size() < static_cast<std::size_t>(most);
}

template <class I>
std::vector<I> order_metis(const ColumnGraph& graph) {
  detail::check(metis_fits(graph), ErrorCode::unavailable, "ordering metis: ", graph.edges.size(),
                " edges are too many for its graph");
  static_assert(std::is_same_v<idx_t, ColumnGraph::Vertex>);
  idx_t vertices = static_cast<idx_t>(graph.vertices());
  std::vector<idx_t> place(vertices);
  std::iota(place.begin(), place.end(), idx_t{0});
  if (graph.edges.empty()) return expand<I>(graph, place);
  std::vector<idx_t> begin(graph.edge_begin.begin(), graph.edge_begin.end()), order(vertices);
  idx_t* const edges = const_cast<idx_t*>(graph.edges.data());  // only read, as are the weights
  idx_t* const weight = const_cast<idx_t*>(graph.weight.data());
  const int status = METIS_NodeND(&vertices, begin.data(), edges, weight, nullptr, order.data(), place.data());
  detail::check(status != METIS_ERROR_MEMORY, ErrorCode::out_of_memory, "METIS: no memory for ", graph.edges.size(),
                " edges");
  detail::check(status == METIS_OK, ErrorCode::device, "METIS: status ", status);
  return expand<I>(graph, place);
}
#else
bool metis_fits(const ColumnGraph&) { return false; }

template <class I>
std::vector<I> order_metis(const ColumnGraph&) {
  throw Error(ErrorCode::unavailable, "ordering metis: this build is without METIS");
}
#endif

#define QRANE_INSTANTIATE(I)                                \
  template ColumnGraph column_graph(const Compact<I>&);     \
  template std::vector<I> order_colamd(const Compact<I>&);  \
  template std::vector<I> order_amd<I>(const ColumnGraph&); \
  template std::vector<I> order_metis<I>(const ColumnGraph&);
QRANE_INSTANTIATE(std::int32_t)
QRANE_INSTANTIATE(Index)

}  // namespace qrane::sparse
