// SPDX-License-Identifier: Apache-2.0
// The peer `suitesparseqr`: SuiteSparseQR (Davis, ACM TOMS 38(1), 2011) as it is installed, in double, with the threads
// that OPENBLAS_NUM_THREADS names, Q discarded, its default tolerance.
//   task sparse           path= ordering= : analysis and factorization with one right-hand side, and its solution
//   task sparse-analysis  path= ordering= : analysis alone (without its search for singletons)
//   task sparse-uses      path= ordering= rhs= : Q and R kept, and what they are used for
// SuiteSparseQR is under the GPL: this program is not installed, and nothing of it is linked into qrane.
#include <malloc.h>

#include <SuiteSparseQR.hpp>
#include <chrono>
#include <map>

#include "common/sparse_exchange.hpp"
#include "peers/serve.hpp"

namespace qrane::bench {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

const std::map<std::string, int>& orderings() {
  static const std::map<std::string, int> known = {{"natural", SPQR_ORDERING_NATURAL},
                                                   {"colamd", SPQR_ORDERING_COLAMD},
                                                   {"amd", SPQR_ORDERING_AMD},
                                                   {"metis", SPQR_ORDERING_METIS},
                                                   {"default", SPQR_ORDERING_DEFAULT}};
  return known;
}

/// One CHOLMOD session and the matrix of the last request.
class Solver {
 public:
  Solver() {
    cholmod_l_start(&common_);
    common_.print = 0;
  }
  ~Solver() {
    forget_factors();
    cholmod_l_finish(&common_);
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  PeerSamples measure(const PeerRequest& request) {
    const auto ordering = orderings().find(request.ordering);
    if (ordering == orderings().end()) throw std::runtime_error("no ordering '" + request.ordering + "'");
    if (request.path != path_ || request.task != "sparse-uses" || ordering->second != kept_ordering_) forget_factors();
    if (request.path != path_) {
      problem_ = read_problem(request.path);
      path_ = request.path;
    }
    const PeerSamples samples = request.task == "sparse-analysis" ? analyze(request, ordering->second)
                                : request.task == "sparse"        ? factor(request, ordering->second)
                                : request.task == "sparse-uses"   ? use(request, ordering->second)
                                                                  : throw std::runtime_error("unknown task");
    return samples;
  }

 private:
  cholmod_sparse matrix() {
    cholmod_sparse a{};
    a.nrow = static_cast<std::size_t>(problem_.rows);
    a.ncol = static_cast<std::size_t>(problem_.cols);
    a.nzmax = problem_.values.size();
    a.p = problem_.pointers.data();
    a.i = problem_.row_indices.data();
    a.x = problem_.values.data();
    a.itype = CHOLMOD_LONG;
    a.xtype = CHOLMOD_REAL;
    a.dtype = CHOLMOD_DOUBLE;
    a.sorted = 1;
    a.packed = 1;
    return a;
  }
  cholmod_dense rhs() {
    cholmod_dense b{};
    b.nrow = b.nzmax = b.d = problem_.rhs.size();
    b.ncol = 1;
    b.x = problem_.rhs.data();
    b.xtype = CHOLMOD_REAL;
    b.dtype = CHOLMOD_DOUBLE;
    return b;
  }
  void check(bool done) {
    if (done && common_.status >= CHOLMOD_OK) return;
    throw std::runtime_error(common_.status == CHOLMOD_OUT_OF_MEMORY ? "out of memory" : "SuiteSparseQR failed");
  }

  PeerSamples analyze(const PeerRequest& request, int ordering) {
    cholmod_sparse a = matrix();
    PeerSamples samples;
    const auto start = Clock::now();
    for (int k = 0; k <= request.repeats && (k < 2 || seconds_since(start) < request.max_seconds); ++k) {
      const auto begin = Clock::now();
      SuiteSparseQR_factorization<double>* qr = SuiteSparseQR_symbolic<double>(ordering, 1, &a, &common_);
      const double elapsed = seconds_since(begin);
      check(qr != nullptr);
      SuiteSparseQR_free<double>(&qr, &common_);
      if (k > 0 || elapsed > request.max_seconds) samples.analyze_ms.push_back(1e3 * elapsed);
      if (elapsed > request.max_seconds) break;
    }
    return samples;
  }

  /// The first run is a warm-up unless it took longer than a sample may; R is looked at in a last run.
  PeerSamples factor(const PeerRequest& request, int ordering) {
    PeerSamples samples;
    const auto start = Clock::now();
    const auto note = [&](bool timed, double wall) {
      if (!timed) return;
      samples.analyze_ms.push_back(1e3 * common_.SPQR_analyze_time);
      samples.factor_ms.push_back(1e3 * common_.SPQR_factorize_time);
      samples.total_ms.push_back(1e3 * wall);
    };
    for (int k = 0; k <= request.repeats && request.repeats > 0; ++k) {
      if (k > 1 && seconds_since(start) > request.max_seconds) break;
      const double wall = solve(ordering, k == 0 ? &samples : nullptr);
      const bool too_long = wall > std::min(1.0, request.max_seconds / 3);
      note(k > 0 || too_long, wall);
      if (too_long && seconds_since(start) + wall > request.max_seconds) break;
    }
    if (request.check) {
      const double wall = look_at_r(ordering, request.repeats == 0, samples);
      note(samples.factor_ms.empty(), wall);
    }
    add_facts(samples);
    return samples;
  }

  double solve(int ordering, PeerSamples* first) {
    cholmod_sparse a = matrix();
    cholmod_dense b = rhs();
    malloc_trim(0);
    common_.memory_usage = common_.memory_inuse;
    const MemoryPeak peak;
    const auto begin = Clock::now();
    cholmod_dense* x = SuiteSparseQR<double>(ordering, SPQR_DEFAULT_TOL, &a, &b, &common_);
    const double wall = seconds_since(begin);
    check(x != nullptr);
    if (first) {
      first->facts.emplace_back("peak_bytes", static_cast<double>(common_.memory_usage));
      first->facts.emplace_back("resident_bytes", static_cast<double>(peak.bytes()));
      first->facts.emplace_back("normal_error",
                                normal_error(problem_.view(), problem_.rhs.data(), static_cast<const double*>(x->x)));
    }
    cholmod_l_free_dense(&x, &common_);
    return wall;
  }

  /// The basic solution: a row's pivot is in the first column that reaches it.
  std::vector<double> solve_r(const Columns<double, SuiteSparse_long>& r, const SuiteSparse_long* order, double* c) {
    std::vector<SuiteSparse_long> pivot_col, pivot_entry;
    for (SuiteSparse_long k = 0; k < r.cols; ++k)
      for (SuiteSparse_long p = r.pointers[k]; p < r.pointers[k + 1]; ++p)
        if (r.row_indices[p] == static_cast<SuiteSparse_long>(pivot_col.size())) {
          pivot_col.push_back(k);
          pivot_entry.push_back(p);
          break;
        }
    std::vector<double> x(static_cast<std::size_t>(r.cols), 0.0);
    for (std::size_t i = pivot_col.size(); i-- > 0;) {
      const SuiteSparse_long k = pivot_col[i];
      const double value = c[i] / r.values[pivot_entry[i]];
      x[static_cast<std::size_t>(order ? order[k] : k)] = value;
      for (SuiteSparse_long p = r.pointers[k]; p < r.pointers[k + 1]; ++p) c[r.row_indices[p]] -= value * r.values[p];
    }
    return x;
  }

  double look_at_r(int ordering, bool wants_x, PeerSamples& samples) {
    cholmod_sparse a = matrix();
    cholmod_dense b = rhs();
    cholmod_dense* c = nullptr;
    cholmod_sparse* r = nullptr;
    SuiteSparse_long* order = nullptr;
    const auto begin = Clock::now();
    const SuiteSparse_long rank =
        SuiteSparseQR<double>(ordering, SPQR_DEFAULT_TOL, 0, &a, &b, &c, &r, &order, &common_);
    const double wall = seconds_since(begin);
    check(rank >= 0 && r);
    const Columns<double, SuiteSparse_long> of_a{problem_.rows, problem_.cols,
                                                 static_cast<const SuiteSparse_long*>(a.p),
                                                 static_cast<const SuiteSparse_long*>(a.i), problem_.values.data()};
    const Columns<double, SuiteSparse_long> of_r{static_cast<std::int64_t>(r->nrow), static_cast<std::int64_t>(r->ncol),
                                                 static_cast<const SuiteSparse_long*>(r->p),
                                                 static_cast<const SuiteSparse_long*>(r->i),
                                                 static_cast<const double*>(r->x)};
    if (wants_x) {
      const std::vector<double> x = solve_r(of_r, order, static_cast<double*>(c->x));
      samples.facts.emplace_back("normal_error", normal_error(problem_.view(), problem_.rhs.data(), x.data()));
    }
    samples.facts.emplace_back("gram_error", gram_error(of_a, of_r, order));
    samples.facts.emplace_back("r_entries", static_cast<double>(of_r.pointers[of_r.cols]));
    cholmod_l_free_dense(&c, &common_);
    cholmod_l_free_sparse(&r, &common_);
    cholmod_l_free(a.ncol, sizeof(SuiteSparse_long), order, &common_);
    return wall;
  }

  void forget_factors() {
    if (kept_) SuiteSparseQR_free<double>(&kept_, &common_);
    kept_ = nullptr;
  }

  PeerSamples use(const PeerRequest& request, int ordering) {
    PeerSamples samples;
    if (!kept_) {
      cholmod_sparse a = matrix();
      kept_ = SuiteSparseQR_factorize<double>(ordering, SPQR_DEFAULT_TOL, &a, &common_);
      check(kept_ != nullptr);
      kept_ordering_ = ordering;
      samples.factor_ms.push_back(1e3 * common_.SPQR_factorize_time);
    }
    const auto block = [&](std::int64_t rows) {
      cholmod_dense* b = cholmod_l_allocate_dense(static_cast<std::size_t>(rows), static_cast<std::size_t>(request.rhs),
                                                  static_cast<std::size_t>(rows), CHOLMOD_REAL, &common_);
      check(b != nullptr);
      fill_seeded(static_cast<double*>(b->x), rows * request.rhs, 13);
      return b;
    };
    const auto timed = [&](const std::string& name, cholmod_dense* b, auto&& function) {
      std::vector<double> times;
      repeat(request, [&](bool counts) {
        const auto begin = Clock::now();
        cholmod_dense* x = function(b);
        const double elapsed = 1e3 * seconds_since(begin);
        check(x != nullptr);
        cholmod_l_free_dense(&x, &common_);
        if (counts) times.push_back(elapsed);
      });
      samples.lists.emplace_back(name, times);
    };
    const auto then = [&](cholmod_dense* first, auto&& function) {
      check(first != nullptr);
      cholmod_dense* second = function(first);
      cholmod_l_free_dense(&first, &common_);
      return second;
    };
    const auto apply = [&](int method) {
      return [&, method](cholmod_dense* b) { return SuiteSparseQR_qmult<double>(method, kept_, b, &common_); };
    };
    const auto solve = [&](int system) {
      return [&, system](cholmod_dense* b) { return SuiteSparseQR_solve<double>(system, kept_, b, &common_); };
    };
    cholmod_dense *b = block(problem_.rows), *c = block(problem_.cols);
    timed("solve_ms", b, [&](cholmod_dense* x) { return then(apply(SPQR_QTX)(x), solve(SPQR_RETX_EQUALS_B)); });
    timed("apply_qt_ms", b, apply(SPQR_QTX));
    timed("apply_q_ms", b, apply(SPQR_QX));
    timed("least_norm_ms", c, [&](cholmod_dense* x) { return then(solve(SPQR_RTX_EQUALS_ETB)(x), apply(SPQR_QX)); });
    cholmod_l_free_dense(&b, &common_);
    cholmod_l_free_dense(&c, &common_);
    return samples;
  }

  void add_facts(PeerSamples& samples) {
    samples.facts.emplace_back("rank", static_cast<double>(common_.SPQR_istat[4]));
    samples.facts.emplace_back("fronts", static_cast<double>(common_.SPQR_istat[2]));
    samples.facts.emplace_back("ordering", static_cast<double>(common_.SPQR_istat[7]));
    samples.facts.emplace_back("flops", common_.SPQR_flopcount_bound);
    samples.facts.emplace_back("tolerance", common_.SPQR_tol_used);
  }

  cholmod_common common_{};
  SuiteSparseQR_factorization<double>* kept_ = nullptr;
  int kept_ordering_ = -1;
  std::string path_;
  ExchangedProblem problem_;
};

}  // namespace
}  // namespace qrane::bench

int main() {
  using namespace qrane::bench;
  Solver solver;
  return serve(
      {[] {
         return "sparse=suitesparseqr sparse-analysis=suitesparseqr sparse-uses=suitesparseqr version=SuiteSparseQR_" +
                std::to_string(SPQR_MAIN_VERSION) + "." + std::to_string(SPQR_SUB_VERSION) + "." +
                std::to_string(SPQR_SUBSUB_VERSION);
       },
       [](const std::string&) -> std::string { throw std::runtime_error("no rates here"); },
       [&](const PeerRequest& request) { return solver.measure(request); }});
}
