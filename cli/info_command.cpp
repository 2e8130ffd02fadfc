// SPDX-License-Identifier: Apache-2.0
// `qrane info`: what devices, libraries and tuned tables are in use, and which backends are absent and why.
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/outputs.hpp>
#include <io/video/video.hpp>

#include "api/engine.hpp"
#include "cpu/queue/blas_core.hpp"

namespace qrane::cli {
namespace {

std::string gibibytes(std::int64_t bytes) { return brief(static_cast<double>(bytes) / (1 << 30), 4) + " GiB"; }

Json device_json(const DeviceInfo& device) {
  return {{"index", device.index},
          {"name", device.name},
          {"architecture", device.architecture},
          {"driver", device.driver},
          {"memory_bytes", device.memory_bytes},
          {"free_bytes", device.free_bytes},
          {"compute_units", device.compute_units},
          {"is_gpu", device.is_gpu},
          {"has_double", device.has_double}};
}

void say_backend(const Words& say, const BackendStatus& status) {
  const std::string name = to_string(status.backend);
  const std::string column = name + std::string(name.size() < 15 ? 15 - name.size() : 1, ' ');
  if (!status.available) return say(column, "absent: ", status.reason);
  for (const DeviceInfo& device : status.devices) {
    say(column, "device ", device.index, ": ", device.name, device.is_gpu ? " (GPU)" : "", ", ", device.compute_units,
        " compute units, ", gibibytes(device.memory_bytes), " (", gibibytes(device.free_bytes), " free)",
        device.has_double ? "" : ", no double precision");
    if (!device.driver.empty()) say("               ", device.driver);
  }
}

int run(const CommonOptions& options) {
  const Precision precision = pick_precision(options, Precision::f32);
  check_outputs({{"--json", options.json, false}});
  const Words say(options.quiet);
  say("qrane          ", QRANE_CLI_VERSION);
  Json json = {{"qrane", QRANE_CLI_VERSION}, {"backends", Json::array()}};
  for (const BackendStatus& status : backends()) {
    say_backend(say, status);
    Json devices = Json::array();
    for (const DeviceInfo& device : status.devices) devices.push_back(device_json(device));
    json["backends"].push_back({{"backend", to_string(status.backend)},
                                {"available", status.available},
                                {"reason", status.reason},
                                {"devices", devices}});
  }
  const Context context = make_context(options, precision);
  const DeviceInfo chosen = context.device();
  say("in use         ", to_string(chosen.backend), ", device ", chosen.index, ": ", chosen.name, "  (--backend ",
      options.backend, ")");
  const backend::cpu::BlasCore blas = backend::cpu::blas_core();
  say("BLAS           ", blas.used.empty() ? "not OpenBLAS" : "OpenBLAS, kernels for " + blas.used,
      blas.fitting.empty() ? "" : "; this processor has " + blas.fitting + " (OPENBLAS_CORETYPE)");
  json["blas_core"] = blas.used;
  json["blas_core_fitting"] = blas.fitting.empty() ? blas.used : blas.fitting;
  const bool ffmpeg = io::have_ffmpeg();
  say("video          ", ffmpeg ? "ffmpeg" : "none: the ffmpeg program is not installed (`qrane background` needs it)");
  json["in_use"] = device_json(chosen);
  json["in_use"]["backend"] = to_string(chosen.backend);
  json["ffmpeg"] = ffmpeg;
  json["tuned_tables"] = Json::array();
  const auto tuning = context.engine()->tuning();
  for (const tuning::Table& table : tuning->layers) {
    say(json["tuned_tables"].empty() ? "tuned tables   " : "  then         ", table.title(), ", ", table.entries.size(),
        " entries");
    json["tuned_tables"].push_back(
        {{"device", table.device}, {"origin", table.origin}, {"entries", table.entries.size()}});
  }
  if (tuning->layers.empty()) say("tuned tables   none: the defaults of backend ", to_string(chosen.backend));
  write_json(options.json, json);
  return exit_success;
}

}  // namespace

Command add_info_command(CLI::App& parent) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = parent.add_subcommand("info", "what devices, libraries and tuned tables are in use");
  add_common_options(*app, *options);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
