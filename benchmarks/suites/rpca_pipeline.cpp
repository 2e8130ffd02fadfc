// SPDX-License-Identifier: Apache-2.0
#include "suites/rpca_pipeline.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/engine.hpp"

#ifdef QRANE_BENCH_KERNELS
#include "kernels/blas2.hpp"
#include "kernels/rpca_steps.hpp"
#endif

extern "C" {
void sorm2r_(const char*, const char*, const lapack_int*, const lapack_int*, const lapack_int*, const float*,
             const lapack_int*, const float*, float*, const lapack_int*, float*, lapack_int*, std::size_t, std::size_t);
void dorm2r_(const char*, const char*, const lapack_int*, const lapack_int*, const lapack_int*, const double*,
             const lapack_int*, const double*, double*, const lapack_int*, double*, lapack_int*, std::size_t,
             std::size_t);
}

namespace qrane::bench {
namespace {

lapack_int geqr2(lapack_int m, lapack_int n, float* a, float* tau, float* work) {
  return LAPACKE_sgeqr2_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work);
}
lapack_int geqr2(lapack_int m, lapack_int n, double* a, double* tau, double* work) {
  return LAPACKE_dgeqr2_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work);
}
void apply_reflectors(lapack_int m, lapack_int n, const float* a, const float* tau, float* c, float* work) {
  lapack_int info = 0;
  sorm2r_("L", "N", &m, &n, &n, a, &m, tau, c, &m, work, &info, 1, 1);
}
void apply_reflectors(lapack_int m, lapack_int n, const double* a, const double* tau, double* c, double* work) {
  lapack_int info = 0;
  dorm2r_("L", "N", &m, &n, &n, a, &m, tau, c, &m, work, &info, 1, 1);
}
lapack_int gesdd(lapack_int n, float* a, float* s, float* u, float* vt) {
  return LAPACKE_sgesdd(LAPACK_COL_MAJOR, 'S', n, n, a, n, s, u, n, vt, n);
}
lapack_int gesdd(lapack_int n, double* a, double* s, double* u, double* vt) {
  return LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', n, n, a, n, s, u, n, vt, n);
}

/// The elementwise steps and BLAS2 QR in host memory.
template <class T>
class HostSteps {
 public:
  HostSteps(Session& session, Shape shape)
      : context_(session.context()), count_(shape.rows * shape.cols), tau_(size(shape.cols)), work_(size(shape.cols)) {}

  const Context& context() const { return context_; }

  void form_x(const T* m, const T* s, const T* y, double mu, T* x) {
    const T inverse = static_cast<T>(1 / mu);
#pragma omp parallel for schedule(static)
    for (Index k = 0; k < count_; ++k) x[k] = m[k] - s[k] + y[k] * inverse;
  }

  /// Leaves M - L - S in L.
  void update_parts(const T* m, T* l, T* s, T* y, double lambda, double mu) {
    const T threshold = static_cast<T>(lambda / mu), step = static_cast<T>(mu), inverse = static_cast<T>(1 / mu);
#pragma omp parallel for schedule(static)
    for (Index k = 0; k < count_; ++k) {
      const T rest = m[k] - l[k] + y[k] * inverse;
      s[k] = std::copysign(std::max(std::abs(rest) - threshold, T(0)), rest);
      l[k] = m[k] - l[k] - s[k];
      y[k] += step * l[k];
    }
  }

  double norm(const T* x) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (Index k = 0; k < count_; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    return std::sqrt(sum);
  }

  void clear(T* x) { std::fill_n(x, count_, T(0)); }

  void factor(MatrixView<T> x) {
    const auto status =
        geqr2(static_cast<lapack_int>(x.rows), static_cast<lapack_int>(x.cols), x.data, tau_.data(), work_.data());
    detail::check(status == 0, ErrorCode::device, "geqr2 returned ", status);
  }

  void apply_q(MatrixView<const T> x, MatrixView<T> c) {
    apply_reflectors(static_cast<lapack_int>(x.rows), static_cast<lapack_int>(x.cols), x.data, tau_.data(), c.data,
                     work_.data());
  }

 private:
  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }

  const Context& context_;
  Index count_;
  std::vector<T> tau_, work_;
};

#ifdef QRANE_BENCH_KERNELS
/// The same on a CUDA device, in one stream with a context of its own.
template <class T>
class CudaSteps {
 public:
  CudaSteps(Session& session, Shape shape)
      : stream_(session),
        context_(ContextOptions{.backend = Backend::cuda, .device = session.options().device, .stream = stream_.get()}),
        count_(shape.rows * shape.cols),
        qr_(shape.rows, static_cast<int>(shape.cols), stream_.get()) {}

  const Context& context() const { return context_; }
  void form_x(const T* m, const T* s, const T* y, double mu, T* x) {
    bench::form_x(m, s, y, mu, x, count_, stream_.get());
  }
  void update_parts(const T* m, T* l, T* s, T* y, double lambda, double mu) {
    bench::update_parts(m, l, s, y, lambda, mu, count_, stream_.get());
  }
  double norm(const T* x) { return bench::norm(x, count_, stream_.get()); }
  void clear(T* x) {
    check(cudaMemsetAsync(x, 0, static_cast<std::size_t>(count_) * sizeof(T), stream_.get()), "cudaMemsetAsync");
  }
  void factor(MatrixView<T> x) { qr_.factor(x.data); }
  void apply_q(MatrixView<const T> x, MatrixView<T> c) { qr_.apply_q(x.data, c.data); }

 private:
  /// A stream of the session's device, made the current one.
  class Stream {
   public:
    explicit Stream(Session& session) {
      session.context().synchronize();  // the device of that context is the current one from here on
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }

   private:
    cudaStream_t stream_ = nullptr;
  };

  Stream stream_;
  Context context_;
  Index count_;
  Blas2Qr<T> qr_;
};
#endif

template <class T, class Steps>
class Pipeline final : public RpcaPipeline<T> {
 public:
  Pipeline(Session& session, MatrixView<const T> m, PipelineQr qr)
      : steps_(session, {m.rows, m.cols}),
        method_(qr),
        whole_(context().to_device(m)),
        x_(context().template allocate<T>(m.rows, m.cols)),
        low_rank_(context().template allocate<T>(m.rows, m.cols)),
        sparse_(context().template allocate<T>(m.rows, m.cols)),
        y_(context().template allocate<T>(m.rows, m.cols)),
        r_(Matrix<T>::host(m.cols, m.cols)),
        u_(Matrix<T>::host(m.cols, m.cols)),
        vt_(Matrix<T>::host(m.cols, m.cols)),
        product_(Matrix<T>::host(m.cols, m.cols)),
        s_(static_cast<std::size_t>(m.cols)),
        size_(steps_.norm(whole_.data())),
        lambda_(1 / std::sqrt(static_cast<double>(m.rows))) {
    detail::check(whole_.ld() == m.rows, ErrorCode::device, "matrices of the pipeline must be contiguous");
  }

  PipelineState run(int iterations, double tolerance,
                    const std::function<bool(const PipelineState&)>& on_iteration) override {
    steps_.clear(sparse_.data());
    steps_.clear(y_.data());
    PipelineState state;
    for (double mu = 1.25 / size_; state.iterations < iterations; mu *= 1.5) {
      steps_.form_x(whole_.data(), sparse_.data(), y_.data(), mu, x_.data());
      state.rank = threshold_singular_values(1 / mu);
      steps_.update_parts(whole_.data(), low_rank_.data(), sparse_.data(), y_.data(), lambda_, mu);
      state.residual = steps_.norm(low_rank_.data()) / size_;
      ++state.iterations;
      if (on_iteration && !on_iteration(state)) break;
      if (state.residual <= tolerance) break;
    }
    return state;
  }

  double time_ms(const std::function<void()>& function) override { return context().engine()->time_ms(function); }

 private:
  const Context& context() const { return steps_.context(); }

  /// L := U max(S - threshold, 0) Vᵀ of X; the number of values above it.
  Index threshold_singular_values(double threshold) {
    factor();
    const Index n = r_.cols();
    if (gesdd(static_cast<lapack_int>(n), r_.data(), s_.data(), u_.data(), vt_.data()) != 0)
      throw Error(ErrorCode::device, "the SVD of R did not converge");
    const Index rank = std::count_if(s_.begin(), s_.end(), [&](T value) { return value > threshold; });
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < n; ++i) {
        T sum = 0;
        for (Index k = 0; k < rank; ++k)
          sum += u_(i, k) * static_cast<T>(s_[static_cast<std::size_t>(k)] - threshold) * vt_(k, j);
        product_(i, j) = sum;
      }
    steps_.clear(low_rank_.data());
    MatrixView<T> top = low_rank_.view();
    top.rows = n;
    context().template copy<T>(std::as_const(product_).view(), top);
    if (method_ == PipelineQr::caqr)
      caqr_->apply_q(low_rank_.view());
    else
      steps_.apply_q(std::as_const(x_).view(), low_rank_.view());
    return rank;
  }

  /// X = Q R; R to the host.
  void factor() {
    if (method_ == PipelineQr::caqr) {
      if (caqr_)
        caqr_->refactor(std::as_const(x_).view());
      else
        caqr_ = std::make_unique<QR<T>>(
            qr<T>(context(), std::as_const(x_).view(), {.algorithm = Algorithm::caqr, .q = QForm::implicit}));
      r_ = context().to_host(caqr_->r());
      return;
    }
    steps_.factor(x_.view());
    MatrixView<const T> top = std::as_const(x_).view();
    top.rows = x_.cols();
    context().template copy<T>(top, r_.view());
    for (Index j = 0; j < r_.cols(); ++j)
      for (Index i = j + 1; i < r_.rows(); ++i) r_(i, j) = 0;
  }

  Steps steps_;
  PipelineQr method_;
  Matrix<T> whole_, x_, low_rank_, sparse_, y_;
  Matrix<T> r_, u_, vt_, product_;
  std::vector<T> s_;
  double size_, lambda_;
  std::unique_ptr<QR<T>> caqr_;
};

}  // namespace

template <class T>
std::unique_ptr<RpcaPipeline<T>> make_pipeline(Session& session, MatrixView<const T> m, PipelineQr qr) {
  if (session.device().backend == Backend::cpu) return std::make_unique<Pipeline<T, HostSteps<T>>>(session, m, qr);
#ifdef QRANE_BENCH_KERNELS
  if (session.device().backend == Backend::cuda) return std::make_unique<Pipeline<T, CudaSteps<T>>>(session, m, qr);
#endif
  throw Error(ErrorCode::unavailable, "the pipeline has steps for the CPU and, in builds with CUDA, for CUDA devices");
}
template std::unique_ptr<RpcaPipeline<float>> make_pipeline(Session&, MatrixView<const float>, PipelineQr);
template std::unique_ptr<RpcaPipeline<double>> make_pipeline(Session&, MatrixView<const double>, PipelineQr);

}  // namespace qrane::bench
