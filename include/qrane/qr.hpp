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
#include <qrane/solution.hpp>
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

/// For experiments and tests. 0: from the tuned table. Illegal values are refused.
struct ExpertOptions {
  std::int64_t block_rows = 0;  ///< rows of a leaf of the tree
  int arity = 0;                ///< triangles combined by one node of the tree
  int panel_cols = 0;           ///< columns of a panel
  PanelKind panel_kind = PanelKind::automatic;
};

struct Options {
  Algorithm algorithm = Algorithm::automatic;
  QForm q = QForm::implicit;
  bool check_finite = false;  ///< refuse NaN and Inf, naming the first (waits for the device)
  ExpertOptions expert{};
};

/// The block sizes and limits of a plan, for those who tune or study it. They may change between versions.
struct PlanDetails {
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
};

/// The decisions made for one shape on one device, before any number is touched.
struct Plan {
  Index rows = 0, cols = 0, count = 1;  ///< shape of each matrix, matrices in the batch
  int scalar_bytes = 8;
  Algorithm algorithm = Algorithm::automatic;  ///< never automatic once planned
  QForm q = QForm::implicit;
  std::int64_t workspace_bytes = 0;  ///< device memory it takes: results, reflectors, scratch
  double flops = 0;                  ///< canonical: 2 m n^2 - 2 n^3 / 3 for m >= n (per matrix times count)
  PlanDetails expert{};
  std::string reason;  ///< the rule that decided on the algorithm
  std::string tuning;  ///< where the block sizes and crossovers came from

  /// Some lines for people: algorithm and why, tuned parameters, tree, block sizes, workspace, predicted flops and
  /// bytes.
  QRANE_API std::string explain() const;
};

struct Determinant {
  double sign = 1;           ///< +1, -1, or 0 for a singular matrix
  double log_magnitude = 0;  ///< natural logarithm of |det A|; -infinity for a singular matrix
};

template <class T>
struct BatchSolution {
  Matrix<T> x;              ///< n x (nrhs * count), solutions side by side, where the right-hand sides live
  std::vector<Index> rank;  ///< of every matrix, as in Solution; empty with relative_tolerance 0
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
class QRANE_API BatchState;
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

  /// Estimate of R's 1-norm condition number (min(m,n) leading columns).
  double condition() const;
  /// Rank by column pivoting of R, by the rule of solution.hpp.
  RankReport rank(double relative_tolerance = -1) const;
  /// Factors another matrix of the same shape in the same memory: nothing is allocated after the first call (but a CUDA
  /// graph, in the driver's memory, at the third with one address). A column-major matrix in device memory is factored
  /// without waiting for the device or asking the host: a CUDA graph captured from the context's stream replays it.
  void refactor(MatrixView<const T> a);

  /// For qrane itself.
  explicit QR(std::unique_ptr<detail::QRState<T>> state);
  detail::QRState<T>& state() const { return *state_; }
  std::unique_ptr<detail::QRState<T>> take_state() && { return std::move(state_); }

 private:
  std::unique_ptr<detail::QRState<T>> state_;
};

/// Sign and logarithm of det A. Square A only; Error{unavailable} unless QForm::implicit or lapack.
template <class T>
QRANE_API Determinant determinant(const QR<T>& f);
/// Orthonormal basis of A's range, m x rank. Error{unavailable} with QForm::none.
template <class T>
QRANE_API Matrix<T> range_basis(const QR<T>& f, double relative_tolerance = -1);
/// Orthonormal basis of A's null space, n x (n - rank).
template <class T>
QRANE_API Matrix<T> null_space_basis(const QR<T>& f, double relative_tolerance = -1);
/// LAPACK's geqrf result; QForm::lapack only (LAPACK name: geqrf).
template <class T>
QRANE_API Reflectors<T> reflectors(const QR<T>& f);

/// What the guards of a plan decided on this data.
struct GuardReport {
  Stage stage = Stage::planned;  ///< which stage of a cholesky_qr plan answered
  bool fell_back = false;  ///< a guard handed the data over to Householder reflections: that of a cholesky_qr plan
                           ///< (to the tree), or any of those that the panels of a blocked one have
};
/// Waits for the device.
template <class T>
QRANE_API GuardReport guard_report(const QR<T>& f);

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
  /// for that its R goes to the host. With options.relative_tolerance = 0 nothing does where m >= n: every R is taken
  /// at its word (a singular one gives Inf or NaN in its own solution), and no rank is reported. Throws as QR::solve.
  BatchSolution<T> solve(BatchView<const T> b, const SolveOptions& options = {}) const;
  /// The same into the caller's batch of n x nrhs; returns the ranks.
  std::vector<Index> solve_into(BatchView<const T> b, BatchView<T> x, const SolveOptions& options = {}) const;
  /// Factors another batch of the same shape and count in the same memory.
  void refactor(BatchView<const T> a);

  // Updates of every matrix in the same launches, at the same place (update.hpp); QForm::thin or none. Of the options
  // only check_finite counts. Each matrix is judged on its own. Errors as those of QR's updates; then nothing has
  // changed.
  /// The rows u_b (p x n each) before row k.
  BatchUpdateReport insert_rows(Index k, BatchView<const T> u, const UpdateOptions& options = {});
  /// Without rows k .. k+p-1. QForm::none needs them (p x n each) and rows() >= cols(), waits, and leaves the matrices
  /// named in BatchUpdateReport::refused_matrices as they were, with rows that plan() no longer counts.
  BatchUpdateReport delete_rows(Index k, Index p, BatchView<const T> removed = {}, const UpdateOptions& options = {});
  /// Without columns k .. k+p-1.
  BatchUpdateReport delete_columns(Index k, Index p, const UpdateOptions& options = {});

  explicit BatchQR(std::unique_ptr<detail::BatchState<T>> state);

 private:
  std::unique_ptr<detail::BatchState<T>> state_;
};

/// The plan that qr() would make of `count` matrices; nothing is factored. Throws Error as qr() does.
template <class T>
QRANE_API Plan plan_qr(const Context& context, Index rows, Index cols, const Options& options = {}, Index count = 1);

// With the scalar type named; the functions below deduce it.
template <class T>
QRANE_API QR<T> qr(const Context& context, std::type_identity_t<MatrixView<const T>> a, const Options& options = {});
template <class T>
QRANE_API QR<T> qr_in_place(const Context& context, std::type_identity_t<MatrixView<T>> a, const Options& options = {});
template <class T>
QRANE_API QR<T> qr_from_reflectors(const Context& context, std::type_identity_t<MatrixView<const T>> packed,
                                   std::type_identity_t<MatrixView<const T>> tau);
template <class T>
QRANE_API BatchQR<T> qr(const Context& context, std::type_identity_t<BatchView<const T>> a,
                        const Options& options = {});

/// Factors a copy of A, m x n (LAPACK name: geqrf). A is a MatrixView, Matrix or std::span, in host or device memory.
/// Throws Error{invalid_argument} for views and options that make no sense, Error{not_finite} with check_finite,
/// Error{unavailable}, Error{out_of_memory}.
template <MatrixLike A>
QR<ScalarOf<A>> qr(const Context& context, const A& a, const Options& options = {}) {
  return qr<ScalarOf<A>>(context, as_view(a), options);
}
/// Factors a column-major device matrix where it stands; the caller keeps it alive and untouched while
/// the QR is used. QForm::implicit or lapack. Throws as qr(), invalid_argument for other forms and host memory, too.
template <MatrixLike A>
QR<ScalarOf<A>> qr_in_place(const Context& context, A&& a, const Options& options = {}) {
  return qr_in_place<ScalarOf<A>>(context, as_view(a), options);
}
/// The factorization whose Reflectors are `packed`, m x n, and `tau`, min(m, n) x 1, as reflectors() or LAPACK's geqrf
/// returned them: for products with Q, and Q itself (LAPACK names: ormqr, orgqr). Copies both; QForm::lapack. Throws
/// Error{invalid_argument} where tau's shape does not fit.
template <MatrixLike A, MatrixLike Tau>
QR<ScalarOf<A>> qr_from_reflectors(const Context& context, const A& packed, const Tau& tau) {
  return qr_from_reflectors<ScalarOf<A>>(context, as_view(packed), as_view(tau));
}
/// Factors copies of all matrices of the batch (LAPACK name: geqrf, batched). Throws as for one matrix.
template <class T>
BatchQR<std::remove_const_t<T>> qr(const Context& context, const BatchView<T>& a, const Options& options = {}) {
  return qr<std::remove_const_t<T>>(context, BatchView<const T>(a), options);
}
/// Factors the matrices of a strided column-major batch in device memory where they stand; otherwise as for one matrix.
template <class T>
QRANE_API BatchQR<T> qr_in_place(const Context& context, const BatchView<T>& a, const Options& options = {});

}  // namespace qrane
