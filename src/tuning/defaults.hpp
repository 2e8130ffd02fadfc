// SPDX-License-Identifier: Apache-2.0
// What plans of dense QR, and the prices of updates, are made from: a plain aggregate for each, and the values of a
// backend that no table speaks of (tuning/table.hpp lays tables over them). Legal on every device of the backend after
// plan.cpp has clamped them to its limits; they never change a result beyond rounding.
#pragma once

#include <cstdint>

#include <qrane/context.hpp>

namespace qrane::tuning {

struct QRTuning {
  int panel_cols;        // columns of a CAQR panel
  int inner;             // columns of a compact-WY group inside a panel
  Index block_bytes;     // a leaf of the tree holds about this much
  Index min_block_rows;  // and at least this many rows, or this many times its columns
  int min_rows_per_col;
  int arity;                  // triangles per node of the tree
  int blocked_panel_cols;     // columns of a panel of the blocked algorithm, factored by a tree
  int cholesky_panel_cols;    // the same, factored by Cholesky QR
  int block_cols;             // columns whose panels update the trailing matrix together
  int batch_block_cols;       // the same for the matrices of a batch (householder)
  int widest_caqr;            // tall matrices (caqr_rows_per_col): beyond this many columns blocked is preferred
  int widest_single_panel;    // up to here a tall matrix is one panel (TSQR)
  bool cholesky_panels;       // blocked: panels by guarded Cholesky QR
  bool prefers_cholesky;      // tall matrices: R only and thin Q by guarded Cholesky QR
  int narrowest_cholesky;     // below this many columns the tree is faster
  int cholesky_rows_per_col;  // m >= this * n
  int tsqr_rows_per_col;      // one panel for all columns: m >= this * n, or no wider than a panel of caqr
  int caqr_rows_per_col;      // tall is m >= this * n
  int widest_square_caqr;     // matrices that are not: the tree up to this many columns
};

/// cpu: a leaf stays in a core's second-level cache while all its columns are factored, and the
/// matrix is read from memory once (measured on 110,592 x 100 and 100,000 x 192).
/// cuda, opencl: a panel's rows live in registers or local memory; see the kernels' heads. cuda's crossovers between
/// the tree and blocked are those of 39 shapes on an H200 (`qrane tune`): tall, the tree and blocked are even at 64 to
/// 192 columns of float (111,616 x 512: 5.8 against 4.2 ms); square, the tree wins up to 512 (0.73 against 1.3 ms).
constexpr QRTuning qr_defaults(Backend backend) {
  switch (backend) {
    case Backend::cuda:
      return {.panel_cols = 32,
              .inner = 32,
              .block_bytes = 0,
              .min_block_rows = 512,
              .min_rows_per_col = 1,
              .arity = 8,
              .blocked_panel_cols = 32,
              .cholesky_panel_cols = 64,
              .block_cols = 256,
              .batch_block_cols = 128,
              .widest_caqr = 128,
              .widest_single_panel = 32,
              .cholesky_panels = true,
              .prefers_cholesky = true,
              .narrowest_cholesky = 9,
              .cholesky_rows_per_col = 4,
              .tsqr_rows_per_col = 2,
              .caqr_rows_per_col = 4,
              .widest_square_caqr = 512};
    case Backend::opencl:
      return {.panel_cols = 32,
              .inner = 32,
              .block_bytes = 0,
              .min_block_rows = 256,
              .min_rows_per_col = 1,
              .arity = 8,
              .blocked_panel_cols = 32,
              .cholesky_panel_cols = 32,
              .block_cols = 256,
              .batch_block_cols = 128,
              .widest_caqr = 2048,
              .widest_single_panel = 32,
              .cholesky_panels = false,
              .prefers_cholesky = false,
              .narrowest_cholesky = 17,
              .cholesky_rows_per_col = 8,
              .tsqr_rows_per_col = 2,
              .caqr_rows_per_col = 4,
              .widest_square_caqr = 256};
    default:
      return {.panel_cols = 128,
              .inner = 32,
              .block_bytes = 512 << 10,
              .min_block_rows = 256,
              .min_rows_per_col = 4,
              .arity = 4,
              .blocked_panel_cols = 32,
              .cholesky_panel_cols = 32,
              .block_cols = 128,
              .batch_block_cols = 128,
              .widest_caqr = 2048,
              .widest_single_panel = 512,
              .cholesky_panels = false,
              .prefers_cholesky = false,
              .narrowest_cholesky = 17,
              .cholesky_rows_per_col = 8,
              .tsqr_rows_per_col = 2,
              .caqr_rows_per_col = 4,
              .widest_square_caqr = 1024};
  }
}

/// What first factorizations of a pattern take, for the choice between a GPU and the CPU's cores
/// (sparse/processor.hpp). Seconds of the device: once, for a round, for one of a panel without rows, an entry of
/// the matrix, an element of the fronts, a front, an element of a front on the longest path that is done whole; and the
/// least that was ever measured, below which the rest would be guessing.
struct SparseTuning {
  double start_seconds = 0, round_seconds = 0, idle_seconds = 0, entry_seconds = 0, element_seconds = 0;
  double front_seconds = 0, whole_element_seconds = 0, least_seconds = 0;
  double device_flops = 1;  // a second
  double whole_bytes = 0;   // fronts of at most so many are done in one round
  // Of the CPU: at least, for each thread beyond the first, an entry, an element, a front on one thread; flops a
  // second of one thread, and of fronts that wait for each other. threads^threads_power are as good as so many that do
  // not disturb each other. In float elements and flops take narrow_speed_up times less.
  double cpu_start_seconds = 1.9e-4, thread_seconds = 5.3e-5, core_front_seconds = 5.8e-6;
  double core_entry_seconds = 6.5e-9, core_element_seconds = 1.28e-9;
  double core_flops = 6e10, chain_flops = 4.36e10, threads_power = 0.6, narrow_speed_up = 1.62;
};

constexpr SparseTuning sparse_defaults(Backend backend) {
  switch (backend) {
    // H200 and 16 cores of its host: first factorizations (medians of five; Q discarded, a right-hand side) of 59
    // matrices of up to 1.2e10 flops on the device in both precisions, 43 of them also on the cores, and nine larger
    // ones in double. Least relative errors, where the two are near each other thrice as heavy. The device in double:
    // 62 of 68 within 20%, the worst 28%; the cores: 55 of 86, 72 within 30%. Of the 86 choices that follow the worst
    // takes 1.13x the better one's time. What is fitted least is float of matrices that lose rank in it alone. (Before
    // fronts of many rows, and in float of many elements, went by panels: Limits::front_whole_rows.)
    // OpenCL's are guesses: no GPU of it was measured.
    case Backend::cuda:
      return {.start_seconds = 6.7e-5,
              .round_seconds = 6e-5,
              .idle_seconds = 1.08e-5,
              .entry_seconds = 1.03e-8,
              .element_seconds = 8.3e-11,
              .front_seconds = 1.12e-6,
              .whole_element_seconds = 2.85e-9,
              .least_seconds = 4.1e-4,
              .device_flops = 2.2e13,
              .whole_bytes = 2e5};
    case Backend::opencl:
      return {.start_seconds = 2e-3,
              .round_seconds = 1e-3,
              .idle_seconds = 1e-3,
              .entry_seconds = 2e-8,
              .element_seconds = 1e-9,
              .front_seconds = 1e-6,
              .whole_element_seconds = 0,
              .device_flops = 3e11,
              .whole_bytes = 3e4};
    default: return {};
  }
}

/// What uses of sparse factors take, for the choice between the device that holds them and the host
/// (sparse/device/solve_cost.hpp). An H200 and one of its host's cores: pds_20, proxy_olesnik0, lp_nug20 and dfl001
/// with 1 to 100 right-hand sides are met within a factor of two. OpenCL's are guesses.
struct SolveTuning {
  double launch_seconds;         // of launches that wait for each other
  double device_bytes = 1e12;    // of factors read, a second
  double device_flops = 2e12;    // right-hand sides' numbers by factors, a second
  double list_seconds = 1.5e-8;  // an entry of the lists that go to the device once
  double uses = 4;               // that share them
  double copied_bytes = 8e9;     // between host and device, a second
  double host_bytes = 1.2e10, host_flops = 1.5e10;
};

constexpr SolveTuning solve_defaults(Backend backend) {
  return {.launch_seconds = backend == Backend::cuda ? 6e-6 : 3e-5};
}

/// What update/choice/cost.hpp predicts times from: rates and latencies of a device.
struct UpdateTuning {
  int gemm_gflops;          // large products
  int copy_gbytes;          // GB/s, read and written
  int step_ns;              // a launch that waits for the one before it
  int column_ns;            // a column of a panel, while all else waits for it
  int sweep_percent;        // of gemm_gflops: the sweep of a chain's blocks over Q
  int block_cols;           // columns (rows of R) of one block of a chain
  int refactor_percent;     // measured times of refactorizations, as a share of what is predicted from the above
  int margin_percent;       // by so much an update must be predicted faster than refactoring a matrix that is lent
  int wide_margin_percent;  // the same beyond block_cols rows or columns, whose products are predicted less well
};

/// What all devices share in those predictions: launches that wait for each other, rates of kinds of products as
/// percent of gemm_gflops, and shares. Fitted to the suite paper-updates on an H200; a cpu's launches cost little, so
/// that they matter to it least.
struct UpdateModel {
  double call_steps = 4;            // any method
  double project_steps = 36;        // columns, or right factors, split into a part in Q's range and the rest, twice
  double thin_rows_out_steps = 80;  // rows out of a thin Q, but for the chain
  double cholesky_steps = 100;      // and its columns_ns for each of so many of R's columns:
  double cholesky_columns = 0.75;
  double trailing_steps = 8;
  double window_steps_down = 8;     // a window that is a factorization of its own
  double window_steps_up = 90;      // two of them, mostly launches
  double tall_percent = 60;         // products with a tall, narrow operand
  double cholesky_percent = 40;     // products of R's size
  double full_q_moves = 40;         // elements moved for each of a full Q's when columns are inserted
  double solve_columns = 8;         // columns of a triangular solve that take as long as one that is factored
  double small_columns = 0.1;       // columns of a matrix that one warp factors, as a share of others
  double explicit_q_columns = 1.4;  // columns when Q is formed, too
  double columns_per_launch = 16;
  double guard_refuses = 0.97;          // largest eigenvalue of WWᵀ beyond which the Cholesky method's guard refuses
  std::int32_t double_tile_rows = 256;  // of a block on CUDA in double
};

/// cuda: an H200. cpu: two cores of a server. opencl: the same by PoCL.
constexpr UpdateTuning update_defaults(Backend backend, int scalar_bytes) {
  const bool f32 = scalar_bytes == 4;
  switch (backend) {
    case Backend::cuda:
      return {.gemm_gflops = f32 ? 51000 : 60000,
              .copy_gbytes = 4200,
              .step_ns = 5000,
              .column_ns = 900,
              .sweep_percent = 35,
              .block_cols = 32,
              .refactor_percent = f32 ? 128 : 118,
              .margin_percent = 15,
              .wide_margin_percent = 20};
    case Backend::opencl:
      return {.gemm_gflops = f32 ? 20 : 10,
              .copy_gbytes = 8,
              .step_ns = 100000,
              .column_ns = 20000,
              .sweep_percent = 50,
              .block_cols = 32,
              .refactor_percent = 100,
              .margin_percent = 10,
              .wide_margin_percent = 10};
    default:
      return {.gemm_gflops = f32 ? 120 : 60,
              .copy_gbytes = 10,
              .step_ns = 3000,
              .column_ns = 1500,
              .sweep_percent = 50,
              .block_cols = 32,
              .refactor_percent = 100,
              .margin_percent = 10,
              .wide_margin_percent = 10};
  }
}

}  // namespace qrane::tuning
