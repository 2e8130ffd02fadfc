// SPDX-License-Identifier: Apache-2.0
// Views of matrices a user owns, and matrices that qrane owns.
#pragma once

#include <qrane/version.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace qrane {

using Index = std::int64_t;

/// Where a matrix lives. `device` is the memory of the Context that it is used with: CUDA global
/// memory, an OpenCL buffer, and for the CPU backend the same as `host`.
enum class Memory { host, device };

enum class Layout { column_major, row_major };

/// A rows x cols matrix in memory that somebody else owns.
///
/// Element (i, j) is data[i + j * ld] (column-major, ld >= rows) or data[i * ld + j] (row-major,
/// ld >= cols); a row-major view costs at most one transpose. An OpenCL device matrix has no
/// pointer: `buffer` is its cl_mem and `offset` its first element, and `data` is null.
template <class T>
struct MatrixView {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index ld = 0;
  Layout layout = Layout::column_major;
  Memory memory = Memory::host;
  void* buffer = nullptr;  ///< OpenCL: the cl_mem
  Index offset = 0;        ///< OpenCL: elements from the start of the buffer to element (0, 0)

  MatrixView() = default;
  MatrixView(T* data_, Index rows_, Index cols_, Index ld_, Memory memory_ = Memory::host,
             Layout layout_ = Layout::column_major)
      : data(data_), rows(rows_), cols(cols_), ld(ld_), layout(layout_), memory(memory_) {}
  /// Contiguous column-major matrix.
  MatrixView(T* data_, Index rows_, Index cols_) : MatrixView(data_, rows_, cols_, rows_) {}

  /// A view of mutable data is a view of constant data.
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    MatrixView<const T> v(data, rows, cols, ld, memory, layout);
    v.buffer = buffer;
    v.offset = offset;
    return v;
  }
};

/// `count` matrices of one shape, `stride` elements apart (from element (0,0) to element (0,0)): one after the other,
/// or side by side within one leading dimension; they must not overlap. Or, with `pointers`, wherever the table says:
/// it has the address of each matrix's element (0, 0) and lies in the memory that `first` names (CUDA: a device array
/// of device addresses, column-major; not OpenCL device memory); `first` gives shape, ld and layout, its data is not
/// looked at.
template <class T>
struct BatchView {
  MatrixView<T> first;
  Index stride = 0;
  Index count = 0;
  T* const* pointers = nullptr;

  operator BatchView<const T>() const requires(!std::is_const_v<T>) { return {first, stride, count, pointers}; }
};

/// A column-major matrix that owns its memory. Move-only; freed with the last reference to it.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(Matrix&&) noexcept = default;
  Matrix& operator=(Matrix&&) noexcept = default;

  /// Uninitialized host matrix with ld = max(rows, 1). Throws Error{invalid_argument} for negative
  /// or overflowing sizes, Error{out_of_memory} when there is no room.
  static Matrix host(Index rows, Index cols);

  /// Used by Context: adopts `storage` as the owner of what `view` shows.
  Matrix(MatrixView<T> view, std::shared_ptr<void> storage) : view_(view), storage_(std::move(storage)) {}

  Index rows() const { return view_.rows; }
  Index cols() const { return view_.cols; }
  Index ld() const { return view_.ld; }
  Memory memory() const { return view_.memory; }
  T* data() { return view_.data; }
  const T* data() const { return view_.data; }
  MatrixView<T> view() { return view_; }
  MatrixView<const T> view() const { return view_; }

  /// Element (i, j) of a host matrix; not checked.
  T& operator()(Index i, Index j) { return view_.data[i + j * view_.ld]; }
  const T& operator()(Index i, Index j) const { return view_.data[i + j * view_.ld]; }

 private:
  MatrixView<T> view_;
  std::shared_ptr<void> storage_;
};

}  // namespace qrane
