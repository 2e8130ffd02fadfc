// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "machine.hpp"
#include "report.hpp"

namespace qrane::bench {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

/// Four significant digits without an exponent: 0.01234, 12.34, 1234.
std::string milliseconds(double ms) {
  const int decimals = ms >= 1000 ? 0 : ms >= 100 ? 1 : ms >= 10 ? 2 : ms >= 1 ? 3 : 4;
  return format("%.*f", decimals, ms);
}

std::string measure(double value) { return value < 0 ? "-" : format("%.2g", value); }

int peer_width(const std::string& peer) { return std::max(8, static_cast<int>(peer.size())); }

void print_ratios(const std::vector<PeerTime>& peers) {
  for (const PeerTime& peer : peers) {
    const std::string ratio = peer.samples_ms.empty() ? "-" : format(peer.ratio < 10 ? "%.2fx" : "%.1fx", peer.ratio);
    std::printf(" %*s", peer_width(peer.peer), ratio.c_str());
  }
}

/// The end of a row that has no time.
template <class Case>
void print_absence(const Case& result) {
  std::printf("%s: %s\n", result.outcome == Outcome::failed ? "FAILED" : "left out", result.reason.c_str());
}

std::string rank_or_dash(const BackgroundCase& result) {
  return result.convergence.empty() ? "-" : std::to_string(result.rank);
}

}  // namespace

void print_head(const BenchResults& results) {
  std::printf("qrane bench %s: %s, %s (%s), sources %s\n", results.suite.c_str(), results.device.name.c_str(),
              to_string(results.device.backend), results.device.driver.c_str(), source_commit().c_str());
  for (const PeerProgramStatus& program : results.programs)
    if (program.available)
      std::printf("peers: %s, %s\n", program.program.c_str(), program.version.c_str());
    else
      std::printf("peers: none (%s: %s)\n", program.program.c_str(), program.reason.c_str());
}

void Table::print_heading(const std::string& table, const std::string& words, const std::string& task) {
  if (heading_ == table) return;
  heading_ = table;
  std::printf("\n%s", words.c_str());
  if (!task.empty())
    for (const std::string& peer : task == "qr" ? session_.qr_peers() : session_.peers(task))
      std::printf(" %*s", peer_width(peer), peer.c_str());
  std::printf("\n");
}

void Table::add(const QrCase& result) {
  if (quiet()) return;
  print_heading("qr",
                format("%9s %5s %4s %-8s %-22s %10s %9s %8s %8s %10s %6s", "rows", "cols", "prec", "mode", "algorithm",
                       "ms", "GFLOP/s", "orthog.", "residual", "floor ms", "floor"),
                "qr");
  std::printf("%9lld %5lld %4s %-8s ", static_cast<long long>(result.shape.rows),
              static_cast<long long>(result.shape.cols), result.precision.c_str(), mode_name(result.mode));
  if (result.samples_ms.empty()) {
    print_absence(result);
  } else {
    const std::string stage = result.stage.empty() ? "" : "/" + result.stage;
    const std::string named = result.asked == "automatic" ? "" : ", named";
    const std::string algorithm = result.algorithm + stage + (result.fell_back ? "*" : "") + named;
    std::printf("%-22s %10s %9.1f %8s %8s %10s %5.1f%%", algorithm.c_str(), milliseconds(result.median_ms()).c_str(),
                result.gflops(), measure(result.errors.orthogonality).c_str(), measure(result.errors.residual).c_str(),
                milliseconds(result.floor.ms).c_str(), 100 * result.floor.ms / result.median_ms());
    print_ratios(result.peers);
    std::printf("%s\n", result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  }
  std::fflush(stdout);
}

void Table::add(const OperationCase& result) {
  if (quiet()) return;
  const OperationShape& operation = result.operation;
  print_heading(operation.operation,
                format("%-8s %9s %5s %7s %4s %-11s %10s %9s %8s %10s %6s", "what", "rows", "cols",
                       operation.operation == "batched" ? "count" : "rhs", "prec", "algorithm", "ms", "GFLOP/s",
                       "error", "floor ms", "floor"),
                operation.operation);
  const bool batch = operation.operation == "batched";
  std::printf("%-8s %9lld %5lld %7lld %4s ", batch ? mode_name(operation.mode) : operation.operation.c_str(),
              static_cast<long long>(operation.shape.rows), static_cast<long long>(operation.shape.cols),
              static_cast<long long>(batch ? operation.count : operation.rhs), result.precision.c_str());
  if (result.samples_ms.empty()) {
    print_absence(result);
  } else {
    double worst = -1;
    for (const NamedError& error : result.errors) worst = worse(worst, error.value);
    std::printf("%-11s %10s %9.1f %8s %10s %5.1f%%", result.algorithm.c_str(), milliseconds(result.median_ms()).c_str(),
                result.flops / result.median_ms() * 1e-6, measure(worst).c_str(), milliseconds(result.floor.ms).c_str(),
                100 * result.floor.ms / result.median_ms());
    print_ratios(result.peers);
    std::printf("%s\n", result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  }
  std::fflush(stdout);
}

void Table::add(const GridCase& result) {
  if (quiet()) return;
  print_heading("grid",
                format("%9s %5s %4s %-11s %10s %6s %10s %10s %10s %10s %9s", "rows", "cols", "prec", "automatic", "ms",
                       "floor", "caqr", "cholesky_qr", "blocked", "tsqr", "peer"),
                "");
  std::printf("%9lld %5lld %4s ", static_cast<long long>(result.shape.rows), static_cast<long long>(result.shape.cols),
              result.precision.c_str());
  if (result.times.empty() || result.times[0].samples_ms.empty()) {
    print_absence(result);
  } else {
    const double ms = median(result.times[0].samples_ms);
    std::printf("%-11s %10s %5.1f%%", result.times[0].ran.c_str(), milliseconds(ms).c_str(),
                100 * result.floor.ms / ms);
    for (const char* name : {"caqr", "cholesky_qr", "blocked", "tsqr"}) {
      std::string text = "-";
      for (const AlgorithmTime& time : result.times)
        if (time.algorithm == name && !time.samples_ms.empty()) text = milliseconds(median(time.samples_ms));
      std::printf(" %10s", text.c_str());
    }
    for (const PeerTime& peer : result.peers)
      std::printf(" %8s", peer.samples_ms.empty() ? "-" : format("%.2fx", peer.ratio).c_str());
    std::printf("%s\n", result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  }
  std::fflush(stdout);
}

void Table::add(const KernelCase& result) {
  if (quiet()) return;
  print_heading("kernels",
                format("%-20s %4s %4s %8s %9s %10s %6s %8s %12s", "layout", "rows", "cols", "blocks", "ms", "GFLOP/s",
                       "floor", "error", "transpose ms"),
                "");
  std::printf("%-20s %4d %4d %8lld ", result.layout.c_str(), result.rows, result.cols,
              static_cast<long long>(result.blocks));
  if (result.samples_ms.empty()) {
    print_absence(result);
  } else {
    const double ms = median(result.samples_ms);
    std::printf("%9s %10.1f %5.1f%% %8.1e %12s%s\n", milliseconds(ms).c_str(), result.gflops(),
                100 * result.floor.ms / ms, result.error,
                result.transpose_ms > 0 ? milliseconds(result.transpose_ms).c_str() : "-",
                result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  }
  std::fflush(stdout);
}

void Table::add(const BackgroundCase& result) {
  if (quiet()) return;
  print_heading("background",
                format("%9s %5s %4s %-14s %10s %13s %8s %10s %6s %10s %6s %5s", "rows", "cols", "prec", "method",
                       "ms/iter.", "iterations/s", "GFLOP/s", "floor ms", "floor", "iterations", "resid.", "rank"),
                "");
  std::printf("%9lld %5lld %4s %-14s ", static_cast<long long>(result.shape.rows),
              static_cast<long long>(result.shape.cols), result.precision.c_str(), result.method.c_str());
  if (result.samples_ms.empty()) {
    print_absence(result);
  } else {
    const double ms = median(result.samples_ms);
    std::printf(
        "%10s %13.1f %8.1f %10s %5.1f%% %10s %6.0e %5s%s\n", milliseconds(ms).c_str(), result.iterations_per_second(),
        result.flops / ms * 1e-6, milliseconds(result.floor.ms).c_str(), 100 * result.floor.ms / ms,
        format("%s%zu", result.converged ? "" : ">", result.convergence.size()).c_str(), result.residual,
        rank_or_dash(result).c_str(), result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
    std::printf("%9s data: %s\n", "", result.data.c_str());
    for (const PeerTime& peer : result.peers)
      if (!peer.samples_ms.empty())
        std::printf("%9s %-18s %10.1f iterations/s, %.2fx\n", "", peer.peer.c_str(), 1e3 / median(peer.samples_ms),
                    peer.ratio);
  }
  std::fflush(stdout);
}

void Table::add(const UpdateCase& result) {
  if (quiet()) return;
  const UpdateShape& update = result.update;
  print_heading("updates",
                format("%-14s %-14s %7s %5s %5s %6s %-8s %4s %-11s %9s %9s %8s %8s %8s %8s %9s", "figure", "change",
                       "rows", "cols", "k", "p", "mode", "prec", "method", "ms", "predicted", "error", "refactor",
                       "cusolver", "paper's", "protocol"),
                "");
  std::printf("%-14s %-14s %7lld %5lld %5lld %6lld %-8s %4s ", update.figure.c_str(), to_string(update.change),
              static_cast<long long>(update.shape.rows), static_cast<long long>(update.shape.cols),
              static_cast<long long>(update.k), static_cast<long long>(update.p), mode_name(update.form),
              result.precision.c_str());
  if (result.times.empty() || result.times.front().ran.empty()) {
    print_absence(result);
  } else if (update.kind == UpdateKind::accuracy) {
    for (const UpdateTime& time : result.times) {
      std::printf(" %s:", time.method.c_str());
      for (const NamedError& error : time.accuracy) std::printf(" %s %.1e", error.name.c_str(), error.value);
    }
    std::printf("%s\n", result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  } else {
    const auto times_over = [](double ratio) { return ratio > 0 ? format("%.2fx", ratio) : std::string("-"); };
    const UpdateTime& first = result.times.front();
    double cusolver = 0, paper = 0;
    for (const PeerTime& peer : result.peers)
      if (peer.peer == "cusolver") cusolver = peer.ratio;
    for (const UpdateTime& time : result.times)
      if (time.method == "paper" && !time.samples_ms.empty()) paper = median(time.samples_ms) / result.median_ms();
    const double protocol =
        result.protocol_ms.empty() ? 0 : median(result.full_protocol_ms) / median(result.protocol_ms);
    std::printf("%-11s %9s %9s %8s %8s %8s %8s %9s", first.ran.c_str(), milliseconds(result.median_ms()).c_str(),
                first.predicted_ms < 0 ? "-" : milliseconds(first.predicted_ms).c_str(),
                measure(worse(first.errors.residual, first.errors.orthogonality)).c_str(),
                times_over(result.speed_up()).c_str(), times_over(cusolver).c_str(), times_over(paper).c_str(),
                times_over(protocol).c_str());
    if (result.steps > 0) std::printf("  %.0f steps/s", 1e3 / result.median_ms());
    std::printf("%s\n", result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  }
  std::fflush(stdout);
}

void Table::add(const SparseCase& result) {
  if (quiet()) return;
  print_heading("sparse",
                format("%-22s %8s %7s %9s %-7s %7s %9s %9s %9s %6s %7s %9s %9s %9s %8s %4s %10s %8s %8s %8s", "matrix",
                       "rows", "cols", "entries", "order", "fronts", "GFlop", "intensity", "analyze", "rank", "", "ms",
                       "refactor", "solve", "GFLOP/s", "on", "spqr ms", "speed-up", "memory", "error"),
                "");
  std::printf("%-22s ", result.name.c_str());
  const sparse::AnalysisFacts& facts = result.analysis;
  const SparseRun* const run = result.main_run();
  if (!run) {
    print_absence(result);
    std::fflush(stdout);
    return;
  }
  std::printf("%8lld %7lld %9lld %-7s %7lld %9.4g %9.1f %9s %6lld ", static_cast<long long>(facts.rows),
              static_cast<long long>(facts.cols), static_cast<long long>(facts.entries),
              sparse::to_string(facts.ordering), static_cast<long long>(facts.fronts), facts.flops * 1e-9,
              facts.intensity, milliseconds(median(result.analyze_ms)).c_str(), static_cast<long long>(run->rank));
  const double ms = median(run->numeric_ms);
  std::printf("%7s %9s %9s %9s %8.1f %4s ", run->precision.c_str(), milliseconds(ms).c_str(),
              milliseconds(median(run->refactor_ms)).c_str(), milliseconds(median(run->solve_ms)).c_str(),
              facts.flops / ms * 1e-6, to_string(run->backend));
  if (const SparsePeer* const best = result.best_peer()) {
    double resident = 0;
    for (const NamedError& fact : best->facts)
      if (fact.name == "resident_bytes") resident = fact.value;
    std::printf("%10s %7.2fx %8s ", milliseconds(median(best->factor_ms)).c_str(), median(best->factor_ms) / ms,
                resident > 5e6 && run->resident_bytes >= 0
                    ? format("%.2fx", static_cast<double>(run->resident_bytes) / resident).c_str()
                    : "-");
  } else {
    std::printf("%10s %8s %8s ", "-", "-", "-");
  }
  std::printf("%8.1e%s\n", run->normal_error,
              result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  for (const SparseRun& other : result.runs)
    if (&other != run && !other.numeric_ms.empty())
      std::printf("%-22s %86s %6lld %7s %9s %9s %9s %8.1f %4s %38.1e\n", "", "", static_cast<long long>(other.rank),
                  other.precision.c_str(), milliseconds(median(other.numeric_ms)).c_str(),
                  milliseconds(median(other.refactor_ms)).c_str(), milliseconds(median(other.solve_ms)).c_str(),
                  facts.flops / median(other.numeric_ms) * 1e-6, to_string(other.backend), other.normal_error);
  std::fflush(stdout);
}

void Table::add(const SparseUsesCase& result) {
  if (quiet()) return;
  const auto time = [](const std::vector<double>& samples) {
    return samples.empty() ? std::string("-") : milliseconds(median(samples));
  };
  const auto mebibytes = [](Index bytes) {
    return bytes < 0 ? std::string("-") : format("%.1f", static_cast<double>(bytes) / (1 << 20));
  };
  std::printf("\n%s, %s: ", result.name.c_str(), result.precision.c_str());
  if (result.limits.empty()) return print_absence(result);
  std::printf("%lld x %lld, ", static_cast<long long>(result.analysis.rows),
              static_cast<long long>(result.analysis.cols));
  std::printf("rank %lld; ms: refactor %s, Q kept %s (%s MiB), by the host's cores %s, spqr %s%s\n",
              static_cast<long long>(result.rank), time(result.refactor_ms).c_str(), time(result.keep_ms).c_str(),
              mebibytes(result.keep_bytes).c_str(), time(result.host_ms).c_str(), time(result.peer_ms).c_str(),
              result.outcome == Outcome::failed ? ("  FAILED: " + result.reason).c_str() : "");
  std::printf("  %-22s %10s %10s %10s %10s %10s %7s\n", "memory", "limit MiB", "ms", "peak MiB", "measured",
              "moved MiB", "stages");
  for (const SparseLimit& limit : result.limits) {
    std::printf("  %-22s %10s ", limit.limit_bytes == 0 ? "no limit" : format("%.3f", limit.share).c_str(),
                limit.limit_bytes == 0 ? "" : mebibytes(limit.limit_bytes).c_str());
    if (limit.samples_ms.empty())
      std::printf("%s\n", limit.reason.c_str());
    else
      std::printf("%10s %10s %10s %10s %7d%s\n", time(limit.samples_ms).c_str(), mebibytes(limit.peak_bytes).c_str(),
                  mebibytes(limit.measured_bytes).c_str(), mebibytes(limit.moved_bytes).c_str(), limit.stages,
                  limit.same_bits ? "" : "  other bits");
  }
  std::printf("  %-22s %5s %10s %10s %10s %10s %9s\n", "use", "rhs", "device ms", "from host", "host ms", "spqr ms",
              "error");
  for (const SparseUse& use : result.uses)
    std::printf("  %-22s %5lld %10s %10s %10s %10s %9s%s\n", use.use.c_str(), static_cast<long long>(use.rhs),
                time(use.device_ms).c_str(), time(use.transfer_ms).c_str(), time(use.host_ms).c_str(),
                time(use.peer_ms).c_str(), measure(use.error).c_str(),
                use.use != "refine" ? ""
                                    : format("  %d iterations%s, factored in %s ms", use.iterations,
                                             use.converged ? "" : ", not converged", time(result.single_ms).c_str())
                                          .c_str());
  std::fflush(stdout);
}

void Table::add(const TileCase& result) {
  if (quiet()) return;
  print_heading("tiles",
                format("%-22s %8s %7s %4s %6s %-9s %7s %10s %9s %10s %10s %8s", "tasks or matrix", "rows", "cols",
                       "prec", "bundle", "schedule", "rounds", "ms", "GFLOP/s", "executed", "plan ms", "MiB"),
                "");
  std::printf("%-22s %8lld %7lld %4s ", result.name.c_str(), static_cast<long long>(result.rows),
              static_cast<long long>(result.cols), result.precision.c_str());
  if (result.samples_ms.empty()) {
    print_absence(result);
  } else {
    const double ms = median(result.samples_ms);
    std::printf("%6d %-9s ", result.bundle, !result.tree ? "flood" : result.pipelined ? "pipelined" : "plain");
    if (result.tree)
      std::printf("%7lld %10s %9.1f %10.1f %10s %8.1f\n", static_cast<long long>(result.rounds),
                  milliseconds(ms).c_str(), result.gflops(), result.executed_flops / ms * 1e-6,
                  milliseconds(result.plan_ms).c_str(), static_cast<double>(result.bytes) / (1 << 20));
    else
      std::printf("%7s %10s %9.1f\n", "", milliseconds(ms).c_str(), result.gflops());
  }
  std::fflush(stdout);
}

void print_foot(const BenchResults& results) {
  std::printf("\n");
  for (const PrecisionRates& known : results.rates)
    std::printf("%s: %s: %.1f GFLOP/s, copy %.1f GB/s\n", known.precision.c_str(), known.rates.source.c_str(),
                known.rates.gemm_gflops, known.rates.copy_gbytes);
  if (!results.cases.empty() || !results.operations.empty())
    std::printf(
        "errors in units of (min(m,n) + 10) u, limit 30; floor %%: share of what the rates allow; "
        "a peer's column: its time over qrane's\n");
  if (!results.updates.empty())
    std::printf(
        "errors in units of (min(m,n) + 10) u, limit 30; refactor, cusolver, paper's: the time of qrane's "
        "factorization of "
        "the updated matrix, of cuSOLVER's, of the method paper over the update's; protocol: the same, with transfers "
        "and "
        "the solution\n");
  if (!results.sparse.empty())
    std::printf(
        "ms: values to R, Q discarded; spqr: SuiteSparseQR with the faster of METIS and its default ordering, speed-up "
        "its "
        "time over qrane's, memory qrane's over its; error: |A'(b - A x)| / (|A| |b|)\n");
  if (!results.sparse_uses.empty())
    std::printf(
        "memory: factorizations with Q discarded; device: right-hand sides in its memory, from host: in the host's; "
        "host, "
        "spqr: factored and used there\n");
  for (const QrCase& result : results.cases)
    if (result.fell_back) {
      std::printf("*: a guard handed over to Householder reflections\n");
      break;
    }
  for (const Crossover& line : crossovers(results.grid))
    std::printf("%s, %lld rows: %s overtakes %s at %.0f columns\n", line.precision.c_str(),
                static_cast<long long>(line.rows), line.wide.c_str(), line.narrow.c_str(), line.cols);
  if (results.interrupted) std::printf("interrupted: the cases above are all there is\n");
}

}  // namespace qrane::bench
