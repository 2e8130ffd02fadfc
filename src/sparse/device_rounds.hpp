// SPDX-License-Identifier: Apache-2.0
// A plan's rounds on the queues of a device: urgent launches, those beside them, and copies on queues of their own, one for
// each direction. Nothing waits for the host. Queues that follow each other say when a copy may begin and must be done:
// staging.hpp has the order that its plans count on.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sparse/device_memory.hpp"
#include "sparse/device_tables.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceRounds {
 public:
  using Queue = typename B::Queue;

  explicit DeviceRounds(const Queue& queue) : queue_(queue), urgent_(queue_.side()), outs_(urgent_.side()) {}

  /// after(round) is called when a round has been queued. Returns the bytes that are copied; when the queue is done, so is
  /// everything.
  template <class After>
  Index run(const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q, After after) {
    const FrontRounds& plan = memory.plan;
    moved_ = r_sent_ = 0;
    if (plan.staged() && !ins_) ins_ = outs_.side();
    auto in = plan.ins.begin();
    auto out = plan.outs.begin(), image = plan.images.begin();
    bool beside_busy = false, ins_busy = false, outs_busy = false;
    urgent_.follow(queue_);
    for (Index r = 0; r < plan.rounds(); ++r) {
      const Index first = plan.round_begin[at(r)], last = plan.round_begin[at(r) + 1];
      const bool beside = last > first && !is_urgent(plan.launches[at(last - 1)].step);  // these come last
      if (beside_busy) urgent_.follow(queue_);
      if (ins_busy) urgent_.follow(*ins_);
      ins_busy = in != plan.ins.end() && in->round == r + 1;
      if (ins_busy) {
        ins_->follow(urgent_);
        ins_->follow(outs_);
        for (; in != plan.ins.end() && in->round == r + 1; ++in)
          upload_later(*ins_, memory.host_blocks() + in->host, memory.storage() + in->device, counted(in->count));
      }
      if (beside) queue_.follow(urgent_);
      for (Index l = first; l < last; ++l) {
        const FrontLaunch& launch = plan.launches[at(l)];
        tables.start(is_urgent(launch.step) ? urgent_ : queue_, launch, keep_q);
      }
      beside_busy = beside;
      if (outs_busy) urgent_.follow(outs_);  // those of the last round
      const auto leaves = [&](const auto& copy, const auto& all) { return copy != all.end() && copy->round == r; };
      outs_busy = leaves(out, plan.outs) || leaves(image, plan.images);
      if (outs_busy) follow_all(outs_);
      for (; leaves(out, plan.outs); ++out) send(memory, *out, memory.host_blocks());
      for (; leaves(image, plan.images); ++image) send(memory, *image, memory.host_images());
      if (!plan.staged()) send_r(memory, plan.r_final[at(r)], worth_copying);
      after(r);
    }
    if (!plan.staged()) send_r(memory, plan.r_size, 1);
    queue_.follow(urgent_);
    queue_.follow(outs_);
    if (plan.staged()) moved_ += plan.r_size * scalar;  // by the kernels
    return moved_;
  }

  void settle() noexcept {
    for (Queue* q : {&urgent_, ins_ ? &*ins_ : nullptr, &outs_, &queue_})
      if (q) try {
          q->synchronize();
        } catch (...) {  // what failed has been reported, or will be at the next call
        }
  }

 private:
  static constexpr Index scalar = sizeof(T);
  static constexpr Index worth_copying = (Index{1} << 21) / scalar;
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  Index counted(Index elements) {
    moved_ += elements * scalar;
    return elements;
  }
  void follow_all(Queue& copies) {
    copies.follow(queue_);
    copies.follow(urgent_);
  }
  void send(const DeviceMemory<B, T>& memory, const StagedCopy& copy, T* host) {
    download_later(outs_, memory.storage() + copy.device, host + copy.host, counted(copy.count));
  }
  /// R's elements up to there, if they are that many.
  void send_r(const DeviceMemory<B, T>& memory, Index until, Index least) {
    if (until - r_sent_ < least) return;
    follow_all(outs_);
    download_later(outs_, memory.r() + r_sent_, memory.host_r() + r_sent_, counted(until - r_sent_));
    r_sent_ = until;
  }

  Queue queue_, urgent_, outs_;
  std::optional<Queue> ins_;
  Index moved_ = 0, r_sent_ = 0;
};

}  // namespace qrane::sparse
