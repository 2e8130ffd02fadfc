// SPDX-License-Identifier: Apache-2.0
// Block shapes: one parameter after the other, each candidate on all cases.
#include "tuner/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace qrane::tuning {

namespace {

constexpr double least_gain = 0.02;  // less is not worth an entry, however quiet the machine
constexpr double hopeless = 1.4;     // times the incumbent on one case: the other cases are not tried
const char* const origin = "this run";

std::optional<std::int64_t> value_of(const QRTuning& tuning, const std::string& name) {
  std::optional<std::int64_t> value;
  for_each_parameter(tuning, [&](const char* known, const auto& field, std::int64_t, std::int64_t) {
    if (name == known) value = static_cast<std::int64_t>(field);
  });
  return value;
}

bool same_work(const Plan& a, const Plan& b) {
  return a.algorithm == b.algorithm && a.panel_cols == b.panel_cols && a.block_cols == b.block_cols &&
         a.inner == b.inner && a.block_rows == b.block_rows && a.arity == b.arity && a.passes == b.passes;
}

class Descent {
 public:
  Descent(Bench& bench, const BlockSearch& search) : bench_(bench), search_(search) {
    for (const Shape shape : search.shapes) {
      Finding finding;
      finding.entry = {bench.trials.scalar_bytes(), shape, {}, {}, ""};
      findings_.push_back(std::move(finding));
    }
  }

  std::vector<Finding> run() {
    incumbent_ = times(bench_.tables, {});
    for (const Knob& knob : search_.knobs)
      if (!bench_.stop() && !incumbent_.empty()) turn(knob);
    std::erase_if(findings_, [](const Finding& f) { return f.evidence.empty(); });
    return std::move(findings_);
  }

 private:
  std::shared_ptr<const Tables> candidate(const std::string& name, std::int64_t value) const {
    std::shared_ptr<const Tables> tables = bench_.tables;
    for (const Finding& f : findings_) {
      Entry entry = f.entry;
      entry.parameters = {{name, value}};
      tables = with_entry(*tables, entry);
    }
    return tables;
  }

  /// One timing for each case; empty when the device refuses one, or one is hopeless against `against`.
  std::vector<Timing> times(const std::shared_ptr<const Tables>& tables, const std::vector<Timing>& against) {
    std::vector<Timing> result;
    for (std::size_t i = 0; i < search_.cases.size() && !bench_.stop(); ++i) {
      const double limit = against.empty() ? std::numeric_limits<double>::infinity() : hopeless * against[i].ms;
      try {
        result.push_back(bench_.trials.time(search_.cases[i], tables, limit));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory && error.code() != ErrorCode::invalid_argument) throw;
        return {};
      }
      if (result.back().ms > limit) return {};
    }
    return result.size() == search_.cases.size() ? result : std::vector<Timing>{};
  }

  bool changes_a_plan(const std::shared_ptr<const Tables>& tables) const {
    return std::any_of(search_.cases.begin(), search_.cases.end(), [&](const Case& c) {
      try {
        return !same_work(bench_.trials.plan(c, tables), bench_.trials.plan(c, bench_.tables));
      } catch (const Error&) {
        return false;  // not legal here
      }
    });
  }

  /// Mean gain over the cases, as a logarithm; > 0 where b is faster.
  static double gain(const std::vector<Timing>& a, const std::vector<Timing>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::log(a[i].ms / b[i].ms);
    return sum / static_cast<double>(a.size());
  }
  static double noise(const std::vector<Timing>& a, const std::vector<Timing>& b) {
    double worst = least_gain;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max({worst, a[i].spread, b[i].spread});
    return worst;
  }

  void turn(const Knob& knob) {
    const Case& first = search_.cases.front();
    const Key key{bench_.trials.scalar_bytes(), shape_class(first.rows, first.cols, 1), first.q};
    const std::int64_t before = value_of(bench_.tables->look_up(key), knob.name).value();
    Evidence evidence;
    evidence.subject = detail::concat(knob.name, " on ", to_string(first));
    for (std::size_t i = 1; i < search_.cases.size(); ++i) evidence.subject += ", " + to_string(search_.cases[i]);
    note(evidence, before, incumbent_);
    std::vector<std::pair<double, std::int64_t>> better;
    for (const std::int64_t value : knob.values) {
      const auto tables = candidate(knob.name, value);
      if (value == before || (before == 0 && knob.values.front() > 1) || bench_.stop() || !changes_a_plan(tables))
        continue;
      const std::vector<Timing> t = times(tables, incumbent_);
      if (t.empty()) continue;
      note(evidence, value, t);
      if (gain(incumbent_, t) > noise(incumbent_, t)) better.emplace_back(gain(incumbent_, t), value);
    }
    std::sort(better.rbegin(), better.rend());
    for (const auto& [first_gain, value] : better)
      if (!bench_.stop() && take(knob, value, evidence)) break;
    if (evidence.verdict.empty()) evidence.verdict = detail::concat("stays ", before);
    if (evidence.ms.size() < 2 * search_.cases.size()) return;  // nothing was compared
    bench_.say(evidence.subject + ": " + evidence.verdict);
    for (Finding& f : findings_) f.evidence.push_back(evidence);
  }

  /// Element by element the faster.
  static void keep_faster(std::vector<Timing>& best, const std::vector<Timing>& again) {
    if (best.empty()) best = again;
    for (std::size_t i = 0; i < again.size(); ++i)
      if (again[i].ms < best[i].ms) best[i] = again[i];
  }

  /// Both timed again in turn, three times, and the result looked at.
  bool take(const Knob& knob, std::int64_t value, Evidence& evidence) {
    const auto tables = candidate(knob.name, value);
    std::vector<Timing> before = incumbent_, after;
    for (int turn = 0; turn < 3; ++turn) {
      keep_faster(before, times(bench_.tables, {}));
      keep_faster(after, times(tables, {}));
    }
    if (after.empty()) return false;
    if (gain(before, after) <= noise(before, after)) {
      evidence.verdict += detail::concat(value, " is within noise; ");
      return false;
    }
    for (const Case& c : search_.cases) {
      const double error = bench_.trials.error(c, tables);
      if (error <= 1) continue;
      evidence.verdict += detail::concat(value, " is wrong (", error, " times the limit); ");
      return false;
    }
    for (Finding& f : findings_) f.entry.parameters.emplace_back(knob.name, value);
    bench_.tables = tables;
    incumbent_ = after;
    evidence.verdict += detail::concat(value, " taken, ", std::exp(gain(before, after)), " times as fast");
    return true;
  }

  static void note(Evidence& evidence, std::int64_t value, const std::vector<Timing>& t) {
    for (const Timing& one : t) evidence.ms.emplace_back(std::to_string(value), one.ms);
  }

  Bench& bench_;
  const BlockSearch& search_;
  std::vector<Finding> findings_;
  std::vector<Timing> incumbent_;
};

}  // namespace

std::shared_ptr<const Tables> with_entry(const Tables& tables, const Entry& entry) {
  auto result = std::make_shared<Tables>(tables);
  if (result->layers.empty() || result->layers.back().origin != origin) {
    Table table;
    table.backend = tables.backend;
    table.device = "*";
    table.origin = origin;
    result->layers.push_back(std::move(table));
  }
  result->layers.back().entries.push_back(entry);
  return result;
}

std::vector<Finding> search_blocks(Bench& bench, const BlockSearch& search) {
  if (search.cases.empty()) return {};
  return Descent(bench, search).run();
}

}  // namespace qrane::tuning
