// SPDX-License-Identifier: Apache-2.0
#include "json_values.hpp"
#include "machine.hpp"
#include "report.hpp"

namespace qrane::bench {
namespace {

Json to_json_value(const Floor& floor) {
  return {{"ms", floor.ms}, {"flops", floor.flops}, {"bytes", floor.bytes}, {"by", floor.by_bytes ? "bytes" : "flops"}};
}

Json to_json_value(const std::vector<PeerTime>& peers, double flops) {
  Json out = Json::array();
  for (const PeerTime& peer : peers) {
    Json entry = {{"peer", peer.peer}};
    if (peer.samples_ms.empty()) {
      entry["reason"] = peer.reason;
    } else {
      entry["samples_ms"] = peer.samples_ms;
      entry["median_ms"] = median(peer.samples_ms);
      entry["gflops"] = flops / median(peer.samples_ms) * 1e-6;
      entry["ratio"] = peer.ratio;
    }
    out.push_back(entry);
  }
  return out;
}

Json to_json_value(const ErrorMeasures& errors) {
  const auto value = [](double measure) { return measure == -1 ? Json() : finite(measure); };
  return {{"residual", value(errors.residual)},
          {"orthogonality", value(errors.orthogonality)},
          {"limit", ErrorMeasures::limit},
          {"how", errors.how}};
}

Json to_json_value(const QrCase& result) {
  Json out = {{"rows", result.shape.rows},      {"cols", result.shape.cols}, {"precision", result.precision},
              {"mode", mode_name(result.mode)}, {"asked", result.asked},     {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},        {"flops", result.flops},     {"floor", to_json_value(result.floor)}};
  if (result.condition != 1) out["condition"] = result.condition;
  if (result.samples_ms.empty()) return out;
  if (result.condition != 1) out["condition_of_r"] = finite(result.condition_of_r);
  out["algorithm"] = result.algorithm;
  out["plan"] = result.plan;
  out["fell_back"] = result.fell_back;
  if (!result.stage.empty()) out["stage"] = result.stage;
  out["samples_ms"] = result.samples_ms;
  out["median_ms"] = result.median_ms();
  out["call"] = timed(result.call_ms);
  out["gflops"] = result.gflops();
  out["tflops"] = result.gflops() * 1e-3;
  out["share_of_floor"] = result.floor.ms / result.median_ms();
  out["errors"] = to_json_value(result.errors);
  out["peers"] = to_json_value(result.peers, result.flops);
  return out;
}

Json to_json_value(const OperationCase& result) {
  Json out = {{"operation", result.operation.operation},
              {"rows", result.operation.shape.rows},
              {"cols", result.operation.shape.cols},
              {"rhs", result.operation.rhs},
              {"count", result.operation.count},
              {"precision", result.precision},
              {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},
              {"flops", result.flops},
              {"floor", to_json_value(result.floor)}};
  if (result.samples_ms.empty()) return out;
  const double ms = result.median_ms();
  if (result.operation.operation == "batched") out["mode"] = mode_name(result.operation.mode);
  out["algorithm"] = result.algorithm;
  out["plan"] = result.plan;
  out["samples_ms"] = result.samples_ms;
  out["median_ms"] = ms;
  out["gflops"] = result.flops / ms * 1e-6;
  out["tflops"] = result.flops / ms * 1e-9;
  out["share_of_floor"] = result.floor.ms / ms;
  out["errors"] = Json::object();
  for (const NamedError& error : result.errors) out["errors"][error.name] = finite(error.value);
  out["errors"]["limit"] = ErrorMeasures::limit;
  out["peers"] = to_json_value(result.peers, result.flops);
  return out;
}

Json to_json_value(const GridCase& result) {
  Json out = {{"rows", result.shape.rows},
              {"cols", result.shape.cols},
              {"precision", result.precision},
              {"mode", "r"},
              {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},
              {"flops", result.flops},
              {"floor", to_json_value(result.floor)}};
  out["times"] = Json::object();
  for (const AlgorithmTime& time : result.times) {
    Json& entry = out["times"][time.algorithm] = Json::object();
    if (time.samples_ms.empty()) {
      entry["reason"] = time.reason;
      continue;
    }
    entry["ran"] = time.ran;
    entry["samples_ms"] = time.samples_ms;
    entry["median_ms"] = median(time.samples_ms);
    if (time.difference >= 0) entry["difference_of_r"] = time.difference;
  }
  if (!result.times.empty()) out["peers"] = to_json_value(result.peers, result.flops);
  return out;
}

Json to_json_value(const KernelCase& result) {
  Json out = {{"layout", result.layout}, {"rows", result.rows},   {"cols", result.cols},
              {"blocks", result.blocks}, {"precision", "f32"},    {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason}, {"flops", result.flops}, {"floor", to_json_value(result.floor)}};
  if (result.samples_ms.empty()) return out;
  out["samples_ms"] = result.samples_ms;
  out["median_ms"] = median(result.samples_ms);
  out["gflops"] = result.gflops();
  out["share_of_floor"] = result.floor.ms / median(result.samples_ms);
  out["error"] = finite(result.error);
  if (result.transpose_ms > 0) out["transpose_ms"] = result.transpose_ms;
  return out;
}

Json to_json_value(const TileCase& result) {
  Json out = {{"name", result.name},           {"kind", result.tree ? "tree" : "flood"},
              {"precision", result.precision}, {"bundle", result.bundle},
              {"rows", result.rows},           {"cols", result.cols}};
  out["outcome"] = outcome_name(result.outcome);
  out["reason"] = result.reason;
  if (result.samples_ms.empty()) return out;
  out["samples_ms"] = result.samples_ms;
  out["median_ms"] = median(result.samples_ms);
  out["flops"] = result.flops;
  out["gflops"] = result.gflops();
  if (!result.tree) return out;
  out["pipelined"] = result.pipelined;
  out["executed_flops"] = result.executed_flops;
  out["plan_ms"] = result.plan_ms;
  out["rounds"] = result.rounds;
  out["bytes"] = result.bytes;
  return out;
}

/// What the tree costs beside the horizontal application, at each block shape: with a tree of four there is a node for
/// every three blocks, each of the rates above.
Json tree_shares(const std::vector<KernelCase>& kernels) {
  Json out = Json::array();
  for (const KernelCase& flat : kernels)
    for (const KernelCase& tree : kernels) {
      if (flat.layout != "registers-transposed" || tree.layout != "tree" || flat.cols != tree.cols) continue;
      if (flat.samples_ms.empty() || tree.samples_ms.empty()) continue;
      const double flat_ms = median(flat.samples_ms) / static_cast<double>(flat.blocks);
      const double tree_ms = median(tree.samples_ms) / static_cast<double>(tree.blocks) / 3;
      out.push_back({{"rows", flat.rows}, {"cols", flat.cols}, {"share", tree_ms / (flat_ms + tree_ms)}});
    }
  return out;
}

Json to_json_value(const BackgroundCase& result) {
  Json out = {{"rows", result.shape.rows}, {"cols", result.shape.cols}, {"precision", result.precision},
              {"method", result.method},   {"data", result.data},       {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},   {"flops", result.flops},     {"floor", to_json_value(result.floor)}};
  if (result.samples_ms.empty()) return out;
  out["iterations_per_sample"] = result.iterations_per_sample;
  out["samples_ms"] = result.samples_ms;
  out["median_ms"] = median(result.samples_ms);
  out["iterations_per_second"] = result.iterations_per_second();
  out["gflops"] = result.flops / median(result.samples_ms) * 1e-6;
  out["share_of_floor"] = result.floor.ms / median(result.samples_ms);
  out["peers"] = to_json_value(result.peers, result.flops);
  out["tolerance"] = result.tolerance;
  out["converged"] = result.converged;
  out["residual"] = finite(result.residual);
  out["rank"] = result.rank;
  out["convergence"] = Json::array();
  for (const ConvergencePoint& point : result.convergence)
    out["convergence"].push_back({{"iteration", point.iteration},
                                  {"residual", finite(point.residual)},
                                  {"rank", point.rank},
                                  {"seconds", point.seconds}});
  return out;
}

const char* kind_name(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::time: return "time";
    case UpdateKind::accuracy: return "accuracy";
    case UpdateKind::batch: return "batch";
    default: return "window";
  }
}

Json to_json_value(const UpdateTime& time) {
  Json out = {{"method", time.method}};
  if (!time.reason.empty()) out["reason"] = time.reason;
  if (time.ran.empty()) return out;
  out["ran"] = time.ran;
  out["errors"] = to_json_value(time.errors);
  for (const UpdateStage& stage : time.stages) out["stages"][stage.name] = stage.ms;
  for (const NamedError& error : time.accuracy) out["accuracy"][error.name] = finite(error.value);
  if (time.samples_ms.empty()) return out;
  if (time.predicted_ms >= 0) out["predicted_ms"] = time.predicted_ms;
  out["samples_ms"] = time.samples_ms;
  out["median_ms"] = median(time.samples_ms);
  return out;
}

Json to_json_value(const UpdateCase& result) {
  const UpdateShape& update = result.update;
  Json out = {{"figure", update.figure},
              {"kind", kind_name(update.kind)},
              {"change", to_string(update.change)},
              {"rows", update.shape.rows},
              {"cols", update.shape.cols},
              {"k", update.k},
              {"p", update.p},
              {"mode", mode_name(update.form)},
              {"precision", result.precision},
              {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},
              {"floor", to_json_value(result.floor)}};
  if (update.block_cols > 0) out["block_cols"] = update.block_cols;
  if (update.kind == UpdateKind::batch) out["count"] = update.count;
  out["times"] = Json::array();
  for (const UpdateTime& time : result.times) out["times"].push_back(to_json_value(time));
  if (result.median_ms() == 0) return out;
  out["median_ms"] = result.median_ms();
  out["share_of_floor"] = result.floor.ms / result.median_ms();
  if (result.steps > 0) {
    out["steps"] = result.steps;
    out["refreshed"] = result.refreshed;
    out["steps_per_second"] = 1e3 / result.median_ms();
  }
  out["predictions"] = Json::array();
  for (const UpdateCandidate& candidate : result.candidates) {
    Json entry = {{"method", to_string(candidate.method)}};
    if (candidate.excluded.empty())
      entry.update({{"predicted_ms", candidate.predicted_ms},
                    {"flops", candidate.flops},
                    {"bytes", candidate.bytes},
                    {"steps", candidate.launches}});
    else
      entry["excluded"] = candidate.excluded;
    out["predictions"].push_back(entry);
  }
  if (!result.refactor_ms.empty()) {
    out["refactor"] = timed(result.refactor_ms);
    out["refactor"]["algorithm"] = result.refactor_algorithm;
    out["speed_up"] = result.speed_up();
  }
  if (!result.protocol_ms.empty() && !result.full_protocol_ms.empty()) {
    out["paper_protocol"] = {{"update", timed(result.protocol_ms)},
                             {"transfer", timed(result.transfer_ms)},
                             {"full", timed(result.full_protocol_ms)}};
    out["paper_protocol"]["speed_up"] = median(result.full_protocol_ms) / median(result.protocol_ms);
  }
  out["peers"] = to_json_value(result.peers, result.floor.flops);
  return out;
}

}  // namespace

std::string to_json(const BenchResults& results) {
  const Machine machine = describe_machine();
  const DeviceInfo& device = results.device;
  Json out = {{"format", "qrane-bench"},
              {"version", 1},
              {"suite", results.suite},
              {"date", results.date},
              {"commit", source_commit()},
              {"interrupted", results.interrupted},
              {"elapsed_seconds", results.elapsed_seconds}};
  out["machine"] = {{"processor", machine.processor},
                    {"threads", machine.threads},
                    {"memory_bytes", machine.memory_bytes},
                    {"system", machine.system},
                    {"compiler", machine.compiler}};
  out["device"] = {{"backend", to_string(device.backend)},
                   {"index", device.index},
                   {"name", device.name},
                   {"driver", device.driver},
                   {"compute_units", device.compute_units},
                   {"memory_bytes", device.memory_bytes},
                   {"is_gpu", device.is_gpu}};
  out["rates"] = Json::object();
  for (const PrecisionRates& known : results.rates)
    out["rates"][known.precision] = {{"gemm_gflops", known.rates.gemm_gflops},
                                     {"copy_gbytes", known.rates.copy_gbytes},
                                     {"source", known.rates.source}};
  out["peer_programs"] = Json::array();
  for (const PeerProgramStatus& program : results.programs)
    out["peer_programs"].push_back({{"program", program.program},
                                    {"available", program.available},
                                    {"version", program.version},
                                    {"reason", program.reason}});
  out["cases"] = Json::array();
  for (const QrCase& result : results.cases) out["cases"].push_back(to_json_value(result));
  out["operations"] = Json::array();
  for (const OperationCase& result : results.operations) out["operations"].push_back(to_json_value(result));
  out["grid"] = Json::array();
  for (const GridCase& result : results.grid) out["grid"].push_back(to_json_value(result));
  out["crossovers"] = Json::array();
  for (const Crossover& line : crossovers(results.grid))
    out["crossovers"].push_back({{"precision", line.precision},
                                 {"rows", line.rows},
                                 {"narrow", line.narrow},
                                 {"wide", line.wide},
                                 {"cols", line.cols}});
  out["kernels"] = Json::array();
  for (const KernelCase& result : results.kernels) out["kernels"].push_back(to_json_value(result));
  out["tree_shares"] = tree_shares(results.kernels);
  out["background"] = Json::array();
  for (const BackgroundCase& result : results.background) out["background"].push_back(to_json_value(result));
  out["updates"] = Json::array();
  for (const UpdateCase& result : results.updates) out["updates"].push_back(to_json_value(result));
  out["sparse"] = Json::array();
  for (const SparseCase& result : results.sparse) out["sparse"].push_back(to_json_value(result));
  out["sparse_uses"] = Json::array();
  for (const SparseUsesCase& result : results.sparse_uses) out["sparse_uses"].push_back(to_json_value(result));
  out["tiles"] = Json::array();
  for (const TileCase& result : results.tiles) out["tiles"].push_back(to_json_value(result));
  // a driver's or file's name may hold bytes that are no UTF-8
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qrane::bench
