// SPDX-License-Identifier: Apache-2.0
// `qrane tune`: measures this device and writes the table that plans are made from (src/tuning/).
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>
#include <io/input_file.hpp>
#include <io/partial_file.hpp>

#include "api/engine.hpp"
#include "tuner/tuner.hpp"
#if QRANE_WITH_BENCH
#include <benchmarks/machine.hpp>
#endif

namespace qrane::cli {
namespace {

constexpr std::int64_t most_table_bytes = std::int64_t{1} << 26;

struct TuneOptions {
  CommonOptions common;
  std::string out;
  std::string device_name;
  double seconds = 120;
  bool dry_run = false;
  bool from_defaults = false;
};

/// Four significant digits say all that a time is good for.
double rounded(double ms) { return std::strtod(brief(ms, 4).c_str(), nullptr); }

template <class Tuning>
Json parameters_json(const tuning::Entry& entry) {
  Json json = Json::object();
  for (const auto& [name, value] : entry.parameters) {
    Tuning any{};
    tuning::for_each_parameter(any, [&, &name = name, value = value](const char* known, auto& field, auto, auto) {
      if (name != known) return;
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, bool>)
        json[name] = value != 0;
      else
        json[name] = value;
    });
  }
  return json;
}

Json evidence_json(const tuning::Evidence& evidence) {
  Json json = {{"subject", evidence.subject}};
  Json& ms = json["ms"] = Json::object();
  for (const auto& [label, value] : evidence.ms) {
    if (!ms.contains(label)) {
      ms[label] = rounded(value);
      continue;
    }
    if (!ms[label].is_array()) ms[label] = Json::array({ms[label]});  // several cases: in their order
    ms[label].push_back(rounded(value));
  }
  if (ms.empty()) json.erase("ms");
  if (!evidence.verdict.empty()) json["verdict"] = evidence.verdict;
  return json;
}

Json entry_json(const tuning::Finding& finding) {
  const tuning::Entry& entry = finding.entry;
  Json json = {{"operation", tuning::to_string(entry.operation)}};
  if (entry.scalar_bytes) json["scalar"] = *entry.scalar_bytes == 4 ? "f32" : "f64";
  if (entry.shape) json["shape"] = tuning::to_string(*entry.shape);
  if (entry.q) json["q"] = to_string(*entry.q);
  json["parameters"] = entry.operation == tuning::Operation::qr ? parameters_json<tuning::QRTuning>(entry)
                                                                : parameters_json<tuning::UpdateTuning>(entry);
  json["evidence"] = Json::array();
  for (const tuning::Evidence& evidence : finding.evidence) json["evidence"].push_back(evidence_json(evidence));
  return json;
}

Json table_json(const TuneOptions& options, const DeviceInfo& device, const std::vector<tuning::Finding>& findings) {
  Json json = {{"backend", to_string(device.backend)},
               {"device", options.device_name.empty() ? device.name : options.device_name},
               {"architecture", device.architecture},
               {"measured_on", device.name + ", " + device.driver},
               {"qrane", QRANE_CLI_VERSION}};
#if QRANE_WITH_BENCH
  json["commit"] = bench::source_commit();
#endif
  json["entries"] = Json::array();
  for (const tuning::Finding& finding : findings) json["entries"].push_back(entry_json(finding));
  return json;
}

/// One piece of evidence a line, so that people can read it and a change shows where it is.
std::string to_text(const Json& file) {
  const auto join = [](const Json& list, const char* separator, auto&& text) {
    std::string joined;
    for (const Json& item : list) joined += (joined.empty() ? "\n" : separator) + text(item);
    return joined;
  };
  /// The object in one line, its last key's list left open.
  const auto opened = [](Json object, const char* list) {
    object.erase(list);
    std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
    text.pop_back();
    return text + ", \"" + list + "\": [";
  };
  const auto line = [](const Json& evidence) { return "      " + evidence.dump(); };
  const auto entry = [&](const Json& e) {
    return "    " + opened(e, "evidence") + join(e.value("evidence", Json::array()), ",\n", line) + "]}";
  };
  const auto table = [&](const Json& t) {
    return "  " + opened(t, "entries") + join(t["entries"], ",\n", entry) + "]}";
  };
  return "{\"qrane_tuning\": 1, \"tables\": [" + join(file["tables"], ",\n", table) + "]}\n";
}

/// The file's tables of other devices, and this one.
Json merged(const std::string& path, const Json& table) {
  Json file = {{"qrane_tuning", 1}, {"tables", Json::array()}};
  std::error_code reason;
  if (std::filesystem::is_regular_file(path, reason)) {
    const Json old = Json::parse(io::read_file(path, most_table_bytes));
    for (const Json& other : old["tables"])
      if (other["backend"] != table["backend"] || other["device"] != table["device"]) file["tables"].push_back(other);
  }
  file["tables"].push_back(table);
  return file;
}

/// The file that will be written, readable if it is there and fit to be added to.
std::string checked_output(const TuneOptions& options) {
  const std::string path = !options.out.empty() ? options.out : tuning::user_file();
  if (options.dry_run) return "";
  detail::check(!path.empty(), ErrorCode::invalid_argument,
                "tune: no place for the table (neither HOME nor XDG_CONFIG_HOME is set, or QRANE_TUNING_FILE is none): "
                "name one with --out");
  std::error_code reason;
  if (std::filesystem::is_regular_file(path, reason)) tuning::parse(io::read_file(path, most_table_bytes), path);
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) io::make_directories(parent.string());
  return path;
}

std::vector<int> scalars(const TuneOptions& options, const DeviceInfo& device) {
  if (!options.common.precision.empty())
    return {pick_precision(options.common, Precision::f32) == Precision::f32 ? 4 : 8};
  return device.has_double ? std::vector<int>{4, 8} : std::vector<int>{4};
}

int run(const TuneOptions& options) {
  detail::check(options.seconds > 0, ErrorCode::invalid_argument, "--seconds: ", options.seconds, " is not positive");
  const std::string path = checked_output(options);
  check_outputs({{"--out", path, false, true}, {"--json", options.common.json, false}});
  // what the user's table says now must not decide what the new one says
  ::setenv("QRANE_TUNING_FILE", "none", 1);
  const Context context = make_context(options.common, pick_precision(options.common, Precision::f32));
  if (options.from_defaults)
    context.engine()->set_tuning(std::make_shared<tuning::Tables>(tuning::Tables{context.backend(), {}}));
  const DeviceInfo device = context.device();
  const Words say(options.common.quiet);
  say("device         ", to_string(device.backend), " (", device.name, "), about ", options.seconds, " s");

  const InterruptGuard guard;
  tuning::TunerOptions wanted;
  wanted.seconds = options.seconds;
  wanted.scalars = scalars(options, device);
  wanted.interrupted = interrupted;
  wanted.say = [&](const std::string& line) { say(line); };
  wanted.keep = [&](const std::vector<tuning::Finding>& findings) {
    if (!path.empty()) io::write_file(path, to_text(merged(path, table_json(options, device, findings))));
  };
  const std::vector<tuning::Finding> findings = tuning::tune(context, wanted);
  const Json table = table_json(options, device, findings);
  if (path.empty())
    say(to_text({{"qrane_tuning", 1}, {"tables", Json::array({table})}}));
  else
    wanted.keep(findings);
  if (!path.empty()) say("table          ", path, ", ", findings.size(), " entries");
  write_json(options.common.json, table);
  return interrupted() ? exit_interrupted : exit_success;
}

}  // namespace

Command add_tune_command(CLI::App& parent) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* app = parent.add_subcommand("tune", "measure this device and write the table that plans are made from");
  app->add_option("--seconds", options->seconds, "about how long to measure; default 120")->type_name("S");
  app->add_option(
         "--out", options->out,
         "write the table here; default $QRANE_TUNING_FILE, else qrane/tuning.json in the user's configuration")
      ->type_name("FILE");
  app->add_option("--as", options->device_name, "name the device so in the table ('*': any of its backend)")
      ->type_name("NAME");
  app->add_flag("--from-defaults", options->from_defaults,
                "start from the backend's defaults instead of the shipped table (to make one to ship)");
  app->add_flag("--dry-run", options->dry_run, "print the table instead of writing it");
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
