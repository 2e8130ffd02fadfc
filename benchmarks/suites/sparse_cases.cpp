// SPDX-License-Identifier: Apache-2.0
// Sparse QR: analysis, numbers, other numbers of the same pattern, solution; SuiteSparseQR on the same matrix. Times
// are the host's clock around public calls.
#include <malloc.h>

#include <optional>

#include "suites/sparse_measuring.hpp"

namespace qrane::bench {
namespace {

class Measurement {
 public:
  Measurement(Session& session, const SparseProblem& problem, SparseCase& result)
      : session_(session), result_(result), a_(problem.make()), rhs_(seeded_rhs(a_.rows)) {}

  /// Analysis, or why the case is left out.
  void analyze() {
    const double first = wall_ms([&] { result_.analysis = analyzed({}).facts(); });
    const sparse::AnalysisFacts& facts = result_.analysis;
    const double bytes = 8.0 * static_cast<double>(facts.r_entries + facts.peak_entries);
    std::string reason = session_.too_long("f64", facts.flops, bytes);
    if (reason.empty()) reason = session_.too_large(static_cast<Index>(2.5 * bytes), 0);
    if (!reason.empty()) {
      result_.outcome = Outcome::left_out;
      result_.reason = reason;
    }
    first_analysis_ms_ = first;
  }

  void factor(const std::vector<std::string>& precisions) {
    for (auto precision = precisions.rbegin(); precision != precisions.rend();
         ++precision) {  // double first: its memory
      if (session_.interrupted()) return;
      session_.progress(result_.name + ", " + *precision);
      result_.runs.push_back(*precision == "f32" ? run<float>() : run<double>());
      result_.runs.back().precision = *precision;
    }
    result_.analyze_ms =
        samples_after(std::max(first_analysis_ms_, 20.0), session_, [&] { return wall_ms([&] { analyzed({}); }); });
  }

  void ask_peers() {
    if (session_.peers("sparse").empty()) return;
    const ProblemFile& file = file_of_problem();
    const bool large = result_.analysis.flops > 5e11, full = nearly_full(a_);
    for (const char* ordering : {"metis", "default"}) {
      if (session_.interrupted()) return;
      session_.progress(result_.name + ", SuiteSparseQR, " + ordering);
      if (full && std::string(ordering) == "metis")
        result_.peers.push_back({ordering, "not run: the graph of A'A is nearly full", {}, {}, {}, {}});
      else if (large && session_.on_gpu() && !result_.peers.empty())
        result_.peers.push_back({ordering, "not run: the suite's time beside a GPU does not allow it", {}, {}, {}, {}});
      else
        result_.peers.push_back(measured_peer(file, ordering, large ? 0 : 5));
    }
    if (large || !result_.best_peer()) return;
    for (SparsePeer& peer : result_.peers)  // R of the faster one
      if (peer.ordering == result_.best_peer()->ordering) {
        const SparsePeer looked = measured_peer(file, peer.ordering, 0);
        for (const NamedError& fact : looked.facts)
          if (fact.name == "gram_error" || fact.name == "r_entries") peer.facts.push_back(fact);
      }
  }

  /// Each ordering alone, as often as it fits a short time, in both libraries.
  void time_analyses() {
    if (session_.out_of_time().empty() && !session_.peers("sparse-analysis").empty()) {
      const ProblemFile& file = file_of_problem();
      for (const sparse::Ordering ordering :
           {sparse::Ordering::metis, sparse::Ordering::amd, sparse::Ordering::colamd}) {
        if (session_.interrupted() || (ordering == sparse::Ordering::metis && !sparse::has_metis())) continue;
        if (nearly_full(a_) && ordering != sparse::Ordering::colamd) continue;     // takes minutes and tells nothing
        if (session_.on_gpu() && ordering != result_.analysis.ordering) continue;  // the others where there is time
        AnalysisTime time{sparse::to_string(ordering), 0, {}, {}};
        session_.progress(result_.name + ", analysis by " + time.ordering);
        sparse::AnalyzeOptions options;
        options.ordering = ordering;
        options.singletons = false;  // the peer's analysis alone does not look for them
        const double limit = session_.on_gpu() ? 0.2 : 1.5;
        const auto start = Clock::now();
        for (int k = 0; k < 6 && (k < 1 || std::chrono::duration<double>(Clock::now() - start).count() < limit); ++k) {
          const double ms = wall_ms([&] { time.flops = analyzed(options).facts().flops; });
          if (k == 0 && ms < 1e3 * limit) continue;
          time.samples_ms.push_back(ms);
        }
        try {
          PeerTask task = file.task("sparse-analysis", time.ordering);
          task.max_seconds = limit;
          time.peer_ms = session_.measure_peer("suitesparseqr", task).numbers("analyze_ms");
        } catch (const std::exception&) {  // the time stays empty
        }
        result_.orderings.push_back(std::move(time));
      }
    }
  }

 private:
  const ProblemFile& file_of_problem() {
    if (!file_) file_.emplace(a_);
    return *file_;
  }

  sparse::Analysis analyzed(const sparse::AnalyzeOptions& options) const {
    return sparse::analyze(session_.context(),
                           sparse::by_columns(a_.rows, a_.cols, a_.col_ptr.data(), a_.row_idx.data(), a_.values.data()),
                           options);
  }

  template <class T>
  SparseRun run() {
    SparseRun run;
    const std::vector<T> values(a_.values.begin(), a_.values.end()), rhs(rhs_.begin(), rhs_.end());
    std::vector<T> others = values;
    for (std::size_t k = 0; k < others.size(); ++k) others[k] *= static_cast<T>(1 + uniform_at(12, k) / 8);
    sparse::FactorOptions options;
    options.q = sparse::KeepQ::discard;
    const MatrixView<const T> right(rhs.data(), a_.rows, 1, std::max<Index>(a_.rows, 1));
    std::optional<MemoryPeak> peak;  // from here on, as the peer's: the matrix and the right-hand side are there
    if (!analysis_) {
      malloc_trim(0);
      peak.emplace();
      analysis_.emplace(analyzed({}));
    }
    std::optional<sparse::Factor<T>> f;
    const double first = wall_ms([&] { f.emplace(analysis_->factor(values.data(), options, right)); });
    const double first_solve = wall_ms([&] { f->solve(); });
    if (peak) run.resident_bytes = peak->bytes();
    const auto refactor = [&] { return wall_ms([&] { f->refactor(others.data(), right); }); };
    for (int k = 0; k < 2; ++k) refactor();  // a device records the work, then replays it
    run.refactor_ms = samples_after(first, session_, refactor);
    f->refactor(values.data(), right);
    run.solve_ms = samples_after(first_solve, session_, [&] { return wall_ms([&] { f->solve(); }); });
    const sparse::FactorFacts& facts = f->facts();
    run.backend = facts.backend;
    run.threads = facts.threads;
    run.rank = facts.rank;
    run.tolerance = facts.absolute_tolerance;
    run.dropped_norm = facts.dropped_norm;
    run.peak_bytes = facts.peak_bytes;
    run.moved_bytes = facts.moved_bytes;
    look_at(*f, run);
    f.reset();
    const auto anew = [&] {
      std::optional<sparse::Factor<T>> again;
      return wall_ms([&] { again.emplace(analysis_->factor(values.data(), options, right)); });
    };
    run.numeric_ms = samples_after(first, session_, anew);
    if (sizeof(T) == 8 && (result_.source == "file" || !result_.paper.empty())) {
      options.detect_rank = false;
      run.undetected_ms = samples_after(first, session_, anew);
    }
    return run;
  }

  template <class T>
  void look_at(const sparse::Factor<T>& f, SparseRun& run) const {
    const Solution<T> solution = f.solve();
    const std::vector<double> x(solution.x.data(), solution.x.data() + a_.cols);
    const Columns<double> of_a{a_.rows, a_.cols, a_.col_ptr.data(), a_.row_idx.data(), a_.values.data()};
    run.normal_error = normal_error(of_a, rhs_.data(), x.data());
    const sparse::SparseMatrix<T> r = f.r();
    const std::vector<Index> permutation = f.permutation();
    const Columns<T> of_r{r.rows, r.cols, r.pointers.data(), r.row_indices.data(), r.values.data()};
    run.gram_error = gram_error(of_a, of_r, permutation.data());
    const double unit = std::numeric_limits<T>::epsilon() / 2 * static_cast<double>(std::min(a_.rows, a_.cols) + 10);
    // columns that were dropped at the tolerance are no error, and no more than this is lost with them
    const double norm = frobenius_norm(of_a), dropped = norm > 0 ? 3 * run.dropped_norm / norm : 0;
    if (!(run.gram_error <= ErrorMeasures::limit * unit + dropped)) {
      result_.outcome = Outcome::failed;
      result_.reason = "R is not the factor of the matrix";
    }
  }

  /// repeats 0: one run, which also looks at R.
  SparsePeer measured_peer(const ProblemFile& file, const std::string& ordering, int repeats) {
    SparsePeer peer;
    peer.ordering = ordering;
    PeerTask task = file.task("sparse", ordering);
    task.repeats = repeats;
    task.max_seconds = session_.on_gpu() ? 0.7 : 10;
    if (repeats == 0) task.more += " check=1";
    try {
      const Message reply = session_.measure_peer("suitesparseqr", task);
      peer.analyze_ms = reply.numbers("analyze_ms");
      peer.factor_ms = reply.numbers("factor_ms");
      peer.total_ms = reply.numbers("total_ms");
      for (const char* name : {"rank", "fronts", "ordering", "flops", "tolerance", "r_entries", "peak_bytes",
                               "resident_bytes", "normal_error", "gram_error"})
        if (reply.has(name)) peer.facts.push_back({name, reply.number(name)});
    } catch (const std::exception& fault) {
      peer.reason = fault.what();
    }
    return peer;
  }

  Session& session_;
  SparseCase& result_;
  SparseMatrix a_;
  std::vector<double> rhs_;
  std::optional<sparse::Analysis> analysis_;
  std::optional<ProblemFile> file_;
  double first_analysis_ms_ = 0;
};

}  // namespace

SparseCase run_sparse_case(Session& session, const SparseProblem& problem, const std::vector<std::string>& precisions) {
  SparseCase result;
  result.name = problem.name;
  result.source = problem.source;
  result.paper = problem.paper;
  result.reason = absence(problem);
  if (result.reason.empty()) result.reason = session.out_of_time();
  if (!result.reason.empty()) {
    result.outcome = Outcome::left_out;
    return result;
  }
  session.progress(problem.name);
  try {
    Measurement measurement(session, problem, result);
    measurement.analyze();
    if (result.outcome == Outcome::left_out) return result;
    measurement.factor(precisions);
    measurement.ask_peers();
    measurement.time_analyses();
  } catch (const std::exception& fault) {
    result.outcome = Outcome::failed;
    result.reason = fault.what();
  }
  return result;
}

}  // namespace qrane::bench
