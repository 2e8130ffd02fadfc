// SPDX-License-Identifier: Apache-2.0
// Column orderings of a matrix without empty columns.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sparse/analysis/compact.hpp"

namespace qrane::sparse {

/// The graph of AᵀA: columns of A that share a row are adjacent. Columns with the same rows are one vertex; rows with
/// very many entries are ignored. Shared by all orderings that need it.
struct ColumnGraph {
  using Vertex = std::int32_t;    // half the memory, and METIS's type
  std::vector<Vertex> vertex_of;  ///< of each column
  std::vector<Vertex> weight;     ///< columns in each vertex
  std::vector<Index> edge_begin;  ///< vertices + 1
  std::vector<Vertex> edges;      ///< neighbours, ascending, without the vertex itself; both directions

  Index vertices() const { return static_cast<Index>(weight.size()); }
};

/// Rows with more entries than this join nothing.
Index dense_row_limit(Index cols);

/// Whether a graph's vertices can be numbered.
inline bool has_column_graph(Index cols) { return cols <= std::numeric_limits<ColumnGraph::Vertex>::max(); }

/// Throws Error{unavailable} where it has too many columns. Time and memory: the sum of the squares of the row lengths
/// of what is joined.
template <class I>
ColumnGraph column_graph(const Compact<I>& a);

/// Column approximate minimum degree.
template <class I>
std::vector<I> order_colamd(const Compact<I>& a);
/// Approximate minimum degree on A^T A.
template <class I>
std::vector<I> order_amd(const ColumnGraph& graph);
/// Nested dissection on A^T A. Throws Error{unavailable} without METIS, and where its 32-bit graph is too small.
template <class I>
std::vector<I> order_metis(const ColumnGraph& graph);
/// Whether METIS is there and its graph can hold this one.
bool metis_fits(const ColumnGraph& graph);

}  // namespace qrane::sparse
