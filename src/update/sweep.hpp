// SPDX-License-Identifier: Apache-2.0
// X := X times the windows of a chain: one pass over Q by the backend's `sweep` where it has one and takes the chain,
// else strip by strip of rows, window by window, by products: 2 r (nb + p)² flops a window and r rows.
#pragma once

#include "update/chain.hpp"

namespace qrane::update {

template <class B, class T>
concept HasSweep = requires(typename B::Queue& queue, const backend::Sweep<B, T>& task) {
  queue.sweep(task);
};

/// Where a chain stands in X; x has all rows, and at least the columns that the windows read and write.
template <class B, class T>
struct Place {
  DeviceMatrix<B, T> x;
  Index first = 0, shift = 0;
  DeviceMatrix<B, T> carry_in, carry_out;  // no columns: zeros, dropped. carry_out may be narrower than the carry
};

namespace detail {

/// Rows that go through all windows together: on the CPU so few that their columns stay in cache between products, else
/// as many as scratch of reasonable size lets.
template <class B>
Index strip_rows(Index order) {
  constexpr Index cached = 8192, elements = Index{1} << 26;
  return std::is_same_v<B, backend::Cpu> ? cached : std::max(cached, elements / std::max<Index>(order, 1));
}

template <class B, class T>
struct StripMemory {
  DeviceMatrix<B, T> carry, product;
};

template <class B, class T>
void sweep_strip(typename B::Queue& queue, const Chain<B, T>& chain, const Place<B, T>& place, Index row, Index rows,
                 const StripMemory<B, T>& memory) {
  const Index p = chain.carry;
  const auto strip = [&](const DeviceMatrix<B, T>& a) { return a.block(row, 0, rows, a.cols); };
  const DeviceMatrix<B, T> x = strip(place.x), carry = memory.carry.block(0, 0, rows, p);
  if (place.carry_in.cols > 0)
    queue.copy(strip(place.carry_in), carry, Part::all);
  else
    queue.fill(carry, T(0), T(0));
  for (Index step = 0; step < chain.windows(); ++step) {
    const Index j = chain.down ? step : chain.windows() - 1 - step;
    const Index cols = chain.width(j), at = place.first + j * chain.block;
    const DeviceMatrix<B, T> h = chain.window(j), product = memory.product.block(0, 0, rows, cols + p);
    const Index carry_row = chain.down ? 0 : cols, x_row = chain.down ? p : 0;  // in h
    const Index carry_col = chain.down ? cols : 0, x_col = chain.down ? 0 : p;  // in the product
    queue.gemm(Op::none, Op::none, T(1), carry, h.block(carry_row, 0, p, h.cols), T(0), product);
    queue.gemm(Op::none, Op::none, T(1), x.columns(at, cols), h.block(x_row, 0, cols, h.cols), T(1), product);
    queue.copy(product.columns(x_col, cols), x.columns(at + place.shift, cols), Part::all);
    queue.copy(product.columns(carry_col, p), carry, Part::all);
  }
  if (place.carry_out.cols == 0) return;
  const DeviceMatrix<B, T> out = strip(place.carry_out);
  if (chain.tail.cols > 0)
    queue.gemm(Op::none, Op::none, T(1), carry, chain.tail.columns(0, out.cols), T(0), out);
  else
    queue.copy(carry.columns(0, out.cols), out, Part::all);
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
        memory_.carry = tools.scratch.template matrix<T>(rows, chain.carry);
      return;
    }
    strip_ = detail::strip_rows<B>(chain.block + chain.carry);
    const Index strip = std::min(rows, strip_);
    memory_ = {tools.scratch.template matrix<T>(strip, chain.carry),
               tools.scratch.template matrix<T>(strip, chain.block + chain.carry)};
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
    if constexpr (HasSweep<B, T>)
      return chain_.cols > 0 && chain_.carry <= tools_->queue.max_sweep_carry(T{}) &&
             chain_.block <= tools_->queue.max_sweep_block(T{});
    return false;
  }
  void run_fused() {
    if constexpr (HasSweep<B, T>) {
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
      task.carry_out = tail ? memory_.carry : place_.carry_out;
      tools_->queue.sweep(task);
      if (tail)
        tools_->queue.gemm(Op::none, Op::none, T(1), memory_.carry, chain_.tail.columns(0, place_.carry_out.cols), T(0),
                           place_.carry_out);
    }
  }

  Tools<B, T>* tools_;
  Chain<B, T> chain_;
  Place<B, T> place_;
  detail::StripMemory<B, T> memory_;
  Index strip_ = 0;
};

}  // namespace qrane::update
