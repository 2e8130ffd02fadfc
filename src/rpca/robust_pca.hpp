// SPDX-License-Identifier: Apache-2.0
// Robust PCA by augmented Lagrangian, M = L + S (include/qrane/robust_pca.hpp names the sources).
//
//     L = D_{1/mu}(X)               X = M - S + Y / mu, singular values thresholded
//     S = shrink(M - L + Y / mu, lambda / mu)
//     Y = Y + mu (M - L - S),  mu = rho mu
//
// Thresholding needs neither U nor Q: with X = Q R and R = U_R Σ Vᵀ,
//     D_τ(X) = X P,  P = V diag(max(0, 1 - τ / σ)) Vᵀ            (n x n)
// so an iteration is one QR for R alone, an n x n SVD, one product, and one fused pass that writes S, Y and
// the next X. Data stays on the device. Where the backend has `small_svd`, started from the last iteration's
// V, the host only reads sigma and the residual; else R and P travel and LAPACK does the SVD.
#pragma once

#include <chrono>
#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

#include <qrane/robust_pca.hpp>

#include "dense/factorization.hpp"

namespace qrane::rpca {

/// P of singular value thresholding, and the singular values that are left.
struct Threshold {
  dense::HostMatrix projector;
  std::vector<double> values;
  Index rank() const { return static_cast<Index>(values.size()); }
};
inline Threshold singular_value_threshold(const dense::HostSvd& svd, double tau) {
  const Index n = svd.vt.cols;
  Threshold out{dense::HostMatrix(n, n), {}};
  dense::HostMatrix& p = out.projector;
  for (double s : svd.s)
    if (s > tau) out.values.push_back(s - tau);
  for (Index c = 0; c < out.rank(); ++c) {
    const double keep = 1 - tau / svd.s[c];
    for (Index j = 0; j < n; ++j) {
      const double weight = keep * svd.vt(c, j);
      for (Index i = 0; i < n; ++i) p(i, j) += svd.vt(c, i) * weight;
    }
  }
  return out;
}

template <class Queue, class B>
concept HasSmallSvd = requires(Queue& q, const backend::SmallSvd<B>& task) {
  q.small_svd(task);
  { q.max_small_svd() } -> std::convertible_to<Index>;
};

/// The matrices of one problem, all m x n with m >= n, contiguous.
template <class B, class T>
struct Work {
  dense::Buffer<B> memory;
  backend::DeviceMatrix<B, T> m, l, y, s, x, projector;
  backend::DeviceMatrix<B, double> r, v, wide_projector;  // for small_svd
  typename B::template Pointer<double> residual{};        // one number, then n singular values
  backend::Scratch<B> scratch;

  Work(const typename B::Queue& queue, Index rows, Index cols) {
    dense::Carver<B> sizes;
    carve(sizes, rows, cols);
    memory = dense::Buffer<B>(queue, sizes.used());
    dense::Carver<B> carver(memory.template as<std::byte>());
    carve(carver, rows, cols);
  }

 private:
  void carve(dense::Carver<B>& carver, Index rows, Index cols) {
    for (auto* a : {&m, &l, &y, &s, &x}) *a = carver.template matrix<T>(rows, cols);
    projector = carver.template matrix<T>(cols, cols);
    for (auto* a : {&r, &v, &wide_projector}) *a = carver.template matrix<double>(cols, cols);
    residual = carver.template take<double>(1 + cols);
    scratch.bytes = Index{1} << 20;
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }
};

template <class B, class T>
class Iteration {
 public:
  using Queue = typename B::Queue;

  Iteration(Queue queue, const plan::DeviceProfile& profile, Index rows, Index cols, const RobustPcaOptions& options)
      : queue_(queue),
        options_(options),
        work(queue_, rows, cols),
        factorization_(queue_, r_only(profile, rows, cols)) {}

  /// Runs to the end; work.m holds M. Results are in work.l and work.s.
  void run(RobustPca<T>& result) {
    start();
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    for (int i = 1; i <= options_.max_iterations && !result.converged; ++i) {
      std::vector<double> values;
      const double residual = on_device() ? device_step(values) : host_step(values);
      result.iterations = i;
      result.rank = static_cast<Index>(values.size());
      result.residual = norm_ > 0 ? residual / norm_ : residual;
      result.converged = result.residual <= options_.tolerance && settled(values);
      result.seconds = seconds();
      if (options_.on_iteration && !options_.on_iteration({i, result.residual, result.rank, used_mu_, result.seconds}))
        break;
      if (std::isnan(result.residual)) break;
    }
  }

 private:
  static Plan r_only(const plan::DeviceProfile& profile, Index rows, Index cols) {
    Options options;
    options.q = QForm::none;
    return plan::make_plan(profile, rows, cols, 1, sizeof(T), options);
  }

  dense::HostSvd factor(const backend::DeviceMatrix<B, T>& a) {
    factorization_.run(a);
    return dense::host_svd(dense::to_host_matrix<B, T>(queue_, factorization_.r_source()), true);
  }

  double read(typename B::template Pointer<double> p) {
    double value = 0;
    queue_.download(p, &value, 1);
    return value;
  }

  /// With a fixed mu the residual is small long before L stops changing: alternating directions also waits until L's
  /// singular values move by no more than the tolerance (a lower bound on the change of L).
  bool settled(const std::vector<double>& values) {
    if (options_.method == RobustPcaMethod::inexact_alm) return true;
    double change = 0;
    for (std::size_t i = 0; i < std::max(values.size(), before_.size()); ++i) {
      const double moved = (i < values.size() ? values[i] : 0) - (i < before_.size() ? before_[i] : 0);
      change += moved * moved;
    }
    before_ = values;
    return std::sqrt(change) <= options_.tolerance * norm_;
  }

  /// mu, lambda, Y and the first X.
  void start() {
    const double m = static_cast<double>(work.m.rows), n = static_cast<double>(work.m.cols);
    lambda_ = options_.lambda_multiplier / std::sqrt(std::max(m, n));
    queue_.sum_squares(work.m, work.residual, work.scratch);
    norm_ = std::sqrt(read(work.residual));
    queue_.fill(work.l, T(0), T(0));
    queue_.fill(work.s, T(0), T(0));
    queue_.fill(work.y, T(0), T(0));
    if (options_.method == RobustPcaMethod::alternating) {
      queue_.sum_abs(work.m, work.residual, work.scratch);
      const double sum = read(work.residual);
      mu_ = options_.mu > 0 ? options_.mu : m * n / (4 * (sum > 0 ? sum : 1));
      queue_.copy(work.m, work.x, backend::Part::all);  // X = M: S = Y = 0
      return;
    }
    const dense::HostSvd svd = factor(work.m);
    const double norm2 = svd.s.empty() || svd.s[0] == 0 ? 1 : svd.s[0];
    queue_.max_abs(work.m, work.residual, work.scratch);
    const double dual_norm = std::max(norm2, read(work.residual) / lambda_);
    mu_ = options_.mu > 0 ? options_.mu : 1.25 / norm2;
    most_mu_ = mu_ * 1e7;
    // Y = M / J(M) and X = M + Y / mu: the pass with L = Y = 0, mu = 1 / J and everything shrunk away
    backend::RobustPcaPass<B, T> pass = pass_of(1 / dual_norm, mu_);
    pass.threshold = std::numeric_limits<double>::max();
    queue_.robust_pca_pass(pass, work.scratch);
  }

  bool on_device() {
    if constexpr (HasSmallSvd<Queue, B>) return work.x.cols <= queue_.max_small_svd();
    return false;
  }

  /// One iteration with the SVD on the host; returns ‖M - L - S‖_F and L's singular values.
  double host_step(std::vector<double>& values) {
    Threshold threshold = singular_value_threshold(factor(work.x), 1 / mu_);
    values = std::move(threshold.values);
    const Matrix<T> p = dense::from_host_matrix<T>(threshold.projector);
    dense::load<B, T>(queue_, p.view(), work.projector);
    update();
    return std::sqrt(read(work.residual));
  }

  /// The same without the host, until the numbers are read.
  double device_step(std::vector<double>& values) {
    if constexpr (HasSmallSvd<Queue, B>) {
      const Index n = work.x.cols;
      factorization_.run(work.x);
      queue_.widen(factorization_.r_source(), work.r);
      backend::SmallSvd<B> svd;
      svd.r = work.r;
      if (has_v_) svd.guess = work.v;
      svd.v = work.v;
      svd.sigma = work.residual + 1;
      svd.accuracy = std::numeric_limits<T>::epsilon();
      svd.threshold = 1 / mu_;
      svd.projector = work.wide_projector;
      queue_.small_svd(svd);
      has_v_ = true;
      queue_.narrow(work.wide_projector, work.projector, backend::Part::all);
      update();
      std::vector<double> numbers(static_cast<std::size_t>(n + 1));
      queue_.download(work.residual, numbers.data(), n + 1);
      for (Index i = 1; i <= n; ++i)
        if (numbers[static_cast<std::size_t>(i)] > svd.threshold)
          values.push_back(numbers[static_cast<std::size_t>(i)] - svd.threshold);
      return std::sqrt(numbers[0]);
    } else {
      return host_step(values);
    }
  }

  /// L from X and the projector; S, Y, the next X and mu; the residual's square.
  void update() {
    using backend::Op;
    queue_.gemm(Op::none, Op::none, T(1), work.x, work.projector, T(0), work.l);
    used_mu_ = mu_;
    const double next = options_.method == RobustPcaMethod::inexact_alm ? std::min(mu_ * options_.rho, most_mu_) : mu_;
    backend::RobustPcaPass<B, T> pass = pass_of(mu_, next);
    pass.threshold = lambda_ / mu_;
    queue_.robust_pca_pass(pass, work.scratch);
    mu_ = next;
  }

  backend::RobustPcaPass<B, T> pass_of(double mu, double mu_next) {
    backend::RobustPcaPass<B, T> pass;
    pass.m = work.m;
    pass.l = work.l;
    pass.y = work.y;
    pass.s = work.s;
    pass.x = work.x;
    pass.mu = mu;
    pass.mu_next = mu_next;
    pass.residual_squared = work.residual;
    return pass;
  }

  Queue queue_;
  RobustPcaOptions options_;
  double norm_ = 0, lambda_ = 0, mu_ = 0, used_mu_ = 0, most_mu_ = 0;
  std::vector<double> before_;  // singular values of the last L
  bool has_v_ = false;          // work.v holds the last iteration's V

 public:
  Work<B, T> work;

 private:
  dense::Factorization<B, T> factorization_;
};

inline void check_options(const RobustPcaOptions& o) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(o.tolerance >= 0, code, "RobustPcaOptions::tolerance must not be negative, got ", o.tolerance);
  check(o.max_iterations > 0, code, "RobustPcaOptions::max_iterations must be positive, got ", o.max_iterations);
  check(o.lambda_multiplier > 0, code, "RobustPcaOptions::lambda_multiplier must be positive, got ",
        o.lambda_multiplier);
  check(o.mu >= 0, code, "RobustPcaOptions::mu must not be negative, got ", o.mu);
  check(o.rho > 1 || o.method == RobustPcaMethod::alternating, code, "RobustPcaOptions::rho must exceed 1, got ",
        o.rho);
}

/// M of any shape; a wide one is separated as its transpose.
template <class B, class T>
RobustPca<T> robust_pca(typename B::Queue& queue, const plan::DeviceProfile& profile, MatrixView<const T> m,
                        const RobustPcaOptions& options) {
  dense::check_view("m", m);
  check_options(options);
  RobustPca<T> result;
  const bool wide = m.rows < m.cols;
  if (wide) {  // the storage of M read the other way round is its transpose
    std::swap(m.rows, m.cols);
    m.layout = m.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  }
  Iteration<B, T> iteration(queue, profile, m.rows, m.cols, options);
  auto& work = iteration.work;
  dense::load<B, T>(queue, m, work.m);
  if (options.check_finite) dense::check_finite<B, T>(queue, "m", work.m, wide);
  if (m.rows > 0 && m.cols > 0)
    iteration.run(result);
  else
    result.converged = true;
  const auto out = [&](const backend::DeviceMatrix<B, T>& a) {
    Matrix<T> r = m.memory == Memory::host
                      ? Matrix<T>::host(wide ? a.cols : a.rows, wide ? a.rows : a.cols)
                      : dense::device_matrix<B, T>(queue, wide ? a.cols : a.rows, wide ? a.rows : a.cols);
    MatrixView<T> v = r.view();
    if (wide) {
      std::swap(v.rows, v.cols);
      v.layout = Layout::row_major;
    }
    dense::store<B, T>(queue, a, v);
    return r;
  };
  result.low_rank = out(work.l);
  result.sparse = out(work.s);
  queue.synchronize();
  return result;
}

}  // namespace qrane::rpca
