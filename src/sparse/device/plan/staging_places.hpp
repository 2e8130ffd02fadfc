// SPDX-License-Identifier: Apache-2.0
// Addresses of what a staged plan (staging.hpp) copies: in the storage's buffers and, once all rounds are known, in
// host memory.
#pragma once

#include <utility>
#include <vector>

#include "sparse/device/plan/staging.hpp"

namespace qrane::sparse {

/// How far each round has filled its buffer; two buffers are used in turn.
class StagingBuffers {
 public:
  StagingBuffers(Index first, Index piece) : first_(first), piece_(piece) {}
  Index used(std::int32_t round) const { return round < std::ssize(used_) ? used_[round] : 0; }
  Index left(std::int32_t round) const { return piece_ - used(round); }
  Index begin(std::int32_t round) const { return first_ + round % 2 * piece_; }
  /// Offset of `count` more elements.
  Index take(std::int32_t round, Index count) {
    if (std::ssize(used_) <= round) used_.resize(round + 1, 0);
    return begin(round) + std::exchange(used_[round], used_[round] + count);
  }
  std::int32_t rounds() const { return static_cast<std::int32_t>(used_.size()); }

 private:
  Index first_, piece_;
  std::vector<Index> used_;
};

/// Sets the plan's host addresses from the contents of the buffers `outs`, and sorts its copies and pieces by rounds.
/// left_in: of each copy of plan.ins, the round in which its data were copied out; its host address is so far relative
/// to the data of that round.
void place_in_host_memory(const std::vector<StagedFront>& fronts, const StagingOptions& options,
                          const StagingBuffers& outs, const std::vector<std::int32_t>& left_in, Staging& plan);

}  // namespace qrane::sparse
