// SPDX-License-Identifier: Apache-2.0
// Stream, memory and cuBLAS handle of a CUDA queue.
//
// Memory comes from a pool of the queue's own, in stream order: allocation and release do not wait, and a
// factorization repeated finds its memory ready. cuBLAS works in a workspace of its own, so that its products
// can be captured in graphs and repeat bit for bit.
#include "cuda/queue/state.hpp"

#include <algorithm>

#include "cuda/queue/conditional.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr std::int64_t most_spare_host_bytes = std::int64_t{4} << 30;
constexpr std::size_t cublas_workspace_bytes = std::size_t{32} << 20;  // what cuBLAS advises for Hopper

}  // namespace

State::State(int device, cudaStream_t stream, std::int64_t memory_limit_bytes, bool urgent, bool bare)
    : device_(device), stream_(stream), owns_stream_(stream == nullptr), bare_(bare) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) (void)cudaGetLastError();
  detail::check(status == cudaSuccess, ErrorCode::unavailable, "no CUDA device: ", cudaGetErrorString(status));
  detail::check(device >= 0 && device < count, ErrorCode::unavailable, "no CUDA device ", device, ": there are ",
                count);
  detail::check(memory_limit_bytes >= 0, ErrorCode::invalid_argument, "memory_limit_bytes is ", memory_limit_bytes);
  const DeviceScope scope(device);
  try {
    open_stream(urgent);
    std::size_t free_bytes = 0, total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    limited_ = memory_limit_bytes > 0;
    memory_bytes_ = limited_ ? std::min(memory_limit_bytes, static_cast<std::int64_t>(total_bytes))
                             : static_cast<std::int64_t>(total_bytes);
    if (!bare) {
      open_pool();
      open_cublas();
    }
  } catch (...) {
    close();
    throw;
  }
}

void State::open_stream(bool urgent) {
  if (owns_stream_) {
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least),
               "cudaStreamCreate");
  }
  check_cuda(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming), "cudaEventCreate");
}

std::shared_ptr<State> State::side(const std::shared_ptr<State>& main) {
  const std::lock_guard lock(main->mutex_);
  if (!main->side_) {
    main->side_ = std::make_shared<State>(main->device_, nullptr, 0, true, main->bare_);
    main->side_->conditional_nodes_ = main->conditional_nodes_;
  }
  return main->side_;
}

std::shared_ptr<State> State::recorder(const std::shared_ptr<State>& main, bool products) {
  const DeviceScope scope(main->device_);
  if (!main->recorder_) {
    main->recorder_ = std::make_shared<State>(main->device_, nullptr, 0, false, true);
    main->recorder_->conditional_nodes_ = has_conditional_nodes();
  }
  State& recorder = *main->recorder_;
  if (products && recorder.cublas_ == nullptr) recorder.open_cublas(main->cublas_workspace_);
  const auto main_side = [&] {
    const std::lock_guard lock(main->mutex_);
    return main->side_;
  }();
  if (products && main_side && side(main->recorder_)->cublas_ == nullptr)
    recorder.side_->open_cublas(main_side->cublas_workspace_);
  return main->recorder_;
}

std::shared_ptr<State> State::body(const std::shared_ptr<State>& main) {
  const std::lock_guard lock(main->mutex_);
  if (!main->body_) {
    main->body_ = std::make_shared<State>(main->device_, nullptr, 0, false, true);
    main->body_->conditional_nodes_ = true;
  }
  return main->body_;
}

std::shared_ptr<State> State::lane(const std::shared_ptr<State>& main, int number, bool urgent) {
  const std::lock_guard lock(main->mutex_);
  const auto place = static_cast<std::size_t>(number);
  if (main->lanes_.size() <= place) main->lanes_.resize(place + 1);
  std::shared_ptr<State>& lane = main->lanes_[place];
  if (!lane) lane = std::make_shared<State>(main->device_, nullptr, 0, urgent, true);
  return lane;
}

void State::follow(State& other) {
  const DeviceScope scope(device_);
  check_cuda(cudaEventRecord(other.reached_, other.stream_), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream_, other.reached_, 0), "cudaStreamWaitEvent");
}

void State::open_pool() {
  if (device_attribute(cudaDevAttrMemoryPoolsSupported) == 0) return;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device_;
  check_cuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  // Freed memory up to a quarter of the device stays here instead of going back at each synchronization.
  std::size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  std::uint64_t keep_bytes = total_bytes / 4;
  check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_bytes), "cudaMemPoolSetAttribute");
}

void State::open_cublas() {
  check_cuda(cudaMalloc(&cublas_workspace_, cublas_workspace_bytes), "cudaMalloc of cuBLAS's workspace");
  open_cublas(cublas_workspace_);
}

void State::open_cublas(void* workspace) {
  check_cublas(cublasCreate(&cublas_), "cublasCreate");
  check_cublas(cublasSetStream(cublas_, stream_), "cublasSetStream");  // forgets the workspace, so it comes first
  check_cublas(cublasSetWorkspace(cublas_, workspace, cublas_workspace_bytes), "cublasSetWorkspace");
  check_cublas(cublasSetPointerMode(cublas_, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
  check_cublas(cublasSetMathMode(cublas_, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");  // no TF32
}

State::~State() {
  int before = 0;
  const bool known = cudaGetDevice(&before) == cudaSuccess && cudaSetDevice(device_) == cudaSuccess;
  close();
  if (known) (void)cudaSetDevice(before);
}

void State::close() noexcept {
  if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
  if (cublas_ != nullptr) (void)cublasDestroy(cublas_);
  if (cublas_workspace_ != nullptr) (void)cudaFree(cublas_workspace_);
  if (pool_ != nullptr) (void)cudaMemPoolDestroy(pool_);
  for (const auto& [bytes, p] : spare_host_) (void)cudaFreeHost(p);
  if (reached_ != nullptr) (void)cudaEventDestroy(reached_);
  if (owns_stream_ && stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  (void)cudaGetLastError();
}

cudaError_t State::device_allocate(void** p, std::size_t bytes) {
  if (pool_ == nullptr) return cudaMalloc(p, bytes);
  cudaError_t status = cudaMallocFromPoolAsync(p, bytes, pool_, stream_);
  if (status != cudaErrorMemoryAllocation) return status;
  // Once more after what was freed has come back from the stream and left the pool.
  (void)cudaGetLastError();
  status = cudaStreamSynchronize(stream_);
  if (status != cudaSuccess) return status;
  (void)cudaMemPoolTrimTo(pool_, 0);
  return cudaMallocFromPoolAsync(p, bytes, pool_, stream_);
}

std::byte* State::allocate(std::int64_t bytes) {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "cannot allocate ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  detail::check(!limited_ || bytes <= memory_bytes_ - used_bytes_, ErrorCode::out_of_memory, "CUDA device ", device_,
                " is out of memory: needed ", bytes, " bytes, free ", memory_bytes_ - used_bytes_,
                " bytes (of a limit of ", memory_bytes_, ")");
  const DeviceScope scope(device_);
  void* p = nullptr;
  const cudaError_t status = device_allocate(&p, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    std::size_t free_bytes = 0, total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw Error(ErrorCode::out_of_memory, detail::concat("CUDA device ", device_, " is out of memory: needed ", bytes,
                                                         " bytes, free ", free_bytes, " bytes"));
  }
  check_cuda(status, "allocation of device memory");
  try {
    sizes_.emplace(static_cast<std::byte*>(p), bytes);
  } catch (...) {
    (void)(pool_ != nullptr ? cudaFreeAsync(p, stream_) : cudaFree(p));
    throw;
  }
  used_bytes_ += bytes;
  return static_cast<std::byte*>(p);
}

std::int64_t State::available_bytes() {
  const std::lock_guard lock(mutex_);
  const DeviceScope scope(device_);
  std::size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  auto bytes = static_cast<std::int64_t>(free_bytes);
  if (pool_ != nullptr) {  // what it keeps and nobody uses
    std::uint64_t kept = 0, used = 0;
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &kept), "cudaMemPoolGetAttribute");
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
    bytes += static_cast<std::int64_t>(kept - used);
  }
  return limited_ ? std::min(bytes, memory_bytes_ - used_bytes_) : bytes;
}

void State::release(std::byte* p) noexcept {
  if (p == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(p);
  if (found == sizes_.end()) return;
  used_bytes_ -= found->second;
  sizes_.erase(found);
  int before = 0;  // another thread's device, and default streams do not name theirs
  const bool known = cudaGetDevice(&before) == cudaSuccess && cudaSetDevice(device_) == cudaSuccess;
  cudaError_t status = cudaSuccess;
  if (pool_ != nullptr) {
    status = cudaFreeAsync(p, stream_);
  } else {
    (void)cudaStreamSynchronize(stream_);
    status = cudaFree(p);
  }
  if (known) (void)cudaSetDevice(before);
  if (status != cudaSuccess) (void)cudaGetLastError();
}

std::byte* State::allocate_host(std::int64_t bytes) {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "cannot allocate ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  constexpr std::int64_t slack = 1 << 20;
  if (const auto spare = spare_host_.lower_bound(bytes);
      spare != spare_host_.end() && spare->first <= 2 * bytes + slack) {
    std::byte* const p = spare->second;
    host_sizes_.emplace(p, spare->first);
    spare_host_bytes_ -= spare->first;
    spare_host_.erase(spare);
    return p;
  }
  const DeviceScope scope(device_);
  void* p = nullptr;
  const cudaError_t status = cudaHostAlloc(&p, static_cast<std::size_t>(bytes), cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(ErrorCode::out_of_memory, detail::concat("no ", bytes, " bytes of page-locked host memory"));
  }
  check_cuda(status, "cudaHostAlloc");
  try {
    host_sizes_.emplace(static_cast<std::byte*>(p), bytes);
  } catch (...) {
    (void)cudaFreeHost(p);
    throw;
  }
  return static_cast<std::byte*>(p);
}

void State::release_host(std::byte* p) noexcept {
  if (p == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = host_sizes_.find(p);
  if (found == host_sizes_.end()) return;
  const std::int64_t bytes = found->second;
  host_sizes_.erase(found);
  if (spare_host_bytes_ + bytes <= most_spare_host_bytes) {
    try {
      spare_host_.emplace(bytes, p);
      spare_host_bytes_ += bytes;
      return;
    } catch (const std::bad_alloc&) {  // it is freed instead
    }
  }
  if (cudaFreeHost(p) != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace qrane::backend::cuda
