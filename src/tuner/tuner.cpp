// SPDX-License-Identifier: Apache-2.0
// The order of the searches, and the matrices they are made on: as large as the device does in a fraction of a second.
#include "tuner/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/engine.hpp"
#include "tuner/search.hpp"

namespace qrane::tuning {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double block_ms = 60, grid_ms = 30;  // a run of the largest case of a stage, roughly

const std::vector<Knob> tree_knobs{{"panel_cols", {8, 16, 24, 32, 48, 64, 96, 128, 192, 256}},
                                   {"inner", {16, 24, 32, 48, 64}},
                                   {"block_bytes", {128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20}},
                                   {"min_block_rows", {64, 96, 128, 192, 256, 384, 512, 768, 1024}},
                                   {"min_rows_per_col", {2, 4, 8}},
                                   {"arity", {2, 4, 8, 16, 32}}};
const std::vector<Knob> blocked_knobs{{"cholesky_panels", {0, 1}},
                                      {"blocked_panel_cols", {16, 32, 48, 64, 96, 128}},
                                      {"cholesky_panel_cols", {32, 48, 64, 96, 128, 192, 256}},
                                      {"block_cols", {64, 96, 128, 192, 256, 384, 512, 768, 1024}}};

Index round_down(double x, Index unit) { return std::max(unit, static_cast<Index>(x) / unit * unit); }

/// Cases of one scalar, sized by the rate at which this device factors.
class Sizes {
 public:
  Sizes(Trials& trials, const std::shared_ptr<const Tables>& tables) : most_(trials.most_elements()) {
    const Case probe{std::min<Index>(most_ / 64, 65536), 64, QForm::none, Algorithm::caqr};
    const double ms = trials.time(probe, tables, 1e9).ms;
    rate_ = 2.0 * static_cast<double>(probe.rows) * 64 * 64 / std::max(ms, 1e-3);
  }
  double operations(double ms) const { return rate_ * ms; }

  /// At least four rows a column, at most a million; no case where that takes too long.
  std::vector<Case> tall(std::initializer_list<Index> widths, QForm q, Algorithm algorithm) const {
    std::vector<Case> cases;
    for (const Index n : widths) {
      const double by_operations = operations(block_ms) / (2.0 * static_cast<double>(n * n));
      const double m = std::min({by_operations, static_cast<double>(most_ / n), 1e6});
      if (m >= 4.0 * static_cast<double>(n)) cases.push_back({round_down(m, n), n, q, algorithm});
    }
    return cases;
  }
  /// A large square and one of a quarter its order; products make it faster than the probe, so it may be larger.
  std::vector<Case> square() const {
    const double most = std::min(std::sqrt(static_cast<double>(most_)), std::cbrt(3 * operations(block_ms)));
    const Index n = std::min<Index>(round_down(most, 128), 8192);
    std::vector<Case> cases{{n, n, QForm::lapack, Algorithm::blocked}};
    if (n >= 1024) cases.push_back({n / 4, n / 4, QForm::lapack, Algorithm::blocked});
    return cases;
  }

  /// Where an order beyond that of square() is done in a few tenths of a second.
  std::vector<Case> large() const {
    constexpr Index n = 12288;
    if (n * n > most_ || 1.0 * n * n * n > operations(20 * block_ms)) return {};
    return {{n, n, QForm::lapack, Algorithm::blocked}};
  }

 private:
  Index most_;
  double rate_ = 0;  // operations a millisecond
};

std::vector<BlockSearch> block_searches(const Sizes& sizes) {
  return {{sizes.tall({8, 32}, QForm::none, Algorithm::tsqr), {Shape::narrow}, tree_knobs},
          {sizes.tall({192, 64}, QForm::implicit, Algorithm::caqr), {Shape::skinny}, tree_knobs},
          {sizes.tall({512}, QForm::implicit, Algorithm::caqr), {Shape::tall}, tree_knobs},
          {sizes.square(), {Shape::square, Shape::wide}, blocked_knobs},
          {sizes.large(), {Shape::large}, {{"block_cols", {64, 128, 256, 512}}}},
          {sizes.tall({1024}, QForm::lapack, Algorithm::blocked), {Shape::tall}, blocked_knobs},
          {sizes.tall({128}, QForm::lapack, Algorithm::blocked), {Shape::skinny}, blocked_knobs}};
}

/// Findings for one key become one entry.
void merge(std::vector<Finding>& all, std::vector<Finding> more) {
  for (Finding& f : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& old) {
      return old.entry.operation == f.entry.operation && old.entry.scalar_bytes == f.entry.scalar_bytes &&
             old.entry.shape == f.entry.shape && old.entry.q == f.entry.q;
    });
    if (same == all.end()) {
      all.push_back(std::move(f));
      continue;
    }
    same->entry.parameters.insert(same->entry.parameters.end(), f.entry.parameters.begin(), f.entry.parameters.end());
    same->evidence.insert(same->evidence.end(), f.evidence.begin(), f.evidence.end());
  }
}

/// The engine's tables, put back whatever happens.
struct Restore {
  detail::Engine& engine;
  std::shared_ptr<const Tables> before = engine.tuning();
  ~Restore() { engine.set_tuning(before); }
};

class Tuner {
 public:
  Tuner(const Context& context, const TunerOptions& options)
      : context_(context), options_(options), start_(Clock::now()) {
    tables_ = context.engine()->tuning();
    if (!tables_) tables_ = std::make_shared<Tables>(Tables{context.backend(), {}});
  }

  std::vector<Finding> run() {
    const std::vector<QForm> forms{QForm::none, QForm::thin, QForm::implicit};
    double stage = 0;
    const double stages = static_cast<double>(options_.scalars.size()) * (3 + static_cast<double>(forms.size()));
    for (const int bytes : options_.scalars) {
      const std::unique_ptr<Trials> trials = make_trials(context_, bytes);
      const Sizes sizes(*trials, tables_);
      Bench bench{*trials, tables_, {}, [&](const std::string& line) { say((bytes == 4 ? "f32 " : "f64 ") + line); }};
      const auto until = [&](double share) {
        const auto end = start_ + std::chrono::duration<double>(options_.seconds * share / stages);
        bench.stop = [this, end] { return Clock::now() >= end || interrupted(); };
      };
      const std::vector<BlockSearch> searches = block_searches(sizes);
      for (std::size_t i = 0; i < searches.size(); ++i) {
        until(stage + 2 * static_cast<double>(i + 1) / static_cast<double>(searches.size()));
        keep(search_blocks(bench, searches[i]));
      }
      stage += 2;
      for (const QForm q : forms) {
        until(++stage);
        keep(search_crossovers(bench, q, sizes.operations(grid_ms)));
      }
      until(++stage);
      keep(measure_updates(bench, context_));
      tables_ = bench.tables;
    }
    return std::move(findings_);
  }

 private:
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  void say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }
  void keep(std::vector<Finding> more) {
    if (more.empty()) return;
    merge(findings_, std::move(more));
    if (options_.keep) options_.keep(findings_);
  }

  Context context_;
  const TunerOptions& options_;
  Clock::time_point start_;
  std::shared_ptr<const Tables> tables_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> tune(const Context& context, const TunerOptions& options) {
  const Restore restore{*context.engine()};
  return Tuner(context, options).run();
}

}  // namespace qrane::tuning
