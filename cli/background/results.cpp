// SPDX-License-Identifier: Apache-2.0
#include <cli/background/results.hpp>

namespace qrane::cli {
namespace {

constexpr std::int64_t most_stills = 12;

double rate(std::int64_t iterations, double seconds) {
  return seconds > 0 ? static_cast<double>(iterations) / seconds : 0;
}

}  // namespace

bool wants_stills(const WindowReport& window, std::int64_t frame, std::int64_t stills_so_far) {
  if (stills_so_far >= most_stills) return false;
  const std::int64_t at = frame - window.first;
  const auto sixth = [&](std::int64_t k) { return at == window.frames * k / 6; };
  return sixth(3) || (stills_so_far < 3 && (sixth(1) || sixth(5)));
}

BackgroundTotals total_of(const std::vector<WindowReport>& windows, double wall_seconds) {
  BackgroundTotals totals;
  totals.wall_seconds = wall_seconds;
  for (const WindowReport& window : windows) {
    totals.frames += window.frames;
    totals.iterations += window.iterations;
    totals.seconds += window.seconds;
  }
  return totals;
}

Json windows_json(const std::vector<WindowReport>& windows) {
  Json list = Json::array();
  for (const WindowReport& window : windows) {
    Json convergence = Json::array();
    for (const RobustPcaProgress& step : window.convergence) {
      convergence.push_back({{"iteration", step.iteration},
                             {"residual", step.residual},
                             {"rank", step.rank},
                             {"mu", step.mu},
                             {"seconds", step.seconds}});
    }
    list.push_back({{"first_frame", window.first},
                    {"frames", window.frames},
                    {"shared_frames", window.shared},
                    {"iterations", window.iterations},
                    {"seconds", window.seconds},
                    {"iterations_per_second", rate(window.iterations, window.seconds)},
                    {"rank", window.rank},
                    {"residual", window.residual},
                    {"converged", window.converged},
                    {"convergence", convergence}});
  }
  return list;
}

Json totals_json(const BackgroundTotals& totals, std::size_t windows) {
  return {{"windows", windows},
          {"frames", totals.frames},
          {"iterations", totals.iterations},
          {"seconds", totals.seconds},
          {"iterations_per_second", totals.iterations_per_second()},
          {"wall_seconds", totals.wall_seconds}};
}

Json score_json(const Score& score, const std::string& directory, bool by_number) {
  return {{"directory", directory},
          {"matched_by", by_number ? "number" : "order"},
          {"frames", score.frames},
          {"true_positives", score.true_positives},
          {"false_positives", score.false_positives},
          {"false_negatives", score.false_negatives},
          {"true_negatives", score.true_negatives},
          {"precision", score.precision()},
          {"recall", score.recall()},
          {"f_measure", score.f_measure()}};
}

}  // namespace qrane::cli
