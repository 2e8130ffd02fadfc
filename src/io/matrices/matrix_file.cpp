// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <limits>
#include <type_traits>

#include <io/file_error.hpp>
#include <io/matrices/matrix_file.hpp>
#include <io/matrices/matrix_market.hpp>
#include <io/matrices/npy.hpp>

namespace qrane::io {
namespace {

enum class Format { npy, matrix_market };

Format format_of(const std::string& path) {
  if (is_stream(path)) {
    std::int64_t bytes = 0;
    const File file = open_input(path, bytes);
    return std::fgetc(file.get()) == 0x93 ? Format::npy : Format::matrix_market;
  }
  if (has_ending(path, ".npy")) return Format::npy;
  if (is_matrix_market_path(path)) return Format::matrix_market;
  fail(path, "not a matrix file by its name: it must end in .mtx, .mtx.gz or .npy");
}

/// What a compressed sparse matrix spread out needs, checked before memory is asked for.
template <class T>
Dense<T> spread(const Sparse<double>& a) {
  detail::check(a.rows == 0 || a.cols <= std::numeric_limits<std::int64_t>::max() / 8 / a.rows,
                ErrorCode::invalid_argument, "a dense matrix of ", a.rows, " x ", a.cols, " overflows 64-bit sizes");
  Dense<T> dense{a.rows, a.cols, {}};
  const double bytes = static_cast<double>(a.rows) * static_cast<double>(a.cols) * sizeof(T);
  const auto refuse = [&] {
    throw Error(ErrorCode::out_of_memory, detail::concat("a dense matrix of ", a.rows, " x ", a.cols, " needs ", bytes,
                                                         " bytes, which are not free"));
  };
  // Linux hands out more than it has, and ends the program that uses it.
  if (bytes > static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE))) refuse();
  try {
    dense.values.assign(static_cast<std::size_t>(a.rows * a.cols), T{0});
  } catch (const std::exception&) {
    refuse();
  }
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t p = a.col_ptr[j]; p < a.col_ptr[j + 1]; ++p) {
      dense.values[a.row_idx[p] + j * a.rows] = static_cast<T>(a.values[p]);
    }
  }
  return dense;
}

template <class Matrix>
void refuse_not_finite(const std::string& path, const Matrix& a) {
  if (const auto at = first_not_finite(a)) {
    throw Error(ErrorCode::not_finite, detail::concat(shown(path), ": NaN or Inf at row ", at->row, ", column ",
                                                      at->col, " (counted from 0)"));
  }
}

}  // namespace

Dense<double> to_dense(const Sparse<double>& a) { return spread<double>(a); }

MatrixFileInfo probe_matrix(const std::string& path) {
  if (format_of(path) == Format::matrix_market) {
    const MatrixMarketHeader header = read_matrix_market_header(path);
    return {header.coordinate, false, false, header.rows, header.cols};
  }
  const NpyHeader header = read_npy_header(path);
  if (header.shape.size() != 1 && header.shape.size() != 2) {
    fail(path, "expected a matrix or a vector, found an array of ", header.shape.size(), " dimensions");
  }
  const bool single = header.type == NpyType::f4 || header.type == NpyType::f2;
  return {false, single, true, header.shape[0], header.shape.size() == 2 ? header.shape[1] : 1};
}

template <class T>
Dense<T> read_dense(const std::string& path) {
  if (format_of(path) == Format::npy) return read_npy<T>(path);
  MatrixMarket file = read_matrix_market(path);
  if (file.header.coordinate) return spread<T>(file.sparse);
  if constexpr (std::is_same_v<T, double>) {
    return std::move(file.dense);
  } else {
    return {file.dense.rows, file.dense.cols, {file.dense.values.begin(), file.dense.values.end()}};
  }
}

template Dense<float> read_dense<float>(const std::string&);
template Dense<double> read_dense<double>(const std::string&);

Sparse<double> read_sparse(const std::string& path) {
  Dense<double> dense;
  if (format_of(path) == Format::npy) {
    dense = read_npy<double>(path);
  } else {
    MatrixMarket file = read_matrix_market(path);
    if (file.header.coordinate) return std::move(file.sparse);
    dense = std::move(file.dense);
  }
  Sparse<double> a{dense.rows, dense.cols, {0}, {}, {}};
  for (std::int64_t j = 0; j < dense.cols; ++j) {
    for (std::int64_t i = 0; i < dense.rows; ++i) {
      const double value = dense.values[i + j * dense.rows];
      if (value == 0) continue;
      a.row_idx.push_back(i);
      a.values.push_back(value);
    }
    a.col_ptr.push_back(a.nonzeros());
  }
  return a;
}

template <class T>
void require_finite(const std::string& path, const Dense<T>& a) {
  refuse_not_finite(path, a);
}
template void require_finite<float>(const std::string&, const Dense<float>&);
template void require_finite<double>(const std::string&, const Dense<double>&);
void require_finite(const std::string& path, const Sparse<double>& a) { refuse_not_finite(path, a); }

bool can_write_matrix(const std::string& path) {
  return is_stream(path) || has_ending(path, ".npy") || is_matrix_market_path(path);
}

namespace {

void check_ending(const std::string& path) {
  if (!can_write_matrix(path)) {
    fail(path, "cannot write a matrix under this name: it must end in .npy, .mtx or .mtx.gz");
  }
}

}  // namespace

void write_indices(const std::string& path, const std::vector<std::int64_t>& indices) {
  check_ending(path);
  if (is_matrix_market_path(path)) return write_matrix_market(path, indices);
  write_npy(path, indices);
}

template <class T>
void write_dense(const std::string& path, MatrixView<const T> a) {
  check_ending(path);
  if (is_matrix_market_path(path)) return write_matrix_market(path, a);
  write_npy(path, a);
}
template void write_dense<float>(const std::string&, MatrixView<const float>);
template void write_dense<double>(const std::string&, MatrixView<const double>);

}  // namespace qrane::io
