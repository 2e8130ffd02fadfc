// SPDX-License-Identifier: Apache-2.0
// How far each kernel reaches on the current device, for Queue::limits and for the launchers' own checks; and the
// scratch they take.
#pragma once

#include "cuda/cuda.hpp"
#include "vocabulary/panels.hpp"

namespace qrane::backend::cuda {

// movement, products
constexpr std::int32_t max_fused_gram = 192;  // columns of launch_gram
std::int32_t max_fused_multiply();            // columns of launch_multiply_wide
std::int32_t max_fused_solve();               // columns of solve_wide
constexpr std::int32_t max_thin_product = 128;
constexpr std::int32_t max_multiply_full = 192;

// panels
/// Most rows of a contiguous block (or heads * cols) that factor and factor_tree take at 32 columns.
template <class T>
std::int32_t max_block_rows();
template <class T>
inline constexpr std::int32_t max_absorbed = sizeof(T) == 4 ? 32 : 16;
constexpr std::int32_t max_formed = 16;
constexpr std::int32_t max_reconstruct = 64;
constexpr std::int32_t max_reflect = 64;
/// Most rows of householder_panel; 0 where the device has no clusters of blocks.
template <class T>
std::int64_t max_householder_rows();

// guard
std::int32_t max_cholesky();

// batch
template <class T>
std::int32_t widest_whole_panel(Index rows);

// updates
constexpr std::int32_t sweep_carry = 64;
constexpr std::int32_t sweep_block = 32;
constexpr std::int32_t max_update_cols = 128;
constexpr std::int32_t max_update_rows = 16;

// small
std::int32_t max_small_svd();
std::int32_t max_solve_gram();
std::int32_t max_residual_columns();

// fronts
constexpr std::int32_t front_update_strip = 64, front_update_pair_strip = 128;
template <class T>
Index front_whole_elements();
/// What a warp's registers hold of a block of columns; beyond, a front would go column by column.
constexpr Index front_whole_rows = 256;

}  // namespace qrane::backend::cuda
