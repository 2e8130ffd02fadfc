// SPDX-License-Identifier: Apache-2.0
// How far a triangle is from singular, its rank, and what is solved when it has lost some: the least-norm solution of
// wide triangular systems, and solutions through a pivoted factor.
//
// Triangles up to `widest_on_host` go to the host, in double. Wider ones stay on the device: their norms, and those of
// their inverses, are estimated from two products and two triangular solves with a block of vectors (after Higham,
// Tisseur, "A block algorithm for matrix 1-norm estimation", SIMAX 2000), and pivoting happens there too.
#pragma once

#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "dense/factorization.hpp"
#include "dense/pivoted_matrix.hpp"

namespace qrane::dense {

constexpr Index widest_on_host = 512;

/// The relative tolerance that an option asks for: negative is the default. Every rank is decided by this.
template <class T>
double tolerance_or_default(double relative_tolerance, Index rows, Index cols) {
  detail::check(!std::isnan(relative_tolerance), ErrorCode::invalid_argument, "relative_tolerance is NaN");
  return relative_tolerance >= 0 ? relative_tolerance : default_relative_tolerance<T>(rows, cols);
}

struct TriangleFacts {
  double condition = 1;  // of the leading square in the 1-norm, estimated from below
  double spread = 1;     // about the largest |r_00| / |r_kk| of a pivoted R
};

/// Throws where the options refuse what the rank says; `full` columns or rows at most.
inline void refuse_deficient(const SolveOptions& options, Index rank, Index full, double tolerance, double condition) {
  detail::check(!options.refuse_deficient || rank >= full, ErrorCode::rank_deficient, "A has rank ", rank, " of ", full,
                " at relative tolerance ", tolerance, ", condition estimate ", condition);
}

struct NormEstimates {
  double one = 0, two = 0;  // both from below
};

/// The largest 1-norm and 2-norm of x's columns [first, end), each divided by its element of `before`; NaN and infinity
/// stay.
template <class T>
void raise_norms(NormEstimates& norms, const Matrix<T>& x, Index first, Index end, const std::vector<double>& before,
                 bool with_one) {
  for (Index c = first; c < end; ++c) {
    double sum = 0, square = 0;
    for (Index i = 0; i < x.rows(); ++i) {
      const double value = static_cast<double>(x(i, c));
      sum += std::abs(value);
      square += value * value;
    }
    const double two = std::sqrt(square) / before[static_cast<std::size_t>(c)];
    if (with_one && !(sum <= norms.one)) norms.one = sum;
    if (!(two <= norms.two)) norms.two = two;
  }
}

/// Norms of a k x k matrix A of which only products are known: forward(x) and backward(x) replace x by A x, Aᵀ x. x is
/// k x 2 probes. Z := Aᵀ S for random signs S has the inner products of A's columns with S, so its largest rows point
/// at A's longest columns, and A Z is a step of the power method: one product with both finds either norm.
template <class B, class T, class Forward, class Backward>
NormEstimates estimate_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& x, Forward forward,
                             Backward backward) {
  const Index k = x.rows, probes = x.cols / 2;
  Matrix<T> host = Matrix<T>::host(k, x.cols);
  std::uint64_t state = 1;
  for (Index c = 0; c < probes; ++c)
    for (Index i = 0; i < k; ++i) host(i, c + probes) = (random_bits(state) & 1) != 0 ? T(1) : T(-1);
  load<B, T>(queue, std::as_const(host).view(), x);
  backward(x.columns(probes, probes));
  store<B, T>(queue, x, host.view());
  NormEstimates norms;
  std::vector<double> before(static_cast<std::size_t>(x.cols), std::sqrt(static_cast<double>(k)));
  raise_norms(norms, host, probes, 2 * probes, before, false);
  std::vector<Index> order(static_cast<std::size_t>(k));
  std::vector<double> size(static_cast<std::size_t>(k), 0.0);
  std::iota(order.begin(), order.end(), Index{0});
  for (Index c = probes; c < 2 * probes; ++c) {
    double square = 0;
    for (Index i = 0; i < k; ++i) {
      const double value = static_cast<double>(host(i, c));
      if (!std::isfinite(value)) return {value, value};  // and sizes below can be compared
      size[static_cast<std::size_t>(i)] += value * value;
      square += value * value;
    }
    before[static_cast<std::size_t>(c)] = std::sqrt(square);
  }
  std::partial_sort(order.begin(), order.begin() + probes, order.end(), [&](Index i, Index j) {
    const double a = size[static_cast<std::size_t>(i)], b = size[static_cast<std::size_t>(j)];
    return a > b || (a == b && i < j);
  });
  for (Index c = 0; c < probes; ++c) {
    before[static_cast<std::size_t>(c)] = 1;
    for (Index i = 0; i < k; ++i) host(i, c) = i == order[static_cast<std::size_t>(c)] ? T(1) : T(0);
  }
  load<B, T>(queue, std::as_const(host).view(), x);
  forward(x);
  store<B, T>(queue, x, host.view());
  raise_norms(norms, host, 0, probes, before, true);
  raise_norms(norms, host, probes, 2 * probes, before, false);
  return norms;
}

/// The upper triangle of r on the host, zeros below.
template <class B, class T>
HostMatrix host_triangle(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& r) {
  HostMatrix host = to_host_matrix<B, T>(queue, r);
  for (Index j = 0; j < host.cols; ++j)
    for (Index i = j + 1; i < host.rows; ++i) host(i, j) = 0;
  return host;
}

/// Of the leading square of r, whose upper triangle is read.
template <class B, class T>
TriangleFacts triangle_facts(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& r) {
  using namespace backend;
  const Index k = std::min(r.rows, r.cols);
  if (k > widest_on_host) {
    constexpr Index columns = 16;  // a solve takes as long with one
    const Temporary<B, T> square(queue, k, k), x(queue, k, columns), y(queue, k, columns);
    copy(queue, r.block(0, 0, k, k), square.matrix, Part::upper);
    const auto solve = [&](Op op) {
      return [&, op](const DeviceMatrix<B, T>& v) {
        trsm(queue, backend::Side::left, Triangle::upper, op, Diagonal::non_unit, T(1), square.matrix, v);
      };
    };
    const auto multiply = [&](Op op) {
      return [&, op](const DeviceMatrix<B, T>& v) {
        const DeviceMatrix<B, T> product = y.matrix.columns(0, v.cols);
        gemm(queue, op, Op::none, T(1), square.matrix, v, T(0), product);
        copy(queue, product, v, Part::all);
      };
    };
    const NormEstimates norms = estimate_norms<B, T>(queue, x.matrix, multiply(Op::none), multiply(Op::transpose));
    const NormEstimates inverse = estimate_norms<B, T>(queue, x.matrix, solve(Op::none), solve(Op::transpose));
    const TriangleFacts facts{norms.one * inverse.one, norms.two * inverse.two};
    if (std::isfinite(facts.condition) && std::isfinite(facts.spread)) return facts;
  }
  const double condition = triangle_condition(host_triangle<B, T>(queue, r));  // takes any scale, and NaN
  return {condition, condition};
}

/// R of a factorization, as much of it as somebody asks for.
template <class B, class T>
class RankView {
 public:
  const double condition;

  /// F: a factorization, or whatever else has queue(), r_source() and k() and outlives this.
  template <class F>
  explicit RankView(F& f) : RankView(f.queue(), f.r_source()) {}
  RankView(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& r)
      : RankView(queue, r, triangle_facts<B, T>(queue, r)) {}

  /// Whether pivoting happens on the device: the way over the host is cheap for small triangles only.
  bool on_device() const { return k() > queue_->limits(T{}).host_pivot_cols; }

  /// k x n, on the host.
  const HostMatrix& r() {
    if (!host_) host_ = host_triangle<B, T>(*queue_, r_);
    return *host_;
  }
  const PivotedQR& pivot() {
    if (!pivoted_) pivoted_ = pivoted_qr(r());
    return *pivoted_;
  }
  PivotedMatrix<B, T>& device_pivot() {
    if (!device_) {
      const bool randomized = r_.rows > widest_exact_pivoting;
      device_ = std::make_unique<PivotedMatrix<B, T>>(*queue_, r_.rows, r_.cols, r_.rows, randomized);
      copy(*queue_, r_, device_->a(), backend::Part::upper);
      device_->run(0, false);
    }
    return *device_;
  }

  /// Leading elements of the pivoted diagonal above the tolerance; also the absolute tolerance.
  Index numerical_rank(double relative_tolerance, double* absolute_tolerance = nullptr) {
    if (!on_device()) return dense::numerical_rank(pivot(), relative_tolerance, absolute_tolerance);
    if (absolute_tolerance) *absolute_tolerance = relative_tolerance * device_pivot().first_diagonal();
    return device_pivot().rank_at(relative_tolerance);
  }

  /// Rank of the triangle; the pivoted look is taken only where its condition leaves a doubt.
  Index decide(double relative_tolerance) {
    if (std::isnan(condition)) return k();  // NaN spreads by itself; a rank would be a guess
    // the estimates may be low by a small factor; a pivoted diagonal ratio is at most n times the condition
    if (spread_ * relative_tolerance * 10 < 1) return k();
    return numerical_rank(relative_tolerance);
  }

 private:
  RankView(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& r, const TriangleFacts& facts)
      : condition(facts.condition), queue_(&queue), r_(r), spread_(facts.spread) {}
  Index k() const { return std::min(r_.rows, r_.cols); }

  typename B::Queue* queue_;
  backend::DeviceMatrix<B, T> r_;  // its upper trapezoid
  double spread_;
  std::optional<HostMatrix> host_;
  std::optional<PivotedQR> pivoted_;
  std::unique_ptr<PivotedMatrix<B, T>> device_;
};

/// x, n x c := the least-norm solution of R x = y for the upper trapezoidal r x n R, r < n: Rᵀ = Z S, x = Z S^-T y.
template <class B, class T>
void solve_least_norm(typename B::Queue& queue, const plan::DeviceProfile& profile,
                      const backend::DeviceMatrix<B, T>& r, const backend::DeviceMatrix<B, T>& y,
                      const backend::DeviceMatrix<B, T>& x) {
  using namespace backend;
  const Index k = r.rows, n = r.cols;
  Factorization<B, T> z(queue, plan::make_plan(profile, n, k, 1, sizeof(T), Options{}));
  const Temporary<B, T> upper(queue, k, n), transposed(queue, n, k);
  copy(queue, r, upper.matrix, Part::upper);
  transpose(queue, upper.matrix, transposed.matrix);
  z.run(transposed.matrix);
  fill(queue, x, T(0), T(0));
  const DeviceMatrix<B, T> top = x.block(0, 0, k, x.cols);
  copy(queue, y.block(0, 0, k, x.cols), top, Part::all);
  trsm(queue, backend::Side::left, Triangle::upper, Op::transpose, Diagonal::non_unit, T(1),
       z.r_source().block(0, 0, k, k), top);
  z.apply(Op::none, x);
  queue.synchronize();
}

/// The solution of R Pᵀ x = Qᵀ y from the leading `rank` columns of a pivoted factorization: of least norm, or basic.
/// y has the factored matrix's rows, and is destroyed.
template <class B, class T>
Matrix<T> solve_pivoted(typename B::Queue& queue, const plan::DeviceProfile& profile, PivotedMatrix<B, T>& f,
                        Index rank, const backend::DeviceMatrix<B, T>& y, bool least_norm, Memory where) {
  using namespace backend;
  const Index n = f.packed().cols;
  f.apply(Op::transpose, y);
  const Temporary<B, T> x(queue, n, y.cols);
  fill(queue, x.matrix, T(0), T(0));
  const DeviceMatrix<B, T> leading = x.matrix.block(0, 0, rank, y.cols);
  if (rank > 0 && y.cols > 0 && least_norm && rank < n) {
    solve_least_norm<B, T>(queue, profile, f.packed().block(0, 0, rank, n), y, x.matrix);
  } else if (rank > 0 && y.cols > 0) {
    copy(queue, y.block(0, 0, rank, y.cols), leading, Part::all);
    trsm(queue, backend::Side::left, Triangle::upper, Op::none, Diagonal::non_unit, T(1),
         f.packed().block(0, 0, rank, rank), leading);
  }
  Matrix<T> pivoted = Matrix<T>::host(n, y.cols), out = Matrix<T>::host(n, y.cols);
  store<B, T>(queue, x.matrix, pivoted.view());
  for (Index c = 0; c < y.cols; ++c)
    for (Index j = 0; j < n; ++j) out(f.columns()[static_cast<std::size_t>(j)], c) = pivoted(j, c);
  if (where == Memory::host) return out;
  Matrix<T> placed = device_matrix<B, T>(queue, n, y.cols);
  load<B, T>(queue, std::as_const(out).view(), as_device<B>(placed.view()));
  queue.synchronize();
  return placed;
}

}  // namespace qrane::dense
