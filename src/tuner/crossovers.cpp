// SPDX-License-Identifier: Apache-2.0
// Crossovers: every algorithm is timed by name on a grid of shapes; then plans are made from tables with other
// thresholds, which needs no device, and the thresholds kept whose choices take the least time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "tuner/search.hpp"

namespace qrane::tuning {

namespace {

constexpr double noise = 0.05;  // algorithms closer than this are equally good

struct Point {
  Index rows, cols;
  std::map<Algorithm, double> ms;
};

double operations_of(Index m, Index n) {
  const double a = static_cast<double>(std::max(m, n)), b = static_cast<double>(std::min(m, n));
  return 2 * a * b * b - 2 * b * b * b / 3;
}

/// Tall as far as the device likes it, fixed numbers of rows a column, square and wide.
std::vector<Point> grid(Index most_elements, double operations) {
  std::vector<Point> points;
  const auto add = [&](Index m, Index n) {
    const bool known =
        std::any_of(points.begin(), points.end(), [&](const Point& p) { return p.rows == m && p.cols == n; });
    if (!known && m >= 1 && m * n <= most_elements && operations_of(m, n) <= operations) points.push_back({m, n, {}});
  };
  for (const Index n : {8, 64, 192, 1024, 32, 512, 16, 128, 2048, 4, 256, 96, 384, 4096}) {
    const auto by_operations = static_cast<Index>(operations / (2.0 * static_cast<double>(n * n)));
    const Index m = std::min({most_elements / n, by_operations, Index{1'000'000}});
    if (m >= 4 * n) add(m / n * n, n);
  }
  for (const Index n : {192, 64, 768})
    for (const Index ratio : {4, 2, 16, 1, 8, 128, 32}) add(ratio * n, n);
  for (const Index n : {256, 1024, 128, 512, 384, 2048, 4096}) add(n, n);
  add(192, 1024);
  return points;
}

class Crossovers {
 public:
  Crossovers(Bench& bench, QForm q, double operations)
      : bench_(bench), q_(q), points_(grid(bench.trials.most_elements(), operations)) {
    finding_.entry = {bench.trials.scalar_bytes(), {}, q, {}, ""};
  }

  std::vector<Finding> run() {
    for (Point& p : points_) {
      if (bench_.stop()) break;
      measure(p);
    }
    const std::size_t all = points_.size();
    std::erase_if(points_, [](const Point& p) { return p.ms.size() < 2; });
    if (3 * points_.size() < 2 * all) {  // thresholds beyond what was measured would be guesses
      bench_.say(detail::concat(qrane::to_string(q_), ": crossovers stay, only ", points_.size(), " of ", all,
                                " shapes were measured in time"));
      return {};
    }
    for (int round = 0; round < 2; ++round)
      for (const std::vector<Knob>& move : moves()) turn(move);
    put_evidence_first();
    return {finding_};
  }

 private:
  void measure(Point& p) {
    double best = std::numeric_limits<double>::infinity();
    for (const Algorithm a : {Algorithm::cholesky_qr, Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
      const Case c{p.rows, p.cols, q_, a};
      try {
        const double ms = bench_.trials.time(c, bench_.tables, 3 * best).ms;
        p.ms[a] = ms;
        best = std::min(best, ms);
      } catch (const Error& error) {  // not for this shape, or no room for it
        if (error.code() == ErrorCode::device) throw;
      }
      if (bench_.stop()) break;
    }
  }

  /// The times of all points, before what was decided from them.
  void put_evidence_first() {
    std::vector<Evidence> times;
    for (const Point& p : points_) {
      Evidence evidence;
      evidence.subject = detail::concat(p.rows, " x ", p.cols, " ", qrane::to_string(q_));
      for (const auto& [algorithm, ms] : p.ms) evidence.ms.emplace_back(qrane::to_string(algorithm), ms);
      times.push_back(std::move(evidence));
    }
    finding_.evidence.insert(finding_.evidence.begin(), times.begin(), times.end());
  }

  /// Parameters that are moved together, since one alone may be held back by another.
  static std::vector<std::vector<Knob>> moves() {
    const std::vector<std::int64_t> widths{0, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096};
    const std::vector<std::int64_t> few_widths{0, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 2048};
    const std::vector<std::int64_t> ratios{1, 2, 4, 8, 16, 32, 64, 128, 256};
    const Knob prefers{"prefers_cholesky", {0, 1}};
    const Knob narrowest{"narrowest_cholesky", {1, 5, 9, 17, 33, 65, 97, 129, 193, 257, 1 << 20}};
    const Knob cholesky_rows{"cholesky_rows_per_col", ratios};
    const Knob single{"widest_single_panel", widths}, caqr{"widest_caqr", widths};
    return {{prefers, narrowest},
            {narrowest, cholesky_rows},
            {{"caqr_rows_per_col", {1, 2, 4, 8, 16}}, {"widest_caqr", few_widths}, {"widest_square_caqr", few_widths}},
            {single, caqr},
            {{"tsqr_rows_per_col", ratios}}};
  }

  /// Each point's time under these tables; NaN where the choice was not measured.
  std::vector<double> chosen(const std::shared_ptr<const Tables>& tables) {
    std::vector<double> ms;
    for (const Point& p : points_) {
      const Plan plan = bench_.trials.plan({p.rows, p.cols, q_, Algorithm::automatic}, tables);
      const auto found = p.ms.find(plan.algorithm);
      ms.push_back(found == p.ms.end() ? std::nan("") : found->second);
    }
    return ms;
  }

  /// Sum of the logarithms of what is lost (< 0: gained), differences within noise left out.
  static double loss(const std::vector<double>& before, const std::vector<double>& after) {
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (std::isnan(before[i])) continue;
      const double change = std::isnan(after[i]) ? 1 : std::log(after[i] / before[i]);
      if (std::abs(change) > noise) sum += change;
    }
    return sum;
  }

  using Values = std::vector<std::pair<std::string, std::int64_t>>;

  std::int64_t value_now(const std::string& name) const {
    const QRTuning tuning = bench_.tables->look_up({bench_.trials.scalar_bytes(), Shape::square, q_});
    std::int64_t now = 0;
    for_each_parameter(tuning, [&](const char* known, const auto& field, std::int64_t, std::int64_t) {
      if (name == known) now = static_cast<std::int64_t>(field);
    });
    return now;
  }

  /// All combinations of the knobs' values; those that change least first, so that they win ties.
  std::vector<Values> combinations(const std::vector<Knob>& move) const {
    std::vector<std::pair<double, Values>> all{{0, {}}};
    for (const Knob& knob : move) {
      const auto now = static_cast<double>(value_now(knob.name));
      std::vector<std::pair<double, Values>> longer;
      for (const auto& [distance, values] : all) {
        longer.emplace_back(distance, values);
        for (const std::int64_t value : knob.values) {
          longer.emplace_back(distance + std::abs(std::log(static_cast<double>(value + 1) / (now + 1))), values);
          longer.back().second.emplace_back(knob.name, value);
        }
      }
      all = std::move(longer);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Values> sorted;
    for (auto& [distance, values] : all)
      if (!values.empty()) sorted.push_back(std::move(values));
    return sorted;
  }

  /// The best move, if timing the shapes that it would change once more bears it out; else the next best.
  void turn(const std::vector<Knob>& move) {
    const std::vector<Values> all = combinations(move);
    for (int attempt = 0; attempt < 4; ++attempt) {
      const std::vector<double> before = chosen(bench_.tables);
      double best = -noise;
      Entry winner;
      for (const Values& values : all) {
        Entry entry = finding_.entry;
        entry.parameters = values;
        const double change = loss(before, chosen(with_entry(*bench_.tables, entry)));
        if (change >= best - 1e-9) continue;
        best = change;
        winner = entry;
      }
      if (winner.parameters.empty()) return;
      const auto tables = with_entry(*bench_.tables, winner);
      measure_again(tables);
      const double confirmed = loss(chosen(bench_.tables), chosen(tables));
      if (confirmed < -noise && confirmed < best / 2) return keep(winner, confirmed);
    }
  }

  /// Points whose algorithm these tables change: both are timed again, and the faster run of each counts.
  void measure_again(const std::shared_ptr<const Tables>& tables) {
    for (Point& p : points_) {
      const Case c{p.rows, p.cols, q_, Algorithm::automatic};
      const Algorithm old = bench_.trials.plan(c, bench_.tables).algorithm,
                      now = bench_.trials.plan(c, tables).algorithm;
      if (old == now) continue;
      for (const Algorithm a : {old, now}) {
        const auto found = p.ms.find(a);
        if (found == p.ms.end()) continue;
        const Case named{p.rows, p.cols, q_, a};
        found->second = std::min(found->second, bench_.trials.time(named, bench_.tables, found->second).ms);
      }
    }
  }

  void keep(const Entry& winner, double change) {
    Evidence evidence;
    bench_.tables = with_entry(*bench_.tables, winner);
    auto& kept = finding_.entry.parameters;
    for (const auto& [name, value] : winner.parameters) {
      std::erase_if(kept, [&, &name = name](const auto& old) { return old.first == name; });
      kept.emplace_back(name, value);
      evidence.subject += detail::concat(evidence.subject.empty() ? "" : ", ", name, " = ", value);
    }
    const double share = std::exp(change / static_cast<double>(points_.size()));
    evidence.verdict = detail::concat("taken: the ", points_.size(), " shapes take ", share, " of the time");
    bench_.say(detail::concat(qrane::to_string(q_), ": ", evidence.subject, " ", evidence.verdict));
    finding_.evidence.push_back(std::move(evidence));
  }

  Bench& bench_;
  QForm q_;
  std::vector<Point> points_;
  Finding finding_;
};

}  // namespace

std::vector<Finding> search_crossovers(Bench& bench, QForm q, double operations) {
  return Crossovers(bench, q, operations).run();
}

}  // namespace qrane::tuning
