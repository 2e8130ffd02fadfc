// SPDX-License-Identifier: Apache-2.0
// What sparse factors are used for on the device that holds them, and how much of its memory they need. Times are the
// host's clock around public calls. On a processor the device's kernels are the reference's.
#include <optional>

#include "suites/device_peak.hpp"
#include "suites/sparse_measuring.hpp"

namespace qrane::bench {
namespace {

template <class T>
class Measurement {
 public:
  Measurement(Session& session, const SparseProblem& problem, SparseUsesCase& result)
      : session_(session), result_(result), a_(problem.make()), values_(a_.values.begin(), a_.values.end()) {}

  /// Analysis; false where the case is left out.
  bool analyze() {
    analysis_.emplace(sparse::analyze(session_.context(), view<double>(a_.values)));
    const sparse::AnalysisFacts& facts = result_.analysis = analysis_->facts();
    const double bytes = static_cast<double>(sizeof(T)) * static_cast<double>(facts.r_entries + facts.front_entries);
    result_.reason = session_.too_long(result_.precision, facts.flops, bytes);
    // three copies of R to compare, Q on the device and on the host
    if (result_.reason.empty())
      result_.reason = session_.too_large(static_cast<Index>(4 * bytes), static_cast<Index>(1.2 * bytes));
    if (!result_.reason.empty()) result_.outcome = Outcome::left_out;
    return result_.reason.empty();
  }

  void measure() {
    factor();
    limit();
    use();
    if (session_.out_of_time().empty()) ask_host();
    if (session_.out_of_time().empty()) ask_peer();
  }

 private:
  using Factor = sparse::Factor<T>;
  using Options = sparse::FactorOptions;

  template <class U>
  sparse::SparseView<U> view(const std::vector<U>& values) const {
    return sparse::by_columns(a_.rows, a_.cols, a_.col_ptr.data(), a_.row_idx.data(), values.data());
  }
  Columns<double> columns() const { return {a_.rows, a_.cols, a_.col_ptr.data(), a_.row_idx.data(), a_.values.data()}; }
  static Options options(sparse::KeepQ q, sparse::Processor processor = sparse::Processor::device) {
    Options made;
    made.q = q;
    made.processor = processor;
    return made;
  }
  Factor made(const Options& wanted, MatrixView<const T> rhs = {}) const {
    return analysis_->factor(values_.data(), wanted, rhs);
  }

  /// Samples of factorizations whose memory is taken anew, the first a warm-up.
  std::vector<double> anew(const Options& wanted) const {
    const auto once = [&] {
      std::optional<Factor> f;
      return wall_ms([&] { f.emplace(made(wanted)); });
    };
    return samples_after(once(), session_, once);
  }

  static Matrix<T> seeded(Index rows, Index cols) {
    Matrix<T> b = Matrix<T>::host(rows, cols);
    fill_seeded(b.data(), rows * cols, 13);
    return b;
  }

  // -- factorization ------------------------------------------------------------------------------------------------

  /// What a factorization takes and moves, and R.
  std::uint64_t look_at(const Factor& f, SparseLimit& limit) const {
    limit.peak_bytes = f.facts().peak_bytes;
    limit.moved_bytes = f.facts().moved_bytes;
    limit.stages = f.facts().stages;
    return fingerprint(f.r());
  }
  /// In a context of its own, whose memory nobody has used before; some runs, since later ones may take more.
  Index measured_bytes(const Options& wanted) const {
    if (!session_.on_gpu()) return -1;
    ContextOptions where;
    where.backend = session_.device().backend;
    where.device = session_.device().index;
    const Context context(where);
    DevicePeak peak(session_.context());  // another context, for another thread
    Factor f = sparse::Analysis(context, analysis_->shared()).factor(values_.data(), wanted);
    for (int k = 0; k < 3; ++k) f.refactor(values_.data());
    return peak.bytes();
  }

  void factor() {
    progress("factorization");
    Options wanted = options(sparse::KeepQ::discard);
    SparseLimit all;
    {
      Factor f = made(wanted);
      r_ = look_at(f, all);
      result_.rank = f.facts().rank;
      const auto again = [&] { return wall_ms([&] { f.refactor(values_.data()); }); };
      again();
      result_.refactor_ms = samples_after(again(), session_, again);
    }
    all.samples_ms = anew(wanted);
    all.measured_bytes = measured_bytes(wanted);
    result_.limits.push_back(all);
    wanted.q = sparse::KeepQ::keep;
    result_.keep_ms = anew(wanted);
  }

  void limit() {
    const Index peak = result_.limits.front().peak_bytes;
    for (const double share : {0.5, 0.25}) {
      if (session_.interrupted()) return;
      progress(detail::concat("within ", share, " of the memory"));
      SparseLimit limit;
      limit.share = share;
      limit.limit_bytes = static_cast<Index>(share * static_cast<double>(peak));
      const Index needed = measure_within(limit);
      result_.limits.push_back(limit);
      if (needed <= 0) continue;
      SparseLimit least;  // the front alone that this is too little for
      least.limit_bytes = needed;
      least.share = static_cast<double>(needed) / static_cast<double>(peak);
      if (needed < peak) {
        measure_within(least);
        result_.limits.push_back(least);
      }
      return;
    }
  }
  /// The bytes that a refusal asks for, or 0.
  Index measure_within(SparseLimit& limit) {
    Options wanted = options(sparse::KeepQ::discard);
    wanted.memory_limit_bytes = limit.limit_bytes;
    try {
      limit.same_bits = look_at(made(wanted), limit) == r_;
      limit.samples_ms = anew(wanted);
      limit.measured_bytes = measured_bytes(wanted);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      limit.reason = error.what();
      return needed_bytes(limit.reason);
    }
    if (!limit.same_bits) fail("R within a limit differs");
    if (limit.peak_bytes > limit.limit_bytes) fail("more memory than the limit allows");
    return 0;
  }

  // -- uses -----------------------------------------------------------------------------------------------------------

  template <class Action>
  std::vector<double> samples_of(Action action) const {
    const auto once = [&] {
      return wall_ms([&] {
        action();
        session_.context().synchronize();
      });
    };
    return samples_after(once(), session_, once);
  }
  template <class Action>
  void by_device(SparseUse& use, const Factor& f, const Matrix<T>& b, Action action) const {
    Matrix<T> here = session_.context().to_device(b), there = session_.context().to_host(b);
    use.device_ms = samples_of([&] { action(f, here.view()); });
    use.transfer_ms = samples_of([&] { action(f, there.view()); });
  }

  static void solve(const Factor& f, MatrixView<T> b) { f.solve(b); }
  static void apply_qt(const Factor& f, MatrixView<T> c) { f.apply_qt(c); }
  static void apply_q(const Factor& f, MatrixView<T> c) { f.apply_q(c); }
  static void least_norm(const Factor& f, MatrixView<T> b) { f.solve_transposed(b); }

  struct Way {
    const char* name;
    void (*action)(const Factor&, MatrixView<T>);
    const char* peers;  ///< list of samples
  };
  static const std::vector<Way>& ways_with_q() {
    static const std::vector<Way> list = {{"solve", solve, "solve_ms"},
                                          {"apply QT", apply_qt, "apply_qt_ms"},
                                          {"apply Q", apply_q, "apply_q_ms"},
                                          {"least norm", least_norm, "least_norm_ms"}};
    return list;
  }
  static constexpr Index counts[] = {1, 100};

  Matrix<T> input(const Way& way, Index count) const {
    return seeded(way.action == least_norm ? a_.cols : a_.rows, count);
  }
  SparseUse& entry(const std::string& name, Index count) {
    for (SparseUse& use : result_.uses)
      if (use.use == name && use.rhs == count) return use;
    result_.uses.push_back({name, count, {}, {}, {}, {}, -1, 0, true});
    return result_.uses.back();
  }

  void use() {
    {
      const Factor f = made(options(sparse::KeepQ::keep));
      result_.keep_bytes = f.facts().peak_bytes;
      for (const Way& way : ways_with_q())
        for (const Index count : counts) {
          progress(way.name);
          SparseUse& use = entry(way.name, count);
          by_device(use, f, input(way, count), way.action);
          use.error = error_of(way, f, count);
        }
    }
    progress("without Q");
    {
      Options wanted = options(sparse::KeepQ::discard);
      const Matrix<T> b = seeded(a_.rows, 1);
      const Factor f = made(wanted, b.view());
      for (const Index count : counts) {
        SparseUse& use = entry("solve without Q", count);
        by_device(use, f, seeded(a_.rows, count), solve);
        use.error = normal_error_of(f.solve(b.view()).x, b);
      }
      SparseUse& use = entry("solve what rode along", 1);
      use.transfer_ms = samples_of([&] { f.solve(); });
      use.error = normal_error_of(f.solve().x, b);
    }
    if (sizeof(T) == 8) refine();
  }

  /// Factored in float, solved to double's accuracy.
  void refine() {
    progress("refine");
    const std::vector<float> values(a_.values.begin(), a_.values.end());
    sparse::FactorOptions wanted;
    wanted.q = sparse::KeepQ::discard;
    wanted.processor = sparse::Processor::device;
    std::optional<sparse::Factor<float>> f;
    const auto once = [&] {
      f.reset();
      return wall_ms([&] { f.emplace(analysis_->factor(values.data(), wanted)); });
    };
    result_.single_ms = samples_after(once(), session_, once);
    const Matrix<double> b = [&] {
      Matrix<double> made = Matrix<double>::host(a_.rows, 1);
      fill_seeded(made.data(), a_.rows, 13);
      return made;
    }();
    SparseUse& use = entry("refine", 1);
    sparse::RefineOptions few;
    few.max_iterations = 20;
    std::optional<sparse::RefinedSolution> solution;
    const auto refined = [&] {
      return wall_ms(
          [&] { solution.emplace(sparse::refine(session_.context(), *f, view<double>(a_.values), b.view(), few)); });
    };
    try {
      use.transfer_ms = samples_after(refined(), session_, refined);
      use.iterations = solution->iterations;
      use.converged = solution->converged;
      use.error = normal_error(columns(), b.data(), solution->x.data());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::rank_deficient) throw;
      use.converged = false;
    }
  }

  // -- errors ---------------------------------------------------------------------------------------------------------

  double normal_error_of(const Matrix<T>& x, const Matrix<T>& b) const {
    const std::vector<double> wide_x(x.data(), x.data() + a_.cols), wide_b(b.data(), b.data() + a_.rows);
    return normal_error(columns(), wide_b.data(), wide_x.data());
  }
  /// Of the first column.
  double error_of(const Way& way, const Factor& f, Index count) {
    Matrix<T> c = input(way, count);
    if (way.action == solve) return normal_error_of(f.solve(c.view()).x, c);
    if (way.action == least_norm) return least_norm_error(f, count);
    const Matrix<T> before = input(way, count);
    way.action(f, c.view());
    (way.action == apply_q ? apply_qt : apply_q)(f, c.view());
    long double gap = 0, length = 0;
    for (Index i = 0; i < a_.rows; ++i) {
      const long double d = static_cast<long double>(c(i, 0)) - static_cast<long double>(before(i, 0));
      gap += d * d;
      length += static_cast<long double>(before(i, 0)) * static_cast<long double>(before(i, 0));
    }
    const double error = length > 0 ? static_cast<double>(std::sqrt(gap / length)) : 0;
    const double unit = std::numeric_limits<T>::epsilon() / 2 * static_cast<double>(std::min(a_.rows, a_.cols) + 10);
    if (!(error <= 2 * ErrorMeasures::limit * unit)) fail("Q is not orthogonal");
    return error;
  }
  /// ||Aᵀ x - b|| / (||A||_F ||x||) for b = Aᵀ z.
  double least_norm_error(const Factor& f, Index count) const {
    Matrix<T> b = Matrix<T>::host(a_.cols, count);
    std::vector<double> first(static_cast<std::size_t>(a_.cols));
    for (Index j = 0; j < count; ++j) {
      std::vector<double> z(static_cast<std::size_t>(a_.rows)), y(first.size(), 0.0);
      for (Index i = 0; i < a_.rows; ++i)
        z[static_cast<std::size_t>(i)] = uniform_at(17, static_cast<std::uint64_t>(i + j * a_.rows));
      add_product(columns(), static_cast<const std::int64_t*>(nullptr), true, z.data(), y.data());
      for (Index i = 0; i < a_.cols; ++i) b(i, j) = static_cast<T>(y[static_cast<std::size_t>(i)]);
    }
    const Matrix<T> x = f.solve_transposed(std::as_const(b).view()).x;
    const std::vector<long double> wide(x.data(), x.data() + a_.rows);
    std::vector<long double> r(first.size(), 0.0L);
    add_product(columns(), static_cast<const std::int64_t*>(nullptr), true, wide.data(), r.data());
    long double gap = 0, length = 0;
    for (Index i = 0; i < a_.cols; ++i) {
      const long double d = r[static_cast<std::size_t>(i)] - static_cast<long double>(b(i, 0));
      gap += d * d;
    }
    for (const long double value : wide) length += value * value;
    const double scale = frobenius_norm(columns()) * static_cast<double>(std::sqrt(length));
    return scale > 0 ? static_cast<double>(std::sqrt(gap)) / scale : 0;
  }

  // -- others
  // -----------------------------------------------------------------------------------------------------------

  void ask_host() {
    progress("on the host's cores");
    std::optional<Factor> f;
    result_.host_ms = {wall_ms([&] { f.emplace(made(options(sparse::KeepQ::keep, sparse::Processor::cpu))); })};
    for (const Way& way : ways_with_q())
      for (const Index count : counts) {
        if (session_.interrupted()) return;
        Matrix<T> b = input(way, count);
        entry(way.name, count).host_ms = samples_of([&] { way.action(*f, b.view()); });
      }
  }

  void ask_peer() {
    if (session_.peers("sparse-uses").empty()) return;
    progress("SuiteSparseQR");
    const ProblemFile file(a_);
    const sparse::Ordering ordering = result_.analysis.ordering;
    const char* const name = nearly_full(a_) ? "default" : sparse::to_string(ordering);
    try {
      for (const Index count : counts) {
        PeerTask task = file.task("sparse-uses", name);
        task.rhs = count;
        task.max_seconds = session_.on_gpu() ? 0.3 : 2;
        const Message reply = session_.measure_peer("suitesparseqr", task);
        if (reply.has("factor_ms")) result_.peer_ms = reply.numbers("factor_ms");
        for (const Way& way : ways_with_q()) entry(way.name, count).peer_ms = reply.numbers(way.peers);
      }
    } catch (const std::exception& fault) {
      result_.peer_reason = fault.what();
    }
  }

  void progress(const std::string& what) const { session_.progress(result_.name + ", " + what); }
  void fail(const std::string& reason) {
    result_.outcome = Outcome::failed;
    result_.reason = reason;
  }

  Session& session_;
  SparseUsesCase& result_;
  SparseMatrix a_;
  std::vector<T> values_;
  std::optional<sparse::Analysis> analysis_;
  std::uint64_t r_ = 0;
};

template <class T>
void measure(Session& session, const SparseProblem& problem, SparseUsesCase& result) {
  Measurement<T> measurement(session, problem, result);
  if (measurement.analyze()) measurement.measure();
}

}  // namespace

void run_sparse_uses_case(Session& session, const SparseProblem& problem, const std::string& precision,
                          const std::function<void(const SparseUsesCase&)>& report) {
  SparseUsesCase result;
  result.name = problem.name;
  result.source = problem.source;
  result.paper = problem.paper;
  result.precision = precision;
  result.reason = absence(problem);
  if (result.reason.empty()) result.reason = session.out_of_time();
  if (!result.reason.empty()) {
    result.outcome = Outcome::left_out;
    return report(result);
  }
  session.progress(problem.name);
  try {
    precision == "f32" ? measure<float>(session, problem, result) : measure<double>(session, problem, result);
  } catch (const std::exception& fault) {
    result.outcome = Outcome::failed;
    result.reason = fault.what();
  }
  report(result);
}

}  // namespace qrane::bench
