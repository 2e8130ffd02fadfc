// SPDX-License-Identifier: Apache-2.0
// QR factorization A = Q R of a dense matrix of any shape, and of batches of equal small matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <qrane/export.h>
#include <qrane/context.hpp>
#include <qrane/matrix.hpp>
#include <qrane/update.hpp>

namespace qrane {

/// How A is factored. `automatic` picks from shape, scalar, device and what is asked for.
enum class Algorithm {
  automatic,
  tsqr,         ///< one panel of all columns, rows reduced by a tree (Demmel, Grigori, Hoemmen, Langou, 2012)
  caqr,         ///< panels by TSQR, trailing matrix by apply_qt_h / apply_qt_tree (Anderson et al., 2011, section IV)
  blocked,      ///< Householder vectors of panels rebuilt from Q (Ballard et al. 2015), then products; LAPACK-shaped
  cholesky_qr,  ///< R from the Gram matrix in double, guarded on the device, else caqr; R or thin Q (docs/numerics.md)
  householder,  ///< panels by one block each, no tree, trailing matrix by products; LAPACK-shaped; at most some
                ///< thousand rows. For batches: small matrices are factored whole, in one launch
};

/// Which stage of a cholesky_qr plan answered on the data: each takes what the one before it could not prove good.
enum class Stage {
  planned,     ///< the plan's algorithm, which is another and has no stages
  one_pass,    ///< the Gram matrix of A
  two_passes,  ///< and that of A times the inverse of the first factor
  sketch,      ///< that of A times the inverse of the R of a sketch of A (double)
  tree,        ///< the Householder tree, as caqr
};

/// What the factorization keeps of Q.
enum class QForm {
  implicit,  ///< reflectors: Q and Q^T can be applied, thin or full Q formed when asked for
  thin,      ///< Q explicit, m x min(m, n)
  lapack,    ///< as implicit, and V and tau are those of LAPACK's geqrf
  none,      ///< R only
  full,      ///< Q explicit, m x m: for factorizations that are updated
};

/// How `blocked` factors its panels. A Cholesky panel carries its guard and its tree with it.
enum class PanelKind { automatic, tree, cholesky };

enum class Columns { thin, full };
enum class Side { left, right };

QRANE_API const char* to_string(Algorithm algorithm);
QRANE_API const char* to_string(QForm form);
QRANE_API const char* to_string(Stage stage);
QRANE_API Algorithm algorithm_from_string(const std::string& name);
QRANE_API QForm q_form_from_string(const std::string& name);

struct Options {
  Algorithm algorithm = Algorithm::automatic;
  QForm q = QForm::implicit;
  bool check_finite = false;  ///< refuse NaN and Inf, naming the first (waits for the device)
  // 0 means: from the tuned table. For experiments and tests; illegal values are refused.
  std::int64_t block_rows = 0;  ///< rows of a leaf of the tree
  int arity = 0;                ///< triangles combined by one node of the tree
  int panel_cols = 0;           ///< columns of a panel
  PanelKind panel_kind = PanelKind::automatic;
};

/// The decisions made for one shape on one device, before any number is touched.
struct Plan {
  Index rows = 0, cols = 0, count = 1;  ///< shape of each matrix, matrices in the batch
  int scalar_bytes = 8;
  Algorithm algorithm = Algorithm::automatic;  ///< never automatic once planned
  QForm q = QForm::implicit;
  int panel_cols = 0;       ///< columns of a panel
  int block_cols = 0;       ///< blocked: columns whose panels update the trailing matrix together
  int inner = 0;            ///< columns of one compact-WY group inside a panel
  Index block_rows = 0;     ///< rows of a leaf
  int arity = 0;            ///< triangles per node of the tree
  int absorbing_units = 0;  ///< tsqr: multiprocessors that absorb A in one pass; 0: level by level
  double guard_limit = 0;   ///< where passes > 0: largest accepted bound on the condition number
  bool small = false;       ///< householder: each matrix whole, in one launch
  int passes = 0;           ///< most Gram-and-multiply passes of cholesky_qr, or of blocked's panels (0: by TSQR)
  Index sketch_rows = 0;    ///< rows of the sketch that cholesky_qr starts from where the first pass fails; 0: none
  std::int64_t workspace_bytes = 0;  ///< device memory it takes: results, reflectors, scratch
  double flops = 0;                  ///< canonical: 2 m n^2 - 2 n^3 / 3 for m >= n (per matrix times count)
  std::string reason;                ///< the rule that decided on the algorithm
  std::string tuning;                ///< where the block sizes and crossovers came from

  /// Some lines for people: algorithm and why, tuned parameters, tree, block sizes, workspace, predicted flops and
  /// bytes.
  std::string explain() const;
};

/// What column pivoting of R says about the rank.
struct RankReport {
  Index rank = 0;        ///< columns of the pivoted R whose diagonal exceeds tolerance
  Index full = 0;        ///< min(m, n)
  double tolerance = 0;  ///< absolute: relative tolerance times the largest diagonal
  double condition = 0;  ///< estimate of R's 1-norm condition number (infinity when singular)
};

struct Determinant {
  double sign = 1;           ///< +1, -1, or 0 for a singular matrix
  double log_magnitude = 0;  ///< natural logarithm of |det A|; -infinity for a singular matrix
};

struct SolveOptions {
  double tolerance = -1;          ///< relative to the largest diagonal of the pivoted R; < 0: (min(m, n) + 10) eps
  bool least_norm = true;         ///< rank-deficient: the solution of least norm, else a basic one
  bool refuse_deficient = false;  ///< rank-deficient: throw Error{rank_deficient} instead
};

template <class T>
struct Solution {
  Matrix<T> x;           ///< n x nrhs, where the right-hand side lives
  Index rank = 0;        ///< < full: A is rank-deficient to the tolerance, and x is basic or of least norm
  Index full = 0;        ///< min(m, n)
  double condition = 0;  ///< estimate of R's 1-norm condition number
  bool deficient() const { return rank < full; }
};

template <class T>
struct BatchSolution {
  Matrix<T> x;              ///< n x (nrhs * count), solutions side by side, where the right-hand sides live
  std::vector<Index> rank;  ///< of every matrix, as in Solution; empty when it was not asked for (tolerance 0)
  Index full = 0;           ///< min(m, n)
};

/// V (strictly below the diagonal) and R (upper triangle) in one m x n matrix, tau of length min(m, n):
/// what LAPACK's geqrf returns, Q = H_0 H_1 ..., H_j = I - tau_j v_j v_j^T.
template <class T>
struct Reflectors {
  Matrix<T> packed;
  Matrix<T> tau;  ///< min(m, n) x 1
};

namespace detail {
template <class T>
class QRANE_API QRState;
template <class T>
struct UpdateRequest;
}  // namespace detail

/// A factorization. Results live where the input lived; reading a host result waits for the device.
template <class T>
class QRANE_API QR {
 public:
  QR(QR&&) noexcept;
  QR& operator=(QR&&) noexcept;
  ~QR();

  Index rows() const;
  Index cols() const;
  const Plan& plan() const;

  /// R, upper trapezoidal with zeros below: min(m, n) x n, or m x n with Columns::full.
  Matrix<T> r(Columns columns = Columns::thin) const;
  /// Q, m x min(m, n), or m x m with Columns::full (LAPACK name: orgqr). Throws Error{unavailable} when the QForm does
  /// not give it: none of it with QForm::none, not the full one with QForm::thin.
  Matrix<T> q(Columns columns = Columns::thin) const;
  /// The same into the caller's matrix: min(m, n) x n with zeros below the diagonal. Into a column-major matrix in
  /// device memory it only queues work: like refactor it neither allocates nor waits, and a CUDA graph can capture it.
  void r_into(MatrixView<T> out) const;
  /// Thin Q into the caller's m x min(m, n) matrix; otherwise as r_into, and errors as q.
  void q_into(MatrixView<T> out) const;
  /// C := Q C (C has m rows) or C Q (C has m columns) with the full m x m Q, in place, in host or device memory; Q is
  /// not formed (LAPACK name: ormqr). Throws Error{unavailable} unless QForm::implicit or lapack kept the reflectors,
  /// or QForm::full the whole Q, by which C is then multiplied.
  void apply_q(MatrixView<T> c, Side side = Side::left) const;
  /// C := Q^T C or C Q^T, in place; otherwise as apply_q.
  void apply_qt(MatrixView<T> c, Side side = Side::left) const;
  /// Least-squares solution of A x = b for every column of b, m x nrhs (of least norm when m < n); rank deficiency is
  /// in the result. Throws Error{unavailable} with QForm::none, Error{rank_deficient} where options refuse it.
  Solution<T> solve(MatrixView<const T> b, const SolveOptions& options = {}) const;
  Solution<T> solve(const Matrix<T>& b, const SolveOptions& options = {}) const { return solve(b.view(), options); }

  /// Estimate of R's 1-norm condition number (min(m,n) leading columns).
  double condition() const;
  /// Rank by column pivoting of R. Here and below `tolerance` is relative to the pivoted R's largest diagonal element;
  /// < 0: (min(m, n) + 10) eps.
  RankReport rank(double tolerance = -1) const;
  /// Sign and logarithm of det A. Square A only; Error{unavailable} unless QForm::implicit or lapack.
  Determinant determinant() const;
  /// Orthonormal basis of A's range, m x rank. Error{unavailable} with QForm::none.
  Matrix<T> range_basis(double tolerance = -1) const;
  /// Orthonormal basis of A's null space, n x (n - rank).
  Matrix<T> null_space_basis(double tolerance = -1) const;
  /// LAPACK's geqrf result; QForm::lapack only (LAPACK name: geqrf).
  Reflectors<T> reflectors() const;

  /// Which stage of a cholesky_qr plan answered on this data (waits).
  Stage stage() const;
  /// Whether a guard handed this data over to Householder reflections: that of a cholesky_qr plan (to the tree), or any
  /// of those that the panels of a blocked one have (waits).
  bool fell_back() const;

  /// Factors another matrix of the same shape in the same memory: nothing is allocated after the first call (but a CUDA
  /// graph, in the driver's memory, at the third with one address). A column-major matrix in device memory is factored
  /// without waiting for the device or asking the host: a CUDA graph captured from the context's stream replays it.
  void refactor(MatrixView<const T> a);

  // -- updates (update.hpp) ---------------------------------------------------------------------------------------
  // Each takes A to A~ and the factorization to that of A~, of the same form, in memory that grows by halves; k is
  // 0-based. The first one copies the factors. Blocks may lie in host or device memory, in any layout; nothing of the
  // size of A travels to the host. Any m and n are legal before and after, 0 included. Where R loses rank by it Q stays
  // orthonormal and the rank shows in R. Throws Error{invalid_argument} for k, p or shapes that do not fit,
  // Error{not_finite} with check_finite, Error{unavailable} for what the form does not give (said below),
  // Error{out_of_memory}; then the factorization is as it was.

  /// A with the rows u (p x n) before row k, 0 <= k <= m. e: their right-hand sides, p x nrhs, when some are attached.
  UpdateReport insert_rows(Index k, MatrixView<const T> u, MatrixView<const T> e = {},
                           const UpdateOptions<T>& options = {});
  /// A without its rows k .. k+p-1. QForm::none needs options.removed, and may refuse (UpdateReport::refused).
  UpdateReport delete_rows(Index k, Index p, const UpdateOptions<T>& options = {});
  /// A with the columns u (m x p) before column k, 0 <= k <= n. QForm::none needs options.updated.
  UpdateReport insert_columns(Index k, MatrixView<const T> u, const UpdateOptions<T>& options = {});
  /// A without its columns k .. k+p-1.
  UpdateReport delete_columns(Index k, Index p, const UpdateOptions<T>& options = {});
  /// A + U Vᵀ, U m x p and V n x p. QForm::none needs options.updated.
  UpdateReport rank_k_update(MatrixView<const T> u, MatrixView<const T> v, const UpdateOptions<T>& options = {});
  /// What one of them would do now: the candidates and the choice (its measured fields are empty).
  UpdateReport plan_update(Change change, Index k, Index p, const UpdateOptions<T>& options = {}) const;
  /// From now on every report has the time that the update took on the device (which waits for it).
  void time_updates(bool on);

  /// From now on d = Qᵀb and the residual norms of b's columns (m x nrhs) are kept up to date; with QForm::none that
  /// needs `a`, the matrix as it is, lent for this call. An empty b ends it.
  void attach(MatrixView<const T> b, MatrixView<const T> a = {});
  /// Least-squares solution for the attached right-hand sides, of the updated matrix.
  Solution<T> solve(const SolveOptions& options = {}) const;
  /// The leading min(m, n) rows of Qᵀb, x nrhs.
  Matrix<T> projected() const;
  /// ‖A x - b‖_2 of every attached right-hand side, from what has been kept.
  std::vector<double> residual_norms() const;
  /// How far the factorization has drifted, in units of (min(m, n) + 10) u, u the unit roundoff: of an explicit Q its
  /// loss of orthogonality, estimated by products with a few vectors, and with `a`, the matrix as it is, the residual
  /// too (the only one where Q is not explicit). Waits.
  double drift(MatrixView<const T> a = {}) const;
  /// Updates with options.queued that were refused since the last call (waits).
  Index refused_updates();

  /// For qrane itself.
  explicit QR(std::unique_ptr<detail::QRState<T>> state);
  detail::QRState<T>& state() const { return *state_; }

 private:
  UpdateReport change(const detail::UpdateRequest<T>& request);
  detail::QRState<T>& updatable();
  std::unique_ptr<detail::QRState<T>> state_;
};

/// Factorizations of a batch of matrices of one shape, made in the same launches; each depends on its own matrix alone.
/// Matrices given and results taken as batches are column-major or row-major, strided or by a table of addresses; a
/// strided column-major batch in device memory is used where it lies, and then nothing here allocates or waits (but
/// r, q, reflectors and solve, which return memory of their own): a CUDA graph can capture it. The others go through
/// a copy. Errors are those of QR, and Error{invalid_argument} where a batch's shape, count or stride does not fit.
template <class T>
class QRANE_API BatchQR {
 public:
  BatchQR(BatchQR&&) noexcept;
  BatchQR& operator=(BatchQR&&) noexcept;
  ~BatchQR();
  Index count() const;
  const Plan& plan() const;
  /// All R's side by side: min(m, n) x (n * count), matrix b in columns b*n .. b*n+n-1.
  Matrix<T> r() const;
  /// All thin Q's side by side: m x (min(m, n) * count).
  Matrix<T> q() const;
  /// The same into the caller's batch of min(m, n) x n matrices, with zeros below the diagonal.
  void r_into(BatchView<T> out) const;
  /// The same into the caller's batch of m x min(m, n) matrices.
  void q_into(BatchView<T> out) const;
  /// C_b := Q_b C_b for every matrix C_b of the batch (m x any), in place (LAPACK name: ormqr).
  void apply_q(BatchView<T> c) const;
  /// C_b := Q_bᵀ C_b.
  void apply_qt(BatchView<T> c) const;
  /// LAPACK's geqrf results side by side: m x (n * count), and tau min(m, n) x count. QForm::lapack only.
  Reflectors<T> reflectors() const;
  /// The same into the caller's batches, of m x n and of min(m, n) x 1; a `packed` with no data and no table is left
  /// out (after qr_in_place it is the input's memory).
  void reflectors_into(BatchView<T> packed, BatchView<T> tau) const;
  /// Least-squares solutions of A_b x_b = b_b, m x nrhs each. Every matrix is judged on its own, as QR::solve would;
  /// for that its R goes to the host. With options.tolerance = 0 nothing does where m >= n: every R is taken at its
  /// word (a singular one gives Inf or NaN in its own solution), and no rank is reported. Throws as QR::solve.
  BatchSolution<T> solve(BatchView<const T> b, const SolveOptions& options = {}) const;
  /// The same into the caller's batch of n x nrhs; returns the ranks.
  std::vector<Index> solve_into(BatchView<const T> b, BatchView<T> x, const SolveOptions& options = {}) const;
  /// Factors another batch of the same shape and count in the same memory.
  void refactor(BatchView<const T> a);

  // Updates of every matrix in the same launches, at the same place (update.hpp); QForm::thin or none. Of the options
  // only check_finite counts. Each matrix is judged on its own. Errors as those of QR's updates; then nothing has
  // changed.
  /// The rows u_b (p x n each) before row k.
  BatchUpdateReport insert_rows(Index k, BatchView<const T> u, const UpdateOptions<T>& options = {});
  /// Without rows k .. k+p-1. QForm::none needs them (p x n each) and rows() >= cols(), waits, and leaves the matrices
  /// named in BatchUpdateReport::refused_matrices as they were, with rows that plan() no longer counts.
  BatchUpdateReport delete_rows(Index k, Index p, BatchView<const T> removed = {},
                                const UpdateOptions<T>& options = {});
  /// Without columns k .. k+p-1.
  BatchUpdateReport delete_columns(Index k, Index p, const UpdateOptions<T>& options = {});

  explicit BatchQR(std::unique_ptr<detail::QRState<T>> state);

 private:
  std::unique_ptr<detail::QRState<T>> state_;
};

/// The plan that qr() would make of `count` matrices; nothing is factored. Throws Error as qr() does.
template <class T>
QRANE_API Plan plan_qr(const Context& context, Index rows, Index cols, const Options& options = {}, Index count = 1);

/// Factors a copy of A, m x n (LAPACK name: geqrf). Throws invalid_argument, not_finite, unavailable, out_of_memory.
template <class T>
QRANE_API QR<T> qr(const Context& context, MatrixView<const T> a, const Options& options = {});
template <class T>
QR<T> qr(const Context& context, MatrixView<T> a, const Options& options = {}) requires(!std::is_const_v<T>) {
  return qr<T>(context, MatrixView<const T>(a), options);
}
template <class T>
QR<T> qr(const Context& context, const Matrix<T>& a, const Options& options = {}) {
  return qr<T>(context, a.view(), options);
}
/// Factors a column-major device matrix where it stands; the caller keeps it alive and untouched while
/// the QR is used. QForm::implicit or lapack. Throws as qr(), invalid_argument for other forms and host memory, too.
template <class T>
QRANE_API QR<T> qr_in_place(const Context& context, MatrixView<T> a, const Options& options = {});

/// Factors copies of all matrices of the batch (LAPACK name: geqrf, batched). Throws as for one matrix.
template <class T>
QRANE_API BatchQR<T> qr(const Context& context, BatchView<const T> a, const Options& options = {});
/// Factors the matrices of a strided column-major batch in device memory where they stand; otherwise as for one matrix.
template <class T>
QRANE_API BatchQR<T> qr_in_place(const Context& context, BatchView<T> a, const Options& options = {});

}  // namespace qrane
