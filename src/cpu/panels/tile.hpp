// SPDX-License-Identifier: Apache-2.0
// What the QR tile kernels of the CPU backend share (factor.cpp, factor_tree.cpp): column steps, compact WY, scaling.
//
// A block is factored in groups of `inner` columns, as LAPACK's geqrt: Householder vectors column by column inside the
// group, then one compact-WY update of the columns to its right.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"

namespace qrane::backend::cpu::tiles {

/// Scratch that a thread keeps between tasks; grows, never shrinks within a launch.
template <class T>
class Workspace {
 public:
  T* get(int slot, Index count) {
    auto& buffer = buffers_[slot];
    if (static_cast<Index>(buffer.size()) < count) buffer.resize(static_cast<std::size_t>(count));
    return buffer.data();
  }

 private:
  std::vector<T> buffers_[4];
};
enum Slot { slot_v, slot_w, slot_panel, slot_c };

/// A dense column-major tile.
template <class T>
struct Tile {
  T* data;
  Index rows, cols, ld;
  T& operator()(Index i, Index j) const { return data[i + j * ld]; }
  T* column(Index j) const { return data + j * ld; }
  Tile columns(Index j, Index n) const { return {data + j * ld, rows, n, ld}; }
};

/// The power of two that brings a column whose squares could overflow or underflow to about 1; 0 means "leave".
/// Exact, and QR commutes with it: only R's columns must be scaled back.
template <class T>
int scaling_exponent(T largest) {
  constexpr double large = sizeof(T) == 4 ? 1e15 : 1e140;
  constexpr double small = sizeof(T) == 4 ? 1e-6 : 1e-100;
  const bool scale = std::isfinite(largest) && largest > 0 && (largest > large || largest < small);
  return scale ? -std::ilogb(largest) : 0;
}

template <class T>
T max_abs(const T* x, Index n) {
  T largest = 0;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

/// One exponent per column, or none at all when every column may stay.
template <class T>
std::vector<int> scaling_exponents(const Tile<T>& a) {
  std::vector<int> exponents;
  for (Index j = 0; j < a.cols; ++j) {
    const int e = scaling_exponent(max_abs(a.column(j), a.rows));
    if (e == 0) continue;
    if (exponents.empty()) exponents.resize(static_cast<std::size_t>(a.cols), 0);
    exponents[static_cast<std::size_t>(j)] = e;
  }
  return exponents;
}

template <class T>
void scale_by(T* x, Index n, int exponent) {
  if (exponent == 0) return;
  for (Index i = 0; i < n; ++i) x[i] = std::ldexp(x[i], exponent);
}

/// T(0:j, j) := -tau T(0:j, 0:j) z, where z = V(:, 0:j)^T v_j; T(j, j) = tau (LAPACK's larft).
template <class T>
void append_t(T* t, Index ld, Index j, T tau, const T* z) {
  for (Index i = 0; i < j; ++i) {
    T sum = 0;
    for (Index k = i; k < j; ++k) sum += t[i + k * ld] * z[k];
    t[i + j * ld] = -tau * sum;
  }
  t[j + j * ld] = tau;
}

/// Householder QR of a tile: R and the reflectors' tails in place, and T.
template <class T>
void factor_columns(const Tile<T>& a, T* t, Index t_ld, Workspace<T>& work) {
  // Squares below this start to underflow; scaling sees to it that what is dropped here is
  // under 1e-11 (float) or 1e-45 (double) of the column.
  constexpr T negligible = sizeof(T) == 4 ? T(1e-34) : T(1e-290);
  T* w = work.get(slot_w, 2 * a.cols);
  for (Index j = 0; j < a.cols; ++j) {
    std::fill(t + j * t_ld, t + j * t_ld + t_ld, T(0));
    if (j >= a.rows) continue;
    const Index height = a.rows - j;
    T* x = a.column(j) + j;
    const T alpha = x[0];
    const T tail = blas::dot(height - 1, x + 1, x + 1);
    const T norm2 = alpha * alpha + tail;
    if (tail <= negligible) {  // H = I; NaN goes the other way and spreads
      std::fill(x + 1, a.column(j) + a.rows, T(0));
      continue;
    }
    const T beta = -std::copysign(std::sqrt(norm2), alpha);
    const T tau = (beta - alpha) / beta;
    const T inverse = 1 / (alpha - beta);
    for (Index i = 1; i < height; ++i) x[i] *= inverse;
    x[0] = 1;
    // One product gives v_j^T with every other column: the reflectors so far (for T) and what is right of j.
    // Columns left of j hold R above row j, so rows from j down are reflector tails only.
    blas::gemv_t(height, j, a.data + j, a.ld, x, w);
    append_t(t, t_ld, j, tau, w);
    const Index right = a.cols - j - 1;
    if (right > 0) {
      blas::gemv_t(height, right, x + a.ld, a.ld, x, w);
      blas::ger(height, right, -tau, x, w, x + a.ld, a.ld);
    }
    x[0] = beta;
  }
}

/// V of a factored group as a full matrix: ones on the diagonal, zeros above, zero columns beyond the last row.
template <class T>
Tile<T> explicit_v(const Tile<T>& group, Workspace<T>& work) {
  Tile<T> v{work.get(slot_v, group.rows * group.cols), group.rows, group.cols, group.rows};
  for (Index j = 0; j < group.cols; ++j) {
    const Index p = std::min(j, group.rows);
    std::fill(v.column(j), v.column(j) + p, T(0));
    if (p >= group.rows) continue;
    v(p, j) = 1;
    std::copy(group.column(j) + p + 1, group.column(j) + group.rows, v.column(j) + p + 1);
  }
  return v;
}

/// C := C - V op(T) (V^T C), a few columns at a time so that they stay in cache.
template <class T>
void apply_wy(const Tile<T>& v, const T* t, Index t_ld, Op op, const Tile<T>& c, Workspace<T>& work) {
  constexpr Index tile = 192;
  for (Index first = 0; first < c.cols; first += tile) {
    const Index n = std::min(tile, c.cols - first);
    T* w = work.get(slot_w, v.cols * n);
    T* target = c.column(first);
    // w = Vᵀ c;  w = op(T) w;  c = c - V w
    blas::gemm(Op::transpose, Op::none, v.cols, n, v.rows, T(1), v.data, v.ld, target, c.ld, T(0), w, v.cols);
    blas::trmm_upper(op, v.cols, n, t, t_ld, w, v.cols);
    blas::gemm(Op::none, Op::none, v.rows, n, v.cols, T(-1), v.data, v.ld, w, v.cols, T(1), target, c.ld);
  }
}

/// The order in which groups act: Q = G_0 G_1 ..., so Q^T takes them forwards and Q backwards.
template <class Body>
void for_groups(Index cols, Index inner, Op op, Body body) {
  const Index groups = (cols + inner - 1) / inner;
  for (Index k = 0; k < groups; ++k) {
    const Index g = op == Op::transpose ? k : groups - 1 - k;
    body(g * inner, std::min(inner, cols - g * inner), g * inner * inner);
  }
}

/// About the multiplications of factoring a panel, or of applying it to so many columns.
template <class T>
Index operations(const Panel<Cpu, T>& panel, Index columns) {
  return panel.task_count * panel.max_rows * panel.max_cols * columns;
}

/// Runs body(task, first column, columns, workspace) over tasks and column tiles of C.
template <class T, class Body>
void for_tasks_and_columns(const Apply<Cpu, T>& apply, ThreadPool& workers, Body body) {
  constexpr Index tile = 256;
  const Index tiles = std::max<Index>(1, (apply.c.cols + tile - 1) / tile);
  const blas::SingleThread single;
  std::vector<Workspace<T>> work(static_cast<std::size_t>(workers.threads()));
  workers.run(apply.panel.task_count * tiles, operations(apply.panel, apply.c.cols), [&](Index index, int worker) {
    const Index k = index / tiles, first = index % tiles * tile;
    body(apply.panel.tasks[k], first, std::min(tile, apply.c.cols - first), work[static_cast<std::size_t>(worker)]);
  });
}

}  // namespace qrane::backend::cpu::tiles
