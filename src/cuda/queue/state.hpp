// SPDX-License-Identifier: Apache-2.0
// What the copies of a CUDA queue share; for queue.cpp and products.cpp alone.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda/queue/launch.hpp"
#include "cuda/queue/status.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::backend::cuda {

/// Throws Error{device} naming the call unless it succeeded.
inline void check_cublas(cublasStatus_t status, const char* call) {
  detail::check(status == CUBLAS_STATUS_SUCCESS, ErrorCode::device, call, " failed: ", cublasGetStatusString(status));
}

class State {
 public:
  /// `urgent`: an own stream goes before those of default priority. A bare state has neither pool nor cuBLAS.
  State(int device, cudaStream_t stream, std::int64_t memory_limit_bytes, bool urgent = false, bool bare = false);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }
  cublasHandle_t cublas() const { return cublas_; }  // null in a bare state
  std::int64_t memory_bytes() const { return memory_bytes_; }

  /// The state of the queue beside that of `main`, made at the first call. It keeps nothing of main's alive.
  static std::shared_ptr<State> side(const std::shared_ptr<State>& main);
  /// Likewise, bare, by number; a number is always urgent or never.
  static std::shared_ptr<State> lane(const std::shared_ptr<State>& main, int number, bool urgent);
  /// Likewise, for a stream that is captured; one capture at a time (recording_mutex). `products`: with a cuBLAS
  /// handle, as has its side, that works in main's memory, since what is captured runs in main's stream.
  static std::shared_ptr<State> recorder(const std::shared_ptr<State>& main, bool products);
  std::mutex& recording_mutex() { return recording_mutex_; }
  /// A capture has failed, and what it has left is not to be used again.
  void drop_recorder() { recorder_ = nullptr; }
  /// Likewise, beside a recorder or its side, for the bodies of conditional nodes in their graph.
  static std::shared_ptr<State> body(const std::shared_ptr<State>& main);
  /// Whether there are to be any.
  bool conditional_nodes() const { return conditional_nodes_; }
  /// Work given to this stream from now on starts after what `other` has been given so far.
  void follow(State& other);

  /// Limits for scalars of that many bytes, which `find` says the first time.
  const Limits& limits(std::size_t scalar_bytes, Limits (*find)(const State&)) {
    const auto which = scalar_bytes == 4 ? 0 : 1;
    std::call_once(limits_known_[which], [&] { limits_[which] = find(*this); });
    return limits_[which];
  }

  std::byte* allocate(std::int64_t bytes);
  void release(std::byte* p) noexcept;
  /// What allocate() may still be asked for; others may take it before.
  std::int64_t available_bytes();
  /// Page-locked host memory. What is released is kept for the next caller: locking pages takes longer than using them.
  std::byte* allocate_host(std::int64_t bytes);
  void release_host(std::byte* p) noexcept;

 private:
  void open_stream(bool urgent);
  void open_pool();
  void open_cublas();
  void open_cublas(void* workspace);
  void close() noexcept;
  cudaError_t device_allocate(void** p, std::size_t bytes);

  int device_;
  cudaStream_t stream_;
  bool owns_stream_;
  bool bare_;
  bool conditional_nodes_ = false;
  std::int64_t memory_bytes_ = 0;  // the limit, or all the device has
  bool limited_ = false;
  cudaMemPool_t pool_ = nullptr;  // null where the device has no pools
  cublasHandle_t cublas_ = nullptr;
  void* cublas_workspace_ = nullptr;  // null when it is another's
  cudaEvent_t reached_ = nullptr;     // where the stream was when another began to follow
  std::shared_ptr<State> side_, body_, recorder_;
  std::vector<std::shared_ptr<State>> lanes_;
  Limits limits_[2];
  std::once_flag limits_known_[2];
  std::mutex recording_mutex_;
  std::mutex mutex_;  // matrices may be freed by another thread than the queue's
  std::unordered_map<std::byte*, std::int64_t> sizes_;
  std::int64_t used_bytes_ = 0;
  std::unordered_map<std::byte*, std::int64_t> host_sizes_;
  std::multimap<std::int64_t, std::byte*> spare_host_;  // by size
  std::int64_t spare_host_bytes_ = 0;
};

}  // namespace qrane::backend::cuda
