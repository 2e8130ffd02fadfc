// SPDX-License-Identifier: Apache-2.0
// The whole Q as a matrix. Physical rows by the store's RowOrder, zeros in its holes; positions front .. front+m-1 are
// columns of one buffer, with room before them:
//
//                 front          end
//     |  (free)    | q_0 ... q_m-1 |
//
// A chain is one sweep over its columns (sweep.hpp); reflectors go through strips of Qᵀ.
#pragma once

#include <optional>

#include "update/chains/sweep.hpp"
#include "update/full_q/whole_q.hpp"

namespace qrane::update {

template <class B, class T>
class FullQ final : public WholeQ<B, T> {
 public:
  using Mat = DeviceMatrix<B, T>;

  /// Takes a copy of q, m x m; the store has its m and order.
  FullQ(Tools<B, T>& tools, Store<B, T>& store, const Mat& q) : tools_(tools), store_(store) {
    lay_out(q.rows, 0, q.rows);
    if (q.rows > 0) copy(tools_.queue, q, x(), Part::all);
  }

  /// Room for another Q, m x m, whose rows are in order; uninitialized, and in place of the one before, where that has
  /// room.
  Mat renew(Index m) {
    if (m > row_capacity_ || m > cols_) lay_out(m, 0, m);
    front_ = cols_ - m;
    end_ = cols_;
    return view(m, front_, m);
  }

  void apply(Op op, const Mat& c) override {
    if (c.cols == 0 || store_.m == 0) return;
    const dense::Temporary<B, T> physical(tools_.queue, rows(), c.cols);
    if (op == Op::transpose) {
      store_.scatter(c, physical.matrix);
      gemm(tools_.queue, Op::transpose, Op::none, T(1), x(), physical.matrix, T(0), c);
    } else {
      gemm(tools_.queue, Op::none, Op::none, T(1), x(), c, T(0), physical.matrix);
      store_.gather(physical.matrix, c);
    }
  }
  void rows(Index k, Index p, const Mat& w) override {
    Index at = 0;
    for (const Run& run : store_.order.runs(k, p)) {
      transpose(tools_.queue, x().block(run.first, 0, run.count, store_.m), w.columns(at, run.count));
      at += run.count;
    }
  }
  void columns(const Mat& out) override { store_.gather(x().columns(0, out.cols), out); }

  void prepare(Steps<B, T>& steps) override {
    Index most_front = 0, front = 0, extent = store_.order.extent(), rotated = 0, reflected = 0;
    RowOrder order = store_.order;
    for (const auto& step : steps) {
      if (step.kind == Kind::enter) {
        order.insert(step.k, step.p);
        front += step.p;
      }
      if (step.kind == Kind::leave) front -= step.p;
      if (step.kind == Kind::rotate) rotated = std::max(rotated, std::min(step.a, step.b));
      if (step.kind == Kind::reflect) reflected = std::max(reflected, step.reflectors->plan().rows);
      most_front = std::max(most_front, front);
      extent = std::max(extent, order.extent());
    }
    reserve(extent, most_front);
    if (reflected > 0) {
      strip_ = tools_.scratch.template matrix<T>(reflected, std::min(extent, strip_rows));
      if constexpr (in_double<B, T>)
        wide_strip_ = tools_.scratch.template matrix<double>(reflected, std::min(extent, strip_rows));
    }
    if (rotated > 0) moved_ = tools_.scratch.template matrix<T>(std::min(extent, strip_rows), rotated);
    sweeps_.clear();
    Index at = front_;
    order = store_.order;
    for (const auto& step : steps) {
      if (step.kind == Kind::enter) {
        order.insert(step.k, step.p);
        at -= step.p;
      }
      if (step.kind == Kind::leave) at += step.p;
      if (step.kind == Kind::chain) sweeps_.emplace_back(tools_, step.chain, place(step, at, order.extent()));
    }
  }

  void commit(Steps<B, T>& steps) override {
    auto& queue = tools_.queue;
    std::size_t sweep = 0;
    for (const auto& step : steps) {
      switch (step.kind) {
        case Kind::enter: {
          store_.order.insert(step.k, step.p);
          front_ -= step.p;
          const Mat fresh = view(rows(), front_, step.p);
          fill(queue, fresh, T(0), T(0));
          Index at = 0;
          for (const Run& run : store_.order.runs(step.k, step.p)) {
            if (end_ > front_ + step.p)
              fill(queue,
                   view(rows(), front_ + step.p, end_ - front_ - step.p)
                       .block(run.first, 0, run.count, end_ - front_ - step.p),
                   T(0), T(0));
            fill(queue, fresh.block(run.first, at, run.count, run.count), T(0), T(1));
            at += run.count;
          }
          break;
        }
        case Kind::leave: {
          front_ += step.p;
          store_.zero(x(), store_.order.runs(step.k, step.p));
          store_.order.erase(step.k, step.p);
          break;
        }
        case Kind::reflect: reflect(*step.reflectors, step.at); break;
        case Kind::chain: sweeps_[sweep++].run(); break;
        case Kind::rotate: rotate(step); break;
      }
    }
  }
  void clear() override {
    store_.order = RowOrder(0);
    front_ = end_;
  }
  Index elements() const override { return rows() * (end_ - front_); }

 private:
  using Kind = typename Step<B, T>::Kind;
  static constexpr Index strip_rows = 4096;

  Index rows() const { return store_.order.extent(); }
  Mat view(Index rows, Index col, Index cols) const {
    return {memory_.template as<T>() + col * row_capacity_, rows, cols, row_capacity_, 0, 1};
  }
  Mat x() const { return view(rows(), front_, end_ - front_); }

  void lay_out(Index rows, Index front, Index cols) {
    const Index row_capacity = std::max<Index>(rows, 1), all = std::max<Index>(front + cols, 1);
    memory_ = Buffer<B>(tools_.queue, bytes_of(row_capacity, all, 1, sizeof(T)));
    row_capacity_ = row_capacity;
    cols_ = all;
    front_ = front;
    end_ = front + cols;
  }
  /// That many physical rows, and free columns before the first one; by halves.
  void reserve(Index rows, Index front) {
    if (rows <= row_capacity_ && front <= front_) return;
    const Index cols = end_ - front_, old_rows = this->rows(), more = front > front_ ? front + cols / 2 : front_;
    Buffer<B> before = std::move(memory_);
    const Mat old{before.template as<T>() + front_ * row_capacity_, old_rows, cols, row_capacity_, 0, 1};
    try {
      lay_out(rows > row_capacity_ ? std::max(rows, row_capacity_ + row_capacity_ / 2) : row_capacity_, more, cols);
    } catch (...) {
      memory_ = std::move(before);
      throw;
    }
    if (old_rows > 0 && cols > 0) copy(tools_.queue, old, view(old_rows, front_, cols), Part::all);
  }

  /// Where a chain's windows stand, the first position being column `front`.
  Place<B, T> place(const Step<B, T>& step, Index front, Index extent) const {
    const Chain<B, T>& chain = step.chain;
    const Index first = front + step.at, p = chain.carry;
    const Mat all = view(extent, 0, end_);
    if (chain.down) return {all, first + p, -p, all.columns(first, p), all.columns(first + chain.cols, p)};
    return {all, first, p, all.columns(first + chain.cols, p), all.columns(first, p)};
  }

  /// X(:, at ..) := X(:, at ..) H, strip by strip of rows: (Hᵀ Xᵀ)ᵀ.
  void reflect(Reflectors<B, T>& f, Index at) {
    const Index width = f.plan().rows;
    for (Index row = 0; row < rows(); row += strip_rows) {
      const Index height = std::min(strip_rows, rows() - row);
      const Mat strip = x().block(row, at, height, width), turned = strip_.block(0, 0, width, height);
      transpose(tools_.queue, strip, turned);
      if constexpr (in_double<B, T>) {
        const DeviceMatrix<B, double> wide = wide_strip_.block(0, 0, width, height);
        widen(tools_.queue, turned, wide);
        f.apply(Op::transpose, wide);
        narrow(tools_.queue, wide, turned, Part::all);
      } else {
        f.apply(Op::transpose, turned);
      }
      transpose(tools_.queue, turned, strip);
    }
  }

  /// The smaller block waits beside; the larger one moves over in pieces that do not overlap.
  void rotate(const Step<B, T>& step) {
    auto& queue = tools_.queue;
    const Index a = step.a, b = step.b, little = std::min(a, b);
    if (little == 0) return;
    for (Index row = 0; row < rows(); row += strip_rows) {
      const Index height = std::min(strip_rows, rows() - row);
      const Mat all = x().block(row, step.at, height, a + b), kept = moved_.block(0, 0, height, little);
      if (a <= b) {
        copy(queue, all.columns(0, a), kept, Part::all);
        for (Index j = 0; j < b; j += a) {
          const Index cols = std::min(a, b - j);
          copy(queue, all.columns(a + j, cols), all.columns(j, cols), Part::all);
        }
        copy(queue, kept, all.columns(b, a), Part::all);
      } else {
        copy(queue, all.columns(a, b), kept, Part::all);
        for (Index j = a; j > 0; j -= std::min(b, j)) {
          const Index cols = std::min(b, j);
          copy(queue, all.columns(j - cols, cols), all.columns(j - cols + b, cols), Part::all);
        }
        copy(queue, kept, all.columns(0, b), Part::all);
      }
    }
  }

  Tools<B, T>& tools_;
  Store<B, T>& store_;
  Buffer<B> memory_;
  Index row_capacity_ = 0, cols_ = 0, front_ = 0, end_ = 0;
  Mat strip_, moved_;
  DeviceMatrix<B, double> wide_strip_;
  std::vector<Sweeper<B, T>> sweeps_;
};

}  // namespace qrane::update
