// SPDX-License-Identifier: Apache-2.0
// Plays a sequence on a factorization and on a plain matrix beside it, and compares the two after every call.
//
// Q is judged by its orthogonality. Of A - Q R each column is judged against the largest norm that the column has had
// since the last factorization: rows that went leave rounding of their size behind. R alone is judged by RᵀR - AᵀA in
// the same units. Limits are those of one factorization, times the number of updates.
#pragma once

#include <cmath>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "random_calls/sequence.hpp"
#include "support/hostile.hpp"
#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {

template <class T>
Dense<T> filled(Fill fill, Index m, Index n, std::uint64_t seed) {
  const T huge = sizeof(T) == 4 ? T(1e30) : T(1e150), tiny = 1 / huge;
  if (fill == Fill::zero) return Dense<T>(m, n);
  if (fill == Fill::low_rank) return m > 0 && n > 0 ? hostile::product<T>(m, n, seed) : Dense<T>(m, n);
  Dense<T> a = random_normal<T>(m, n, seed);
  if (fill == Fill::few_rows) {
    const Index few = 1 + static_cast<Index>(seed % 8);
    for (Index j = 0; j < n / 2; ++j) std::fill_n(a.column(j), std::max<Index>(m - few, 0), T(0));
  }
  if (fill == Fill::huge) return hostile::times(std::move(a), huge);
  if (fill == Fill::tiny) return hostile::times(std::move(a), tiny);
  if (fill == Fill::mixed && !a.values.empty()) {
    a.values[seed % a.values.size()] *= huge;
    a.values[seed / 7 % a.values.size()] *= tiny;
  }
  if (fill == Fill::nan && !a.values.empty()) a.values[seed % a.values.size()] = std::numeric_limits<T>::quiet_NaN();
  return a;
}

template <class T>
class Player {
 public:
  Player(const Context& context, const Sequence& sequence) : context_(context), sequence_(sequence) {}

  /// What went wrong first, or nothing.
  std::string play() {
    try {
      a_ = filled<T>(sequence_.fill, sequence_.rows, sequence_.cols, sequence_.seed);
      Options options;
      options.q = sequence_.form;
      f_.emplace(updatable_qr<T>(context_, a_.view(), options));
      started_anew();
      if (sequence_.attached) {
        b_ = random_normal<T>(a_.rows, 2, sequence_.seed + 1);
        f_->attach(b_.view(), a_.view());
      }
      std::string wrong = compare();
      for (std::size_t i = 0; i < sequence_.calls.size() && wrong.empty(); ++i) {
        wrong = step(sequence_.calls[i], sequence_.seed + 10 + static_cast<std::uint32_t>(i));
        if (wrong.empty()) wrong = compare();
        if (!wrong.empty()) wrong = "call " + std::to_string(i) + ": " + wrong;
      }
      return wrong;
    } catch (const std::exception& error) {
      return std::string("it threw: ") + error.what();
    }
  }

 private:
  using W = Wide<T>;
  using View = MatrixView<const T>;

  void started_anew() {
    updates_ = 0;
    widest_ = 0;
    tainted_ = false;
    scale_.assign(static_cast<std::size_t>(a_.cols), 0);
    grow_scale();
  }
  void grow_scale() {
    widest_ = std::max(widest_, std::min(a_.rows, a_.cols));
    for (Index j = 0; j < a_.cols; ++j) {
      W& s = scale_[static_cast<std::size_t>(j)];
      s = std::max(s, norm_of(a_, j));
    }
  }
  static W norm_of(const Dense<T>& a, Index j) {
    W sum = 0;
    for (Index i = 0; i < a.rows; ++i) sum += W(a(i, j)) * W(a(i, j));
    return std::sqrt(sum);
  }

  std::string step(const Call& call, std::uint32_t seed) {
    const auto most = [](std::uint32_t value, Index n) { return static_cast<Index>(value) % (n + 1); };
    const auto at_most = [](std::uint32_t value, Index n) { return std::min<Index>(value, n); };
    constexpr Index tallest = 200, widest = 80;
    const Index m = a_.rows, n = a_.cols;
    switch (call.kind) {
      case Kind::insert_rows: {
        const Index p = at_most(call.p % 50, std::max<Index>(tallest - m, 0)), k = most(call.k, m);
        const Dense<T> u = filled<T>(call.fill, p, n, seed), e = random_normal<T>(p, b_.cols, seed + 5);
        return update(with_rows(a_, k, u), attached() ? with_rows(b_, k, e) : b_, call,
                      [&](const auto& options, View updated) {
                        return f_->insert_rows(k, u.view(), attached() ? e.view() : View{}, options, updated);
                      });
      }
      case Kind::delete_rows: {
        const Index p = at_most(call.p, m), k = most(call.k, m - p);
        removed_ = rows_of(a_, k, p, n);
        removed_b_ = attached() ? rows_of(b_, k, p, b_.cols) : Dense<T>();
        return update(without_rows(a_, k, p), attached() ? without_rows(b_, k, p) : b_, call,
                      [&](const auto& options, View updated) {
                        return f_->delete_rows(k, p, removed_.view(), attached() ? removed_b_.view() : View{}, options,
                                               updated);
                      });
      }
      case Kind::insert_columns: {
        const Index p = at_most(call.p % 50, std::max<Index>(widest - n, 0)), k = most(call.k, n);
        const Dense<T> u = filled<T>(call.fill, m, p, seed);
        const auto before = scale_;
        scale_.insert(scale_.begin() + k, static_cast<std::size_t>(p), W(0));
        return update(
            with_columns(a_, k, u), b_, call,
            [&](const auto& options, View updated) { return f_->insert_columns(k, u.view(), options, updated); },
            before);
      }
      case Kind::delete_columns: {
        const Index p = at_most(call.p, n), k = most(call.k, n - p);
        const auto before = scale_;
        scale_.erase(scale_.begin() + k, scale_.begin() + k + p);
        return update(
            without_columns(a_, k, p), b_, call,
            [&](const auto& options, View updated) { return f_->delete_columns(k, p, options, updated); }, before);
      }
      case Kind::rank_k: {
        const Index p = at_most(call.p % 10, 9);
        const Dense<T> u = filled<T>(call.fill, m, p, seed), v = random_normal<T>(n, p, seed + 1);
        Dense<T> next = a_;
        const auto before = scale_;
        for (Index j = 0; j < n; ++j) {
          W growth = 0;
          for (Index c = 0; c < p; ++c) {
            growth += std::abs(W(v(j, c))) * norm_of(u, c);
            for (Index i = 0; i < m; ++i) next(i, j) += u(i, c) * v(j, c);
          }
          scale_[static_cast<std::size_t>(j)] += growth;
        }
        return update(
            std::move(next), b_, call,
            [&](const auto& options, View updated) { return f_->rank_k_update(u.view(), v.view(), options, updated); },
            before);
      }
      case Kind::refactor:
        a_ = filled<T>(call.fill, m, n, seed);
        f_->refactor(a_.view());
        if (sequence_.form == QForm::none) b_ = Dense<T>();  // only with Q do right-hand sides stay
        started_anew();
        return "";
      case Kind::solve: return solve(seed);
      case Kind::rank: return rank();
    }
    return "";
  }

  template <class Update>
  std::string update(Dense<T> next, Dense<T> next_b, const Call& call, Update change,
                     std::optional<std::vector<W>> before = {}) {
    UpdateOptions options;
    options.method = call.method;
    const View updated = call.lends || sequence_.form == QForm::none ? next.view() : View{};
    try {
      const UpdateReport report = change(options, updated);
      if (report.refused) {
        if (before) scale_ = *before;
        return sequence_.form == QForm::none ? "" : "an update with Q was refused";
      }
    } catch (const Error& error) {
      if (before) scale_ = *before;
      // without Q columns cannot enter beside attached right-hand sides
      const bool cannot = sequence_.form == QForm::none && attached();
      const bool may_refuse = (cannot || call.method != UpdateMethod::automatic) &&
                              (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::invalid_argument);
      return may_refuse ? "" : std::string("it threw: ") + error.what();
    }
    a_ = std::move(next);
    b_ = std::move(next_b);
    ++updates_;
    grow_scale();
    return "";
  }

  bool attached() const { return b_.cols > 0; }
  /// A NaN that has been in the matrix stays in Q and R when its row or column leaves, until the next refactor.
  bool finite() {
    for (const W s : scale_) tainted_ = tainted_ || !std::isfinite(s);
    tainted_ = tainted_ || !all_finite(a_);
    return !tainted_;
  }
  /// Of one factorization, per update; sizes may have been larger before.
  W unit() const { return static_cast<W>((1 + updates_) * 30 * (10 + widest_) * unit_roundoff<T>); }

  std::string compare() {
    const Index m = a_.rows, n = a_.cols, k = std::min(m, n);
    if (f_->rows() != m || f_->cols() != n)
      return detail::concat("it is ", f_->rows(), " x ", f_->cols(), " where the matrix is ", m, " x ", n);
    const Dense<T> r = host(f_->r());
    if (r.rows != k || r.cols != n) return detail::concat("R is ", r.rows, " x ", r.cols);
    if (!finite()) return "";  // results are NaN in part; a later refactor is compared again
    for (Index j = 0; j < n; ++j)
      for (Index i = j + 1; i < k; ++i)
        if (r(i, j) != T(0)) return "R is not upper triangular";
    if (!all_finite(r)) return "R is not finite";
    return sequence_.form == QForm::none ? compare_gram(r) : compare_product(r);
  }
  std::string compare_product(const Dense<T>& r) {
    const Dense<T> q = host(f_->q());
    if (!all_finite(q)) return "Q is not finite";
    const W departure = departure_from_orthonormal(widen(q));
    if (!(departure <= unit()))
      return detail::concat("Q departs from orthonormal by ", double(departure / unit()), " limits");
    const Dense<W> residual = subtract(widen(a_), multiply(widen(q), widen(r)));
    for (Index j = 0; j < a_.cols; ++j) {
      const W limit = unit() * scale_[static_cast<std::size_t>(j)] + underflow_allowance<T>(200, 80);
      if (!(column_norm(residual, j) <= limit))
        return detail::concat("column ", j, " of A - Q R is ", double(column_norm(residual, j) / limit), " limits");
    }
    return "";
  }
  std::string compare_gram(const Dense<T>& r) {
    const Dense<W> gap = subtract(multiply_transposed(widen(a_), widen(a_)), multiply_transposed(widen(r), widen(r)));
    for (Index j = 0; j < a_.cols; ++j)
      for (Index i = 0; i < a_.cols; ++i) {
        const W small = underflow_allowance<T>(200, 80);
        const W si = scale_[static_cast<std::size_t>(i)], sj = scale_[static_cast<std::size_t>(j)];
        const W limit = unit() * si * sj + small * (si + sj) + small * small;
        if (!(std::abs(gap(i, j)) <= limit))
          return detail::concat("element ", i, ", ", j, " of AᵀA - RᵀR is ", double(std::abs(gap(i, j)) / limit),
                                " limits");
      }
    return "";
  }

  std::string solve(std::uint32_t seed) {
    if (sequence_.form == QForm::none && !attached()) return "";
    const Dense<T> b = attached() ? b_ : random_normal<T>(a_.rows, 2, seed);
    const Solution<T> s = attached() ? f_->solve() : f_->solve(b.view());
    const Dense<T> x = host(s.x);
    if (x.rows != a_.cols || x.cols != b.cols) return detail::concat("x is ", x.rows, " x ", x.cols);
    if (!finite() || !plain()) return "";
    const Dense<T> fresh = host(qr<T>(context_, a_.view()).solve(b.view()).x);
    const Dense<W> gap = subtract(widen(b), multiply(widen(a_), widen(x)));
    const Dense<W> fresh_gap = subtract(widen(b), multiply(widen(a_), widen(fresh)));
    W a_norm = 0;
    for (const W c : scale_) a_norm = std::hypot(a_norm, c);
    for (Index j = 0; j < b.cols; ++j) {
      const W allowed =
          unit() * (a_norm * (column_norm(widen(x), j) + column_norm(widen(fresh), j)) + column_norm(widen(b), j)) * 10;
      const W excess = column_norm(gap, j) - column_norm(fresh_gap, j);
      if (attached()) {
        const W said = static_cast<W>(f_->residual_norms()[static_cast<std::size_t>(j)]);
        if (!(std::abs(said - column_norm(fresh_gap, j)) <= norm_allowance(allowed, j)))
          return detail::concat("residual norm ", j, " is said to be ", double(said), " and is ",
                                double(column_norm(fresh_gap, j)));
      }
      if (!(excess <= allowed))
        return detail::concat("the residual of x ", j, " is ", double(excess / allowed), " limits above a fresh one's");
    }
    return "";
  }
  /// Without Q squares of norms are kept, which lose half of the digits where little is left.
  W norm_allowance(W allowed, Index j) const {
    if (sequence_.form != QForm::none) return allowed;
    return allowed + std::sqrt(unit()) * (column_norm(widen(b_), j) + 20);  // rows that went were of up to that size
  }
  std::string rank() {
    const RankReport report = f_->rank();
    const Index k = std::min(a_.rows, a_.cols);
    if (report.full != k || report.rank < 0 || report.rank > k)
      return detail::concat("rank ", report.rank, " of ", report.full, " where the matrix is ", a_.rows, " x ",
                            a_.cols);
    if (!finite() || !plain()) return "";
    const Index fresh = qr<T>(context_, a_.view()).rank().rank;
    return report.rank == fresh ? ""
                                : detail::concat("rank ", report.rank, " where a fresh factorization says ", fresh);
  }
  /// All columns are and were of one size, and nothing is near dependent by chance.
  bool plain() const {
    for (Index j = 0; j < a_.cols; ++j) {
      const W now = norm_of(a_, j), s = scale_[static_cast<std::size_t>(j)];
      if (!(s < W(100) && now > W(0.01) * s)) return false;
    }
    const auto sigma = singular_values(widen(a_));
    if (sigma.empty()) return true;
    const auto [least, largest] = std::minmax_element(sigma.begin(), sigma.end());
    return *least > W(1e-3) * *largest;
  }

  Dense<T> host(const Matrix<T>& a) const {
    Dense<T> b(a.rows(), a.cols());
    if (!b.values.empty()) context_.copy<T>(a.view(), b.view());
    return b;
  }

  const Context& context_;
  const Sequence& sequence_;
  Dense<T> a_, b_, removed_, removed_b_;
  bool tainted_ = false;
  std::optional<UpdatableQR<T>> f_;
  int updates_ = 0;
  Index widest_ = 0;      // min(m, n), since the last factorization
  std::vector<W> scale_;  // of every column: its largest norm since the last factorization
};

}  // namespace qrane::test
