// SPDX-License-Identifier: Apache-2.0
// The engine of one backend: checks arguments, makes plans, and hands over to the algorithms.
#pragma once

#include <algorithm>
#include <utility>

#include "api/engine.hpp"
#include "api/factor_state.hpp"
#include "api/pivoted_engine.hpp"
#include "api/plan_engine.hpp"
#include "api/sparse_device.hpp"
#include "api/updates.hpp"
#include "dense/kept.hpp"
#include "dense/solve/batch_solve.hpp"
#include "dense/solve/consume.hpp"
#include "rpca/robust_pca.hpp"

namespace qrane::detail {

/// A factorization behind a handle.
template <class B, class T>
class QRStateOf final : public FactorState<BatchState<T>, B, T, dense::Factorization<B, T>> {
  using State = FactorState<BatchState<T>, B, T, dense::Factorization<B, T>>;
  using State::f_, State::profile_, State::rank_, State::where_, State::check_q, State::view, State::finish;

 public:
  using typename State::Mat;

  QRStateOf(typename B::Queue queue, plan::DeviceProfile profile, Plan plan, const Options& options, Memory where,
            std::optional<Mat> in_place = {})
      : State(std::move(profile), where, std::move(queue), std::move(plan), in_place), options_(options) {}

  void refactor(MatrixView<const T> a) override { refactor(BatchView<const T>{a, 0, 1, nullptr}); }
  void refactor(BatchView<const T> a) override {
    const Plan& p = f_.plan();
    check(a.first.rows == p.rows && a.first.cols == p.cols && a.count == p.count, ErrorCode::invalid_argument,
          "refactor takes the planned shape, ", p.count, " of ", p.rows, " x ", p.cols, "; got ", a.count, " of ",
          a.first.rows, " x ", a.first.cols);
    rank_.reset();
    where_ = a.first.memory;
    dense::check_batch("A", a);
    if (p.expert.small && dense::has_device_table<B>(a) && !options_.check_finite &&
        a.first.layout == Layout::column_major) {
      f_.run_table(a.pointers, a.first.ld);
      return;
    }
    const Mat input = bring(a);
    if (options_.check_finite)
      for (Index b = 0; b < p.count; ++b) dense::check_finite<B, T>(f_.queue(), "A", input.matrix(b));
    f_.run(input);
  }
  /// For qr_from_reflectors.
  void restore(MatrixView<const T> packed, MatrixView<const T> tau) {
    Matrix<T> on_host = Matrix<T>::host(tau.rows, 1);
    dense::Temporary<B, T> staged(f_.queue(), tau.rows, 1);
    dense::load<B, T>(f_.queue(), tau, staged.matrix);
    dense::store<B, T>(f_.queue(), staged.matrix, on_host.view());
    f_.restore(bring({packed, 0, 1, nullptr}), on_host.data());
  }
  /// For qr_in_place: v() already holds the data.
  void factor_in_place() {
    if (options_.check_finite)
      for (Index b = 0; b < f_.plan().count; ++b) dense::check_finite<B, T>(f_.queue(), "A", f_.v().matrix(b));
    f_.run(f_.v());
  }

  Matrix<T> r(Columns columns) override {
    const Plan& p = f_.plan();
    check(columns == Columns::thin || p.count == 1, ErrorCode::invalid_argument, "a batch gives thin R only");
    const Index k = f_.k(), n = p.cols;
    if (columns == Columns::full && p.rows > k) {
      dense::Temporary<B, T> full(f_.queue(), p.rows, n);
      fill(f_.queue(), full.matrix, T(0), T(0));
      copy(f_.queue(), f_.r_source(), full.matrix.block(0, 0, k, n), backend::Part::upper);
      return finish(full.matrix);
    }
    dense::Temporary<B, T> out(f_.queue(), k, n * p.count);
    copy(f_.queue(), f_.r_source(), side_by_side(out.matrix, n), backend::Part::upper);
    return finish(out.matrix);
  }

  Matrix<T> q(Columns columns) override {
    const Plan& p = f_.plan();
    check_q();
    check(columns == Columns::thin || p.q != QForm::thin, ErrorCode::unavailable,
          "full Q needs reflectors; factor with QForm::implicit, lapack or full, not ", to_string(p.q));
    check(columns == Columns::thin || p.count == 1, ErrorCode::invalid_argument, "a batch gives thin Q only");
    const Index cols = columns == Columns::thin ? f_.k() : p.rows;
    dense::Temporary<B, T> out(f_.queue(), p.rows, cols * p.count);
    const Mat target = side_by_side(out.matrix, cols);
    write_q(target);
    return finish(out.matrix);
  }

  void r_into(MatrixView<T> out) override {
    const Plan& p = f_.plan();
    dense::write_into<B, T>(f_.queue(), out, f_.k(), p.cols, "R",
                            [&](const Mat& target) { copy(f_.queue(), f_.r_source(), target, backend::Part::upper); });
  }

  void q_into(MatrixView<T> out) override {
    const Plan& p = f_.plan();
    check_q();
    dense::write_into<B, T>(f_.queue(), out, p.rows, f_.k(), "the thin Q", [&](const Mat& target) { write_q(target); });
  }

  void apply(MatrixView<T> c, Side side, bool transpose) override {
    dense::check_view("c", c);
    check_applies();
    this->apply_to(c, side, transpose);
  }

  Determinant determinant() override { return dense::determinant(f_, view()); }
  Reflectors<T> reflectors() override {
    check_lapack();
    const Plan& p = f_.plan();
    Reflectors<T> out;
    dense::Temporary<B, T> packed(f_.queue(), p.rows, p.count == 1 ? 0 : p.cols * p.count);
    if (p.count != 1) copy(f_.queue(), f_.v(), side_by_side(packed.matrix, p.cols), backend::Part::all);
    out.packed = dense::export_matrix<B, T>(f_.queue(), p.count == 1 ? f_.v() : packed.matrix, where_);
    const Mat tau = f_.tau_row();  // contiguous: the rows are the columns of one matrix, too
    out.tau = finish({tau.data, tau.cols, p.count, std::max<Index>(tau.cols, 1), 0, 1});
    return out;
  }

  BatchUpdateReport update_batch(const update::BatchUpdateRequest<T>& request) override {
    BatchUpdateReport report = Updates<B, T>::update(updates_, f_, profile_, request);
    rank_.reset();
    staging_ = {};
    return report;
  }

  void r_into_batch(BatchView<T> out) override {
    check_shape("out", out, f_.k(), f_.plan().cols);
    dense::through_batch<B, T>(f_.queue(), out, false, [&](const Mat& target) {
      copy(f_.queue(), f_.r_source(), target, backend::Part::upper);
    });
  }
  void q_into_batch(BatchView<T> out) override {
    const Plan& p = f_.plan();
    check_q();
    check_shape("out", out, p.rows, f_.k());
    dense::through_batch<B, T>(f_.queue(), out, false, [&](const Mat& target) { write_q(target); });
  }
  void apply_batch(BatchView<T> c, bool transpose) override {
    check_applies();
    check_shape("c", c, f_.plan().rows, c.first.cols);
    dense::through_batch<B, T>(f_.queue(), c, true, [&](const Mat& target) {
      f_.apply(transpose ? backend::Op::transpose : backend::Op::none, target);
    });
  }
  void reflectors_into_batch(BatchView<T> packed, BatchView<T> tau) override {
    check_lapack();
    check_shape("tau", tau, f_.k(), 1);
    if (packed.first.data != nullptr || packed.first.buffer != nullptr || packed.pointers != nullptr) {
      check_shape("packed", packed, f_.plan().rows, f_.plan().cols);
      dense::through_batch<B, T>(f_.queue(), packed, false,
                                 [&](const Mat& target) { copy(f_.queue(), f_.v(), target, backend::Part::all); });
    }
    dense::through_batch<B, T>(f_.queue(), tau, false, [&](const Mat& target) {
      const Mat row = f_.tau_row();
      copy(f_.queue(), {row.data, row.cols, 1, std::max<Index>(row.cols, 1), row.stride, row.count}, target,
           backend::Part::all);
    });
  }
  BatchSolution<T> solve_batch(BatchView<const T> b, const SolveOptions& options) override {
    const Index n = f_.plan().cols, nrhs = b.first.cols;
    BatchSolution<T> out;
    out.full = f_.k();
    out.x = b.first.memory == Memory::host ? Matrix<T>::host(n, nrhs * f_.plan().count)
                                           : dense::device_matrix<B, T>(f_.queue(), n, nrhs * f_.plan().count);
    MatrixView<T> first = out.x.view();
    first.cols = nrhs;
    out.rank = solve_into_batch(b, {first, first.ld * nrhs, f_.plan().count, nullptr}, options);
    return out;
  }
  std::vector<Index> solve_into_batch(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) override {
    check_q();
    check_shape("b", b, f_.plan().rows, b.first.cols);
    check_shape("x", x, f_.plan().cols, b.first.cols);
    return dense::solve_batch(f_, b, x, options);
  }

  bool fell_back() override { return f_.fell_back(); }
  Stage stage() override { return f_.stage(); }
  std::unique_ptr<UpdatableState<T>> updatable() override { return Updates<B, T>::take(f_, profile_, where_); }

 private:
  void check_applies() const {
    if (!f_.keeps_reflectors() && f_.plan().q != QForm::full) this->refuse_application();
  }
  /// target := the leading columns of Q.
  void write_q(const Mat& target) {
    if (f_.has_explicit_q())
      copy(f_.queue(), f_.q().columns(0, target.cols), target, backend::Part::all);
    else
      f_.form(target);
  }
  void check_lapack() const {
    check(f_.plan().q == QForm::lapack, ErrorCode::unavailable,
          "LAPACK-shaped reflectors need QForm::lapack; this factorization has ", to_string(f_.plan().q));
  }
  template <class U>
  void check_shape(const char* name, const BatchView<U>& a, Index rows, Index cols) const {
    dense::check_batch(name, a);
    check(a.count == f_.plan().count && a.first.rows == rows && a.first.cols == cols, ErrorCode::invalid_argument, name,
          " is a batch of ", a.count, " of ", a.first.rows, " x ", a.first.cols, " where ", f_.plan().count, " of ",
          rows, " x ", cols, " are needed");
  }
  Mat side_by_side(const Mat& all, Index cols) const {
    return {all.data, all.rows, cols, all.ld, all.ld * cols, f_.plan().count};
  }

  /// The batch on the device: where it is, or copied into the factorization's memory or a staging buffer.
  Mat bring(const BatchView<const T>& a) {
    const MatrixView<const T>& first = a.first;
    if (dense::is_direct<B>(a)) return dense::as_device_batch<B>(a);
    Mat target = f_.v();
    if (!f_.keeps_reflectors()) {
      if (staging_.bytes() == 0)
        staging_ = dense::Buffer<B>(f_.queue(),
                                    backend::bytes_of(std::max<Index>(first.rows, 1), first.cols, a.count, sizeof(T)));
      const Index ld = std::max<Index>(first.rows, 1);
      target = {staging_.template as<T>(), first.rows, first.cols, ld, ld * first.cols, a.count};
    }
    dense::load_batch<B, T>(f_.queue(), a, target);
    return target;
  }

  Options options_;
  std::shared_ptr<update::BatchUpdates<B, T>> updates_;
  dense::Buffer<B> staging_;
};

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
