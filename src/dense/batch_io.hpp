// SPDX-License-Identifier: Apache-2.0
// Between a user's batches and a backend's: strided ones are used where they lie, tables of addresses and other layouts
// are gathered into contiguous memory and scattered back.
#pragma once

#include "dense/solve/consume.hpp"

namespace qrane::dense {

/// Throws Error{invalid_argument} naming `name` unless the batch makes sense: its matrices must not overlap, be it one
/// after the other or side by side within one leading dimension.
template <class T>
void check_batch(const char* name, const BatchView<T>& a) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(a.count >= 0, code, name, ": the batch's count must not be negative, got ", a.count);
  if (a.count == 0) return;
  if (a.pointers != nullptr) {
    MatrixView<T> first = a.first;  // where it lies is the table's business
    first.rows = 0;
    check(first.buffer == nullptr, code, name, ": a table of addresses has no OpenCL buffer");
    check_view(name, first);
    const bool by_rows = a.first.layout == Layout::row_major;
    check(a.first.ld >= (by_rows ? a.first.cols : a.first.rows) || a.first.rows == 0 || a.first.cols == 0, code, name,
          ": leading dimension ld = ", a.first.ld, " is too small for ", a.first.rows, " x ", a.first.cols);
    return;
  }
  check_view(name, a.first);
  if (a.count == 1 || a.first.rows == 0 || a.first.cols == 0) return;
  const bool by_rows = a.first.layout == Layout::row_major;
  const Index minor = by_rows ? a.first.cols : a.first.rows, major = by_rows ? a.first.rows : a.first.cols;
  const Index span = a.first.ld * (major - 1) + minor;
  const bool beside = a.stride >= minor && (major == 1 || (a.first.ld - minor) / a.stride >= a.count - 1);
  check(a.stride >= span || beside, code, name, ": the batch's stride ", a.stride, " is smaller than one matrix, ",
        span);
  check(a.stride <= (std::numeric_limits<Index>::max() / 16 / static_cast<Index>(sizeof(T)) - span) / a.count, code,
        name, ": ", a.count, " matrices ", a.stride, " elements apart overflow 64-bit sizes");
}

/// Matrix b of a batch, which is not a table in device memory.
template <class T>
MatrixView<T> matrix_of(const BatchView<T>& a, Index b) {
  MatrixView<T> one = a.first;
  if (a.pointers != nullptr)
    one.data = a.pointers[b];
  else if (one.buffer != nullptr)
    one.offset += b * a.stride;
  else
    one.data += b * a.stride;
  return one;
}

/// Whether kernels can use the batch where it lies.
template <class B, class T>
bool is_direct(const BatchView<T>& a) {
  return a.pointers == nullptr && is_resident<B>(a.first) && a.first.layout == Layout::column_major;
}

template <class B, class T>
backend::DeviceMatrix<B, std::remove_const_t<T>> as_device_batch(const BatchView<T>& a) {
  return as_device<B>(a.first, a.stride, a.count);
}

/// Whether a table of addresses lies in device memory of its own, out of the host's reach.
template <class B, class T>
bool has_device_table(const BatchView<T>& a) {
  return a.pointers != nullptr && a.first.memory == Memory::device && !std::is_same_v<B, backend::Cpu>;
}

/// Moves between a table of addresses in device memory and contiguous matrices.
template <class B, class T, bool gather>
void copy_table(typename B::Queue& queue, const BatchView<T>& a,
                const backend::DeviceMatrix<B, std::remove_const_t<T>>& matrices) {
  using U = std::remove_const_t<T>;
  detail::check(a.first.layout == Layout::column_major, ErrorCode::invalid_argument,
                "a table of addresses in device memory takes column-major matrices");
  auto* const table = const_cast<U* const*>(a.pointers);
  copy_table(queue, backend::CopyTable<B, U>{table, std::max<Index>(a.first.ld, 1), matrices, gather});
}

/// target := the batch, of target's shape and count.
template <class B, class T>
void load_batch(typename B::Queue& queue, const BatchView<const T>& a, const backend::DeviceMatrix<B, T>& target) {
  const MatrixView<const T>& first = a.first;
  if (a.count == 0 || first.rows == 0 || first.cols == 0) return;
  if (has_device_table<B>(a)) return copy_table<B, const T, true>(queue, a, target);
  if (is_direct<B>(a)) return copy(queue, as_device_batch<B>(a), target, backend::Part::all);
  const bool contiguous = a.pointers == nullptr && first.layout == Layout::column_major && first.ld == first.rows &&
                          a.stride == first.rows * first.cols && target.stride == a.stride && target.ld == first.ld;
  if (contiguous && !is_resident<B>(first)) return queue.upload(first.data, target.data, a.stride * a.count);
  for (Index b = 0; b < a.count; ++b) load<B, T>(queue, matrix_of(a, b), target.matrix(b));
}

/// The batch := source. Waits when it is in host memory.
template <class B, class T>
void store_batch(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& source, const BatchView<T>& a) {
  const MatrixView<T>& first = a.first;
  if (a.count == 0 || first.rows == 0 || first.cols == 0) return;
  if (has_device_table<B>(a)) return copy_table<B, T, false>(queue, a, source);
  if (is_direct<B>(a)) return copy(queue, source, as_device_batch<B>(a), backend::Part::all);
  const bool contiguous = a.pointers == nullptr && first.layout == Layout::column_major && first.ld == first.rows &&
                          a.stride == first.rows * first.cols && source.stride == a.stride && source.ld == first.ld;
  if (contiguous && !is_resident<B>(first)) return queue.download(source.data, first.data, a.stride * a.count);
  for (Index b = 0; b < a.count; ++b) store<B, T>(queue, source.matrix(b), matrix_of(a, b));
}

/// Contiguous matrices for a moment.
template <class B, class T>
struct TemporaryBatch {
  Temporary<B, T> memory;
  backend::DeviceMatrix<B, T> matrices;

  TemporaryBatch(const typename B::Queue& queue, Index rows, Index cols, Index count)
      : memory(queue, rows, cols * count), matrices{memory.matrix.data,      rows, cols, memory.matrix.ld,
                                                    memory.matrix.ld * cols, count} {}
};

/// Lets `work` change the batch, where it lies or through a copy of it. `read`: what it holds matters.
template <class B, class T, class Work>
void through_batch(typename B::Queue& queue, const BatchView<T>& a, bool read, Work work) {
  if (a.count == 0 || a.first.rows == 0 || a.first.cols == 0) return;
  if (is_direct<B>(a)) return work(as_device_batch<B>(a));
  TemporaryBatch<B, T> copy(queue, a.first.rows, a.first.cols, a.count);
  if (read) load_batch<B, T>(queue, a, copy.matrices);
  work(copy.matrices);
  store_batch<B, T>(queue, copy.matrices, a);
  queue.synchronize();
}

}  // namespace qrane::dense
