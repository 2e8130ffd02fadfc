// SPDX-License-Identifier: Apache-2.0
// Sparse patterns and matrices: the caller's, by columns, by rows or entry by entry, with indices of 32 or 64 bits; and
// those that qrane returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// Compressed columns or rows, or one (row, column) for each entry.
enum class Storage { columns, rows, triplets };

/// Indices of 32 or 64 bits in host memory that the caller owns; null by default.
class Indices {
 public:
  Indices() = default;
  Indices(std::nullptr_t) {}
  Indices(const std::int64_t* numbers) : wide_(numbers) {}
  Indices(const std::int32_t* numbers) : narrow_(numbers) {}

  explicit operator bool() const { return wide_ || narrow_; }
  Index operator[](Index k) const { return wide_ ? wide_[k] : narrow_[k]; }
  /// f(pointer to the first number), of whichever type it is
  template <class F>
  void visit(F&& f) const {
    if (narrow_)
      f(narrow_);
    else
      f(wide_);
  }

 private:
  const std::int64_t* wide_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
};

/// The sparsity pattern of a rows x cols matrix: 0-based, in host memory that the caller owns. Pointers and indices
/// have 32 or 64 bits each and are not copied. Entries may come in any order and more than once (values are then
/// summed); an entry whose value is zero is still part of the pattern.
struct Pattern {
  Index rows = 0;
  Index cols = 0;
  Index entries = 0;
  Storage storage = Storage::columns;
  /// columns: cols + 1 numbers; rows: rows + 1; entries pointers[k] .. pointers[k + 1] - 1 are in line k
  Indices pointers;
  Indices row_indices;  ///< columns, triplets: entries
  Indices col_indices;  ///< rows, triplets: entries
};

/// A Pattern and the value of each of its entries, in the same order. T is float or double.
template <class T>
struct SparseView : Pattern {
  const T* values = nullptr;
};

/// How a sparse type of another library becomes a SparseView: a specialization has a static function `view(x)` that
/// returns a SparseView<T>. Those of Eigen's types are in eigen.hpp.
template <class X>
struct SparseViewOf {};

/// Whatever functions take in the place of a SparseView.
template <class X>
concept SparseLike = requires(const X& x) {
  SparseViewOf<X>::view(x);
};

/// Compressed columns: pointers has cols + 1 numbers, row_indices and values pointers[cols].
template <class T>
SparseView<T> by_columns(Index rows, Index cols, Indices pointers, Indices row_indices, const T* values) {
  return {{rows, cols, cols > 0 && pointers ? pointers[cols] : 0, Storage::columns, pointers, row_indices, nullptr},
          values};
}
/// Compressed rows: pointers has rows + 1 numbers, col_indices and values pointers[rows].
template <class T>
SparseView<T> by_rows(Index rows, Index cols, Indices pointers, Indices col_indices, const T* values) {
  return {{rows, cols, rows > 0 && pointers ? pointers[rows] : 0, Storage::rows, pointers, nullptr, col_indices},
          values};
}
/// One (row, column, value) for each of `entries` entries.
template <class T>
SparseView<T> by_triplets(Index rows, Index cols, Index entries, Indices row_indices, Indices col_indices,
                          const T* values) {
  return {{rows, cols, entries, Storage::triplets, nullptr, row_indices, col_indices}, values};
}

/// Compressed columns that it owns, rows ascending.
template <class T>
struct SparseMatrix {
  Index rows = 0, cols = 0;
  std::vector<Index> pointers;     ///< cols + 1
  std::vector<Index> row_indices;  ///< pointers[cols]
  std::vector<T> values;
};

}  // namespace qrane::sparse
