// SPDX-License-Identifier: Apache-2.0
// The matrices of the benchmarks, the same bits in qrane's process and in the peers': element k (column-major) of a
// matrix is uniform in (-1, 1) and a function of the seed and k alone, so threads fill it in any order.
#pragma once

#include <cstdint>

namespace qrane::bench {

/// The k-th number of a seed's stream: splitmix64 (Steele, Lea, Flood, 2014) read at position k. 24 random bits, so
/// that float and double matrices hold the same numbers.
inline double uniform_at(std::uint64_t seed, std::uint64_t k) {
  std::uint64_t z = seed * 0xd1342543de82ef95u + (k + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (static_cast<double>(z >> 40) + 0.5) * 0x1p-23 - 1.0;
}

/// Fills `count` elements at `data` with the stream of `seed`.
template <class T>
void fill_seeded(T* data, std::int64_t count, std::uint64_t seed) {
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < count; ++k) data[k] = static_cast<T>(uniform_at(seed, static_cast<std::uint64_t>(k)));
}

}  // namespace qrane::bench
