// SPDX-License-Identifier: Apache-2.0
// Matrix Market files (Boisvert, Pozo, Remington, "The Matrix Market exchange formats", NISTIR 5935, 1996), plain
// or compressed by gzip: array and coordinate, real, integer and pattern, general, symmetric and skew-symmetric.
// Indices are 1-based in the file and 0-based everywhere else.
// Every fault of a file is an Error{file} that begins with "PATH:LINE: ".
#pragma once

#include <string>
#include <vector>

#include <io/matrices/matrix.hpp>

namespace qrane::io {

/// What the first line (the banner) and the size line say.
struct MatrixMarketHeader {
  enum class Field { real, integer, pattern };
  enum class Symmetry { general, symmetric, skew_symmetric };
  bool coordinate = false;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t entries = 0;  ///< stored in the file: coordinate as declared, array as the symmetry implies
};

struct MatrixMarket {
  MatrixMarketHeader header;
  Dense<double> dense;    ///< filled when !header.coordinate
  Sparse<double> sparse;  ///< filled when header.coordinate: both triangles, duplicates summed, rows sorted
  /// 1-based line of the file's first NaN or Inf; 0 when all values are finite.
  std::int64_t not_finite_line = 0;
};

/// Whether a path's ending is .mtx or .mtx.gz.
bool is_matrix_market_path(const std::string& path);

/// Reads banner, comments and size line alone.
MatrixMarketHeader read_matrix_market_header(const std::string& path);

MatrixMarket read_matrix_market(const std::string& path);

/// Array format, real, general; a path that ends in .gz is compressed. Values survive the round trip exactly.
void write_matrix_market(const std::string& path, MatrixView<const double> a);
void write_matrix_market(const std::string& path, MatrixView<const float> a);
/// Array format, integer, general: one column.
void write_matrix_market(const std::string& path, const std::vector<std::int64_t>& a);
/// Coordinate format, real, general.
void write_matrix_market(const std::string& path, const Sparse<double>& a);
void write_matrix_market(const std::string& path, const Sparse<float>& a);

}  // namespace qrane::io
