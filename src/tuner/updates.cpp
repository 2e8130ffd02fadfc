// SPDX-License-Identifier: Apache-2.0
// The constants that updates are priced from, each from runs in which little else counts:
//
//   copy_gbytes       a copy between two device matrices
//   gemm_gflops       a large square Q applied to as large a matrix, which is a copy and a product
//   step_ns           rows into R alone by narrow windows and by wide ones: the same columns, more steps
//   column_ns         what is left of the wide ones
//   sweep_percent     rows into a tall thin Q, without what the same rows take in R alone
//   refactor_percent  fresh factorizations by their own plans, against what the others predict
#include <algorithm>
#include <cmath>

#include "api/engine.hpp"
#include "tuner/search.hpp"
#include "update/choice/cost.hpp"

namespace qrane::tuning {

namespace {

constexpr Index carry = 16, wide = 32, narrow = 8;  // rows that come in, columns of windows

template <class T>
class Constants {
 public:
  Constants(Bench& bench, const Context& context) : bench_(bench), context_(context), gpu_(context.device().is_gpu) {
    finding_.entry.scalar_bytes = sizeof(T);
    finding_.entry.operation = Operation::update;
  }

  std::vector<Finding> run() {
    const double copy = copy_rate(), product = product_rate(copy);
    if (bench_.stop()) return {};
    const Index n = gpu_ ? 512 : 256;
    const double slow = rows_in_r(n, narrow), fast = rows_in_r(n, wide);
    const double windows = static_cast<double>(n / wide), more = static_cast<double>(n / narrow) - windows;
    const double step = std::max((slow - fast) / more, 1e-4);  // milliseconds
    const double turned = 2.0 * wide * (wide + carry) * static_cast<double>(n) * windows / (product * 0.5e6);
    const double column = std::max((fast - (windows + 4) * step - turned) / static_cast<double>(n), 1e-5);
    if (bench_.stop()) return {};
    const double share = sweep_rate(step, column) / product;
    put("copy_gbytes", copy);
    put("gemm_gflops", product);
    put("step_ns", 1e6 * step);
    put("column_ns", 1e6 * column);
    put("sweep_percent", std::clamp(100 * share, 1.0, 100.0));
    bench_.tables = with_entry(*bench_.tables, finding_.entry);
    std::vector<Finding> findings{std::move(finding_)};
    refactorizations(findings);
    return findings;
  }

 private:
  void put(const char* name, double value) {
    finding_.entry.parameters.emplace_back(name, std::max<std::int64_t>(std::llround(value), 1));
  }
  void note(const std::string& subject, double ms) { finding_.evidence.push_back({subject, {{"ms", ms}}, ""}); }

  /// The fastest of a few runs.
  template <class Run>
  double fastest(int runs, Run run) {
    double best = 1e30;
    for (int i = 0; i < runs && (i < 2 || !bench_.stop()); ++i) best = std::min(best, run());
    return best;
  }

  double copy_rate() {
    const Index size = gpu_ ? Index{1} << 25 : Index{1} << 22;
    const Matrix<T> a = filled(size, 1), b = context_.allocate<T>(size, 1);
    const double ms = fastest(5, [&] {
      return context_.engine()->time_ms([&] { context_.copy<T>(a.view(), const_cast<Matrix<T>&>(b).view()); });
    });
    note(detail::concat("copy of ", size, " elements"), ms);
    return 2.0 * static_cast<double>(size) * sizeof(T) / (ms * 1e6);
  }

  double product_rate(double copy) {
    const Index n = gpu_ ? 4096 : 512;
    Options options;
    options.q = QForm::full;
    const QR<T> f = qr<T>(context_, filled(n, n).view(), options);
    Matrix<T> c = filled(n, n);
    const double ms = fastest(5, [&] { return context_.engine()->time_ms([&] { f.apply_q(c.view()); }); });
    note(detail::concat("Q C of order ", n), ms);
    const auto order = static_cast<double>(n);
    const double alone = ms - 2 * order * order * sizeof(T) / (copy * 1e6);
    return 2 * order * order * order / (std::max(alone, ms / 4) * 1e6);
  }

  double rows_in(UpdatableQR<T>& f, Index n, Index p, int block) {
    const Matrix<T> u = filled(p, n);
    UpdateOptions options;
    options.method = UpdateMethod::orthogonal;
    options.block_cols = block;
    f.time_updates(true);
    return fastest(7, [&] { return f.insert_rows(f.rows(), u, options).measured_ms; });
  }
  double rows_in_r(Index n, Index block) {
    Options options;
    options.q = QForm::none;
    UpdatableQR<T> f = updatable_qr(context_, filled(2 * n, n), options);
    const double ms = rows_in(f, n, carry, static_cast<int>(block));
    note(detail::concat(carry, " rows into R of ", n, " columns, windows of ", block), ms);
    return ms;
  }
  /// Operations a nanosecond.
  double sweep_rate(double step, double column) {
    const Index n = 256, m = gpu_ ? 200000 : 8000;
    Options options;
    options.q = QForm::thin;
    UpdatableQR<T> f = updatable_qr(context_, filled(m, n), options);
    const double ms = rows_in(f, n, wide, 0), windows = static_cast<double>(n / wide);
    note(detail::concat(wide, " rows into a thin Q of ", m, " x ", n), ms);
    const double rest = ms - static_cast<double>(n) * column - (windows + 4) * step;
    return 2.0 * static_cast<double>(m) * (2 * wide) * (2 * wide) * windows / (std::max(rest, ms / 10) * 1e6);
  }

  /// One entry for a class of shapes and a form.
  void refactorizations(std::vector<Finding>& findings) {
    const Index most = bench_.trials.most_elements();
    for (const Shape shape : {Shape::skinny, Shape::tall, Shape::square})
      for (const QForm q : {QForm::thin, QForm::none}) {
        const Index n = shape == Shape::skinny ? 128 : gpu_ ? 1024 : 256;
        const Index m = std::min<Index>(most / n, shape == Shape::square ? n : gpu_ ? 32 * n : 8 * n);
        if (bench_.stop() || m < (shape == Shape::square ? n : 4 * n)) continue;
        const Case c{m, n, q, Algorithm::automatic};
        const plan::DeviceProfile device{context_.backend(), context_.engine()->limits(sizeof(T)), bench_.tables};
        const Key key{sizeof(T), shape, q};
        const double now = bench_.tables->look_up_update(key).refactor_percent;
        const double predicted = update::predicted_qr_ms(device, m, n, q, 1, sizeof(T)) * 100 / now;
        const double ms = bench_.trials.time(c, bench_.tables, 1e9).ms;
        Finding finding;
        finding.entry = {static_cast<int>(sizeof(T)), shape, q, {}, "", Operation::update};
        finding.entry.parameters.emplace_back("refactor_percent",
                                              std::clamp<std::int64_t>(std::llround(100 * ms / predicted), 1, 10000));
        finding.evidence.push_back({to_string(c), {{"predicted", predicted}, {"measured", ms}}, ""});
        bench_.tables = with_entry(*bench_.tables, finding.entry);
        findings.push_back(std::move(finding));
      }
  }

  /// Well-conditioned enough to be timed: a column is a window of one sequence, whose period is a prime.
  Matrix<T> filled(Index rows, Index cols) {
    constexpr Index period = 100'003;
    std::vector<T> values(static_cast<std::size_t>(rows * cols));
    std::uint64_t state = 88172645463325252ULL;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i >= static_cast<std::size_t>(period)) {
        values[i] = values[i - static_cast<std::size_t>(period)];
        continue;
      }
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      values[i] = static_cast<T>(static_cast<double>(state >> 11) * 0x1p-52 - 1);
    }
    Matrix<T> a = context_.allocate<T>(rows, cols);
    context_.copy<T>(MatrixView<const T>(values.data(), rows, cols, rows), a.view());
    return a;
  }

  Bench& bench_;
  Context context_;
  bool gpu_;
  Finding finding_;
};

}  // namespace

std::vector<Finding> measure_updates(Bench& bench, const Context& context) {
  if (bench.stop()) return {};
  const std::shared_ptr<const Tables> tables = bench.tables;
  context.engine()->set_tuning(tables);
  std::vector<Finding> findings = bench.trials.scalar_bytes() == 4 ? Constants<float>(bench, context).run()
                                                                   : Constants<double>(bench, context).run();
  if (!findings.empty()) {
    std::string found;
    for (const auto& [name, value] : findings.front().entry.parameters)
      found += detail::concat(found.empty() ? "" : ", ", name, " ", value);
    bench.say("updates: " + found);
  }
  return findings;
}

}  // namespace qrane::tuning
