// SPDX-License-Identifier: Apache-2.0
// What sparse::Factor<T> stands on: between the user's rows, columns and memory and the permuted ones of
// src/sparse/host/numeric.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include <qrane/sparse_qr.hpp>

#include "api/engine.hpp"
#include "sparse/host/numeric.hpp"
#include "sparse/processor.hpp"

namespace qrane::detail {

using sparse::Factors;
using sparse::FactorUse;
using sparse::Numeric;
using sparse::Symbolic;

template <class T>
sparse::NumericOptions numeric_options(const sparse::FactorOptions<T>& from) {
  sparse::NumericOptions options;
  options.tolerance = from.tolerance;
  options.detect_rank = from.detect_rank;
  options.keep_q = from.q == sparse::KeepQ::keep;
  options.memory_limit_bytes = from.memory_limit_bytes;
  options.on_progress = from.on_progress;
  return options;
}

template <class T>
class SparseFactorState {
  using Wide = long double;  // squares of what is finite stay finite
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static Wide square(T x) { return static_cast<Wide>(x) * static_cast<Wide>(x); }

 public:
  SparseFactorState(const sparse::Analysis& analysis, const sparse::FactorOptions<T>& options)
      : context_(analysis.context()), analyzed_(analysis.shared()), options_(options), symbolic_(analyzed_) {
    check(options.threads >= 0, ErrorCode::invalid_argument, "FactorOptions::threads must not be negative, got ",
          options.threads);
    check(options.memory_limit_bytes >= 0, ErrorCode::invalid_argument,
          "FactorOptions::memory_limit_bytes must not be negative, got ", options.memory_limit_bytes);
    check(!std::isnan(options.tolerance), ErrorCode::invalid_argument, "FactorOptions::tolerance is NaN");
    make_numeric();
  }

  void run(const T* values, MatrixView<const T> rhs) {
    const Symbolic& shape = *analyzed_;
    check(values || shape.user_entries == 0, ErrorCode::invalid_argument, "factor: values is null");
    const bool with_rhs = rhs.cols > 0;
    if (with_rhs) check_rows("the right-hand side", rhs.rows, shape.rows);
    check_numbers("the right-hand side", rhs);
    if (options_.check_finite)
      for (Index p = 0; p < shape.user_entries; ++p)
        check(std::isfinite(values[p]), ErrorCode::not_finite, "factor: the value of entry ", p, " of the pattern is ",
              static_cast<double>(values[p]));
    const auto start = std::chrono::steady_clock::now();
    valid_ = false;
    if (symbolic_ != analyzed_) {  // what was unfit last time may be fit now
      symbolic_ = analyzed_;
      make_numeric();
    }
    const auto permuted = [&] {
      rhs_cols_ = with_rhs ? rhs.cols : 0;
      rhs_memory_ = rhs.memory;
      if (with_rhs) rhs_ = permuted_rows(rhs);
    };
    permuted();
    if (!numeric_->run(values, rhs_.data(), rhs_cols_)) {
      analyze_again(values);
      permuted();
      check(numeric_->run(values, rhs_.data(), rhs_cols_), ErrorCode::device,
            "factor: singletons below the tolerance after a second analysis");
    }
    facts_.threads = numeric_->threads();
    facts_.backend = numeric_->backend();
    facts_.on_device = on_device_;
    facts_.moved_bytes = numeric_->moved_bytes();
    facts_.stages = numeric_->stages();
    facts_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    facts_.flops = symbolic_->facts.flops;
    facts_.rank = numeric_->rank();
    facts_.tolerance = numeric_->tolerance();
    facts_.dropped_norm = numeric_->dropped_norm();
    facts_.peak_bytes = numeric_->peak_bytes();
    facts_.bytes = numeric_->memory_bytes();
    facts_.analyzed_again = symbolic_ != analyzed_;
    const Index full = std::min(shape.rows, shape.cols);
    check(!options_.refuse_deficient || facts_.rank >= full, ErrorCode::rank_deficient, "the matrix has rank ",
          facts_.rank, " of ", full, " to the tolerance ", facts_.tolerance);
    valid_ = true;
  }

  const Symbolic& symbolic() const { return *analyzed_; }
  const sparse::FactorFacts& facts() const { return facts_; }

  /// Positions of the permuted columns in permutation(): live ones first.
  std::vector<Index> positions() const {
    check_valid();
    const Symbolic& s = *symbolic_;
    std::vector<Index> position(at(s.cols), -1);
    Index next = 0;
    for (Index k = 0; k < s.singletons; ++k) position[at(k)] = next++;
    for (std::size_t f = 0; f < s.fronts.size(); ++f)
      for (Index j = 0; j < s.fronts[f].pivots; ++j)
        if (numeric_->fronts()[f].is_live(j)) position[at(s.fronts[f].first_col + j)] = next++;
    for (Index& p : position)
      if (p < 0) p = next++;
    return position;
  }

  std::vector<Index> permutation() const {
    const std::vector<Index> position = positions();
    std::vector<Index> columns(position.size());
    for (std::size_t k = 0; k < position.size(); ++k) columns[at(position[k])] = symbolic_->col_perm[k];
    return columns;
  }

  sparse::SparseMatrix<T> r() const {
    const std::vector<Index> position = positions();
    sparse::SparseMatrix<T> r;
    r.rows = numeric_->rank();
    r.cols = symbolic_->cols;
    r.pointers.assign(at(r.cols) + 1, 0);
    for_r([&](Index, Index column, T value) { r.pointers[at(position[at(column)]) + 1] += value != T(0); });
    for (Index k = 0; k < r.cols; ++k) r.pointers[at(k) + 1] += r.pointers[at(k)];
    r.row_indices.resize(at(r.pointers.back()));
    r.values.resize(at(r.pointers.back()));
    std::vector<Index> next(r.pointers.begin(), r.pointers.end() - 1);
    for_r([&](Index row, Index column, T value) {  // rows come ascending
      if (value == T(0)) return;
      const Index p = next[at(position[at(column)])]++;
      r.row_indices[at(p)] = row;
      r.values[at(p)] = unscaled(value, column);
    });
    return r;
  }

  /// C in the user's memory := Qᵀ C or Q C.
  void apply(backend::Op op, MatrixView<T> c) const {
    check_q("applying Q");
    check_rows("C", c.rows, symbolic_->rows);
    check_numbers("C", c);
    if (c.cols == 0 || c.rows == 0) return;
    if (on_device(FactorUse::apply, c.cols, c.memory, [&](auto& uses) { uses.apply(op, c); })) return;
    Matrix<T> host = staged(c);
    const std::vector<Index> order = q_rows();
    const Index m = symbolic_->rows;
    std::vector<T> w(at(m * c.cols));
    const auto& from = op == backend::Op::transpose ? symbolic_->row_perm : order;
    const auto& to = op == backend::Op::transpose ? order : symbolic_->row_perm;
    // user's row row_perm[k] is row k of S; row i of QᵀC is row order[i] of S
    for (Index j = 0; j < c.cols; ++j)
      for (Index k = 0; k < m; ++k) {
        if (op == backend::Op::transpose)
          w[at(k + j * m)] = host(from[at(k)], j);
        else
          w[at(from[at(k)] + j * m)] = host(k, j);
      }
    numeric_->apply(op, w.data(), c.cols);
    for (Index j = 0; j < c.cols; ++j)
      for (Index k = 0; k < m; ++k) {
        if (op == backend::Op::transpose)
          host(k, j) = w[at(to[at(k)] + j * m)];
        else
          host(to[at(k)], j) = w[at(k + j * m)];
      }
    context_.template copy<T>(std::as_const(host).view(), c);
  }

  sparse::SparseSolution<T> solve(MatrixView<const T> b) const {
    check_valid();
    check_rows("b", b.rows, symbolic_->rows);
    check_numbers("b", b);
    sparse::SparseSolution<T> solution;
    if (on_device(FactorUse::solve, b.cols, b.memory, [&](auto& uses) { solution = uses.solve(b); })) return solution;
    const Index n = b.cols, cols = symbolic_->cols;
    const std::vector<T> w = permuted_rows(b);
    std::vector<T> x(at(cols * n)), y(at(numeric_->rank() * n));
    if (numeric_->options().keep_q) {
      std::vector<T> c = w;
      numeric_->apply(backend::Op::transpose, c.data(), n);
      numeric_->gather_r_rows(c.data(), y.data(), n);
      numeric_->solve_r(y.data(), x.data(), n);
    } else {
      // Rᵀ R x = Sᵀ b, then once more for what is left (Björck, "Stability analysis of the method of seminormal
      // equations for linear least squares problems", 1987)
      std::vector<T> residual = w, correction(x.size());
      for (int pass = 0; pass < 2; ++pass) {
        std::vector<T> z = times_transpose(residual, n);
        numeric_->solve_rt(z.data(), y.data(), n);
        numeric_->solve_r(y.data(), correction.data(), n);
        for (std::size_t k = 0; k < x.size(); ++k) x[k] += correction[k];
        residual = w;
        subtract_product(x, residual, n);
      }
    }
    return finish(x, w, n, b.memory);
  }

  sparse::SparseSolution<T> solve() const {
    check_valid();
    check(rhs_cols_ > 0, ErrorCode::unavailable, "solve() needs the right-hand sides that FactorOptions::rhs gives");
    sparse::SparseSolution<T> solution;
    if (!on_device(FactorUse::solve_riding, rhs_cols_, rhs_memory_,
                   [&](auto& uses) { solution = uses.solve_riding(rhs_memory_); })) {
      std::vector<T> x(at(symbolic_->cols * rhs_cols_)), y(at(numeric_->rank() * rhs_cols_));
      numeric_->gather_r_rows(rhs_.data(), y.data(), rhs_cols_);
      numeric_->solve_r(y.data(), x.data(), rhs_cols_);
      solution = finish_x(x, rhs_cols_, rhs_memory_);
    }
    // what Qᵀ leaves below R is the residual, but for what was dropped
    const std::vector<Index> order = q_rows();
    for (Index j = 0; j < rhs_cols_; ++j) {
      Wide sum = 0;
      for (Index k = numeric_->rank(); k < symbolic_->rows; ++k)
        sum += square(rhs_[at(order[at(k)] + j * symbolic_->rows)]);
      solution.residual_norms.push_back(static_cast<double>(std::sqrt(sum)));
    }
    return solution;
  }

  sparse::SparseSolution<T> solve_transposed(MatrixView<const T> b) const {
    check_q("the solution of least norm");
    const Symbolic& s = *symbolic_;
    check_rows("b", b.rows, s.cols);
    check_numbers("b", b);
    sparse::SparseSolution<T> solution;
    if (on_device(FactorUse::solve_transposed, b.cols, b.memory,
                  [&](auto& uses) { solution = uses.solve_transposed(b); }))
      return solution;
    const Index n = b.cols;
    const Matrix<T> host = staged(b);
    std::vector<T> z(at(s.cols * n)), y(at(numeric_->rank() * n)), w(at(s.rows * n));
    for (Index j = 0; j < n; ++j)
      for (Index k = 0; k < s.cols; ++k) z[at(k + j * s.cols)] = scaled(host(s.col_perm[at(k)], j), k);
    std::vector<T> left = z;
    numeric_->solve_rt(left.data(), y.data(), n);
    numeric_->scatter_r_rows(y.data(), w.data(), n);
    numeric_->apply(backend::Op::none, w.data(), n);
    Matrix<T> x = Matrix<T>::host(s.rows, n);
    for (Index j = 0; j < n; ++j)
      for (Index k = 0; k < s.rows; ++k) x(s.row_perm[at(k)], j) = w[at(k + j * s.rows)];
    const std::vector<T> product = times_transpose(w, n);
    for (Index j = 0; j < n; ++j) {
      Wide sum = 0;
      for (Index k = 0; k < s.cols; ++k)
        sum += square(unscaled(z[at(k + j * s.cols)] - product[at(k + j * s.cols)], k));
      solution.residual_norms.push_back(static_cast<double>(std::sqrt(sum)));
    }
    solution.x = placed(std::move(x), b.memory);
    solution.rank = numeric_->rank();
    solution.full = std::min(s.rows, s.cols);
    return solution;
  }

 private:
  void make_numeric() {
    const sparse::NumericOptions options = numeric_options(options_);
    numeric_.reset();
    on_device_ = takes_device();
    if (on_device_) {
      numeric_ = context_.engine()->template scalar<T>().sparse_factors(symbolic_, options, options_.rhs.cols);
      return;
    }
    numeric_ = std::make_unique<Numeric<T>>(symbolic_, options, cpu_threads(), context_.engine()->host_pools());
  }

  bool takes_device() const {
    if (options_.processor != sparse::Processor::automatic) return options_.processor == sparse::Processor::device;
    const DeviceInfo info = context_.device();
    if (!info.is_gpu || (sizeof(T) == 8 && !info.has_double)) return false;
    const sparse::ProcessorSeconds seconds = sparse::predict_seconds(
        *symbolic_, tuning::sparse_defaults(context_.backend()), cpu_threads(), static_cast<int>(sizeof(T)));
    return seconds.device < seconds.cpu;
  }
  /// Runs the action where the factors lie on a device, if this is asked for or faster, and there is room. False: it is
  /// the host's.
  template <class Action>
  bool on_device(FactorUse use, Index cols, Memory memory, Action action) const {
    sparse::DeviceUses<T>* const uses = numeric_->device_uses();
    if (!uses || !uses->can(use)) return false;
    if (options_.processor == sparse::Processor::automatic && !uses->pays(use, cols, memory == Memory::device))
      return false;
    try {
      action(*uses);
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
    }
    return false;
  }

  int cpu_threads() const { return options_.threads > 0 ? options_.threads : context_.engine()->host_threads(); }

  /// The same columns' order, without singletons whose pivots are at most the tolerance.
  void analyze_again(const T* values) {
    const Symbolic& s = *analyzed_;
    std::vector<Index> rows(at(s.user_entries)), cols(at(s.user_entries));
    s.for_each_row([&](Index k, Index first, Index last, auto column) {
      for (Index p = first; p < last; ++p) {
        const bool plain = s.gather_begin.empty();
        for (Index q = plain ? p : s.gather_begin[at(p)]; q < (plain ? p + 1 : s.gather_begin[at(p) + 1]); ++q) {
          rows[at(s.gather[at(q)])] = s.row_perm[at(k)];
          cols[at(s.gather[at(q)])] = s.col_perm[at(column(p))];
        }
      }
    });
    const auto pattern = sparse::by_triplets<T>(s.rows, s.cols, s.user_entries, rows.data(), cols.data(), values);
    sparse::AnalyzeOptions options;
    options.ordering = sparse::Ordering::given;
    options.permutation = s.col_perm.data();
    const double tolerance = numeric_->tolerance();
    const auto fit = [&](const Index* entries, Index count) {
      T sum{};
      for (Index k = 0; k < count; ++k) sum += values[entries[k]];
      return std::abs(static_cast<double>(sum)) > tolerance;
    };
    symbolic_ =
        std::make_shared<const Symbolic>(sparse::analyze_pattern(pattern, options, fit, context_.device().is_gpu));
    make_numeric();
  }

  void check_valid() const {
    check(valid_, ErrorCode::invalid_argument, "the last refactor failed: there is no factorization to use");
  }
  void check_q(const char* what) const {
    check_valid();
    check(numeric_->options().keep_q, ErrorCode::unavailable, what, " needs Q, which KeepQ::discard did not keep");
  }
  static void check_rows(const char* what, Index rows, Index expected) {
    check(rows == expected, ErrorCode::invalid_argument, what, " has ", rows, " rows instead of ", expected);
  }

  void check_numbers(const char* what, MatrixView<const T> a) const {
    if (!options_.check_finite || a.rows == 0 || a.cols == 0) return;
    sparse::DeviceUses<T>* const uses = valid_ ? numeric_->device_uses() : nullptr;
    if (uses && a.memory == Memory::device) return uses->check_finite(what, a);
    const Matrix<T> host = staged(a);
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < a.rows; ++i)
        check(std::isfinite(host(i, j)), ErrorCode::not_finite, what, " has a NaN or Inf at row ", i, ", column ", j,
              " (0-based)");
  }

  /// A column-major copy in host memory.
  template <class U>
  Matrix<T> staged(MatrixView<U> a) const {
    Matrix<T> host = Matrix<T>::host(a.rows, a.cols);
    if (a.rows > 0 && a.cols > 0) context_.template copy<T>(MatrixView<const T>(a), host.view());
    return host;
  }
  Matrix<T> placed(Matrix<T> host, Memory memory) const {
    return memory == Memory::host ? std::move(host) : context_.template to_device<T>(std::as_const(host).view());
  }

  std::vector<T> permuted_rows(MatrixView<const T> b) const {
    const Matrix<T> host = staged(b);
    std::vector<T> w(at(b.rows * b.cols));
    for (Index j = 0; j < b.cols; ++j)
      for (Index k = 0; k < b.rows; ++k) w[at(k + j * b.rows)] = host(symbolic_->row_perm[at(k)], j);
    return w;
  }

  T scaled(T value, Index column, int sign = 1) const {
    const std::vector<std::int32_t>& exponents = numeric_->exponents();
    return exponents.empty() || exponents[at(column)] == 0 ? value : std::ldexp(value, sign * exponents[at(column)]);
  }
  T unscaled(T value, Index column) const { return scaled(value, column, -1); }

  /// visit(row of R, permuted column, value as it is stored), rows ascending.
  template <class Visit>
  void for_r(Visit visit) const {
    const Symbolic& s = *symbolic_;
    for (Index k = 0; k < s.singletons; ++k)
      for (Index p = s.row_begin[at(k)]; p < s.row_begin[at(k) + 1]; ++p)
        visit(k, s.singleton_cols[at(p)], numeric_->values()[at(p)]);
    for (std::size_t f = 0; f < s.fronts.size(); ++f) {
      const sparse::Front& shape = s.fronts[f];
      const auto& front = numeric_->fronts()[f];
      const T* r = front.r;
      const Index first = numeric_->r_begin()[f];
      for (Index j = 0; j < shape.cols; ++j) {
        const Index count = front.height(j, shape.pivots);
        const Index column = s.front_cols[at(shape.cols_begin + j)];
        for (Index i = 0; i < count; ++i) visit(first + i, column, r[i]);
        r += front.stride(j, shape.pivots);
      }
    }
  }

  /// Rows of S in the order of Q's rows: those of R, then the others.
  std::vector<Index> q_rows() const {
    const Symbolic& s = *symbolic_;
    std::vector<Index> order;
    order.reserve(at(s.rows));
    for (Index k = 0; k < s.singletons; ++k) order.push_back(k);
    for (const auto& front : numeric_->fronts()) order.insert(order.end(), front.row_ids, front.row_ids + front.r_rows);
    std::vector<char> taken(at(s.rows), 0);
    for (const Index row : order) taken[at(row)] = 1;
    for (Index k = 0; k < s.rows; ++k)
      if (!taken[at(k)]) order.push_back(k);
    return order;
  }

  std::vector<T> times_transpose(const std::vector<T>& w, Index n) const {
    const Symbolic& s = *symbolic_;
    std::vector<T> z(at(s.cols * n), T(0));
    for (Index j = 0; j < n; ++j)
      s.for_each_row([&](Index k, Index first, Index last, auto column) {
        for (Index p = first; p < last; ++p)
          z[at(column(p) + j * s.cols)] += numeric_->values()[at(p)] * w[at(k + j * s.rows)];
      });
    return z;
  }

  void subtract_product(const std::vector<T>& x, std::vector<T>& w, Index n) const {
    const Symbolic& s = *symbolic_;
    for (Index j = 0; j < n; ++j)
      s.for_each_row([&](Index k, Index first, Index last, auto column) {
        T sum = w[at(k + j * s.rows)];
        for (Index p = first; p < last; ++p) sum -= numeric_->values()[at(p)] * x[at(column(p) + j * s.cols)];
        w[at(k + j * s.rows)] = sum;
      });
  }

  sparse::SparseSolution<T> finish_x(const std::vector<T>& x, Index n, Memory memory) const {
    const Symbolic& s = *symbolic_;
    sparse::SparseSolution<T> solution;
    Matrix<T> out = Matrix<T>::host(s.cols, n);
    for (Index j = 0; j < n; ++j)
      for (Index k = 0; k < s.cols; ++k) out(s.col_perm[at(k)], j) = scaled(x[at(k + j * s.cols)], k);
    solution.x = placed(std::move(out), memory);
    solution.rank = numeric_->rank();
    solution.full = std::min(s.rows, s.cols);
    return solution;
  }

  sparse::SparseSolution<T> finish(const std::vector<T>& x, std::vector<T> w, Index n, Memory memory) const {
    sparse::SparseSolution<T> solution = finish_x(x, n, memory);
    subtract_product(x, w, n);
    for (Index j = 0; j < n; ++j) {
      Wide sum = 0;
      for (Index k = 0; k < symbolic_->rows; ++k) sum += square(w[at(k + j * symbolic_->rows)]);
      solution.residual_norms.push_back(static_cast<double>(std::sqrt(sum)));
    }
    return solution;
  }

  Context context_;
  std::shared_ptr<const Symbolic> analyzed_;  // the user's analysis
  sparse::FactorOptions<T> options_;
  std::shared_ptr<const Symbolic> symbolic_;  // what numeric_ stands on
  std::unique_ptr<Factors<T>> numeric_;
  bool on_device_ = false;
  sparse::FactorFacts facts_;
  std::vector<T> rhs_;  // Qᵀ rhs, permuted rows
  Index rhs_cols_ = 0;
  Memory rhs_memory_ = Memory::host;
  bool valid_ = false;
};

}  // namespace qrane::detail
