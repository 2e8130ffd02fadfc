// SPDX-License-Identifier: Apache-2.0
// Method::paper: the four algorithms of Andrew, Dingle, "Implementing QR factorization updating algorithms on GPUs"
// (Parallel Computing 40, 2014), section 3, on a store of this library (the paper keeps an m x m Q; a thin one has the
// columns that the update needs beside it, Z of complement.hpp).
//
//   rows out      (3.4) rotations of adjacent columns make the strip of Q and Z that goes out [lower triangle, 0], ±I
//   by
//                 its orthonormality; R's rows and d are turned by the same ones
//   columns in    (3.1) the part of U beyond Q is reduced by Householder reflections (Z and L), R transposed, the strip
//                 [C(k:); L]ᵀ made a lower triangle by rotations, R transposed back
//   columns out   (3.2) Householder blocks of nb columns and p + nb rows, ten of them unless told
//   rows in       (3.3) Householder blocks of the p new rows and nb of R's, whose other rows and zeros are not touched
//
// Its two variants (section 5), Method::paper_dense: rows in by one dense QR of [U; R], columns in by Householder
// reflections on all of R from row k down, fill-in and all. Where only R is kept, rows come in and columns go out.
//
// The paper launches two kernels for every front of rotations. Here up to max_waves fronts (rows of the strip) go
// together, and a group is five launches: its rotations from the strip; the rest of the strip; R's columns and d; and
// on a second queue, beside them, Q. 6 p c (m + n) flops for the c columns of Q that turn.
#pragma once

#include "paper/updates/rotations.hpp"
#include "update/thin_q/columns.hpp"

namespace qrane::update {

/// What the fronts turn beside the strip; all have the strip's columns, or none.
template <class B, class T>
struct Turned {
  DeviceMatrix<B, T> q;             // its rows
  DeviceMatrix<B, T> r_transposed;  // R's columns are its rows: zero right of the diagonal
  DeviceMatrix<B, T> d_transposed;
};

/// Fronts of rotations that make the strip lower triangular; `drop`: its first p columns, and everything's with them,
/// go, and the others move left by p.
template <class B, class T>
void run_fronts(Tools<B, T>& tools, const DeviceMatrix<B, T>& strip, const Turned<B, T>& turned, bool drop) {
  auto& queue = tools.queue;
  auto side = queue.side();
  const auto all_cs = tools.scratch.template take<T>(2 * strip.cols * strip.rows);  // before anything is changed
  for (Index row = 0, waves = 0; row < strip.rows; row += waves) {
    waves = backend::max_waves;
    while (waves > strip.rows - row) waves /= 2;
    const Index first = drop ? 0 : row, cols = strip.cols - row;  // what earlier fronts have done with
    backend::Rotations<B, T> make;
    make.strip = strip.block(row, first, waves, cols);
    make.heights = cols - 1;
    if (make.heights < 1) break;
    make.cs = all_cs + 2 * strip.cols * row;
    make_rotations(queue, make);
    backend::Rotate<B, T> turn;
    turn.heights = make.heights;
    turn.waves = waves;
    turn.cs = make.cs;
    turn.drop = drop;
    const auto rotate_columns = [&](auto& on, const DeviceMatrix<B, T>& x, bool lower) {
      if (x.rows == 0) return;
      turn.x = x.columns(first, cols);
      turn.lower = lower;
      rotate(on, turn);
    };
    side.follow(queue);
    rotate_columns(side, turned.q, false);
    const Index below = row + waves;
    if (below < strip.rows) rotate_columns(queue, strip.block(below, 0, strip.rows - below, strip.cols), false);
    rotate_columns(queue, turned.r_transposed, true);
    rotate_columns(queue, turned.d_transposed, false);
  }
  queue.follow(side);
}

/// Columns of one Householder block where the caller does not say: ten blocks (section 4.1).
inline Index paper_block(Index columns, Index wanted) {
  constexpr Index blocks = 10;
  return wanted > 0 ? wanted : std::max<Index>((columns + blocks - 1) / blocks, 1);
}

/// Rows k .. k+p-1, with Q.
template <class B, class T>
void delete_rows_by_rotations(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p) {
  using Mat = DeviceMatrix<B, T>;
  delete_rows_by(tools, store, k, p, [&](const Mat& g, const Mat& m, const Mat& q, Index carry) {
    auto& queue = tools.queue;
    const Index n = store.n, nrhs = store.nrhs, kept = m.rows - carry;
    const Mat strip = tools.scratch.template matrix<T>(carry, g.rows), left = m.block(0, 0, kept, n + nrhs);
    const Turned<B, T> turned{q, tools.scratch.template matrix<T>(n, m.rows),
                              tools.scratch.template matrix<T>(nrhs, m.rows)};
    transpose(queue, g, strip);
    transpose(queue, m.columns(0, n), turned.r_transposed);
    if (nrhs > 0) transpose(queue, m.columns(n, nrhs), turned.d_transposed);
    tools.end_stage("transposes");
    run_fronts(tools, strip, turned, true);
    tools.end_stage("rotations");
    if (kept > 0) transpose(queue, turned.r_transposed.columns(0, kept), left.columns(0, n));
    if (kept > 0 && nrhs > 0) transpose(queue, turned.d_transposed.columns(0, kept), left.columns(n, nrhs));
    tools.end_stage("transposes");
    return left;
  });
}

/// u: m x p on the device, before column k; with Q.
template <class B, class T>
void insert_columns_by_rotations(Tools<B, T>& tools, Store<B, T>& store, Index k, const DeviceMatrix<B, T>& u) {
  using Mat = DeviceMatrix<B, T>;
  insert_columns_by(tools, store, u, [&](const Mat& c, const Complement<B, T>& rest, const Mat& m, const Mat& q) {
    auto& queue = tools.queue;
    const Mat& l = rest.l;
    const Index p = c.cols, n = store.n + p, nrhs = store.nrhs, turning = std::max<Index>(m.rows - k, 0);
    copy_r_columns(tools, store, 0, k, m, 0);
    copy_r_columns(tools, store, k, store.n - k, m, k + p);
    const Index above = std::min(k, c.rows);
    if (above > 0) copy(queue, c.block(0, 0, above, p), m.block(0, k, above, p), Part::all);
    if (turning == 0) return;
    if (rest.triangular && k >= c.rows) {  // after all others: complete
      copy(queue, l, m.block(c.rows, k, l.rows, p), Part::upper);
      return;
    }
    const Mat strip = tools.scratch.template matrix<T>(p, turning);
    if (c.rows > k) transpose(queue, c.block(k, 0, c.rows - k, p), strip.columns(0, c.rows - k));
    if (l.rows > 0) transpose(queue, l, strip.columns(turning - l.rows, l.rows));
    const Mat right = m.block(k, k + p, turning, n - k - p), d = m.block(k, n, turning, nrhs);
    const Turned<B, T> turned{q.columns(k, turning), tools.scratch.template matrix<T>(right.cols, turning),
                              tools.scratch.template matrix<T>(nrhs, turning)};
    if (right.cols > 0) transpose(queue, right, turned.r_transposed);
    if (nrhs > 0) transpose(queue, d, turned.d_transposed);
    tools.end_stage("transposes");
    run_fronts(tools, strip, turned, false);
    tools.end_stage("rotations");
    transpose(queue, strip, m.block(k, k, turning, p));
    if (right.cols > 0) transpose(queue, turned.r_transposed, right);
    if (nrhs > 0) transpose(queue, turned.d_transposed, d);
    tools.end_stage("transposes");
  });
}

/// What both methods do, for the changes that updated.hpp gives them.
template <class B, class T>
void update_by_paper(Tools<B, T>& tools, Store<B, T>& store, const UpdateRequest<T>& request,
                     const DeviceMatrix<B, T>& u, const DeviceMatrix<B, T>& e, bool dense) {
  const Index k = request.k, p = request.p, wanted = request.options.block_cols;
  switch (request.change) {
    case Change::insert_rows:
      insert_rows(tools, store, k, u, e, dense ? std::max<Index>(store.positions(), 1) : paper_block(store.n, wanted));
      break;
    case Change::delete_rows: delete_rows_by_rotations(tools, store, k, p); break;
    case Change::insert_columns:
      if (dense)
        insert_columns(tools, store, k, u, 0, true);
      else
        insert_columns_by_rotations(tools, store, k, u);
      break;
    case Change::delete_columns: delete_columns(tools, store, k, p, paper_block(store.n - k - p, wanted)); break;
    case Change::rank_k: break;
  }
}

}  // namespace qrane::update
