// SPDX-License-Identifier: Apache-2.0
#include "opencl/queue/device.hpp"

#include <algorithm>
#include <utility>

#include "opencl/queue/device_query.hpp"

namespace qrane::backend::opencl {

namespace {

// What drivers answer after a kernel has failed or the device has gone.
bool means_lost(cl_int status) {
  constexpr cl_int nvidia_illegal_access = -9999;
  return status == CL_DEVICE_NOT_AVAILABLE || status == CL_OUT_OF_RESOURCES || status == CL_INVALID_COMMAND_QUEUE ||
         status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST || status == nvidia_illegal_access;
}

bool means_out_of_memory(cl_int status) {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES ||
         status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_BUFFER_SIZE;
}

}  // namespace

std::string status_name(cl_int status) {
  static constexpr std::pair<cl_int, const char*> names[] = {
      {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
      {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
      {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
      {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
      {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
      {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
      {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
      {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
      {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
      {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
      {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
      {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
      {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
      {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
  };
  for (const auto& [code, name] : names)
    if (code == status) return name;
  return detail::concat("error ", status);
}

void check_status(cl_int status, const std::string& operation) {
  detail::check(status == CL_SUCCESS, ErrorCode::device, "OpenCL: ", operation, " failed: ", status_name(status));
}

void check_finished(cl_int status, const std::string& operation) {
  detail::check(!means_lost(status), ErrorCode::device, "OpenCL: ", operation, " failed: ", status_name(status),
                "; the device is lost or a kernel failed on it, and this context cannot go on");
  check_status(status, operation);
}

std::vector<cl_device_id> all_devices(std::string* reason) {
  cl_uint platform_count = 0;
  const cl_int status = clGetPlatformIDs(0, nullptr, &platform_count);
  std::vector<cl_platform_id> platforms(status == CL_SUCCESS ? platform_count : 0);
  if (!platforms.empty()) clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  std::vector<cl_device_id> devices;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    const std::size_t first = devices.size();
    devices.resize(first + count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data() + first, nullptr);
  }
  std::stable_partition(devices.begin(), devices.end(), [](cl_device_id device) {
    return (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
  });
  if (reason && platforms.empty()) *reason = "no OpenCL platform is installed";
  if (reason && !platforms.empty() && devices.empty()) *reason = "no OpenCL platform has a device";
  return devices;
}

Connection::Connection(int index, cl_command_queue given) {
  cl_int status = CL_SUCCESS;
  if (given) {
    check_status(clGetCommandQueueInfo(given, CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                 "reading the given queue");
    cl_context of_queue = nullptr;
    check_status(clGetCommandQueueInfo(given, CL_QUEUE_CONTEXT, sizeof of_queue, &of_queue, nullptr),
                 "reading the given queue");
    cl_command_queue_properties properties = 0;
    check_status(clGetCommandQueueInfo(given, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
                 "reading the given queue");
    detail::check(!(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), ErrorCode::invalid_argument,
                  "the given OpenCL command queue is out of order; qrane needs an in-order queue");
    check_status(clRetainContext(of_queue), "clRetainContext");
    context.reset(of_queue);
    check_status(clRetainCommandQueue(given), "clRetainCommandQueue");
    queue.reset(given);
  } else {
    std::string reason;
    const std::vector<cl_device_id> devices = all_devices(&reason);
    detail::check(!devices.empty(), ErrorCode::unavailable, "OpenCL: ", reason);
    detail::check(index >= 0 && index < static_cast<int>(devices.size()), ErrorCode::unavailable,
                  "OpenCL device index ", index, " is not one of the ", devices.size(), " present");
    device = devices[index];
    context.reset(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
    check_status(status, "clCreateContext");
    queue.reset(clCreateCommandQueue(context.get(), device, 0, &status));
    check_status(status, "clCreateCommandQueue");
  }
}

Device::Device(int index, cl_command_queue queue, std::int64_t memory_limit_bytes, const QueueOptions& options)
    : connection_(index, queue) {
  read_properties(lowered(options));
  limit_bytes_ = memory_limit_bytes > 0 ? memory_limit_bytes : memory_bytes_;
  programs_.emplace(context(), id(), has_double_);
  std::vector<char> zeros(256);
  cl_int status = CL_SUCCESS;
  dummy_ = clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, zeros.size(), zeros.data(), &status);
  check_status(status, "clCreateBuffer");
}

Device::~Device() {
  clFinish(queue());
  for (auto& [memory, bytes] : allocations_) clReleaseMemObject(memory);
  clReleaseMemObject(dummy_);
}

void Device::read_properties(const QueueOptions& options) {
  has_double_ = options.use_double && has_fp64(id());
  is_gpu_ = (device_value<cl_device_type>(id(), CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
  memory_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id(), CL_DEVICE_GLOBAL_MEM_SIZE));
  max_allocation_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id(), CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  local_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id(), CL_DEVICE_LOCAL_MEM_SIZE));
  max_work_group_ = static_cast<std::int64_t>(device_value<std::size_t>(id(), CL_DEVICE_MAX_WORK_GROUP_SIZE));
  compute_units_ = std::max(1, static_cast<int>(device_value<cl_uint>(id(), CL_DEVICE_MAX_COMPUTE_UNITS)));
  if (options.max_local_bytes > 0) local_bytes_ = std::min(local_bytes_, options.max_local_bytes);
  if (options.max_work_group > 0) max_work_group_ = std::min(max_work_group_, options.max_work_group);
  is_gpu_ = is_gpu_ || options.as_gpu;
  const std::string name = device_text(id(), CL_DEVICE_NAME);
  detail::check(max_work_group_ >= 8, ErrorCode::unavailable, "OpenCL device \"", name, "\" takes work-groups of ",
                max_work_group_, " work-items; qrane needs 8");
  detail::check(local_bytes_ >= 16384, ErrorCode::unavailable, "OpenCL device \"", name, "\" has ", local_bytes_,
                " bytes of local memory; qrane needs 16384");
}

int Device::work_group(int wanted) const {
  int size = 1;
  while (2 * size <= std::min<std::int64_t>(wanted, max_work_group_)) size *= 2;
  return size;
}

cl_mem Device::allocate(std::int64_t bytes) {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "allocation of ", bytes, " bytes");
  const std::int64_t size = std::max<std::int64_t>(bytes, 256);
  const std::lock_guard lock(mutex_);
  const std::int64_t free_bytes = std::max<std::int64_t>(0, limit_bytes_ - allocated_bytes_);
  detail::check(size <= free_bytes, ErrorCode::out_of_memory, "OpenCL device memory: ", size, " bytes needed, ",
                free_bytes, " free of ", limit_bytes_);
  detail::check(size <= max_allocation_bytes_, ErrorCode::out_of_memory, "OpenCL device memory: ", size,
                " bytes needed in one buffer, and the device's largest buffer has ", max_allocation_bytes_);
  cl_int status = CL_SUCCESS;
  cl_mem memory = clCreateBuffer(context(), CL_MEM_READ_WRITE, static_cast<std::size_t>(size), nullptr, &status);
  if (status == CL_SUCCESS) {
    // Some drivers reserve memory at first use; ask now, where the caller can still do something about it.
    status =
        clEnqueueMigrateMemObjects(queue(), 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
    if (status != CL_SUCCESS) clReleaseMemObject(memory);
  }
  detail::check(!means_out_of_memory(status), ErrorCode::out_of_memory, "OpenCL device memory: ", size,
                " bytes needed, at most ", free_bytes, " free of ", limit_bytes_);
  check_status(status, detail::concat("allocating ", size, " bytes"));
  try {
    allocations_.emplace(memory, size);
  } catch (...) {
    clReleaseMemObject(memory);
    throw;
  }
  allocated_bytes_ += size;
  return memory;
}

std::int64_t Device::available_bytes() {
  const std::lock_guard lock(mutex_);
  return std::max<std::int64_t>(0, limit_bytes_ - allocated_bytes_);
}

void Device::release(cl_mem memory) noexcept {
  // The runtime keeps the buffer until the commands that use it have run.
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(memory);
  if (found == allocations_.end()) return;
  allocated_bytes_ -= found->second;
  allocations_.erase(found);
  clReleaseMemObject(memory);
}

cl_mem Device::partials(std::int64_t bytes, std::int64_t& granted) {
  if (partials_bytes_ < bytes) {
    if (partials_) release(partials_);
    partials_ = nullptr;
    partials_bytes_ = 0;
    try {
      partials_ = allocate(bytes);
      partials_bytes_ = bytes;
    } catch (const Error&) {  // products then run in one chunk: slower, and as right
    }
  }
  granted = std::min(bytes, partials_bytes_);
  return partials_;
}

void Device::run_first(cl_kernel kernel, std::int64_t groups, int work_group, const Pointer<std::int32_t>& condition) {
  check_finished(clFinish(queue()), "clFinish");
  cl_uint index = 0;
  set_argument(kernel, index, Pointer<std::int32_t>{dummy_, 0});
  programs_->count_in(kernel, [&] {
    enqueue(kernel, groups, work_group);
    check_finished(clFinish(queue()), "building a kernel");
  });
  set_argument(kernel, index = 0, condition);
}

void Device::enqueue(cl_kernel kernel, std::int64_t groups, int work_group) {
  const std::size_t local = static_cast<std::size_t>(work_group);
  const std::size_t global = static_cast<std::size_t>(groups) * local;
  const cl_int status = clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr);
  if (status == CL_SUCCESS) return;
  char name[64] = "";
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
  detail::check(status != CL_MEM_OBJECT_ALLOCATION_FAILURE, ErrorCode::out_of_memory,
                "OpenCL device memory ran out when kernel \"", name, "\" was given to it; ", limit_bytes_,
                " bytes in all");
  cl_ulong needed = 0;
  clGetKernelWorkGroupInfo(kernel, id(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof needed, &needed, nullptr);
  check_finished(status, detail::concat("kernel \"", name, "\" (", groups, " groups of ", work_group, ", ", needed,
                                        " of ", local_bytes_, " bytes of local memory)"));
}

}  // namespace qrane::backend::opencl
