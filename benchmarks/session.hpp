// SPDX-License-Identifier: Apache-2.0
// What all cases of one run share: the device and its rates, the peer programs, progress, and when to stop.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peer_client.hpp"
#include "results.hpp"
#include "suites/sparse_problems.hpp"
#include "suites/suites.hpp"

namespace qrane::bench {

/// A measurement that peers are asked for (common/protocol.hpp).
struct PeerTask {
  std::string task;  ///< "qr", "rivals", "svd", "gels", "batched", "rpca", "update", "window", "sparse", "sparse-uses"
  Shape shape;
  std::string precision;
  std::uint64_t seed = 0;
  double condition = 1;    ///< of the matrix
  Index count = 1;         ///< batched: matrices
  Index rhs = 0;           ///< gels, sparse-uses: right-hand sides
  int form_q = 0;          ///< qr, update: 1: the thin Q too, 2: the full one
  double max_seconds = 0;  ///< less than peers usually get beside a GPU; 0: that
  int repeats = 5;
  std::string more = "";  ///< further words of the request
};

class Session {
 public:
  Session(const BenchOptions& options, const SuiteInfo& suite);

  const BenchOptions& options() const { return options_; }
  const Context& context() const { return context_; }
  const DeviceInfo& device() const { return device_; }
  bool on_gpu() const { return device_.is_gpu; }

  /// This device's GEMM and copy rates, measured on first use.
  const Rates& rates(const std::string& precision);
  /// Programs that were looked for, and what became of them.
  const std::vector<PeerProgramStatus>& programs() const { return programs_; }
  const std::vector<PrecisionRates>& measured_rates() const { return rates_; }

  /// Peers that know a task.
  std::vector<std::string> peers(const std::string& task) const;
  /// Peers of the suite's factorizations, rivals included; tables have a column for each.
  const std::vector<std::string>& qr_peers() const { return qr_peers_; }
  /// One peer's samples. Throws std::runtime_error with the reason when there are none.
  Message measure_peer(const std::string& peer, const PeerTask& task);

  /// A seeded matrix (common/seeded_matrix.hpp) in device memory; host memory of a processor.
  template <class T>
  Matrix<T> seeded(Shape shape, std::uint64_t seed, double condition = 1) const;

  /// Milliseconds of the work that `function` puts on the device's queue.
  double time_ms(const std::function<void()>& function) const;
  /// Warm-up, then at least 5 timed runs (more while they are short); fewer only when interrupted.
  std::vector<double> sample_ms(const std::function<void()>& function) const;

  Floor floor_for(const std::string& precision, double flops, double bytes);
  /// Why no further case is begun: the suite's time is spent. Empty while there is some.
  std::string out_of_time() const;
  double elapsed_seconds() const;
  /// Why one run of this many flops and bytes is not tried on this device, or empty.
  std::string too_long(const std::string& precision, double flops, double bytes);
  /// Why this much memory cannot be had on the host or the device, or empty.
  std::string too_large(std::int64_t host_bytes, std::int64_t device_bytes) const;

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// One line on a terminal's standard error, replaced by the next; an empty one clears it.
  void progress(const std::string& text) const;

 private:
  /// A program of peers: its process, begun again when it died over an earlier case.
  struct Program {
    std::string name, path;
    std::unique_ptr<PeerProcess> process;
    std::map<std::string, std::vector<std::string>> peers;  ///< by task
  };

  void start_peers(const SuiteInfo& suite);
  void greet(Program program);
  std::unique_ptr<PeerProcess> start_process(const std::string& path) const;
  Rates measure_device_rates(const std::string& precision);
  double copy_rate() const;
  void settle() const;
  double max_seconds() const;

  BenchOptions options_;
  Context context_;
  DeviceInfo device_;
  double budget_seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Program> running_;
  std::vector<std::string> qr_peers_;
  std::vector<PeerProgramStatus> programs_;
  std::vector<PrecisionRates> rates_;
};

/// Measures one shape in one precision, in all of the suite's modes; `report` gets each case as it is done.
void run_qr_cases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision,
                  const std::function<void(const QrCase&)>& report);

/// Measures every algorithm by name, R alone, at one size in one precision.
void run_grid_case(Session& session, Shape shape, const std::string& precision,
                   const std::function<void(const GridCase&)>& report);
/// Where blocked overtakes the fastest of the others ("tall"), caqr and cholesky_qr, caqr cholesky_qr, and cholesky_qr
/// tsqr along the columns, for each number of rows and precision of the grid where one does.
std::vector<Crossover> crossovers(const std::vector<GridCase>& grid);

/// Measures the layouts of the paper's inner kernel; nothing but a reason on devices other than CUDA's.
void run_kernel_cases(Session& session, const std::function<void(const KernelCase&)>& report);

/// Measures svd or gels at one shape in one precision.
void run_operation_case(Session& session, const OperationShape& operation, const std::string& precision,
                        const std::function<void(const OperationCase&)>& report);

/// Measures robust PCA at one shape in one precision by both methods.
void run_background_cases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision,
                          const std::function<void(const BackgroundCase&)>& report);

/// Measures one sparse matrix in these precisions.
SparseCase run_sparse_case(Session& session, const SparseProblem& problem, const std::vector<std::string>& precisions);

/// Measures what the factors of one sparse matrix are used for.
void run_sparse_uses_case(Session& session, const SparseProblem& problem, const std::string& precision,
                          const std::function<void(const SparseUsesCase&)>& report);

/// Measures the sparse paper's rounds of tile tasks; nothing but a reason on devices other than CUDA's.
void run_tile_cases(Session& session, const std::vector<SparseProblem>& problems,
                    const std::vector<std::string>& precisions, const std::function<void(const TileCase&)>& report);

/// Measures updates, one after the other; what several of them need is made once.
class UpdateRunner {
 public:
  explicit UpdateRunner(Session& session);
  ~UpdateRunner();
  void run(const UpdateShape& update, const std::string& precision,
           const std::function<void(const UpdateCase&)>& report);
  /// Gives back the memory of the matrix and factorization that the last case left for the next.
  void forget();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace qrane::bench
