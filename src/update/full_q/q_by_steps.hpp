// SPDX-License-Identifier: Apache-2.0
// The m x m Q as a product that is never formed: the reflectors of a factorization, then the steps of all updates in
// order. Applying it costs what the factorization's reflectors cost, and as much again once the steps hold as
// many numbers (n (nb + p)² / nb for a chain).
//
// Positions are counted from the first one that the factorization had; rows that came in stand before it, and physical
// rows are never used twice, since each belongs to one step. A work matrix has a row for every position there ever was.
#pragma once

#include <algorithm>

#include "update/full_q/whole_q.hpp"

namespace qrane::update {

template <class B, class T>
class QBySteps final : public WholeQ<B, T> {
 public:
  using Mat = DeviceMatrix<B, T>;

  /// base: factored, with its reflectors.
  QBySteps(Tools<B, T>& tools, Store<B, T>& store, std::shared_ptr<dense::Factorization<B, T>> base)
      : tools_(tools), store_(store), base_(std::move(base)), base_rows_(base_->plan().rows) {
    store_.order = RowOrder(base_rows_, false);
  }

  void apply(Op op, const Mat& c) override {
    if (c.cols == 0 || store_.m == 0) return;
    const dense::Temporary<B, T> physical(tools_.queue, std::max(store_.order.extent(), base_rows_), c.cols);
    if (op == Op::transpose) {
      fill(tools_.queue, physical.matrix, T(0), T(0));
      store_.scatter(c, physical.matrix);
      transposed(physical.matrix, c);
    } else {
      const dense::Temporary<B, T> work(tools_.queue, height(), c.cols);
      fill(tools_.queue, work.matrix, T(0), T(0));
      copy(tools_.queue, c, work.matrix.block(front_ - lowest_, 0, store_.m, c.cols), Part::all);
      forward(work.matrix, physical.matrix);
      store_.gather(physical.matrix, c);
    }
  }
  void rows(Index k, Index p, const Mat& w) override {
    const dense::Temporary<B, T> physical(tools_.queue, std::max(store_.order.extent(), base_rows_), p);
    fill(tools_.queue, physical.matrix, T(0), T(0));
    Index at = 0;
    for (const Run& run : store_.order.runs(k, p)) {
      fill(tools_.queue, physical.matrix.block(run.first, at, run.count, run.count), T(0), T(1));
      at += run.count;
    }
    transposed(physical.matrix, w);
  }
  void columns(const Mat& out) override {
    fill(tools_.queue, out, T(0), T(1));
    apply(Op::none, out);
  }

  void prepare(Steps<B, T>& steps) override {
    RowOrder order = store_.order;
    fresh_.clear();
    for (const auto& step : steps) {
      Entry entry{step.kind, 0, step.p, {}, step.reflectors, {}, step.chain, step.a, step.b};
      if (step.kind == Kind::enter) {
        order.insert(step.k, step.p);
        entry.runs = order.runs(step.k, step.p);
      } else if (step.kind == Kind::leave) {
        order.erase(step.k, step.p);
      } else if (step.kind == Kind::chain) {
        keep(entry);
      }
      fresh_.push_back(std::move(entry));
    }
    entries_.reserve(entries_.size() + fresh_.size());
    next_order_ = std::move(order);
  }
  void commit(Steps<B, T>& steps) override {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Entry& entry = fresh_[i];
      if (entry.kind == Kind::leave) front_ += entry.p;
      if (entry.kind == Kind::enter) front_ -= entry.p;
      lowest_ = std::min(lowest_, front_);
      entry.at = front_ + steps[i].at;
      if (entry.kind != Kind::leave) entries_.push_back(std::move(entry));
    }
    fresh_.clear();
    store_.order = std::move(next_order_);
  }
  void clear() override {
    entries_.clear();
    base_.reset();
    base_rows_ = 0;
    front_ = lowest_ = 0;
    store_.order = RowOrder(0, false);
  }
  Index elements() const override {
    Index sum = base_ ? base_rows_ * base_->plan().cols : 0;
    for (const Entry& entry : entries_) sum += entry.elements();
    return sum;
  }
  Index added_steps() const override {
    constexpr Index of_window = 2;  // as measured on an H200: its product, and the way from one window to the next
    Index sum = 0;
    for (const Entry& entry : entries_) sum += of_window * entry.chain.windows() + (entry.reflectors ? 1 : 0);
    return sum;
  }
  bool changed() const { return !entries_.empty() || front_ != 0; }

 private:
  using Kind = typename Step<B, T>::Kind;

  struct Entry {
    Kind kind;
    Index at = 0, p = 0;
    std::vector<Run> runs;  // enter: physical rows
    std::shared_ptr<Reflectors<B, T>> reflectors;
    Buffer<B> memory;  // of the chain
    Chain<B, T> chain;
    Index a = 0, b = 0;

    Index elements() const {
      const Index slot = chain.block + chain.carry;
      return (reflectors ? reflectors->plan().rows * reflectors->plan().cols : 0) + chain.windows() * slot * slot;
    }
  };

  Index height() const { return base_rows_ - lowest_; }

  /// Copies the chain's windows and tail from scratch memory to the entry's own.
  void keep(Entry& entry) {
    Chain<B, T>& chain = entry.chain;
    const Index slot = chain.block + chain.carry, windows = chain.windows() * slot * slot;
    const Index tail = chain.tail.rows * chain.tail.cols;
    entry.memory = Buffer<B>(tools_.queue, bytes_of(std::max<Index>(windows + tail, 1), 1, 1, sizeof(T)));
    const auto data = entry.memory.template as<T>();
    const auto column = [](typename B::template Pointer<T> p, Index count) { return Mat{p, count, 1, count, 0, 1}; };
    if (windows > 0) copy(tools_.queue, column(chain.h, windows), column(data, windows), Part::all);
    chain.h = data;
    chain.wide_h = {};
    if (tail > 0) {
      const Mat kept{data + windows, chain.tail.rows, chain.tail.cols, chain.tail.rows, 0, 1};
      copy(tools_.queue, chain.tail, kept, Part::all);
      chain.tail = kept;
    }
  }

  /// out := the positions of Qᵀ times what is in physical rows.
  void transposed(const Mat& physical, const Mat& out) {
    const dense::Temporary<B, T> memory(tools_.queue, height(), out.cols);
    const Mat work = memory.matrix;
    fill(tools_.queue, work, T(0), T(0));
    if (base_rows_ > 0) {
      const Mat first = work.block(-lowest_, 0, base_rows_, out.cols);
      copy(tools_.queue, physical.block(0, 0, base_rows_, out.cols), first, Part::all);
      base_->apply(Op::transpose, first);
    }
    for (Entry& entry : entries_) {
      const Index at = entry.at - lowest_;
      switch (entry.kind) {
        case Kind::enter: {
          Index row = at;
          for (const Run& run : entry.runs) {
            copy(tools_.queue, physical.block(run.first, 0, run.count, out.cols),
                 work.block(row, 0, run.count, out.cols), Part::all);
            row += run.count;
          }
          break;
        }
        case Kind::reflect:
          reflect(*entry.reflectors, Op::transpose, work.block(at, 0, entry.reflectors->plan().rows, out.cols));
          break;
        case Kind::chain: apply_chain(entry.chain, Op::transpose, work, at); break;
        default: rotate(work, at, entry.a, entry.b); break;
      }
    }
    copy(tools_.queue, work.block(front_ - lowest_, 0, out.rows, out.cols), out, Part::all);
  }

  /// physical := Q times the positions in work, which is destroyed.
  void forward(const Mat& work, const Mat& physical) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      const Index at = entry->at - lowest_;
      switch (entry->kind) {
        case Kind::enter: {
          Index row = at;
          for (const Run& run : entry->runs) {
            const Mat rows = work.block(row, 0, run.count, work.cols);
            copy(tools_.queue, rows, physical.block(run.first, 0, run.count, work.cols), Part::all);
            fill(tools_.queue, rows, T(0), T(0));
            row += run.count;
          }
          break;
        }
        case Kind::reflect:
          reflect(*entry->reflectors, Op::none, work.block(at, 0, entry->reflectors->plan().rows, work.cols));
          break;
        case Kind::chain: apply_chain(entry->chain, Op::none, work, at); break;
        default: rotate(work, at, entry->b, entry->a); break;
      }
    }
    if (base_rows_ == 0) return;
    const Mat first = work.block(-lowest_, 0, base_rows_, work.cols);
    base_->apply(Op::none, first);
    copy(tools_.queue, first, physical.block(0, 0, base_rows_, work.cols), Part::all);
  }

  void reflect(Reflectors<B, T>& f, Op op, const Mat& rows) {
    if constexpr (in_double<B, T>) {
      const dense::Temporary<B, double> wide(tools_.queue, rows.rows, rows.cols);
      widen(tools_.queue, rows, wide.matrix);
      f.apply(op, wide.matrix);
      narrow(tools_.queue, wide.matrix, rows, Part::all);
    } else {
      f.apply(op, rows);
    }
  }

  void apply_chain(const Chain<B, T>& chain, Op op, const Mat& work, Index at) {
    if (chain.carry == 0) return;
    const dense::Temporary<B, T> memory(tools_.queue, chain.block + chain.carry, work.cols);
    const auto turn = [&](const Mat& factor, Index row) {
      const Mat rows = work.block(row, 0, factor.rows, work.cols),
                product = memory.matrix.block(0, 0, factor.rows, work.cols);
      gemm(tools_.queue, op, Op::none, T(1), factor, rows, T(0), product);
      copy(tools_.queue, product, rows, Part::all);
    };
    const Index count = chain.windows(), carry_row = at + (chain.down ? chain.cols : 0);
    if (op == Op::none && chain.tail.cols > 0) turn(chain.tail, carry_row);
    for (Index step = 0; step < count; ++step) {
      const bool ascending = chain.down == (op == Op::transpose);
      const Index j = ascending ? step : count - 1 - step;
      turn(chain.window(j), at + j * chain.block);
    }
    if (op == Op::transpose && chain.tail.cols > 0) turn(chain.tail, carry_row);
  }

  void rotate(const Mat& work, Index at, Index a, Index b) {
    if (a == 0 || b == 0) return;
    const dense::Temporary<B, T> memory(tools_.queue, a + b, work.cols);
    const Mat rows = work.block(at, 0, a + b, work.cols), turned = memory.matrix;
    copy(tools_.queue, rows.block(0, 0, a, work.cols), turned.block(b, 0, a, work.cols), Part::all);
    copy(tools_.queue, rows.block(a, 0, b, work.cols), turned.block(0, 0, b, work.cols), Part::all);
    copy(tools_.queue, turned, rows, Part::all);
  }

  Tools<B, T>& tools_;
  Store<B, T>& store_;
  std::shared_ptr<dense::Factorization<B, T>> base_;
  Index base_rows_ = 0;
  Index front_ = 0, lowest_ = 0;
  std::vector<Entry> entries_, fresh_;
  RowOrder next_order_;
};

}  // namespace qrane::update
