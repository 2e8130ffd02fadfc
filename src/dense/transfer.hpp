// SPDX-License-Identifier: Apache-2.0
// Between a user's views and a backend's matrices. Device memory given in never passes through the host.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/error.hpp>
#include <qrane/matrix.hpp>

#include "cpu/cpu.hpp"
#include "dense/buffer.hpp"
#include "dense/solve/small_host.hpp"

namespace qrane::dense {

/// Throws Error{invalid_argument} naming `name` unless the view makes sense.
template <class T>
void check_view(const char* name, const MatrixView<T>& v) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(v.rows >= 0, code, name, ": rows must not be negative, got ", v.rows);
  check(v.cols >= 0, code, name, ": cols must not be negative, got ", v.cols);
  const bool row_major = v.layout == Layout::row_major;
  const Index least = row_major ? v.cols : v.rows;
  check(
      v.ld >= least || v.rows == 0 || v.cols == 0, code, name, ": leading dimension ld = ", v.ld, " is smaller than ",
      row_major ? "cols = " : "rows = ", least,
      !row_major && v.ld == v.cols ? "; for row-major data name Layout::row_major, or take MatrixView::row_major" : "");
  const Index outer = std::max<Index>(1, row_major ? v.rows : v.cols);
  check(backend::addressable(v.ld, outer, 1, sizeof(T)), code, name, ": a ", v.rows, " x ", v.cols,
        " matrix with ld = ", v.ld, " overflows 64-bit sizes");
  const bool somewhere = v.data || (v.buffer && v.memory == Memory::device);
  check(somewhere || v.rows == 0 || v.cols == 0, code, name, ": data is null for a ", v.rows, " x ", v.cols, " matrix");
}

template <class B, class T>
bool is_resident(const MatrixView<T>& v) {
  return v.memory == Memory::device || std::is_same_v<B, backend::Cpu>;
}

/// Whether the backend's kernels reach so many bytes there; the other backends' overloads are beside their queues.
inline bool reaches(backend::Cpu, const void* address, Index) { return address != nullptr; }

/// The memory of a resident view, or of a batch of them, element (0, 0) first; row-major is seen as its transpose.
/// Throws Error{invalid_argument} where it is another device's.
template <class B, class T>
backend::DeviceMatrix<B, std::remove_const_t<T>> as_device(const MatrixView<T>& v, Index stride = 0, Index count = 1) {
  using U = std::remove_const_t<T>;
  typename B::template Pointer<U> p{};
  if constexpr (std::is_pointer_v<typename B::template Pointer<U>>) {
    p = const_cast<U*>(v.data);
  } else {
    p.memory = static_cast<decltype(p.memory)>(v.buffer);
    p.offset = v.offset * static_cast<Index>(sizeof(U));
  }
  const bool row_major = v.layout == Layout::row_major;
  const Index rows = row_major ? v.cols : v.rows;
  const Index cols = row_major ? v.rows : v.cols;
  const Index bytes = ((count - 1) * stride + (cols - 1) * v.ld + rows) * static_cast<Index>(sizeof(U));
  detail::check(rows == 0 || cols == 0 || count == 0 || reaches(B{}, p, bytes), ErrorCode::invalid_argument,
                "the memory of a ", v.rows, " x ", v.cols, " matrix is not, or not all of it, where the backend ",
                B::name, " reaches it");
  return {p, rows, cols, std::max<Index>({v.ld, rows, 1}), stride, count};
}

/// A view of device memory that qrane owns.
template <class B, class T>
MatrixView<T> as_view(const backend::DeviceMatrix<B, T>& a) {
  MatrixView<T> v(nullptr, a.rows, a.cols, a.ld, Memory::device);
  if constexpr (std::is_pointer_v<typename B::template Pointer<T>>) {
    v.data = a.data;
  } else {
    v.buffer = a.data.memory;
    v.offset = a.data.offset / static_cast<Index>(sizeof(T));
  }
  return v;
}

/// Rows and columns of host memory as one contiguous column-major piece of its storage order.
template <class T>
std::vector<T> packed(const T* data, Index rows, Index cols, Index ld) {
  std::vector<T> out(static_cast<std::size_t>(rows * cols));
  for (Index j = 0; j < cols; ++j) std::copy(data + j * ld, data + j * ld + rows, out.data() + j * rows);
  return out;
}

/// The same memory as the transpose.
template <class T>
MatrixView<T> transposed(MatrixView<T> v) {
  std::swap(v.rows, v.cols);
  v.layout = v.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  return v;
}

/// Whether kernels read and write the view where it is.
template <class B, class T>
bool is_in_place(const MatrixView<T>& v) {
  return is_resident<B>(v) && v.layout == Layout::column_major;
}

/// target := the matrix that `v` shows; target has v's shape.
template <class B, class T>
void load(typename B::Queue& queue, const MatrixView<const T>& v, const backend::DeviceMatrix<B, T>& target) {
  if (v.rows == 0 || v.cols == 0) return;
  const bool row_major = v.layout == Layout::row_major;
  if (is_resident<B>(v)) {
    const auto source = as_device<B>(v);
    if (row_major)
      transpose(queue, source, target);
    else
      copy(queue, source, target, backend::Part::all);
    return;
  }
  const Index rows = row_major ? v.cols : v.rows;  // in storage order
  const Index cols = row_major ? v.rows : v.cols;
  std::vector<T> pack;
  const T* source = v.data;
  if (v.ld != rows) {
    pack = packed(v.data, rows, cols, v.ld);
    source = pack.data();
  }
  if (!row_major && target.ld == rows) {
    queue.upload(source, target.data, rows * cols);
    return;
  }
  Buffer<B> staging(queue, bytes_of(rows, cols, 1, sizeof(T)));
  const backend::DeviceMatrix<B, T> staged{staging.template as<T>(), rows, cols, rows, 0, 1};
  queue.upload(source, staged.data, rows * cols);
  if (row_major)
    transpose(queue, staged, target);
  else
    copy(queue, staged, target, backend::Part::all);
  queue.synchronize();
}

/// The matrix that `v` shows := source. Waits when v is in host memory.
template <class B, class T>
void store(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& source, const MatrixView<T>& v) {
  if (v.rows == 0 || v.cols == 0) return;
  const bool row_major = v.layout == Layout::row_major;
  if (is_resident<B>(v)) {
    const auto target = as_device<B>(v);
    if (row_major)
      transpose(queue, source, target);
    else
      copy(queue, source, target, backend::Part::all);
    return;
  }
  const Index rows = row_major ? v.cols : v.rows;
  const Index cols = row_major ? v.rows : v.cols;
  backend::DeviceMatrix<B, T> staged = source;
  Buffer<B> staging;
  if (row_major || source.ld != rows) {
    staging = Buffer<B>(queue, bytes_of(rows, cols, 1, sizeof(T)));
    staged = {staging.template as<T>(), rows, cols, rows, 0, 1};
    if (row_major)
      transpose(queue, source, staged);
    else
      copy(queue, source, staged, backend::Part::all);
  }
  if (v.ld == rows) {
    queue.download(staged.data, v.data, rows * cols);
    return;
  }
  std::vector<T> pack(static_cast<std::size_t>(rows * cols));
  queue.download(staged.data, pack.data(), rows * cols);
  for (Index j = 0; j < cols; ++j) std::copy(pack.data() + j * rows, pack.data() + (j + 1) * rows, v.data + j * v.ld);
}

/// Lets `write` fill the caller's matrix, which must be rows x cols as `what` is, through memory of our own only where
/// the kernels cannot reach it.
template <class B, class T, class Write>
void write_into(typename B::Queue& queue, const MatrixView<T>& out, Index rows, Index cols, const char* what,
                Write write) {
  check_view("out", out);
  detail::check(out.rows == rows && out.cols == cols, ErrorCode::invalid_argument, "out is ", out.rows, " x ", out.cols,
                ", but ", what, " is ", rows, " x ", cols);
  if (out.rows == 0 || out.cols == 0) return;
  if (is_resident<B>(out) && out.layout == Layout::column_major) {
    write(as_device<B>(out));
    return;
  }
  const Temporary<B, T> staged(queue, out.rows, out.cols);
  write(staged.matrix);
  store<B, T>(queue, staged.matrix, out);
  queue.synchronize();
}

/// What apply does for the user's view: fn(op, matrix) replaces a column-major device matrix by op(Q) times it. From
/// the right, C Q = (Qᵀ Cᵀ)ᵀ: the same memory read the other way round.
template <class B, class T, class Function>
void apply_to_view(typename B::Queue& queue, MatrixView<T> c, bool from_right, bool transpose, Function fn) {
  if (c.rows == 0 || c.cols == 0) return;
  if (from_right) c = dense::transposed(c);
  const auto op = from_right != transpose ? backend::Op::transpose : backend::Op::none;
  if (is_resident<B>(c) && c.layout == Layout::column_major) {
    fn(op, as_device<B>(c));
    return;
  }
  const Temporary<B, T> staged(queue, c.rows, c.cols);
  load<B, T>(queue, c, staged.matrix);
  fn(op, staged.matrix);
  store<B, T>(queue, staged.matrix, c);
  queue.synchronize();
}

/// A matrix of the user's for kernels: where it is, or copied into memory that stays for the next one of its shape.
template <class B, class T>
class Brought {
 public:
  backend::DeviceMatrix<B, T> bring(typename B::Queue& queue, const MatrixView<const T>& v) {
    if (is_in_place<B>(v)) return as_device<B>(v);
    const Index ld = std::max<Index>(v.rows, 1);
    if (memory_.bytes() == 0) memory_ = Buffer<B>(queue, bytes_of(ld, v.cols, 1, sizeof(T)));
    const backend::DeviceMatrix<B, T> copy{memory_.template as<T>(), v.rows, v.cols, ld, 0, 1};
    load<B, T>(queue, v, copy);
    return copy;
  }
  Index bytes() const { return memory_.bytes(); }

 private:
  Buffer<B> memory_;
};

/// The same for one matrix.
template <class B, class T>
struct OnDevice {
  Brought<B, T> memory;
  backend::DeviceMatrix<B, T> matrix;

  OnDevice(typename B::Queue& queue, const MatrixView<const T>& v) : matrix(memory.bring(queue, v)) {}
};

/// Uninitialized owned matrix in the backend's memory.
template <class B, class T>
Matrix<T> device_matrix(const typename B::Queue& queue, Index rows, Index cols) {
  auto storage = std::make_shared<Buffer<B>>(queue, bytes_of(rows, cols, 1, sizeof(T)));
  const backend::DeviceMatrix<B, T> a{storage->template as<T>(), rows, cols, std::max<Index>(rows, 1), 0, 1};
  return Matrix<T>(as_view<B, T>(a), std::move(storage));
}

/// A copy of a device matrix where the user wants it.
template <class B, class T>
Matrix<T> export_matrix(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& source, Memory where) {
  Matrix<T> out = where == Memory::host ? Matrix<T>::host(source.rows, source.cols)
                                        : device_matrix<B, T>(queue, source.rows, source.cols);
  store<B, T>(queue, source, out.view());
  return out;
}

/// A device matrix on the host, in double.
template <class B, class T>
HostMatrix to_host_matrix(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& source) {
  Matrix<T> copy = Matrix<T>::host(source.rows, source.cols);
  store<B, T>(queue, source, copy.view());
  HostMatrix out(source.rows, source.cols);
  for (Index j = 0; j < out.cols; ++j)
    for (Index i = 0; i < out.rows; ++i) out(i, j) = static_cast<double>(copy(i, j));
  return out;
}

template <class T>
Matrix<T> from_host_matrix(const HostMatrix& a) {
  Matrix<T> out = Matrix<T>::host(a.rows, a.cols);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) out(i, j) = static_cast<T>(a(i, j));
  return out;
}

/// Throws Error{not_finite} naming the first NaN or Inf of a matrix on the device; `transposed`: a holds the
/// transpose of what the user calls `name`.
template <class B, class T>
void check_finite(typename B::Queue& queue, const char* name, const backend::DeviceMatrix<B, T>& a,
                  bool transposed = false) {
  if (a.rows == 0 || a.cols == 0) return;
  const Buffer<B> result(queue, 256 + (Index{1} << 20));
  const backend::Scratch<B> scratch{result.template as<std::byte>(256), Index{1} << 20};
  std::int64_t position[2];
  first_not_finite(queue, a, result.template as<std::int64_t>(), scratch);
  queue.download(result.template as<std::int64_t>(), position, 2);
  if (transposed) std::swap(position[0], position[1]);
  detail::check(position[0] < 0, ErrorCode::not_finite, name, " has a NaN or Inf at row ", position[0], ", column ",
                position[1], " (0-based)");
}

}  // namespace qrane::dense
