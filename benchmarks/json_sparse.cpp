// SPDX-License-Identifier: Apache-2.0
// Of the suites of sparse matrices.
#include "json_values.hpp"

namespace qrane::bench {
namespace {

Json to_json_value(const SparseRun& run) {
  Json out = {{"precision", run.precision}};
  if (run.numeric_ms.empty()) {
    out["reason"] = run.reason;
    return out;
  }
  out.update({{"backend", to_string(run.backend)},
              {"threads", run.threads},
              {"rank", run.rank},
              {"tolerance", finite(run.tolerance)},
              {"dropped_norm", finite(run.dropped_norm)},
              {"numeric", timed(run.numeric_ms)},
              {"refactor", timed(run.refactor_ms)},
              {"solve", timed(run.solve_ms)},
              {"peak_bytes", run.peak_bytes},
              {"moved_bytes", run.moved_bytes},
              {"normal_error", finite(run.normal_error)},
              {"gram_error", finite(run.gram_error)}});
  if (!run.undetected_ms.empty()) out["without_rank_detection"] = timed(run.undetected_ms);
  if (run.resident_bytes >= 0) out["resident_bytes"] = run.resident_bytes;
  return out;
}

Json to_json_value(const SparsePeer& peer) {
  Json out = {{"peer", "suitesparseqr"}, {"ordering", peer.ordering}};
  if (peer.factor_ms.empty()) {
    out["reason"] = peer.reason;
    return out;
  }
  out["analyze"] = timed(peer.analyze_ms);
  out["numeric"] = timed(peer.factor_ms);
  out["total"] = timed(peer.total_ms);
  for (const NamedError& fact : peer.facts)
    out[fact.name == "ordering" ? "ordering_taken" : fact.name] = finite(fact.value);
  return out;
}

Json to_json_value(const sparse::AnalysisFacts& facts) {
  Json out = {{"ordering", sparse::to_string(facts.ordering)},
              {"singletons", facts.singletons},
              {"fronts", facts.fronts},
              {"levels", facts.levels},
              {"largest_rows", facts.largest_rows},
              {"largest_cols", facts.largest_cols},
              {"r_entries", facts.r_entries},
              {"v_entries", facts.v_entries},
              {"peak_entries", facts.peak_entries},
              {"flops", facts.flops},
              {"intensity", facts.intensity},
              {"order_ms", 1e3 * facts.order_seconds},
              {"tree_ms", 1e3 * facts.tree_seconds},
              {"layout_ms", 1e3 * facts.layout_seconds}};
  out["tried"] = Json::array();
  for (const sparse::OrderingTrial& trial : facts.trials)
    out["tried"].push_back({{"ordering", sparse::to_string(trial.ordering)},
                            {"flops", trial.flops},
                            {"r_entries", trial.r_entries},
                            {"ms", 1e3 * trial.seconds}});
  return out;
}

Json to_json_value(const SparseLimit& limit) {
  Json out = {{"share", limit.share}, {"limit_bytes", limit.limit_bytes}};
  if (limit.samples_ms.empty()) {
    out["reason"] = limit.reason;
    return out;
  }
  out.update(timed(limit.samples_ms));
  out.update({{"peak_bytes", limit.peak_bytes},
              {"moved_bytes", limit.moved_bytes},
              {"stages", limit.stages},
              {"same_bits", limit.same_bits}});
  if (limit.measured_bytes >= 0) out["measured_bytes"] = limit.measured_bytes;
  return out;
}

Json to_json_value(const SparseUse& use) {
  Json out = {{"use", use.use}, {"rhs", use.rhs}};
  const auto add = [&](const char* name, const std::vector<double>& samples) {
    if (!samples.empty()) out[name] = timed(samples);
  };
  add("device", use.device_ms);
  add("from_host", use.transfer_ms);
  add("host", use.host_ms);
  add("peer", use.peer_ms);
  if (use.error >= 0 || std::isnan(use.error)) out["error"] = finite(use.error);
  if (use.use == "refine") {
    out["iterations"] = use.iterations;
    out["converged"] = use.converged;
  }
  return out;
}

}  // namespace

Json to_json_value(const SparseCase& result) {
  const sparse::AnalysisFacts& facts = result.analysis;
  Json out = {{"name", result.name},     {"source", result.source},
              {"paper", result.paper},   {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason}, {"rows", facts.rows},
              {"cols", facts.cols},      {"entries", facts.entries}};
  if (facts.fronts > 0) out["analysis"] = to_json_value(facts);
  if (!result.analyze_ms.empty()) out["analysis"].update(timed(result.analyze_ms));
  const SparseRun* const run = result.main_run();
  if (!run) return out;
  const double ms = median(run->numeric_ms);
  out["runs"] = Json::array();
  for (const SparseRun& each : result.runs) out["runs"].push_back(to_json_value(each));
  out["median_ms"] = ms;
  out["gflops"] = facts.flops / ms * 1e-6;
  out["total_ms"] = median(result.analyze_ms) + ms + median(run->solve_ms);
  out["peers"] = Json::array();
  for (const SparsePeer& peer : result.peers) out["peers"].push_back(to_json_value(peer));
  if (const SparsePeer* const best = result.best_peer()) {
    out["best_peer"] = {{"ordering", best->ordering}, {"median_ms", median(best->factor_ms)}};
    out["speed_up"] = median(best->factor_ms) / ms;
  }
  out["orderings"] = Json::array();
  for (const AnalysisTime& time : result.orderings) {
    Json entry = {{"ordering", time.ordering}, {"flops", time.flops}};
    entry.update(timed(time.samples_ms));
    if (!time.peer_ms.empty()) entry["peer"] = timed(time.peer_ms);
    out["orderings"].push_back(entry);
  }
  return out;
}

Json to_json_value(const SparseUsesCase& result) {
  const sparse::AnalysisFacts& facts = result.analysis;
  Json out = {{"name", result.name},
              {"source", result.source},
              {"paper", result.paper},
              {"precision", result.precision},
              {"outcome", outcome_name(result.outcome)},
              {"reason", result.reason},
              {"rows", facts.rows},
              {"cols", facts.cols},
              {"entries", facts.entries}};
  if (facts.fronts > 0) out["analysis"] = to_json_value(facts);
  if (result.limits.empty()) return out;
  out["median_ms"] = result.median_ms();
  out["rank"] = result.rank;
  out["limits"] = Json::array();
  for (const SparseLimit& limit : result.limits) out["limits"].push_back(to_json_value(limit));
  out["refactor"] = timed(result.refactor_ms);
  if (!result.keep_ms.empty()) out["keep_q"] = timed(result.keep_ms);
  if (result.keep_bytes > 0) out["keep_q"]["peak_bytes"] = result.keep_bytes;
  if (!result.single_ms.empty()) out["single"] = timed(result.single_ms);
  if (!result.host_ms.empty()) out["host"] = timed(result.host_ms);
  if (!result.peer_ms.empty()) out["peer"] = timed(result.peer_ms);
  if (!result.peer_reason.empty()) out["peer"]["reason"] = result.peer_reason;
  out["uses"] = Json::array();
  for (const SparseUse& use : result.uses) out["uses"].push_back(to_json_value(use));
  return out;
}

}  // namespace qrane::bench
