// SPDX-License-Identifier: Apache-2.0
// One shape, one precision: peers first, then qrane in each mode on the same seeded matrix, each mode checked.
//
// Timed is QR::refactor of a matrix in device memory: everything from A to the asked-for output, qrane's own copy of A
// included where the plan makes one; allocation and transfers excluded, as for the peers. Beside it stands the time of
// one call of qr(), which plans and allocates.
#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "session.hpp"

namespace qrane::bench {
namespace {

constexpr std::uint64_t matrix_seed = 2011;

/// Canonical: 2 m n^2 - 2 n^3 / 3 for the factors, the same again for the thin Q (geqrf + orgqr).
double canonical_flops(Shape shape, QForm mode) {
  const double m = static_cast<double>(std::max(shape.rows, shape.cols));
  const double n = static_cast<double>(std::min(shape.rows, shape.cols));
  return (2 * m * n * n - 2 * n * n * n / 3) * (mode == QForm::thin ? 2 : 1);
}

/// Bytes that the output needs moved: R alone reads A once; in place reads and writes; thin Q reads twice, writes once.
double needed_bytes(Shape shape, QForm mode, std::int64_t scalar_bytes) {
  const double matrix = static_cast<double>(shape.rows) * static_cast<double>(shape.cols * scalar_bytes);
  return matrix * (mode == QForm::none ? 1 : mode == QForm::thin ? 3 : 2);
}

template <class T>
class QrCases {
 public:
  QrCases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision)
      : session_(session),
        suite_(suite),
        shape_(shape),
        precision_(precision),
        condition_(suite.matrix == MatrixKind::uniform ? 1
                                                       : 2 / static_cast<double>(std::numeric_limits<T>::epsilon())) {}

  void run(const std::function<void(const QrCase&)>& report) {
    const std::vector<QForm>& modes = suite_.modes;
    std::string out_of_reach = memory_reason();
    if (out_of_reach.empty()) out_of_reach = session_.out_of_time();
    if (out_of_reach.empty() && any_runs(modes)) {
      fill();
      measure_peers();
    }
    std::vector<Algorithm> algorithms = {Algorithm::automatic};
    algorithms.insert(algorithms.end(), suite_.named.begin(), suite_.named.end());
    for (const QForm mode : modes)
      for (const Algorithm algorithm : algorithms) {
        if (session_.interrupted()) return;
        if (mode == QForm::lapack && algorithm == Algorithm::caqr) continue;  // has no such form
        QrCase result = new_case(mode, algorithm);
        result.reason = out_of_reach.empty() ? time_reason(mode) : out_of_reach;
        if (result.reason.empty())
          measure(mode, algorithm, result);
        else
          result.outcome = Outcome::left_out;
        if (session_.interrupted() && result.samples_ms.size() < 5) return;
        report(result);
      }
  }

 private:
  std::string memory_reason() const {
    const std::int64_t matrix = shape_.rows * shape_.cols * static_cast<std::int64_t>(sizeof(T));
    // host: A, the peer's A and Q; on a processor qrane's own copies too. device: A, V, Q, Gram chunks; the peer's two
    return session_.too_large((session_.on_gpu() ? 4 : 7) * matrix, 6 * matrix);
  }

  std::string time_reason(QForm mode) {
    return session_.too_long(precision_, canonical_flops(shape_, mode), needed_bytes(shape_, mode, sizeof(T)));
  }

  bool any_runs(const std::vector<QForm>& modes) {
    return std::any_of(modes.begin(), modes.end(), [&](QForm mode) { return time_reason(mode).empty(); });
  }

  void fill() {
    note("filling the matrix");
    device_a_ = session_.seeded<T>(shape_, matrix_seed, condition_);
    a_ = session_.context().backend() == Backend::cpu ? std::move(device_a_) : session_.context().to_host(device_a_);
  }

  MatrixView<const T> input() const {
    return session_.context().backend() == Backend::cpu ? a_.view() : device_a_.view();
  }

  void measure_peers() {
    PeerTask task{.task = "qr", .shape = shape_, .precision = precision_, .seed = matrix_seed, .condition = condition_};
    task.form_q = std::count(suite_.modes.begin(), suite_.modes.end(), QForm::thin) != 0;
    const std::vector<std::string> rivals = session_.peers("rivals");
    for (const std::string& peer : session_.qr_peers()) {
      task.task = std::count(rivals.begin(), rivals.end(), peer) != 0 ? "rivals" : "qr";
      PeerReply reply{peer, {}, ""};
      note("peer " + peer);
      try {
        const Message message = session_.measure_peer(peer, task);
        for (const char* key : {"factor_ms", "form_q_ms", "thin_q_ms"})
          if (message.has(key)) reply.samples[key] = message.numbers(key);
      } catch (const std::exception& fault) {
        reply.reason = fault.what();
      }
      replies_.push_back(reply);
    }
  }

  QrCase new_case(QForm mode, Algorithm asked) {
    QrCase result;
    result.asked = to_string(asked);
    result.shape = shape_;
    result.precision = precision_;
    result.mode = mode;
    result.condition = condition_;
    result.flops = canonical_flops(shape_, mode);
    result.floor = session_.floor_for(precision_, result.flops, needed_bytes(shape_, mode, sizeof(T)));
    return result;
  }

  void measure(QForm mode, Algorithm asked, QrCase& result) {
    try {
      note(detail::concat("mode ", mode_name(mode), " by ", result.asked));
      result.call_ms = call_samples(mode, asked);
      QR<T> f = factor(mode, asked);
      result.algorithm = to_string(f.plan().algorithm);
      result.plan = f.plan().explain();
      result.samples_ms = session_.sample_ms([&] { f.refactor(input()); });
      if (session_.interrupted()) return;
      const GuardReport guard = guard_report(f);
      result.fell_back = guard.fell_back;
      if (guard.stage != Stage::planned) result.stage = to_string(guard.stage);
      note(std::string("checking mode ") + mode_name(mode));
      result.errors = mode == QForm::none ? check_r(f, asked) : check_q(f);
      if (condition_ != 1) result.condition_of_r = condition_of<T>(session_.context().to_host(f.r()).view());
      add_peers(result);
      if (!result.errors.good()) {
        result.outcome = Outcome::failed;
        result.reason = "an error measure is above 30";
      }
    } catch (const Error& fault) {
      const bool lacking = fault.code() == ErrorCode::out_of_memory || fault.code() == ErrorCode::unavailable;
      result.outcome = lacking ? Outcome::left_out : Outcome::failed;
      result.reason = fault.what();
      if (fault.code() == ErrorCode::device) throw;  // the context is of no more use
    }
  }

  /// Whole calls of qr() by the host's clock: plan, memory (the context's pool is warm), factorization, freed again.
  std::vector<double> call_samples(QForm mode, Algorithm asked) {
    std::vector<double> samples;
    for (int run = -1; run < 5 && !session_.interrupted(); ++run) {
      const auto start = std::chrono::steady_clock::now();
      factor(mode, asked);
      session_.context().synchronize();
      const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
      if (run >= 0) samples.push_back(elapsed.count());
    }
    return samples;
  }

  QR<T> factor(QForm mode, Algorithm algorithm) {
    Options options;
    options.algorithm = algorithm;
    options.q = mode;
    return qr<T>(session_.context(), input(), options);
  }

  CheckBudget budget() const { return {5e10 * std::max(2, session_.on_gpu() ? 16 : session_.device().compute_units)}; }

  ErrorMeasures check_q(const QR<T>& f) {
    const Matrix<T> q = session_.context().to_host(f.q()), r = session_.context().to_host(f.r());
    return check_factors<T>(a_.view(), q.view(), r.view(), budget());
  }

  /// R alone by the polar factor where that can be done, else with the Q of the reflectors that the same problem gives
  /// when they are kept: rows of R take that factorization's signs, since R is unique only up to them.
  ErrorMeasures check_r(const QR<T>& f, Algorithm asked) {
    const Context& context = session_.context();
    Matrix<T> r = context.to_host(f.r());
    const ReferenceR reference = condition_ == 1 ? ReferenceR::gram : ReferenceR::householder;
    if (can_check_r_alone(shape_.rows, shape_.cols, reference, budget()))
      return check_r_alone<T>(a_.view(), std::as_const(r).view(), reference);
    const QR<T> with_q = factor(QForm::implicit, asked);
    const Matrix<T> q = context.to_host(with_q.q()), other = context.to_host(with_q.r());
    for (Index i = 0; i < r.rows(); ++i)
      if (r(i, i) * other(i, i) < 0)
        for (Index j = i; j < r.cols(); ++j) r(i, j) = -r(i, j);
    ErrorMeasures errors = check_factors<T>(a_.view(), q.view(), r.view(), budget());
    errors.orthogonality = -1;  // of another factorization's Q
    errors.how += ", Q of the implicit form";
    return errors;
  }

  void add_peers(QrCase& result) const {
    for (const PeerReply& reply : replies_) {
      PeerTime time{reply.peer, reply.samples_for(result.mode), 0, reply.reason};
      if (time.samples_ms.empty() && time.reason.empty()) time.reason = "has no such mode";
      if (!time.samples_ms.empty()) time.ratio = median(time.samples_ms) / result.median_ms();
      result.peers.push_back(time);
    }
  }

  void note(const std::string& what) const {
    session_.progress(detail::concat(shape_.rows, " x ", shape_.cols, " ", precision_, ": ", what));
  }

  struct PeerReply {
    std::string peer;
    std::map<std::string, std::vector<double>> samples;
    std::string reason;

    /// The time to the same output: the factors, and for thin Q what forms it.
    std::vector<double> samples_for(QForm mode) const {
      if (mode == QForm::thin && samples.count("thin_q_ms")) return samples.at("thin_q_ms");
      if (!samples.count("factor_ms")) return {};
      std::vector<double> total = samples.at("factor_ms");
      if (mode != QForm::thin) return total;
      if (!samples.count("form_q_ms")) return {};
      const std::vector<double>& more = samples.at("form_q_ms");
      for (std::size_t i = 0; i < total.size() && i < more.size(); ++i) total[i] += more[i];
      return total;
    }
  };

  Session& session_;
  const SuiteInfo& suite_;
  Shape shape_;
  std::string precision_;
  double condition_;
  Matrix<T> a_, device_a_;
  std::vector<PeerReply> replies_;
};

}  // namespace

void run_qr_cases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision,
                  const std::function<void(const QrCase&)>& report) {
  if (precision == "f32")
    QrCases<float>(session, suite, shape, precision).run(report);
  else
    QrCases<double>(session, suite, shape, precision).run(report);
}

}  // namespace qrane::bench
