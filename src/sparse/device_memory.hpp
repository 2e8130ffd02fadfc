// SPDX-License-Identifier: Apache-2.0
// The plan of a device's factorization within its limit, and the memory that fronts, R and Q lie in.
#pragma once

#include <algorithm>
#include <type_traits>

#include <qrane/error.hpp>

#include "dense/buffer.hpp"
#include "sparse/factors.hpp"
#include "sparse/front_rounds.hpp"
#include "sparse/host_memory.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceMemory {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  static constexpr Index panel = 32;

  FrontRounds plan;

  /// Plans only. Throws Error{out_of_memory} with the bytes needed.
  void make_plan(const Queue& queue, const Symbolic& symbolic, const NumericOptions& options, Index rhs_cols) {
    FrontRoundsOptions rounds;
    rounds.rhs_cols = rhs_cols;
    rounds.panel = panel;
    rounds.whole_elements = queue.front_whole_elements(T{});
    rounds.update_cols = queue.front_update_cols(T{});
    rounds.keep_q = options.keep_q;
    rounds.detect_rank = options.detect_rank;
    plan_within(options.memory_limit_bytes, symbolic, rounds);
  }

  void allocate(const Queue& queue, bool keep_q) {
    storage_ = dense::Buffer<B>(queue, plan.storage_size * scalar);
    host_r_ = HostMemory<B, T>(queue, plan.r_size);
    if (!r_to_host_) r_ = dense::Buffer<B>(queue, plan.r_size * scalar);
    if (keep_q) host_storage_ = HostMemory<B, T>(queue, plan.storage_size);
    host_bytes_ = (plan.r_size + (keep_q ? plan.storage_size : 0)) * scalar;
  }
  /// All but the plan.
  void release() {
    for (dense::Buffer<B>* buffer : {&storage_, &r_}) *buffer = dense::Buffer<B>();
    for (HostMemory<B, T>* memory : {&host_r_, &host_storage_}) *memory = HostMemory<B, T>();
    host_bytes_ = 0;
  }

  Pointer<T> storage() const { return storage_.template as<T>(); }
  /// Where kernels write R: on the device, or already where host_r() is.
  Pointer<T> r() const {
    if constexpr (reaches_host)
      if (r_to_host_) return host_r_.data();
    return r_.template as<T>();
  }
  bool r_to_host() const { return r_to_host_; }
  T* host_r() const { return host_r_.data(); }
  T* host_storage() const { return host_storage_.data(); }  ///< null without Q

  Index device_bytes() const { return storage_.bytes() + r_.bytes(); }
  Index host_bytes() const { return host_bytes_; }

 private:
  static constexpr Index scalar = sizeof(T);
  static constexpr bool reaches_host = std::is_same_v<Pointer<T>, T*>;  // kernels can write to HostMemory

  /// Fronts as soon as they can begin; where the limit forbids it as late as they may, then in postorder, at last with R
  /// written to the host by the kernels themselves.
  void plan_within(Index limit, const Symbolic& symbolic, FrontRoundsOptions rounds) {
    const auto fits = [&] { return limit == 0 || needed_bytes() <= limit; };
    r_to_host_ = false;
    plan = plan_rounds(symbolic, rounds);
    if (fits()) return;
    if (!rounds.keep_q) {
      rounds.late = true;
      plan = plan_rounds(symbolic, rounds);
      if (fits()) return;
      rounds.storage_limit = std::max<Index>(limit / scalar - plan.r_size, 0);
      plan = plan_rounds(symbolic, rounds);
      if (fits()) return;
      if constexpr (reaches_host) {
        r_to_host_ = true;
        rounds.storage_limit = limit / scalar;
        plan = plan_rounds(symbolic, rounds);
        if (fits()) return;
      }
    }
    throw Error(ErrorCode::out_of_memory,
                detail::concat("the sparse factorization needs ", needed_bytes(), " bytes of device memory for fronts",
                               rounds.keep_q ? ", Q" : "", r_to_host_ ? "" : " and R", ", and the limit is ", limit));
  }
  Index needed_bytes() const { return (plan.storage_size + (r_to_host_ ? 0 : plan.r_size)) * scalar; }

  dense::Buffer<B> storage_, r_;
  HostMemory<B, T> host_r_, host_storage_;
  bool r_to_host_ = false;
  Index host_bytes_ = 0;
};

}  // namespace qrane::sparse
