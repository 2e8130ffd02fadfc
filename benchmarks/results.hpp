// SPDX-License-Identifier: Apache-2.0
// What a run of `qrane bench` finds out, as plain values. json_report.cpp writes all of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <qrane/qr.hpp>
#include <qrane/sparse_qr.hpp>

#include "check.hpp"
#include "common/host_rates.hpp"
#include "suites/suites.hpp"

namespace qrane::bench {

/// Median of the samples; 0 for none.
inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

/// The larger of two error measures; NaN where either is.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// "r", "thin", "full", "implicit" or "lapack": what is asked for, as tables and files name it.
inline const char* mode_name(QForm mode) {
  switch (mode) {
    case QForm::none: return "r";
    case QForm::thin: return "thin";
    case QForm::full: return "full";
    case QForm::lapack: return "lapack";
    default: return "implicit";
  }
}

enum class Outcome { measured, left_out, failed };

/// One peer's time for the same result from the same matrix.
struct PeerTime {
  std::string peer;
  std::vector<double> samples_ms;  ///< empty when absent
  double ratio = 0;                ///< its median over qrane's: above 1, qrane is faster
  std::string reason;              ///< why there are no samples
};

/// The least time the device could take: max(flops / GEMM rate, bytes / copy rate).
struct Floor {
  double ms = 0;
  double flops = 0;
  double bytes = 0;
  bool by_bytes = false;
};

struct NamedError {
  std::string name;
  double value = 0;
};

struct QrCase {
  Shape shape;
  std::string precision;
  QForm mode = QForm::none;
  double condition = 1;       ///< that the matrix was made with; 1: uniform numbers
  double condition_of_r = 0;  ///< found in R where condition > 1: ratio of its outer singular values
  Outcome outcome = Outcome::measured;
  std::string reason;     ///< of left_out and failed
  std::string asked;      ///< algorithm asked for
  std::string algorithm;  ///< that ran
  std::string plan;       ///< Plan::explain
  std::string stage;      ///< of cholesky_qr that answered, empty for other algorithms
  bool fell_back = false;
  std::vector<double> samples_ms;  ///< of QR::refactor
  std::vector<double> call_ms;     ///< of one call of qr()
  double flops = 0;                ///< canonical, of the asked-for output
  ErrorMeasures errors;
  Floor floor;
  std::vector<PeerTime> peers;

  double median_ms() const { return median(samples_ms); }
  double gflops() const { return samples_ms.empty() ? 0 : flops / median_ms() * 1e-6; }
};

/// A public call that uses a factorization: "svd" or "gels".
struct OperationCase {
  OperationShape operation;
  std::string precision;
  Outcome outcome = Outcome::measured;
  std::string reason;
  std::string algorithm;  ///< of the factorization inside, as planned
  std::string plan;       ///< Plan::explain of that
  std::vector<double> samples_ms;
  double flops = 0;                ///< canonical
  std::vector<NamedError> errors;  ///< each in units with limit 30
  Floor floor;
  std::vector<PeerTime> peers;

  double median_ms() const { return median(samples_ms); }
};

/// One algorithm's time at one size.
struct AlgorithmTime {
  std::string algorithm;  ///< as asked for
  std::string ran;        ///< as planned: another one for automatic
  std::vector<double> samples_ms;
  double difference = -1;  ///< of its R from the first's, in units of (min(m, n) + 10) u; negative: not looked at
  std::string reason;      ///< why there are no samples
};

/// One size of the grid, R alone: the automatic choice first, then each algorithm by name.
struct GridCase {
  Shape shape;
  std::string precision;
  Outcome outcome = Outcome::measured;
  std::string reason;
  double flops = 0;
  Floor floor;
  std::vector<AlgorithmTime> times;
  std::vector<PeerTime> peers;  ///< ratio: to the automatic choice
};

/// The width from which `wide` is faster than `narrow`, between two sizes of the grid by logarithms.
struct Crossover {
  std::string precision;
  Index rows = 0;
  std::string narrow, wide;
  double cols = 0;
};

/// The paper's inner kernel in one layout at one block shape, single precision (kernels/inner.hpp).
struct KernelCase {
  std::string layout;
  int rows = 0, cols = 0;
  Index blocks = 0;
  Outcome outcome = Outcome::measured;
  std::string reason;
  std::vector<double> samples_ms;
  double flops = 0;
  double error = 0;         ///< largest difference from the host's result
  double transpose_ms = 0;  ///< of all blocks, where the layout wants them transposed
  Floor floor;

  double gflops() const { return samples_ms.empty() ? 0 : flops / median(samples_ms) * 1e-6; }
};

/// An update by one method.
struct UpdateTime {
  std::string method;        ///< as asked for
  std::string ran;           ///< another one for automatic
  double predicted_ms = -1;  ///< of the one that ran, by the cost model; negative: none
  std::vector<double> samples_ms;
  ErrorMeasures errors;              ///< of the updated factorization
  std::vector<UpdateStage> stages;   ///< medians, where they were asked for
  std::vector<NamedError> accuracy;  ///< kind accuracy: the paper's measures
  std::string reason;                ///< why there are no samples
};

/// One update, or a window of them.
struct UpdateCase {
  UpdateShape update;
  std::string precision;
  Outcome outcome = Outcome::measured;
  std::string reason;
  std::vector<UpdateTime> times;            ///< by method; the first is compared
  std::vector<UpdateCandidate> candidates;  ///< what the cost model said before it
  std::vector<double> refactor_ms;          ///< the updated matrix factored anew by qrane, in the same form
  std::string refactor_algorithm;
  Floor floor;
  std::vector<PeerTime> peers;           ///< the updated matrix factored anew, or a library's update of it
  std::vector<double> protocol_ms;       ///< by the paper's protocol: transfers of the factors, update, solution
  std::vector<double> transfer_ms;       ///< of those, the transfers
  std::vector<double> full_protocol_ms;  ///< transfers of the updated matrix, least squares
  Index steps = 0;                       ///< of a window, in each sample
  Index refreshed = 0;                   ///< how often it was factored anew, over all samples

  double median_ms() const { return times.empty() ? 0 : median(times.front().samples_ms); }
  /// Above 1, updating is faster; 0 where one was not measured.
  double speed_up() const { return refactor_ms.empty() || median_ms() == 0 ? 0 : median(refactor_ms) / median_ms(); }
};

struct ConvergencePoint {
  int iteration = 0;
  double residual = 0;
  Index rank = 0;
  double seconds = 0;
};

struct BackgroundCase {
  Shape shape;
  std::string precision;
  std::string method;  ///< "inexact_alm", "alternating", "caqr pipeline" or "blas2 pipeline"
  std::string data;    ///< where the frames came from
  Outcome outcome = Outcome::measured;
  std::string reason;
  int iterations_per_sample = 0;
  std::vector<double> samples_ms;  ///< per iteration
  double flops = 0;                ///< of one iteration
  Floor floor;                     ///< of one iteration
  double tolerance = 0;            ///< of the run below
  bool converged = false;
  double residual = 0;  ///< of the run below, evaluated on the host in double
  Index rank = 0;
  std::vector<ConvergencePoint> convergence;
  std::vector<PeerTime> peers;  ///< samples per iteration

  double iterations_per_second() const { return samples_ms.empty() ? 0 : 1e3 / median(samples_ms); }
};

/// Sparse QR with Q discarded and one right-hand side, in one precision.
struct SparseRun {
  std::string precision;
  std::string reason;  ///< why there are no samples
  Backend backend = Backend::cpu;
  int threads = 0;
  std::vector<double> numeric_ms;   ///< values in to R on the host, memory taken anew
  std::vector<double> refactor_ms;  ///< the same with other values, in the memory that is there
  std::vector<double> solve_ms;     ///< R x = Qᵀ b
  std::vector<double>
      undetected_ms;  ///< numeric_ms with rank detection off; matrices of files and the paper, in double
  Index rank = 0;
  double tolerance = 0;
  double dropped_norm = 0;
  Index peak_bytes = 0;       ///< of fronts and R, as the factorization counts them
  Index moved_bytes = 0;      ///< between host and device
  Index resident_bytes = -1;  ///< what analysis, factorization and solution added to the process at most; -1: unknown
  double normal_error = -1;   ///< common/sparse_exchange.hpp
  double gram_error = -1;     ///< the same
};

/// SuiteSparseQR with one ordering.
struct SparsePeer {
  std::string ordering;
  std::string reason;  ///< why there are no samples
  std::vector<double> analyze_ms, factor_ms, total_ms;
  std::vector<NamedError> facts;  ///< as common/protocol.hpp names them
};

/// The analysis alone with one ordering, on one thread.
struct AnalysisTime {
  std::string ordering;
  double flops = 0;
  std::vector<double> samples_ms, peer_ms;
};

struct SparseCase {
  std::string name, source, paper;  ///< SparseProblem
  Outcome outcome = Outcome::measured;
  std::string reason;
  sparse::AnalysisFacts analysis;
  std::vector<double> analyze_ms;
  std::vector<SparseRun> runs;  ///< by precision
  std::vector<SparsePeer> peers;
  std::vector<AnalysisTime> orderings;

  /// The run in double, or the only one; null for none.
  const SparseRun* main_run() const {
    const SparseRun* found = nullptr;
    for (const SparseRun& run : runs)
      if (!run.numeric_ms.empty() && (!found || run.precision == "f64")) found = &run;
    return found;
  }
  /// The peer's faster ordering; null for none.
  const SparsePeer* best_peer() const {
    const SparsePeer* best = nullptr;
    for (const SparsePeer& peer : peers)
      if (!peer.factor_ms.empty() && (!best || median(peer.factor_ms) < median(best->factor_ms))) best = &peer;
    return best;
  }
};

/// What is asked of sparse factors that are there, for some right-hand sides.
struct SparseUse {
  std::string use;  ///< benchmarks/README.md names them
  Index rhs = 1;
  std::vector<double> device_ms;    ///< by the device, right-hand sides and results in its memory
  std::vector<double> transfer_ms;  ///< by the device, both in host memory
  std::vector<double> host_ms;      ///< by the host's cores, factored there, too
  std::vector<double> peer_ms;
  double error = -1;      ///< of the device's; negative: not looked at
  int iterations = 0;     ///< refine
  bool converged = true;  ///< the same
};

/// Factorization with Q discarded in so much memory.
struct SparseLimit {
  double share = 1;                ///< of what is taken without a limit, asked for
  Index limit_bytes = 0;           ///< 0: none
  std::string reason;              ///< why there are no samples
  std::vector<double> samples_ms;  ///< memory taken anew
  Index peak_bytes = 0;            ///< as the factorization counts them
  Index measured_bytes = -1;       ///< by which the device's free memory fell at most; -1: unknown
  Index moved_bytes = 0;           ///< between host and device
  int stages = 1;
  bool same_bits = true;  ///< R of the first
};

/// What the factors of a sparse matrix are used for, on a device that holds them, in one precision.
struct SparseUsesCase {
  std::string name, source, paper;  ///< SparseProblem
  std::string precision;
  Outcome outcome = Outcome::measured;
  std::string reason;
  sparse::AnalysisFacts analysis;
  Index rank = 0;
  std::vector<SparseLimit> limits;  ///< none first
  std::vector<double> refactor_ms;  ///< without a limit, from the third on, as a loop does
  std::vector<double> keep_ms;      ///< values to R, Q kept on the device
  Index keep_bytes = 0;             ///< then
  std::vector<double> single_ms;    ///< in float, for refine
  std::vector<double> host_ms;      ///< on the host's cores, Q kept
  std::vector<double> peer_ms;      ///< the same by the peer
  std::string peer_reason;          ///< why that has none
  std::vector<SparseUse> uses;

  double median_ms() const { return limits.empty() ? 0 : median(limits.front().samples_ms); }
};

/// The sparse paper's tile tasks (paper/tiles/tile_factor.hpp): one kind of task flooding the device, or a matrix's tree.
struct TileCase {
  std::string name;  ///< "Factorize", "Apply", or the matrix
  bool tree = false;
  std::string precision;
  bool pipelined = false;    ///< tree
  int bundle = 0;            ///< row tiles of a bundle
  Index rows = 0, cols = 0;  ///< of one task, or of the matrix
  Outcome outcome = Outcome::measured;
  std::string reason;
  std::vector<double> samples_ms;  ///< tree: values to R, both in device memory
  double flops = 0;                ///< canonical
  double executed_flops = 0;       ///< tree: of whole tiles
  double plan_ms = 0;              ///< tree: all rounds, once for a pattern
  Index rounds = 0, bytes = 0;     ///< tree: launches, device memory

  double gflops() const { return samples_ms.empty() ? 0 : flops / median(samples_ms) * 1e-6; }
};

struct PeerProgramStatus {
  std::string program;
  bool available = false;
  std::string version;
  std::string reason;  ///< why it is not available
};

struct PrecisionRates {
  std::string precision;
  Rates rates;
};

struct BenchResults {
  std::string suite;
  std::string date;
  bool interrupted = false;
  DeviceInfo device;
  std::vector<PrecisionRates> rates;
  std::vector<PeerProgramStatus> programs;
  double elapsed_seconds = 0;
  std::vector<QrCase> cases;
  std::vector<OperationCase> operations;
  std::vector<GridCase> grid;
  std::vector<KernelCase> kernels;
  std::vector<BackgroundCase> background;
  std::vector<UpdateCase> updates;
  std::vector<SparseCase> sparse;
  std::vector<SparseUsesCase> sparse_uses;
  std::vector<TileCase> tiles;
};

}  // namespace qrane::bench
