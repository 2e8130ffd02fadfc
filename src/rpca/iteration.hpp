// SPDX-License-Identifier: Apache-2.0
// Robust PCA by augmented Lagrangian, M = L + S (include/qrane/robust_pca.hpp names the sources).
//
//     L = D_{1/mu}(X)               X = M - S + Y / mu, singular values thresholded
//     S = shrink(M - L + Y / mu, lambda / mu)
//     Y = Y + mu (M - L - S),  mu = rho mu
//
// Thresholding needs neither U nor Q: with X = Q R and R = U_R Σ Vᵀ,
//     D_τ(X) = X P,  P = V diag(max(0, 1 - τ / σ)) Vᵀ            (n x n)
// so an iteration is an n x n SVD, one product, and element-wise updates. Three ways, the best that the backend has:
//
//   fused      G = XᵀX in double, V and σ from G started from the last V, P; then L = X P, S, Y and the next X in one
//              pass that reads M, X, Y and writes the next X, Y (into other memory, in turn), and a verdict on the
//              device. Several iterations are queued before the host looks; those after the last do nothing. L and S of
//              the last are made at the end, from the X and Y it began with.
//   steps      the same with L = X P by gemm and the element-wise pass; the host looks after each.
//   on host    R by the plan's QR, to the host; LAPACK; P back.
//
// The Gram matrix' rounding moves a singular value σ by 2^-52 σ_1² / σ and L by 2^-52 σ_1 / τ relative to X; where that
// is not below the tolerance, or when RobustPcaOptions::algorithm names one, R comes from a QR. M is scaled by a power
// of two when its size would overflow in squares; that is exact.
#pragma once

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <qrane/robust_pca.hpp>

#include "rpca/work.hpp"

namespace qrane::rpca {

template <class B, class T>
class Iteration {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  Iteration(Queue queue, const plan::DeviceProfile& profile, Index rows, Index cols, const RobustPcaOptions& options)
      : queue_(queue),
        profile_(profile),
        options_(options),
        way_(choose_way(queue_, cols)),
        work(queue_, rows, cols, way_ == Way::host ? 0 : small_svd_work(queue_, cols),
             scratch_bytes(way_, rows, cols)) {}

  /// Runs to the end; work.m holds M. Results are in low_rank() and sparse().
  void run(RobustPca<T>& result) {
    start();
    begin_ = std::chrono::steady_clock::now();
    if (way_ == Way::host)
      run_on_host(result);
    else
      run_on_device(result);
    if (scale_ != 0)
      for (const Mat& a : {low_rank(), sparse()}) scale(a, scale_);
  }

  const Mat& low_rank() const { return way_ == Way::fused ? other_x() : work.l; }
  const Mat& sparse() const { return way_ == Way::fused ? other_y() : work.s; }

 private:
  enum class Way { host, steps, fused };

  static Way choose_way(Queue& queue, Index cols) {
    const backend::Limits& limits = queue.limits(T{});
    if (cols > limits.max_small_svd) return Way::host;
    return cols <= limits.max_rpca_step ? Way::fused : Way::steps;
  }
  /// The Gram matrix is summed from partial ones, and of wide `float` data from a copy in double.
  static Index scratch_bytes(Way way, Index rows, Index cols) {
    const Index least = Index{1} << 20, most = Index{1} << 26;
    return way == Way::host ? least : std::max(std::clamp(8 * rows * cols, least, most), 32 * cols * 8);
  }

  /// R of a matrix; the memory for it is there once it is needed.
  dense::Factorization<B, T>& factorization() {
    if (!factorization_) {
      Options options;
      options.q = QForm::none;
      options.algorithm = options_.algorithm;
      factorization_.emplace(queue_, plan::make_plan(profile_, work.m.rows, work.m.cols, 1, sizeof(T), options));
    }
    return *factorization_;
  }
  dense::HostSvd host_svd(const Mat& a) {
    factorization().run(a);
    return dense::host_svd(dense::to_host_matrix<B, T>(queue_, factorization().r_source()), true);
  }

  double read(typename B::template Pointer<double> p) {
    double value = 0;
    queue_.download(p, &value, 1);
    return value;
  }

  /// a := a 2^exponent, by a product that rounds nothing.
  void scale(const Mat& a, int exponent) {
    using backend::Op;
    fill(queue_, work.projector, T(0), std::ldexp(T(1), exponent));
    const Mat& to = x();  // holds no result in the end, and nothing yet before the first iteration
    gemm(queue_, Op::none, Op::none, T(1), a, work.projector, T(0), to);
    copy(queue_, to, a, backend::Part::all);
  }

  /// Scales M so that squares and sums neither overflow nor underflow; mu scales inversely.
  void scale_to_safe_range() {
    max_abs(queue_, work.m, work.residual, work.scratch);
    largest_ = read(work.residual);
    if (!(largest_ > 0) || !std::isfinite(largest_)) return;
    constexpr int plenty = sizeof(T) == 4 ? 60 : 300, most = sizeof(T) == 4 ? 120 : 1000;
    const int exponent = std::ilogb(largest_);
    if (std::abs(exponent) <= plenty) return;
    scale_ = std::clamp(exponent, -most, most);
    scale(work.m, -scale_);
    largest_ = std::ldexp(largest_, -scale_);
  }

  /// mu, lambda, Y and the first X.
  void start() {
    const double m = static_cast<double>(work.m.rows), n = static_cast<double>(work.m.cols);
    lambda_ = options_.lambda_multiplier / std::sqrt(std::max(m, n));
    scale_to_safe_range();
    sum_squares(queue_, work.m, work.residual, work.scratch);
    norm_ = std::sqrt(read(work.residual));
    fill(queue_, work.l, T(0), T(0));
    fill(queue_, work.s, T(0), T(0));
    fill(queue_, work.y, T(0), T(0));
    const double given = std::ldexp(options_.mu, scale_);
    if (options_.method == RobustPcaMethod::alternating) {
      sum_abs(queue_, work.m, work.residual, work.scratch);
      const double sum = read(work.residual);
      mu_ = given > 0 ? given : m * n / (4 * (sum > 0 ? sum : 1));
      copy(queue_, work.m, work.x, backend::Part::all);  // X = M: S = Y = 0
      return;
    }
    const double norm2 = largest_singular_value();
    const double dual_norm = std::max(norm2, largest_ / lambda_);
    mu_ = given > 0 ? given : 1.25 / norm2;
    most_mu_ = mu_ * 1e7;
    // Y = M / J(M) and X = M + Y / mu: the pass with L = Y = 0, mu = 1 / J and everything shrunk away
    backend::RobustPcaPass<B, T> pass = pass_of(1 / dual_norm, mu_);
    pass.threshold = std::numeric_limits<double>::max();
    robust_pca_pass(queue_, pass, work.scratch);
  }

  /// Of M; 1 where that is zero. V stays for the first iteration, whose X is a multiple of M.
  double largest_singular_value() {
    double largest = 0;
    if (way_ != Way::host) {
      decompose(queue_, work.m, std::numeric_limits<double>::infinity());
      largest = read(work.sigma);
    } else {
      const dense::HostSvd svd = host_svd(work.m);
      if (!svd.s.empty()) largest = svd.s[0];
    }
    return largest == 0 ? 1 : largest;
  }

  double next_mu() const {
    return options_.method == RobustPcaMethod::inexact_alm ? std::min(mu_ * options_.rho, most_mu_) : mu_;
  }

  /// One iteration's numbers into the result and to the user; false when it was the last.
  bool report(RobustPca<T>& result, int iteration, double mu, double residual, Index rank, bool converged) {
    result.iterations = iteration;
    result.rank = rank;
    result.residual = residual;
    result.converged = converged;
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const bool wanted = !options_.on_iteration ||
                        options_.on_iteration({iteration, residual, rank, std::ldexp(mu, -scale_), result.seconds});
    return wanted && !converged && !std::isnan(residual);
  }

  // -- on the host --------------------------------------------------------------------------------------------------

  void run_on_host(RobustPca<T>& result) {
    for (int i = 1; i <= options_.max_iterations; ++i) {
      Threshold threshold = singular_value_threshold(host_svd(work.x), 1 / mu_);
      const Matrix<T> p = dense::from_host_matrix<T>(threshold.projector);
      dense::load<B, T>(queue_, p.view(), work.projector);
      const double mu = mu_;
      update();
      const double residual = std::sqrt(read(work.residual)) / (norm_ > 0 ? norm_ : 1);
      const bool converged = residual <= options_.relative_tolerance && converged_values(threshold.values);
      if (!report(result, i, mu, residual, threshold.rank(), converged)) break;
    }
  }

  /// With a fixed mu the residual is small long before L stops changing: alternating directions also waits until L's
  /// singular values move by no more than the tolerance (a lower bound on the change of L).
  bool converged_values(const std::vector<double>& values) {
    if (options_.method == RobustPcaMethod::inexact_alm) return true;
    double change = 0;
    for (std::size_t i = 0; i < std::max(values.size(), before_.size()); ++i) {
      const double moved = (i < values.size() ? values[i] : 0) - (i < before_.size() ? before_[i] : 0);
      change += moved * moved;
    }
    before_ = values;
    return std::sqrt(change) <= options_.relative_tolerance * norm_;
  }

  /// L from X and the projector; S, Y, the next X and mu; the residual's square.
  void update() {
    using backend::Op;
    gemm(queue_, Op::none, Op::none, T(1), work.x, work.projector, T(0), work.l);
    backend::RobustPcaPass<B, T> pass = pass_of(mu_, next_mu());
    pass.threshold = lambda_ / mu_;
    robust_pca_pass(queue_, pass, work.scratch);
    mu_ = next_mu();
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

  // -- on the device ------------------------------------------------------------------------------------------------

  const Mat& x() const { return swapped_ ? work.l : work.x; }
  const Mat& y() const { return swapped_ ? work.s : work.y; }
  const Mat& other_x() const { return swapped_ ? work.x : work.l; }
  const Mat& other_y() const { return swapped_ ? work.y : work.s; }

  void run_on_device(RobustPca<T>& result) {
    const std::int32_t one = 1;
    queue_.upload(&one, work.running, 1);
    fill(queue_, backend::DeviceMatrix<B, double>{work.before, work.m.cols, 1, work.m.cols, 0, 1}, 0.0, 0.0);
    // a callback may stop, and then the results are those of the iteration that it saw
    const int ahead = way_ == Way::fused && !options_.on_iteration ? batch : 1;
    double mu[batch] = {}, last_mu = mu_;
    int done = 0;
    for (bool more = true; more && done < options_.max_iterations;) {
      const int count = std::min(ahead, options_.max_iterations - done);
      for (int k = 0; k < count; ++k) {
        mu[k] = mu_;
        device_step(work.records + 2 * k);
      }
      double records[2 * batch];
      queue_.download(work.records, records, 2 * count);
      std::int32_t running = 0;
      queue_.download(work.running, &running, 1);
      for (int k = 0; k < count && more; ++k) {
        const double residual = records[2 * k];
        // only the last iteration that ran may have ended it
        const bool ended = running == 0 && (k + 1 == count || records[2 * k + 2] == unwritten);
        last_mu = mu[k];
        more = report(result, ++done, mu[k], residual, static_cast<Index>(records[2 * k + 1]),
                      ended && !std::isnan(residual)) &&
               !ended;
      }
    }
    if (way_ == Way::fused) finish(last_mu, done);
  }

  /// No residual is this.
  static constexpr double unwritten = -1;

  /// V, sigma and P of `a`, through the Gram matrix where its rounding is below what matters.
  void decompose(Queue& queue, const Mat& a, double tau) {
    backend::SmallSvd<B> svd;
    svd.gram = gram_is_enough(tau);
    if (svd.gram) {
      gram(queue, a, work.r, work.scratch);
      if (has_v_) svd.guess = work.v;
    } else {
      factorization().run(a);
      widen(queue, factorization().r_source(), work.r);
    }
    svd.r = work.r;
    svd.v = work.v;
    svd.sigma = work.sigma;
    svd.work = work.svd_work;
    svd.accuracy = sizeof(T) == 4 ? 0x1p-26 : 0x1p-52;
    if (std::isfinite(tau)) {
      svd.product = backend::SmallSvd<B>::Product::threshold;
      svd.threshold = tau;
      svd.result = work.wide_projector;
    }
    small_svd(queue, svd);
    has_v_ = true;
  }

  bool gram_is_enough(double tau) const {
    if (options_.algorithm != Algorithm::automatic) return false;
    const double wanted = std::max<double>(options_.relative_tolerance, std::numeric_limits<T>::epsilon());
    return !std::isfinite(tau) || 0x1p-52 * norm_ <= 0.05 * wanted * tau;  // norm_ is no less than X's sigma_1, nearly
  }

  void device_step(typename B::template Pointer<double> record) {
    const bool fused = way_ == Way::fused;
    Queue queue = fused ? queue_.when(work.running) : queue_;
    fill(queue_, backend::DeviceMatrix<B, double>{record, 2, 1, 2, 0, 1}, unwritten, unwritten);
    decompose(queue, fused ? x() : work.x, 1 / mu_);
    backend::RobustPcaVerdict<B> verdict;
    verdict.threshold = 1 / mu_;
    if (fused) {
      step(queue, mu_, next_mu(), false);
      mu_ = next_mu();
      swapped_ = !swapped_;
    } else {
      narrow(queue_, work.wide_projector, work.projector, backend::Part::all);
      update();
    }
    verdict.residual_squared = work.residual;
    verdict.sigma = work.sigma;
    verdict.before = work.before;
    verdict.record = record;
    verdict.running = work.running;
    verdict.n = work.m.cols;
    verdict.norm = norm_;
    verdict.tolerance = options_.relative_tolerance;
    verdict.settle = options_.method == RobustPcaMethod::alternating;
    robust_pca_verdict(queue, verdict);
  }

  /// The pass over the data: the next X and Y, or (`last`) L and S, to where X and Y are not.
  void step(Queue& queue, double mu, double mu_next, bool last) {
    backend::RobustPcaStep<B, T> step;
    step.m = work.m;
    step.x = x();
    step.y = y();
    step.projector = work.wide_projector;
    step.mu = mu;
    step.mu_next = mu_next;
    step.threshold = lambda_ / mu;
    (last ? step.l : step.x_next) = other_x();
    (last ? step.s : step.y_next) = other_y();
    step.residual_squared = work.residual;
    robust_pca_step(queue, step, work.scratch);
  }

  /// L and S of iteration `done`, from the X and Y it began with.
  void finish(double mu, int done) {
    swapped_ = done % 2 == 0;
    step(queue_, mu, mu, true);
  }

  Queue queue_;
  const plan::DeviceProfile& profile_;
  RobustPcaOptions options_;
  Way way_;
  int scale_ = 0;  // work.m is M 2^-scale_
  double norm_ = 0, largest_ = 0, lambda_ = 0, mu_ = 0, most_mu_ = 0;
  std::vector<double> before_;  // singular values of the last L
  bool has_v_ = false;          // work.v holds the last iteration's V
  bool swapped_ = false;
  std::chrono::steady_clock::time_point begin_;

 public:
  Work<B, T> work;

 private:
  std::optional<dense::Factorization<B, T>> factorization_;
};

}  // namespace qrane::rpca
