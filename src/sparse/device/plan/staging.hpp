// SPDX-License-Identifier: Apache-2.0
// When fronts begin, and their addresses, if device memory is too small for the unlimited plan: contribution blocks are
// spilled to host memory and read back before their parents are assembled. Plain values, from sizes alone. (Algorithm
// 980, section 3.5, spills whole subtrees, its stages; here a block is spilled when its memory is needed.)
//
// Storage begins with four buffers of `piece` elements, two for each direction, used in turn:
//
//   round        r - 1               r                   r + 1               r + 2
//   kernels                          pack into out[r%2]                      out[r%2] may be packed into again;
//   copies                                               out[r%2] -> host    what was packed may be copied back
//
//   kernels                          unpack from in[r%2]
//   copies       host -> in[r%2]
//
// A copy therefore overlaps a whole round of other work, and the plan needs no events finer than rounds: copies to the
// host after round r end before round r + 2 begins, and copies for round r may begin after round r - 2. A block larger
// than the free part of a buffer is copied in pieces of whole columns, one per round. A front that is factored panel by
// panel assembles the pieces of its children's blocks as they arrive, and its first panel follows the last of them; a
// front that is factored whole needs all of them in one round.
//
// Ready fronts begin in the order of the latest rounds of an unlimited plan. If there is no room for a front, finished
// blocks are spilled, those that are needed last first (Belady), its own children's last. In the worst case the device
// holds nothing else: the minimum is the largest front and four buffers of the longest column of a block. Images (R and
// reflectors, which the host needs in the end) are copied after a front's last round.
#pragma once

#include <cstdint>
#include <vector>

#include "vocabulary/fronts.hpp"

namespace qrane::sparse {

using backend::packed_front_block;

/// What staging knows of a front; sizes in elements, multiples of the alignment except the block's.
struct StagedFront {
  Index parent = -1;
  Index size = 0;                         ///< of its memory
  Index image_begin = 0, image_size = 0;  ///< part of it that is copied to host memory when the front has ended
  Index block_rows = 0, block_cols = 0;   ///< contribution block: column j has min(j + 1, block_rows) elements
  std::int32_t rounds = 1;                ///< number of rounds of its panels
  std::int32_t late = 0;                  ///< priority: smallest first, then by index
  bool whole = false;                     ///< needs its children's blocks in one round
};

inline constexpr Index staging_buffers = 4;

struct StagingOptions {
  Index limit = 0;  ///< elements of storage
  Index piece = 0;  ///< of a buffer; at least least_piece()
  Index alignment = 16;
};

/// Columns first .. first + cols - 1 of a front's contribution block, packed from element `place` of storage on.
struct StagedPiece {
  std::int32_t round = 0;
  Index front = 0, first = 0, cols = 0, place = 0;
};

/// A copy of `count` elements between storage and host memory: to the host after the round, from it before the round.
struct StagedCopy {
  std::int32_t round = 0;
  Index device = 0, host = 0, count = 0;
};

/// Values of Staging::block that are not offsets in storage; the same as FrontShape::packed's.
inline constexpr Index block_in_front = 0;    ///< in the child's front
inline constexpr Index block_in_pieces = -1;  ///< arrives in StagedPieces

struct Staging {
  std::vector<std::int32_t> begin, start, end;  ///< rounds: allocation and assembly, first panel, last
  std::vector<Index> address;                   ///< in storage
  std::vector<Index> block;  ///< offset in storage where it is packed when the parent begins, or one of the above
  std::vector<Index> image;  ///< offset in the host's images
  std::vector<std::int32_t> stage;            ///< most blocks that are spilled on one path below the front
  std::vector<StagedPiece> packs, unpacks;    ///< by rounds
  std::vector<StagedCopy> outs, ins, images;  ///< by rounds; outs and ins use the host memory of blocks
  std::int32_t rounds = 0;
  Index storage_size = 0, blocks_size = 0, images_size = 0;  ///< elements: on the device, then of host memory
};

/// Smallest size of a buffer.
Index least_piece(const std::vector<StagedFront>& fronts, Index alignment);

/// Fronts in postorder. Each of them must fit into storage beside the four buffers.
Staging plan_staging(const std::vector<StagedFront>& fronts, const StagingOptions& options);

}  // namespace qrane::sparse
