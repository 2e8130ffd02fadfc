// SPDX-License-Identifier: Apache-2.0
#include "opencl/queue/programs.hpp"

#include <chrono>

#include <qrane/error.hpp>

#include "opencl/queue/binary_cache.hpp"
#include "opencl/queue/device.hpp"
#include "opencl/queue/device_query.hpp"
#include "opencl/queue/sources.hpp"

namespace qrane::backend::opencl {

namespace {

/// Adds the seconds of its life to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  ~Timed() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();  // without the zero at its end
}

}  // namespace

Programs::Programs(cl_context context, cl_device_id device, bool has_double)
    : context_(context), device_(device), has_double_(has_double) {
  // PoCL has its own cache of programs. A request for a binary makes it compile each kernel a second time, and copy the
  // files of that cache while other processes may be adding to them.
  stores_binaries_ = platform_name(device) != "Portable Computing Language";
  options_ = "-cl-std=CL1.2 -w";  // drivers print warnings on the user's terminal
  if (device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  build_key_ = detail::concat(device_text(device, CL_DEVICE_NAME), "|", device_text(device, CL_DEVICE_VENDOR), "|",
                              device_text(device, CL_DEVICE_VERSION), "|", device_text(device, CL_DRIVER_VERSION), "|");
}

Programs::~Programs() {
  for (auto& [name, kernel] : kernels_) clReleaseKernel(kernel);
  for (auto& [name, program] : programs_) clReleaseProgram(program);
}

void Programs::announce(const std::string& what) {
  if (!notice_ || build_seconds_ < next_notice_) return;
  next_notice_ = build_seconds_ + 1;
  notice_(what, build_seconds_);
}

void Programs::count_in(cl_kernel kernel, const std::function<void()>& work) {
  char name[64] = "";
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
  announce(name);
  const Timed timed(build_seconds_);
  work();
}

cl_program Programs::build(const std::string& source) {
  const std::string key = build_key_ + options_ + "|" + source;
  cl_int status = CL_SUCCESS;
  const std::vector<unsigned char> stored = stores_binaries_ ? load_binary(key) : std::vector<unsigned char>();
  if (!stored.empty()) {
    const unsigned char* data = stored.data();
    const std::size_t size = stored.size();
    cl_int loaded = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(context_, 1, &device_, &size, &data, &loaded, &status);
    if (status == CL_SUCCESS) {
      if (loaded == CL_SUCCESS &&
          clBuildProgram(program, 1, &device_, options_.c_str(), nullptr, nullptr) == CL_SUCCESS)
        return program;
      clReleaseProgram(program);
    }
  }
  const char* text = source.c_str();
  const std::size_t length = source.size();
  cl_program program = clCreateProgramWithSource(context_, 1, &text, &length, &status);
  check_status(status, "clCreateProgramWithSource");
  status = clBuildProgram(program, 1, &device_, options_.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) {
    const std::string log = build_log(program, device_);
    clReleaseProgram(program);
    throw Error(ErrorCode::device, detail::concat("OpenCL: building a program with ", options_,
                                                  " failed: ", status_name(status), "\n", log));
  }
  if (stores_binaries_) store_binary(key, program_binary(program));
  return program;
}

cl_kernel Programs::kernel(const std::vector<std::string>& files, const std::string& name, const Defines& defines,
                           const std::string& more) {
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
    announce(files.back());
    const Timed timed(build_seconds_);
    program = programs_.emplace(program_key, build(source)).first;
  }
  cl_int status = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program->second, name.c_str(), &status);
  check_status(status, "creating kernel \"" + name + "\"");
  new_kernels_.insert(kernel);
  return kernels_.emplace(kernel_key, kernel).first->second;
}

}  // namespace qrane::backend::opencl
