// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files (format versions 1, 2 and 3): bool, integers of 1 to 8 bytes, floats of 2, 4 and 8 bytes, in
// either byte order, C and Fortran order. Faults are Error{file} naming the path and what was expected and found.
#pragma once

#include <string>
#include <vector>

#include <io/input_file.hpp>
#include <io/matrices/matrix.hpp>

namespace qrane::io {

/// As NumPy names them: kind and bytes of an item.
enum class NpyType { b1, i1, u1, i2, u2, i4, u4, i8, u8, f2, f4, f8 };

struct NpyHeader {
  NpyType type = NpyType::f8;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;        ///< product of shape
  std::int64_t data_offset = 0;  ///< bytes from the start of the file
  int item_bytes = 8;
};

/// Reads the header and checks that the file holds all the bytes that it promises.
NpyHeader read_npy_header(const std::string& path);

/// A 1-D array as m x 1, a 2-D array as it stands, converted to T (float or double).
template <class T>
Dense<T> read_npy(const std::string& path);

/// Column-major ('fortran_order': True), 2-D, <f4 or <f8; a device matrix is refused.
void write_npy(const std::string& path, MatrixView<const float> a);
void write_npy(const std::string& path, MatrixView<const double> a);
/// A vector: one-dimensional, <i8.
void write_npy(const std::string& path, const std::vector<std::int64_t>& a);

/// The frames x height x width array of a video, one frame at a time without holding the others (C order), or
/// from memory (Fortran order).
class NpyFrames {
 public:
  explicit NpyFrames(const std::string& path);

  std::int64_t frames() const { return header_.shape[0]; }
  std::int64_t height() const { return header_.shape[1]; }
  std::int64_t width() const { return header_.shape[2]; }
  /// Frame k as height x width gray levels, row-major. Values of a bool array, and of floats that all lie in [0, 1],
  /// are scaled by 255; others are taken as levels 0..255, rounded and clamped.
  void read(std::int64_t k, std::uint8_t* frame);
  /// What was done to the values beyond taking them as levels, in words; empty for nothing.
  const std::string& note() const { return note_; }

 private:
  void load(std::int64_t k);
  double value(std::int64_t k, std::int64_t pixel) const;
  void choose_scale();

  std::string path_;
  NpyHeader header_;
  File file_;
  std::vector<std::uint8_t> bytes_;  ///< one frame (C order) or the whole array (Fortran order)
  double scale_ = 1;
  std::string note_;
};

}  // namespace qrane::io
