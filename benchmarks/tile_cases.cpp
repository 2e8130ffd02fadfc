// SPDX-License-Identifier: Apache-2.0
// The sparse paper's own way, its rounds of tile tasks: Apply and Factorize with the device flooded (its section 3.2),
// and whole trees with and without pipelining (section 3.1). On CUDA devices; device events.
#include <chrono>
#include <cmath>
#include <span>

#include "common/seeded_matrix.hpp"
#include "session.hpp"

#ifdef QRANE_BENCH_KERNELS
#include "paper/cuda.hpp"
#include "paper/tiles/tile_factor.hpp"
#endif

namespace qrane::bench {
namespace {

#ifdef QRANE_BENCH_KERNELS
using backend::Cuda;
using backend::front_tile;
using Queue = backend::cuda::Queue;

constexpr int repeats = 5;

template <class Function>
std::vector<double> event_samples(Queue& queue, Function&& function) {
  function();
  std::vector<double> samples;
  for (int k = 0; k < repeats; ++k) {
    const auto from = queue.record();
    function();
    samples.push_back(queue.elapsed_ms(from, queue.record()));
  }
  return samples;
}

/// Canonical, without T: Householder QR of rows x tile, and its Qᵀ on as much.
double factorize_flops(double rows) { return 2 * rows * front_tile * front_tile - 2.0 / 3 * std::pow(front_tile, 3); }
double apply_flops(double rows) { return 4 * rows * front_tile * front_tile - 2 * std::pow(front_tile, 3); }

/// Thousands of bundles that have nothing to do with each other, all in one front two column tiles wide.
template <class T>
class Flood {
 public:
  static constexpr Index bundles = 132 * 64;

  Flood(Queue& queue, int bundle) : queue_(queue), bundle_(bundle) {
    const Index rows = bundles * bundle * front_tile;
    std::vector<T> a(static_cast<std::size_t>(rows * 2 * front_tile));
    for (std::size_t k = 0; k < a.size(); ++k) a[k] = static_cast<T>(uniform_at(21, k));
    backend::TileFront front{};
    front.ld = static_cast<std::int32_t>(rows);
    front.cols = 2 * front_tile;
    std::vector<backend::Bundle> list;
    std::vector<std::int32_t> row_tiles;
    std::vector<backend::FactorizeTask> factorize;
    std::vector<backend::ApplyTask> apply;
    for (std::int32_t k = 0; k < bundles; ++k) {
      list.push_back({0, 0, k * bundle, bundle, k});
      for (int b = 0; b < bundle; ++b) row_tiles.push_back(k * bundle + b);
      factorize.push_back({k});
      apply.push_back({k, 1, 1});
    }
    const auto place = [&](const auto& values) {
      const auto bytes = std::as_bytes(std::span(values));
      memory_.emplace_back(queue_, static_cast<Index>(bytes.size()));
      queue_.upload(bytes.data(), memory_.back().template as<std::byte>(), static_cast<Index>(bytes.size()));
      return memory_.back().template as<typename std::decay_t<decltype(values)>::value_type>();
    };
    round_.storage = place(a);
    round_.fronts = place(std::vector{front});
    round_.bundles = {place(list), static_cast<std::int32_t>(bundles)};
    round_.row_tiles = place(row_tiles);
    factorize_ = {place(factorize), static_cast<std::int32_t>(bundles)};
    apply_ = {place(apply), static_cast<std::int32_t>(bundles)};
    memory_.emplace_back(queue_, bundles * backend::vt_elements * static_cast<Index>(sizeof(T)));
    round_.vt = memory_.back().template as<T>();
  }

  std::vector<double> factorize() {
    auto round = round_;
    round.factorize = factorize_;
    return event_samples(queue_, [&] { run_tile_round(queue_, round, bundle_); });
  }
  /// After factorize(): its reflectors.
  std::vector<double> apply() {
    auto round = round_;
    round.apply = apply_;
    return event_samples(queue_, [&] { run_tile_round(queue_, round, bundle_); });
  }

 private:
  Queue queue_;
  int bundle_;
  std::vector<dense::Buffer<Cuda>> memory_;
  backend::FrontTileRound<Cuda, T> round_;
  backend::TileTasks<Cuda, backend::FactorizeTask> factorize_;
  backend::TileTasks<Cuda, backend::ApplyTask> apply_;
};

template <class T>
void flood(Queue& queue, const std::string& precision, const std::function<void(const TileCase&)>& report) {
  for (const int bundle : {2, 3, 4}) {
    Flood<T> work(queue, bundle);
    const double rows = bundle * front_tile, count = Flood<T>::bundles;
    TileCase result;
    result.precision = precision;
    result.bundle = bundle;
    result.rows = bundle * front_tile;
    result.cols = front_tile;
    result.name = "Factorize";
    result.samples_ms = work.factorize();
    result.flops = count * factorize_flops(rows);
    report(result);
    result.name = "Apply";
    result.samples_ms = work.apply();
    result.flops = count * apply_flops(rows);
    report(result);
  }
}

template <class T>
TileCase tree(Session& session, Queue& queue, const SparseProblem& problem, const SparseMatrix& a, bool pipelined,
              const std::string& precision) {
  TileCase result;
  result.name = problem.name;
  result.tree = true;
  result.precision = precision;
  result.pipelined = pipelined;
  result.rows = a.rows;
  result.cols = a.cols;
  session.progress(problem.name + (pipelined ? ", pipelined tiles" : ", tiles"));
  try {
    sparse::AnalyzeOptions options;
    options.singletons = false;
    const sparse::Analysis analysis = sparse::analyze(
        session.context(), sparse::by_columns(a.rows, a.cols, a.col_ptr.data(), a.row_idx.data(), a.values.data()),
        options);
    sparse::ScheduleOptions schedule;
    schedule.pipelined = pipelined;
    schedule.apply_columns = 8;
    result.bundle = schedule.bundle;
    const auto start = std::chrono::steady_clock::now();
    sparse::TileFactor<Cuda, T> factor(queue, analysis.shared(), schedule);
    result.plan_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const std::vector<T> user(a.values.begin(), a.values.end());
    std::vector<T> values(user.size());
    sparse::gather_values(analysis.symbolic(), user.data(), values.data());
    result.samples_ms = event_samples(queue, [&] { factor.run(values.data()); });
    result.flops = analysis.facts().flops;
    result.executed_flops = factor.executed_flops();
    result.rounds = factor.rounds();
    result.bytes = factor.bytes();
  } catch (const std::exception& fault) {
    result.outcome = Outcome::left_out;
    result.reason = fault.what();
  }
  return result;
}
#endif

}  // namespace

void run_tile_cases(Session& session, const std::vector<SparseProblem>& problems,
                    const std::vector<std::string>& precisions, const std::function<void(const TileCase&)>& report) {
#ifdef QRANE_BENCH_KERNELS
  if (session.device().backend == Backend::cuda) {
    Queue queue(session.device().index);
    for (const std::string& precision : precisions)
      precision == "f32" ? flood<float>(queue, precision, report) : flood<double>(queue, precision, report);
    for (const SparseProblem& problem : problems) {
      if (!problem.make) {
        TileCase absent;
        absent.name = problem.name;
        absent.tree = true;
        absent.outcome = Outcome::left_out;
        absent.reason = absence(problem);
        report(absent);
        continue;
      }
      const SparseMatrix a = problem.make();
      for (const std::string& precision : precisions)
        for (const bool pipelined : {false, true}) {
          if (session.interrupted() || !session.out_of_time().empty()) return;
          report(precision == "f32" ? tree<float>(session, queue, problem, a, pipelined, precision)
                                    : tree<double>(session, queue, problem, a, pipelined, precision));
        }
    }
    return;
  }
#endif
  (void)problems, (void)precisions;
  TileCase none;
  none.name = "all";
  none.outcome = Outcome::left_out;
  none.reason = std::string("tile tasks are timed on the cuda backend, this is ") + to_string(session.device().backend);
  report(none);
}

}  // namespace qrane::bench
