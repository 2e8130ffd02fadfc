// SPDX-License-Identifier: Apache-2.0
// Arrays of any library as views, and results as arrays of the caller's library. Nothing is copied: qrane/_arrays.py
// hands over arrays of float or double whose matrices are column-major or row-major.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "session.hpp"

namespace qrane::python {

using Array = nb::ndarray<nb::ro>;  // of any library and type; only read

namespace dlpack_device {
constexpr int cpu = 1, cuda = 2, cuda_managed = 13;
}

inline Memory memory_of(const Array& a) {
  return a.device_type() == dlpack_device::cuda || a.device_type() == dlpack_device::cuda_managed ? Memory::device
                                                                                                  : Memory::host;
}

/// The last two axes of `a`, or a vector as one column. Throws Error{invalid_argument} for other strides.
template <class T>
MatrixView<const T> matrix_of(const Array& a, const char* name) {
  using detail::check;
  check(a.dtype() == nb::dtype<T>(), ErrorCode::invalid_argument, name, " has another type than the matrix");
  check(a.ndim() >= 1, ErrorCode::invalid_argument, name, " must have at least one axis");
  const std::size_t last = a.ndim() - 1;
  const bool vector = last == 0;
  const Index m = static_cast<Index>(a.shape(vector ? 0 : last - 1));
  const Index n = vector ? 1 : static_cast<Index>(a.shape(last));
  const Index down = a.stride(vector ? 0 : last - 1), across = vector ? 1 : a.stride(last);
  const T* const data = static_cast<const T*>(a.data());
  const bool empty = a.size() == 0;
  if (empty || ((down == 1 || m == 1) && (across >= m || n == 1)))
    return {data, m, n, empty || n == 1 ? std::max<Index>(m, 1) : across, memory_of(a)};
  check((across == 1 || n == 1) && (down >= n || m == 1), ErrorCode::invalid_argument, name, " has strides of ", down,
        " and ", across, " elements, which no view of qrane has");
  return {data, m, n, m == 1 ? n : down, memory_of(a), Layout::row_major};
}

/// The first of three axes counts the matrices.
template <class T>
BatchView<const T> batch_of(const Array& a, const char* name) {
  detail::check(a.ndim() == 3, ErrorCode::invalid_argument, name, " must have three axes");
  return {matrix_of<T>(a, name), a.stride(0), static_cast<Index>(a.shape(0)), nullptr};
}

template <class F>
auto by_scalar(const Array& a, F&& f) {
  if (a.dtype() == nb::dtype<float>()) return f(float{});
  detail::check(a.dtype() == nb::dtype<double>(), ErrorCode::invalid_argument, "arrays of float32 or float64 only");
  return f(double{});
}

/// A copy of a view where the view's memory is.
template <class T>
Matrix<T> copy_of(const Context& context, const MatrixView<const T>& view) {
  Matrix<T> out =
      view.memory == Memory::host ? Matrix<T>::host(view.rows, view.cols) : context.allocate<T>(view.rows, view.cols);
  context.copy<T>(view, out.view());
  return out;
}

/// Keeps a result's memory. Memory of a device is freed on its context, which one thread uses at a time.
template <class T>
struct Owner {
  Matrix<T> matrix;
  SessionPtr session;
  static void destroy(void* p) noexcept {
    auto* const self = static_cast<Owner*>(p);
    if (self->matrix.memory() == Memory::device) {
      const Held held(self->session);
      self->matrix = {};
    }
    delete self;
  }
};

/// An array of the library of `place`, over memory that `owner` keeps.
template <class T>
nb::object as_array(Place& place, T* data, const std::vector<std::size_t>& shape,
                    const std::vector<std::int64_t>& strides, nb::handle owner, Memory memory) {
  const auto make = [&](auto framework) {
    using Result = nb::ndarray<decltype(framework), T>;
    const int type = memory == Memory::device ? dlpack_device::cuda : dlpack_device::cpu;
    return nb::cast(Result(data, shape.size(), shape.data(), owner, strides.data(), nb::dtype<T>(), type,
                           memory == Memory::device ? place.device() : 0),
                    nb::rv_policy::reference);
  };
  switch (place.library()) {
    case Library::torch: return make(nb::pytorch{});
    case Library::cupy: return make(nb::cupy{});
    case Library::jax: return make(nb::jax{});
    default: return make(nb::numpy{});
  }
}

/// A result as an array of rows x cols, or of `count` matrices of `each` columns that lie side by side.
template <class T>
nb::object to_array(Place& place, const SessionPtr& session, Matrix<T>&& matrix, Index count = -1, Index each = 0) {
  const auto size = [](Index i) { return static_cast<std::size_t>(i); };
  const Index m = matrix.rows(), n = matrix.cols(), ld = std::max<Index>(matrix.ld(), 1);
  T* const data = matrix.data();
  const Memory memory = matrix.memory();
  const nb::capsule owner(new Owner<T>{std::move(matrix), session}, &Owner<T>::destroy);
  if (count < 0) return as_array<T>(place, data, {size(m), size(n)}, {1, ld}, owner, memory);
  return as_array<T>(place, data, {size(count), size(m), size(each)}, {ld * each, 1, ld}, owner, memory);
}

/// A vector of numbers as a NumPy array.
template <class T>
nb::object to_numpy(std::vector<T>&& numbers) {
  auto* const kept = new std::vector<T>(std::move(numbers));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const std::size_t shape[] = {kept->size()};
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, shape, owner), nb::rv_policy::reference);
}

}  // namespace qrane::python
