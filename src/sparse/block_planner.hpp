// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// Addresses for blocks that come and go: a good fit in constant time, holes merge. Two-level bins as in Masmano,
/// Ripoll, Crespo, Real, "TLSF", 2004; blocks are numbers here, nothing lies in the memory itself.
class BlockPlanner {
 public:
  BlockPlanner();
  /// Returns a handle; -1 where a limit is given that the block's end would pass.
  Index take(Index size, Index limit = -1);
  void give_back(Index handle);
  Index address(Index handle) const { return blocks_[static_cast<std::size_t>(handle)].begin; }
  /// The largest end of a block so far.
  Index extent() const { return extent_; }

 private:
  static constexpr int sub_bits = 3, bins = 64 << sub_bits;
  struct Block {
    Index begin, size;
    Index before, after;          // neighbours in memory
    Index bin_before, bin_after;  // of a hole, in its bin
    bool hole;
  };
  static int bin_of(Index size);
  Index find(Index size) const;
  void open(Index block);   // becomes a hole
  void close(Index block);  // leaves its bin
  Index insert(Index begin, Index size, Index before, Index after);

  std::vector<Block> blocks_;
  std::vector<Index> spare_;  // handles
  std::array<Index, bins> first_;
  std::array<std::uint64_t, bins / 64> filled_{};
  Index last_ = -1;  // in memory
  Index extent_ = 0;
};

}  // namespace qrane::sparse
