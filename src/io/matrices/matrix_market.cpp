// SPDX-License-Identifier: Apache-2.0
// Reads Matrix Market files: the text is walked once, piece by piece; coordinate entries are sorted by two stable
// counting passes (rows, then columns), so the cost is linear in the file and in rows + cols.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>

#include <io/file_error.hpp>
#include <io/matrices/matrix_market.hpp>
#include <io/text_file.hpp>

namespace qrane::io {
namespace {

using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

struct Entry {
  std::int64_t row;
  std::int64_t col;
  double value;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Text of the file for a message: short, printable, quoted.
std::string quote(std::string_view token) {
  std::string result = "'";
  for (const char c : token.substr(0, 40)) result += (c >= 32 && c < 127) ? c : '?';
  return result + (token.size() > 40 ? "...'" : "'");
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), tokens_(path) {}

  MatrixMarketHeader header();
  Dense<double> array(const MatrixMarketHeader& header);
  Sparse<double> coordinate(const MatrixMarketHeader& header);
  std::int64_t not_finite_line() const { return not_finite_line_; }

 private:
  template <class... Args>
  [[noreturn]] void fail_here(const Args&... message) {
    if (tokens_.at_end() && tokens_.truncated()) fail_at(path_, tokens_.line(), "the compressed file breaks off");
    fail_at(path_, tokens_.line(), message...);
  }
  [[noreturn]] void fail_truncated(const MatrixMarketHeader& header, std::int64_t found) const {
    fail_at(path_, tokens_.line(), tokens_.truncated() ? "the compressed file breaks off" : "the file ends", " after ",
            found, " of ", header.entries, " entries");
  }
  std::int64_t integer(std::string_view token, const char* what);
  double real(std::string_view token);
  void expect_end_of_line(const char* after);
  void expect_end_of_file(const MatrixMarketHeader& header);
  Entry entry(const MatrixMarketHeader& header, std::string_view first);

  const std::string& path_;
  TextFile tokens_;
  std::int64_t not_finite_line_ = 0;
};

std::int64_t Reader::integer(std::string_view token, const char* what) {
  if (token.empty()) fail_here("expected ", what, ", found the end of the line");
  std::string_view digits = token;
  if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code == std::errc::result_out_of_range) fail_here(what, " ", quote(token), " does not fit in 64 bits");
  if (code != std::errc() || end != digits.data() + digits.size()) {
    fail_here("expected ", what, ", found ", quote(token));
  }
  return value;
}

double Reader::real(std::string_view token) {
  if (token.empty()) fail_here("expected a value, found the end of the line");
  std::string_view digits = token;
  if (digits.size() > 1 && digits.front() == '+' && digits[1] != '-') digits.remove_prefix(1);
  double value = 0;
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) {
    // Rare forms: Fortran's exponent letter D, and magnitudes below the smallest double.
    std::string copy(digits);
    std::replace_if(
        copy.begin(), copy.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    const auto again = std::from_chars(copy.data(), copy.data() + copy.size(), value);
    if (again.ptr != copy.data() + copy.size() || again.ec == std::errc::invalid_argument) {
      fail_here("expected a number, found ", quote(token));
    }
    if (again.ec == std::errc::result_out_of_range) {
      value = std::strtod(copy.c_str(), nullptr);
      if (std::abs(value) > 1) fail_here("the number ", quote(token), " is beyond the range of double precision");
    }
  }
  if (!std::isfinite(value) && not_finite_line_ == 0) not_finite_line_ = tokens_.line();
  return value;
}

void Reader::expect_end_of_line(const char* after) {
  const std::string_view extra = tokens_.next_on_line();
  if (!extra.empty() && extra.front() != '%') fail_here("unexpected ", quote(extra), " after ", after);
}

void Reader::expect_end_of_file(const MatrixMarketHeader& header) {
  const std::string_view extra = tokens_.next();
  if (!extra.empty()) fail_here("more than the ", header.entries, " entries that the size line announces");
  if (tokens_.truncated()) {  // what is missing is the checksum at least
    fail_at(path_, tokens_.line(), "the compressed file breaks off after the last of ", header.entries, " entries");
  }
}

MatrixMarketHeader Reader::header() {
  MatrixMarketHeader header;
  if (lower(tokens_.next_on_line()) != "%%matrixmarket") {
    fail_here("not a Matrix Market file: the first line must begin with %%MatrixMarket");
  }
  const std::string object = lower(tokens_.next_on_line());
  if (object != "matrix") fail_here("the object must be 'matrix', found ", quote(object));
  const std::string format = lower(tokens_.next_on_line());
  if (format != "coordinate" && format != "array") {
    fail_here("the format must be 'coordinate' or 'array', found ", quote(format));
  }
  header.coordinate = format == "coordinate";

  const std::string field = lower(tokens_.next_on_line());
  if (field == "complex") fail_here("complex matrices are not yet supported");
  if (field == "integer" || field == "unsigned-integer") {
    header.field = Field::integer;
  } else if (field == "pattern") {
    header.field = Field::pattern;
  } else if (field != "real" && field != "double") {
    fail_here("the field must be 'real', 'integer' or 'pattern', found ", quote(field));
  }
  const std::string symmetry = lower(tokens_.next_on_line());
  if (symmetry == "hermitian") fail_here("Hermitian (complex) matrices are not yet supported");
  if (symmetry == "symmetric") {
    header.symmetry = Symmetry::symmetric;
  } else if (symmetry == "skew-symmetric") {
    header.symmetry = Symmetry::skew_symmetric;
  } else if (symmetry != "general") {
    fail_here("the symmetry must be 'general', 'symmetric' or 'skew-symmetric', found ", quote(symmetry));
  }
  if (header.field == Field::pattern && (!header.coordinate || header.symmetry == Symmetry::skew_symmetric)) {
    fail_here("a pattern must be in coordinate format and not skew-symmetric: it has no values");
  }
  expect_end_of_line("the symmetry");

  const std::string_view first = tokens_.next();
  if (first.empty()) {
    fail_at(path_, tokens_.line(), tokens_.truncated() ? "the compressed file breaks off" : "the file ends",
            " before the size line");
  }
  header.rows = integer(first, "the number of rows");
  header.cols = integer(tokens_.next_on_line(), "the number of columns");
  if (header.rows < 0) fail_here("the number of rows is negative: ", header.rows);
  if (header.cols < 0) fail_here("the number of columns is negative: ", header.cols);
  if (header.symmetry != Symmetry::general && header.rows != header.cols) {
    fail_here("a symmetric matrix must be square, found ", header.rows, " x ", header.cols);
  }
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (header.coordinate) {
    header.entries = integer(tokens_.next_on_line(), "the number of entries");
    if (header.entries < 0) fail_here("the number of entries is negative: ", header.entries);
    if (header.entries > 0 && (header.rows == 0 || header.cols == 0)) {
      fail_here(header.entries, " entries in an empty matrix of ", header.rows, " x ", header.cols);
    }
  } else {
    if (header.rows > 0 && header.cols > most / 8 / header.rows) {
      fail_here("the sizes ", header.rows, " x ", header.cols, " overflow");
    }
    const std::int64_t n = header.rows;
    header.entries = header.symmetry == Symmetry::general ? n * header.cols : (n * n + n) / 2;
    if (header.symmetry == Symmetry::skew_symmetric) header.entries -= n;
  }
  if (is_nearly_empty(header.rows, header.cols, header.entries)) {
    fail_here("the sizes ", header.rows, " x ", header.cols, " with ", header.entries, " entries: at most ", most_empty,
              " rows or columns without entries are read");
  }
  expect_end_of_line("the size line's numbers");
  return header;
}

/// Array format: the columns one after the other; of a symmetric matrix the part on and below the diagonal, of a
/// skew-symmetric one the part below it.
Dense<double> Reader::array(const MatrixMarketHeader& header) {
  // A short file is found out before memory is asked for.
  std::vector<double> stored;
  stored.reserve(static_cast<std::size_t>(std::min(header.entries, tokens_.likely_tokens())));
  for (std::int64_t k = 0; k < header.entries; ++k) {
    const std::string_view token = tokens_.next();
    if (token.empty()) fail_truncated(header, k);
    stored.push_back(real(token));
  }
  expect_end_of_file(header);

  Dense<double> a{header.rows, header.cols, {}};
  if (header.symmetry == Symmetry::general) {
    a.values = std::move(stored);
    return a;
  }
  const std::int64_t n = header.rows;
  const bool skew = header.symmetry == Symmetry::skew_symmetric;
  a.values.assign(static_cast<std::size_t>(n * n), 0.0);
  std::size_t next = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j + (skew ? 1 : 0); i < n; ++i) {
      const double value = stored[next++];
      a.values[i + j * n] = value;
      a.values[j + i * n] = skew && i != j ? -value : value;
    }
  }
  return a;
}

Entry Reader::entry(const MatrixMarketHeader& header, std::string_view first) {
  Entry e{integer(first, "a row index"), integer(tokens_.next_on_line(), "a column index"), 1.0};
  if (e.row < 1 || e.row > header.rows) fail_here("row index ", e.row, " is outside 1..", header.rows);
  if (e.col < 1 || e.col > header.cols) fail_here("column index ", e.col, " is outside 1..", header.cols);
  if (header.field != Field::pattern) e.value = real(tokens_.next_on_line());
  if (header.symmetry != Symmetry::general && e.row < e.col) {
    fail_here("entry (", e.row, ", ", e.col, ") is above the diagonal; a symmetric file holds the lower triangle");
  }
  if (header.symmetry == Symmetry::skew_symmetric && e.row == e.col && e.value != 0) {
    fail_here("diagonal entry (", e.row, ", ", e.col, ") of a skew-symmetric matrix must be zero");
  }
  expect_end_of_line("the entry");
  --e.row;
  --e.col;
  return e;
}

/// Entries stably ordered by key(entry) in 0..keys-1.
template <class Key>
std::vector<Entry> counting_sort(const std::vector<Entry>& entries, std::int64_t keys, Key key) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(keys) + 1, 0);
  for (const Entry& e : entries) ++starts[key(e) + 1];
  for (std::int64_t k = 0; k < keys; ++k) starts[k + 1] += starts[k];
  std::vector<Entry> sorted(entries.size());
  for (const Entry& e : entries) sorted[starts[key(e)]++] = e;
  return sorted;
}

/// Column by column, rows ascending, duplicates in the file's order.
std::vector<Entry> ordered(std::int64_t rows, std::int64_t cols, std::vector<Entry> entries) {
  const auto row = [](const Entry& e) { return e.row; };
  const auto col = [](const Entry& e) { return e.col; };
  // a header may claim any number of rows; only entries that are there pay for arrays of that length
  if (std::max(rows, cols) > 8 * static_cast<std::int64_t>(entries.size()) + 65536) {
    std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
      return std::tuple(a.col, a.row) < std::tuple(b.col, b.row);
    });
    return entries;
  }
  return counting_sort(counting_sort(entries, rows, row), cols, col);
}

Sparse<double> compress(std::int64_t rows, std::int64_t cols, std::vector<Entry> entries) {
  entries = ordered(rows, cols, std::move(entries));
  Sparse<double> a{rows, cols, {}, {}, {}};
  a.col_ptr.reserve(static_cast<std::size_t>(cols) + 1);
  a.row_idx.reserve(entries.size());
  a.values.reserve(entries.size());
  std::size_t p = 0;
  for (std::int64_t j = 0; j < cols; ++j) {
    a.col_ptr.push_back(a.nonzeros());
    for (; p < entries.size() && entries[p].col == j; ++p) {
      const bool again = a.nonzeros() > a.col_ptr[j] && a.row_idx.back() == entries[p].row;
      if (again) {
        a.values.back() += entries[p].value;
      } else {
        a.row_idx.push_back(entries[p].row);
        a.values.push_back(entries[p].value);
      }
    }
  }
  a.col_ptr.push_back(a.nonzeros());
  return a;
}

Sparse<double> Reader::coordinate(const MatrixMarketHeader& header) {
  std::vector<Entry> entries;
  const std::int64_t copies = header.symmetry == Symmetry::general ? 1 : 2;
  entries.reserve(static_cast<std::size_t>(std::min(header.entries, tokens_.likely_tokens() / 2 + 1) * copies));
  for (std::int64_t k = 0; k < header.entries; ++k) {
    const std::string_view first = tokens_.next();
    if (first.empty()) fail_truncated(header, k);
    const Entry e = entry(header, first);
    entries.push_back(e);
    if (header.symmetry != Symmetry::general && e.row != e.col) {
      entries.push_back({e.col, e.row, header.symmetry == Symmetry::symmetric ? e.value : -e.value});
    }
  }
  expect_end_of_file(header);
  return compress(header.rows, header.cols, std::move(entries));
}

}  // namespace

bool is_matrix_market_path(const std::string& path) { return has_ending(path, ".mtx") || has_ending(path, ".mtx.gz"); }

MatrixMarketHeader read_matrix_market_header(const std::string& path) { return Reader(path).header(); }

MatrixMarket read_matrix_market(const std::string& path) {
  Reader reader(path);
  MatrixMarket result;
  result.header = reader.header();
  const MatrixMarketHeader& header = result.header;
  try {
    if (header.coordinate) {
      result.sparse = reader.coordinate(header);
    } else {
      result.dense = reader.array(header);
    }
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, detail::concat(path, ": no memory for a matrix of ", header.rows, " x ",
                                                         header.cols, " with ", header.entries, " entries"));
  } catch (const std::length_error&) {
    fail(path, "the sizes ", header.rows, " x ", header.cols, " are beyond what memory can hold");
  }
  result.not_finite_line = reader.not_finite_line();
  return result;
}

}  // namespace qrane::io
