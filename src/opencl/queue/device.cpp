// SPDX-License-Identifier: Apache-2.0
#include "opencl/queue/device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "opencl/queue/binary_cache.hpp"
#include "opencl/queue/sources.hpp"

namespace qrane::backend::opencl {

namespace {

template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetDeviceInfo(device, what, size, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  return text;
}

bool is_pocl(cl_device_id device) {
  cl_platform_id platform = nullptr;
  char name[64] = "";
  clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr);
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, nullptr);
  return std::strcmp(name, "Portable Computing Language") == 0;
}

std::string source_text(const std::string& name) {
  for (std::size_t i = 0; i < embedded_text_count; ++i) {
    if (name == embedded_texts[i].name) return detail::whole(embedded_texts[i]);
  }
  throw Error(ErrorCode::device, detail::concat("OpenCL source \"", name, "\" is not in this build"));
}

std::vector<unsigned char> program_binary(cl_program program) {
  std::size_t size = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return {};
  std::vector<unsigned char> binary(size);
  unsigned char* target = binary.data();
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof target, &target, nullptr) != CL_SUCCESS) return {};
  return binary;
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

Device::Device(int index, cl_command_queue queue, std::int64_t memory_limit_bytes, const QueueOptions& options) {
  cl_int status = CL_SUCCESS;
  if (queue) {
    check_status(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id_, &id_, nullptr), "reading the given queue");
    check_status(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context_, &context_, nullptr),
                 "reading the given queue");
    cl_command_queue_properties properties = 0;
    check_status(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
                 "reading the given queue");
    detail::check(!(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), ErrorCode::invalid_argument,
                  "the given OpenCL command queue is out of order; qrane needs an in-order queue");
    check_status(clRetainContext(context_), "clRetainContext");
    check_status(clRetainCommandQueue(queue), "clRetainCommandQueue");
    queue_ = queue;
  } else {
    std::string reason;
    const std::vector<cl_device_id> devices = all_devices(&reason);
    detail::check(!devices.empty(), ErrorCode::unavailable, "OpenCL: ", reason);
    detail::check(index >= 0 && index < static_cast<int>(devices.size()), ErrorCode::unavailable,
                  "OpenCL device index ", index, " is not one of the ", devices.size(), " present");
    id_ = devices[index];
    context_ = clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &status);
    check_status(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, id_, 0, &status);
    check_status(status, "clCreateCommandQueue");
  }
  read_properties(options);
  limit_bytes_ = memory_limit_bytes > 0 ? memory_limit_bytes : memory_bytes_;
  dummy_ = clCreateBuffer(context_, CL_MEM_READ_WRITE, 256, nullptr, &status);
  check_status(status, "clCreateBuffer");
}

Device::~Device() {
  clFinish(queue_);
  for (auto& [name, kernel] : kernels_) clReleaseKernel(kernel);
  for (auto& [name, program] : programs_) clReleaseProgram(program);
  for (auto& [memory, bytes] : allocations_) clReleaseMemObject(memory);
  if (dummy_) clReleaseMemObject(dummy_);
  clReleaseCommandQueue(queue_);
  clReleaseContext(context_);
}

void Device::read_properties(const QueueOptions& options) {
  const std::string extensions = " " + device_text(id_, CL_DEVICE_EXTENSIONS) + " ";
  has_double_ = options.use_double && (extensions.find(" cl_khr_fp64 ") != std::string::npos ||
                                       device_value<cl_device_fp_config>(id_, CL_DEVICE_DOUBLE_FP_CONFIG) != 0);
  is_gpu_ = (device_value<cl_device_type>(id_, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
  rounds_divide_ =
      (device_value<cl_device_fp_config>(id_, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  memory_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id_, CL_DEVICE_GLOBAL_MEM_SIZE));
  max_allocation_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id_, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  local_bytes_ = static_cast<std::int64_t>(device_value<cl_ulong>(id_, CL_DEVICE_LOCAL_MEM_SIZE));
  max_work_group_ = static_cast<std::int64_t>(device_value<std::size_t>(id_, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  compute_units_ = std::max(1, static_cast<int>(device_value<cl_uint>(id_, CL_DEVICE_MAX_COMPUTE_UNITS)));
  if (options.max_local_bytes > 0) local_bytes_ = std::min(local_bytes_, options.max_local_bytes);
  if (options.max_work_group > 0) max_work_group_ = std::min(max_work_group_, options.max_work_group);
  // PoCL has its own cache of programs. A request for a binary makes it compile each kernel a second time, and copy the
  // files of that cache while other processes may be adding to them.
  stores_binaries_ = !is_pocl(id_);
  build_key_ = detail::concat(device_text(id_, CL_DEVICE_NAME), "|", device_text(id_, CL_DEVICE_VENDOR), "|",
                              device_text(id_, CL_DEVICE_VERSION), "|", device_text(id_, CL_DRIVER_VERSION), "|");
  detail::check(max_work_group_ >= 8, ErrorCode::unavailable, "OpenCL device \"", device_text(id_, CL_DEVICE_NAME),
                "\" takes work-groups of ", max_work_group_, " work-items; qrane needs 8");
  detail::check(local_bytes_ >= 16384, ErrorCode::unavailable, "OpenCL device \"", device_text(id_, CL_DEVICE_NAME),
                "\" has ", local_bytes_, " bytes of local memory; qrane needs 16384");
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
  cl_mem memory = clCreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<std::size_t>(size), nullptr, &status);
  if (status == CL_SUCCESS) {
    // Some drivers reserve memory at first use; ask now, where the caller can still do something about it.
    status =
        clEnqueueMigrateMemObjects(queue_, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
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

void Device::enqueue(cl_kernel kernel, std::int64_t groups, int work_group) {
  const std::size_t local = static_cast<std::size_t>(work_group);
  const std::size_t global = static_cast<std::size_t>(groups) * local;
  const cl_int status = clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr);
  if (status == CL_SUCCESS) return;
  char name[64] = "";
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
  detail::check(status != CL_MEM_OBJECT_ALLOCATION_FAILURE, ErrorCode::out_of_memory,
                "OpenCL device memory ran out when kernel \"", name, "\" was given to it; ", limit_bytes_,
                " bytes in all");
  check_status(status, detail::concat("kernel \"", name, "\" (", groups, " groups of ", work_group, ")"));
}

cl_program Device::build(const std::string& source, const std::string& options) {
  const std::string key = build_key_ + options + "|" + source;
  cl_int status = CL_SUCCESS;
  const std::vector<unsigned char> stored = stores_binaries_ ? load_binary(key) : std::vector<unsigned char>();
  if (!stored.empty()) {
    const unsigned char* data = stored.data();
    const std::size_t size = stored.size();
    cl_int loaded = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(context_, 1, &id_, &size, &data, &loaded, &status);
    if (status == CL_SUCCESS) {
      if (loaded == CL_SUCCESS && clBuildProgram(program, 1, &id_, options.c_str(), nullptr, nullptr) == CL_SUCCESS)
        return program;
      clReleaseProgram(program);
    }
  }
  const char* text = source.c_str();
  const std::size_t length = source.size();
  cl_program program = clCreateProgramWithSource(context_, 1, &text, &length, &status);
  check_status(status, "clCreateProgramWithSource");
  status = clBuildProgram(program, 1, &id_, options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) {
    std::size_t size = 0;
    clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    clReleaseProgram(program);
    throw Error(ErrorCode::device, detail::concat("OpenCL: building a program with ", options,
                                                  " failed: ", status_name(status), "\n", log.c_str()));
  }
  if (stores_binaries_) store_binary(key, program_binary(program));
  return program;
}

cl_kernel Device::kernel(const std::vector<std::string>& files, const std::string& name, const Defines& defines,
                         const std::string& more) {
  std::string options = "-cl-std=CL1.2 -w";  // drivers print warnings on the user's terminal
  if (rounds_divide_) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  // As text and not as -D options: drivers differ in how they read parentheses there.
  std::string prologue = detail::concat("#define HAS_DOUBLE ", has_double_ ? 1 : 0, "\n");
  for (const auto& [key, value] : defines) prologue += "#define " + key + " " + value + "\n";
  std::string program_key = prologue;
  for (const std::string& file : files) program_key += "|" + file;
  program_key += "|" + more;
  const std::string kernel_key = program_key + "|" + name;
  if (const auto found = kernels_.find(kernel_key); found != kernels_.end()) return found->second;

  auto program = programs_.find(program_key);
  if (program == programs_.end()) {
    std::string source = prologue + source_text("common.cl");
    for (const std::string& file : files) source += source_text(file);
    source += more;
    program = programs_.emplace(program_key, build(source, options)).first;
  }
  cl_int status = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program->second, name.c_str(), &status);
  check_status(status, "creating kernel \"" + name + "\"");
  return kernels_.emplace(kernel_key, kernel).first->second;
}

}  // namespace qrane::backend::opencl
