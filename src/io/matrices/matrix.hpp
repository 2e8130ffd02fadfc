// SPDX-License-Identifier: Apache-2.0
// Host matrices as files hold them: dense column-major, or compressed sparse columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::io {

/// rows x cols, column-major, values.size() = rows * cols, leading dimension rows.
template <class T>
struct Dense {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<T> values;

  MatrixView<const T> view() const { return {values.data(), rows, cols, rows > 0 ? rows : 1}; }
  MatrixView<T> view() { return {values.data(), rows, cols, rows > 0 ? rows : 1}; }
};

/// Compressed sparse columns: column j holds entries col_ptr[j] .. col_ptr[j+1]-1, rows strictly increasing.
template <class T>
struct Sparse {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int64_t> col_ptr;  ///< cols + 1
  std::vector<std::int64_t> row_idx;  ///< col_ptr[cols], 0-based
  std::vector<T> values;              ///< col_ptr[cols]

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(values.size()); }
};

/// Rows or columns without entries that a file may announce: work and memory grow with them, and nothing in the file
/// pays for them.
inline constexpr std::int64_t most_empty = std::int64_t{1} << 24;

/// Whether a file of `entries` stored values announces sizes that are refused.
inline bool is_nearly_empty(std::int64_t rows, std::int64_t cols, std::int64_t entries) {
  const std::int64_t longer = rows > cols ? rows : cols;
  return longer > most_empty && longer - most_empty > entries;
}

/// 0-based.
struct Position {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// The first NaN or Inf in column-major order, if there is one.
template <class T>
std::optional<Position> first_not_finite(const Dense<T>& a) {
  for (std::size_t k = 0; k < a.values.size(); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    if (!std::isfinite(a.values[k])) return Position{at % a.rows, at / a.rows};
  }
  return std::nullopt;
}

template <class T>
std::optional<Position> first_not_finite(const Sparse<T>& a) {
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t p = a.col_ptr[j]; p < a.col_ptr[j + 1]; ++p) {
      if (!std::isfinite(a.values[p])) return Position{a.row_idx[p], j};
    }
  }
  return std::nullopt;
}

/// Error{invalid_argument} or Error{out_of_memory} naming what was to be held, when rows x cols is too much.
Dense<double> to_dense(const Sparse<double>& a);

}  // namespace qrane::io
