// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: "\x93NUMPY", major, minor, header length (2 bytes in version 1, 4 later), then a
// Python dictionary {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } padded with blanks to a newline.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <io/file_error.hpp>
#include <io/images/image.hpp>
#include <io/matrices/npy.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read and written as little-endian");

/// NumPy pads headers to some 128 bytes; a structured type may take more.
constexpr std::int64_t most_header_bytes = 1 << 20;

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

struct NamedType {
  std::string_view name;
  NpyType type;
  int bytes;
};
constexpr NamedType types[] = {{"b1", NpyType::b1, 1}, {"i1", NpyType::i1, 1}, {"u1", NpyType::u1, 1},
                               {"i2", NpyType::i2, 2}, {"u2", NpyType::u2, 2}, {"i4", NpyType::i4, 4},
                               {"u4", NpyType::u4, 4}, {"i8", NpyType::i8, 8}, {"u8", NpyType::u8, 8},
                               {"f2", NpyType::f2, 2}, {"f4", NpyType::f4, 4}, {"f8", NpyType::f8, 8}};

void parse_type(const std::string& path, std::string_view value, NpyHeader& header) {
  if (value.front() != '\'' && value.front() != '"') {
    fail(path, "unsupported dtype: a structured .npy array (only numbers and bool are read)");
  }
  const std::string_view descr = value.substr(1, value.find(value.front(), 1) - 1);
  const std::string_view name = descr.substr(std::min<std::size_t>(1, descr.size()));
  const auto known =
      std::find_if(std::begin(types), std::end(types), [&](const NamedType& t) { return t.name == name; });
  if (known != std::end(types) && std::string_view("<>|=").find(descr.front()) != std::string_view::npos) {
    header.type = known->type;
    header.item_bytes = known->bytes;
    header.big_endian = descr.front() == '>';
    return;
  }
  if (name.starts_with('c')) fail(path, "complex matrices are not yet supported (dtype '", descr, "')");
  fail(path, "unsupported dtype '", descr,
       "' (bool, integers up to 64 bits and floats of 16, 32 and 64 bits are read)");
}

void parse_shape(const std::string& path, std::string_view value, NpyHeader& header) {
  const std::size_t close = value.find(')');
  if (value.front() != '(' || close == std::string_view::npos) fail(path, "malformed .npy header: shape is no tuple");
  const char* at = value.data() + 1;
  const char* end = value.data() + close;
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
    header.shape.push_back(extent);
    at = next;
  }
  header.count = 1;
  for (const std::int64_t extent : header.shape) header.count = extent == 0 ? 0 : header.count;
  for (const std::int64_t extent : header.shape) {
    if (header.count > 0 && header.count > std::numeric_limits<std::int64_t>::max() / 8 / extent) {
      fail(path, "the shape ", value.substr(0, close + 1), " overflows");
    }
    header.count *= extent;
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
  if (header_bytes > most_header_bytes) fail(path, "malformed .npy header: it claims ", header_bytes, " bytes");
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
  for (const std::int64_t extent : header.shape) {
    if (is_nearly_empty(extent, 0, header.count)) {
      fail(path, "an array without values is ", extent, " long: at most ", most_empty, " are read");
    }
  }
  const std::int64_t expected = header.count * header.item_bytes;
  const std::int64_t found = file_bytes - header.data_offset;
  if (found < expected) fail(path, "truncated: expected ", expected, " bytes of data, found ", found);
  return header;
}

/// IEEE 754 binary16; every value is a float.
struct Half {
  std::uint16_t bits;
  explicit operator double() const {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) {
      value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }
  explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
};

/// A bool is 1 for every byte but 0.
struct Bool {
  std::uint8_t byte;
  explicit operator double() const { return byte != 0; }
  explicit operator float() const { return byte != 0; }
};

template <class From, class To>
void convert(const unsigned char* bytes, bool big_endian, std::int64_t count, To* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    unsigned char item[sizeof(From)];
    std::memcpy(item, bytes + k * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    if (big_endian) std::reverse(item, item + sizeof(From));
    out[k] = static_cast<To>(std::bit_cast<From>(item));
  }
}

template <class To>
void convert(const NpyHeader& header, const unsigned char* bytes, std::int64_t count, To* out) {
  const bool big = header.big_endian;
  switch (header.type) {
    case NpyType::b1: return convert<Bool>(bytes, big, count, out);
    case NpyType::i1: return convert<std::int8_t>(bytes, big, count, out);
    case NpyType::u1: return convert<std::uint8_t>(bytes, big, count, out);
    case NpyType::i2: return convert<std::int16_t>(bytes, big, count, out);
    case NpyType::u2: return convert<std::uint16_t>(bytes, big, count, out);
    case NpyType::i4: return convert<std::int32_t>(bytes, big, count, out);
    case NpyType::u4: return convert<std::uint32_t>(bytes, big, count, out);
    case NpyType::i8: return convert<std::int64_t>(bytes, big, count, out);
    case NpyType::u8: return convert<std::uint64_t>(bytes, big, count, out);
    case NpyType::f2: return convert<Half>(bytes, big, count, out);
    case NpyType::f4: return convert<float>(bytes, big, count, out);
    case NpyType::f8: return convert<double>(bytes, big, count, out);
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
    convert(header, bytes.data(), count, values.data() + at);
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

void write_header(PartialFile& file, std::string text) {
  constexpr std::size_t preamble = 10;  // magic, version 1.0, 2 bytes of length; data begins at a multiple of 64
  text.append(63 - (preamble + text.size()) % 64, ' ');
  text += '\n';
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  const unsigned char length[2] = {static_cast<unsigned char>(text.size() & 255),
                                   static_cast<unsigned char>(text.size() >> 8)};
  file.write(length, 2);
  file.write(text);
}

template <class T>
void write_array(const std::string& path, MatrixView<const T> a) {
  detail::check(a.data != nullptr || a.rows == 0 || a.cols == 0, ErrorCode::invalid_argument, "write_npy: ", path,
                ": the matrix must be in host memory");
  PartialFile file(path);
  write_header(file, detail::concat("{'descr': '<f", sizeof(T), "', 'fortran_order': True, 'shape': (", a.rows, ", ",
                                    a.cols, "), }"));
  if (a.rows == 0) return file.commit();
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
  const File file = open_input(path, bytes);
  return read_header(path, file.get(), bytes);
}

template <class T>
Dense<T> read_npy(const std::string& path) {
  std::int64_t bytes = 0;
  const File file = open_input(path, bytes);
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

void write_npy(const std::string& path, const std::vector<std::int64_t>& a) {
  PartialFile file(path);
  write_header(file, detail::concat("{'descr': '<i8', 'fortran_order': False, 'shape': (", a.size(), ",), }"));
  file.write(a.data(), a.size() * sizeof(std::int64_t));
  file.commit();
}

NpyFrames::NpyFrames(const std::string& path) : path_(path) {
  std::int64_t bytes = 0;
  file_ = open_input(path, bytes);
  header_ = read_header(path, file_.get(), bytes);
  if (header_.shape.size() != 3) {
    fail(path, "a video must be an array of frames x height x width, found ", header_.shape.size(), " dimensions");
  }
  if (header_.count == 0) fail(path, "the array of ", frames(), " x ", height(), " x ", width(), " holds no frame");
  check_image_size(path, width(), height());
  if (header_.fortran_order) {
    bytes_.resize(static_cast<std::size_t>(header_.count * header_.item_bytes));
    read_bytes(path_, file_.get(), bytes_.data(), bytes_.size());
  }
  choose_scale();
}

/// Makes value(k, ...) readable.
void NpyFrames::load(std::int64_t k) {
  if (header_.fortran_order) return;
  const std::int64_t frame_bytes = height() * width() * header_.item_bytes;
  bytes_.resize(static_cast<std::size_t>(frame_bytes));
  if (::fseeko(file_.get(), static_cast<off_t>(header_.data_offset + k * frame_bytes), SEEK_SET) != 0) {
    fail_by_system(path_, "cannot read");
  }
  read_bytes(path_, file_.get(), bytes_.data(), bytes_.size());
}

double NpyFrames::value(std::int64_t k, std::int64_t pixel) const {
  // Fortran order: the frame index runs fastest, then the row.
  const std::int64_t at =
      header_.fortran_order ? k + frames() * (pixel / width() + height() * (pixel % width())) : pixel;
  double result = 0;
  convert(header_, bytes_.data() + at * header_.item_bytes, 1, &result);
  return result;
}

/// Reads the whole array once, unless its type alone tells the range.
void NpyFrames::choose_scale() {
  if (header_.type == NpyType::u1) return;
  if (header_.type == NpyType::b1) {
    scale_ = 255;
    note_ = "bool: true is gray level 255";
    return;
  }
  double least = 0, most = 0;
  for (std::int64_t k = 0; k < frames(); ++k) {
    load(k);
    for (std::int64_t p = 0; p < height() * width(); ++p) {
      const double level = value(k, p);
      if (!std::isfinite(level)) continue;  // read() names it
      least = std::min(least, level);
      most = std::max(most, level);
    }
  }
  const bool floating = header_.type == NpyType::f2 || header_.type == NpyType::f4 || header_.type == NpyType::f8;
  if (floating && least >= 0 && most > 0 && most <= 1) {
    scale_ = 255;
    note_ = "values in [0, 1]: scaled by 255";
  } else if (least < 0 || most > 255) {
    note_ = detail::concat("values from ", least, " to ", most, ": clamped to the gray levels 0..255");
  }
}

void NpyFrames::read(std::int64_t k, std::uint8_t* frame) {
  load(k);
  for (std::int64_t p = 0; p < height() * width(); ++p) {
    const double level = value(k, p);
    if (!std::isfinite(level)) {
      throw Error(ErrorCode::not_finite,
                  detail::concat(path_, ": ", level, " at frame ", k, ", row ", p / width(), ", column ", p % width()));
    }
    frame[p] = static_cast<std::uint8_t>(std::lround(std::clamp(scale_ * level, 0.0, 255.0)));
  }
}

}  // namespace qrane::io
