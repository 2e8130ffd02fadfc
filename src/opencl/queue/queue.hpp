// SPDX-License-Identifier: Apache-2.0
// The queue of the OpenCL backend, for devices of any vendor: one in-order command queue, OpenCL 1.2, kernels of our
// own (the .cl files) in one-dimensional work-groups. Every operation takes a condition.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <qrane/context.hpp>

#include "opencl/opencl.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::backend::opencl {

class Device;

/// Lowered limits, for tests and for devices that promise too much; 0 keeps the device's own.
struct QueueOptions {
  std::int64_t max_work_group = 0;   // at least 8
  std::int64_t max_local_bytes = 0;  // at least 16384
  bool use_double = true;            // false: as on a device without cl_khr_fp64
  bool as_gpu = false;               // block shapes of a GPU on any device
};

/// Told what is compiled now and the seconds that compiling has taken so far, after each second of it.
using BuildNotice = std::function<void(const std::string& what, double seconds)>;

class Queue : public InOrder<Queue> {
 public:
  /// Work on device `device_index` of device_infos(), or on the user's in-order command queue if one is given.
  /// memory_limit_bytes = 0: all of the device's memory.
  explicit Queue(int device_index = 0, cl_command_queue user_queue = nullptr, std::int64_t memory_limit_bytes = 0,
                 const QueueOptions& options = {});

  Pointer<std::byte> allocate(Index bytes) const;
  void release(Pointer<std::byte> p) const noexcept;
  /// Bytes of the device, or of the limit, that allocations may still take.
  Index available_bytes() const;
  template <class T>
  void upload(const T* source, Pointer<T> target, Index count) const {
    write_bytes(source, cast_pointer<std::byte>(target), count * static_cast<Index>(sizeof(T)));
  }
  template <class T>
  void download(Pointer<T> source, T* target, Index count) const {
    read_bytes(cast_pointer<std::byte>(source), target, count * static_cast<Index>(sizeof(T)));
  }
  void synchronize() const;
  Queue when(Pointer<std::int32_t> condition) const;
  template <class T>
  Limits limits(T) const;

  Device& device() const { return *device_; }
  Pointer<std::int32_t> condition() const { return condition_; }
  cl_context context() const;
  cl_command_queue command_queue() const;

  /// Seconds that building kernels has taken.
  double build_seconds() const;
  void on_build(BuildNotice notice) const;

  /// Time marks for benchmarks; a mark waits for the work before it.
  std::chrono::steady_clock::time_point record();
  double elapsed_ms(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) const {
    return std::chrono::duration<double, std::milli>(b - a).count();
  }

 private:
  void write_bytes(const void* source, Pointer<std::byte> target, Index bytes) const;
  void read_bytes(Pointer<std::byte> source, void* target, Index bytes) const;
  std::shared_ptr<Device> device_;
  Pointer<std::int32_t> condition_{};
};

/// All OpenCL devices, GPUs first; never throws. `reason` says why there is none.
std::vector<DeviceInfo> device_infos(std::string* reason = nullptr) noexcept;

/// Whether the buffer is one, and has so many bytes.
bool holds(cl_mem buffer, Index bytes);

}  // namespace qrane::backend::opencl

namespace qrane::backend {

/// Whether a user's buffer has so many bytes from the address on.
template <class T>
bool reaches(OpenCL, opencl::Pointer<T> address, Index bytes) {
  return address.offset >= 0 && opencl::holds(address.memory, address.offset + bytes);
}

}  // namespace qrane::backend
