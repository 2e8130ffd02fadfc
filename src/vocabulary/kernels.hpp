// SPDX-License-Identifier: Apache-2.0
// The vocabulary: everything an algorithm may ask of a backend, on one page.
//
// A backend is a type B with
//     B::Pointer<T>   how it names memory: T* (cpu, cuda) or {cl_mem, byte offset} (opencl);
//                     `p + k` moves by k elements, `cast_pointer<U>(p)` keeps the address
//     B::Queue        ordered work on one device, with the member functions listed in `Vocabulary`
// and algorithms are templates over B and a scalar T. Nothing in this file knows a device.
//
// Every kernel works on a batch: `DeviceMatrix` carries a count and a stride, and the QR tile kernels
// take a list of tasks. Kernels are asynchronous where the backend is; none allocates or waits except
// where this page says so.
//
// Sources: factor, factor_tree, apply_qt_h, apply_qt_tree are the kernels of Anderson, Ballard, Demmel,
// Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS 2011), section IV.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <qrane/matrix.hpp>

namespace qrane::backend {

enum class Op { none, transpose };  // a transpose is a conjugate transpose once complex types come
enum class Side { left, right };
enum class Triangle { upper, lower };
enum class Diagonal { non_unit, unit };

/// The same address as a pointer to U; backends whose pointers are not raw overload it.
template <class U, class T>
U* cast_pointer(T* p) {
  return reinterpret_cast<U*>(p);
}

/// Which part of a matrix `copy` takes; the rest of the destination becomes what the name says.
enum class Part {
  all,         // every element
  upper,       // i <= j copied, zeros below the diagonal
  upper_only,  // i <= j copied, the rest of the destination untouched
  unit_lower   // i > j copied, ones on the diagonal, zeros above: the V of a LAPACK-shaped panel
};

/// Column-major matrices in device memory: matrix b starts at data + b * stride.
template <class B, class T>
struct DeviceMatrix {
  typename B::template Pointer<T> data{};
  Index rows = 0;
  Index cols = 0;
  Index ld = 0;
  Index stride = 0;
  Index count = 1;

  constexpr DeviceMatrix block(Index i, Index j, Index r, Index c) const {
    return {data + (i + j * ld), r, c, ld, stride, count};
  }
  constexpr DeviceMatrix columns(Index j, Index c) const { return block(0, j, rows, c); }
  constexpr DeviceMatrix matrix(Index b) const { return {data + b * stride, rows, cols, ld, 0, 1}; }
};

/// One block of one stage: rows of one matrix of the batch that are factored, or transformed, together.
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
  std::int64_t row;        // first row of the block within its matrix
  std::int64_t t;          // element offset of this block's T in the launch's T buffer
  std::int32_t matrix;     // index in the batch
  std::int32_t rows;       // contiguous rows, or number of heads
  std::int32_t stride;     // rows between heads (0 for contiguous blocks)
  std::int32_t col;        // first column of the panel
  std::int32_t cols;       // columns of the panel; reflectors are min(cols, rows in the block)
  std::int32_t staircase;  // offset of this block's column heights in `staircase`, or -1
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
  // Sparse fronts only (contiguous blocks); null and negative for dense panels:
  typename B::template Pointer<std::int32_t> staircase{};  // staircase[task.staircase + j]: rows of column j that may
                                                           // be nonzero, nondecreasing in j
  typename B::template Pointer<std::int32_t> pivots{};     // out, per task cols entries at task index * max_cols:
                                                           // local row of reflector j's 1, or -1 for a dropped column
  double drop_tolerance = -1;                              // a column whose remaining norm is <= this is dropped:
                                                           // tau = 0, v = 0, and the next column takes its pivot row
                                                           // (Heath's method, as in SuiteSparseQR)
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

/// One n x n Cholesky factorization with its proof (see dense/cholesky_qr.hpp).
///
/// With D = diag(G)^(1/2): G = D (R̂ᵀ R̂ - shift I) D, R = R̂ D, W = R^-1, kappa = ‖R̂‖_F ‖R̂^-1‖_F, and the bound is
/// kappa + n * rounding * kappa^2, infinite when a pivot is not positive or anything is not finite, and where a backend
/// sees early that it exceeds both limits.
/// `failed` is set to 1 when the bound exceeds `fit_limit`; else it is left at its value (so that several passes share
/// one flag). R and W of a finite bound are given whatever the limits.
template <class B, class T>
struct GuardedCholesky {
  DeviceMatrix<B, double> gram;                          // in: upper triangle read, and kept
  DeviceMatrix<B, double> r;                             // out: R upper, zeros below, wide
  DeviceMatrix<B, double> inverse;                       // out: W = R^-1 upper, zeros below
  typename B::template Pointer<std::int32_t> failed{};   // in/out, unless null
  typename B::template Pointer<std::int32_t> verdict{};  // out, unless null: four flags, the bound is [0] within limit,
                                                         // [1] beyond it, [2] beyond it but within fit_limit,
                                                         // [3] beyond fit_limit
  typename B::template Pointer<double> condition{};      // out: one double, kappa's upper bound
  double limit = 0;
  double fit_limit = 0;  // R still makes a preconditioner; limit if that is larger
  double rounding = 0;
  double shift = 0;
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

/// Optional, panels of blocked QR: R, reflectors and T of a tall panel at once, through its Gram matrix in double. A
/// backend with `reflect_panel(task, scratch)` has max_reflect_cols(), too.
///
/// With D = diag(G)^(1/2), G = D Ĝ D and Ĝ = R̂ᵀR̂ the guard bounds what the Gram matrix's rounding becomes in Q:
/// `failed` is set to 0 where ‖Ĝ^-1‖_2 <= ‖R̂^-1‖_F^2 - (b - 1)^2 / b (Ĝ's other eigenvalues take the rest) is within
/// `limit`, else to 1, and then panel and v are left alone.
template <class B, class T>
struct ReflectPanel {
  DeviceMatrix<B, T> panel;                             // in/out: m x b, m >= b, one matrix; as geqrf leaves it
  DeviceMatrix<B, T> t;                                 // out: b x b, upper, zeros below
  DeviceMatrix<B, T> v;                                 // out: m x b, the reflectors with their ones and zeros
  DeviceMatrix<B, T> y;                                 // out: m x b, V T
  typename B::template Pointer<std::int32_t> failed{};  // out
  double limit = 0;
};

/// Optional: the same by Householder reflections column by column, for every input and for batches. A backend with
/// `householder_panel(task)` has max_householder_rows(T) and max_reflect_cols(), too.
template <class B, class T>
struct HouseholderPanel {
  DeviceMatrix<B, T> panel, t, v, y;  // as above
};

/// One fused pass of robust PCA over m x n elements (rpca/robust_pca.hpp), all contiguous with equal ld:
///     s := shrink(m - l + y / mu, threshold),  z = m - l - s,  y := y + mu z,  x := m - s + y / mu_next
/// and partial sums of z^2.
template <class B, class T>
struct RobustPcaPass {
  DeviceMatrix<B, T> m, l;     // in: data, low-rank part
  DeviceMatrix<B, T> y, s, x;  // y in/out; s, x out
  double mu = 0, mu_next = 0, threshold = 0;
  typename B::template Pointer<double> residual_squared{};  // out: sum z^2, one double, summed in a fixed order
};

/// Optional: all of an iteration after its SVD in one pass, n <= max_robust_pca_step() columns:
///     L = X P,  S = shrink(M - L + Y / mu, threshold),  Z = M - L - S,  Y' = Y + mu Z,  X' = M - S + Y' / mu_next
/// and the sum of Z's squares. A backend with `robust_pca_step(step, scratch)` spares gemm and robust_pca_pass.
template <class B, class T>
struct RobustPcaStep {
  DeviceMatrix<B, T> m, x, y;         // in
  DeviceMatrix<B, double> projector;  // in: P, n x n
  double mu = 0, mu_next = 0, threshold = 0;
  DeviceMatrix<B, T> x_next, y_next;                        // out, or null; not x and y
  DeviceMatrix<B, T> l, s;                                  // out, or null
  typename B::template Pointer<double> residual_squared{};  // out: one double, summed in a fixed order
};

/// Optional: what an iteration of robust PCA has come to, judged without the host. With `residual` = the root of
/// *residual_squared over norm (norm 0: as it is) and L's singular values max(0, sigma - threshold):
///     record := residual, rank;  before := L's singular values
///     *running := 0 when residual is NaN, or at most `tolerance` while (with `settle`) the singular values differ from
///     those before by no more than tolerance * norm in the Euclidean norm
template <class B>
struct RobustPcaVerdict {
  typename B::template Pointer<double> residual_squared{}, sigma{};  // in: one, n
  typename B::template Pointer<double> before{};                     // in/out: n
  typename B::template Pointer<double> record{};                     // out: two
  typename B::template Pointer<std::int32_t> running{};              // out
  Index n = 0;
  double threshold = 0, norm = 0, tolerance = 0;
  bool settle = false;
};

/// Optional: the SVD R = U diag(sigma) Vᵀ of a small triangle, or V and sigma from G = RᵀR, and the product of them
/// that is asked for. A backend with `small_svd(task)`, `max_small_svd()` (largest n) and `small_svd_work(n)` (doubles)
/// spares the way over the host. Singular values are right to the rounding of the largest (from G: of its square). From
/// G, V is orthonormal whatever the rank; from R, U and V are while sigma_1 < `orthonormal_to` sigma_n, which a caller
/// asks by `most_condition`. NaN or Inf makes everything NaN.
template <class B>
struct SmallSvd {
  enum class Product {
    none,
    threshold,  // V diag(max(0, 1 - threshold / sigma)) Vᵀ
    whiten      // V diag(1 / sigma), so that A V diag(1 / sigma) = U for AᵀA = G
  };
  static constexpr double orthonormal_to = 0x1p40;
  DeviceMatrix<B, double> r;                     // in: n x n, upper triangle read: R, or G
  bool gram = false;                             // r holds G
  DeviceMatrix<B, double> guess;                 // in, with G: an orthonormal matrix near V, or null
  DeviceMatrix<B, double> u;                     // out, with R: U; or null
  DeviceMatrix<B, double> v;                     // out: V; may be the guess
  typename B::template Pointer<double> sigma{};  // out: n singular values, nonincreasing
  typename B::template Pointer<double> work{};   // scratch: small_svd_work(n) doubles
  double accuracy = 0x1p-52;  // cosines between singular vectors below n^(1/2) times this are rounding
  Product product = Product::none;
  double threshold = 0;
  DeviceMatrix<B, double> result;                       // out: the product, n x n
  double most_condition = 0;                            // with `failed`: *failed := 1 unless sigma_1 < this * sigma_n
  typename B::template Pointer<std::int32_t> failed{};  // or null
};

/// Optional: column-pivoted Householder QR (Businger, Golub 1965; LAPACK's geqp3), A P = Q R with |r_00| >= |r_11| >=
/// ..., stopped after `steps` columns. A backend with `pivoted_factor(task, scratch)` has
/// `pivoted_factor_scratch_bytes(rows, cols, T{})` too. Columns that hold a NaN or an Inf come last.
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
// and beside it `gather_columns(source, columns, target)`: column j of target := column columns[j] of source, where
// source has that many; other columns of target stay.

/// Optional: min ‖A x - b‖ from the factor R of A's Gram matrix, x = W Wᵀ (Aᵀ b) with W = R^-1, products and sums in
/// double. A backend with `solve_gram(task, scratch)` has `max_solve_gram()` (largest n), `residual_squares(a, x, b,
/// squares, scratch)` (‖b - A x‖² of every column in double, up to `max_residual_columns()` columns), and
/// `least_squares_scratch_bytes(n)` for both.
template <class B, class T>
struct GramSolve {
  DeviceMatrix<B, T> a, b;                       // in: m x n, m x nrhs
  DeviceMatrix<B, double> r, inverse;            // in: n x n upper triangles, zeros below
  DeviceMatrix<B, T> x;                          // out: n x nrhs, rounded once
  DeviceMatrix<B, double> y;                     // out: Wᵀ Aᵀ b = Qᵀ b, n x nrhs
  typename B::template Pointer<double> facts{};  // out: R's 1-norm condition number; longest column times ‖W‖_F, which
                                                 // no ratio |r_00| / |r_kk| of a pivoted R exceeds
};

/// Optional: Householder QR of many small matrices in one launch, LAPACK-shaped. A backend with `factor_small(task)`
/// says in its limits what it takes; `factor` on blocks of whole matrices gives the same.
template <class B, class T>
struct FactorSmall {
  DeviceMatrix<B, T> source;         // in: the batch; may be `a`
  DeviceMatrix<B, T> a;              // out: R on and above the diagonal, V below it
  DeviceMatrix<B, T> tau;            // out: column b is the min(m, n) tau of matrix b; its count is the batch's
  T* const* source_table = nullptr;  // where backends have addresses: where each matrix begins, instead of a stride
  T* const* table = nullptr;
};

/// Optional, with FactorSmall: C := Qᵀ C or Q C for every matrix of the batch.
template <class B, class T>
struct ApplySmall {
  DeviceMatrix<B, T> v;    // in: what factor_small left in `a`
  DeviceMatrix<B, T> tau;  // in
  DeviceMatrix<B, T> c;    // in and out: v.rows x any
  Op op = Op::transpose;
  bool identity = false;      // C is not read: it is the leading columns of the identity
  T* const* table = nullptr;  // where each V begins
};

/// Optional: Householder QR of one panel of every matrix of a batch, all of its rows by one block, LAPACK-shaped. A
/// backend with `factor_panel(task)` says in its limits how wide and tall it may be.
template <class B, class T>
struct WholePanel {
  DeviceMatrix<B, T> a;  // in: the panels; out: R on and above the diagonal, V below it
  DeviceMatrix<B, T> t;  // out: T of the compact WY form, cols x cols, zeros below, tau on its diagonal
  DeviceMatrix<B, T> v;  // out, unless null: V with its ones and zeros
};

/// Optional: between contiguous matrices and matrices whose addresses are in a table in device memory.
template <class B, class T>
struct CopyTable {
  T* const* table = nullptr;  // a.count addresses
  Index ld = 0;               // of the matrices there
  DeviceMatrix<B, T> a;
  bool gather = true;  // a := table's, else table's := a
};

/// Optional: the lowest level of TSQR in one pass over A, for matrices so narrow that triangles stay in registers.
/// A backend with `absorb(task)`, `form_absorbed(task)` and `absorb_chains<T>(rows, cols, checkpoints, units)` cuts A's
/// rows into chains of its own, each a flat tree, and leaves one triangle a chain:
///
///     A = diag(Q_0, Q_1, ...) P r      r: the triangles one below the other, n rows each; P: an order of A's rows
///
/// Without checkpoints only r comes out, and several chains may become one triangle. With them (R of every chain before
/// each of its chunks of rows) form_absorbed recomputes the Q_k, and gives diag(Q_0, Q_1, ...) top without keeping V:
/// r = U R, top = U makes it the thin Q of A.
struct Chains {
  std::int64_t triangles = 0;  // n rows of r each
  std::int64_t checkpoint_elements = 0;
};

template <class B, class T>
struct Absorb {
  DeviceMatrix<B, T> a;                           // in: m x n, count 1; only read
  DeviceMatrix<B, T> r;                           // out: triangles * n rows
  typename B::template Pointer<T> checkpoints{};  // out, or null
};

template <class B, class T>
struct FormAbsorbed {
  DeviceMatrix<B, T> a;                           // in: as it was absorbed
  typename B::template Pointer<T> checkpoints{};  // in: absorb's
  DeviceMatrix<B, T> top;                         // in: triangles * n rows
  DeviceMatrix<B, T> q;                           // out: m x n
};

/// Optional, updates of an explicit Q: a chain of orthogonal blocks applied from the right, one after another, to the
/// columns of X, with p columns (the carry) that every block shares. Block j stands on the columns J_j = first + j *
/// block
/// .. of X (the last one may be narrower) and on the carry; H_j is square, of order |J_j| + p, at h + j * (block + p)^2
/// with leading dimension |J_j| + p.
///
///   down:  j = 0, 1, ...   [ X(:, J_j + shift) | carry ] := [ carry | X(:, J_j) ] H_j       shift <= 0
///   up:    j = last, ...   [ carry | X(:, J_j + shift) ] := [ X(:, J_j) | carry ] H_j       shift >= 0
///
/// |shift| <= p. The carry is `carry_in` at first and goes to `carry_out` at last; both have X's rows and may be
/// columns of X: carry_in is read before, carry_out written after all blocks. Columns that carry_in lacks of p are
/// zeros, those that carry_out lacks are dropped. Rows of X are independent. A backend with `sweep(task)` has
/// max_sweep_carry(T), the largest p, and max_sweep_block(T).
template <class B, class T>
struct Sweep {
  DeviceMatrix<B, T> x;  // rows x any, batched
  DeviceMatrix<B, T> carry_in, carry_out;
  typename B::template Pointer<T> h{};
  Index h_stride = 0;         // between the chains of a batch
  Index first = 0, cols = 0;  // columns of X that the blocks stand on
  Index block = 0, p = 0, shift = 0;
  bool down = true;
};

/// Optional, updates of R alone: rows in, then rows out of many small factorizations, in one launch. With [R d] as it
/// is for A and b (d = Qᵀb), it becomes that of A and b with the rows rows_in and their right-hand sides e_in, without
/// the rows rows_out and theirs (which the caller knows: they are among A's). Rows come in by rotations or reflections;
/// a row u goes out by Saunders' way (LINPACK's dchdd): Rᵀ a = u, rotations that take (a, alpha) to e_{n+1}, alpha² = 1
/// - aᵀa. Where alpha² is not above `least_left` the rest of A lacks a direction that u has, to working accuracy: then
/// this matrix stays as it was, rows in and all, and `refused` counts one. The signs of R's diagonal stay. Made for few
/// rows at a time: a chain of n rotations for each. A backend with `update_rows(task)` has max_update_cols(), the
/// largest n, and max_update_rows(), the most rows in and out together.
template <class B, class T>
struct RowUpdate {
  DeviceMatrix<B, T> r;                            // in/out: n x n, upper triangles alone; its count is the batch's
  DeviceMatrix<B, T> d;                            // in/out: n x nrhs; or no columns
  typename B::template Pointer<double> squares{};  // in/out: ‖b - A x‖² of every right-hand side, nrhs per matrix
  DeviceMatrix<B, T> rows_in, e_in;                // in: any x n, x nrhs; or no rows
  DeviceMatrix<B, T> rows_out, e_out;              // in: likewise
  typename B::template Pointer<std::int32_t> refused{};  // in/out: one counter per matrix; or null

  static constexpr double least_left(Index n) {
    return static_cast<double>(n + 10) * std::numeric_limits<T>::epsilon();
  }
};

/// Scratch a kernel needs is asked of the queue beforehand and passed in: bytes for `gram`, `multiply_wide`
/// and the reductions (they convert or sum in chunks that fit whatever is given, at least the minimum).
template <class B>
struct Scratch {
  typename B::template Pointer<std::byte> data{};
  std::int64_t bytes = 0;
};

/// Scratch that reflect_panel takes for a panel of that many rows: partial Gram matrices, and what its kernels pass on.
constexpr std::int64_t reflect_scratch_bytes(Index rows) {
  const Index parts = rows / 64 + 8;
  return (parts < 300 ? parts : 300) * 32768;
}

/// What plans need to know of a device; a plain value.
struct Limits {
  std::int32_t max_panel_cols = 32;   // widest panel of factor / factor_tree
  std::int32_t max_block_rows = 256;  // tallest contiguous block, or heads * cols, for the widest panel and scalar
  std::int64_t max_allocation_bytes = 0;
  std::int32_t max_absorbed = 0;  // widest matrix of absorb; 0 when the backend has none
  std::int32_t max_formed = 0;    // and of form_absorbed
  std::int32_t units = 0;         // multiprocessors, where absorb exists
  std::int32_t max_cholesky = 0;  // largest n of guarded_cholesky; 0 when the backend has no double
  bool has_double = true;
  // Optional kernels of batches; 0 where there is none.
  std::int32_t small_elements = 0;        // factor_small: rows x (8, 16 or 32 columns) of one matrix, at most
  std::int32_t small_rows = 0;            // and its rows
  std::int32_t whole_panel_elements = 0;  // factor_panel: rows, rounded up to a power of two, x columns, at most
  std::int32_t whole_panel_rows = 0;      // and its rows
};

template <class Q, class B, class T>
concept Vocabulary = requires(Q& q, typename B::template Pointer<T> p, typename B::template Pointer<std::byte> bytes,
                              typename B::template Pointer<std::int32_t> flag, typename B::template Pointer<double> sum,
                              typename B::template Pointer<std::int64_t> position, DeviceMatrix<B, T> a,
                              DeviceMatrix<B, double> w, const T* source, T* target, std::int64_t n, Panel<B, T> panel,
                              Apply<B, T> apply, GuardedCholesky<B, T> cholesky, Reconstruct<B, T> reconstruct,
                              RobustPcaPass<B, T> pass, Scratch<B> scratch, T alpha) {
  // -- memory and queue ---------------------------------------------------------------------------------
  {
    q.allocate(n)
    } -> std::same_as<typename B::template Pointer<std::byte>>;  // bytes, 256-byte aligned; throws
                                                                 // Error{out_of_memory} with needed and free
  {q.release(bytes)};                                            // waits for the work that may use it; null is fine
  {q.upload(source, p, n)};                                      // host to device; `source` may be reused on return
  {q.download(p, target, n)};                                    // device to host; waits
  {q.synchronize()};                                             // waits; earlier faults surface here as Error{device}
  {
    q.when(flag)
    } -> std::same_as<Q>;                       // the same queue, but kernels given to it do nothing unless
                                                // *flag != 0 when they run. gemm and trsm may not be
                                                // available under a condition: none of the fall-backs uses them
  { q.limits(alpha) } -> std::same_as<Limits>;  // for the scalar T of alpha
  {
    q.side()
    } -> std::same_as<Q>;  // a second queue of the same device for work beside this one's:
                           // always the same one, made by the first call; may be this one
  {q.follow(q)};           // what q is given from now on runs after all that the other
                           // queue has been given so far; nothing waits on the host
  // -- data movement --------------------------------------------------------------------------------------
  {q.copy(a, a, Part::all)};                   // source, destination: equal shapes, batched
  {q.transpose(a, a)};                         // destination := source^T, not in place, batched
  {q.copy_rows(a, position, a, position, n)};  // source, its rows, target, its rows, count: row targets[i] of
                                               // target := row sources[i] of source for i < count, i itself
                                               // for a null list; batched, the lists shared. Rows written
                                               // are distinct, and none of them is read
  {q.fill(a, alpha, alpha)};                   // off-diagonal value, diagonal value; batched
  {q.narrow(w, a, Part::upper)};               // double to T, rounding
  {q.widen(a, w)};                             // T to double
  // -- reductions, result in device memory, same bits every time ------------------------------------------------
  {q.sum_squares(a, sum, scratch)};            // in double; count must be 1
  {q.sum_abs(a, sum, scratch)};                // in double
  {q.max_abs(a, sum, scratch)};                // NaN if any element is NaN
  {q.first_not_finite(a, position, scratch)};  // two int64: row and column of the first NaN or Inf in
                                               // column-major order, or -1, -1
  // -- library products ---------------------------------------------------------------------------------------
  {q.gemm(Op::none, Op::none, alpha, a, a, alpha, a)};  // C := alpha op(A) op(B) + beta C, batched
  {q.trsm(Side::left, Triangle::upper, Op::none, Diagonal::non_unit, alpha, a,
          a)};                          // B := alpha op(A)^-1 B or B op(A)^-1
  {q.gram(a, w, scratch)};              // W := A^T A (upper triangle), products and sums in double
  {q.multiply_wide(a, w, a, scratch)};  // Q := A W with double products and sums, rounded once to T
                                        // (optional: q.solve_wide(a, r, q), Q := A R^-1 by substitution
                                        // in double, Q and A apart, also under a condition)
  {q.sketch(a, a)};                     // S := Omega A, a CountSketch (vocabulary/sketch.hpp)
  // -- QR tile kernels -------------------------------------------------------------------------------------------
  {q.factor(panel)};
  {q.factor_tree(panel)};
  {q.apply_qt_h(apply)};
  {q.apply_qt_tree(apply)};
  // -- small dense pieces that must stay on the device ----------------------------------------------------------
  {q.guarded_cholesky(cholesky)};
  {q.reconstruct(reconstruct)};
  // -- robust PCA ---------------------------------------------------------------------------------------------
  {q.robust_pca_pass(pass, scratch)};
};

}  // namespace qrane::backend
