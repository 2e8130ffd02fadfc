// SPDX-License-Identifier: Apache-2.0
// One door to all matrix files: .mtx, .mtx.gz and .npy, told apart by their names. Standard input ("-") and pipes are
// told apart by their content; standard output ("-")
// and pipes get .npy.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <io/matrices/matrix.hpp>

namespace qrane::io {

/// What can be said of a file without reading its numbers.
struct MatrixFileInfo {
  bool sparse = false;            ///< Matrix Market coordinate format
  bool single_precision = false;  ///< .npy of floats of 16 or 32 bits
  bool numpy = false;             ///< .npy, not Matrix Market
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// "-", a pipe or device, or a name that ends in .npy, .mtx or .mtx.gz.
bool can_write_matrix(const std::string& path);

/// Throws Error{file} for a name with another ending, and for files whose header is at fault.
MatrixFileInfo probe_matrix(const std::string& path);

/// Any of the formats; a coordinate file is spread out. T is float or double.
template <class T>
Dense<T> read_dense(const std::string& path);

/// A coordinate file as it stands; array files and .npy keep their nonzeros.
Sparse<double> read_sparse(const std::string& path);

/// Throws Error{not_finite} naming the path and the 0-based position of the first NaN or Inf.
template <class T>
void require_finite(const std::string& path, const Dense<T>& a);
void require_finite(const std::string& path, const Sparse<double>& a);

/// 64-bit integers: a one-dimensional .npy array, or one column of integers in Matrix Market.
void write_indices(const std::string& path, const std::vector<std::int64_t>& indices);

/// .npy, .mtx or .mtx.gz by the path's ending (T float or double, host view); Error{file} for another ending.
template <class T>
void write_dense(const std::string& path, MatrixView<const T> a);
template <class T>
void write_dense(const std::string& path, MatrixView<T> a) requires(!std::is_const_v<T>) {
  write_dense<T>(path, MatrixView<const T>(a));
}
template <class T>
void write_dense(const std::string& path, const Dense<T>& a) {
  write_dense<T>(path, a.view());
}

}  // namespace qrane::io
