// SPDX-License-Identifier: Apache-2.0
// The vocabulary on OpenCL devices of any vendor, in kernels of our own (the .cl files beside this one):
// OpenCL 1.2, one-dimensional work-groups, one in-order command queue.
// Files: device.cpp (device, memory, launches), queue.cpp (memory, movement, reductions),
// products.cpp (gemm, trsm, gram, multiply_wide, sketch), tiles.cpp (QR tile kernels, the small dense pieces and
// the robust PCA pass), fronts.cpp (frontal matrices), fronts_solve.cpp (what uses them). Every member of the
// vocabulary is available under a condition.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <qrane/context.hpp>

#include "opencl/queue/opencl.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/fronts.hpp"
#include "vocabulary/rotations.hpp"

namespace qrane::backend::opencl {

class Device;

/// Lowered limits, for tests and for devices that promise too much; 0 keeps the device's own.
struct QueueOptions {
  std::int64_t max_work_group = 0;   // at least 8
  std::int64_t max_local_bytes = 0;  // at least 16384
  bool use_double = true;            // false: as on a device without cl_khr_fp64
};

class Queue {
 public:
  template <class T>
  using Matrix = DeviceMatrix<OpenCL, T>;

  /// Work on device `device_index` of device_infos(), or on the user's in-order command queue if one is given.
  /// memory_limit_bytes = 0: all of the device's memory.
  explicit Queue(int device_index = 0, cl_command_queue user_queue = nullptr, std::int64_t memory_limit_bytes = 0,
                 const QueueOptions& options = {});

  Pointer<std::byte> allocate(Index bytes);
  void release(Pointer<std::byte> p) noexcept;
  /// Optional in the vocabulary: bytes of the device, or of the limit, that allocations may still take.
  Index available_bytes() const;
  template <class T>
  void upload(const T* source, Pointer<T> target, Index count) {
    write_bytes(source, cast_pointer<std::byte>(target), count * static_cast<Index>(sizeof(T)));
  }
  template <class T>
  void download(Pointer<T> source, T* target, Index count) {
    read_bytes(cast_pointer<std::byte>(source), target, count * static_cast<Index>(sizeof(T)));
  }
  void synchronize();
  Queue when(Pointer<std::int32_t> condition) const;
  Queue side() const { return *this; }
  void follow(const Queue&) {}
  template <class T>
  Limits limits(T) const;

  template <class T>
  void copy(const Matrix<T>& source, const Matrix<T>& target, Part part);
  template <class T>
  void transpose(const Matrix<T>& source, const Matrix<T>& target);
  template <class T>
  void copy_rows(const Matrix<T>& source, Pointer<std::int64_t> sources, const Matrix<T>& target,
                 Pointer<std::int64_t> targets, Index count);
  template <class T>
  void fill(const Matrix<T>& a, T off_diagonal, T diagonal);
  template <class T>
  void narrow(const Matrix<double>& source, const Matrix<T>& target, Part part);
  template <class T>
  void widen(const Matrix<T>& source, const Matrix<double>& target);

  /// Optional in the vocabulary: wavefronts of Givens rotations.
  template <class T>
  void make_rotations(const Rotations<OpenCL, T>& task);
  template <class T>
  void rotate(const Rotate<OpenCL, T>& task);

  template <class T>
  void sum_squares(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch);
  template <class T>
  void sum_abs(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch);
  template <class T>
  void max_abs(const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch);
  template <class T>
  void first_not_finite(const Matrix<T>& a, Pointer<std::int64_t> row_col, Scratch<OpenCL> scratch);

  template <class T>
  void gemm(Op op_a, Op op_b, T alpha, const Matrix<T>& a, const Matrix<T>& b, T beta, const Matrix<T>& c);
  template <class T>
  void trsm(Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, const Matrix<T>& a, const Matrix<T>& b);
  template <class T>
  void gram(const Matrix<T>& a, const Matrix<double>& w, Scratch<OpenCL> scratch);
  template <class T>
  void multiply_wide(const Matrix<T>& a, const Matrix<double>& w, const Matrix<T>& q, Scratch<OpenCL> scratch);

  template <class T>
  void sketch(const Matrix<T>& a, const Matrix<T>& s);

  template <class T>
  void factor(const Panel<OpenCL, T>& panel);
  template <class T>
  void factor_tree(const Panel<OpenCL, T>& panel);
  template <class T>
  void apply_qt_h(const Apply<OpenCL, T>& apply);
  template <class T>
  void apply_qt_tree(const Apply<OpenCL, T>& apply);

  template <class T>
  void guarded_cholesky(const GuardedCholesky<OpenCL, T>& cholesky);
  template <class T>
  void reconstruct(const Reconstruct<OpenCL, T>& reconstruct);
  template <class T>
  void robust_pca_pass(const RobustPcaPass<OpenCL, T>& pass, Scratch<OpenCL> scratch);

  // Optional in the vocabulary: frontal matrices (vocabulary/fronts.hpp).
  template <class T>
  void lay_out_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, std::int32_t>& list);
  template <class T>
  void assemble_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontShare>& tasks);
  template <class T>
  void factor_front_panels(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontPanelTask>& tasks);
  template <class T>
  void update_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontUpdateTask>& tasks);
  template <class T>
  void finish_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontShare>& tasks);
  template <class T>
  void pack_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontPieceTask>& tasks);
  template <class T>
  void unpack_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontPieceTask>& tasks);
  template <class T>
  void factor_whole_fronts(const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, std::int32_t>& list, bool keep_q);
  template <class T>
  Index front_update_cols(T) const;
  template <class T>
  Index front_whole_elements(T) const;

  // Optional in the vocabulary: uses of factored fronts (vocabulary/front_solve.hpp).
  template <class T>
  void copy_lines(const CopyLines<OpenCL, T>& task);
  template <class T>
  void sum_lines(const SumLines<OpenCL, T>& task);
  template <class T>
  void norm_lines(const NormLines<OpenCL, T>& task);
  template <class T>
  void solve_front_rows(const FrontSolve<OpenCL, T>& f, const FrontTasks<OpenCL, FrontBlock>& tasks, Op op);
  template <class T>
  void update_front_rows(const FrontSolve<OpenCL, T>& f, const FrontTasks<OpenCL, FrontBlock>& tasks, Op op);
  template <class T>
  void reflect_front_lines(const FrontReflect<OpenCL, T>& f, const FrontTasks<OpenCL, std::int32_t>& list, Op op);
  template <class T>
  void multiply_front_panels(const FrontReflect<OpenCL, T>& f, const FrontTasks<OpenCL, FrontPanelPart>& tasks);
  template <class T>
  void update_front_lines(const FrontReflect<OpenCL, T>& f, const FrontTasks<OpenCL, FrontPanelPart>& tasks, Op op);

  cl_context context() const;
  cl_command_queue command_queue() const;

  /// Time marks for benchmarks; a mark waits for the work before it.
  std::chrono::steady_clock::time_point record();
  double elapsed_ms(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) const {
    return std::chrono::duration<double, std::milli>(b - a).count();
  }

 private:
  enum class Reduction : int { sum_squares = 0, sum_abs = 1, max_abs = 2 };

  void write_bytes(const void* source, Pointer<std::byte> target, Index bytes);
  void read_bytes(Pointer<std::byte> source, void* target, Index bytes);
  template <class S, class T>
  void convert(const Matrix<S>& source, const Matrix<T>& target, Part part);
  template <class T>
  void reduce(Reduction kind, const Matrix<T>& a, Pointer<double> result, Scratch<OpenCL> scratch);
  template <class T>
  void solve_block(Matrix<T> triangle, Matrix<T> b, bool forward, bool transposed, Diagonal diagonal, Side side,
                   T alpha);
  template <class T>
  void factor_panel(const Panel<OpenCL, T>& panel, bool tree);
  template <class T>
  void apply_panel(const Apply<OpenCL, T>& apply, bool tree);

  std::shared_ptr<Device> device_;
  Pointer<std::int32_t> condition_{};
};

/// All OpenCL devices, GPUs first; never throws. `reason` says why there is none.
std::vector<DeviceInfo> device_infos(std::string* reason = nullptr) noexcept;

/// Whether the buffer is one, and has so many bytes.
bool holds(cl_mem buffer, Index bytes);

}  // namespace qrane::backend::opencl

namespace qrane::backend {

/// Whether a user's buffer has so many bytes from the address on.
template <class T>
bool reaches(OpenCL, opencl::Pointer<T> address, Index bytes) {
  return address.offset >= 0 && opencl::holds(address.memory, address.offset + bytes);
}

}  // namespace qrane::backend
