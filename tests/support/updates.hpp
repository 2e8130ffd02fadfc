// SPDX-License-Identifier: Apache-2.0
// A matrix and its factorization, changed side by side.
#pragma once

#include "support/backends.hpp"
#include "support/measures.hpp"

namespace qrane::test {

inline constexpr Change all_changes[] = {Change::insert_rows, Change::delete_rows, Change::insert_columns,
                                         Change::delete_columns};

template <class T>
Dense<T> top_left(const Dense<T>& a, Index rows, Index cols) {
  Dense<T> b(rows, cols);
  for (Index j = 0; j < cols; ++j) std::copy(a.column(j), a.column(j) + rows, b.column(j));
  return b;
}

/// Rows first .. first+count-1 of the leading columns.
template <class T>
Dense<T> rows_of(const Dense<T>& a, Index first, Index count, Index cols) {
  Dense<T> b(count, cols);
  for (Index j = 0; j < cols; ++j) std::copy(a.column(j) + first, a.column(j) + first + count, b.column(j));
  return b;
}

template <class T>
Dense<T> with_columns(const Dense<T>& a, Index k, const Dense<T>& u) {
  Dense<T> b(a.rows, a.cols + u.cols);
  std::copy(a.values.begin(), a.values.begin() + k * a.rows, b.values.begin());
  std::copy(u.values.begin(), u.values.end(), b.values.begin() + k * a.rows);
  std::copy(a.values.begin() + k * a.rows, a.values.end(), b.values.begin() + (k + u.cols) * a.rows);
  return b;
}
template <class T>
Dense<T> without_columns(const Dense<T>& a, Index k, Index p) {
  Dense<T> b(a.rows, a.cols - p);
  std::copy(a.values.begin(), a.values.begin() + k * a.rows, b.values.begin());
  std::copy(a.values.begin() + (k + p) * a.rows, a.values.end(), b.values.begin() + k * a.rows);
  return b;
}
template <class T>
Dense<T> with_rows(const Dense<T>& a, Index k, const Dense<T>& u) {
  return transposed(with_columns(transposed(a), k, transposed(u)));
}
template <class T>
Dense<T> without_rows(const Dense<T>& a, Index k, Index p) {
  return transposed(without_columns(transposed(a), k, p));
}

/// Where p rows or columns may come in or go out: at the beginning, in the middle, at the end.
template <class T>
std::vector<Index> places(const Dense<T>& a, Change change, Index p) {
  const bool rows = change == Change::insert_rows || change == Change::delete_rows;
  const bool in = change == Change::insert_rows || change == Change::insert_columns;
  const Index size = rows ? a.rows : a.cols, last = in ? size : size - p;
  std::vector<Index> k;
  if (last >= 0) k.push_back(0);
  if (last > 1) k.push_back(last / 2);
  if (last > 0) k.push_back(last);
  return k;
}

template <class T>
class Tracked {
 public:
  Context context;
  Dense<T> a, b;  // b: attached right-hand sides, or no columns
  Dense<T> gone;  // rows that have gone out, as long as no column has gone since
  QForm form;
  UpdatableQR<T> f;

  Tracked(const Context& context_, const Dense<T>& a_, QForm form_)
      : context(context_), a(a_), b(a_.rows, 0), form(form_), f(updatable_qr(context_, a_.view(), with_form(form_))) {}

  void attach(const Dense<T>& b_) {
    b = b_;
    f.attach(b.view(), form == QForm::none ? std::as_const(a).view() : MatrixView<const T>{});
  }

  /// A change by random numbers; with QForm::none the matrix is lent where a change needs it.
  UpdateReport change(Change change, Index k, Index p, std::uint64_t seed,
                      UpdateMethod method = UpdateMethod::automatic, int block_cols = 0) {
    UpdateOptions options;
    options.method = method;
    options.block_cols = block_cols;
    const bool rows = change == Change::insert_rows || change == Change::delete_rows;
    const Dense<T> u = rows ? random_normal<T>(p, a.cols, seed) : random_normal<T>(a.rows, p, seed);
    return change_by(change, k, p, u, random_normal<T>(p, b.cols, seed + 1), options);
  }

  UpdateReport change_by(Change change, Index k, Index p, const Dense<T>& u, const Dense<T>& e,
                         const UpdateOptions& options) {
    Dense<T> next, next_b = b;
    switch (change) {
      case Change::insert_rows:
        next = with_rows(a, k, u);
        if (b.cols > 0) next_b = with_rows(b, k, e);
        break;
      case Change::delete_rows:
        next = without_rows(a, k, p);
        if (b.cols > 0) next_b = without_rows(b, k, p);
        break;
      case Change::insert_columns: next = with_columns(a, k, u); break;
      default: next = without_columns(a, k, p);
    }
    const Dense<T> out = change == Change::delete_rows ? rows_of(a, k, p, a.cols) : Dense<T>();
    const Dense<T> out_b = change == Change::delete_rows ? rows_of(b, k, p, b.cols) : Dense<T>();
    const bool lends = form == QForm::none && change == Change::insert_columns;
    const MatrixView<const T> updated = lends ? std::as_const(next).view() : MatrixView<const T>{};
    UpdateReport report;
    switch (change) {
      case Change::insert_rows:
        report = f.insert_rows(k, u.view(), b.cols > 0 ? e.view() : MatrixView<const T>{}, options);
        break;
      case Change::delete_rows:
        report =
            form == QForm::none ? f.delete_rows(k, p, out.view(), out_b.view(), options) : f.delete_rows(k, p, options);
        break;
      case Change::insert_columns: report = f.insert_columns(k, u.view(), options, updated); break;
      default: report = f.delete_columns(k, p, options);
    }
    if (report.refused) {
      EXPECT_EQ(form, QForm::none);
      return report;
    }
    gone = out;
    a = std::move(next);
    b = std::move(next_b);
    return report;
  }

  /// The attached right-hand sides' solution is that of the matrix: ‖Aᵀ(A x - b)‖ and the residual norms are right.
  ::testing::AssertionResult solves() const {
    using W = Wide<T>;
    const Solution<T> solution = f.solve();
    const Dense<T> x = host(solution.x);
    if (auto shape = has_shape(x, a.cols, b.cols); !shape) return shape;
    const Dense<W> aw = widen(a), rest = subtract(multiply(aw, widen(x)), widen(b));
    const std::vector<double> norms = f.residual_norms();
    const auto unit = static_cast<W>(limit<T>(a.rows, a.cols));
    const W size = norm(aw);
    const Dense<W> gradient = multiply_transposed(aw, rest);
    for (Index j = 0; j < b.cols; ++j) {
      const W scale = size * column_norm(widen(x), j) + column_norm(widen(b), j);
      if (!(column_norm(gradient, j) <= unit * size * scale))
        return ::testing::AssertionFailure()
               << "the gradient of column " << j << " is "
               << static_cast<double>(column_norm(gradient, j) / (unit * size * scale)) << " times its limit";
      // a square that was left by subtraction has half the digits
      const W allowed = form == QForm::none ? std::sqrt(unit) * scale : unit * scale;
      const W off = std::abs(column_norm(rest, j) - static_cast<W>(norms[static_cast<std::size_t>(j)]));
      if (!(off <= allowed))
        return ::testing::AssertionFailure()
               << "the residual norm of column " << j << " is " << norms[static_cast<std::size_t>(j)] << ", should be "
               << static_cast<double>(column_norm(rest, j));
    }
    return ::testing::AssertionSuccess();
  }

  Dense<T> host(const Matrix<T>& x) const {
    Dense<T> y(x.rows(), x.cols());
    if (!y.values.empty()) context.copy<T>(x.view(), y.view());
    return y;
  }
  Dense<T> r() const { return host(f.r()); }
  Dense<T> q() const { return host(f.q()); }

  static Options with_form(QForm form) {
    Options options;
    options.q = form;
    return options;
  }

  /// The factors are those of the matrix. Where rows went out by the last change, rounding of the columns as they were
  /// is all that can be asked for: what is left may be small beside them.

  ::testing::AssertionResult good() const {
    if (f.rows() != a.rows || f.cols() != a.cols)
      return ::testing::AssertionFailure() << "rows() x cols() is " << f.rows() << " x " << f.cols();
    if (a.rows == 0 || a.cols == 0) {
      const auto shape = has_shape(r(), 0, a.cols);
      return shape && form == QForm::thin ? has_shape(q(), a.rows, 0) : shape;
    }
    if (form == QForm::none) return is_r_of(a, r());
    if (gone.rows == 0 || gone.cols != a.cols) return is_qr_of(a, q(), r());
    const Dense<T> before = with_rows(a, 0, gone), qs = q(), rs = r();
    if (auto triangle = upper_triangular(rs); !triangle) return triangle;
    if (auto good = at_most_one(orthogonality(qs, a.rows, a.cols), "the departure of Q from orthonormal"); !good)
      return good;
    const std::vector<int> e = column_exponents(before);
    const auto rest = subtract(scaled(a, e), multiply(widen(qs), scaled(rs, e)));
    return at_most_one(worst_column<T>(rest, scaled(before, e), e), "the largest column residual");
  }
};

}  // namespace qrane::test
