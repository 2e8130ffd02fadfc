// SPDX-License-Identifier: Apache-2.0
// Small sparse matrices for tests, kept as triplets, and what is known of them by brute force on dense arrays.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <qrane/sparse_qr.hpp>

#include "support/small_run.hpp"

namespace qrane::test {

/// Owns what a SparseView points to.
struct Triplets {
  Index rows = 0;
  Index cols = 0;
  std::vector<Index> row, col;
  std::vector<double> value;

  void add(Index i, Index j, double v) {
    row.push_back(i);
    col.push_back(j);
    value.push_back(v);
  }
  sparse::SparseView<double> view() const {
    return sparse::by_triplets(rows, cols, static_cast<Index>(row.size()), row.data(), col.data(), value.data());
  }
  /// Column-major, duplicates summed.
  std::vector<double> dense() const {
    std::vector<double> a(rows * cols, 0.0);
    for (std::size_t k = 0; k < row.size(); ++k) a[row[k] + col[k] * rows] += value[k];
    return a;
  }
};

/// Each position with that probability, values in [-1, 1], in shuffled order.
inline Triplets random_sparse(Index rows, Index cols, double density, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> unit(0, 1), signed_unit(-1, 1);
  std::vector<std::pair<Index, Index>> positions;
  for (Index j = 0; j < cols; ++j) {
    for (Index i = 0; i < rows; ++i) {
      if (unit(generator) < density) positions.emplace_back(i, j);
    }
  }
  std::shuffle(positions.begin(), positions.end(), generator);
  Triplets a{rows, cols, {}, {}, {}};
  for (const auto& [i, j] : positions) a.add(i, j, signed_unit(generator));
  return a;
}

struct NamedTriplets {
  std::string name;
  Triplets a;
};

/// Random and odd ones: empty, all zero, wide, dense, diagonal, duplicates, empty rows and columns, structurally
/// singular.
inline std::vector<NamedTriplets> odd_matrices() {
  std::vector<NamedTriplets> all;
  for (unsigned seed = 0; seed < 12; seed += small_run() ? 5 : 1) {
    all.push_back(
        {"random " + std::to_string(seed), random_sparse(30 + seed, 20 + seed % 3, 0.04 + 0.02 * seed, seed)});
    all.push_back({"wide " + std::to_string(seed), random_sparse(12, 25, 0.05 + 0.02 * seed, 100 + seed)});
    all.push_back({"square " + std::to_string(seed), random_sparse(24, 24, 0.03 + 0.02 * seed, 200 + seed)});
  }
  all.push_back({"tall", random_sparse(300, 40, 0.03, 7)});
  all.push_back({"one dense row", random_sparse(60, 60, 0.03, 8)});
  for (Index j = 0; j < 60; ++j) all.back().a.add(17, j, 0.5 + static_cast<double>(j));
  all.push_back({"dense", random_sparse(15, 9, 1.0, 9)});
  all.push_back({"0 x 0", {0, 0, {}, {}, {}}});
  all.push_back({"0 x 4", {0, 4, {}, {}, {}}});
  all.push_back({"5 x 0", {5, 0, {}, {}, {}}});
  all.push_back({"all zero", {5, 4, {}, {}, {}}});
  all.push_back({"1 x 1", {1, 1, {0}, {0}, {3.0}}});
  all.push_back({"one column", {6, 1, {5, 0, 3}, {0, 0, 0}, {1.0, 2.0, -1.0}}});
  all.push_back({"one row", {1, 6, {0, 0, 0}, {4, 0, 2}, {1.0, 2.0, -1.0}}});
  all.push_back({"diagonal", {4, 4, {3, 1, 0, 2}, {3, 1, 0, 2}, {1.0, 2.0, 3.0, 4.0}}});
  all.push_back({"triangle", {}});
  all.back().a.rows = all.back().a.cols = 8;
  for (Index j = 0; j < 8; ++j) {
    for (Index i = 0; i <= j; ++i) all.back().a.add(i, j, 1.0 + static_cast<double>(i + j));
  }
  all.push_back({"arrow", {20, 10, {}, {}, {}}});
  for (Index i = 0; i < 20; ++i) {
    all.back().a.add(i, i % 9, 1.0 + static_cast<double>(i));
    all.back().a.add(i, 9, 0.25);
  }
  all.push_back({"duplicates", random_sparse(20, 12, 0.2, 10)});
  for (std::size_t k = 0; k < 15; ++k) {
    Triplets& a = all.back().a;
    a.add(a.row[3 * k % a.row.size()], a.col[3 * k % a.row.size()], 0.125 * static_cast<double>(k + 1));
  }
  all.push_back({"explicit zeros", random_sparse(20, 12, 0.2, 11)});
  for (std::size_t k = 0; k < all.back().a.value.size(); k += 3) all.back().a.value[k] = 0;
  all.push_back({"wide, zeros in front", random_sparse(3, 7, 1.0, 14)});  // rows run out after columns were dropped
  for (std::size_t k = 0; k < all.back().a.value.size(); ++k)
    if (all.back().a.col[k] < 2) all.back().a.value[k] = 0;
  all.push_back({"empty lines", random_sparse(30, 18, 0.15, 12)});
  {
    Triplets& a = all.back().a;
    Triplets kept{a.rows, a.cols, {}, {}, {}};
    for (std::size_t k = 0; k < a.row.size(); ++k) {
      if (a.row[k] % 5 != 0 && a.col[k] % 4 != 0) kept.add(a.row[k], a.col[k], a.value[k]);
    }
    a = kept;
  }
  all.push_back({"structurally singular", random_sparse(30, 12, 0.1, 13)});  // six columns in rows 30 and 31 alone
  all.back().a.rows += 2;
  all.back().a.cols += 6;
  for (Index j = 12; j < 18; ++j) {
    all.back().a.add(30, j, 1.0 + static_cast<double>(j));
    all.back().a.add(31, j, 2.0 - static_cast<double>(j));
  }
  return all;
}

}  // namespace qrane::test
