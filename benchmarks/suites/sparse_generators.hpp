// SPDX-License-Identifier: Apache-2.0
// Families of sparse matrices that are made here, the same on every machine.
#pragma once

#include <io/matrices/matrix.hpp>

namespace qrane::bench {

using SparseMatrix = io::Sparse<double>;

SparseMatrix dense(Index rows, Index cols);
/// Differences of neighbours on a grid of so many nodes a side, and a small multiple of every node: smoothing.
SparseMatrix grid(Index side, int dimensions);
/// Rows of a few entries anywhere.
SparseMatrix scattered(Index rows, Index cols, int per_row);
/// Poses on a walk in the plane: each measures the next, and some measure others near by (three rows a measurement).
SparseMatrix poses(Index count, Index closures, Index reach);
/// Cameras of nine parameters that look at points of three, two rows an observation; a small multiple of every unknown.
SparseMatrix bundle(Index cameras, Index points, Index views);
/// Flows of several goods through one network whose arcs they share, transposed: rows are flows and the arcs' slack.
SparseMatrix flows(Index nodes, Index arcs, Index goods);
/// Linear relaxation of a quadratic assignment problem (Adams and Johnson 1994; Resende, Ramakrishnan, Drezner 1995),
/// transposed: n = 20 is lp_nug20.
SparseMatrix assignment_relaxation(Index n);
/// Boundary map of the p x q chessboard complex: placements of k + 1 rooks (rows) over those of k; 7, 8, 3: ch7-8-b3.
SparseMatrix chessboard_boundary(int p, int q, int k);

}  // namespace qrane::bench
