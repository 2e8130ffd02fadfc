// SPDX-License-Identifier: Apache-2.0
// The factors of a matrix whose rows and columns come and go, in memory that grows by halves.
//
//     r   positions x (n + nrhs): R in its upper trapezoid (what lies below is not looked at), d = Qᵀb to its right.
//         Updates build the next R in a second buffer, so that nothing is changed until all is done.
//     q   extent x positions, rows by RowOrder, zeros in its holes; changed in place
//     b   extent x nrhs, the attached right-hand sides, likewise
//
// positions = min(m, n).
#pragma once

#include <array>

#include "update/row_order.hpp"
#include "update/tools.hpp"

namespace qrane::update {

template <class B, class T>
class Store {
 public:
  using Mat = DeviceMatrix<B, T>;
  typename B::Queue queue;
  bool has_q = false;
  Index m = 0, n = 0;
  bool attached = false;
  Index nrhs = 0;
  RowOrder order;  // of no meaning without q
  Mat r;
  DeviceMatrix<B, double> residual_squares;  // without q: 1 x nrhs

  Store(const typename B::Queue& queue_, bool has_q_) : queue(queue_), has_q(has_q_) {}

  Index positions() const { return std::min(m, n); }
  Mat triangle() const { return r.columns(0, n); }
  Mat d() const { return r.columns(n, nrhs); }
  Mat q() const { return q_view(order.extent(), positions()); }
  /// Its first rows and columns, whatever is in them; reserve_q comes first.
  Mat q_view(Index rows, Index cols) const { return {q_.template as<T>(), rows, cols, row_capacity_, 0, 1}; }
  Mat b() const { return b_view(order.extent()); }
  Mat b_view(Index rows) const { return {b_.template as<T>(), rows, nrhs, row_capacity_, 0, 1}; }

  /// Room for the next r; uninitialized, and lost unless take_r follows.
  Mat next_r(Index rows, Index cols) {
    const Index ld = std::max<Index>(rows, 1), bytes = bytes_of(ld, std::max<Index>(cols, 1), 1, sizeof(T));
    Buffer<B>& buffer = r_[1 - now_];
    if (buffer.bytes() < bytes) buffer = Buffer<B>(queue, std::max(bytes, buffer.bytes() + buffer.bytes() / 2));
    return {buffer.template as<T>(), rows, cols, ld, 0, 1};
  }
  /// What next_r gave, or a part of it, is R from now on.
  void take_r(const Mat& next) noexcept {
    now_ = 1 - now_;
    r = next;
  }

  /// Room for that many rows and columns of q, and rows of b; what there is stays.
  void reserve_q(Index rows, Index cols) {
    if (!has_q) return;
    const Index held = order.extent(), held_cols = q_cols_ > 0 ? positions() : 0;
    if (rows > row_capacity_ || cols > q_cols_) {
      const Index row_capacity = grown(rows, row_capacity_), col_capacity = grown(cols, q_cols_);
      Buffer<B> q(queue, bytes_of(row_capacity, col_capacity, 1, sizeof(T))), b;
      if (row_capacity != row_capacity_ && attached)
        b = Buffer<B>(queue, bytes_of(row_capacity, std::max<Index>(nrhs, 1), 1, sizeof(T)));
      const Mat wide{q.template as<T>(), held, held_cols, row_capacity, 0, 1};
      if (held > 0 && held_cols > 0) copy(queue, q_view(held, held_cols), wide, Part::all);
      if (b.bytes() > 0) {
        if (held > 0 && nrhs > 0)
          copy(queue, b_view(held), Mat{b.template as<T>(), held, nrhs, row_capacity, 0, 1}, Part::all);
        b_ = std::move(b);
      }
      q_ = std::move(q);
      row_capacity_ = row_capacity;
      q_cols_ = col_capacity;
    }
  }
  /// Memory for `count` right-hand sides; those attached before are lost.
  void reserve_b(Index count) {
    if (has_q)
      b_ = Buffer<B>(queue, bytes_of(std::max<Index>(row_capacity_, 1), std::max<Index>(count, 1), 1, sizeof(T)));
    else
      residuals_ = Buffer<B>(queue, bytes_of(std::max<Index>(count, 1), 1, 1, sizeof(double)));
    residual_squares = {residuals_.template as<double>(), 1, has_q ? 0 : count, 1, 0, 1};
  }

  /// physical := the rows of logical; holes become zero.
  void scatter(const Mat& logical, const Mat& physical) { move(logical, physical, order, true); }
  void gather(const Mat& physical, const Mat& logical) { move(logical, physical, order, false); }
  void zero(const Mat& physical, const std::vector<Run>& runs) {
    if (physical.cols == 0) return;
    for (const Run& run : runs) fill(queue, physical.block(run.first, 0, run.count, physical.cols), T(0), T(0));
  }

 private:
  static Index grown(Index wanted, Index now) {
    return wanted <= now ? std::max<Index>(now, 1) : std::max({wanted, now + now / 2, Index{1}});
  }
  void move(const Mat& logical, const Mat& physical, const RowOrder& rows, bool scatter) {
    constexpr std::size_t few = 8;
    if (logical.cols == 0 || rows.rows() == 0) return;
    if (scatter) zero(physical, rows.holes());
    if (rows.runs().size() <= few) {
      Index at = 0;
      for (const Run& run : rows.runs()) {
        const Mat here = logical.block(at, 0, run.count, logical.cols);
        const Mat there = physical.block(run.first, 0, run.count, logical.cols);
        copy(queue, scatter ? here : there, scatter ? there : here, Part::all);
        at += run.count;
      }
      return;
    }
    const std::vector<std::int64_t> map = rows.map();
    const Index count = static_cast<Index>(map.size());
    const Buffer<B> list(queue, count * 8);
    queue.upload(map.data(), list.template as<std::int64_t>(), count);
    const typename B::template Pointer<std::int64_t> all{};
    if (scatter)
      copy_rows(queue, logical, all, physical, list.template as<std::int64_t>(), count);
    else
      copy_rows(queue, physical, list.template as<std::int64_t>(), logical, all, count);
  }

  std::array<Buffer<B>, 2> r_;
  int now_ = 0;
  Buffer<B> q_, b_, residuals_;
  Index row_capacity_ = 0, q_cols_ = 0;
};

}  // namespace qrane::update
