// SPDX-License-Identifier: Apache-2.0
// Least squares in double with the triangle of another factorization as preconditioner: conjugate gradients on
// A R⁻¹, restarted from a fresh residual. (Björck, "Numerical Methods for Least Squares Problems", SIAM 1996, sections
// 6.6.3 and 7.4.1.)
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <qrane/sparse_qr.hpp>

#include "sparse/analysis/compact.hpp"

namespace qrane::sparse {

namespace {

using detail::check;

double norm(const std::vector<double>& x) {
  double largest = 0, sum = 0;
  for (const double v : x) largest = std::max(largest, std::abs(v));
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  for (const double v : x) sum += (v / largest) * (v / largest);
  return largest * std::sqrt(sum);
}

/// Some columns of A, in a given order, by columns; duplicates as they come.
class Columns {
 public:
  Columns(const SparseView<double>& a, const Index* columns, Index count) : rows_(a.rows), begin_(count + 1, 0) {
    std::vector<Index> place(a.cols, -1);
    for (Index k = 0; k < count; ++k) place[columns[k]] = k;
    const auto each = [&](auto visit) {
      if (a.storage == Storage::triplets) {
        for (Index p = 0; p < a.entries; ++p) visit(a.row_indices[p], a.col_indices[p], a.values[p]);
        return;
      }
      const bool columns = a.storage == Storage::columns;
      for (Index line = 0; line < (columns ? a.cols : a.rows); ++line)
        for (Index p = a.pointers[line]; p < a.pointers[line + 1]; ++p)
          columns ? visit(a.row_indices[p], line, a.values[p]) : visit(line, a.col_indices[p], a.values[p]);
    };
    each([&](Index, Index j, double) {
      if (place[j] >= 0) ++begin_[place[j] + 1];
    });
    for (Index k = 0; k < count; ++k) begin_[k + 1] += begin_[k];
    row_.resize(begin_.back());
    value_.resize(begin_.back());
    std::vector<Index> next(begin_.begin(), begin_.end() - 1);
    each([&](Index i, Index j, double v) {
      if (place[j] < 0) return;
      const Index p = next[place[j]]++;
      row_[p] = i;
      value_[p] = v;
    });
    for (Index k = 0; k < count; ++k)
      norms_.push_back(norm({value_.begin() + begin_[k], value_.begin() + begin_[k + 1]}));
  }

  /// r - A x
  void subtract_product(const std::vector<double>& x, std::vector<double>& r) const {
    for (std::size_t k = 0; k + 1 < begin_.size(); ++k)
      for (Index p = begin_[k]; p < begin_[k + 1]; ++p) r[row_[p]] -= value_[p] * x[k];
  }
  std::vector<double> product(const std::vector<double>& x) const {
    std::vector<double> y(rows_, 0.0);
    for (std::size_t k = 0; k + 1 < begin_.size(); ++k)
      for (Index p = begin_[k]; p < begin_[k + 1]; ++p) y[row_[p]] += value_[p] * x[k];
    return y;
  }
  /// max_k |z_k| / ‖a_k‖ for z = Aᵀ r: the part of r along a column, at most.
  double largest_cosine(const std::vector<double>& z) const {
    double largest = 0;
    for (std::size_t k = 0; k < z.size(); ++k) {
      if (std::isnan(z[k])) return z[k];
      if (norms_[k] > 0) largest = std::max(largest, std::abs(z[k]) / norms_[k]);
    }
    return largest;
  }
  /// |a_kᵀ r| <= ‖a_k‖ level + slack for every column.
  bool orthogonal_to(const std::vector<double>& r, double level, double slack) const {
    const std::vector<double> z = transposed_product(r);
    for (std::size_t k = 0; k < z.size(); ++k)
      if (!(std::abs(z[k]) <= norms_[k] * level + slack)) return false;
    return true;
  }
  double largest_norm() const {
    double largest = 0;
    for (const double n : norms_) largest = std::max(largest, n);
    return largest;
  }
  /// sum ‖a_k‖ |x_k|
  double weight(const std::vector<double>& x) const {
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) sum += norms_[k] * std::abs(x[k]);
    return sum;
  }
  std::vector<double> transposed_product(const std::vector<double>& r) const {
    std::vector<double> z(begin_.size() - 1);
    for (std::size_t k = 0; k + 1 < begin_.size(); ++k) {
      double sum = 0;
      for (Index p = begin_[k]; p < begin_[k + 1]; ++p) sum += value_[p] * r[row_[p]];
      z[k] = sum;
    }
    return z;
  }

 private:
  Index rows_;
  std::vector<Index> begin_, row_;
  std::vector<double> value_, norms_;
};

/// Solves with the leading triangle of R, in double whatever R's scalar is.
template <class T>
class Triangle {
 public:
  explicit Triangle(SparseMatrix<T> r) : r_(std::move(r)) {
    for (Index j = 0; j < r_.rows; ++j) {
      const Index last = r_.pointers[j + 1] - 1;
      const bool fine =
          last >= r_.pointers[j] && r_.row_indices[last] == j && std::isfinite(static_cast<double>(r_.values[last]));
      check(fine, ErrorCode::rank_deficient, "refine: element ", j, " of R's diagonal is zero or not finite");
    }
  }

  void solve(std::vector<double>& x) const {
    for (Index j = r_.rows - 1; j >= 0; --j) {
      const Index last = r_.pointers[j + 1] - 1;
      x[j] /= static_cast<double>(r_.values[last]);
      for (Index p = r_.pointers[j]; p < last; ++p) x[r_.row_indices[p]] -= static_cast<double>(r_.values[p]) * x[j];
    }
  }
  void solve_transposed(std::vector<double>& x) const {
    for (Index j = 0; j < r_.rows; ++j) {
      const Index last = r_.pointers[j + 1] - 1;
      double sum = x[j];
      for (Index p = r_.pointers[j]; p < last; ++p) sum -= static_cast<double>(r_.values[p]) * x[r_.row_indices[p]];
      x[j] = sum / static_cast<double>(r_.values[last]);
    }
  }

 private:
  SparseMatrix<T> r_;
};

struct Column {
  std::vector<double> x, residual;
  int iterations = 0;
  bool converged = false;
};

/// drop_norm: a dropped column's part outside the live columns' range may be this long in double.
template <class T>
Column refined(const Columns& a, const Columns& dropped, double drop_norm, const Triangle<T>& r,
               const std::vector<double>& b, Index rank, const RefineOptions& options) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  constexpr int patience = 8;  // steps without a smaller gradient, whose norm goes up and down
  Column best{std::vector<double>(rank, 0.0), b, 0, false};
  const double length = norm(b);
  const auto rounding = [&](const std::vector<double>& x) { return 16 * eps * (length + a.weight(x)); };  // of b - A x
  std::vector<double> z = a.transposed_product(b);
  double level = a.largest_cosine(z), fine = rounding(best.x);
  int iterations = 0;
  while (level > fine && iterations < options.max_iterations) {
    Column next = best;
    std::vector<double> x = best.x, s = z;
    r.solve_transposed(s);
    std::vector<double> p = s, residual = best.residual;
    const double start = norm(s);
    double size = start, least = start;
    const double enough = std::max(1e-9 * start, eps * length);
    bool reached = false;
    for (int waited = 0; waited < patience && !reached && iterations < options.max_iterations; ++iterations) {
      std::vector<double> step = p;
      r.solve(step);
      const std::vector<double> q = a.product(step);
      const double curvature = norm(q);
      if (!(curvature > 0) || !std::isfinite(curvature)) break;
      const double alpha = (size / curvature) * (size / curvature);
      for (std::size_t k = 0; k < step.size(); ++k) x[k] += alpha * step[k];
      for (std::size_t k = 0; k < q.size(); ++k) residual[k] -= alpha * q[k];
      s = a.transposed_product(residual);
      reached = a.largest_cosine(s) <= rounding(x);  // further steps would follow noise
      r.solve_transposed(s);
      const double now = norm(s), beta = (now / size) * (now / size);
      for (std::size_t k = 0; k < p.size(); ++k) p[k] = s[k] + beta * p[k];
      ++waited;
      if (now < least) {
        next.x = x;
        least = now;
        waited = 0;
      }
      reached = reached || least <= enough;
      size = now;
    }
    next.residual = b;  // afresh: the recurrence's has drifted
    a.subtract_product(next.x, next.residual);
    z = a.transposed_product(next.residual);
    const double before = level, now = a.largest_cosine(z);
    if (!(now < before)) break;
    level = now;
    best = std::move(next);
    fine = rounding(best.x);
    if (level > before / 2) break;
  }
  best.iterations = iterations;
  best.converged = level <= fine && dropped.orthogonal_to(best.residual, fine, drop_norm * norm(best.residual));
  return best;
}

}  // namespace

template <class T>
RefinedSolution refine(const Context& context, const Factor<T>& factor, const SparseView<double>& a,
                       MatrixView<const double> b, const RefineOptions& options) {
  check(a.rows == factor.rows() && a.cols == factor.cols(), ErrorCode::invalid_argument, "refine: a matrix of ", a.rows,
        " x ", a.cols, ", but the factorization is of ", factor.rows(), " x ", factor.cols());
  check_pattern("refine", a);
  check(a.values || a.entries == 0, ErrorCode::invalid_argument, "refine: values is null");
  check(b.rows == a.rows, ErrorCode::invalid_argument, "refine: b has ", b.rows, " rows instead of ", a.rows);
  check(options.max_iterations >= 0, ErrorCode::invalid_argument,
        "RefineOptions::max_iterations must not be negative, got ", options.max_iterations);
  const Index rank = factor.rank();
  const std::vector<Index> permutation = factor.permutation();
  const Columns live(a, permutation.data(), rank);
  const bool deficient = rank < std::min(a.rows, a.cols);  // else no dropped column adds to the range of the others
  const Columns dropped(a, permutation.data() + rank, deficient ? a.cols - rank : 0);
  const double drop_norm = 20 * static_cast<double>(a.rows + a.cols) * std::numeric_limits<double>::epsilon() *
                           std::max(live.largest_norm(), dropped.largest_norm());  // FactorOptions::tolerance in double
  const Triangle<T> triangle(factor.r());
  Matrix<double> host = Matrix<double>::host(b.rows, b.cols), x = Matrix<double>::host(a.cols, b.cols);
  if (b.rows > 0 && b.cols > 0) context.copy<double>(b, host.view());
  RefinedSolution solution;
  solution.rank = rank;
  solution.full = std::min(a.rows, a.cols);
  for (Index j = 0; j < b.cols; ++j) {
    std::vector<double> right(a.rows);
    for (Index i = 0; i < a.rows; ++i) right[i] = host(i, j);
    const Column column = refined(live, dropped, drop_norm, triangle, right, rank, options);
    for (Index k = 0; k < a.cols; ++k) x(permutation[k], j) = k < rank ? column.x[k] : 0.0;
    solution.residual_norms.push_back(norm(column.residual));
    solution.iterations = std::max(solution.iterations, column.iterations);
    solution.converged = solution.converged && column.converged;
  }
  solution.x = b.memory == Memory::host ? std::move(x) : context.to_device<double>(std::as_const(x).view());
  return solution;
}

template RefinedSolution refine(const Context&, const Factor<float>&, const SparseView<double>&,
                                MatrixView<const double>, const RefineOptions&);
template RefinedSolution refine(const Context&, const Factor<double>&, const SparseView<double>&,
                                MatrixView<const double>, const RefineOptions&);

}  // namespace qrane::sparse
