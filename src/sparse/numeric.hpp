// SPDX-License-Identifier: Apache-2.0
// Numeric multifrontal QR on the CPU: S = Q R of the analyzed pattern with these values.
// (Davis, ACM TOMS 38(1), 2011, sections 2.3 and 2.4; Algorithm 980, section 2.1.)
//
// Threads: whole subtrees each on one thread; fronts above them panel by panel, the next panel's columns first, so that
// it is factored while the rest is still being updated (numeric_tasks.cpp). Each number is computed by the same
// operations in the same order however threads fall: results repeat for a given number of threads.
//
// Memory: a subtree has one front at a time. Small fronts of it share one place, and a stack for their contribution
// blocks; large ones, and all fronts above, have a block of a region each. What stays of these, the contribution block or
// R of a root, is in a region of its own, so that neither leaves holes that the other cannot use. R of other fronts, and
// Q if it is kept, grow in arenas. All of it stays with the object, and is used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/cpu/thread_pool.hpp"
#include "sparse/factors.hpp"
#include "sparse/front_qr.hpp"
#include "sparse/memory.hpp"
#include "sparse/symbolic.hpp"

namespace qrane::sparse {

/// One thread's memory.
template <class T>
struct NumericWorker {
  NumericWorker(Region& blocks, Chunks& chunks, Index first_stack) : cb_stack(blocks, first_stack), kept(chunks) {}
  Scratch<T> scratch;
  FrontResult<T> result;
  T* front = nullptr;  // of the region, for small fronts
  Index front_size = 0;
  T* large_front = nullptr;  // of the region; null between fronts
  Stack<T> cb_stack;
  Arena kept;  // R and Q
  std::vector<Index> stair, child_rows;
  std::vector<Local> own_slot, child_slot;
  std::vector<std::int32_t> exponents;
};

/// Where a front's contribution block is put.
enum class CbPlace {
  stack,  ///< the worker's: the parent is factored by the same task
  region  ///< and R of a root
};

/// Where a front's rows go: the analysis's layout, or one made for the heights that rank left.
struct FrontLayout {
  Index rows = 0;
  const Index* stair = nullptr;
  const Local* own_slot = nullptr;
  std::vector<const Local*> child_slot;
};

template <class T>
class Numeric final : public Factors<T> {
 public:
  /// Throws Error{out_of_memory} when arrays of the pattern's size do not fit.
  Numeric(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options, int threads);
  ~Numeric() override;

  bool run(const T* user_values, T* rhs = nullptr, Index rhs_cols = 0) override;
  Index memory_bytes() const override { return budget_.bytes(); }
  Index peak_bytes() const override { return budget_.peak_bytes(); }
  int threads() const override { return threads_; }
  Backend backend() const override { return Backend::cpu; }

 private:
  template <class U>
  friend class NumericTasks;
  using Worker = NumericWorker<T>;
  using Factors<T>::symbolic_, Factors<T>::options_, Factors<T>::values_, Factors<T>::exponents_, Factors<T>::stored_,
      Factors<T>::dropped_, Factors<T>::tolerance_;

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
  void release_small(Worker& worker);
  bool wants_rows() const { return options_.keep_q || rhs_; }

  int threads_;
  Budget budget_;
  Region region_;  // fronts
  Region blocks_;  // contribution blocks, and R of roots
  Chunks chunks_;  // R and Q
  std::vector<Worker> workers_;
  std::unique_ptr<backend::cpu::ThreadPool> thread_pool_;
  std::optional<Progress> progress_;  // of the run
  T* rhs_ = nullptr;
  Index rhs_cols_ = 0;
};

/// Work of factoring a front, for the division among threads.
inline double front_work(const Front& front) {
  return front.flops + 20.0 * static_cast<double>(front.rows) * static_cast<double>(front.cols) + 2000;
}

}  // namespace qrane::sparse
