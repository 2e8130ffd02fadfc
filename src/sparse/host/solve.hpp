// SPDX-License-Identifier: Apache-2.0
// The steps of solve.hpp on the CPU, by the members of Factors. All columns are one group; vectors are column-major.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include <qrane/context.hpp>

#include "sparse/solve.hpp"

namespace qrane::sparse {

template <class T>
class HostSolve final : public Solves<HostSolve<T>, T> {
  using Wide = long double;  // squares of what is finite stay finite
 public:
  /// rhs: Qᵀ times the right-hand sides of the factorization, permuted rows x rhs_cols. All arguments must outlive this
  /// object.
  HostSolve(const Context& context, Factors<T>& factors, const T* rhs, Index rhs_cols)
      : context_(context), factors_(factors), rhs_(rhs), rhs_cols_(rhs_cols) {}

  void check_finite(const char* name, MatrixView<const T> a) override {
    const Matrix<T> host = user(a);
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < a.rows; ++i)
        detail::check(std::isfinite(host(i, j)), ErrorCode::not_finite, name, " has a NaN or Inf at row ", i,
                      ", column ", j, " (0-based)");
  }

  /// The rows of a user's matrix in the order of S.
  std::vector<T> permuted_rows(MatrixView<const T> b) const {
    std::vector<T> rows(backend::elements_of<T>(b.rows, b.cols));
    take(user(b), s().row_perm, rows, b.cols);
    return rows;
  }

  struct Group {
    Index cols = 0;
    std::vector<T> rows, x, total, y, z;
  };
  struct Output {
    const Context& context;
    Memory where;
    Matrix<T> matrix;
    Matrix<T>& columns(Index, Index) { return matrix; }
    Matrix<T> finish() {
      return where == Memory::host ? std::move(matrix) : context.template to_device<T>(std::as_const(matrix).view());
    }
  };

  const Factors<T>& factors() const { return factors_; }
  Index riding_cols() const { return rhs_cols_; }
  template <class Work>
  void in_groups(Index cols, const GroupNeeds& needs, Work work) {
    if (cols == 0) return;
    Group g{.cols = cols,
            .rows = std::vector<T>(backend::elements_of<T>(s().rows, cols)),
            .x = {},
            .total = {},
            .y = {},
            .z = {}};
    if (needs.r)
      g.x.resize(backend::elements_of<T>(s().cols, cols)), g.y.resize(backend::elements_of<T>(factors_.rank(), cols));
    if (needs.rt) g.z.resize(backend::elements_of<T>(s().cols, cols));
    work(Index{0}, g);
  }
  /// A column-major copy in host memory.
  Matrix<T> user(MatrixView<const T> view) const {
    Matrix<T> host = Matrix<T>::host(view.rows, view.cols);
    if (view.rows > 0 && view.cols > 0) context_.template copy<T>(view, host.view());
    return host;
  }
  void store(const Matrix<T>& user, MatrixView<T> view) const { context_.template copy<T>(user.view(), view); }
  Output output(Index rows, Index cols, Memory where) const { return {context_, where, Matrix<T>::host(rows, cols)}; }

  void take_rows(const Matrix<T>& u, Group& g) const { take(u, s().row_perm, g.rows, g.cols); }
  void give_rows(const Group& g, Matrix<T>& u) const { scatter(g.rows, s().row_perm, u, g.cols); }
  void take_q_rows(const Matrix<T>& u, Group& g) const {
    const std::vector<Index> order = factors_.q_rows();
    for (Index j = 0; j < g.cols; ++j)
      for (Index k = 0; k < s().rows; ++k) g.rows[order[k] + j * s().rows] = u(k, j);
  }
  void give_q_rows(const Group& g, Matrix<T>& u) const {
    const std::vector<Index> order = factors_.q_rows();
    for (Index j = 0; j < g.cols; ++j)
      for (Index k = 0; k < s().rows; ++k) u(k, j) = g.rows[order[k] + j * s().rows];
  }
  void take_cols(const Matrix<T>& u, Group& g) const {
    take(u, s().col_perm, g.z, g.cols);
    for (Index j = 0; j < g.cols; ++j) scale(g.z.data() + j * s().cols);
  }
  void give_cols(std::vector<T>& lines, const Group& g, Matrix<T>& u) const {
    for (Index j = 0; j < g.cols; ++j) scale(lines.data() + j * s().cols);
    scatter(lines, s().col_perm, u, g.cols);
  }
  void take_riding(Index first, Group& g) const { factors_.gather_r_rows(rhs_ + first * s().rows, g.y.data(), g.cols); }
  void reflect(Op op, Group& g) const { factors_.apply(op, g.rows.data(), g.cols); }
  void r_of_rows(Group& g) const { factors_.gather_r_rows(g.rows.data(), g.y.data(), g.cols); }
  void rows_of_r(Group& g) const { factors_.scatter_r_rows(g.y.data(), g.rows.data(), g.cols); }
  void solve_r(Group& g) const { factors_.solve_r(g.y.data(), g.x.data(), g.cols); }
  void solve_rt(Group& g) const { factors_.solve_rt(g.z.data(), g.y.data(), g.cols); }
  void clear_total(Group& g) const { g.total.assign(g.x.size(), T(0)); }
  void add_total(Group& g) const {
    for (std::size_t k = 0; k < g.x.size(); ++k) g.total[k] += g.x[k];
  }

  void subtract_product(const std::vector<T>& x, Group& g) const {
    for (Index j = 0; j < g.cols; ++j)
      s().for_each_row([&](Index k, Index first, Index last, auto column) {
        T sum = g.rows[k + j * s().rows];
        for (Index p = first; p < last; ++p) sum -= factors_.values()[p] * x[column(p) + j * s().cols];
        g.rows[k + j * s().rows] = sum;
      });
  }
  void normal(Group& g) const {
    std::fill(g.z.begin(), g.z.end(), T(0));
    add_normal(1, g);
  }
  void subtract_normal(Group& g) const { add_normal(-1, g); }

  void row_norms(const Group& g, Solution<T>& solution) const {
    for (Index j = 0; j < g.cols; ++j)
      solution.residual_norms.push_back(norm(s().rows, [&](Index k) { return g.rows[k + j * s().rows]; }));
  }
  void col_norms(const Group& g, Solution<T>& solution) const {
    for (Index j = 0; j < g.cols; ++j)
      solution.residual_norms.push_back(
          norm(s().cols, [&](Index k) { return factors_.unscaled(g.z[k + j * s().cols], k); }));
  }
  /// Norms of Qᵀ times the factorization's right-hand sides below R: the residuals, except for dropped columns.
  void riding_norms(Solution<T>& solution) const {
    const std::vector<Index> order = factors_.q_rows();
    const Index rank = factors_.rank();
    for (Index j = 0; j < rhs_cols_; ++j)
      solution.residual_norms.push_back(
          norm(s().rows - rank, [&](Index k) { return rhs_[order[rank + k] + j * s().rows]; }));
  }

 private:
  const Symbolic& s() const { return factors_.symbolic(); }

  static void take(const Matrix<T>& u, const std::vector<Index>& order, std::vector<T>& lines, Index cols) {
    const Index n = static_cast<Index>(order.size());
    for (Index j = 0; j < cols; ++j)
      for (Index k = 0; k < n; ++k) lines[k + j * n] = u(order[k], j);
  }
  static void scatter(const std::vector<T>& lines, const std::vector<Index>& order, Matrix<T>& u, Index cols) {
    const Index n = static_cast<Index>(order.size());
    for (Index j = 0; j < cols; ++j)
      for (Index k = 0; k < n; ++k) u(order[k], j) = lines[k + j * n];
  }
  void scale(T* column) const {
    const std::vector<std::int32_t>& exponents = factors_.exponents();
    for (std::size_t k = 0; k < exponents.size(); ++k)
      if (exponents[k] != 0) column[k] = std::ldexp(column[k], exponents[k]);
  }
  void add_normal(int sign, Group& g) const {
    for (Index j = 0; j < g.cols; ++j)
      s().for_each_row([&](Index k, Index first, Index last, auto column) {
        const T row = static_cast<T>(sign) * g.rows[k + j * s().rows];
        for (Index p = first; p < last; ++p) g.z[column(p) + j * s().cols] += factors_.values()[p] * row;
      });
  }
  template <class Element>
  static double norm(Index count, Element element) {
    Wide sum = 0;
    for (Index k = 0; k < count; ++k) sum += static_cast<Wide>(element(k)) * static_cast<Wide>(element(k));
    return static_cast<double>(std::sqrt(sum));
  }

  const Context& context_;
  Factors<T>& factors_;
  const T* rhs_;
  Index rhs_cols_;
};

}  // namespace qrane::sparse
