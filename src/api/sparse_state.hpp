// SPDX-License-Identifier: Apache-2.0
// What sparse::Factor<T> stands on: arguments are checked, and the side is chosen that factors and that solves.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include <qrane/sparse_qr.hpp>

#include "api/engine.hpp"
#include "sparse/host/numeric.hpp"
#include "sparse/host/solve.hpp"
#include "sparse/processor.hpp"

namespace qrane::detail {

using sparse::Factors;
using sparse::FactorUse;
using sparse::Numeric;
using sparse::Symbolic;

inline sparse::NumericOptions numeric_options(const sparse::FactorOptions& from) {
  sparse::NumericOptions options;
  options.tolerance = from.absolute_tolerance;
  options.detect_rank = from.detect_rank;
  options.keep_q = from.q == sparse::KeepQ::keep;
  options.memory_limit_bytes = from.memory_limit_bytes;
  options.on_progress = from.on_progress;
  return options;
}

template <class T>
class SparseFactorState {
  using Uses = sparse::FactorUses<T>;

 public:
  /// planned_rhs: right-hand sides that memory is planned for
  SparseFactorState(const sparse::Analysis& analysis, const sparse::FactorOptions& options, Index planned_rhs)
      : context_(analysis.context()),
        analyzed_(analysis.shared()),
        options_(options),
        planned_rhs_(planned_rhs),
        symbolic_(analyzed_) {
    check(options.threads >= 0, ErrorCode::invalid_argument, "FactorOptions::threads must not be negative, got ",
          options.threads);
    check(options.memory_limit_bytes >= 0, ErrorCode::invalid_argument,
          "FactorOptions::memory_limit_bytes must not be negative, got ", options.memory_limit_bytes);
    check(!std::isnan(options.absolute_tolerance), ErrorCode::invalid_argument,
          "FactorOptions::absolute_tolerance is NaN");
    make_numeric();
  }

  void run(const T* values, MatrixView<const T> rhs) {
    const Symbolic& shape = *analyzed_;
    if (!numeric_) remake();  // no memory for it last time
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
    if (symbolic_ != analyzed_) remake();  // singletons that were unfit last time may be fit now
    const auto permuted = [&] {
      rhs_cols_ = with_rhs ? rhs.cols : 0;
      rhs_memory_ = rhs.memory;
      if (with_rhs) rhs_ = host().permuted_rows(rhs);
    };
    permuted();
    if (!numeric_->run(values, rhs_.data(), rhs_cols_)) {
      symbolic_ = std::make_shared<const Symbolic>(sparse::analyze_again(
          *analyzed_, values, numeric_->tolerance(), numeric_->tolerance_exponents(), context_.device().is_gpu));
      make_numeric();
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
    (numeric_->scaled_tolerance() ? facts_.column_tolerance : facts_.absolute_tolerance) = numeric_->tolerance();
    facts_.dropped_norm = numeric_->dropped_norm();
    facts_.peak_bytes = numeric_->peak_bytes();
    facts_.bytes = numeric_->memory_bytes();
    facts_.analyzed_again = symbolic_ != analyzed_;
    const Index full = std::min(shape.rows, shape.cols);
    check(!options_.refuse_deficient || facts_.rank >= full, ErrorCode::rank_deficient, "the matrix has rank ",
          facts_.rank, " of ", full, " to the tolerance ", numeric_->tolerance(),
          numeric_->scaled_tolerance() ? " times each column's norm" : "");
    valid_ = true;
  }

  const Symbolic& symbolic() const { return *analyzed_; }
  const sparse::FactorFacts& facts() const { return facts_; }

  std::vector<Index> permutation() const {
    check_valid();
    return numeric_->permutation();
  }
  sparse::SparseMatrix<T> r() const {
    check_valid();
    return numeric_->r();
  }

  /// C in the user's memory := Qᵀ C or Q C.
  void apply(backend::Op op, MatrixView<T> c) const {
    check_q("applying Q");
    check_rows("C", c.rows, symbolic_->rows);
    check_numbers("C", c);
    if (c.cols == 0 || c.rows == 0) return;
    use(FactorUse::apply, c.cols, c.memory, [&](Uses& side) { side.apply(op, c); });
  }
  Solution<T> solve(MatrixView<const T> b) const {
    check_valid();
    check_rows("b", b.rows, symbolic_->rows);
    check_numbers("b", b);
    Solution<T> solution;
    use(FactorUse::solve, b.cols, b.memory, [&](Uses& side) { solution = side.solve(b); });
    return solution;
  }
  Solution<T> solve() const {
    check_valid();
    check(rhs_cols_ > 0, ErrorCode::unavailable,
          "solve() needs right-hand sides that factor or refactor were given (rhs)");
    Solution<T> solution;
    use(FactorUse::solve_riding, rhs_cols_, rhs_memory_,
        [&](Uses& side) { solution = side.solve_riding(rhs_memory_); });
    host().riding_norms(solution);
    return solution;
  }
  Solution<T> solve_transposed(MatrixView<const T> b) const {
    check_q("the solution of least norm");
    check_rows("b", b.rows, symbolic_->cols);
    check_numbers("b", b);
    Solution<T> solution;
    use(FactorUse::solve_transposed, b.cols, b.memory, [&](Uses& side) { solution = side.solve_transposed(b); });
    return solution;
  }

 private:
  void remake() {
    symbolic_ = analyzed_;
    make_numeric();
  }
  void make_numeric() {
    const sparse::NumericOptions options = numeric_options(options_);
    numeric_.reset();
    on_device_ = takes_device();
    if (on_device_) {
      numeric_ = context_.engine()->template scalar<T>().sparse_factors(symbolic_, options, planned_rhs_);
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
  /// action(side) by the device that holds the factors, if the user asks for it or it is faster, and there is room;
  /// else by the host.
  template <class Action>
  void use(FactorUse what, Index cols, Memory memory, Action action) const {
    Uses* const uses = numeric_->device_uses();
    if (uses && uses->can(what) &&
        (options_.processor != sparse::Processor::automatic || uses->pays(what, cols, memory == Memory::device))) {
      try {
        return action(*uses);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) throw;
      }
    }
    sparse::HostSolve<T> side = host();
    action(side);
  }
  sparse::HostSolve<T> host() const { return {context_, *numeric_, rhs_.data(), rhs_cols_}; }

  int cpu_threads() const { return options_.threads > 0 ? options_.threads : context_.engine()->host_threads(); }

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
    Uses* const uses = valid_ ? numeric_->device_uses() : nullptr;
    if (uses && a.memory == Memory::device) return uses->check_finite(what, a);
    host().check_finite(what, a);
  }

  Context context_;
  std::shared_ptr<const Symbolic> analyzed_;  // the user's analysis
  sparse::FactorOptions options_;
  Index planned_rhs_;
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
