// SPDX-License-Identifier: Apache-2.0
// The OpenCL queue: memory, limits, and what devices there are.
#include "opencl/queue/queue.hpp"

#include <algorithm>
#include <limits>

#include "opencl/queue/device.hpp"
#include "opencl/queue/device_query.hpp"
#include "opencl/reach.hpp"
#include "vocabulary/reserve.hpp"

namespace qrane::backend::opencl {

Queue::Queue(int device_index, cl_command_queue user_queue, std::int64_t memory_limit_bytes,
             const QueueOptions& options)
    : device_(std::make_shared<Device>(device_index, user_queue, memory_limit_bytes, options)) {}

Pointer<std::byte> Queue::allocate(Index bytes) const {
  return {allocate_with_reserves([&] { return device_->allocate(bytes); }), 0};
}

void Queue::release(Pointer<std::byte> p) const noexcept {
  if (p) device_->release(p.memory);
}

Index Queue::available_bytes() const { return device_->available_bytes(); }

void Queue::write_bytes(const void* source, Pointer<std::byte> target, Index bytes) const {
  if (bytes == 0) return;
  check_finished(clEnqueueWriteBuffer(device_->queue(), target.memory, CL_TRUE, static_cast<std::size_t>(target.offset),
                                      static_cast<std::size_t>(bytes), source, 0, nullptr, nullptr),
                 detail::concat("upload of ", bytes, " bytes"));
}

void Queue::read_bytes(Pointer<std::byte> source, void* target, Index bytes) const {
  if (bytes == 0) return;
  check_finished(clEnqueueReadBuffer(device_->queue(), source.memory, CL_TRUE, static_cast<std::size_t>(source.offset),
                                     static_cast<std::size_t>(bytes), target, 0, nullptr, nullptr),
                 detail::concat("download of ", bytes, " bytes"));
}

void Queue::synchronize() const { check_finished(clFinish(device_->queue()), "clFinish"); }

Queue Queue::when(Pointer<std::int32_t> condition) const {
  Queue queue = *this;
  queue.condition_ = condition;
  return queue;
}

double Queue::build_seconds() const { return device_->programs().build_seconds(); }
void Queue::on_build(BuildNotice notice) const { device_->programs().on_build(std::move(notice)); }

cl_context Queue::context() const { return device_->context(); }
cl_command_queue Queue::command_queue() const { return device_->queue(); }

std::chrono::steady_clock::time_point Queue::record() {
  synchronize();
  return std::chrono::steady_clock::now();
}

template <class T>
Limits Queue::limits(T) const {
  Limits limits;
  limits.max_panel_cols = panel_cols;
  limits.has_double = device_->has_double();
  limits.host_pivot_cols = std::numeric_limits<std::int32_t>::max();
  limits.max_allocation_bytes = device_->max_allocation_bytes();
  limits.max_cholesky =
      device_->has_double()
          ? static_cast<int>(std::min<std::int64_t>(512, (device_->local_bytes() - 4096) / 16 / 32 * 32))
          : 0;
  limits.max_block_rows = max_block_rows<T>(*device_);
  limits.front_update_cols = front_update_cols<T>(*device_);
  // what a group works through while others do the same, and what would fit into the local memory of most devices
  limits.front_whole_elements = std::min<std::int64_t>(device_->local_bytes(), 49152) / static_cast<Index>(sizeof(T));
  return limits;
}

template Limits Queue::limits(float) const;
template Limits Queue::limits(double) const;

std::vector<DeviceInfo> device_infos(std::string* reason) noexcept try {
  const QueueOptions limits = lowered({});
  std::vector<DeviceInfo> infos;
  for (cl_device_id device : all_devices(reason)) {
    DeviceInfo info;
    info.backend = Backend::opencl;
    info.index = static_cast<int>(infos.size());
    info.name = device_text(device, CL_DEVICE_NAME);
    info.driver = detail::concat(platform_name(device), ", ", device_text(device, CL_DEVICE_VERSION), ", driver ",
                                 device_text(device, CL_DRIVER_VERSION));
    // OpenCL does not tell what is free
    info.memory_bytes = info.free_bytes =
        static_cast<std::int64_t>(device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
    info.compute_units = static_cast<int>(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
    info.is_gpu = (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
    info.architecture = info.is_gpu ? "gpu" : "cpu";
    info.has_double = limits.use_double && has_fp64(device);
    infos.push_back(std::move(info));
  }
  return infos;
} catch (const std::exception& error) {
  if (reason) *reason = error.what();
  return {};
}

bool holds(cl_mem buffer, Index bytes) {
  std::size_t size = 0;
  return buffer != nullptr && clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS &&
         bytes >= 0 && static_cast<std::size_t>(bytes) <= size;
}

}  // namespace qrane::backend::opencl
