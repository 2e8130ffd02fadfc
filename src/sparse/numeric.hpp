// SPDX-License-Identifier: Apache-2.0
// Numeric multifrontal QR on the CPU: S = Q R of the analyzed pattern with these values.
// (Davis, ACM TOMS 38(1), 2011, sections 2.3 and 2.4; Algorithm 980, section 2.1.)
//
// Threads: whole subtrees each on one thread; fronts above them panel by panel, the next panel's columns first, so that
// it is factored while the rest is still being updated (numeric_tasks.cpp). Each number is computed by the same
// operations in the same order however threads fall: results repeat for a given number of threads.
//
// Memory: a subtree has one front at a time, and a stack for contribution blocks; fronts above take theirs from the
// pool and give it back. R, and Q if it is kept, grow in arenas. All of it stays with the object, and is used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/thread_pool.hpp"
#include "sparse/front_qr.hpp"
#include "sparse/memory.hpp"
#include "sparse/symbolic.hpp"

namespace qrane::sparse {

struct NumericOptions {
  double tolerance = -1;    ///< columns are dropped at or below; < 0: 20 (m + n) eps max_j ‖a_j‖
  bool detect_rank = true;  ///< false: nothing is dropped
  bool keep_q = true;
  Index memory_limit_bytes = 0;
};

/// A panel of Q that is kept: reflectors with their ones and zeros, height x cols, and T, cols x cols.
template <class T>
struct StoredPanel {
  Index first_row = 0, height = 0, cols = 0;  ///< rows of the front
  T* v = nullptr;
  T* t = nullptr;
};

/// What stays of a front.
template <class T>
struct StoredFront {
  Index rows = 0;
  Index r_rows = 0;  ///< live pivotal columns
  Index cb_rows = 0;
  T* r = nullptr;  ///< by columns: of pivotal column j the first live(j) rows, of the others all r_rows
  std::int32_t* live_count =
      nullptr;  ///< pivots numbers, live pivotal columns up to and with j; null: min(j + 1, r_rows)
  StoredPanel<T>* panels = nullptr;  ///< with Q
  Index panel_count = 0;
  Index* row_ids = nullptr;   ///< permuted row of S that each row stands in; with Q or right-hand sides
  T* cb = nullptr;            ///< contribution block by columns, upper trapezoid; until the parent took it
  bool cb_of_region = false;  ///< else on a worker's stack

  Index live(Index j) const { return live_count ? live_count[j] : std::min(j + 1, r_rows); }
  bool is_live(Index j) const { return live(j) > (j > 0 ? live(j - 1) : 0); }
};

/// One thread's memory.
template <class T>
struct NumericWorker {
  NumericWorker(Region& region, Chunks& chunks, Index first_stack) : cb_stack(region, first_stack), kept(chunks) {}
  Scratch<T> scratch;
  FrontResult<T> result;
  T* front = nullptr;  // of the region
  Index front_size = 0;
  Stack<T> cb_stack;
  Arena kept;  // R and Q
  std::vector<Index> stair, child_rows;
  std::vector<Local> own_slot, child_slot;
  std::vector<int> exponents;
};

/// Where a front's contribution block is put.
enum class CbPlace {
  stack,  ///< the worker's: the parent is factored by the same task
  region,
  in_place  ///< at the beginning of the front's own block of the region, which is cut to that size
};

/// Where a front's rows go: the analysis's layout, or one made for the heights that rank left.
struct FrontLayout {
  Index rows = 0;
  const Index* stair = nullptr;
  const Local* own_slot = nullptr;
  std::vector<const Local*> child_slot;
};

template <class T>
class Numeric {
 public:
  /// Throws Error{out_of_memory} when arrays of the pattern's size do not fit.
  Numeric(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options, int threads);
  ~Numeric();

  /// Factors these values of the analyzed entries. With `rhs` (permuted rows x rhs_cols) it is overwritten with QᵀB.
  /// Returns false, and factors nothing, when tolerance() forbids a singleton's pivot: the pattern must then be
  /// analyzed again without it. After an exception the object can be run again.
  bool run(const T* user_values, T* rhs = nullptr, Index rhs_cols = 0);

  const Symbolic& symbolic() const { return *symbolic_; }
  const NumericOptions& options() const { return options_; }
  double tolerance() const { return tolerance_; }
  Index rank() const { return rank_; }
  double dropped_norm() const;
  Index memory_bytes() const { return budget_.bytes(); }
  Index peak_bytes() const { return budget_.peak_bytes(); }
  int threads() const { return threads_; }
  /// Rows of R before front f's; singletons come first. One more than fronts.
  const std::vector<Index>& r_begin() const { return r_begin_; }
  const std::vector<StoredFront<T>>& fronts() const { return stored_; }
  /// Values of S; column k was multiplied by 2^exponents()[k], R's and all that is computed here likewise.
  const std::vector<T>& values() const { return values_; }
  const std::vector<int>& exponents() const { return exponents_; }  ///< cols, or empty

  /// B (permuted rows x cols, ld = rows) := Qᵀ B or Q B; singletons' rows are Q's identity. Needs Q.
  void apply(Op op, T* b, Index cols) const;
  /// x (permuted cols x n) from R x = y (rows of R x n, destroyed); zeros in dropped columns.
  void solve_r(T* y, T* x, Index n) const;
  /// y (rows of R x n) from Rᵀ y = b in the live columns; b (permuted cols x n) is destroyed.
  void solve_rt(T* b, T* y, Index n) const;
  /// Rows of R of what Qᵀ has made of B: y (rows of R x n) from b (permuted rows x n), and the other way.
  void gather_r_rows(const T* b, T* y, Index n) const;
  void scatter_r_rows(const T* y, T* b, Index n) const;

 private:
  template <class U>
  friend class NumericTasks;
  using Worker = NumericWorker<T>;

  void prepare_values(const T* user_values);
  bool singletons_fit() const;
  FrontLayout lay_out(Index f, Worker& worker) const;
  FrontMatrix<T> matrix_of(Index f, const FrontLayout& layout) const;
  void assemble(Index f, const FrontLayout& layout, const FrontMatrix<T>& front, const FrontResult<T>& result,
                Worker& worker);
  DropRule drop_rule(Index f, Worker& worker) const;
  void store(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, CbPlace place, Worker& worker);
  void store_q(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker);
  void apply_to_rhs(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker);
  void factor_range(Index first, Index last, const std::vector<char>& cb_to_region, Worker& worker);
  void factor_all();
  void reset();
  void release_cb(StoredFront<T>& front);
  bool wants_rows() const { return options_.keep_q || rhs_; }

  std::shared_ptr<const Symbolic> symbolic_;
  NumericOptions options_;
  int threads_;
  Budget budget_;
  Region region_;  // fronts and contribution blocks
  Chunks chunks_;  // R and Q
  std::vector<Worker> workers_;
  std::unique_ptr<backend::cpu::ThreadPool> thread_pool_;
  std::vector<T> values_;
  std::vector<int> exponents_;
  std::vector<double> column_norms_;
  std::vector<StoredFront<T>> stored_;
  std::vector<double> dropped_;  // of every front, squared
  std::vector<Index> r_begin_;
  double tolerance_ = -1;
  Index rank_ = 0;
  T* rhs_ = nullptr;
  Index rhs_cols_ = 0;
};

/// Work of factoring a front, for the division among threads.
inline double front_work(const Front& front) {
  return front.flops + 20.0 * static_cast<double>(front.rows) * static_cast<double>(front.cols) + 2000;
}

}  // namespace qrane::sparse
