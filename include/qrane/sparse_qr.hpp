// SPDX-License-Identifier: Apache-2.0
// Sparse QR, A P = Q R. Analysis: a column ordering and the tree of frontal matrices, from the pattern alone, on the
// CPU, once for all matrices of the pattern. Factor: the numbers, R, rank, Q as reflectors, and what they solve.
// (Algorithm 980, sections 2.1 and 3.4; Davis, ACM TOMS 38(1), 2011.)
//
// Factorization runs on the context's device if the problem is large enough, else on the CPU's cores; Factor::facts()
// says where. R is copied to host memory. R, and Q if it is kept, also stay on the device: solves and products with Q
// run there if that is faster. Right-hand sides may be in the context's device memory; results are returned in the
// memory of the right-hand side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <qrane/export.h>
#include <qrane/context.hpp>
#include <qrane/error.hpp>
#include <qrane/matrix.hpp>
#include <qrane/solution.hpp>
#include <qrane/sparse_matrix.hpp>

namespace qrane::detail {
template <class T>
class QRANE_API SparseFactorState;
}

namespace qrane::sparse {

/// Which columns are eliminated first.
enum class Ordering {
  automatic,  ///< amd or colamd; all but given if the factorization is expensive enough. The fewest flops win; on a
              ///< GPU the shortest predicted time
  colamd,     ///< column approximate minimum degree, on A (Davis, Gilbert, Larimore, Ng 2004)
  amd,        ///< approximate minimum degree, on the pattern of A^T A (Amestoy, Davis, Duff 2004)
  metis,      ///< nested dissection, on the pattern of A^T A (Karypis, Kumar 1998); where this build has METIS
  natural,    ///< the columns' own order
  given,      ///< the permutation that analyze() was given
};

QRANE_API const char* to_string(Ordering ordering);
/// The inverse of to_string; throws Error{invalid_argument} naming the text.
QRANE_API Ordering ordering_from_string(const std::string& name);
/// Whether this build has METIS.
QRANE_API bool has_metis();

/// When a child is merged into its parent: if this adds fewer flops than it saves, and the merged front stores few
/// zeros in R. The fewer its pivotal columns, the more zeros are accepted.
struct Amalgamation {
  double front_flops = 3e5;            ///< saved per front: its overhead, in flops
  double entry_flops = 100;            ///< saved per entry of the child's contribution block
  double flops_share = 0.1;            ///< share of the child's own flops that may be added beyond that
  Index columns[3] = {8, 32, 96};      ///< pivotal columns of the merged front, ascending limits
  double zeros[3] = {0.6, 0.3, 0.15};  ///< share of zeros accepted up to columns[k]; beyond, zeros_beyond
  double zeros_beyond = 0.05;

  /// For a GPU, where a long path of fronts costs more than flops.
  static constexpr Amalgamation for_gpu() { return {3e5, 100, 1, {8, 32, 96}, {0.6, 0.3, 0.2}, 0.2}; }
};

/// For experiments and tests.
struct AnalyzeExpertOptions {
  /// Empty: Amalgamation::for_gpu() where the context's device is a GPU and the problem large enough for it, else
  /// Amalgamation{}.
  std::optional<Amalgamation> amalgamation{};
};

struct AnalyzeOptions {
  Ordering ordering = Ordering::automatic;
  bool singletons = true;          ///< first eliminate columns with a single entry, with their rows, repeatedly
  double singleton_tolerance = 0;  ///< with values: a singleton's pivot must be larger than this in magnitude
  AnalyzeExpertOptions expert{};
};

/// The predicted cost of one ordering.
struct OrderingTrial {
  Ordering ordering = Ordering::natural;
  double flops = 0;
  Index r_entries = 0;
  double seconds = 0;  ///< ordering and counting; some orderings are computed concurrently
};

/// The shape of a factorization, from the pattern alone. Sizes are in entries unless a name says bytes, and
/// bytes are those of double; flops are those of Householder QR of all fronts within their staircases.
struct AnalysisFacts {
  Index rows = 0;
  Index cols = 0;
  Index entries = 0;                      ///< distinct positions
  Index duplicates = 0;                   ///< entries given beyond those
  Ordering ordering = Ordering::natural;  ///< the one chosen; never automatic
  std::vector<OrderingTrial> trials;      ///< the candidates, in order; those with far more entries of R are left out
  Index singletons = 0;                   ///< columns, and rows, eliminated first
  Index empty_rows = 0;
  Index empty_cols = 0;             ///< columns without an entry outside singleton rows
  Index structural_rank_bound = 0;  ///< rows that R has: the rank cannot be more
  Index fronts = 0;
  Index supernodes = 0;  ///< fundamental ones, before amalgamation
  Index roots = 0;
  Index levels = 0;        ///< fronts on the longest path from a leaf to a root
  Index largest_rows = 0;  ///< of the front with the most entries
  Index largest_cols = 0;
  Index widest = 0;           ///< most columns of a front
  Index r_entries_exact = 0;  ///< pattern of R (Cholesky factor of A^T A), before amalgamation, with singletons
  Index r_entries = 0;        ///< R as the fronts hold it, with singletons
  Index v_entries = 0;        ///< Householder vectors within the staircases
  Index front_entries = 0;    ///< all fronts together
  Index peak_entries = 0;  ///< one front at a time in postorder: most of fronts and waiting contribution blocks at once
  double flops = 0;
  double matrix_bytes = 0;    ///< A's values and row indices, and its column pointers
  double factor_bytes = 0;    ///< R and the Householder vectors
  double intensity = 0;       ///< flops per byte of R and the Householder vectors
  double order_seconds = 0;   ///< all orderings that were tried, one after the other
  double tree_seconds = 0;    ///< singletons, tree, counts, fronts
  double layout_seconds = 0;  ///< index lists, staircases, maps

  /// A summary in plain text.
  std::string explain() const;
};

/// One front of the tree; fronts are numbered in postorder, children before their parents.
struct FrontFacts {
  Index rows = 0;
  Index cols = 0;
  Index pivots = 0;   ///< its first columns, which are eliminated here
  Index parent = -1;  ///< -1: a root
  Index level = 0;    ///< 0: a leaf; else one more than the highest of its children's
  double flops = 0;
};

/// Whether Q is kept.
enum class KeepQ {
  keep,    ///< as reflectors
  discard  ///< applied to factor's right-hand sides during the factorization only: memory for R alone
};

/// Where the numeric factorization runs.
enum class Processor {
  automatic,  ///< the device if it is a GPU and predicted to be faster, else the CPU's cores
  cpu,
  device  ///< the context's device by its kernels, whatever the size; on a CPU context these are the reference's
};

QRANE_API const char* to_string(Processor processor);
/// The inverse of to_string; throws Error{invalid_argument} naming the text.
QRANE_API Processor processor_from_string(const std::string& name);

struct FactorOptions {
  double absolute_tolerance = -1;  ///< a pivotal column whose remaining norm is at most this is treated as dependent
                                   ///< and dropped (Heath 1982); < 0: in double 20 (m + n) eps max_j ||a_j||,
                                   ///< SuiteSparseQR's default; in float, whose (m + n) eps nears 1, each column a_j is
                                   ///< measured against its own norm: 20 (m + n)^(1/2) eps 2^floor(log2 ||a_j||), and
                                   ///< columns that are shorter than double's default are dropped
  bool detect_rank = true;         ///< false: no column is dropped
  bool refuse_deficient = false;   ///< throw Error{rank_deficient} where the rank is below min(m, n)
  KeepQ q = KeepQ::keep;
  bool check_finite = false;  ///< refuse NaN and Inf, naming the first, in values and right-hand sides
  Processor processor = Processor::automatic;
  int threads = 0;               ///< on the CPU; 0: as many as the context has
  Index memory_limit_bytes = 0;  ///< on the CPU: of fronts, R and Q. On a device: of all its memory in use; what does
                                 ///< not fit is spilled to host memory (never less than the largest front). 0: what is
                                 ///< free. Solves on the device need index lists and some vectors in addition
  /// Progress, from the thread that called factor or refactor, also at the beginning and at the end. An exception from
  /// it ends the factorization.
  std::function<void(double done_flops, double flops)> on_progress;
};

struct QRANE_API Symbolic;  // src/sparse/analysis/symbolic.hpp
template <class T>
class QRANE_API Factor;

/// Ordering, tree and index lists for all matrices of one pattern. Immutable; copies share it.
class QRANE_API Analysis {
 public:
  const AnalysisFacts& facts() const;
  /// Column k of A P is column column_permutation()[k] of A; cols numbers.
  const std::vector<Index>& column_permutation() const;
  std::vector<FrontFacts> fronts() const;

  /// Factors the matrix with these values: facts().entries + facts().duplicates of them in host memory, in the order of
  /// the pattern's entries. Right-hand sides, m x any, may be factored with it: Factor::solve() then needs no Q. They
  /// are only read, during the call. Throws Error{rank_deficient} where options refuse it, Error{not_finite} where they
  /// check, Error{out_of_memory}; the analysis stays usable.
  template <class T>
  Factor<T> factor(const T* values, const FactorOptions& options = {},
                   std::type_identity_t<MatrixView<const T>> rhs = {}) const;
  /// The same; throws Error{invalid_argument} where a's shape or count of entries is not the pattern's.
  template <class T>
  Factor<T> factor(const SparseView<T>& a, const FactorOptions& options = {},
                   std::type_identity_t<MatrixView<const T>> rhs = {}) const;

  template <SparseLike A>
  auto factor(const A& a, const FactorOptions& options = {}) const {
    return factor(SparseViewOf<A>::view(a), options);
  }
  template <SparseLike A, MatrixLike B>
  auto factor(const A& a, const FactorOptions& options, const B& rhs) const {
    return factor(SparseViewOf<A>::view(a), options, rhs);
  }

  /// For each of fronts(), how often data on the path from the leaves to this front would be spilled to the host, at
  /// most, if the device's kernels factored values of type T, and rhs_cols right-hand sides, within
  /// options.memory_limit_bytes, or what the device has free now (FactorFacts::stages). Throws Error{out_of_memory} if
  /// the device cannot hold the largest front.
  template <class T>
  std::vector<std::int32_t> stages(const FactorOptions& options, Index rhs_cols = 0) const;

  /// For qrane itself.
  Analysis(const Context& context, std::shared_ptr<const Symbolic> symbolic)
      : context_(context), symbolic_(std::move(symbolic)) {}
  const Context& context() const { return context_; }
  const Symbolic& symbolic() const { return *symbolic_; }
  const std::shared_ptr<const Symbolic>& shared() const { return symbolic_; }

 private:
  Context context_;
  std::shared_ptr<const Symbolic> symbolic_;
};

/// Time and memory nearly linear in entries and in the index lists of R; AMD and METIS also in the pattern of A^T A
/// (rows with very many entries are left out of it). The context says whose speed `automatic` weighs the orderings
/// against. `permutation`: the order to take (cols numbers, column k of A P is column permutation[k] of A); then
/// options.ordering is automatic or given. Throws Error{invalid_argument} naming the entry for indices out of range,
/// pointers that fall, a permutation that is none; Error{unavailable} for METIS where the build lacks it or its 32-bit
/// graph cannot hold the pattern.
QRANE_API Analysis analyze(const Context& context, const Pattern& pattern, const AnalyzeOptions& options = {},
                           Indices permutation = {});
/// The same; values of at most options.singleton_tolerance are no singletons' pivots.
template <class T>
QRANE_API Analysis analyze(const Context& context, const SparseView<T>& a, const AnalyzeOptions& options = {},
                           Indices permutation = {});
template <SparseLike A>
Analysis analyze(const Context& context, const A& a, const AnalyzeOptions& options = {}, Indices permutation = {}) {
  return analyze(context, SparseViewOf<A>::view(a), options, permutation);
}

/// Figures of a factorization. Bytes are of fronts, R and Q, on the host and on the device.
struct FactorFacts {
  Backend backend = Backend::cpu;  ///< whose kernels ran; may differ from the context's
  bool on_device = false;          ///< by the kernels of the context's device
  int threads = 1;
  double seconds = 0;  ///< the last factor or refactor, values to R
  double flops = 0;    ///< the analysis's count
  Index rank = 0;
  double absolute_tolerance = 0;  ///< columns at or below it were dropped; 0: column_tolerance; < 0: none was
  double column_tolerance = 0;    ///< float's default: at or below this times their own norms, rounded to a power of 2
  double dropped_norm = 0;        ///< Euclidean norm of all dropped parts
  Index peak_bytes = 0;           ///< most memory in use on the side where it ran
  Index bytes = 0;                ///< held now: R, Q and memory for refactor
  Index moved_bytes = 0;          ///< between host and device
  int stages = 1;  ///< 1 + the most contribution blocks on one path of the tree that were spilled to host memory
  bool analyzed_again = false;  ///< a singleton's pivot was below the tolerance: analyzed again without such singletons
};

/// A P = Q [R; 0] of an m x n matrix. Move-only; shares the analysis.
template <class T>
class QRANE_API Factor {
 public:
  Factor(Factor&&) noexcept;
  Factor& operator=(Factor&&) noexcept;
  ~Factor();

  Index rows() const;
  Index cols() const;
  Index rank() const;
  const FactorFacts& facts() const;

  /// R, rank x n, upper trapezoidal, for the columns of permutation(). Diagonal elements have either sign.
  SparseMatrix<T> r() const;
  /// Column k of A P is column permutation()[k] of A; dropped columns come last.
  std::vector<Index> permutation() const;

  /// C := Q^T C or Q C, C m x any, with the m x m Q, in place. Throws Error{unavailable} with KeepQ::discard.
  void apply_qt(MatrixView<T> c) const;
  void apply_q(MatrixView<T> c) const;

  /// Least squares, min ||A x - b|| for every column of b, m x any. Without Q through R^T R x = A^T b, refined once
  /// (corrected semi-normal equations): as good as with Q while the condition number's square times eps is small.
  Solution<T> solve(MatrixView<const T> b) const;
  /// The same for the right-hand sides of factor or refactor, from Q^T rhs; throws Error{unavailable} without them.
  Solution<T> solve() const;
  /// The solution of A^T x = b, b n x any, that has the least norm: with A the transpose of a wide matrix, its
  /// underdetermined system. Equations of dropped columns are left out. Throws Error{unavailable} with KeepQ::discard.
  Solution<T> solve_transposed(MatrixView<const T> b) const;

  /// Factors other values of the same pattern with the same options, in the memory that is there. The same bits as
  /// factor gives. After an exception the old factorization is gone and only refactor may be called.
  void refactor(const T* values, MatrixView<const T> rhs = {});

  /// For qrane itself.
  explicit Factor(std::unique_ptr<qrane::detail::SparseFactorState<T>> state);

 private:
  std::unique_ptr<qrane::detail::SparseFactorState<T>> state_;
};

struct RefineOptions {
  int max_iterations = 200;  ///< each costs two products with A and two triangular solves
};

struct RefinedSolution : Solution<double> {
  int iterations = 0;  ///< of the column that took most
  /// Double's accuracy was reached for every right-hand side: the residual has no more of A's range in it than rounding
  /// explains. False, too, where the factorization dropped a column that is independent in double.
  bool converged = true;
};

/// Least squares to the accuracy of double from a factorization in float, at half its memory and time: conjugate
/// gradients on A R^-1, which converge in a few steps while R is the factor of A to some digits (A's condition number
/// well below 1e7; beyond, slowly or not at all: then `converged` is false). a: the matrix that was factored,
/// unrounded; b: m x any. Of a rank-deficient A the basic solution for the factorization's live columns. Runs on the
/// host. Throws Error{invalid_argument} where shapes do not match, Error{rank_deficient} where R's triangle cannot be
/// solved with. (Björck, "Numerical Methods for Least Squares Problems", SIAM 1996, section 7.4.)
template <class T>
QRANE_API RefinedSolution refine(const Context& context, const Factor<T>& factor, const SparseView<double>& a,
                                 MatrixView<const double> b, const RefineOptions& options = {});

/// A in one call: least squares, or of least norm where A is wide (by QR of A^T). Throws as analyze, factor and solve.
template <class T>
QRANE_API Solution<T> least_squares(const Context& context, const SparseView<T>& a,
                                    std::type_identity_t<MatrixView<const T>> b,
                                    const AnalyzeOptions& analyze_options = {},
                                    const FactorOptions& factor_options = {});

template <SparseLike A, MatrixLike B>
auto least_squares(const Context& context, const A& a, const B& b, const AnalyzeOptions& analyze_options = {},
                   const FactorOptions& factor_options = {}) {
  return least_squares(context, SparseViewOf<A>::view(a), as_view(b), analyze_options, factor_options);
}

}  // namespace qrane::sparse
