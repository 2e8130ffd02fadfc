// SPDX-License-Identifier: Apache-2.0
#include "api/backend_engine.hpp"
#include "cpu/whole.hpp"

namespace qrane::detail {

namespace {

class CpuEngine final : public BackendEngine<backend::Cpu> {
 public:
  using BackendEngine<backend::Cpu>::BackendEngine;
  DeviceInfo info() const override { return backend::cpu::device_infos().front(); }
};

}  // namespace

std::shared_ptr<Engine> make_cpu_engine(const ContextOptions& options) {
  check(options.device == 0, ErrorCode::unavailable, "the cpu backend has one device, 0; device ", options.device,
        " was asked for");
  check(!options.stream, ErrorCode::invalid_argument,
        "the cpu backend takes no ContextOptions::stream; it must be null");
  return std::make_shared<CpuEngine>(backend::cpu::Queue(options.threads, options.memory_limit_bytes), Backend::cpu);
}

BackendStatus cpu_status() { return {Backend::cpu, true, "", backend::cpu::device_infos()}; }

}  // namespace qrane::detail
