// SPDX-License-Identifier: Apache-2.0
#include "api/backend_engine.hpp"
#include "opencl/whole.hpp"

namespace qrane::detail {

namespace {

class OpenCLEngine final : public BackendEngine<backend::OpenCL> {
 public:
  OpenCLEngine(backend::opencl::Queue queue, int device)
      : BackendEngine<backend::OpenCL>(queue, Backend::opencl), queue_(std::move(queue)), device_(device) {}
  DeviceInfo info() const override { return backend::opencl::device_infos().at(static_cast<std::size_t>(device_)); }

  double build_seconds() const override { return queue_.build_seconds(); }
  void on_build(const backend::opencl::BuildNotice& notice) override { queue_.on_build(notice); }

 private:
  backend::opencl::Queue queue_;
  int device_;
};

}  // namespace

std::shared_ptr<Engine> make_opencl_engine(const ContextOptions& options) {
  return std::make_shared<OpenCLEngine>(
      backend::opencl::Queue(options.device, static_cast<cl_command_queue>(options.stream), options.memory_limit_bytes),
      options.device);
}

BackendStatus opencl_status() {
  BackendStatus status;
  status.backend = Backend::opencl;
  status.devices = backend::opencl::device_infos(&status.reason);
  status.available = !status.devices.empty();
  return status;
}

}  // namespace qrane::detail
