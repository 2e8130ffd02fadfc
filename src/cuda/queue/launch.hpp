// SPDX-License-Identifier: Apache-2.0
// What the CUDA queue calls and the .cu files define: one launcher per kernel of the vocabulary
// (vocabulary/kernels.hpp says what each computes), explicitly instantiated for float and double.
#pragma once

#include <cuda_runtime_api.h>

#include "vocabulary/kernels.hpp"

namespace qrane::backend {

namespace cuda {
class Queue;

/// Stream to launch on, and the condition of Queue::when: kernels return at once when it is set and *condition == 0.
struct Launch {
  cudaStream_t stream = nullptr;
  const std::int32_t* condition = nullptr;
};
}  // namespace cuda

struct Cuda {
  static constexpr const char* name = "cuda";
  template <class T>
  using Pointer = T*;
  using Queue = cuda::Queue;
};

namespace cuda {

// factor.cu, apply.cu: QR tile kernels
template <class T>
void launch_factor(const Launch& launch, const Panel<Cuda, T>& panel);
template <class T>
void launch_factor_tree(const Launch& launch, const Panel<Cuda, T>& panel);
template <class T>
void launch_apply_qt_h(const Launch& launch, const Apply<Cuda, T>& apply);
template <class T>
void launch_apply_qt_tree(const Launch& launch, const Apply<Cuda, T>& apply);
/// Largest rows of a contiguous block (or heads * cols) that the tile kernels take at 32 columns.
template <class T>
std::int32_t max_block_rows();

// chain.cu: the leaves of a narrow TSQR as flat trees, at most max_absorbed and max_formed columns
template <class T>
inline constexpr std::int32_t max_absorbed = sizeof(T) == 4 ? 32 : 16;
constexpr std::int32_t max_formed = 16;
template <class T>
Chains absorb_chains(Index rows, Index cols, bool checkpoints, int multiprocessors);
template <class T>
void launch_absorb(const Launch& launch, const Absorb<Cuda, T>& task);
template <class T>
void launch_form_absorbed(const Launch& launch, const FormAbsorbed<Cuda, T>& task);

// elementwise.cu: copy (S = D), narrow and widen, parts only where S is at least as wide as D
template <class S, class D>
void launch_convert(const Launch& launch, const DeviceMatrix<Cuda, S>& source, const DeviceMatrix<Cuda, D>& target,
                    Part part);
template <class T>
void launch_fill(const Launch& launch, const DeviceMatrix<Cuda, T>& a, T value, T diagonal);
template <class T>
void launch_transpose(const Launch& launch, const DeviceMatrix<Cuda, T>& source, const DeviceMatrix<Cuda, T>& target);
template <class T>
void launch_copy_rows(const Launch& launch, const DeviceMatrix<Cuda, T>& source, const std::int64_t* sources,
                      const DeviceMatrix<Cuda, T>& target, const std::int64_t* targets, Index count);

// reductions.cu: scratch is one 8-byte partial result per block, 8 bytes at least
template <class T>
void launch_sum_squares(const Launch& launch, const DeviceMatrix<Cuda, T>& a, double* sum,
                        const Scratch<Cuda>& scratch);
template <class T>
void launch_sum_abs(const Launch& launch, const DeviceMatrix<Cuda, T>& a, double* sum, const Scratch<Cuda>& scratch);
template <class T>
void launch_max_abs(const Launch& launch, const DeviceMatrix<Cuda, T>& a, double* maximum,
                    const Scratch<Cuda>& scratch);
template <class T>
void launch_first_not_finite(const Launch& launch, const DeviceMatrix<Cuda, T>& a, std::int64_t* position,
                             const Scratch<Cuda>& scratch);

// gram.cu: A^T A on fp64 tensor cores, a.cols <= max_fused_gram
constexpr std::int32_t max_fused_gram = 192;
/// Bytes of one block's partial Gram matrix (the least scratch), for n columns.
std::int64_t gram_partial_bytes(Index n);
/// Scratch with which the fused kernel fills the device.
template <class T>
std::int64_t gram_scratch_bytes(Index n);
template <class T>
void launch_gram(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                 const Scratch<Cuda>& scratch);

// multiply_wide.cu: Q := A W, W upper triangular and held in shared memory; Q may be A
std::int32_t max_fused_multiply();
template <class T>
void launch_multiply_wide(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                          const DeviceMatrix<Cuda, T>& q);

// solve_wide.cu: Q := A R^-1, R upper triangular and held in shared memory; Q and A apart
std::int32_t max_fused_solve();
void launch_solve_wide(const Launch& launch, const DeviceMatrix<Cuda, double>& a, const DeviceMatrix<Cuda, double>& r,
                       const DeviceMatrix<Cuda, double>& q);

// sketch.cu: s.rows is a multiple of 32
template <class T>
void launch_sketch(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& s);

// cholesky.cu: one block
/// Largest n of launch_guarded_cholesky on the current device.
std::int32_t max_cholesky();
template <class T>
void launch_guarded_cholesky(const Launch& launch, const GuardedCholesky<Cuda, T>& task);

// reconstruct.cu: one block per matrix, at most max_reconstruct columns
constexpr std::int32_t max_reconstruct = 64;
template <class T>
void launch_reconstruct(const Launch& launch, const Reconstruct<Cuda, T>& task);

// reflect_panel.cu, householder_panel.cu: at most max_reflect columns
constexpr std::int32_t max_reflect = 64;
template <class T>
void launch_reflect_panel(const Launch& launch, const ReflectPanel<Cuda, T>& task, const Scratch<Cuda>& scratch);
/// Most rows of launch_householder_panel on the current device; 0 where it has no clusters of blocks.
template <class T>
std::int64_t max_householder_rows();
template <class T>
void launch_householder_panel(const Launch& launch, const HouseholderPanel<Cuda, T>& task);

// batch_small.cu, batch_apply.cu: a warp per matrix or several
template <class T>
void launch_factor_small(const Launch& launch, const FactorSmall<Cuda, T>& task);
template <class T>
void launch_apply_small(const Launch& launch, const ApplySmall<Cuda, T>& task);

// batch_solve.cu: B := alpha A^-1 B for a batch of upper triangles; false, and nothing done, where they are too large
template <class T>
bool launch_solve_upper(const Launch& launch, T alpha, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& b);

// batch_table.cu
template <class T>
void launch_copy_table(const Launch& launch, const CopyTable<Cuda, T>& task);

// batch_panel.cu: a block per matrix
template <class T>
std::int32_t widest_whole_panel(Index rows);
template <class T>
void launch_factor_panel(const Launch& launch, const WholePanel<Cuda, T>& task);

// robust_pca.cu
template <class T>
void launch_robust_pca_pass(const Launch& launch, const RobustPcaPass<Cuda, T>& pass, const Scratch<Cuda>& scratch);
void launch_robust_pca_verdict(const Launch& launch, const RobustPcaVerdict<Cuda>& verdict);

// pivot.cu: one persistent grid
template <class T>
std::int64_t pivoted_factor_scratch_bytes(Index rows, Index cols);
template <class T>
void launch_pivoted_factor(const Launch& launch, const PivotedFactor<Cuda, T>& task, const Scratch<Cuda>& scratch);

template <class T>
void launch_gather_columns(const Launch& launch, const DeviceMatrix<Cuda, T>& source, const std::int32_t* columns,
                           const DeviceMatrix<Cuda, T>& target);

// sweep.cu
constexpr std::int32_t sweep_carry = 64;  // largest p
constexpr std::int32_t sweep_block = 32;  // largest block
template <class T>
void launch_sweep(const Launch& launch, const Sweep<Cuda, T>& task);

// update_rows.cu: a block per matrix
constexpr std::int32_t max_update_cols = 128;
constexpr std::int32_t max_update_rows = 16;  // in and out together
template <class T>
void launch_update_rows(const Launch& launch, const RowUpdate<Cuda, T>& task);

// least_squares.cu
std::int64_t least_squares_scratch_bytes(Index columns);
std::int32_t max_solve_gram();
std::int32_t max_residual_columns();
template <class T>
void launch_solve_gram(const Launch& launch, const GramSolve<Cuda, T>& task, const Scratch<Cuda>& scratch);
template <class T>
void launch_residual_squares(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& x,
                             const DeviceMatrix<Cuda, T>& b, double* squares, const Scratch<Cuda>& scratch);

// robust_pca_step.cu, multiply_full.cu: n <= max_thin_product
constexpr std::int32_t max_thin_product = 128;
template <class T>
void launch_robust_pca_step(const Launch& launch, const RobustPcaStep<Cuda, T>& step, const Scratch<Cuda>& scratch);
template <class T>
void launch_multiply_full(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                          const DeviceMatrix<Cuda, T>& q);

// small_svd.cu: one cluster of blocks
using SmallSvd = backend::SmallSvd<Cuda>;
/// Largest n of launch_small_svd on the current device.
std::int32_t max_small_svd();
/// Doubles of SmallSvd::work.
std::int64_t small_svd_work(Index n);
void launch_small_svd(const Launch& launch, const SmallSvd& task);

}  // namespace cuda
}  // namespace qrane::backend
