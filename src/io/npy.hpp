// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files (format versions 1, 2 and 3): little-endian f4, f8, u1, i4, i8, C and Fortran order.
// Faults are Error{file} naming the path and what was expected and found.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <io/matrix.hpp>

namespace qrane::io {

enum class NpyType { f4, f8, u1, i4, i8 };

struct NpyHeader {
  NpyType type = NpyType::f8;
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

/// The frames x height x width array of a video, one frame at a time without holding the others (C order), or
/// from memory (Fortran order).
class NpyFrames {
 public:
  explicit NpyFrames(const std::string& path);

  std::int64_t frames() const { return header_.shape[0]; }
  std::int64_t height() const { return header_.shape[1]; }
  std::int64_t width() const { return header_.shape[2]; }
  /// Frame k as height x width gray levels, row-major. Floats are taken as levels 0..255, rounded and clamped.
  void read(std::int64_t k, std::uint8_t* frame);

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::string path_;
  NpyHeader header_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::uint8_t> bytes_;  ///< one frame (C order) or the whole array (Fortran order)
};

}  // namespace qrane::io
