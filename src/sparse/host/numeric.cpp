// SPDX-License-Identifier: Apache-2.0
// Assembly of values, factorization of one front after the other, and storage of R and Q.
#include "sparse/host/numeric.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <qrane/error.hpp>

#include "cpu/queue/blas.hpp"

namespace qrane::sparse {

namespace {

/// Bytes of the largest front as a rectangle: an upper bound.
template <class T>
Index largest_bytes(const Symbolic& s) {
  Index largest = 0;
  for (const Front& f : s.fronts) largest = std::max(largest, leading_dimension<T>(f.rows) * f.cols);
  return largest * static_cast<Index>(sizeof(T));
}

/// Bytes of the largest front within its staircase: a lower bound.
template <class T>
Index surely_used_bytes(const Symbolic& s) {
  Index most = 0;
  for (const Front& f : s.fronts) {
    if (f.entries() <= most) continue;
    Index sum = 0;
    for (Index j = 0; j < f.cols; ++j) sum += std::min(f.rows, std::max(s.stair[f.cols_begin + j], j + 1));
    most = std::max(most, sum);
  }
  return most * static_cast<Index>(sizeof(T));
}

/// Size of the region for fronts and threads' stacks; the system provides only touched pages.
template <class T>
Index segment_bytes(const Symbolic& s, const NumericPlan& plan, int threads) {
  constexpr auto size = static_cast<Index>(sizeof(T));
  if (threads == 1) return largest_bytes<T>(s);
  return 2 * std::max(s.facts.peak_entries * size, largest_bytes<T>(s)) + threads * plan.stack_elements * size;
}

template <class T>
Index most_small_elements(const Symbolic& s, const NumericPlan& plan) {
  Index most = 0;
  for (const NumericPlan::Range& range : plan.ranges)
    for (Index f = range.first; f <= range.last; ++f) {
      const Index size = leading_dimension<T>(s.fronts[f].rows) * s.fronts[f].cols;
      if (size <= large_front_entries) most = std::max(most, size);
    }
  return most;
}

}  // namespace

template <class T>
Numeric<T>::Numeric(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options, int threads,
                    backend::cpu::ThreadPools& pools)
    : Factors<T>(std::move(symbolic), options),
      threads_(useful_threads(*symbolic_, threads)),
      plan_(plan_numeric(*symbolic_, threads_)),
      budget_(options.memory_limit_bytes),
      region_(budget_, segment_bytes<T>(*symbolic_, plan_, threads_), surely_used_bytes<T>(*symbolic_)),
      pools_(pools) {
  const Symbolic& s = *symbolic_;
  // An analysis frees several times what it keeps, in pieces too small for fronts. This takes about a millisecond, more
  // only in a program with a large heap.
  constexpr Index worth_giving_back = Index{1} << 20, worth_looking = Index{1} << 16;
  const Index expected = (s.facts.r_entries + s.facts.peak_entries) * static_cast<Index>(sizeof(T));
  if (!std::atomic_ref(s.tidied).exchange(true) && expected > worth_looking) give_back_freed(worth_giving_back);
  try {
    const Index chunk_bytes =
        std::clamp(s.facts.r_entries * static_cast<Index>(sizeof(T)) / (8 * threads_), Index{1} << 14, Index{1} << 20);
    const Index front_elements = most_small_elements<T>(s, plan_);
    shared_ = allocate_aligned(plan_.shared_elements * static_cast<Index>(sizeof(T)));
    if (!shared_) throw std::bad_alloc();
    kept_.resize(s.fronts.size());
    for (int w = 0; w < threads_; ++w)
      workers_.emplace_back(budget_, chunk_bytes, threads_ > 1 ? 0 : plan_.stack_elements, front_elements);
    budget_.add(threads_ * front_elements * static_cast<Index>(sizeof(T)));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, detail::concat("out of memory for a sparse factorization with ", s.entries,
                                                         " entries in ", s.fronts.size(), " fronts"));
  }
}

template <class T>
Numeric<T>::~Numeric() {
  reset();
}

template <class T>
void Numeric<T>::reset() noexcept {
  std::fill(stored_.begin(), stored_.end(), StoredFront<T>{});
  for (Worker& worker : workers_) {
    worker.front.clear();
    worker.cb_stack.clear();
    if (worker.large_front) region_.give_back(std::exchange(worker.large_front, nullptr));
  }
  region_.give_back(std::exchange(root_, nullptr));
}

template <class T>
bool Numeric<T>::run(const T* user_values, T* rhs, Index rhs_cols) {
  reset();
  if (!this->prepare_values(user_values)) return false;
  rhs_ = rhs_cols > 0 ? rhs : nullptr;
  rhs_cols_ = rhs_cols;
  progress_.emplace(options_.on_progress, symbolic_->facts.flops);
  try {
    progress_->begin();
    factor_all();
    ran_ = true;
    progress_->finish();
  } catch (const std::bad_alloc&) {
    reset();
    throw Error(ErrorCode::out_of_memory,
                detail::concat("out of memory in a sparse factorization, ", budget_.bytes(), " bytes in use"));
  } catch (...) {
    reset();
    throw;
  }
  this->count_rank();
  return true;
}

template <class T>
FrontLayout Numeric<T>::lay_out(Index f, Worker& worker) const {
  const Symbolic& s = *symbolic_;
  const Front& front = s.fronts[f];
  FrontLayout layout;
  bool as_analyzed = true;
  worker.child_rows.clear();
  Index child_rows = 0;
  for (Index c = 0; c < front.child_count; ++c) {
    const Index child = s.children[front.child_begin + c];
    worker.child_rows.push_back(stored_[child].cb_rows);
    child_rows += worker.child_rows.back();
    as_analyzed = as_analyzed && worker.child_rows.back() == s.fronts[child].cb_rows;
  }
  layout.child_slot.resize(front.child_count);
  if (as_analyzed) {
    layout.rows = front.rows;
    layout.stair = s.stair.data() + front.cols_begin;
    layout.own_slot = s.own_slot.data() + front.first_row;
    for (Index c = 0; c < front.child_count; ++c)
      layout.child_slot[c] = s.cb_slot.data() + s.fronts[s.children[front.child_begin + c]].cb_begin;
    return layout;
  }
  worker.stair.resize(front.cols);
  worker.own_slot.resize(front.own_rows);
  worker.child_slot.resize(child_rows);
  layout.rows = lay_out_rows(s, f, worker.child_rows.data(), worker.stair.data(), worker.own_slot.data(),
                             worker.child_slot.data());
  layout.stair = worker.stair.data();
  layout.own_slot = worker.own_slot.data();
  const Local* slot = worker.child_slot.data();
  for (Index c = 0; c < front.child_count; ++c) {
    layout.child_slot[c] = slot;
    slot += worker.child_rows[c];
  }
  return layout;
}

template <class T>
FrontMatrix<T> Numeric<T>::matrix_of(Index f, const FrontLayout& layout) const {
  const Front& front = symbolic_->fronts[f];
  return {nullptr, layout.rows, front.cols, front.pivots, layout.stair, nullptr};
}

template <class T>
DropRule Numeric<T>::drop_rule(Index f, Worker& worker) const {
  DropRule rule;
  rule.tolerance = tolerance_;
  rule.scaled = this->scaled_tolerance();
  if (exponents_.empty()) return rule;
  const Front& front = symbolic_->fronts[f];
  worker.exponents.assign(exponents_.begin() + front.first_col, exponents_.begin() + front.first_col + front.pivots);
  rule.exponents = worker.exponents.data();
  return rule;
}

/// Writes zeros within the panels' heights, rows of A, children's contribution blocks, and the row ids.
template <class T>
void Numeric<T>::assemble(Index f, const FrontLayout& layout, const FrontMatrix<T>& front, const FrontResult<T>& result,
                          Worker& worker) {
  const Symbolic& s = *symbolic_;
  const Front& shape = s.fronts[f];
  for (const FrontPanel& panel : result.panels) {
    const Index height = FrontResult<T>::zero_height(front, panel);
    for (Index j = panel.col; j < panel.col + panel.cols; ++j)
      std::fill(front.column(j), front.column(j) + height, T(0));
  }
  StoredFront<T>& stored = stored_[f];
  stored.rows = layout.rows;
  if (wants_rows()) stored.row_ids = kept_[f].row_ids.of(worker.kept, layout.rows);
  for (Index r = 0; r < shape.own_rows; ++r) {
    const Index row = shape.first_row + r;
    const Index slot = layout.own_slot[r];
    for (Index p = s.row_begin[row]; p < s.row_begin[row + 1]; ++p) front.column(s.entry_col[p])[slot] = values_[p];
    if (stored.row_ids) stored.row_ids[layout.own_slot[r]] = row;
  }
  for (Index c = 0; c < shape.child_count; ++c) {
    const Index child = s.children[shape.child_begin + c];
    const Front& child_shape = s.fronts[child];
    const StoredFront<T>& from = stored_[child];
    const Local* const slot = layout.child_slot[c];
    const T* cb = from.cb;
    for (Index j = 0; j < child_shape.nonpivots(); ++j) {
      T* const target = front.column(s.parent_col[child_shape.cols_begin + child_shape.pivots + j]);
      const Index count = std::min(j + 1, from.cb_rows);
      for (Index i = 0; i < count; ++i) target[slot[i]] = cb[i];
      cb += count;
    }
    if (stored.row_ids)
      for (Index i = 0; i < from.cb_rows; ++i) stored.row_ids[slot[i]] = from.row_ids[from.r_rows + i];
  }
}

template <class T>
void Numeric<T>::store_q(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker) {
  StoredFront<T>& stored = stored_[f];
  Index count = 0, size = 0;
  for (const FrontPanel& panel : result.panels) {
    if (panel.live == 0) continue;
    ++count;
    size += (panel.height + panel.cols) * panel.cols;
  }
  stored.panels = kept_[f].panels.of(worker.kept, count);
  T* q = kept_[f].q.of(worker.kept, size);
  for (const FrontPanel& panel : result.panels) {
    if (panel.live == 0) continue;
    StoredPanel<T>& kept = stored.panels[stored.panel_count++];
    kept = {panel.first_row, panel.height, panel.cols, nullptr, panel.height, nullptr, panel.cols};
    kept.v = q;
    kept.t = q + kept.height * kept.cols;
    q = kept.t + kept.cols * kept.cols;
    for (Index j = 0; j < kept.cols; ++j) {
      const T* const v = front.column(panel.col + j) + panel.first_row;
      std::copy(v, v + kept.height, kept.v + j * kept.height);
      const T* const t = result.t(panel) + j * result.triangle_ld();
      std::fill(std::copy(t, t + j + 1, kept.t + j * kept.cols), kept.t + (j + 1) * kept.cols, T(0));
    }
  }
}

/// Applies this front's Qᵀ to its rows of the right-hand sides.
template <class T>
void Numeric<T>::apply_to_rhs(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker) {
  const StoredFront<T>& stored = stored_[f];
  const Index ld = symbolic_->rows;
  T* const c = worker.scratch.get(scratch_c, front.rows * rhs_cols_);
  for (Index j = 0; j < rhs_cols_; ++j)
    for (Index i = 0; i < front.rows; ++i) c[i + j * front.rows] = rhs_[stored.row_ids[i] + j * ld];
  for (const FrontPanel& panel : result.panels) {
    if (panel.live == 0) continue;
    apply_block(front.column(panel.col) + panel.first_row, front.ld(panel.col), panel.height, panel.cols,
                result.t(panel), result.triangle_ld(), Op::transpose, c + panel.first_row, front.rows, rhs_cols_,
                worker.scratch);
  }
  for (Index j = 0; j < rhs_cols_; ++j)
    for (Index i = 0; i < front.rows; ++i) rhs_[stored.row_ids[i] + j * ld] = c[i + j * front.rows];
}

/// Address of a front's contribution block of so many elements.
template <class T>
T* Numeric<T>::left_of(Index f, Index count, Worker& worker) {
  constexpr auto bytes = static_cast<Index>(sizeof(T));
  if (plan_.place[f] < 0) {
    T* const p = worker.cb_stack.push(left_elements(count));
    if (threads_ == 1)
      stack_mark_.raise(worker.cb_stack.used(), bytes, budget_);  // otherwise the stack is part of the region
    return p;
  }
  shared_mark_.raise(plan_.place[f] + count, bytes, budget_);
  return reinterpret_cast<T*>(shared_.get()) + plan_.place[f];
}

/// Stores R, the contribution block and Q of a factored front, and applies Qᵀ to right-hand sides.
template <class T>
void Numeric<T>::store(Index f, const FrontMatrix<T>& front, const FrontResult<T>& result, Worker& worker) {
  const Front& shape = symbolic_->fronts[f];
  StoredFront<T>& stored = stored_[f];
  if (options_.keep_q) store_q(f, front, result, worker);
  if (rhs_) apply_to_rhs(f, front, result, worker);
  stored.r_rows = result.rows_of_r;
  stored.cb_rows = std::min(front.rows - stored.r_rows, shape.nonpivots());
  dropped_[f] = result.dropped_norm2;
  const auto reached = result.pivot.begin() + std::min(front.rows, shape.pivots);
  if (std::find(result.pivot.begin(), reached, -1) != reached) {
    stored.live_count = kept_[f].live_count.of(worker.kept, shape.pivots);
    std::int32_t live = 0;
    for (Index j = 0; j < shape.pivots; ++j) stored.live_count[j] = live += result.pivot[j] >= 0;
  }
  Index size = stored.r_rows * shape.nonpivots();
  for (Index j = 0; j < shape.pivots; ++j) size += stored.live(j);
  stored.r = f == plan_.stays   ? front.a
             : shape.parent < 0 ? left_of(f, size, worker)
                                : kept_[f].r.of(worker.kept, size);
  const Index cb_size = stored.cb_rows * shape.nonpivots() - stored.cb_rows * (stored.cb_rows - 1) / 2;
  if (shape.parent >= 0 && cb_size > 0) stored.cb = left_of(f, cb_size, worker);
  T* r = stored.r;  // may overlap the front: each column is written after it has been read
  T* cb = stored.cb;
  for (const FrontPanel& panel : result.panels) {
    for (Index j = panel.col; j < panel.col + panel.cols; ++j) {
      const T* const above = front.column(j);  // of the panel's first row
      const T* const below = result.corner(panel, j - panel.col) - panel.first_row;
      const auto take = [&](Index first, Index last, T* target) {
        const Index border = std::clamp(panel.first_row, first, last);
        target = std::copy(above + first, above + border, target);
        return std::copy(below + border, below + last, target);
      };
      const bool pivotal = j < shape.pivots;
      r = take(0, pivotal ? stored.live(j) : stored.r_rows, r);
      if (cb && !pivotal) cb = take(stored.r_rows, stored.r_rows + std::min(j - shape.pivots + 1, stored.cb_rows), cb);
    }
  }
}

/// Frees a stored front's memory, except R that stays in it.
template <class T>
void Numeric<T>::leave_front(Index f, T* front) {
  if (f != plan_.stays) {
    give_back_front(front);
    return;
  }
  const StoredFront<T>& stored = stored_[f];
  Index size = 0;
  for (Index j = 0; j < symbolic_->fronts[f].cols; ++j) size += stored.height(j, symbolic_->fronts[f].pivots);
  root_ = front;  // reset() frees it in any case
  region_.shrink(front, size);
  give_back_front(nullptr);  // its upper part was freed
}

/// Factors fronts first .. last, whole subtrees in postorder, on one thread.
template <class T>
void Numeric<T>::factor_range(Index first, Index last, Worker& worker) {
  const Symbolic& s = *symbolic_;
  for (Index f = first; f <= last; ++f) {
    const FrontLayout layout = lay_out(f, worker);
    FrontMatrix<T> front = matrix_of(f, layout);
    worker.result.plan(front, options_.keep_q || rhs_);
    front.begin = worker.result.begin.data();
    const Index size = front.elements();
    if (f != plan_.stays && worker.front.fits(size))
      front.a = worker.front.push(size);
    else
      front.a = worker.large_front = take_front(size, worker);
    assemble(f, layout, front, worker.result, worker);
    const Front& shape = s.fronts[f];
    for (Index c = shape.child_count - 1; c >= 0; --c) {
      const Index child = s.children[shape.child_begin + c];
      StoredFront<T>& taken = stored_[child];
      const Index rows = taken.cb_rows, cols = s.fronts[child].nonpivots();
      if (taken.cb && plan_.place[child] < 0) worker.cb_stack.pop(left_elements(rows * cols - rows * (rows - 1) / 2));
      taken.cb = nullptr;
    }
    factor_front(front, worker.result, drop_rule(f, worker), worker.scratch, *progress_, shape.flops);
    store(f, front, worker.result, worker);
    worker.front.clear();
    if (worker.large_front) leave_front(f, std::exchange(worker.large_front, nullptr));
  }
}

template class Numeric<float>;
template class Numeric<double>;

}  // namespace qrane::sparse
