// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: "\x93NUMPY", major, minor, header length (2 bytes in version 1, 4 later), then a
// Python dictionary {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } padded with blanks to a newline.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <io/file_error.hpp>
#include <io/npy.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read and written as little-endian");

struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;

File open_file(const std::string& path, std::int64_t& bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot read: ", system_reason());
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read: it is a directory");
  File file(std::fopen(path.c_str(), "rbe"));
  if (!file) fail(path, "cannot read: ", system_reason());
  bytes = status.st_size;
  return file;
}

void read_bytes(const std::string& path, std::FILE* file, void* to, std::size_t count) {
  const std::size_t got = std::fread(to, 1, count, file);
  if (got != count) fail(path, "truncated: expected ", count, " more bytes, found ", got);
}

/// The text after 'key': in the header's dictionary.
std::string_view dictionary_value(const std::string& path, std::string_view text, const std::string& key) {
  std::size_t at = text.find("'" + key + "'");
  if (at == std::string_view::npos) at = text.find("\"" + key + "\"");
  if (at == std::string_view::npos) fail(path, "malformed .npy header: it has no '", key, "'");
  at = text.find(':', at);
  if (at == std::string_view::npos) fail(path, "malformed .npy header: nothing follows '", key, "'");
  at = text.find_first_not_of(" \t", at + 1);
  if (at == std::string_view::npos) fail(path, "malformed .npy header: nothing follows '", key, "'");
  return text.substr(at);
}

void parse_type(const std::string& path, std::string_view value, NpyHeader& header) {
  if (value.front() != '\'' && value.front() != '"') {
    fail(path, "unsupported dtype: a structured .npy array (only <f4, <f8, u1, <i4 and <i8 are read)");
  }
  const std::string_view descr = value.substr(1, value.find(value.front(), 1) - 1);
  struct Known {
    std::string_view name;
    NpyType type;
    int bytes;
  };
  constexpr Known known[] = {{"<f8", NpyType::f8, 8}, {"<f4", NpyType::f4, 4}, {"|u1", NpyType::u1, 1},
                             {"<u1", NpyType::u1, 1}, {"<i4", NpyType::i4, 4}, {"<i8", NpyType::i8, 8}};
  for (const Known& k : known) {
    if (k.name != descr) continue;
    header.type = k.type;
    header.item_bytes = k.bytes;
    return;
  }
  if (descr.size() > 1 && descr[1] == 'c') fail(path, "complex matrices are not yet supported (dtype '", descr, "')");
  fail(path, "unsupported dtype '", descr, "' (only <f4, <f8, u1, <i4 and <i8 are read)");
}

void parse_shape(const std::string& path, std::string_view value, NpyHeader& header) {
  const std::size_t close = value.find(')');
  if (value.front() != '(' || close == std::string_view::npos) fail(path, "malformed .npy header: shape is no tuple");
  const char* at = value.data() + 1;
  const char* end = value.data() + close;
  header.count = 1;
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == 'L') {
      ++at;
      continue;
    }
    std::int64_t extent = 0;
    const auto [next, code] = std::from_chars(at, end, extent);
    if (code != std::errc() || extent < 0) {
      fail(path, "malformed .npy header: bad shape ", value.substr(0, close + 1));
    }
    if (extent > 0 && header.count > std::numeric_limits<std::int64_t>::max() / 8 / extent) {
      fail(path, "the shape ", value.substr(0, close + 1), " overflows");
    }
    header.shape.push_back(extent);
    header.count *= extent;
    at = next;
  }
}

NpyHeader read_header(const std::string& path, std::FILE* file, std::int64_t file_bytes) {
  unsigned char magic[8] = {};
  if (std::fread(magic, 1, 8, file) != 8 || std::memcmp(magic, "\x93NUMPY", 6) != 0) {
    fail(path, "not a .npy file: it does not begin with \\x93NUMPY");
  }
  const int major = magic[6];
  if (major < 1 || major > 3) fail(path, "unsupported .npy version ", major, ".", int{magic[7]});
  unsigned char length[4] = {};
  const int length_bytes = major == 1 ? 2 : 4;
  read_bytes(path, file, length, static_cast<std::size_t>(length_bytes));
  const std::int64_t header_bytes =
      length[0] + (length[1] << 8) + (std::int64_t{length[2]} << 16) + (std::int64_t{length[3]} << 24);
  NpyHeader header;
  header.data_offset = 8 + length_bytes + header_bytes;
  if (header.data_offset > file_bytes) {
    fail(path, "truncated: expected a header of ", header.data_offset, " bytes, found ", file_bytes);
  }
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  read_bytes(path, file, text.data(), text.size());

  parse_type(path, dictionary_value(path, text, "descr"), header);
  const std::string_view order = dictionary_value(path, text, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False")) {
    fail(path, "malformed .npy header: fortran_order must be True or False");
  }
  header.fortran_order = order.starts_with("True");
  parse_shape(path, dictionary_value(path, text, "shape"), header);
  const std::int64_t expected = header.count * header.item_bytes;
  const std::int64_t found = file_bytes - header.data_offset;
  if (found < expected) fail(path, "truncated: expected ", expected, " bytes of data, found ", found);
  return header;
}

template <class From, class To>
void convert(const unsigned char* bytes, std::int64_t count, To* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    From value;
    std::memcpy(&value, bytes + k * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    out[k] = static_cast<To>(value);
  }
}

template <class To>
void convert(NpyType type, const unsigned char* bytes, std::int64_t count, To* out) {
  switch (type) {
    case NpyType::f4: return convert<float>(bytes, count, out);
    case NpyType::f8: return convert<double>(bytes, count, out);
    case NpyType::u1: return convert<std::uint8_t>(bytes, count, out);
    case NpyType::i4: return convert<std::int32_t>(bytes, count, out);
    case NpyType::i8: return convert<std::int64_t>(bytes, count, out);
  }
}

/// All values in the file's order, piece by piece so that no second copy of the array is held.
template <class T>
void read_values(const std::string& path, std::FILE* file, const NpyHeader& header, std::vector<T>& values) {
  try {
    values.resize(static_cast<std::size_t>(header.count));
  } catch (const std::exception&) {
    throw Error(ErrorCode::out_of_memory, detail::concat(path, ": no memory for ", header.count, " values"));
  }
  constexpr std::int64_t piece = std::int64_t{1} << 18;
  std::vector<unsigned char> bytes;
  for (std::int64_t at = 0; at < header.count; at += piece) {
    const std::int64_t count = std::min(piece, header.count - at);
    bytes.resize(static_cast<std::size_t>(count * header.item_bytes));
    read_bytes(path, file, bytes.data(), bytes.size());
    convert(header.type, bytes.data(), count, values.data() + at);
  }
}

/// Out of place, by squares that fit a cache: row-major rows x cols to column-major.
template <class T>
std::vector<T> transposed(const std::vector<T>& row_major, std::int64_t rows, std::int64_t cols) {
  std::vector<T> result(row_major.size());
  constexpr std::int64_t edge = 64;
  for (std::int64_t i0 = 0; i0 < rows; i0 += edge) {
    for (std::int64_t j0 = 0; j0 < cols; j0 += edge) {
      for (std::int64_t j = j0; j < std::min(j0 + edge, cols); ++j) {
        for (std::int64_t i = i0; i < std::min(i0 + edge, rows); ++i) result[i + j * rows] = row_major[i * cols + j];
      }
    }
  }
  return result;
}

template <class T>
void write_array(const std::string& path, MatrixView<const T> a) {
  detail::check(a.data != nullptr || a.rows == 0 || a.cols == 0, ErrorCode::invalid_argument, "write_npy: ", path,
                ": the matrix must be in host memory");
  std::string text =
      detail::concat("{'descr': '<f", sizeof(T), "', 'fortran_order': True, 'shape': (", a.rows, ", ", a.cols, "), }");
  constexpr std::size_t preamble = 10;  // magic, version 1.0, 2 bytes of length; data begins at a multiple of 64
  text.append(63 - (preamble + text.size()) % 64, ' ');
  text += '\n';
  PartialFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  const unsigned char length[2] = {static_cast<unsigned char>(text.size() & 255),
                                   static_cast<unsigned char>(text.size() >> 8)};
  file.write(length, 2);
  file.write(text);
  std::vector<T> column(static_cast<std::size_t>(a.layout == Layout::row_major ? a.rows : 0));
  for (Index j = 0; j < a.cols; ++j) {
    const T* from = a.data + j * a.ld;
    if (a.layout == Layout::row_major) {
      for (Index i = 0; i < a.rows; ++i) column[i] = a.data[i * a.ld + j];
      from = column.data();
    }
    file.write(from, static_cast<std::size_t>(a.rows) * sizeof(T));
  }
  file.commit();
}

}  // namespace

NpyHeader read_npy_header(const std::string& path) {
  std::int64_t bytes = 0;
  const File file = open_file(path, bytes);
  return read_header(path, file.get(), bytes);
}

template <class T>
Dense<T> read_npy(const std::string& path) {
  std::int64_t bytes = 0;
  const File file = open_file(path, bytes);
  const NpyHeader header = read_header(path, file.get(), bytes);
  if (header.shape.size() != 1 && header.shape.size() != 2) {
    fail(path, "expected a matrix or a vector, found an array of ", header.shape.size(), " dimensions");
  }
  Dense<T> a{header.shape[0], header.shape.size() == 2 ? header.shape[1] : 1, {}};
  read_values(path, file.get(), header, a.values);
  const bool column_major = header.fortran_order || a.rows <= 1 || a.cols <= 1;
  if (!column_major) a.values = transposed(a.values, a.rows, a.cols);
  return a;
}

template Dense<float> read_npy<float>(const std::string&);
template Dense<double> read_npy<double>(const std::string&);

void write_npy(const std::string& path, MatrixView<const float> a) { write_array(path, a); }
void write_npy(const std::string& path, MatrixView<const double> a) { write_array(path, a); }

NpyFrames::NpyFrames(const std::string& path) : path_(path) {
  std::int64_t bytes = 0;
  file_.reset(open_file(path, bytes).release());
  header_ = read_header(path, file_.get(), bytes);
  if (header_.shape.size() != 3) {
    fail(path, "a video must be an array of frames x height x width, found ", header_.shape.size(), " dimensions");
  }
  if (header_.count == 0) fail(path, "the array of ", frames(), " x ", height(), " x ", width(), " holds no frame");
  if (height() > 1 << 20 || width() > 1 << 20) {
    fail(path, "frames of ", width(), " x ", height(), " pixels are larger than 1048576 on a side");
  }
  if (!header_.fortran_order) return;
  bytes_.resize(static_cast<std::size_t>(header_.count * header_.item_bytes));
  read_bytes(path_, file_.get(), bytes_.data(), bytes_.size());
}

void NpyFrames::read(std::int64_t k, std::uint8_t* frame) {
  const std::int64_t pixels = height() * width();
  const std::int64_t item = header_.item_bytes;
  if (!header_.fortran_order) {
    bytes_.resize(static_cast<std::size_t>(pixels * item));
    if (::fseeko(file_.get(), static_cast<off_t>(header_.data_offset + k * pixels * item), SEEK_SET) != 0) {
      fail(path_, "cannot read: ", system_reason());
    }
    read_bytes(path_, file_.get(), bytes_.data(), bytes_.size());
  }
  for (std::int64_t p = 0; p < pixels; ++p) {
    // Fortran order: the frame index runs fastest, then the row.
    const std::int64_t at = header_.fortran_order ? k + frames() * (p / width() + height() * (p % width())) : p;
    double level = 0;
    convert(header_.type, bytes_.data() + at * item, 1, &level);
    if (!std::isfinite(level)) {
      throw Error(ErrorCode::not_finite,
                  detail::concat(path_, ": ", level, " at frame ", k, ", row ", p / width(), ", column ", p % width()));
    }
    frame[p] = static_cast<std::uint8_t>(std::lround(std::clamp(level, 0.0, 255.0)));
  }
}

}  // namespace qrane::io
