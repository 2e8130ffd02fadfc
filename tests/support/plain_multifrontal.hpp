// SPDX-License-Identifier: Apache-2.0
// A plain multifrontal QR over an analysis, without blocks or threads: its R must be that of A.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sparse/analysis/symbolic.hpp"
#include "support/sparse.hpp"

namespace qrane::test {

using sparse::Front;
using sparse::Local;
using sparse::Symbolic;

/// Householder QR of a column-major rows x cols array, touching no more than the staircase says.
inline void factor_front(std::vector<double>& a, Index rows, Index cols, const Index* stair) {
  for (Index k = 0; k < std::min(rows, cols); ++k) {
    const Index end = std::max(k + 1, stair[k]);
    double norm = 0;
    for (Index i = k; i < end; ++i) norm = std::hypot(norm, a[i + k * rows]);
    if (norm == 0) continue;
    const double alpha = a[k + k * rows];
    const double beta = alpha > 0 ? -norm : norm;
    std::vector<double> v(end - k, 1.0);
    for (Index i = k + 1; i < end; ++i) v[i - k] = a[i + k * rows] / (alpha - beta);
    const double tau = (beta - alpha) / beta;
    for (Index j = k; j < cols; ++j) {
      double sum = 0;
      for (Index i = k; i < end; ++i) sum += v[i - k] * a[i + j * rows];
      for (Index i = k; i < end; ++i) a[i + j * rows] -= tau * sum * v[i - k];
    }
    for (Index i = k + 1; i < end; ++i) a[i + k * rows] = 0;
  }
}

/// RᵀR = (AP)ᵀ(AP) for the R that assembling and factoring front after front gives.
inline void expect_factorization(const Triplets& a, const Symbolic& s) {
  std::vector<double> values(s.entries);
  sparse::gather_values(s, a.value.data(), values.data());
  std::vector<double> r(s.r_rows * s.cols, 0.0);
  Index next_row = 0;
  for (; next_row < s.singletons; ++next_row) {
    for (Index p = s.row_begin[next_row]; p < s.row_begin[next_row + 1]; ++p) {
      r[next_row + s.singleton_cols[p] * s.r_rows] = values[p];
    }
  }
  std::vector<std::vector<double>> fronts(s.fronts.size());
  for (Index f = 0; f < s.front_count(); ++f) fronts[f].assign(s.fronts[f].entries(), 0.0);
  for (Index f = 0; f < s.front_count(); ++f) {
    const Front& front = s.fronts[f];
    std::vector<double>& block = fronts[f];
    for (Index row = front.first_row; row < front.first_row + front.own_rows; ++row) {
      for (Index p = s.row_begin[row]; p < s.row_begin[row + 1]; ++p) {
        block[s.own_slot[row] + s.entry_col[p] * front.rows] += values[p];
      }
    }
    factor_front(block, front.rows, front.cols, s.stair.data() + front.cols_begin);
    for (Index k = 0; k < front.r_rows; ++k, ++next_row) {
      for (Index j = k; j < front.cols; ++j) {
        r[next_row + s.front_cols[front.cols_begin + j] * s.r_rows] = block[k + j * front.rows];
      }
    }
    for (Index i = 0; i < front.cb_rows; ++i) {
      if (front.parent < 0) break;
      const Index height = s.fronts[front.parent].rows;
      for (Index j = front.pivots + i; j < front.cols; ++j) {
        fronts[front.parent][s.cb_slot[front.cb_begin + i] + s.parent_col[front.cols_begin + j] * height] =
            block[front.r_rows + i + j * front.rows];
      }
    }
    // Nothing below the contribution block's trapezoid is left: it would be lost.
    for (Index j = 0; j < front.cols; ++j) {
      for (Index i = std::max(front.r_rows, j < front.pivots ? front.r_rows : front.r_rows + j - front.pivots + 1);
           i < front.rows; ++i) {
        ASSERT_NEAR(block[i + j * front.rows], 0.0, 1e-12) << "front " << f << " row " << i << " column " << j;
      }
    }
  }
  ASSERT_EQ(next_row, s.r_rows);
  const std::vector<double> dense = a.dense();
  for (Index j = 0; j < s.cols; ++j) {
    for (Index k = j; k < s.cols; ++k) {
      double gram = 0, expected = 0, scale = 1;
      for (Index i = 0; i < s.r_rows; ++i) gram += r[i + j * s.r_rows] * r[i + k * s.r_rows];
      for (Index i = 0; i < s.rows; ++i) {
        const double term = dense[i + s.col_perm[j] * s.rows] * dense[i + s.col_perm[k] * s.rows];
        expected += term;
        scale += std::abs(term);
      }
      ASSERT_NEAR(gram, expected, 1e-12 * scale) << "columns " << j << " and " << k;
    }
  }
}

}  // namespace qrane::test
