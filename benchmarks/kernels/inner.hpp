// SPDX-License-Identifier: Apache-2.0
// The inner kernel of CAQR in the layouts that the paper compares (Anderson et al., 2011, section IV.E): the reflectors
// of a small block, in shared memory, applied to a block of the trailing matrix: for each u, w = tau A^T u, A -= u w^T.
// For benchmarks; qrane's own kernel is src/cuda/panels/apply.cu.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace qrane::bench {

enum class InnerLayout {
  shared_parallel,       ///< a thread a row, in registers; a column after the other by a parallel reduction
  shared_serial,         ///< the block in shared memory; a thread sums a part of a column serially
  shared_combined,       ///< transposed in shared memory, reduced as one vector down to one number a column
  registers,             ///< a thread owns a part of one column in registers
  registers_transposed,  ///< the same, the block stored by rows beforehand
  tree,                  ///< registers, rows gathered from 4 triangles: application across the tree
};

const std::vector<InnerLayout>& inner_layouts();
/// "shared-parallel", ..., "registers-transposed", "tree".
const char* to_string(InnerLayout layout);

/// What one measurement found.
struct InnerResult {
  std::vector<double> samples_ms;
  double flops = 0;         ///< of one launch: 4 rows cols^2 a block
  double transpose_ms = 0;  ///< registers_transposed: of the transposition of all blocks, one way
  double error = 0;         ///< largest difference from the host's result of the first blocks, over the largest element
};

/// Applies rows x cols reflectors to `blocks` blocks of rows x cols each, in single precision, `repeats` times. rows:
/// 32, 64, 128 or 256; cols: 4, 8, 16 or 32; the tree takes rows = 4 cols. Throws std::runtime_error for others.
InnerResult measure_inner(InnerLayout layout, int rows, int cols, int blocks, int repeats, cudaStream_t stream);

}  // namespace qrane::bench
