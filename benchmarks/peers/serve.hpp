// SPDX-License-Identifier: Apache-2.0
// The loop of a peer program: answers requests (common/protocol.hpp) until its input ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol.hpp"

namespace qrane::bench {

/// One measurement asked for.
struct PeerRequest {
  std::string task;
  std::string peer;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t count = 1;  ///< batched: matrices
  std::int64_t rhs = 0;    ///< gels, sparse-uses: right-hand sides
  std::string precision;   ///< "f32" or "f64"
  std::uint64_t seed = 0;
  double condition = 1;  ///< of the matrix
  int form_q = 0;        ///< qr: 1: the thin Q as well, 2: the full one
  std::string path;      ///< sparse: file of the problem (common/sparse_exchange.hpp)
  std::string ordering;  ///< sparse
  bool check = false;    ///< sparse: look at R, too
  int repeats = 5;
  double max_seconds = 4;
};

/// Samples in milliseconds; lists that a peer does not have stay empty.
struct PeerSamples {
  std::vector<double> factor_ms;
  std::vector<double> form_q_ms;
  std::vector<double> thin_q_ms;
  std::vector<double> total_ms;
  std::vector<double> analyze_ms;
  std::vector<std::pair<std::string, std::vector<double>>> lists;  ///< others, by name
  std::vector<std::pair<std::string, double>> facts;
};

/// Calls run(false) to warm up, twice while that is short, then run(true) as often as asked for and as fits the time.
template <class Function>
void repeat(const PeerRequest& request, Function&& run) {
  const auto start = std::chrono::steady_clock::now();
  run(false);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double fit = request.max_seconds / std::max(seconds, 1e-9) - 1;
  if (fit > request.repeats) run(false);
  for (int count = std::clamp(static_cast<int>(std::min(fit, 1e3)), 1, request.repeats); count > 0; --count) run(true);
}

/// What a peer program can do. Faults are thrown as std::exception.
struct PeerProgram {
  std::function<std::string()> hello;                    ///< "version=... qr=a,b svd=c"
  std::function<std::string(const std::string&)> rates;  ///< precision in, "gemm_gflops=... copy_gbytes=..." out
  std::function<PeerSamples(const PeerRequest&)> measure;
};

inline PeerRequest parse_request(const Message& message) {
  PeerRequest request;
  request.task = message.get("task");
  request.peer = message.get("peer");
  request.rows = message.integer("rows");
  request.cols = message.integer("cols");
  request.precision = message.get("precision");
  request.seed = static_cast<std::uint64_t>(message.integer("seed"));
  request.repeats = static_cast<int>(message.integer("repeats"));
  if (message.has("count")) request.count = message.integer("count");
  if (message.has("rhs")) request.rhs = message.integer("rhs");
  if (message.has("condition")) request.condition = message.number("condition");
  if (message.has("form_q")) request.form_q = static_cast<int>(message.integer("form_q"));
  if (message.has("path")) request.path = message.get("path");
  if (message.has("ordering")) request.ordering = message.get("ordering");
  if (message.has("check")) request.check = message.integer("check") != 0;
  if (message.has("max_seconds")) request.max_seconds = message.number("max_seconds");
  if (request.rows < 1 || request.cols < 1 || request.repeats < (request.check ? 0 : 1))
    throw std::runtime_error("rows, cols and repeats must be positive");
  if (request.precision != "f32" && request.precision != "f64")
    throw std::runtime_error("precision must be f32 or f64, got '" + request.precision + "'");
  return request;
}

inline std::string answer(const PeerProgram& program, const std::string& line) {
  const Message message(line);
  if (message.verb == "hello") return program.hello();
  if (message.verb == "rates") return program.rates(message.get("precision"));
  if (message.verb != "measure") throw std::runtime_error("unknown request '" + message.verb + "'");
  const PeerSamples samples = program.measure(parse_request(message));
  std::string reply;
  if (!samples.factor_ms.empty()) reply += " factor_ms=" + join_numbers(samples.factor_ms);
  if (!samples.form_q_ms.empty()) reply += " form_q_ms=" + join_numbers(samples.form_q_ms);
  if (!samples.thin_q_ms.empty()) reply += " thin_q_ms=" + join_numbers(samples.thin_q_ms);
  if (!samples.total_ms.empty()) reply += " total_ms=" + join_numbers(samples.total_ms);
  if (!samples.analyze_ms.empty()) reply += " analyze_ms=" + join_numbers(samples.analyze_ms);
  for (const auto& [name, list] : samples.lists) reply += " " + name + "=" + join_numbers(list);
  for (const auto& [name, value] : samples.facts) reply += " " + name + "=" + join_numbers({value});
  return reply.empty() ? reply : reply.substr(1);
}

inline int serve(const PeerProgram& program) {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      const std::string said = answer(program, line);
      std::cout << "ok " << said << std::endl;
    } catch (const std::exception& fault) {
      std::cout << "error " << fault.what() << std::endl;
    }
  }
  return 0;
}

}  // namespace qrane::bench
