// SPDX-License-Identifier: Apache-2.0
// What the files of the C interface share: statuses from exceptions, checks under the caller's names, structs that
// grow.
#pragma once

#include <qrane/qrane.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <qrane/qrane.hpp>
#include <type_traits>
#include <variant>

#include "vocabulary/memory.hpp"

struct qrane_context {
  qrane::Context context;
};

struct qrane_qr {
  qrane::Context context;
  std::variant<qrane::QR<float>, qrane::QR<double>> qr;
};

namespace qrane::c_interface {

using detail::check;

/// Keeps the sentence for qrane_last_error and returns the status.
int fail(int status, const char* function, const char* sentence) noexcept;

/// Runs `body`; the one place where exceptions become statuses.
template <class Body>
int guarded(const char* function, Body&& body) noexcept {
  try {
    body();
    return QRANE_OK;
  } catch (const qrane::Error& error) {
    return fail(static_cast<int>(error.code()), function, error.what());
  } catch (const std::bad_alloc&) {
    return fail(QRANE_OUT_OF_MEMORY, function, "the host has no memory left");
  } catch (const std::exception& error) {
    return fail(QRANE_INTERNAL, function, error.what());
  } catch (...) {
    return fail(QRANE_INTERNAL, function, "an unknown exception");
  }
}

template <class P>
void check_not_null(const P* pointer, const char* name) {
  check(pointer != nullptr, ErrorCode::invalid_argument, name, " is null");
}

inline void check_range(const char* name, std::int64_t value, std::int64_t last) {
  check(value >= 0 && value <= last, ErrorCode::invalid_argument, name, " is ", value, ", not in 0..", last);
}

/// The caller's struct over the defaults: an older caller's is shorter, and what a newer caller's has beyond this
/// library's must be zero, since it would go unheeded.
template <class Struct>
Struct read_struct(const Struct* given, const Struct& defaults, const char* name) {
  Struct result = defaults;
  if (given == nullptr) return result;
  const std::size_t size = given->size;
  check(size >= sizeof(std::size_t) + sizeof(std::int32_t), ErrorCode::invalid_argument, name, "->size is ", size,
        ": initialize the struct with its _INIT macro");
  std::memcpy(&result, given, std::min(size, sizeof(Struct)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    check(bytes[i] == 0, ErrorCode::invalid_argument, name, "->size is ", size, " where this library (",
          QRANE_VERSION_STRING, ") knows ", sizeof(Struct), " bytes, and a field beyond them is set");
  }
  return result;
}

/// What fits of `result` into the caller's struct, whose size stays the caller's.
template <class Struct>
void write_struct(const Struct& result, Struct* target) {
  const std::size_t size = target->size;
  std::memcpy(target, &result, std::min(size, sizeof(Struct)));
  target->size = size;
}

template <class Struct>
void check_struct(const Struct* target, const char* name) {
  check_not_null(target, name);
  check(target->size >= sizeof(std::size_t) + sizeof(std::int32_t), ErrorCode::invalid_argument, name, "->size is ",
        target->size, ": initialize the struct with its _INIT macro");
}

template <class T>
using MatrixOf = std::conditional_t<std::is_same_v<T, float>, qrane_matrix_s, qrane_matrix_d>;

/// The caller's matrix as a view, checked under the caller's name for it.
template <class T>
MatrixView<T> view_of(const qrane::Context& context, const MatrixOf<T>* a, const char* name) {
  constexpr auto bad = ErrorCode::invalid_argument;
  check_not_null(a, name);
  check(a->rows >= 0, bad, name, "->rows is ", a->rows, ", negative");
  check(a->cols >= 0, bad, name, "->cols is ", a->cols, ", negative");
  check(a->layout == QRANE_COLUMN_MAJOR || a->layout == QRANE_ROW_MAJOR, bad, name, "->layout is ", a->layout,
        ", neither QRANE_COLUMN_MAJOR nor QRANE_ROW_MAJOR");
  check(a->memory == QRANE_MEMORY_HOST || a->memory == QRANE_MEMORY_DEVICE, bad, name, "->memory is ", a->memory,
        ", neither QRANE_MEMORY_HOST nor QRANE_MEMORY_DEVICE");
  const bool by_rows = a->layout == QRANE_ROW_MAJOR;
  const Index minor = by_rows ? a->cols : a->rows, major = by_rows ? a->rows : a->cols;
  check(a->ld >= minor, bad, name, "->ld is ", a->ld, ", less than its ", minor, by_rows ? " columns" : " rows");
  check(backend::addressable(major, a->ld, 1, sizeof(T)), bad, name, " is ", a->rows, " x ", a->cols, " with ld ", a->ld,
        ": more bytes than 64 bits count");
  const bool in_buffer = a->memory == QRANE_MEMORY_DEVICE && context.backend() == qrane::Backend::opencl;
  const bool empty = a->rows == 0 || a->cols == 0;
  if (in_buffer) {
    check(a->buffer != nullptr || empty, bad, name, "->buffer is null, and an OpenCL device matrix needs its cl_mem");
    check(a->offset >= 0, bad, name, "->offset is ", a->offset, ", negative");
  } else {
    check(a->buffer == nullptr, bad, name, "->buffer is set, but the matrix is not in an OpenCL device's memory");
    check(a->data != nullptr || empty, bad, name, "->data is null, and the matrix is ", a->rows, " x ", a->cols);
  }
  MatrixView<T> view(a->data, a->rows, a->cols, a->ld, static_cast<Memory>(a->memory),
                     static_cast<qrane::Layout>(a->layout));
  view.buffer = a->buffer;
  view.offset = a->offset;
  return view;
}

/// A matrix that may be left out.
template <class T>
MatrixView<const T> optional_view(const qrane::Context& context, const void* a, const char* name) {
  if (a == nullptr) return {};
  return view_of<T>(context, static_cast<const MatrixOf<T>*>(a), name);
}

inline void check_shape(const char* name, Index rows, Index cols, Index wanted_rows, Index wanted_cols) {
  check(rows == wanted_rows && cols == wanted_cols, ErrorCode::invalid_argument, name, " is ", rows, " x ", cols,
        " where ", wanted_rows, " x ", wanted_cols, " is needed");
}

/// The factorization in the precision of the function called.
template <class T>
QR<T>& qr_of(const qrane_qr* handle) {
  check_not_null(handle, "qr");
  auto* qr = std::get_if<QR<T>>(&const_cast<qrane_qr*>(handle)->qr);
  check(qr != nullptr, ErrorCode::invalid_argument, "qr was factored in ",
        sizeof(T) == 4 ? "double: use the function ending in _d" : "float: use the function ending in _s");
  return *qr;
}

/// A solution into the caller's matrix and struct.
template <class T>
void write_solution(const qrane::Context& context, const Solution<T>& solution, const MatrixView<T>& x,
                    qrane_solution* info) {
  context.copy<T>(solution.x.view(), x);
  if (info != nullptr)
    write_struct(qrane_solution{sizeof(qrane_solution), solution.rank, solution.full, solution.condition}, info);
}

/// The caller's options, or the defaults; in context.cpp.
Options options_of(const qrane_options* given);

inline SolveOptions solve_options_of(const qrane_solve_options* options) {
  const auto o = read_struct(options, qrane_solve_options QRANE_SOLVE_OPTIONS_INIT, "options");
  check(o.tolerance == o.tolerance, ErrorCode::invalid_argument, "options->tolerance is NaN");
  SolveOptions solve_options;
  solve_options.tolerance = o.tolerance;
  solve_options.least_norm = o.least_norm != 0;
  solve_options.refuse_deficient = o.refuse_deficient != 0;
  return solve_options;
}

}  // namespace qrane::c_interface
