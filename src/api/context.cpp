// SPDX-License-Identifier: Apache-2.0
// Context: picks an engine; matrices that qrane owns.
#include <qrane/context.hpp>

#include <array>
#include <cstdlib>
#include <utility>

#include "api/engine.hpp"
#include "plan/names.hpp"

namespace qrane {

namespace detail {
#if !QRANE_WITH_CUDA
std::shared_ptr<Engine> make_cuda_engine(const ContextOptions&) {
  throw Error(ErrorCode::unavailable, QRANE_CUDA_REASON);
}
BackendStatus cuda_status() { return {Backend::cuda, false, QRANE_CUDA_REASON, {}}; }
#endif
#if !QRANE_WITH_OPENCL
std::shared_ptr<Engine> make_opencl_engine(const ContextOptions&) {
  throw Error(ErrorCode::unavailable, QRANE_OPENCL_REASON);
}
BackendStatus opencl_status() { return {Backend::opencl, false, QRANE_OPENCL_REASON, {}}; }
#endif
}  // namespace detail

namespace {
constexpr std::array<std::pair<Backend, const char*>, 4> backend_names{
    {{Backend::automatic, "automatic"}, {Backend::cpu, "cpu"}, {Backend::opencl, "opencl"}, {Backend::cuda, "cuda"}}};

std::shared_ptr<detail::Engine> make_engine(const ContextOptions& options) {
  switch (options.backend) {
    case Backend::cpu: return detail::make_cpu_engine(options);
    case Backend::opencl: return detail::make_opencl_engine(options);
    case Backend::cuda: return detail::make_cuda_engine(options);
    case Backend::automatic: break;
  }
  detail::check(!options.stream, ErrorCode::invalid_argument,
                "ContextOptions::stream needs a named backend, cuda or opencl, not automatic");
  ContextOptions chosen = options;
  if (const BackendStatus cuda = detail::cuda_status(); cuda.available) {
    chosen.backend = Backend::cuda;
    return detail::make_cuda_engine(chosen);
  }
  const BackendStatus opencl = detail::opencl_status();
  for (const DeviceInfo& device : opencl.devices) {
    if (!device.is_gpu) continue;
    chosen.backend = Backend::opencl;
    if (options.device == 0) chosen.device = device.index;
    return detail::make_opencl_engine(chosen);
  }
  chosen.backend = Backend::cpu;
  return detail::make_cpu_engine(chosen);
}
}  // namespace

const char* to_string(Backend backend) { return detail::name_of(backend_names, backend); }
Backend backend_from_string(const std::string& name) { return detail::value_of(backend_names, name, "backend"); }

std::vector<BackendStatus> backends() { return {detail::cpu_status(), detail::opencl_status(), detail::cuda_status()}; }

Context::Context(const ContextOptions& options) : engine_(make_engine(options)) { engine_->load_tuning(); }
Backend Context::backend() const { return engine_->backend(); }
DeviceInfo Context::device() const { return engine_->info(); }
void Context::synchronize() const { engine_->synchronize(); }

std::int64_t Context::cached_bytes() const { return engine_->cached_bytes(); }
std::int64_t Context::cache_limit() const { return engine_->cache_limit(); }
void Context::set_cache_limit(std::int64_t bytes) const {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "set_cache_limit: bytes must not be negative, got ", bytes);
  engine_->set_cache_limit(bytes);
}
void Context::clear_cache() const { engine_->clear_cache(); }

template <class T>
Matrix<T> Context::allocate(Index rows, Index cols) const {
  return engine_->scalar<T>().allocate(rows, cols);
}
template <class T>
void Context::copy(std::type_identity_t<MatrixView<const T>> source,
                   std::type_identity_t<MatrixView<T>> destination) const {
  engine_->scalar<T>().copy(source, destination);
}
template <class T>
Matrix<T> Context::to_host(std::type_identity_t<MatrixView<const T>> source) const {
  Matrix<T> out = Matrix<T>::host(source.rows, source.cols);
  copy<T>(source, out.view());
  return out;
}
template <class T>
Matrix<T> Context::to_device(std::type_identity_t<MatrixView<const T>> source) const {
  Matrix<T> out = allocate<T>(source.rows, source.cols);
  copy<T>(source, out.view());
  return out;
}

template <class T>
Matrix<T> Matrix<T>::host(Index rows, Index cols) {
  const Index ld = rows == 0 ? 1 : rows;
  const Index bytes = (backend::bytes_of(ld, cols, 1, sizeof(T)) + 255) / 256 * 256;
  void* memory = bytes > 0 ? std::aligned_alloc(256, static_cast<std::size_t>(bytes)) : nullptr;
  detail::check(memory || bytes == 0, ErrorCode::out_of_memory, "out of host memory: needed ", bytes, " bytes for a ",
                rows, " x ", cols, " matrix");
  std::shared_ptr<void> storage(memory, std::free);
  return Matrix<T>(MatrixView<T>(static_cast<T*>(memory), rows, cols, ld), std::move(storage));
}

#define QRANE_INSTANTIATE(T)                                                \
  template Matrix<T> Context::allocate(Index, Index) const;                 \
  template void Context::copy<T>(MatrixView<const T>, MatrixView<T>) const; \
  template Matrix<T> Context::to_host<T>(MatrixView<const T>) const;        \
  template Matrix<T> Context::to_device<T>(MatrixView<const T>) const;      \
  template Matrix<T> Matrix<T>::host(Index, Index);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane
