// SPDX-License-Identifier: Apache-2.0
// The engine of one backend: checks arguments, makes plans, and hands over to the algorithms.
#pragma once

#include <algorithm>
#include <utility>

#include "api/engine.hpp"
#include "api/pivoted_engine.hpp"
#include "api/plan_engine.hpp"
#include "api/qr_engine.hpp"
#include "api/sparse_device.hpp"
#include "api/updates.hpp"
#include "dense/kept.hpp"
#include "dense/solve/consume.hpp"
#include "rpca/robust_pca.hpp"

namespace qrane::detail {

/// What the engines of both scalar types share.
template <class B>
struct EngineCore {
  static constexpr Index share_of_kept = 16;
  typename B::Queue queue;
  dense::Kept<B> kept;
  std::shared_ptr<const tuning::Tables> tuning;

  explicit EngineCore(typename B::Queue queue_)
      : queue(std::move(queue_)), kept(queue, queue.available_bytes() / share_of_kept) {}
};

template <class B, class T>
class ScalarEngineOf final : public ScalarEngine<T> {
 public:
  ScalarEngineOf(EngineCore<B>& core, Backend backend) : core_(core), queue_(core.queue), backend_(backend) {}

  Matrix<T> allocate(Index rows, Index cols) override { return dense::device_matrix<B, T>(queue_, rows, cols); }

  void copy(MatrixView<const T> source, MatrixView<T> target) override {
    dense::check_view("source", source);
    dense::check_view("destination", target);
    check(source.rows == target.rows && source.cols == target.cols, ErrorCode::invalid_argument, "copy from ",
          source.rows, " x ", source.cols, " to ", target.rows, " x ", target.cols);
    if (dense::is_resident<B>(target) && target.layout == Layout::column_major) {
      dense::load<B, T>(queue_, source, dense::as_device<B>(target));
    } else {
      dense::Temporary<B, T> staged(queue_, source.rows, source.cols);
      dense::load<B, T>(queue_, source, staged.matrix);
      dense::store<B, T>(queue_, staged.matrix, target);
    }
    queue_.synchronize();
  }

  Plan plan(Index rows, Index cols, Index count, const Options& options) override {
    Plan p = plan::make_plan(profile(), rows, cols, count, sizeof(T), options);
    p.workspace_bytes = dense::Factorization<B, T>::workspace_bytes(p);
    return p;
  }

  std::unique_ptr<BatchState<T>> qr(BatchView<const T> a, const Options& options) override {
    dense::check_batch("A", a);
    auto state = std::make_unique<QRStateOf<B, T>>(
        queue_, profile(), plan(a.first.rows, a.first.cols, a.count, options), options, a.first.memory);
    state->refactor(a);
    return state;
  }

  std::unique_ptr<BatchState<T>> qr_in_place(BatchView<T> a, const Options& options) override {
    dense::check_batch("A", a);
    check(dense::is_direct<B>(a), ErrorCode::invalid_argument,
          "qr_in_place takes column-major matrices in the context's device memory, by a stride");
    check(options.q == QForm::implicit || options.q == QForm::lapack, ErrorCode::invalid_argument,
          "qr_in_place keeps reflectors: QForm::implicit or lapack, not ", to_string(options.q));
    auto state =
        std::make_unique<QRStateOf<B, T>>(queue_, profile(), plan(a.first.rows, a.first.cols, a.count, options),
                                          options, a.first.memory, dense::as_device_batch<B>(a));
    state->factor_in_place();
    return state;
  }

  std::unique_ptr<UpdatableState<T>> updatable(MatrixView<const T> q, MatrixView<const T> r, QForm form) override {
    dense::check_view("q", q);
    dense::check_view("r", r);
    check(form == QForm::thin || form == QForm::full, ErrorCode::invalid_argument,
          "factors are given with QForm::thin or full, not ", to_string(form));
    const Index m = q.rows, n = r.cols, k = std::min(m, n), q_cols = form == QForm::thin ? k : m;
    check(q.cols == q_cols && r.rows >= k, ErrorCode::invalid_argument, "q is ", q.rows, " x ", q.cols, " and r ",
          r.rows, " x ", r.cols, ", but the ", to_string(form), " factors of a ", m, " x ", n, " matrix are ", m, " x ",
          q_cols, " and ", k, " x ", n);
    Options options;
    options.q = form;
    r.rows = k;
    const dense::OnDevice<B, T> q_here(queue_, q), r_here(queue_, r);
    dense::Factorization<B, T> f(queue_, plan(m, n, 1, options), {}, dense::Results::delivered);
    f.deliver_to(r_here.matrix, q_here.matrix);
    return Updates<B, T>::take(f, profile(), q.memory);
  }

  std::unique_ptr<QRState<T>> from_reflectors(MatrixView<const T> packed, MatrixView<const T> tau) override {
    dense::check_view("packed", packed);
    dense::check_view("tau", tau);
    const Index k = std::min(packed.rows, packed.cols);
    check(tau.rows == k && tau.cols == 1, ErrorCode::invalid_argument, "tau is ", tau.rows, " x ", tau.cols, " where ",
          k, " x 1 is needed");
    const Options options{.algorithm = Algorithm::blocked, .q = QForm::lapack};
    auto state = std::make_unique<QRStateOf<B, T>>(queue_, profile(), plan(packed.rows, packed.cols, 1, options),
                                                   options, packed.memory);
    state->restore(packed, tau);
    return state;
  }

  Solution<T> least_squares(MatrixView<const T> a, MatrixView<const T> b, const LeastSquaresOptions& options) override {
    return dense::least_squares<B, T>(queue_, profile(), core_.kept, a, b, options);
  }
  std::unique_ptr<PivotedState<T>> pivoted_qr(MatrixView<const T> a, const PivotOptions& options) override {
    dense::check_view("A", a);
    return std::make_unique<PivotedStateOf<B, T>>(queue_, profile(), a, options);
  }
  Svd<T> svd(MatrixView<const T> a, const SvdOptions& options) override {
    return dense::svd<B, T>(queue_, profile(), core_.kept, a, options);
  }
  std::unique_ptr<SvdPlanState<T>> svd_plan(Index rows, Index cols, const SvdOptions& options) override {
    return std::make_unique<SvdPlanStateOf<B, T>>(queue_, profile(), rows, cols, options);
  }
  std::unique_ptr<LeastSquaresPlanState<T>> least_squares_plan(Index rows, Index cols, Index nrhs,
                                                               const LeastSquaresOptions& options) override {
    return std::make_unique<LeastSquaresPlanStateOf<B, T>>(queue_, profile(), rows, cols, nrhs, options);
  }
  RobustPca<T> robust_pca(MatrixView<const T> m, const RobustPcaOptions& options) override {
    return rpca::robust_pca<B, T>(queue_, profile(), m, options);
  }
  std::unique_ptr<sparse::Factors<T>> sparse_factors(std::shared_ptr<const sparse::Symbolic> symbolic,
                                                     const sparse::NumericOptions& options, Index rhs_cols) override {
    (void)profile();               // refuses double where there is none
    (void)core_.kept.give_back();  // stages are planned from what is free
    return SparseDevice<B, T>::factors(queue_, std::move(symbolic), options, rhs_cols);
  }
  std::vector<std::int32_t> sparse_stages(const sparse::Symbolic& symbolic, const sparse::NumericOptions& options,
                                          Index rhs_cols) override {
    (void)profile();
    (void)core_.kept.give_back();
    return SparseDevice<B, T>::stages(queue_, symbolic, options, rhs_cols);
  }

 private:
  plan::DeviceProfile profile() const {
    plan::DeviceProfile p;
    p.backend = backend_;
    p.limits = queue_.limits(T{});
    p.tuning = core_.tuning;
    check(sizeof(T) == 4 || p.limits.has_double, ErrorCode::unavailable,
          "this device has no double precision; use float");
    return p;
  }

  EngineCore<B>& core_;
  typename B::Queue& queue_;
  Backend backend_;
};

template <class B>
class BackendEngine : public Engine {
 public:
  BackendEngine(typename B::Queue queue, Backend backend)
      : core_(std::move(queue)), backend_(backend), float_(core_, backend), double_(core_, backend) {}

  Backend backend() const override { return backend_; }
  void synchronize() override { core_.queue.synchronize(); }
  double time_ms(const std::function<void()>& fn) override {
    const auto begin = core_.queue.record();
    fn();
    const auto end = core_.queue.record();
    return core_.queue.elapsed_ms(begin, end);
  }
  std::shared_ptr<const tuning::Tables> tuning() const override { return core_.tuning; }
  void set_tuning(std::shared_ptr<const tuning::Tables> tables) override {
    (void)core_.kept.give_back();  // of other plans
    core_.tuning = std::move(tables);
  }
  Index cached_bytes() const override { return core_.kept.bytes(); }
  Index cache_limit() const override { return core_.kept.limit_bytes(); }
  void set_cache_limit(Index bytes) override { core_.kept.set_limit(bytes); }
  void clear_cache() override { (void)core_.kept.give_back(); }
  void load_tuning() override { set_tuning(tuning::load(this->info(), limits(4), limits(8))); }
  int host_threads() const override {
    if constexpr (std::is_same_v<B, backend::Cpu>)
      return core_.queue.threads();
    else
      return backend::cpu::available_cores();
  }
  backend::Limits limits(int scalar_bytes) override {
    return scalar_bytes == 4 ? core_.queue.limits(float{}) : core_.queue.limits(double{});
  }

 private:
  ScalarEngine<float>& in_float() override { return float_; }
  ScalarEngine<double>& in_double() override { return double_; }

  EngineCore<B> core_;
  Backend backend_;
  ScalarEngineOf<B, float> float_;
  ScalarEngineOf<B, double> double_;
};

}  // namespace qrane::detail
