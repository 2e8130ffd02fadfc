// SPDX-License-Identifier: Apache-2.0
#include "sparse/block_planner.hpp"

#include <algorithm>
#include <bit>

namespace qrane::sparse {

namespace {
std::size_t at(Index i) { return static_cast<std::size_t>(i); }
}  // namespace

BlockPlanner::BlockPlanner() { first_.fill(-1); }

/// Sizes with the same leading bits share a bin; bins ascend.
int BlockPlanner::bin_of(Index size) {
  const auto bits = static_cast<std::uint64_t>(size);
  const int width = std::bit_width(bits);
  if (width <= sub_bits) return static_cast<int>(bits);
  const int shift = width - 1 - sub_bits;
  return ((shift + 1) << sub_bits) + static_cast<int>((bits >> shift) & ((1U << sub_bits) - 1));
}

/// A hole of at least that size, or -1: one of its own bin that happens to fit, else any of a larger bin.
Index BlockPlanner::find(Index size) const {
  int bin = bin_of(size);
  constexpr int looks = 8;
  Index hole = first_[at(bin)];
  for (int k = 0; k < looks && hole >= 0; ++k, hole = blocks_[at(hole)].bin_after)
    if (blocks_[at(hole)].size >= size) return hole;
  ++bin;
  for (int word = bin / 64; word < bins / 64; ++word) {
    const std::uint64_t set =
        filled_[at(word)] & (word == bin / 64 ? ~std::uint64_t{0} << bin % 64 : ~std::uint64_t{0});
    if (set != 0) return first_[at(word * 64 + std::countr_zero(set))];
  }
  return -1;
}

void BlockPlanner::open(Index block) {
  Block& b = blocks_[at(block)];
  const int bin = bin_of(b.size);
  b.hole = true;
  b.bin_before = -1;
  b.bin_after = first_[at(bin)];
  if (b.bin_after >= 0) blocks_[at(b.bin_after)].bin_before = block;
  first_[at(bin)] = block;
  filled_[at(bin / 64)] |= std::uint64_t{1} << bin % 64;
}

void BlockPlanner::close(Index block) {
  Block& b = blocks_[at(block)];
  const int bin = bin_of(b.size);
  b.hole = false;
  if (b.bin_after >= 0) blocks_[at(b.bin_after)].bin_before = b.bin_before;
  if (b.bin_before >= 0)
    blocks_[at(b.bin_before)].bin_after = b.bin_after;
  else
    first_[at(bin)] = b.bin_after;
  if (first_[at(bin)] < 0) filled_[at(bin / 64)] &= ~(std::uint64_t{1} << bin % 64);
}

Index BlockPlanner::insert(Index begin, Index size, Index before, Index after) {
  Index block = static_cast<Index>(blocks_.size());
  if (spare_.empty()) {
    blocks_.emplace_back();
  } else {
    block = spare_.back();
    spare_.pop_back();
  }
  blocks_[at(block)] = {begin, size, before, after, -1, -1, false};
  if (before >= 0) blocks_[at(before)].after = block;
  if (after >= 0)
    blocks_[at(after)].before = block;
  else
    last_ = block;
  return block;
}

Index BlockPlanner::take(Index size, Index limit) {
  Index block = find(size);
  if (block < 0 && limit >= 0) {
    const Index begin =
        last_ < 0 ? 0 : blocks_[at(last_)].begin + (blocks_[at(last_)].hole ? 0 : blocks_[at(last_)].size);
    if (begin + size > limit) return -1;
  }
  if (block < 0 && last_ >= 0 && blocks_[at(last_)].hole) {  // the last hole grows
    block = last_;
    close(block);
    blocks_[at(block)].size = size;
  } else if (block < 0) {
    const Index begin = last_ >= 0 ? blocks_[at(last_)].begin + blocks_[at(last_)].size : 0;
    block = insert(begin, size, last_, -1);
  } else {
    close(block);
    if (const Index left = blocks_[at(block)].size - size; left > 0) {
      blocks_[at(block)].size = size;
      const Index begin = blocks_[at(block)].begin + size, after = blocks_[at(block)].after;
      open(insert(begin, left, block, after));
    }
  }
  extent_ = std::max(extent_, blocks_[at(block)].begin + size);
  return block;
}

void BlockPlanner::give_back(Index handle) {
  const auto swallow = [&](Index block, Index next) {  // `next` joins `block`
    blocks_[at(block)].size += blocks_[at(next)].size;
    const Index after = blocks_[at(next)].after;
    blocks_[at(block)].after = after;
    if (after >= 0)
      blocks_[at(after)].before = block;
    else
      last_ = block;
    spare_.push_back(next);
  };
  if (const Index after = blocks_[at(handle)].after; after >= 0 && blocks_[at(after)].hole) {
    close(after);
    swallow(handle, after);
  }
  if (const Index before = blocks_[at(handle)].before; before >= 0 && blocks_[at(before)].hole) {
    close(before);
    swallow(before, handle);
    handle = before;
  }
  open(handle);
}

}  // namespace qrane::sparse
