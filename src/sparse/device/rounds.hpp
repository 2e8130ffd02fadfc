// SPDX-License-Identifier: Apache-2.0
// A plan's rounds on the queues of a device; nothing waits for the host. A plan that fits is launched by lanes
// (plan/front_lanes.hpp). A staged plan has one queue for urgent launches, one for the others and one for the copies in
// each direction; they follow each other in the order that plan/staging.hpp relies on.
#pragma once

#include "sparse/device/lanes.hpp"
#include "sparse/device/memory.hpp"
#include "sparse/device/tables.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceRounds {
 public:
  using Queue = typename B::Queue;

  explicit DeviceRounds(const Queue& queue) : lanes_(queue) {}

  /// Before the first run, whenever the memory has a new plan.
  void plan(const Symbolic& symbolic, const DeviceMemory<B, T>& memory, bool keep_q) {
    recording_ = {};
    runs_ = 0;
    if (!memory.plan.staged()) lanes_.plan(symbolic, memory.plan, memory.panel, keep_q);
  }

  /// run(), or its recording, which the device replays without the host.
  Index run_recorded(const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q) {
    ++runs_;
    if (is_recorded(tables)) {
      lanes_.main().replay(recording_);
      return moved_;
    }
    return run(tables, memory, keep_q, [](Index) {});
  }
  /// Records the run for later ones, while the device is busy with a plan's second run.
  void record(const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q) {
    if (runs_ < 2 || is_recorded(tables)) return;
    recording_ = lanes_.main().recorded([&](Queue& main) {
      DeviceLanes<B> lanes(main, lanes_);
      run(lanes, tables, memory, keep_q, [](Index) {});
    });
    recorded_scaled_ = static_cast<bool>(tables.fronts.exponents);
  }

  /// after(round) is called when a round has been queued. Returns the bytes that are copied; when the queue is done, so
  /// is everything.
  template <class After>
  Index run(const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q, After after) {
    return run(lanes_, tables, memory, keep_q, after);
  }

  void settle() noexcept {
    lanes_.each([](Queue& q) {
      try {
        q.synchronize();
      } catch (...) {  // what failed has been reported, or will be at the next call
      }
    });
  }

 private:
  using Lanes = DeviceLanes<B>;

  template <class After>
  Index run(Lanes& lanes, const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q,
            After after) {
    moved_ = r_sent_ = 0;
    lanes.begin();
    if (memory.plan.staged())
      run_staged(lanes, tables, memory, keep_q, after);
    else
      run_lanes(lanes, tables, memory, keep_q, after);
    return moved_;
  }

  template <class After>
  void run_lanes(Lanes& lanes, const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q,
                 After after) {
    const FrontRounds& plan = memory.plan;
    for (Index r = 0; r < plan.rounds(); ++r) {
      for (Index l = plan.round_begin[r]; l < plan.round_begin[r + 1]; ++l)
        lanes.launch(l, [&](Queue& queue) { tables.start(queue, plan.launches[l], keep_q); });
      send_r(lanes, memory, plan.r_final[r], worth_copying);
      after(r);
    }
    send_r(lanes, memory, plan.r_size, 1);
    lanes.end();
  }

  /// With a barrier after each round, which copies count on.
  template <class After>
  void run_staged(Lanes& lanes, const DeviceTables<B, T>& tables, const DeviceMemory<B, T>& memory, bool keep_q,
                  After after) {
    const FrontRounds& plan = memory.plan;
    Queue &main = lanes.main(), &urgent = lanes.urgent(), &outs = lanes.outs(), &ins = lanes.ins();
    const auto follow_all = [&](Queue& copies) {
      copies.follow(main);
      copies.follow(urgent);
    };
    auto in = plan.ins.begin();
    auto out = plan.outs.begin(), image = plan.images.begin();
    bool beside_busy = false, ins_busy = false, outs_busy = false;
    for (Index r = 0; r < plan.rounds(); ++r) {
      const Index first = plan.round_begin[r], last = plan.round_begin[r + 1];
      const bool beside = last > first && !is_urgent(plan.launches[last - 1].step);  // these come last
      if (beside_busy) urgent.follow(main);
      if (ins_busy) urgent.follow(ins);
      ins_busy = in != plan.ins.end() && in->round == r + 1;
      if (ins_busy) {
        ins.follow(urgent);
        ins.follow(outs);
        for (; in != plan.ins.end() && in->round == r + 1; ++in)
          ins.upload_later(memory.host_blocks() + in->host, memory.storage() + in->device, counted(in->count));
      }
      if (beside) main.follow(urgent);
      for (Index l = first; l < last; ++l) {
        const FrontLaunch& launch = plan.launches[l];
        tables.start(is_urgent(launch.step) ? urgent : main, launch, keep_q);
      }
      beside_busy = beside;
      if (outs_busy) urgent.follow(outs);  // those of the last round
      const auto leaves = [&](const auto& copy, const auto& all) { return copy != all.end() && copy->round == r; };
      outs_busy = leaves(out, plan.outs) || leaves(image, plan.images);
      if (outs_busy) follow_all(outs);
      for (; leaves(out, plan.outs); ++out) send(outs, memory, *out, memory.host_blocks());
      for (; leaves(image, plan.images); ++image) send(outs, memory, *image, memory.host_images());
      after(r);
    }
    lanes.end();
    moved_ += plan.r_size * scalar;  // by the kernels
  }

  static constexpr Index scalar = sizeof(T);
  static constexpr Index worth_copying = (Index{1} << 21) / scalar;
  Index counted(Index elements) {
    moved_ += elements * scalar;
    return elements;
  }
  void send(Queue& outs, const DeviceMemory<B, T>& memory, const StagedCopy& copy, T* host) {
    outs.download_later(memory.storage() + copy.device, host + copy.host, counted(copy.count));
  }
  /// R's elements up to there, if they are that many.
  void send_r(Lanes& lanes, const DeviceMemory<B, T>& memory, Index until, Index least) {
    if (until - r_sent_ < least) return;
    lanes.after_all().download_later(memory.r() + r_sent_, memory.host_r() + r_sent_, counted(until - r_sent_));
    r_sent_ = until;
  }

  bool is_recorded(const DeviceTables<B, T>& tables) const {
    return recording_ && recorded_scaled_ == static_cast<bool>(tables.fronts.exponents);
  }

  Lanes lanes_;
  Index moved_ = 0, r_sent_ = 0;
  typename Queue::Recording recording_{};
  bool recorded_scaled_ = false;  // with exponents of columns
  Index runs_ = 0;                // of this plan
};

}  // namespace qrane::sparse
