// SPDX-License-Identifier: Apache-2.0
// The result of a numeric factorization S = Q R and its use on the host. Numeric (host/numeric.hpp) makes it on the
// CPU, DeviceNumeric (device/numeric.hpp) on a device. Values, scaling and tolerance are prepared here for both.
//
// R of a front is packed by columns: pivotal column j has its first live(j) rows, the others all r_rows. On the CPU
// columns are contiguous. On a device, where ranks are not known when R is packed, the pattern fixes their places
// (StoredFront::r_bound).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <qrane/context.hpp>

#include "sparse/analysis/symbolic.hpp"
#include "sparse/progress.hpp"
#include "sparse/uses.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::sparse {

using backend::Op;

struct NumericOptions {
  double tolerance = -1;    ///< columns are dropped at or below; < 0: the default (FactorOptions::absolute_tolerance)
  bool detect_rank = true;  ///< false: nothing is dropped
  bool keep_q = true;
  Index memory_limit_bytes = 0;
  Progress::Callback on_progress;
};

/// A panel of Q that is kept: reflectors with their ones and zeros, height x cols, and T, cols x cols.
template <class T>
struct StoredPanel {
  Index first_row = 0, height = 0, cols = 0;  ///< rows of the front
  T* v = nullptr;
  Index v_ld = 0;
  T* t = nullptr;
  Index t_ld = 0;
};

/// The factors of a front.
template <class T>
struct StoredFront {
  Index rows = 0;
  Index r_rows = 0;  ///< live pivotal columns
  Index cb_rows = 0;
  T* r = nullptr;
  Index r_bound = -1;  ///< < 0: columns of r follow each other; else pivotal column j takes min(j + 1, r_bound)
                       ///< elements, the others r_bound each
  std::int32_t* live_count =
      nullptr;  ///< pivots numbers, live pivotal columns up to and with j; null: min(j + 1, r_rows)
  StoredPanel<T>* panels = nullptr;  ///< with Q
  Index panel_count = 0;
  Index* row_ids = nullptr;  ///< permuted row of S that each row stands in; with Q or right-hand sides
  T* cb = nullptr;           ///< on the CPU, contribution block by columns, upper trapezoid; until assembled

  Index live(Index j) const { return live_count ? live_count[j] : std::min(j + 1, r_rows); }
  bool is_live(Index j) const { return live(j) > (j > 0 ? live(j - 1) : 0); }
  /// Elements of r from column j to the next one, and how many of them are R's.
  Index stride(Index j, Index pivots) const {
    return r_bound < 0 ? height(j, pivots) : j < pivots ? std::min(j + 1, r_bound) : r_bound;
  }
  Index height(Index j, Index pivots) const { return j < pivots ? live(j) : r_rows; }
};

template <class T>
class Factors {
 public:
  virtual ~Factors() = default;

  /// Factors these values of the analyzed entries. With `rhs` (permuted rows x rhs_cols) it is overwritten with QᵀB.
  /// Returns false, and factors nothing, when tolerance() forbids a singleton's pivot: the pattern must then be
  /// analyzed again without it. After an exception the object can be run again.
  virtual bool run(const T* user_values, T* rhs = nullptr, Index rhs_cols = 0) = 0;
  virtual Index memory_bytes() const = 0;
  virtual Index peak_bytes() const = 0;
  virtual int threads() const = 0;
  virtual Backend backend() const = 0;
  virtual Index moved_bytes() const { return 0; }  ///< between host and device by the last run
  virtual int stages() const { return 1; }         ///< FactorFacts::stages
  /// Solves on the device that holds the factors; null: the host alone has them.
  virtual FactorUses<T>* device_uses() { return nullptr; }

  const Symbolic& symbolic() const { return *symbolic_; }
  const NumericOptions& options() const { return options_; }
  double tolerance() const { return tolerance_; }
  /// Whether tolerance() is for columns as they are scaled, to norms from 1 to 2; else it is for the user's.
  bool scaled_tolerance() const { return sizeof(T) == 4 && options_.tolerance < 0 && options_.detect_rank; }
  /// By which columns are scaled where tolerance() is for them as they are scaled.
  std::vector<std::int32_t> tolerance_exponents() const {
    return scaled_tolerance() ? exponents_ : std::vector<std::int32_t>();
  }
  Index rank() const { return rank_; }
  double dropped_norm() const;
  /// Rows of R before front f's; singletons come first. One more than fronts.
  const std::vector<Index>& r_begin() const { return r_begin_; }
  const std::vector<StoredFront<T>>& fronts() const { return stored_; }
  /// Values of S; column k was multiplied by 2^exponents()[k], R's and all that is computed here likewise.
  const std::vector<T>& values() const { return values_; }
  const std::vector<std::int32_t>& exponents() const { return exponents_; }  ///< cols, or empty

  /// R by columns in the user's scaling, for the columns of permutation().
  SparseMatrix<T> r() const;
  /// The user's columns in the order of R's: live ones first.
  std::vector<Index> permutation() const;
  /// Whether fronts know which rows of S they hold: with Q or right-hand sides.
  bool knows_rows() const { return stored_.empty() || stored_.front().row_ids || stored_.front().rows == 0; }
  /// Rows of S in the order of Q's rows: those of R, then the others.
  std::vector<Index> q_rows() const;
  /// A number of permuted column k as the user's scaling has it.
  T unscaled(T value, Index k) const {
    const std::int32_t e = exponents_.empty() ? 0 : exponents_[k];
    return e == 0 ? value : std::ldexp(value, -e);
  }

  /// B (permuted rows x cols, ld = rows) := Qᵀ B or Q B; singletons' rows are Q's identity. Needs Q.
  void apply(Op op, T* b, Index cols);
  /// x (permuted cols x n) from R x = y (rows of R x n, destroyed); zeros in dropped columns.
  void solve_r(T* y, T* x, Index n) const;
  /// y (rows of R x n) from Rᵀ y = b in the live columns; b (permuted cols x n) is destroyed.
  void solve_rt(T* b, T* y, Index n) const;
  /// y (rows of R x n) := the rows of R of b (permuted rows x n); and back.
  void gather_r_rows(const T* b, T* y, Index n) const;
  void scatter_r_rows(const T* y, T* b, Index n) const;

 protected:
  Factors(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options);

  /// S's values, their columns scaled, to length 1 where each is measured against its own, else where squares would
  /// leave the range; and the tolerance. Whether singletons' pivots are above it.
  bool prepare_values(const T* user_values);
  /// Makes the panels of Q available on the host.
  virtual void fetch_q() {}
  /// r_begin and rank from the fronts that are stored.
  void count_rank();

  std::shared_ptr<const Symbolic> symbolic_;
  NumericOptions options_;
  std::vector<T> values_;
  std::vector<std::int32_t> exponents_;
  std::vector<StoredFront<T>> stored_;
  std::vector<double> dropped_;  // of every front, squared
  double tolerance_ = -1;
  Index rank_ = 0;

 private:
  struct ColumnSize {
    double largest = 0, squares = 0;
  };
  template <class Visit>
  void for_each_value(Visit visit);
  template <class Exponent>
  void scale_columns(Exponent exponent_of);
  bool singletons_fit() const;
  std::vector<Index> positions() const;
  template <class Visit>
  void for_r(Visit visit) const;

  std::vector<ColumnSize> column_sizes_;
  std::vector<Index> r_begin_;
};

}  // namespace qrane::sparse
