// SPDX-License-Identifier: Apache-2.0
// The queue's memory, data movement and reductions.
#include "opencl/queue/queue.hpp"

#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "vocabulary/reserve.hpp"

namespace qrane::backend::opencl {

static_assert(Vocabulary<Queue, OpenCL, float>);
static_assert(Vocabulary<Queue, OpenCL, double>);

Queue::Queue(int device_index, cl_command_queue user_queue, std::int64_t memory_limit_bytes,
             const QueueOptions& options)
    : device_(std::make_shared<Device>(device_index, user_queue, memory_limit_bytes, options)) {}

Pointer<std::byte> Queue::allocate(Index bytes) {
  return {allocate_with_reserves([&] { return device_->allocate(bytes); }), 0};
}

void Queue::release(Pointer<std::byte> p) noexcept {
  if (p) device_->release(p.memory);
}

Index Queue::available_bytes() const { return device_->available_bytes(); }

void Queue::write_bytes(const void* source, Pointer<std::byte> target, Index bytes) {
  if (bytes == 0) return;
  check_status(clEnqueueWriteBuffer(device_->queue(), target.memory, CL_TRUE, static_cast<std::size_t>(target.offset),
                                    static_cast<std::size_t>(bytes), source, 0, nullptr, nullptr),
               detail::concat("upload of ", bytes, " bytes"));
}

void Queue::read_bytes(Pointer<std::byte> source, void* target, Index bytes) {
  if (bytes == 0) return;
  check_status(clEnqueueReadBuffer(device_->queue(), source.memory, CL_TRUE, static_cast<std::size_t>(source.offset),
                                   static_cast<std::size_t>(bytes), target, 0, nullptr, nullptr),
               detail::concat("download of ", bytes, " bytes"));
}

void Queue::synchronize() { check_status(clFinish(device_->queue()), "clFinish"); }

Queue Queue::when(Pointer<std::int32_t> condition) const {
  Queue queue = *this;
  queue.condition_ = condition;
  return queue;
}

cl_context Queue::context() const { return device_->context(); }
cl_command_queue Queue::command_queue() const { return device_->queue(); }

std::chrono::steady_clock::time_point Queue::record() {
  synchronize();
  return std::chrono::steady_clock::now();
}

template <class S, class T>
void Queue::convert(const Matrix<S>& source, const Matrix<T>& target, Part part) {
  using Real = std::conditional_t<std::is_same_v<S, T>, T, float>;
  const int work_group = device_->work_group(64);
  const auto stored = [&](bool wide) { return wide ? "stored_wide" : type_name<Real>; };
  constexpr bool widens = !std::is_same_v<S, T> && std::is_same_v<T, double>;
  constexpr bool narrows = !std::is_same_v<S, T> && std::is_same_v<S, double>;
  Defines defines = real_defines<Real>(work_group);
  defines.emplace_back("SOURCE", stored(narrows));
  defines.emplace_back("TARGET", stored(widens));
  defines.emplace_back("CONVERT(x)", widens ? "from_wide(x)" : narrows ? "to_wide(x)" : "(x)");
  if (!narrows && !widens) check_scalar<T>(*device_);
  const int lanes = strip_lanes(target.rows, work_group);
  device_->launch(device_->kernel({"copy.cl"}, "copy", defines),
                  strip_groups(strip_count(target.rows, target.cols, target.count, lanes, work_group)), work_group,
                  condition_, source, target, target.rows, target.cols, target.count, lanes, static_cast<int>(part));
}

template <class T>
void Queue::copy(const Matrix<T>& source, const Matrix<T>& target, Part part) {
  convert(source, target, part);
}

template <class T>
void Queue::narrow(const Matrix<double>& source, const Matrix<T>& target, Part part) {
  convert(source, target, part);
}

template <class T>
void Queue::widen(const Matrix<T>& source, const Matrix<double>& target) {
  convert(source, target, Part::all);
}

template <class T>
void Queue::transpose(const Matrix<T>& source, const Matrix<T>& target) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(256);
  const Index tiles = (source.rows + 15) / 16 * ((source.cols + 15) / 16) * source.count;
  device_->launch(device_->kernel({"transpose.cl"}, "transpose", real_defines<T>(work_group)), strip_groups(tiles),
                  work_group, condition_, source, target, source.rows, source.cols, source.count);
}

namespace {

// What copy.cl needs for kernels that leave the scalar as it is.
template <class T>
Defines same_scalar_defines(int work_group) {
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("SOURCE", type_name<T>);
  defines.emplace_back("TARGET", type_name<T>);
  defines.emplace_back("CONVERT(x)", "(x)");
  return defines;
}

}  // namespace

template <class T>
void Queue::copy_rows(const Matrix<T>& source, Pointer<std::int64_t> sources, const Matrix<T>& target,
                      Pointer<std::int64_t> targets, Index count) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(64);
  const int lanes = strip_lanes(count, work_group);
  device_->launch(device_->kernel({"copy.cl"}, "copy_rows", same_scalar_defines<T>(work_group)),
                  strip_groups(strip_count(count, source.cols, source.count, lanes, work_group)), work_group,
                  condition_, source, sources, target, targets, count, source.cols, source.count, lanes);
}

template <class T>
void Queue::fill(const Matrix<T>& a, T off_diagonal, T diagonal) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(64);
  const int lanes = strip_lanes(a.rows, work_group);
  device_->launch(device_->kernel({"copy.cl"}, "fill", same_scalar_defines<T>(work_group)),
                  strip_groups(strip_count(a.rows, a.cols, a.count, lanes, work_group)), work_group, condition_, a,
                  a.rows, a.cols, a.count, lanes, off_diagonal, diagonal);
}

namespace {

// Partial results of a reduction: as many as keep the device busy, and fit the scratch.
Index partial_count(const Device& device, Index strips, Scratch<OpenCL> scratch) {
  const Index wanted = std::min<Index>(strips, 16 * static_cast<Index>(device.compute_units()));
  return std::max<Index>(1, std::min<Index>({wanted, 4096, scratch.bytes / 8}));
}

}  // namespace

template <class T>
void Queue::reduce(Reduction kind, const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(device_->is_gpu() ? 256 : 64);
  const Defines defines = real_defines<T>(work_group);
  const int lanes = strip_lanes(a.rows, work_group);
  const Index partials = partial_count(*device_, strip_count(a.rows, a.cols, 1, lanes, work_group), scratch);
  const Pointer<double> partial = partials > 1 ? cast_pointer<double>(scratch.data) : result;
  device_->launch(device_->kernel({"reduce.cl"}, "reduce", defines), partials, work_group, condition_, a, partial,
                  a.rows, a.cols, lanes, static_cast<int>(kind));
  if (partials > 1)
    device_->launch(device_->kernel({"reduce.cl"}, "reduce_partials", defines), 1, work_group, condition_, partial,
                    result, partials, static_cast<int>(kind));
}

template <class T>
void Queue::sum_squares(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch) {
  reduce(Reduction::sum_squares, a, result, scratch);
}

template <class T>
void Queue::sum_abs(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch) {
  reduce(Reduction::sum_abs, a, result, scratch);
}

template <class T>
void Queue::max_abs(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch) {
  reduce(Reduction::max_abs, a, result, scratch);
}

template <class T>
void Queue::first_not_finite(const Matrix<T>& a, Pointer<std::int64_t> row_col, Scratch<OpenCL> scratch) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(device_->is_gpu() ? 256 : 64);
  const Defines defines = real_defines<T>(work_group);
  const int lanes = strip_lanes(a.rows, work_group);
  const Index partials = partial_count(*device_, strip_count(a.rows, a.cols, 1, lanes, work_group), scratch);
  const Pointer<std::int64_t> partial = partials > 1 ? cast_pointer<std::int64_t>(scratch.data) : row_col;
  device_->launch(device_->kernel({"reduce.cl"}, "find_not_finite", defines), partials, work_group, condition_, a,
                  partial, a.rows, a.cols, lanes);
  device_->launch(device_->kernel({"reduce.cl"}, "first_not_finite", defines), 1, work_group, condition_, partial,
                  row_col, partials, a.rows);
}

std::vector<DeviceInfo> device_infos(std::string* reason) noexcept try {
  const auto text = [](cl_device_id device, cl_device_info what) {
    char value[256] = "";
    clGetDeviceInfo(device, what, sizeof value - 1, value, nullptr);
    return std::string(value);
  };
  std::vector<DeviceInfo> infos;
  for (cl_device_id device : all_devices(reason)) {
    DeviceInfo info;
    info.backend = Backend::opencl;
    info.index = static_cast<int>(infos.size());
    info.name = text(device, CL_DEVICE_NAME);
    info.driver = text(device, CL_DEVICE_VERSION) + ", driver " + text(device, CL_DRIVER_VERSION);
    cl_ulong bytes = 0;
    clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
    info.memory_bytes = info.free_bytes = static_cast<std::int64_t>(bytes);  // OpenCL does not tell what is free
    cl_uint units = 0;
    clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
    info.compute_units = static_cast<int>(units);
    cl_device_type type = 0;
    clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
    info.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
    info.architecture = info.is_gpu ? "gpu" : "cpu";
    cl_device_fp_config fp64 = 0;
    clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof fp64, &fp64, nullptr);
    info.has_double = fp64 != 0;
    infos.push_back(std::move(info));
  }
  return infos;
} catch (const std::exception&) {
  return {};
}

bool holds(cl_mem buffer, Index bytes) {
  std::size_t size = 0;
  return buffer != nullptr && clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS &&
         bytes >= 0 && static_cast<std::size_t>(bytes) <= size;
}

template void Queue::copy(const Matrix<float>&, const Matrix<float>&, Part);
template void Queue::copy(const Matrix<double>&, const Matrix<double>&, Part);
template void Queue::narrow(const Matrix<double>&, const Matrix<float>&, Part);
template void Queue::narrow(const Matrix<double>&, const Matrix<double>&, Part);
template void Queue::widen(const Matrix<float>&, const Matrix<double>&);
template void Queue::widen(const Matrix<double>&, const Matrix<double>&);
template void Queue::transpose(const Matrix<float>&, const Matrix<float>&);
template void Queue::transpose(const Matrix<double>&, const Matrix<double>&);
template void Queue::copy_rows(const Matrix<float>&, Pointer<std::int64_t>, const Matrix<float>&, Pointer<std::int64_t>,
                               Index);
template void Queue::copy_rows(const Matrix<double>&, Pointer<std::int64_t>, const Matrix<double>&,
                               Pointer<std::int64_t>, Index);
template void Queue::fill(const Matrix<float>&, float, float);
template void Queue::fill(const Matrix<double>&, double, double);
template void Queue::sum_squares(const Matrix<float>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::sum_squares(const Matrix<double>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::sum_abs(const Matrix<float>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::sum_abs(const Matrix<double>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::max_abs(const Matrix<float>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::max_abs(const Matrix<double>&, Pointer<double>, Scratch<OpenCL>);
template void Queue::first_not_finite(const Matrix<float>&, Pointer<std::int64_t>, Scratch<OpenCL>);
template void Queue::first_not_finite(const Matrix<double>&, Pointer<std::int64_t>, Scratch<OpenCL>);

}  // namespace qrane::backend::opencl
