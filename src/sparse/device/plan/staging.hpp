// SPDX-License-Identifier: Apache-2.0
// When fronts begin, and where they lie, in less device memory than all of them want: contribution blocks leave for
// host memory and come back before their parents are assembled. Plain values, from sizes alone. (Algorithm 980,
// section 3.5, where whole subtrees make a stage; here each block leaves when its room is wanted.)
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
// so a copy has a whole round of other work beside it, and the plan needs no events finer than rounds: copies that
// leave after round r are done before round r + 2 begins, copies for round r may begin after round r - 2. A block that
// does not fit into what is left of a buffer goes in pieces of whole columns, round after round. A front done by steps
// takes the pieces of its children's blocks as they come, and its first panel with the last of them; one done whole has
// all of them in one round.
//
// Ready fronts begin in the order in which an unlimited plan would begin them at the latest. One for which there is no
// room sends off finished blocks, those first that are wanted last (Belady); its own children's go last. In the worst
// case nothing else is left on the device: the least is the largest front and four buffers of the longest column of a
// block. Images, what must be in host memory in the end (R, reflectors), leave after a front's last round.
#pragma once

#include <cstdint>
#include <vector>

#include "vocabulary/fronts.hpp"

namespace qrane::sparse {

using backend::packed_front_block;

/// A front as far as staging is concerned; sizes in elements, multiples of the alignment but for the block's.
struct StagedFront {
  Index parent = -1;
  Index size = 0;                         ///< its memory
  Index image_begin = 0, image_size = 0;  ///< the part of it that goes to host memory when it has ended
  Index block_rows = 0, block_cols = 0;   ///< contribution block: column j has min(j + 1, block_rows) elements
  std::int32_t rounds = 1;                ///< that its panels take
  std::int32_t late = 0;                  ///< priority: smallest first, then by number
  bool whole = false;                     ///< children's blocks must be there in one piece and round
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

/// `count` elements between storage and host memory: after that round when they leave, before it when they come.
struct StagedCopy {
  std::int32_t round = 0;
  Index device = 0, host = 0, count = 0;
};

/// Staging::block where it is not a place in storage; as FrontShape::packed has it.
inline constexpr Index block_in_front = 0;    ///< where the child was factored
inline constexpr Index block_in_pieces = -1;  ///< by StagedPieces that come

struct Staging {
  std::vector<std::int32_t> begin, start, end;  ///< rounds: memory taken and assembled, first panel, last
  std::vector<Index> address;                   ///< in storage
  std::vector<Index> block;                 ///< place in storage where it is packed when the parent begins, or above
  std::vector<Index> image;                 ///< in host memory's images
  std::vector<std::int32_t> stage;          ///< blocks that were marshalled one after the other below a front, at most
  std::vector<StagedPiece> packs, unpacks;  ///< by rounds
  std::vector<StagedCopy> outs, ins, images;  ///< by rounds; outs and ins by host memory for blocks
  std::int32_t rounds = 0;
  Index storage_size = 0, blocks_size = 0, images_size = 0;  ///< elements on the device, of host memory
};

/// What a buffer must hold at least.
Index least_piece(const std::vector<StagedFront>& fronts, Index alignment);

/// Fronts in postorder. There must be room for each of them beside the four buffers.
Staging plan_staging(const std::vector<StagedFront>& fronts, const StagingOptions& options);

}  // namespace qrane::sparse
