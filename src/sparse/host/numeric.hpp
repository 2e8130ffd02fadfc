// SPDX-License-Identifier: Apache-2.0
// Numeric multifrontal QR on the CPU: S = Q R of the analyzed pattern with these values.
// (Davis, ACM TOMS 38(1), 2011, sections 2.3 and 2.4; Algorithm 980, section 2.1.)
//
// Threads: each whole subtree is factored by one thread, the fronts above them by several, with look-ahead
// (numeric_tasks.cpp). Every number is computed by the same operations in the same order whatever the timing, so
// results repeat for a given number of threads.
//
// Memory: contribution blocks and R of roots have the places of numeric_plan.hpp; R of a large root stays in the root's
// front. A thread has memory for one small front. Large fronts and all upper fronts have a block of a region each, and
// so do the threads' stacks, whose blocks upper fronts reuse once all ranges are done. R of other fronts, and Q if it
// is kept, are allocated from arenas. The object keeps all its memory for the next run; after the first run a front for
// which there is no room waits until there is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/queue/thread_pool.hpp"
#include "sparse/analysis/symbolic.hpp"
#include "sparse/factors.hpp"
#include "sparse/host/front_qr.hpp"
#include "sparse/host/memory.hpp"
#include "sparse/host/numeric_plan.hpp"

namespace qrane::sparse {

template <class T>
class NumericTasks;

/// One thread's memory.
template <class T>
struct NumericWorker {
  NumericWorker(Budget& budget, Index chunk_bytes, Index stack_elements, Index front_elements)
      : front(front_elements), cb_stack(stack_elements), kept(budget, chunk_bytes) {}
  Scratch<T> scratch;
  FrontResult<T> result;
  Stack<T> front;            // for one small front
  T* large_front = nullptr;  // in the region; null between fronts
  Stack<T> cb_stack;
  Arena kept;  // R and Q
  std::vector<Index> stair, child_rows;
  std::vector<Local> own_slot, child_slot;
  std::vector<std::int32_t> exponents;
};

/// What a factor keeps of a front, in arenas.
template <class T>
struct KeptFront {
  Kept<T> r, q;
  Kept<StoredPanel<T>> panels;
  Kept<Index> row_ids;
  Kept<std::int32_t> live_count;
};

/// Row layout of a front: the analysis's, or one for the heights found with rank deficiency.
struct FrontLayout {
  Index rows = 0;
  const Index* stair = nullptr;
  const Local* own_slot = nullptr;
  std::vector<const Local*> child_slot;
};

template <class T>
class Numeric final : public Factors<T> {
 public:
  /// Uses at most `threads` threads, fewer for small problems; `pools` must outlive the object. Throws
  /// Error{out_of_memory} if arrays of the pattern's size do not fit.
  Numeric(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options, int threads,
          backend::cpu::ThreadPools& pools);
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
  void store(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker);
  void store_q(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker);
  void apply_to_rhs(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker);
  void factor_range(Index first, Index last, Worker& worker);
  void factor_all();
  T* take_front(Index count, Worker& worker);
  void give_back_front(T* front) noexcept;
  void leave_front(Index f, T* front);
  T* left_of(Index f, Index count, Worker& worker);
  void reset() noexcept;
  bool wants_rows() const { return options_.keep_q || rhs_; }

  int threads_;
  NumericPlan plan_;
  Budget budget_;
  Region region_;                  // fronts
  T* root_ = nullptr;              // in the region: R of NumericPlan::stays
  AlignedBytes shared_;            // for the places of the plan
  Mark shared_mark_, stack_mark_;  // stack_mark_: with a single thread
  std::vector<KeptFront<T>> kept_;
  std::vector<Worker> workers_;
  backend::cpu::ThreadPools& pools_;
  std::shared_ptr<NumericTasks<T>> tasks_;  // with several threads, after the first run
  bool ran_ = false;
  std::optional<Progress> progress_;  // of the current run
  T* rhs_ = nullptr;
  Index rhs_cols_ = 0;
};

}  // namespace qrane::sparse
