// SPDX-License-Identifier: Apache-2.0
#include "api/backend_engine.hpp"
#include "cuda/whole.hpp"

namespace qrane::detail {

namespace {

class CudaEngine final : public BackendEngine<backend::Cuda> {
 public:
  CudaEngine(backend::cuda::Queue queue, int device)
      : BackendEngine<backend::Cuda>(std::move(queue), Backend::cuda), device_(device) {}
  DeviceInfo info() const override { return cuda_status().devices.at(static_cast<std::size_t>(device_)); }

 private:
  int device_;
};

}  // namespace

std::shared_ptr<Engine> make_cuda_engine(const ContextOptions& options) {
  return std::make_shared<CudaEngine>(backend::cuda::Queue(options.device, options.stream, options.memory_limit_bytes),
                                      options.device);
}

BackendStatus cuda_status() { return backend::cuda::device_infos(); }

}  // namespace qrane::detail
