// SPDX-License-Identifier: Apache-2.0
// The queue of the CUDA backend: a stream of one device, its memory, recordings of work. Compiles without nvcc.
// basic.hpp and whole.hpp declare the operations that are given to it.
//
// All members put the device of the queue in place and restore the caller's. Operations neither allocate nor wait, so
// everything but memory management and synchronize can be captured in a CUDA graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

#include <qrane/context.hpp>

#include "cuda/cuda.hpp"
#include "vocabulary/queue.hpp"

struct CUevent_st;
struct CUgraphExec_st;
struct cublasContext;

namespace qrane::backend::cuda {

/// The CUDA devices this build can use, or why there are none. Never throws; works without a driver.
BackendStatus device_infos();

class State;  // device, stream, memory pool, cuBLAS handle: state.hpp

/// A point in the queue's work, for timing.
using Event = std::shared_ptr<CUevent_st>;

/// A handle: copies share the device, the stream and the memory, and may differ in their condition.
class Queue {
 public:
  /// `stream`: a cudaStream_t of that device, which the caller keeps alive; null makes the queue own one.
  /// memory_limit_bytes = 0: no limit but the device's. Throws Error{unavailable} when there is no such device.
  explicit Queue(int device = 0, void* stream = nullptr, std::int64_t memory_limit_bytes = 0);

  std::byte* allocate(Index bytes) const;
  /// In stream order: work queued before may still use the memory. Errors surface at the next synchronize.
  void release(std::byte* p) const noexcept;
  template <class T>
  void upload(const T* source, T* target, Index count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    upload_bytes(source, target, count * Index{sizeof(T)});
  }
  template <class T>
  void download(const T* source, T* target, Index count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    download_bytes(source, target, count * Index{sizeof(T)});
  }
  void synchronize() const;
  std::byte* allocate_host(Index bytes) const;
  void release_host(std::byte* p) const noexcept;
  template <class T>
  void download_later(const T* source, T* target, Index count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    copy_to_host_later(source, target, count * Index{sizeof(T)});
  }
  template <class T>
  void upload_later(const T* source, T* target, Index count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    copy_to_device_later(source, target, count * Index{sizeof(T)});
  }
  /// Bytes of the device, or of the limit, that allocations may still take.
  Index available_bytes() const;
  /// Replaces a condition that this queue has.
  Queue when(const std::int32_t* condition) const;
  /// On a stream of its own that goes before this one's where both have work.
  Queue side() const;
  void follow(const Queue& other);
  /// Made at the first call.
  Queue lane(int number, bool urgent) const;
  using Mark = Event;
  void mark(Mark& mark);
  void follow(const Mark& mark);
  using Recording = std::shared_ptr<CUgraphExec_st>;
  Recording recorded(const std::function<void(Queue&)>& work, bool products = false) const;
  void replay(const Recording& recording);
  bool captured() const;
  /// In a recording one node of the graph: what is not done costs one launch.
  void guarded(const std::int32_t* condition, const std::function<void(Queue&)>& work);
  /// For the scalar T; known from the first call on.
  template <class T>
  const Limits& limits(T) const;

  int device() const;
  /// The cudaStream_t.
  void* stream() const;
  /// The cublasHandle_t, which works on the stream.
  cublasContext* library() const;
  /// Marks the place that the queue's work has come to.
  Event record();
  /// Milliseconds on the device between two marks; waits for the second.
  double elapsed_ms(const Event& from, const Event& to);

 private:
  friend class Launch;
  void upload_bytes(const void* source, void* target, Index bytes) const;
  void download_bytes(const void* source, void* target, Index bytes) const;
  void copy_to_host_later(const void* source, void* target, Index bytes) const;
  void copy_to_device_later(const void* source, void* target, Index bytes) const;

  explicit Queue(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  const std::int32_t* condition_ = nullptr;
};

}  // namespace qrane::backend::cuda

namespace qrane::backend {

/// Whether an address that a user says is in device memory is one that kernels can use. Does not wait.
bool reaches(Cuda, const void* address, Index bytes);

}  // namespace qrane::backend
