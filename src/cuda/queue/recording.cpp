// SPDX-License-Identifier: Apache-2.0
// Recordings of a CUDA queue: the work of streams captured as a graph, with IF nodes for what is under a guard's flag
// where driver and runtime have conditional nodes (CUDA 12.4).
#include "cuda/queue/conditional.hpp"
#include "cuda/queue/queue.hpp"
#include "cuda/queue/state.hpp"

namespace qrane::backend::cuda {
namespace {

/// This thread may make streams, events and graphs for a while though another one is capturing.
class RelaxedCapture {
 public:
  RelaxedCapture() { check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Ends the capture of a stream, also when the work fails.
template <class Work>
void capture(cudaStream_t stream, cudaGraph_t& graph, Work work) {
  try {
    work();
  } catch (...) {
    (void)cudaStreamEndCapture(stream, &graph);
    (void)cudaGetLastError();
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
}

struct Graph {
  cudaGraph_t graph = nullptr;
  ~Graph() {
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }
};

}  // namespace

Queue::Recording Queue::recorded(const std::function<void(Queue&)>& work, bool products) const {
  const DeviceScope scope(state_->device());
  const RelaxedCapture relaxed;
  const std::lock_guard lock(state_->recording_mutex());
  Graph made;
  {
    // on a stream of its own: other threads may be using this one
    Queue alone(State::recorder(state_, products));
    const cudaStream_t stream = alone.state_->stream();
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    try {
      capture(stream, made.graph, [&] { work(alone); });
    } catch (...) {
      state_->drop_recorder();
      throw;
    }
  }
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaGraphInstantiateWithFlags(&ready, made.graph, cudaGraphInstantiateFlagUseNodePriority),
             "cudaGraphInstantiate");
  return Recording(ready, [](cudaGraphExec_t e) { (void)cudaGraphExecDestroy(e); });
}

void Queue::replay(const Recording& recording) {
  const DeviceScope scope(state_->device());
  check_cuda(cudaGraphLaunch(recording.get(), state_->stream()), "cudaGraphLaunch");
}

bool Queue::captured() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(state_->stream(), &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  (void)cudaGetLastError();  // the default stream while another one is captured: not the time for graphs either
  return true;
}

void Queue::guarded(const std::int32_t* condition, const std::function<void(Queue&)>& work) {
  Queue conditional = when(condition);
  if (!state_->conditional_nodes()) return work(conditional);
  const DeviceScope scope(state_->device());
  conditional.state_ = State::body(state_);  // which still looks at the flag, so that the launches are the same
  const cudaStream_t stream = conditional.state_->stream();
  begin_conditional_body(state_->stream(), condition, stream);
  cudaGraph_t body = nullptr;  // the node's own
  capture(stream, body, [&] { work(conditional); });
}

}  // namespace qrane::backend::cuda
