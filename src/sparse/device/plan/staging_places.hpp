// SPDX-License-Identifier: Apache-2.0
// Where what a staged plan moves (staging.hpp) lies: in storage's buffers, and in host memory when all rounds are
// known.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sparse/device/plan/staging.hpp"

namespace qrane::sparse {

/// Rows of storage's four buffers that rounds have filled.
class StagingBuffers {
 public:
  StagingBuffers(Index first, Index piece) : first_(first), piece_(piece) {}
  Index used(std::int32_t round) const { return round < std::ssize(used_) ? used_[round] : 0; }
  Index left(std::int32_t round) const { return piece_ - used(round); }
  Index begin(std::int32_t round) const { return first_ + round % 2 * piece_; }
  /// Place of `count` elements more.
  Index take(std::int32_t round, Index count) {
    if (std::ssize(used_) <= round) used_.resize(round + 1, 0);
    return begin(round) + std::exchange(used_[round], used_[round] + count);
  }
  std::int32_t rounds() const { return static_cast<std::int32_t>(used_.size()); }

 private:
  Index first_, piece_;
  std::vector<Index> used_;
};

/// Sets what `plan` has of host memory, from what its rounds have put into the buffers `outs`, and sorts its copies and
/// pieces by rounds. left_in: the round in which what each copy of plan.ins brings had left; until now that copy's
/// place in host memory is relative to what left then.
void place_in_host_memory(const std::vector<StagedFront>& fronts, const StagingOptions& options,
                          const StagingBuffers& outs, const std::vector<std::int32_t>& left_in, Staging& plan);

}  // namespace qrane::sparse
