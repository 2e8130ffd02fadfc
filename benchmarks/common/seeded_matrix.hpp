// SPDX-License-Identifier: Apache-2.0
// The matrices of the benchmarks, the same bits in qrane's process and in the peers': element k (column-major) of a
// matrix is uniform in (-1, 1) and a function of the seed and k alone, so threads fill it in any order.
//
// A matrix of a chosen condition number kappa is A = G D H1 H2: G uniform as above (its singular values lie within
// 1 +- sqrt(n / m) of each other), D = diag(kappa^(-j / (n - 1))), a geometric spectrum, and H1, H2 two fixed
// Householder reflections that mix the columns, so that no scaling of columns repairs the condition. 8 m n flops.
// In a type of unit roundoff u rounding moves singular values by up to about u sigma_1: near kappa = 1 / u the
// condition number is that to its order of magnitude.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace qrane::bench {

/// The k-th number of a seed's stream: splitmix64 (Steele, Lea, Flood, 2014) read at position k. 24 random bits, so
/// that float and double matrices hold the same numbers.
constexpr double uniform_at(std::uint64_t seed, std::uint64_t k) {
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

/// What turns a row of G into a row of A: the scales of D, and the unit vectors of H1 and H2.
struct ColumnMix {
  std::vector<double> scale, first, second;

  ColumnMix(std::int64_t cols, double condition) {
    double norms[2] = {0, 0};
    for (std::int64_t j = 0; j < cols; ++j) {
      scale.push_back(cols > 1 ? std::pow(condition, -static_cast<double>(j) / static_cast<double>(cols - 1)) : 1);
      first.push_back(uniform_at(77, static_cast<std::uint64_t>(j)));
      second.push_back(uniform_at(78, static_cast<std::uint64_t>(j)));
      norms[0] += first.back() * first.back();
      norms[1] += second.back() * second.back();
    }
    for (std::size_t j = 0; j < scale.size(); ++j) {
      first[j] /= std::sqrt(norms[0]);
      second[j] /= std::sqrt(norms[1]);
    }
  }
};

/// As fill_seeded, with condition number `condition` (above); 1 gives fill_seeded's own numbers.
template <class T>
void fill_seeded(T* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition) {
  if (condition == 1) return fill_seeded(data, rows * cols, seed);
  const ColumnMix mix(cols, condition);
  constexpr std::int64_t tile = 64;
#pragma omp parallel for schedule(static)
  for (std::int64_t begin = 0; begin < rows; begin += tile) {
    const std::int64_t count = begin + tile < rows ? tile : rows - begin;
    std::vector<double> part(static_cast<std::size_t>(tile * cols));
    double sums[tile];
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < count; ++i)
        part[static_cast<std::size_t>(j * tile + i)] =
            mix.scale[static_cast<std::size_t>(j)] * uniform_at(seed, static_cast<std::uint64_t>(begin + i + j * rows));
    for (const std::vector<double>* reflector : {&mix.first, &mix.second}) {
      const std::vector<double>& v = *reflector;
      for (double& sum : sums) sum = 0;
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t i = 0; i < count; ++i)
          sums[i] += v[static_cast<std::size_t>(j)] * part[static_cast<std::size_t>(j * tile + i)];
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t i = 0; i < count; ++i)
          part[static_cast<std::size_t>(j * tile + i)] -= 2 * v[static_cast<std::size_t>(j)] * sums[i];
    }
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < count; ++i)
        data[begin + i + j * rows] = static_cast<T>(part[static_cast<std::size_t>(j * tile + i)]);
  }
}

/// What robust PCA takes apart: rank 5, and 5% of the elements hit by something as large.
template <class T>
void fill_synthetic_frames(T* data, std::int64_t rows, std::int64_t cols) {
  constexpr int rank = 5;
#pragma omp parallel for schedule(static)
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int k = 0; k < rank; ++k)
        sum += uniform_at(1, static_cast<std::uint64_t>(i * rank + k)) *
               uniform_at(2, static_cast<std::uint64_t>(j * rank + k));
      const auto place = static_cast<std::uint64_t>(i + j * rows);
      if (uniform_at(3, place) > 0.9) sum += uniform_at(4, place);
      data[i + j * rows] = static_cast<T>(sum);
    }
}

}  // namespace qrane::bench
