// SPDX-License-Identifier: Apache-2.0
// CUDA queue: memory traffic, timing, and the calls of the launchers. Recordings are in recording.cpp.
#include "cuda/queue/queue.hpp"

#include <algorithm>

#include "cuda/queue/state.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/fronts.hpp"
#include "vocabulary/reserve.hpp"

namespace qrane::backend::cuda {

DeviceScope::DeviceScope(int device) {
  check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device) check_cuda(cudaSetDevice(device), "cudaSetDevice");
  changed_ = before_ != device;
}
DeviceScope::~DeviceScope() {
  if (changed_) (void)cudaSetDevice(before_);
}

Launch::Launch(const Queue& queue)
    : stream(queue.state_->stream()), condition(queue.condition_), scope_(queue.state_->device()) {}

Queue::Queue(int device, void* stream, std::int64_t memory_limit_bytes)
    : state_(std::make_shared<State>(device, static_cast<cudaStream_t>(stream), memory_limit_bytes)) {}

std::byte* Queue::allocate(Index bytes) const {
  return allocate_with_reserves([&] { return state_->allocate(bytes); });
}
void Queue::release(std::byte* p) const noexcept { state_->release(p); }

void Queue::upload_bytes(const void* source, void* target, Index bytes) const {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, state_->stream()),
             "cudaMemcpyAsync to the device");
  check_cuda(cudaStreamSynchronize(state_->stream()), "upload");
}

void Queue::download_bytes(const void* source, void* target, Index bytes) const {
  const DeviceScope scope(state_->device());
  if (bytes != 0) {
    check_cuda(
        cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, state_->stream()),
        "cudaMemcpyAsync to the host");
  }
  check_cuda(cudaStreamSynchronize(state_->stream()), "download");
}

std::byte* Queue::allocate_host(Index bytes) const { return state_->allocate_host(bytes); }
void Queue::release_host(std::byte* p) const noexcept { state_->release_host(p); }

void Queue::copy_to_host_later(const void* source, void* target, Index bytes) const {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, state_->stream()),
             "cudaMemcpyAsync to the host");
}

void Queue::copy_to_device_later(const void* source, void* target, Index bytes) const {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, state_->stream()),
             "cudaMemcpyAsync to the device");
}

Index Queue::available_bytes() const { return state_->available_bytes(); }

void Queue::synchronize() const {
  const DeviceScope scope(state_->device());
  check_cuda(cudaStreamSynchronize(state_->stream()), "cudaStreamSynchronize");
}

Queue Queue::when(const std::int32_t* condition) const {
  Queue conditional = *this;
  conditional.condition_ = condition;
  return conditional;
}

Queue Queue::side() const {
  Queue side(State::side(state_));
  side.condition_ = condition_;
  return side;
}

void Queue::follow(const Queue& other) {
  if (other.state_ != state_) state_->follow(*other.state_);
}

Queue Queue::lane(int number, bool urgent) const {
  Queue lane(State::lane(state_, number, urgent));
  lane.condition_ = condition_;
  return lane;
}

void Queue::mark(Mark& mark) {
  const DeviceScope scope(state_->device());
  if (!mark) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    mark = Mark(event, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
  }
  check_cuda(cudaEventRecord(mark.get(), state_->stream()), "cudaEventRecord");
}

void Queue::follow(const Mark& mark) {
  const DeviceScope scope(state_->device());
  check_cuda(cudaStreamWaitEvent(state_->stream(), mark.get(), 0), "cudaStreamWaitEvent");
}

namespace {

template <class T>
Limits find_limits(const State& state) {
  const DeviceScope scope(state.device());
  Limits limits;
  limits.max_panel_cols = 32;
  limits.max_block_rows = max_block_rows<T>();
  limits.max_allocation_bytes = state.memory_bytes();
  limits.max_absorbed = max_absorbed<T>;
  limits.max_formed = max_formed;
  limits.units = multiprocessors();
  // what is queued under the guard's flags must not need cuBLAS
  limits.max_cholesky = std::min({max_cholesky(), max_fused_gram, max_fused_multiply(), max_fused_solve()});
  limits.has_double = true;
  limits.small_elements = 2048;
  limits.small_rows = 128;
  limits.whole_panel_elements = sizeof(T) == 4 ? 32768 : 16384;
  limits.whole_panel_rows = 2048;
  limits.max_reflect_cols = max_reflect;
  limits.max_householder_rows = max_householder_rows<T>();
  limits.max_multiply_full = max_multiply_full;
  limits.max_small_svd = max_small_svd();
  limits.max_solve_gram = max_solve_gram();
  limits.max_residual_columns = max_residual_columns();
  limits.max_rpca_step = max_thin_product;
  limits.max_sweep_carry = sweep_carry;
  limits.max_sweep_block = sweep_block;
  limits.max_update_cols = max_update_cols;
  limits.max_update_rows = max_update_rows;
  limits.front_update_cols = front_update_strip;
  limits.front_update_blocks = backend::front_update_blocks;
  limits.front_update_pair_cols = front_update_pair_strip;
  limits.front_whole_elements = front_whole_elements<T>();
  limits.front_whole_rows = front_whole_rows;
  return limits;
}

}  // namespace

template <class T>
const Limits& Queue::limits(T) const {
  return state_->limits(sizeof(T), find_limits<T>);
}

int Queue::device() const { return state_->device(); }
void* Queue::stream() const { return state_->stream(); }
cublasContext* Queue::library() const { return state_->cublas(); }

Event Queue::record() {
  const DeviceScope scope(state_->device());
  cudaEvent_t raw = nullptr;
  check_cuda(cudaEventCreate(&raw), "cudaEventCreate");
  Event event(raw, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
  check_cuda(cudaEventRecord(raw, state_->stream()), "cudaEventRecord");
  return event;
}

double Queue::elapsed_ms(const Event& from, const Event& to) {
  const DeviceScope scope(state_->device());
  check_cuda(cudaEventSynchronize(to.get()), "cudaEventSynchronize");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime");
  return ms;
}

template const Limits& Queue::limits<float>(float) const;
template const Limits& Queue::limits<double>(double) const;

}  // namespace qrane::backend::cuda
