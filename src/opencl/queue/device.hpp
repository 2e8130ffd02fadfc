// SPDX-License-Identifier: Apache-2.0
// One OpenCL device as the kernels' host side sees it: context, queue, properties, the memory account, and
// the one way to launch kernels. Internal to this backend.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <qrane/error.hpp>

#include "opencl/queue/programs.hpp"
#include "opencl/queue/queue.hpp"

namespace qrane::backend::opencl {

/// Throws Error{device} naming the operation and OpenCL's code unless status is CL_SUCCESS.
void check_status(cl_int status, const std::string& operation);
/// The same where work on the device may have failed: says so when the code means that.
void check_finished(cl_int status, const std::string& operation);
/// The name of an OpenCL error code, as in its headers.
std::string status_name(cl_int status);

/// Every device of every platform, GPUs first, in the order of Context's device index.
std::vector<cl_device_id> all_devices(std::string* reason);

/// The options, lowered further by the environment (QRANE_OPENCL_LIMITS); throws Error{invalid_argument}.
QueueOptions lowered(QueueOptions options);

/// A device with a context and a queue on it, the user's or our own.
struct Connection {
  template <auto release>
  struct Release {
    template <class Handle>
    void operator()(Handle* handle) const {
      release(handle);
    }
  };

  Connection(int index, cl_command_queue given);

  cl_device_id device = nullptr;
  std::unique_ptr<std::remove_pointer_t<cl_context>, Release<clReleaseContext>> context;
  std::unique_ptr<std::remove_pointer_t<cl_command_queue>, Release<clReleaseCommandQueue>> queue;
};

/// Local memory of `bytes` bytes as a kernel argument.
struct LocalBytes {
  std::int64_t bytes;
};

class Device {
 public:
  Device(int index, cl_command_queue queue, std::int64_t memory_limit_bytes, const QueueOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  cl_device_id id() const { return connection_.device; }
  cl_context context() const { return connection_.context.get(); }
  cl_command_queue queue() const { return connection_.queue.get(); }
  bool has_double() const { return has_double_; }
  bool is_gpu() const { return is_gpu_; }
  std::int64_t local_bytes() const { return local_bytes_; }
  std::int64_t max_allocation_bytes() const { return max_allocation_bytes_; }
  std::int64_t limit_bytes() const { return limit_bytes_; }
  int compute_units() const { return compute_units_; }
  /// The largest power of two that is at most `wanted` and the device's (or option's) work-group limit.
  int work_group(int wanted) const;

  cl_mem allocate(std::int64_t bytes);
  void release(cl_mem memory) noexcept;
  std::int64_t available_bytes();
  /// The queue's own scratch of up to `bytes` (less when memory is short; `granted` says how much).
  cl_mem partials(std::int64_t bytes, std::int64_t& granted);

  Programs& programs() { return *programs_; }
  /// See Programs::kernel.
  cl_kernel kernel(const std::vector<std::string>& files, const std::string& name, const Defines& defines,
                   const std::string& more = {}) {
    return programs_->kernel(files, name, defines, more);
  }

  /// Enqueues groups * work_group work-items with these arguments; nothing when groups is 0.
  template <class... More>
  void launch(cl_kernel kernel, std::int64_t groups, int work_group, const Pointer<std::int32_t>& condition,
              const More&... more) {
    if (groups <= 0) return;
    cl_uint index = 0;
    set_argument(kernel, index, condition);
    (set_argument(kernel, index, more), ...);
    if (programs_->runs_first(kernel)) run_first(kernel, groups, work_group, condition);
    enqueue(kernel, groups, work_group);
  }

 private:
  template <class T>
  void set_argument(cl_kernel kernel, cl_uint& index, const Pointer<T>& pointer) {
    const cl_mem memory = pointer ? pointer.memory : dummy_;
    const cl_long offset = pointer ? pointer.offset : -1;
    check_status(clSetKernelArg(kernel, index++, sizeof memory, &memory), "clSetKernelArg");
    check_status(clSetKernelArg(kernel, index++, sizeof offset, &offset), "clSetKernelArg");
  }
  template <class T>
  void set_argument(cl_kernel kernel, cl_uint& index, const DeviceMatrix<OpenCL, T>& matrix) {
    set_argument(kernel, index, matrix.data);
    set_argument(kernel, index, static_cast<cl_long>(matrix.ld));
    set_argument(kernel, index, static_cast<cl_long>(matrix.stride));
  }
  void set_argument(cl_kernel kernel, cl_uint& index, const LocalBytes& local) {
    check_status(clSetKernelArg(kernel, index++, static_cast<std::size_t>(local.bytes), nullptr), "clSetKernelArg");
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void set_argument(cl_kernel kernel, cl_uint& index, const T& value) {
    check_status(clSetKernelArg(kernel, index++, sizeof value, &value), "clSetKernelArg");
  }
  void enqueue(cl_kernel kernel, std::int64_t groups, int work_group);
  void run_first(cl_kernel kernel, std::int64_t groups, int work_group, const Pointer<std::int32_t>& condition);
  void read_properties(const QueueOptions& options);

  Connection connection_;
  cl_mem dummy_ = nullptr;  // zeros; stands for absent buffers
  cl_mem partials_ = nullptr;
  std::int64_t partials_bytes_ = 0;
  std::int64_t memory_bytes_ = 0, max_allocation_bytes_ = 0, limit_bytes_ = 0, local_bytes_ = 0;
  std::int64_t max_work_group_ = 1;
  int compute_units_ = 1;
  bool has_double_ = false, is_gpu_ = false;
  std::mutex mutex_;  // guards the memory account: results may be freed by other threads
  std::unordered_map<cl_mem, std::int64_t> allocations_;
  std::int64_t allocated_bytes_ = 0;
  std::optional<Programs> programs_;
};

}  // namespace qrane::backend::opencl
