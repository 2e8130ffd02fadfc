// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <limits>
#include <type_traits>

#include <io/file_error.hpp>
#include <io/matrix_file.hpp>
#include <io/matrix_market.hpp>
#include <io/npy.hpp>

namespace qrane::io {
namespace {

[[noreturn]] void fail_ending(const std::string& path) {
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
    throw Error(ErrorCode::not_finite,
                detail::concat(path, ": NaN or Inf at row ", at->row, ", column ", at->col, " (counted from 0)"));
  }
}

}  // namespace

Dense<double> to_dense(const Sparse<double>& a) { return spread<double>(a); }

MatrixFileInfo probe_matrix(const std::string& path) {
  if (is_matrix_market_path(path)) {
    const MatrixMarketHeader header = read_matrix_market_header(path);
    return {header.coordinate, false, header.rows, header.cols};
  }
  if (!has_ending(path, ".npy")) fail_ending(path);
  const NpyHeader header = read_npy_header(path);
  if (header.shape.size() != 1 && header.shape.size() != 2) {
    fail(path, "expected a matrix or a vector, found an array of ", header.shape.size(), " dimensions");
  }
  return {false, header.type == NpyType::f4, header.shape[0], header.shape.size() == 2 ? header.shape[1] : 1};
}

template <class T>
Dense<T> read_dense(const std::string& path) {
  if (has_ending(path, ".npy")) return read_npy<T>(path);
  if (!is_matrix_market_path(path)) fail_ending(path);
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
  if (has_ending(path, ".npy")) {
    dense = read_npy<double>(path);
  } else {
    if (!is_matrix_market_path(path)) fail_ending(path);
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

template <class T>
void write_dense(const std::string& path, MatrixView<const T> a) {
  if (has_ending(path, ".npy")) return write_npy(path, a);
  if (is_matrix_market_path(path)) return write_matrix_market(path, a);
  fail(path, "cannot write a matrix under this name: it must end in .npy, .mtx or .mtx.gz");
}
template void write_dense<float>(const std::string&, MatrixView<const float>);
template void write_dense<double>(const std::string&, MatrixView<const double>);

}  // namespace qrane::io
