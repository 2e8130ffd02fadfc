// SPDX-License-Identifier: Apache-2.0
// conditional.cu: IF nodes of CUDA graphs, which take a driver and a runtime of CUDA 12.4.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace qrane::backend::cuda {

/// Whether graphs of the current device may have them; not where QRANE_CONDITIONAL_NODES=0 is in the environment, for
/// tools that do not bear them (racecheck of CUDA 13.0 corrupts the heap, memcheck now and then the memory of a
/// replay).
bool has_conditional_nodes();

/// Gives the graph that `stream` is being captured into a kernel that looks at *condition, and an IF node; from now on,
/// until its capture ends, `body` is captured into that node.
void begin_conditional_body(cudaStream_t stream, const std::int32_t* condition, cudaStream_t body);

}  // namespace qrane::backend::cuda
