// SPDX-License-Identifier: Apache-2.0
// Panels of QR.
//
// Every backend has
//
//   factor(queue, panel), factor_tree(queue, panel), apply_qt_h(queue, apply), apply_qt_tree(queue, apply)
//       the kernels of Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS
//       2011), section IV
//   reconstruct(queue, task)
//   pivoted_factor(queue, task, scratch), with pivoted_factor_scratch_bytes(queue, rows, cols, T{}) bytes of scratch
//
// Limits say how far the others reach: max_reflect_cols and max_householder_rows for reflect_panel and
// householder_panel (dense/blocked_panel.hpp has the stepwise form), max_absorbed and max_formed for absorb and
// form_absorbed (dense/tsqr.hpp).
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// One block of one level: rows of one matrix of the batch that are factored, or transformed, together.
///
///   factor / apply_qt_h          rows row .. row+rows-1 of the matrix, contiguous
///
///                  col     col+cols
///        row      | R R R R |                 reflector j has its 1 at local row j and its tail below,
///                 | v R R R |                 stored in place; T is upper triangular
///                 | v v R R |
///        row+rows | v v v v |
///
///   factor_tree / apply_qt_tree  `rows` triangles ("heads") of cols rows each, head k at matrix row
///                                row + k * stride. All heads are factored into head 0:
///
///        row          | R R R |               reflector j is [e_j; v_1; v_2; ...], where v_k is stored in
///                     | . R R |               rows 0..j of column j of head k: the upper triangles of the
///        row+stride   | v v v |               eliminated heads. The strictly lower parts (".") belong to
///                     | . v v |               the level below and are neither read nor written.
///        row+2 stride | v v v |
struct BlockTask {
  std::int64_t row;     // first row of the block within its matrix
  std::int64_t t;       // element offset of this block's T in the launch's T buffer
  std::int32_t matrix;  // index in the batch
  std::int32_t rows;    // contiguous rows, or number of heads
  std::int32_t stride;  // rows between heads (0 for contiguous blocks)
  std::int32_t col;     // first column of the panel
  std::int32_t cols;    // columns of the panel; reflectors are min(cols, rows in the block)
};
static_assert(sizeof(BlockTask) == 40, "the OpenCL kernels read this layout");

/// One batched launch of factor or factor_tree, and the reflectors that a later apply uses.
template <class B, class T>
struct Panel {
  DeviceMatrix<B, T> a;                 // in: the blocks; out: R and reflectors in place
  typename B::template Pointer<T> t{};  // out: T factors. The panel's columns go in groups of
                                        // `inner`; group g has an upper triangular T with
                                        // leading dimension `inner` at t + task.t + g*inner*inner,
                                        // so Q = prod_g (I - V_g T_g V_g^T). T's diagonal is tau.
  typename B::template Pointer<BlockTask> tasks{};
  Index task_count = 0;
  std::int32_t max_rows = 0;  // rows of the tallest block (heads * cols for a tree)
  std::int32_t max_cols = 0;  // columns of the widest panel
  std::int32_t inner = 0;     // columns per compact-WY group (CUDA, OpenCL: >= max_cols)
};

/// C := Q^T C (transpose) or Q C for the rows of C that the panel's blocks own; blocks are independent.
/// C has the panel's rows and batch; its columns are all of c.cols (offset c.data to choose them).
/// C may be the trailing columns of panel.a.
template <class B, class T>
struct Apply {
  Panel<B, T> panel;
  DeviceMatrix<B, T> c;
  Op op = Op::transpose;
};

/// Householder vectors from an orthonormal panel (Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen,
/// "Reconstructing Householder vectors from TSQR", 2015, section 5; LAPACK's orhr_col):
/// LU without pivoting of Q1 - S gives L U, S = diag(±1) chosen against the pivots; V1 = L, T = -U S L^-T,
/// R := S R. The tail is then V2 = Q2 U^-1, one product. All matrices are b x b.
template <class B, class T>
struct Reconstruct {
  DeviceMatrix<B, T> q1;         // in: top block of the thin Q
  DeviceMatrix<B, T> r;          // in: the panel's R, upper triangle read
  DeviceMatrix<B, T> panel;      // out: S R in the upper triangle, L strictly below
  DeviceMatrix<B, T> t;          // out: T, upper, zeros below
  DeviceMatrix<B, T> u_inverse;  // out: U^-1, upper, zeros below
};

/// Panels of blocked QR: R, reflectors and T of a tall panel at once, from its Gram matrix in double.
///
/// With D = diag(G)^(1/2), G = D Ĝ D and Ĝ = R̂ᵀR̂, the guard bounds what the Gram matrix's rounding does to Q:
/// `failed` is set to 0 where the bound ‖Ĝ^-1‖_2 <= ‖R̂^-1‖_F^2 - (b - 1)^2 / b (Ĝ's other eigenvalues account for
/// the rest) is within `limit`, else to 1, and then panel and v are unchanged. Scratch: reflect_scratch_bytes.
template <class B, class T>
struct ReflectPanel {
  DeviceMatrix<B, T> panel;                             // in/out: m x b, m >= b, one matrix; as geqrf leaves it
  DeviceMatrix<B, T> t;                                 // out: b x b, upper, zeros below
  DeviceMatrix<B, T> v;                                 // out: m x b, the reflectors with their ones and zeros
  DeviceMatrix<B, T> y;                                 // out: m x b, V T
  typename B::template Pointer<std::int32_t> failed{};  // out
  double limit = 0;
};
/// Partial Gram matrices of a panel of that many rows, and what the kernels pass on.
constexpr std::int64_t reflect_scratch_bytes(Index rows) {
  const Index parts = rows / 64 + 8;
  return (parts < 300 ? parts : 300) * 32768;
}
template <class Queue, class B, class T>
Default reflect_panel(const Queue&, const ReflectPanel<B, T>&, const Scratch<B>&) {
  return not_whole("reflect_panel");
}

/// The same by Householder reflections column by column, for every input and for batches.
template <class B, class T>
struct HouseholderPanel {
  DeviceMatrix<B, T> panel, t, v, y;  // as above
};
template <class Queue, class B, class T>
Default householder_panel(const Queue&, const HouseholderPanel<B, T>&) {
  return not_whole("householder_panel");
}

/// The lowest level of TSQR in one pass over A, for matrices so narrow that triangles stay in registers. A's rows are
/// cut into chains, each a flat tree that leaves one triangle:
///
///     A = diag(Q_0, Q_1, ...) P r      r: the triangles one below the other, n rows each; P: an order of A's rows
///
/// Without checkpoints only r is computed, and several chains may become one triangle. With checkpoints (R of every
/// chain before each of its chunks of rows) form_absorbed recomputes the Q_k and gives diag(Q_0, Q_1, ...) top without
/// storing V. With r = U R and top = U that is the thin Q of A.
struct Chains {
  std::int64_t triangles = 0;  // n rows of r each
  std::int64_t checkpoint_elements = 0;
};
/// What absorb leaves of rows x cols on a device with so many multiprocessors. Found by the backend's tag, not by a
/// queue.
template <class B, class T>
Chains absorb_chains(B, T, Index, Index, bool, int) {
  not_whole("absorb");
  return {};
}

template <class B, class T>
struct Absorb {
  DeviceMatrix<B, T> a;                           // in: m x n, count 1; only read
  DeviceMatrix<B, T> r;                           // out: triangles * n rows
  typename B::template Pointer<T> checkpoints{};  // out, or null
};
template <class Queue, class B, class T>
Default absorb(const Queue&, const Absorb<B, T>&) {
  return not_whole("absorb");
}

template <class B, class T>
struct FormAbsorbed {
  DeviceMatrix<B, T> a;                           // in: as it was absorbed
  typename B::template Pointer<T> checkpoints{};  // in: absorb's
  DeviceMatrix<B, T> top;                         // in: triangles * n rows
  DeviceMatrix<B, T> q;                           // out: m x n
};
template <class Queue, class B, class T>
Default form_absorbed(const Queue&, const FormAbsorbed<B, T>&) {
  return not_whole("form_absorbed");
}

/// Column-pivoted Householder QR (Businger, Golub 1965; LAPACK's geqp3): A P = Q R with |r_00| >= |r_11| >= ...,
/// stopped after `steps` columns. Columns that hold a NaN or an Inf come last.
template <class B, class T>
struct PivotedFactor {
  DeviceMatrix<B, T> a;                                  // in: m x n; destroyed
  DeviceMatrix<B, T> packed;                             // out: R above and on the diagonal, reflectors below, columns
                                                         // in pivoted order; past `steps` columns rows are R's, then
                                                         // what is left of A. Not a.
  typename B::template Pointer<std::int32_t> columns{};  // out, n: column j of A P is column columns[j] of A
  typename B::template Pointer<T> inverse_tau{};         // out, steps: 1 / tau, a huge number where tau = 0
  typename B::template Pointer<std::int32_t> rank{};     // out: leading diagonal elements above tolerance * |r_00|
  Index steps = 0;                                       // at most min(m, n)
  double tolerance = 0;
  bool truncate = false;  // end at the rank
};

}  // namespace qrane::backend
