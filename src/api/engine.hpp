// SPDX-License-Identifier: Apache-2.0
// From run-time choices to templates: a Context holds one Engine, and each backend instantiates one
// (cpu_engine.cpp, opencl_engine.cpp, cuda_engine.cpp) from api/backend_engine.hpp.
#pragma once

#include <functional>
#include <memory>

#include <qrane/context.hpp>
#include <qrane/least_squares.hpp>
#include <qrane/robust_pca.hpp>
#include <qrane/svd.hpp>

#include "api/pivoted_state.hpp"
#include "api/plan_state.hpp"
#include "api/state.hpp"
#include "cpu/queue/thread_pool.hpp"
#include "sparse/factors.hpp"
#include "tuning/table.hpp"

namespace qrane::detail {

/// What an engine does for one scalar type.
template <class T>
class ScalarEngine {
 public:
  virtual ~ScalarEngine() = default;
  virtual Matrix<T> allocate(Index rows, Index cols) = 0;
  virtual void copy(MatrixView<const T> source, MatrixView<T> target) = 0;
  virtual Plan plan(Index rows, Index cols, Index count, const Options& options) = 0;
  virtual std::unique_ptr<BatchState<T>> qr(BatchView<const T> a, const Options& options) = 0;
  virtual std::unique_ptr<BatchState<T>> qr_in_place(BatchView<T> a, const Options& options) = 0;
  /// From factors that are there: q thin or full.
  virtual std::unique_ptr<UpdatableState<T>> updatable(MatrixView<const T> q, MatrixView<const T> r, QForm form) = 0;
  virtual Solution<T> least_squares(MatrixView<const T> a, MatrixView<const T> b,
                                    const LeastSquaresOptions& options) = 0;
  virtual std::unique_ptr<PivotedState<T>> pivoted_qr(MatrixView<const T> a, const PivotOptions& options) = 0;
  virtual Svd<T> svd(MatrixView<const T> a, const SvdOptions& options) = 0;
  virtual std::unique_ptr<SvdPlanState<T>> svd_plan(Index rows, Index cols, const SvdOptions& options) = 0;
  virtual std::unique_ptr<LeastSquaresPlanState<T>> least_squares_plan(Index rows, Index cols, Index nrhs,
                                                                       const LeastSquaresOptions& options) = 0;
  virtual RobustPca<T> robust_pca(MatrixView<const T> m, const RobustPcaOptions& options) = 0;
  /// Sparse factorization by this engine's kernels; rhs_cols: right-hand sides that will be given.
  virtual std::unique_ptr<sparse::Factors<T>> sparse_factors(std::shared_ptr<const sparse::Symbolic> symbolic,
                                                             const sparse::NumericOptions& options, Index rhs_cols) = 0;
  /// The stage of each front then, without factoring.
  virtual std::vector<std::int32_t> sparse_stages(const sparse::Symbolic& symbolic,
                                                  const sparse::NumericOptions& options, Index rhs_cols) = 0;
  virtual std::unique_ptr<QRState<T>> from_reflectors(MatrixView<const T> packed, MatrixView<const T> tau) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Backend backend() const = 0;
  virtual DeviceInfo info() const = 0;
  virtual void synchronize() = 0;
  /// Milliseconds that the work queued by fn takes, by device events on a GPU. For benchmarks.
  virtual double time_ms(const std::function<void()>& fn) = 0;
  /// What this engine's plans are made from. A new engine has the defaults until load_tuning, which throws
  /// Error{file} for a broken table of the user's.
  virtual std::shared_ptr<const tuning::Tables> tuning() const = 0;
  virtual void set_tuning(std::shared_ptr<const tuning::Tables> tables) = 0;
  virtual void load_tuning() = 0;
  virtual backend::Limits limits(int scalar_bytes) = 0;
  /// What it keeps for repeated calls.
  virtual Index cached_bytes() const = 0;
  virtual Index cache_limit() const = 0;
  virtual void set_cache_limit(Index bytes) = 0;
  virtual void clear_cache() = 0;
  /// Seconds that compiling kernels has taken; on_build is told what is compiled, after each second of it.
  virtual double build_seconds() const { return 0; }
  virtual void on_build(const std::function<void(const std::string& what, double seconds)>&) {}
  /// Threads for what runs on the host's cores.
  virtual int host_threads() const = 0;
  backend::cpu::ThreadPools& host_pools() { return host_pools_; }

  template <class T>
  ScalarEngine<T>& scalar() {
    if constexpr (std::is_same_v<T, float>)
      return in_float();
    else
      return in_double();
  }

 private:
  virtual ScalarEngine<float>& in_float() = 0;
  virtual ScalarEngine<double>& in_double() = 0;
  backend::cpu::ThreadPools host_pools_;
};

std::shared_ptr<Engine> make_cpu_engine(const ContextOptions& options);
std::shared_ptr<Engine> make_opencl_engine(const ContextOptions& options);
std::shared_ptr<Engine> make_cuda_engine(const ContextOptions& options);
BackendStatus cpu_status();
BackendStatus opencl_status();
BackendStatus cuda_status();

}  // namespace qrane::detail
