// SPDX-License-Identifier: Apache-2.0
// Memory and matrices of a backend.
//
// A backend is a tag type B with
//     B::Pointer<T>   how it names device memory: T* (cpu, cuda) or {cl_mem, byte offset} (opencl);
//                     `p + k` moves by k elements, `cast_pointer<U>(p)` keeps the address
//     B::Queue        ordered work on one device (vocabulary/queue.hpp)
// Algorithms are templates over B and a scalar T. Operations are functions whose first argument is the queue; they take
// batches of matrices or lists of tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <qrane/error.hpp>
#include <qrane/matrix.hpp>

namespace qrane::backend {

enum class Op { none, transpose };  // a transpose is a conjugate transpose once complex types come
enum class Side { left, right };
enum class Triangle { upper, lower };
enum class Diagonal { non_unit, unit };

/// What the default of an operation returns; a backend's own overload returns nothing. Tests tell by it which is taken.
struct Default {};

/// The default of an operation whose stepwise form is the algorithm's, since it needs memory that the algorithm plans.
/// Limits say that the backend lacks it, and algorithms plan by them.
inline Default not_whole(const char* operation) {
  throw Error(ErrorCode::unavailable, detail::concat("this backend does not do ", operation, " whole"));
}

/// The same address as a pointer to U; backends whose pointers are not raw overload it.
template <class U, class T>
U* cast_pointer(T* p) {
  return reinterpret_cast<U*>(p);
}

/// Whether the bytes of `count` matrices of rows x cols elements are a 64-bit number, with room for sums of a few.
inline bool addressable(Index rows, Index cols, Index count, std::size_t scalar_bytes) {
  Index bytes = 0;
  return !__builtin_mul_overflow(rows, cols, &bytes) && !__builtin_mul_overflow(bytes, count, &bytes) &&
         !__builtin_mul_overflow(bytes, static_cast<Index>(scalar_bytes), &bytes) &&
         bytes <= std::numeric_limits<Index>::max() / 16;
}

/// Those bytes. Whoever asks for memory computes its size here: throws Error{invalid_argument} naming the shape where a
/// size is negative or not addressable.
inline Index bytes_of(Index rows, Index cols, Index count, std::size_t scalar_bytes) {
  const auto refuse = [&](const char* why) {
    const std::string shape = detail::concat(rows, " x ", cols, why);
    throw Error(ErrorCode::invalid_argument,
                count == 1 ? "a matrix of " + shape : detail::concat(count, " matrices of ", shape));
  };
  if (rows < 0 || cols < 0 || count < 0) refuse(" has a negative size");
  if (!addressable(rows, cols, count, scalar_bytes)) refuse(" overflows 64-bit sizes");
  return rows * cols * count * static_cast<Index>(scalar_bytes);
}

/// Their elements, checked alike.
template <class T>
Index elements_of(Index rows, Index cols, Index count = 1) {
  return bytes_of(rows, cols, count, sizeof(T)) / static_cast<Index>(sizeof(T));
}

/// Which part of a matrix `copy` takes; the rest of the destination becomes what the name says.
enum class Part {
  all,         // every element
  upper,       // i <= j copied, zeros below the diagonal
  upper_only,  // i <= j copied, the rest of the destination untouched
  unit_lower   // i > j copied, ones on the diagonal, zeros above: the V of a LAPACK-shaped panel
};

/// Column-major matrices in device memory: matrix b starts at data + b * stride.
template <class B, class T>
struct DeviceMatrix {
  typename B::template Pointer<T> data{};
  Index rows = 0;
  Index cols = 0;
  Index ld = 0;
  Index stride = 0;
  Index count = 1;

  constexpr DeviceMatrix block(Index i, Index j, Index r, Index c) const {
    // where there is no memory, as in matrices that are only counted, the address stays null
    return {data ? data + (i + j * ld) : data, r, c, ld, stride, count};
  }
  constexpr DeviceMatrix columns(Index j, Index c) const { return block(0, j, rows, c); }
  constexpr DeviceMatrix matrix(Index b) const { return {data + b * stride, rows, cols, ld, 0, 1}; }
};

/// Scratch a kernel needs is asked of the queue beforehand and passed in: bytes for `gram`, `multiply_wide`
/// and the reductions (they convert or sum in chunks that fit whatever is given, at least the minimum).
template <class B>
struct Scratch {
  typename B::template Pointer<std::byte> data{};
  std::int64_t bytes = 0;
};

}  // namespace qrane::backend
