// SPDX-License-Identifier: Apache-2.0
// Which row of the sketch a row of A is added to, and with which sign: S = Omega A, Omega with one nonzero, +1 or -1,
// in every column (CountSketch: Clarkson, Woodruff, "Low rank approximation and regression in input sparsity time",
// STOC 2013). S has k rows, k a multiple of 32. Rows of A come in blocks of k, and every block is a permutation of
// S's rows, so that k neighbours never meet and a row of S is the sum of one row from each block, in their order:
//
//     row i = b k + 32 g + l   ->   row 32 ((g + offset(b)) mod k/32) + (l xor turn(b))
//
// Two rows of different blocks meet with probability 1/k, as in the original; 32 neighbours stay together, so that
// they are read together.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define QRANE_ANYWHERE __host__ __device__
#else
#define QRANE_ANYWHERE
#endif

namespace qrane::backend::count_sketch {

/// Bits that look random (the finalizer of MurmurHash3).
QRANE_ANYWHERE constexpr std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

constexpr std::uint32_t block_seed = 0x9e3779b9u, sign_seed = 0x7f4a7c15u;

QRANE_ANYWHERE constexpr std::uint32_t turn(std::uint32_t block) { return mix(block + block_seed) & 31u; }
QRANE_ANYWHERE constexpr std::uint32_t offset(std::uint32_t block, std::uint32_t groups) {
  return (mix(block + block_seed) >> 5) % groups;
}
/// 1: the row is subtracted.
QRANE_ANYWHERE constexpr std::uint32_t sign(std::uint32_t row) { return mix(row + sign_seed) & 1u; }

/// The row of a sketch of 32 * groups rows that row i goes to.
QRANE_ANYWHERE constexpr std::uint32_t target(std::uint32_t i, std::uint32_t groups) {
  const std::uint32_t block = i / (32 * groups), g = i / 32 % groups, l = i % 32;
  return 32 * ((g + offset(block, groups)) % groups) + (l ^ turn(block));
}

}  // namespace qrane::backend::count_sketch

#undef QRANE_ANYWHERE
