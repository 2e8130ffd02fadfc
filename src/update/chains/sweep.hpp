// SPDX-License-Identifier: Apache-2.0
// X := X times the windows of a chain: one pass over Q by `sweep` where Limits say that it reaches the
// chain, else strip by strip of rows, window by window, by products: 2 r (nb + p)² flops a window and r rows.
#pragma once

#include "update/chains/chain.hpp"
#include "vocabulary/updates.hpp"

namespace qrane::update {

/// Where a chain stands in X; x has all rows, and at least the columns that the windows read and write.
template <class B, class T>
struct Place {
  DeviceMatrix<B, T> x;
  Index first = 0, shift = 0;
  DeviceMatrix<B, T> carry_in, carry_out;  // no columns: zeros, dropped. carry_out may be narrower than the carry
};

namespace detail {

/// Rows that go through all windows together: so few that what a window works on stays in cache until the next one.
constexpr Index strip_rows(Index order) {
  constexpr Index least = 8192, elements = Index{1} << 21;
  return std::max(least, elements / std::max<Index>(order, 1));
}

/// Two strips of nb + p + nb columns. The carry stands in the middle, a window's columns of X before it (up) or after
/// it (down), so that both are one operand; what comes out stands the other way round in the other strip.
template <class B, class T>
struct StripMemory {
  DeviceMatrix<B, T> now, next;
};

template <class B, class T>
void sweep_strip(typename B::Queue& queue, const Chain<B, T>& chain, const Place<B, T>& place, Index row, Index rows,
                 StripMemory<B, T> memory) {
  const Index p = chain.carry, nb = chain.block;
  const auto strip = [&](const DeviceMatrix<B, T>& a) { return a.block(row, 0, rows, a.cols); };
  const DeviceMatrix<B, T> x = strip(place.x);
  DeviceMatrix<B, T> now = memory.now.block(0, 0, rows, p + 2 * nb), next = memory.next.block(0, 0, rows, p + 2 * nb);
  if (place.carry_in.cols > 0)
    copy(queue, strip(place.carry_in), now.columns(nb, p), Part::all);
  else
    fill(queue, now.columns(nb, p), T(0), T(0));
  for (Index step = 0; step < chain.windows(); ++step) {
    const Index j = chain.down ? step : chain.windows() - 1 - step;
    const Index cols = chain.width(j), at = place.first + j * nb, before = nb - cols, after = nb + p;
    copy(queue, x.columns(at, cols), now.columns(chain.down ? after : before, cols), Part::all);
    const Index in = chain.down ? nb : before, out = chain.down ? before : nb;
    gemm(queue, Op::none, Op::none, T(1), now.columns(in, cols + p), chain.window(j), T(0),
         next.columns(out, cols + p));
    copy(queue, next.columns(chain.down ? before : after, cols), x.columns(at + place.shift, cols), Part::all);
    std::swap(now, next);
  }
  if (place.carry_out.cols == 0) return;
  const DeviceMatrix<B, T> carry = now.columns(nb, p), out = strip(place.carry_out);
  if (chain.tail.cols > 0)
    gemm(queue, Op::none, Op::none, T(1), carry, chain.tail.columns(0, out.cols), T(0), out);
  else
    copy(queue, carry.columns(0, out.cols), out, Part::all);
}

}  // namespace detail

/// A sweep with its memory: made before anything is changed, run after.
template <class B, class T>
class Sweeper {
 public:
  Sweeper(Tools<B, T>& tools, const Chain<B, T>& chain, const Place<B, T>& place)
      : tools_(&tools), chain_(chain), place_(place) {
    const Index rows = place.x.rows;
    if (chain.carry == 0 || rows == 0) return;
    if (fused()) {
      if (chain.tail.cols > 0 && place.carry_out.cols > 0)
        fused_carry_ = tools.scratch.template matrix<T>(rows, chain.carry);
      return;
    }
    strip_ = detail::strip_rows(chain.block + chain.carry);
    const Index strip = std::min(rows, strip_);
    const Index width = chain.carry + 2 * chain.block;
    memory_ = {tools.scratch.template matrix<T>(strip, width), tools.scratch.template matrix<T>(strip, width)};
  }

  void run() {
    const Index rows = place_.x.rows;
    if (chain_.carry == 0 || rows == 0) return;
    if (fused()) return run_fused();
    for (Index row = 0; row < rows; row += strip_)
      detail::sweep_strip(tools_->queue, chain_, place_, row, std::min(strip_, rows - row), memory_);
  }

 private:
  bool fused() const {
    const backend::Limits& limits = tools_->queue.limits(T{});
    return chain_.cols > 0 && chain_.carry <= limits.max_sweep_carry && chain_.block <= limits.max_sweep_block;
  }
  void run_fused() {
    backend::Sweep<B, T> task;
    task.x = place_.x;
    task.carry_in = place_.carry_in;
    task.h = chain_.h;
    task.first = place_.first;
    task.cols = chain_.cols;
    task.block = chain_.block;
    task.p = chain_.carry;
    task.shift = place_.shift;
    task.down = chain_.down;
    const bool tail = chain_.tail.cols > 0 && place_.carry_out.cols > 0;
    task.carry_out = tail ? fused_carry_ : place_.carry_out;
    if constexpr (in_double<B, T>)
      wide_sweep(tools_->queue, backend::WideSweep<B, T>{task, chain_.wide_h});
    else
      sweep(tools_->queue, task);
    if (tail)
      gemm(tools_->queue, Op::none, Op::none, T(1), fused_carry_, chain_.tail.columns(0, place_.carry_out.cols), T(0),
           place_.carry_out);
  }

  Tools<B, T>* tools_;
  Chain<B, T> chain_;
  Place<B, T> place_;
  detail::StripMemory<B, T> memory_;
  DeviceMatrix<B, T> fused_carry_;
  Index strip_ = 0;
};

}  // namespace qrane::update
