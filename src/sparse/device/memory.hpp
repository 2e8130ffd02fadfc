// SPDX-License-Identifier: Apache-2.0
// The plan of a device's factorization within its memory limit, and the memory of fronts, R and Q.
//
// The limit is that of FactorOptions or what the device has free. It covers all device memory of a factorization:
// tables, values, fronts, buffers, R. There are three plans, tried in this order:
//   1. Fronts begin as early as possible. R stays on the device, and so do the fronts if Q is kept.
//   2. Without Q: fronts begin as late as possible, and their memory is used again.
//   3. Contribution blocks are spilled to the host (plan/staging.hpp). R goes to the host when a front ends, written
//      there by the kernels if they reach it; with Q kept the front is copied, too.
#pragma once

#include <algorithm>
#include <utility>

#include <qrane/error.hpp>

#include "dense/buffer.hpp"
#include "sparse/device/host_memory.hpp"
#include "sparse/device/plan/front_rounds.hpp"
#include "sparse/device/tables.hpp"
#include "sparse/factors.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceMemory {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  static constexpr Index panel = 32;

  FrontRounds plan;

  /// Plans only. Throws Error{out_of_memory} with the front that is too large and the bytes needed.
  void make_plan(const Queue& queue, const Symbolic& symbolic, const NumericOptions& options, Index rhs_cols) {
    FrontRoundsOptions rounds;
    rounds.rhs_cols = rhs_cols;
    rounds.panel = panel;
    const backend::Limits& limits = queue.limits(T{});
    rounds.whole_elements = limits.front_whole_elements;
    rounds.whole_rows = limits.front_whole_rows;
    rounds.update_cols = limits.front_update_cols;
    rounds.update_blocks = limits.front_update_blocks;
    if (sizeof(T) == 8) rounds.pair_cols = limits.front_update_pair_cols;  // in float memory is not what limits them
    rounds.keep_q = options.keep_q;
    rounds.detect_rank = options.detect_rank;
    limit_ = queue.available_bytes();
    limit_ -= limit_ / 64;  // what allocation itself takes
    limit_is_given_ = options.memory_limit_bytes > 0 && options.memory_limit_bytes <= limit_;
    if (limit_is_given_) limit_ = options.memory_limit_bytes;
    largest_ = queue.limits(T{}).max_allocation_bytes;
    plan_within(symbolic, rounds);
  }

  void allocate(const Queue& queue) {
    storage_ = dense::Buffer<B>(queue, backend::bytes_of(plan.storage_size, 1, 1, sizeof(T)));
    if (!plan.staged()) r_ = dense::Buffer<B>(queue, backend::bytes_of(plan.r_size, 1, 1, sizeof(T)));
    host_r_ = HostMemory<B, T>(queue, plan.r_size);
    host_images_ = HostMemory<B, T>(queue, plan.staged() ? plan.images_size : 0);
    host_blocks_ = HostMemory<B, T>(queue, plan.blocks_size);
    host_bytes_ = (plan.r_size + (plan.staged() ? plan.images_size : 0) + plan.blocks_size) * scalar;
  }
  /// Where all fronts lie on the device: room for them on the host, once. Returns the bytes that it takes.
  Index make_room_for_q(const Queue& queue) {
    if (std::exchange(host_has_room_, true)) return 0;
    host_images_ = HostMemory<B, T>(queue, plan.storage_size);
    host_bytes_ += plan.storage_size * scalar;
    return plan.storage_size * scalar;
  }
  /// All but the plan.
  void release() {
    for (dense::Buffer<B>* buffer : {&storage_, &r_}) *buffer = dense::Buffer<B>();
    for (HostMemory<B, T>* memory : {&host_r_, &host_images_, &host_blocks_}) *memory = HostMemory<B, T>();
    host_bytes_ = 0;
    host_has_room_ = false;
  }

  Pointer<T> storage() const { return storage_.template as<T>(); }
  /// Where kernels write R: a staged plan has it where the host finds it, or behind the fronts.
  Pointer<T> r() const {
    if (!plan.staged()) return r_.template as<T>();
    return reaches_host ? B::from_host(host_r_.data()) : storage();
  }
  /// In host memory, when all is done: R of front f, and what lies at that element of its storage.
  T* host_r(std::size_t f) const {
    return plan.staged() && !reaches_host ? host_stored(f, plan.shapes[f].r) : host_r_.data() + plan.shapes[f].r;
  }
  T* host_stored(std::size_t f, Index element) const {
    return host_images_.data() + element + (plan.staged() ? plan.host_shift[f] : 0);
  }
  T* host_r() const { return host_r_.data(); }
  T* host_images() const { return host_images_.data(); }
  T* host_blocks() const { return host_blocks_.data(); }

  /// Whether kernels find R when all is done.
  bool reaches_r() const { return reaches_host || !plan.staged(); }

  Index device_bytes() const { return storage_.bytes() + r_.bytes(); }
  Index host_bytes() const { return host_bytes_; }

 private:
  static constexpr Index scalar = sizeof(T);
  static constexpr bool reaches_host = B::reaches_host;

  void plan_within(const Symbolic& symbolic, FrontRoundsOptions rounds) {
    plan = plan_rounds(symbolic, rounds);
    if (fits(symbolic, rounds)) return;
    if (!rounds.keep_q) {
      rounds.late = true;
      plan = plan_rounds(symbolic, rounds);
      if (fits(symbolic, rounds)) return;
    }
    rounds.r_in_storage = !reaches_host;
    const LeastStorage least = least_storage(symbolic, rounds);
    constexpr int tries = 3;  // with other tables
    for (int k = 0; k < tries; ++k) {
      const Index left = std::min(limit_ - tables_bytes(symbolic, rounds), largest_) / scalar;
      if (left <= least.elements) break;
      rounds.storage_limit = left;
      plan = plan_rounds(symbolic, rounds);
      if (fits(symbolic, rounds)) return;
    }
    rounds.storage_limit = least.elements;
    plan = plan_rounds(symbolic, rounds);
    if (fits(symbolic, rounds)) return;
    const backend::FrontShape& shape = plan.shapes[least.front];
    throw Error(ErrorCode::out_of_memory,
                detail::concat("the sparse factorization needs ", needed_bytes(symbolic, rounds),
                               " bytes of device memory even when front ", least.front, " (", shape.rows_bound, " x ",
                               shape.cols, ", ", front_bytes(shape, rounds), " bytes) is there alone, and ",
                               limit_is_given_ ? "the limit is " : "what is free is ", limit_));
  }

  static Index tables_bytes(const Symbolic& symbolic, const FrontRounds& plan, Index rhs_cols) {
    return DeviceTables<B, T>::bytes_for(symbolic, plan, rhs_cols);
  }
  Index tables_bytes(const Symbolic& symbolic, const FrontRoundsOptions& rounds) const {
    return tables_bytes(symbolic, plan, rounds.rhs_cols);
  }
  Index needed_bytes(const Symbolic& symbolic, const FrontRoundsOptions& rounds) const {
    return tables_bytes(symbolic, rounds) + (plan.storage_size + (plan.staged() ? 0 : plan.r_size)) * scalar;
  }
  static Index front_bytes(const backend::FrontShape& shape, const FrontRoundsOptions& rounds) {
    return (shape.t + rounds.panel * shape.cols - shape.matrix) * scalar;
  }
  bool fits(const Symbolic& symbolic, const FrontRoundsOptions& rounds) const {
    return needed_bytes(symbolic, rounds) <= limit_ && plan.storage_size * scalar <= largest_ &&
           (plan.staged() || plan.r_size * scalar <= largest_);
  }

  dense::Buffer<B> storage_, r_;
  HostMemory<B, T> host_r_, host_images_, host_blocks_;
  Index limit_ = 0, largest_ = 0, host_bytes_ = 0;
  bool limit_is_given_ = false, host_has_room_ = false;
};

}  // namespace qrane::sparse
