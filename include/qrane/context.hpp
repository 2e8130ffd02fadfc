// SPDX-License-Identifier: Apache-2.0
// A Context is a device, the queue work is put on, and what is known of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <qrane/export.h>
#include <qrane/error.hpp>
#include <qrane/matrix.hpp>

namespace qrane {

enum class Backend { automatic, cpu, opencl, cuda };

/// "cpu", "opencl", "cuda" or "automatic".
QRANE_API const char* to_string(Backend backend);
/// The inverse of to_string; throws Error{invalid_argument} naming the text.
QRANE_API Backend backend_from_string(const std::string& name);

struct DeviceInfo {
  Backend backend = Backend::cpu;
  int index = 0;                  ///< as given to Context
  std::string name;               ///< as its driver calls it
  std::string architecture;       ///< what tuned tables of other devices may fit: "sm_90", "gpu", "cpu", "x86_64"
  std::string driver;             ///< driver or library versions, for people
  std::int64_t memory_bytes = 0;  ///< all of the device's memory
  std::int64_t free_bytes = 0;    ///< free when asked
  int compute_units = 0;          ///< multiprocessors, compute units or threads
  bool is_gpu = false;
  bool has_double = true;
};

/// A backend this build or machine lacks, and why, in words ("built without CUDA", "no OpenCL platform").
struct BackendStatus {
  Backend backend = Backend::cpu;
  bool available = false;
  std::string reason;
  std::vector<DeviceInfo> devices;
};

/// What this machine offers, for `qrane info`. Never throws for an absent backend.
QRANE_API std::vector<BackendStatus> backends();

namespace detail {
class QRANE_API Engine;
}

struct ContextOptions {
  Backend backend = Backend::automatic;  ///< automatic: CUDA, else OpenCL on a GPU, else the CPU
  int device = 0;                        ///< index among the backend's devices
  int threads = 0;                       ///< CPU backend: 0 is all cores
  void* stream = nullptr;                ///< CUDA: your cudaStream_t; OpenCL: your cl_command_queue. Backend named, not
                                         ///< automatic. null: a stream of qrane's own
  std::int64_t memory_limit_bytes = 0;   ///< 0: the device's own limit; smaller makes allocations fail earlier
};

/// Device, queue and tuned parameters. Cheap to copy: copies are the same context.
///
/// Threads: a context, and all that was made from it (QR, Matrix in device memory, Analysis, Factor), is used by one
/// thread at a time. It may be another thread each time, where the caller orders the two. Two at once is the caller's
/// error: results are then undefined. Debug builds (without NDEBUG) of the CPU backend look for it and throw
/// Error{invalid_argument} in the thread that comes second. Different contexts are independent, also on one device:
/// they may be made, used and destroyed in different threads at the same time.
///
/// Lifetime: what was made from a context keeps what it needs of it, so that they may be destroyed in any order.
///
/// Callbacks run in the thread of the call. What they throw leaves the call, and the context stays usable.
class QRANE_API Context {
 public:
  /// Throws Error{unavailable} naming the backend or device that is not there, Error{invalid_argument} for options that
  /// make no sense.
  explicit Context(const ContextOptions& options = {});
  /// CUDA, else OpenCL on a GPU, else the CPU.
  static Context best() { return Context(ContextOptions{}); }

  Backend backend() const;
  DeviceInfo device() const;

  /// Uninitialized column-major matrix in this context's device memory. Work queued earlier on this context may still
  /// be using that memory: streams of your own wait for it first (synchronize()). Throws Error{invalid_argument} for
  /// negative or overflowing sizes, Error{out_of_memory} with the bytes needed and free.
  template <class T>
  Matrix<T> allocate(Index rows, Index cols) const;

  /// Copies between any two memories and layouts; sizes must agree. Returns when `destination` may be read.
  template <class T>
  void copy(std::type_identity_t<MatrixView<const T>> source, std::type_identity_t<MatrixView<T>> destination) const;
  template <MatrixLike S, MatrixLike D>
  void copy(const S& source, D&& destination) const {
    copy<ScalarOf<S>>(as_view(source), as_view(destination));
  }
  /// A copy in host memory.
  template <class T>
  Matrix<T> to_host(std::type_identity_t<MatrixView<const T>> source) const;
  template <MatrixLike A>
  Matrix<ScalarOf<A>> to_host(const A& source) const {
    return to_host<ScalarOf<A>>(as_view(source));
  }
  /// A copy in device memory.
  template <class T>
  Matrix<T> to_device(std::type_identity_t<MatrixView<const T>> source) const;
  template <MatrixLike A>
  Matrix<ScalarOf<A>> to_device(const A& source) const {
    return to_device<ScalarOf<A>>(as_view(source));
  }

  /// Waits for all work given to this context; faults of earlier asynchronous work surface here.
  void synchronize() const;

  /// Device memory that this context keeps for repeated calls: svd and least_squares keep their workspaces, so that the
  /// next call of the same shape and options allocates its results alone.
  std::int64_t cached_bytes() const;
  /// The cache holds at most so many bytes from now on; the workspaces used longest ago go first. 0: none is kept. At
  /// first a sixteenth of the memory that was free when the context was made. Allocations that would otherwise fail
  /// empty the cache.
  void set_cache_limit(std::int64_t bytes) const;
  std::int64_t cache_limit() const;
  /// Frees what is kept.
  void clear_cache() const;

  /// For qrane itself.
  const std::shared_ptr<detail::Engine>& engine() const { return engine_; }

 private:
  std::shared_ptr<detail::Engine> engine_;
};

}  // namespace qrane
