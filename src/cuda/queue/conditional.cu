// SPDX-License-Identifier: Apache-2.0
#include "cuda/queue/conditional.hpp"

#include <cstdlib>

#include "cuda/queue/status.hpp"

namespace qrane::backend::cuda {

#if CUDART_VERSION >= 12040

namespace {

__global__ void look_kernel(cudaGraphConditionalHandle handle, const std::int32_t* condition) {
  cudaGraphSetConditional(handle, *condition != 0 ? 1 : 0);
}

/// What comes next in a stream's capture comes after these nodes of that graph.
struct Place {
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
};

// CUDA 13 gave the functions with edges the plain names.
Place place_of(cudaStream_t stream) {
  Place p;
  cudaStreamCaptureStatus status{};
#if CUDART_VERSION >= 13000
  check_cuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &p.graph, &p.nodes, &p.edges, &p.count),
             "cudaStreamGetCaptureInfo");
#else
  check_cuda(cudaStreamGetCaptureInfo_v3(stream, &status, nullptr, &p.graph, &p.nodes, &p.edges, &p.count),
             "cudaStreamGetCaptureInfo");
#endif
  detail::check(status == cudaStreamCaptureStatusActive, ErrorCode::device, "no capture for a conditional node");
  return p;
}

void append(cudaStream_t stream, cudaGraphNodeParams& parameters) {
  const Place p = place_of(stream);
  cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
  check_cuda(cudaGraphAddNode(&node, p.graph, p.nodes, p.edges, p.count, &parameters), "cudaGraphAddNode");
  check_cuda(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies),
             "cudaStreamUpdateCaptureDependencies");
#else
  check_cuda(cudaGraphAddNode_v2(&node, p.graph, p.nodes, p.edges, p.count, &parameters), "cudaGraphAddNode");
  check_cuda(cudaStreamUpdateCaptureDependencies_v2(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies),
             "cudaStreamUpdateCaptureDependencies");
#endif
}

}  // namespace

bool has_conditional_nodes() {
  if (const char* wanted = std::getenv("QRANE_CONDITIONAL_NODES"); wanted != nullptr && *wanted == '0') return false;
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  if (driver < 12040) return false;
  cudaFuncAttributes attributes{};  // loads the kernel, which is not for the middle of a capture
  check_cuda(cudaFuncGetAttributes(&attributes, look_kernel), "cudaFuncGetAttributes");
  return true;
}

void begin_conditional_body(cudaStream_t stream, const std::int32_t* condition, cudaStream_t body) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  check_cuda(cudaGraphConditionalHandleCreate(&parameters.conditional.handle, place_of(stream).graph, 0, 0),
             "cudaGraphConditionalHandleCreate");
  look_kernel<<<1, 1, 0, stream>>>(parameters.conditional.handle, condition);
  check_launch("look kernel");
  append(stream, parameters);
  check_cuda(cudaStreamBeginCaptureToGraph(body, parameters.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                           cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCaptureToGraph");
}

#else

bool has_conditional_nodes() { return false; }
void begin_conditional_body(cudaStream_t, const std::int32_t*, cudaStream_t) {
  throw Error(ErrorCode::unavailable, "built with a CUDA toolkit that has no conditional nodes");
}

#endif

}  // namespace qrane::backend::cuda
