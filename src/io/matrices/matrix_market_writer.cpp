// SPDX-License-Identifier: Apache-2.0
// Writes Matrix Market files; std::to_chars gives the shortest digits that read back to the same bits.
#include <zlib.h>

#include <charconv>
#include <memory>
#include <string_view>

#include <io/file_error.hpp>
#include <io/matrices/matrix_market.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

/// Text into a PartialFile, through gzip when the name asks for it.
class TextWriter {
 public:
  explicit TextWriter(const std::string& path) : path_(path), file_(path) {
    if (!has_ending(path, ".gz")) return;
    // 15 + 16: the largest window, with gzip's header.
    const int code = deflateInit2(&stream_, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    if (code != Z_OK) fail(path_, "cannot write: zlib's deflateInit2 returned ", code);
    compressed_ = true;
  }
  ~TextWriter() {
    if (compressed_) deflateEnd(&stream_);
  }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  void text(std::string_view part) {
    if (compressed_) {
      deflate_part(part, Z_NO_FLUSH);
    } else {
      file_.write(part);
    }
  }
  /// The numbers of one line, separated by blanks.
  template <class... Numbers>
  void line(Numbers... numbers) {
    char digits[160];
    char* at = digits;
    ((at = std::to_chars(at, digits + sizeof(digits) - 1, numbers).ptr, *at++ = ' '), ...);
    at[-1] = '\n';
    text({digits, static_cast<std::size_t>(at - digits)});
  }
  void commit() {
    if (compressed_) deflate_part({}, Z_FINISH);
    file_.commit();
  }

 private:
  void deflate_part(std::string_view part, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
    do {
      unsigned char out[1 << 14];
      stream_.next_out = out;
      stream_.avail_out = sizeof(out);
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) fail(path_, "cannot write: zlib reports a stream error");
      file_.write(out, sizeof(out) - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  std::string path_;
  PartialFile file_;
  z_stream stream_{};
  bool compressed_ = false;
};

template <class T>
void write_array(const std::string& path, MatrixView<const T> a) {
  detail::check(a.data != nullptr || a.rows == 0 || a.cols == 0, ErrorCode::invalid_argument,
                "write_matrix_market: ", path, ": the matrix must be in host memory");
  TextWriter out(path);
  out.text("%%MatrixMarket matrix array real general\n");
  out.line(a.rows, a.cols);
  const bool by_columns = a.layout == Layout::column_major;
  for (Index j = 0; a.rows > 0 && j < a.cols; ++j) {
    for (Index i = 0; i < a.rows; ++i) out.line(a.data[by_columns ? i + j * a.ld : i * a.ld + j]);
  }
  out.commit();
}

template <class T>
void write_coordinate(const std::string& path, const Sparse<T>& a) {
  TextWriter out(path);
  out.text("%%MatrixMarket matrix coordinate real general\n");
  out.line(a.rows, a.cols, a.nonzeros());
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t p = a.col_ptr[j]; p < a.col_ptr[j + 1]; ++p) out.line(a.row_idx[p] + 1, j + 1, a.values[p]);
  }
  out.commit();
}

}  // namespace

void write_matrix_market(const std::string& path, MatrixView<const double> a) { write_array(path, a); }
void write_matrix_market(const std::string& path, MatrixView<const float> a) { write_array(path, a); }
void write_matrix_market(const std::string& path, const std::vector<std::int64_t>& a) {
  TextWriter out(path);
  out.text("%%MatrixMarket matrix array integer general\n");
  out.line(a.size(), 1);
  for (const std::int64_t value : a) out.line(value);
  out.commit();
}
void write_matrix_market(const std::string& path, const Sparse<double>& a) { write_coordinate(path, a); }
void write_matrix_market(const std::string& path, const Sparse<float>& a) { write_coordinate(path, a); }

}  // namespace qrane::io
