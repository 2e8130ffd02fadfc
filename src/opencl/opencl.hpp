// SPDX-License-Identifier: Apache-2.0
// How the OpenCL backend names memory: a buffer and a byte offset, since OpenCL has no pointers that a
// host program may hold or store in other buffers.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include "vocabulary/memory.hpp"

namespace qrane::backend {

namespace opencl {

class Queue;

/// An address in an OpenCL buffer; moves by elements, null by default.
template <class T>
struct Pointer {
  cl_mem memory = nullptr;
  std::int64_t offset = 0;  // bytes from the start of the buffer, a multiple of sizeof(T)

  Pointer operator+(std::int64_t k) const { return {memory, offset + k * static_cast<std::int64_t>(sizeof(T))}; }
  explicit operator bool() const { return memory != nullptr; }
  friend bool operator==(const Pointer&, const Pointer&) = default;
};

template <class U, class T>
Pointer<U> cast_pointer(Pointer<T> p) {
  return {p.memory, p.offset};
}

}  // namespace opencl

using opencl::cast_pointer;  // beside the overload for raw pointers, so that qualified calls find both

struct OpenCL {
  static constexpr const char* name = "opencl";
  template <class T>
  using Pointer = opencl::Pointer<T>;
  using Queue = opencl::Queue;
  static constexpr bool has_side = false;      // Queue::side() and lane() are queues of their own
  static constexpr bool records = false;       // Queue::recorded() keeps work
  static constexpr bool reaches_host = false;  // kernels read and write Queue::allocate_host's memory
  template <class T>
  static Pointer<T> from_host(T*) {
    return {};
  }
  /// Sums of float are rounded to nearest, so that updates of float need no double (see cuda/cuda.hpp).
  static constexpr bool float_sums_lean = false;
};

}  // namespace qrane::backend
