// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "api/engine.hpp"
#include "common/seeded_matrix.hpp"
#ifdef QRANE_BENCH_KERNELS
#include "kernels/fill.hpp"
#endif
#include "machine.hpp"

namespace qrane::bench {
namespace {

constexpr double peer_timeout_seconds = 900;
constexpr double gpu_peer_seconds = 1.5;  // for one peer and one case beside a GPU

ContextOptions context_options(const BenchOptions& options) {
  ContextOptions wanted;
  wanted.backend = options.backend;
  wanted.device = options.device;
  return wanted;
}

/// The peer program in the directory of qrane, or in the build folder beside it; empty when it is nowhere.
std::string find_program(const std::string& cli_directory, const std::string& name) {
  const std::filesystem::path base(cli_directory.empty() ? "." : cli_directory);
  for (const auto& folder : {base, base / ".." / "benchmarks", base / ".." / "cli"}) {
    const std::string path = (folder / name).lexically_normal().string();
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

Session::Session(const BenchOptions& options, const SuiteInfo& suite)
    : options_(options),
      context_(context_options(options)),
      device_(context_.device()),
      budget_seconds_(options.suite_seconds > 0 ? options.suite_seconds
                      : on_gpu()                ? suite.gpu_seconds
                                                : INFINITY) {
  start_peers(suite);
}

void Session::start_peers(const SuiteInfo& suite) {
  // NVIDIA's libraries are peers on NVIDIA's GPUs, whichever backend qrane uses there; LAPACK everywhere.
  const bool nvidia = device_.backend == Backend::cuda || device_.name.find("NVIDIA") != std::string::npos;
  std::vector<std::string> names;
  if (on_gpu() && nvidia) names.push_back("qrane-peers-cuda");
  if (on_gpu() && nvidia && suite.torch) names.push_back("qrane-peers-torch");
  if (suite.sparse) names.push_back("qrane-peers-spqr");
  if (!suite.sparse) names.push_back("qrane-peers-lapack");
  if (!suite.updates.empty()) names.push_back("qrane-peers-scipy");
  std::vector<Program> started;  // all of them before the first is asked: loading libraries takes seconds
  for (const std::string& name : names) {
    started.push_back({name, find_program(options_.cli_directory, name), nullptr, {}});
    try {
      if (!started.back().path.empty()) started.back().process = start_process(started.back().path);
    } catch (const std::exception&) {  // asking it will say so
    }
  }
  for (Program& program : started) greet(std::move(program));
  qr_peers_ = peers("qr");
  if (on_gpu() && !suite.host_peers) std::erase(qr_peers_, "lapack");
  if (suite.rivals)
    for (const std::string& rival : peers("rivals")) qr_peers_.push_back(rival);
}

std::unique_ptr<PeerProcess> Session::start_process(const std::string& path) const {
  const std::string threads = std::to_string(describe_machine().threads);
  // passive: threads that filled the matrix must not spin beside the library that is measured
  return std::make_unique<PeerProcess>(
      std::vector<std::string>{path, std::to_string(options_.device)},
      std::vector<std::string>{"OPENBLAS_NUM_THREADS=" + threads, "OMP_WAIT_POLICY=passive"});
}

void Session::greet(Program program) {
  PeerProgramStatus status{program.name, false, "", ""};
  if (program.path.empty()) {
    status.reason =
        "the program was not found beside qrane; `./quickstart`, or `cmake --build` with QRANE_BENCHMARKS=ON, builds "
        "it "
        "where its libraries are (it is not installed)";
  } else {
    try {
      if (!program.process) program.process = start_process(program.path);
      const Message hello = program.process->ask("hello", peer_timeout_seconds, options_.interrupted);
      status.available = true;
      status.version = hello.get("version");
      for (const auto& [task, list] : hello.values) {
        if (task == "version") continue;
        std::istringstream names(list);
        for (std::string peer; std::getline(names, peer, ',');) program.peers[task].push_back(peer);
      }
      running_.push_back(std::move(program));
    } catch (const std::exception& fault) {
      status.reason = fault.what();
    }
  }
  programs_.push_back(status);
}

std::vector<std::string> Session::peers(const std::string& task) const {
  std::vector<std::string> names;
  for (const Program& program : running_)
    if (const auto known = program.peers.find(task); known != program.peers.end())
      names.insert(names.end(), known->second.begin(), known->second.end());
  return names;
}

Message Session::measure_peer(const std::string& peer, const PeerTask& task) {
  for (Program& program : running_) {
    const auto known = program.peers.find(task.task);
    if (known == program.peers.end() || std::count(known->second.begin(), known->second.end(), peer) == 0) continue;
    if (!program.process->alive()) program.process = start_process(program.path);
    settle();
    const double usual = on_gpu() ? gpu_peer_seconds : peer_timeout_seconds;
    const double longest = task.max_seconds > 0 && on_gpu() ? task.max_seconds : usual;
    Message reply = program.process->ask(
        detail::concat("measure task=", task.task, " peer=", peer, " rows=", task.shape.rows, " cols=", task.shape.cols,
                       " precision=", task.precision, " seed=", task.seed, " condition=", task.condition,
                       " count=", task.count, " rhs=", task.rhs, " form_q=", task.form_q, task.more,
                       " repeats=", task.repeats, " max_seconds=", longest),
        peer_timeout_seconds, options_.interrupted);
    settle();
    return reply;
  }
  throw std::runtime_error("no peer program knows it");
}

std::string Session::out_of_time() const {
  if (elapsed_seconds() < budget_seconds_) return "";
  return detail::concat("the suite's ", budget_seconds_, " s are spent");
}

double Session::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Session::settle() const {
  // threads of BLAS and OpenMP spin for some tens of milliseconds after their work, in the one process and the other
  if (!on_gpu()) std::this_thread::sleep_for(std::chrono::milliseconds(80));
}

const Rates& Session::rates(const std::string& precision) {
  for (const PrecisionRates& known : rates_)
    if (known.precision == precision) return known.rates;
  progress("measuring the GEMM rate and the copy rate in " + precision);
  rates_.push_back({precision, measure_device_rates(precision)});
  return rates_.back().rates;
}

Rates Session::measure_device_rates(const std::string& precision) {
  if (!on_gpu()) return measure_host_rates(precision);
  if (!running_.empty() && running_[0].process->alive() && running_[0].name == "qrane-peers-cuda") {
    try {
      const Message reply =
          running_[0].process->ask("rates precision=" + precision, peer_timeout_seconds, options_.interrupted);
      return {reply.numbers("gemm_gflops").at(0), reply.numbers("copy_gbytes").at(0),
              "cuBLAS GEMM at 8192 and cudaMemcpy of 2 GiB"};
    } catch (const std::exception&) {
      // the copy rate can still be had below
    }
  }
  return {0, copy_rate(), "qrane's copy of 256 MiB; no GEMM rate"};
}

double Session::copy_rate() const {
  const Index rows = Index{1} << 20, cols = 64;
  const Matrix<float> from = context_.to_device(Matrix<float>::host(rows, cols));
  Matrix<float> to = context_.allocate<float>(rows, cols);
  double best = 1e300;
  for (int run = 0; run < 6; ++run) {
    const double elapsed = time_ms([&] { context_.copy<float>(from.view(), to.view()); });
    if (run > 0) best = std::min(best, elapsed);
  }
  return 2.0 * sizeof(float) * static_cast<double>(rows * cols) / best * 1e-6;
}

template <class T>
Matrix<T> Session::seeded(Shape shape, std::uint64_t seed, double condition) const {
#ifdef QRANE_BENCH_KERNELS
  if (device_.backend == Backend::cuda) {
    Matrix<T> a = context_.allocate<T>(shape.rows, shape.cols);
    if (a.ld() == shape.rows) {
      context_.synchronize();  // that memory may still be what an earlier matrix's queued work uses
      fill_on_device(a.data(), shape.rows, shape.cols, seed, condition);
      return a;
    }
  }
#endif
  Matrix<T> a = Matrix<T>::host(shape.rows, shape.cols);
  fill_seeded(a.data(), shape.rows, shape.cols, seed, condition);
  return device_.backend == Backend::cpu ? std::move(a) : context_.to_device(a);
}
template Matrix<float> Session::seeded(Shape, std::uint64_t, double) const;
template Matrix<double> Session::seeded(Shape, std::uint64_t, double) const;

double Session::time_ms(const std::function<void()>& function) const { return context_.engine()->time_ms(function); }

std::vector<double> Session::sample_ms(const std::function<void()>& function) const {
  double guess = time_ms(function);
  if (!interrupted()) guess = time_ms(function);
  const int wanted = std::clamp(static_cast<int>(500 / std::max(guess, 1e-3)), 5, 50);
  std::vector<double> samples;
  for (int run = 0; run < wanted && !interrupted(); ++run) samples.push_back(time_ms(function));
  return samples;
}

Floor Session::floor_for(const std::string& precision, double flops, double bytes) {
  const Rates& known = rates(precision);
  const double by_flops = known.gemm_gflops > 0 ? flops / known.gemm_gflops * 1e-6 : 0;
  const double by_bytes = known.copy_gbytes > 0 ? bytes / known.copy_gbytes * 1e-6 : 0;
  return {std::max(by_flops, by_bytes), flops, bytes, by_bytes >= by_flops};
}

double Session::max_seconds() const {
  if (options_.max_seconds > 0) return options_.max_seconds;
  return on_gpu() ? INFINITY : 2.0;
}

std::string Session::too_long(const std::string& precision, double flops, double bytes) {
  if (std::isinf(max_seconds())) return "";
  const Rates& known = rates(precision);
  // Shares of the rates that a factorization was seen to reach on a processor, from below; OpenCL's kernels reach less.
  const double share = device_.backend == Backend::cpu ? 1 : 0.1;
  double seconds = known.gemm_gflops > 0 ? flops / (0.25 * share * known.gemm_gflops) * 1e-9 : 0;
  if (known.copy_gbytes > 0) seconds = std::max(seconds, bytes / (0.05 * share * known.copy_gbytes) * 1e-9);
  if (seconds <= max_seconds()) return "";
  char text[96];
  std::snprintf(text, sizeof text, "one run would take about %.1f s (limit %.1f, --max-seconds)", seconds,
                max_seconds());
  return text;
}

std::string Session::too_large(std::int64_t host_bytes, std::int64_t device_bytes) const {
  const auto gibibytes = [](std::int64_t bytes) { return std::round(static_cast<double>(bytes) / (1 << 27)) / 8; };
  const std::int64_t host_free = available_memory_bytes();
  if (host_free > 0 && host_bytes > host_free / 10 * 9)
    return detail::concat("needs about ", gibibytes(host_bytes), " GiB of host memory, ", gibibytes(host_free),
                          " free");
  const std::int64_t device_free = context_.device().free_bytes;
  if (on_gpu() && device_free > 0 && device_bytes > device_free / 10 * 9)
    return detail::concat("needs about ", gibibytes(device_bytes), " GiB of device memory, ", gibibytes(device_free),
                          " free");
  return "";
}

void Session::progress(const std::string& text) const {
  if (options_.quiet || isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

}  // namespace qrane::bench
