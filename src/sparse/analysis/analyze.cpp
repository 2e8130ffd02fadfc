// SPDX-License-Identifier: Apache-2.0
// The whole analysis: compact pattern, singletons, several orderings, fronts of the best one, facts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <numeric>
#include <optional>

#include "sparse/analysis/fronts.hpp"
#include "sparse/analysis/ordering.hpp"
#include "sparse/processor.hpp"

namespace qrane::sparse {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void check_options(const AnalyzeOptions& options) {
  static constexpr auto bad = ErrorCode::invalid_argument;
  const Amalgamation relax = options.expert.amalgamation.value_or(Amalgamation{});
  const auto check_cost = [](const char* name, double value) {
    detail::check(value >= 0, bad, "Amalgamation::", name, " is ", value, ", negative or NaN");
  };
  check_cost("front_flops", relax.front_flops);
  check_cost("entry_flops", relax.entry_flops);
  check_cost("flops_share", relax.flops_share);
  for (int k = 0; k < 3; ++k) {
    detail::check(relax.columns[k] >= (k > 0 ? relax.columns[k - 1] : 0), bad, "Amalgamation::columns[", k, "] is ",
                  relax.columns[k], "; they must ascend from 0");
    detail::check(relax.zeros[k] >= 0 && relax.zeros[k] <= 1, bad, "Amalgamation::zeros[", k, "] is ", relax.zeros[k],
                  ", outside 0..1");
  }
  detail::check(relax.zeros_beyond >= 0 && relax.zeros_beyond <= 1, bad, "Amalgamation::zeros_beyond is ",
                relax.zeros_beyond, ", outside 0..1");
  detail::check(options.singleton_tolerance >= 0, bad, "AnalyzeOptions::singleton_tolerance is ",
                options.singleton_tolerance, ", negative or NaN");
}

/// The ordering to try, with a permutation or without.
Ordering checked_ordering(Ordering asked, Indices permutation, Index cols) {
  static constexpr auto bad = ErrorCode::invalid_argument;
  if (!permutation) {
    detail::check(asked != Ordering::given || cols == 0, bad, "analyze: permutation is null with Ordering::given");
    return asked;
  }
  detail::check(asked == Ordering::given || asked == Ordering::automatic, bad,
                "analyze: a permutation is given, but the ordering is ", to_string(asked), ", not given");
  std::vector<char> seen(cols, 0);
  for (Index k = 0; k < cols; ++k) {
    const Index j = permutation[k];
    detail::check(j >= 0 && j < cols, bad, "permutation[", k, "] is ", j, ", outside 0..", cols - 1);
    detail::check(!seen[j], bad, "permutation[", k, "] is ", j, " a second time");
    seen[j] = 1;
  }
  return Ordering::given;
}

/// One ordering of the matrix without singletons, and its fronts.
template <class I>
struct Trial {
  FrontTree<I> tree;
  Symbolic fronts;
  double flops = 0;
  double seconds = 0;  // of the factorization, estimated
};

/// Entries visited to build the graph of A^T A, without the rows that it ignores.
template <class I>
double joined_entries(const Compact<I>& a) {
  double joined = 0;
  const Index limit = dense_row_limit(a.cols);
  for (I i = 0; i < a.rows; ++i) {
    const Index length = a.row_begin[i + 1] - a.row_begin[i];
    if (length <= limit) joined += static_cast<double>(length) * static_cast<double>(length);
  }
  return joined;
}

/// Tries orderings of one matrix and remembers the best.
template <class I>
class Trials {
 public:
  Trials(const Compact<I>& a, const Singletons<I>& singletons, const AnalyzeOptions& options, Indices permutation,
         const Symbolic& shape, bool gpu)
      : a_(a), singletons_(singletons), options_(options), permutation_(permutation), shape_(shape), gpu_(gpu) {}

  void run(Ordering ordering) {
    if (ordering == Ordering::amd || ordering == Ordering::metis) build_graph();
    judge(ordering, make_order(ordering));
  }

  /// Takes the cheapest ordering first: AMD if the graph of A^T A is small, else COLAMD. The others run concurrently if
  /// the factorization is predicted to take at least three times as long as they do.
  void run_automatic() {
    const double joined = joined_entries(a_), graph_seconds = 2e-8 * joined;
    const bool small_graph = has_column_graph(a_.cols) && joined <= 64.0 * static_cast<double>(a_.entries());
    const Ordering first = small_graph ? Ordering::amd : Ordering::colamd;
    run(first);
    // On a GPU a factorization is short, but an analysis usually serves many matrices of its pattern.
    const double limit = gpu_ ? 3e-6 * std::sqrt(best_->flops) : 3 * best_->seconds;
    const auto pays = [limit](double seconds) { return seconds < limit; };
    std::future<Made> colamd, amd;
    bool metis = false;
    if (first != Ordering::colamd && pays(5e-7 * static_cast<double>(a_.entries())))
      colamd = std::async([this] { return make_order(Ordering::colamd); });
    if (small_graph || (has_column_graph(a_.cols) && pays(graph_seconds))) {
      build_graph();
      const auto edges = static_cast<double>(graph_->edges.size()), vertices = static_cast<double>(graph_->vertices());
      if (first != Ordering::amd && pays(graph_seconds + 1e-6 * vertices + 5e-8 * edges))
        amd = std::async([this] { return make_order(Ordering::amd); });
      metis = metis_fits(*graph_) && pays(7e-6 * vertices + 1e-7 * edges);
    }
    // A structured matrix's own order may be the best; the counts show that at almost no cost.
    if (pays(1e-7 * static_cast<double>(a_.entries()))) judge(Ordering::natural, make_order(Ordering::natural));
    std::optional<Made> made_metis;
    if (metis)
      made_metis = make_order(Ordering::metis);  // on this thread, whose freed memory the factorization can reuse
    if (colamd.valid()) judge(Ordering::colamd, colamd.get());
    if (amd.valid()) judge(Ordering::amd, amd.get());
    if (made_metis) judge(Ordering::metis, std::move(*made_metis));
  }

  /// The best ordering's fronts, and leftmost columns of the rows for lay_out_matrix.
  std::pair<Symbolic, std::vector<I>> finish() {
    graph_.reset();
    Symbolic s = std::move(best_->fronts);
    AnalysisFacts& facts = s.facts;
    facts.ordering = chosen_;
    facts.trials = std::move(trials_);
    facts.order_seconds = order_seconds_;
    facts.tree_seconds = tree_seconds_;
    facts.supernodes = best_->tree.supernodes;
    facts.r_entries_exact = best_->tree.r_entries_exact;
    s.col_perm.reserve(s.cols);
    s.col_perm.assign(singletons_.cols.begin(), singletons_.cols.end());
    for (const I j : best_->tree.order) s.col_perm.push_back(singletons_.live_cols[j]);
    s.col_perm.insert(s.col_perm.end(), singletons_.empty_cols.begin(), singletons_.empty_cols.end());
    return {std::move(s), std::move(best_->tree.leftmost)};
  }

 private:
  struct Made {
    std::vector<I> order;
    double seconds = 0;
  };

  void build_graph() {
    if (graph_) return;
    Stopwatch watch;
    graph_ = column_graph(a_);
    order_seconds_ += watch.lap();
  }

  Made make_order(Ordering ordering) const {
    Stopwatch watch;
    Made made;
    switch (ordering) {
      case Ordering::colamd: made.order = order_colamd(a_); break;
      case Ordering::amd: made.order = order_amd<I>(*graph_); break;
      case Ordering::metis: made.order = order_metis<I>(*graph_); break;
      case Ordering::given: made.order = given_order(); break;
      case Ordering::natural:
      case Ordering::automatic: made.order.resize(a_.cols); std::iota(made.order.begin(), made.order.end(), I{0});
    }
    made.seconds = watch.lap();
    return made;
  }

  /// How fronts are merged for columns with these counts in R.
  Amalgamation relaxation(const ColumnTree<I>& columns) const {
    if (options_.expert.amalgamation) return *options_.expert.amalgamation;
    double squares = 0;  // flops of a Cholesky factorization: a lower bound
    for (const I count : columns.r_counts) squares += static_cast<double>(count) * static_cast<double>(count);
    constexpr double worth_a_gpu = 5e6;
    return gpu_ && squares >= worth_a_gpu ? Amalgamation::for_gpu() : Amalgamation{};
  }

  /// Estimated seconds of a factorization. A GPU factors the panels of the longest path one after the other.
  double predict(const Trial<I>& trial) const {
    if (!gpu_) return trial.flops / 2e10;
    constexpr Index panel = 32, whole_elements = 14000;
    return 6e-5 * static_cast<double>(longest_path(trial.fronts, panel, whole_elements)) + trial.flops / 1.2e13;
  }

  /// Prices an ordering and keeps the best. One with much more fill than the best is rejected early.
  void judge(Ordering ordering, Made made) {
    Stopwatch watch;
    const ColumnTree<I> columns = column_tree(a_, made.order);
    const double entries = std::accumulate(columns.r_counts.begin(), columns.r_counts.end(), 0.0);
    if (best_ && entries > 1.5 * static_cast<double>(best_->tree.r_entries_exact)) {  // cannot win
      tree_seconds_ += watch.lap();
      order_seconds_ += made.seconds;
      return;
    }
    Trial<I> trial{front_tree(columns, relaxation(columns)), shape_};
    lay_out_fronts(a_, trial.tree, trial.fronts);
    Index r_entries = 0;
    for (const Front& front : trial.fronts.fronts) {
      trial.flops += front.flops;
      r_entries += front.r_entries();
    }
    const double tree_seconds = watch.lap();
    order_seconds_ += made.seconds;
    tree_seconds_ += tree_seconds;
    trials_.push_back({ordering, trial.flops, r_entries, made.seconds + tree_seconds});
    trial.seconds = predict(trial);
    if (best_ && best_->seconds <= trial.seconds) return;
    best_ = std::move(trial);
    chosen_ = ordering;
  }

  /// The user's permutation without singletons and empty columns.
  std::vector<I> given_order() const {
    std::vector<I> live(shape_.cols, -1), order;
    for (I k = 0; k < a_.cols; ++k) live[singletons_.live_cols[k]] = k;
    for (Index k = 0; k < shape_.cols; ++k) {
      if (const I j = live[permutation_[k]]; j >= 0) order.push_back(j);
    }
    return order;
  }

  const Compact<I>& a_;
  const Singletons<I>& singletons_;
  const AnalyzeOptions& options_;
  const Indices permutation_;
  const Symbolic& shape_;
  bool gpu_;
  std::optional<ColumnGraph> graph_;
  std::optional<Trial<I>> best_;
  Ordering chosen_ = Ordering::natural;
  std::vector<OrderingTrial> trials_;
  double order_seconds_ = 0;
  double tree_seconds_ = 0;
};

/// Peak memory of fronts in postorder, each freed when its contribution block has been assembled.
Index peak_entries(const Symbolic& s) {
  Index waiting = 0, peak = 0;
  for (const Front& front : s.fronts) {
    peak = std::max(peak, waiting + front.entries());
    for (Index c = 0; c < front.child_count; ++c) {
      waiting -= s.fronts[s.children[front.child_begin + c]].cb_entries();
    }
    waiting += front.cb_entries();
  }
  return peak;
}

void gather_facts(Symbolic& s) {
  AnalysisFacts& facts = s.facts;
  facts.rows = s.rows;
  facts.cols = s.cols;
  facts.entries = s.entries;
  facts.duplicates = s.user_entries - s.entries;
  facts.singletons = s.singletons;
  facts.empty_rows = s.empty_rows;
  facts.empty_cols = s.empty_cols;
  facts.structural_rank_bound = s.r_rows;
  facts.fronts = s.front_count();
  const Index singleton_entries = s.row_begin[s.singletons];
  facts.r_entries_exact += singleton_entries;
  facts.r_entries = singleton_entries;
  Index largest = -1;
  for (const Front& front : s.fronts) {
    facts.roots += front.parent < 0 ? 1 : 0;
    facts.levels = std::max(facts.levels, front.level + 1);
    facts.widest = std::max(facts.widest, front.cols);
    facts.r_entries += front.r_entries();
    facts.v_entries += staircase_entries(front.rows, front.cols, s.stair.data() + front.cols_begin);
    facts.front_entries += front.entries();
    facts.flops += front.flops;
    if (front.entries() <= largest) continue;
    largest = front.entries();
    facts.largest_rows = front.rows;
    facts.largest_cols = front.cols;
  }
  facts.peak_entries = peak_entries(s);
  constexpr double index_bytes = sizeof(Index), value_bytes = sizeof(double);
  facts.matrix_bytes =
      static_cast<double>(s.entries) * (index_bytes + value_bytes) + static_cast<double>(s.cols + 1) * index_bytes;
  facts.factor_bytes = static_cast<double>(facts.r_entries + facts.v_entries) * value_bytes;
  facts.intensity = facts.factor_bytes > 0 ? facts.flops / facts.factor_bytes : 0;
}

template <class I>
Symbolic analyze_by(const Pattern& pattern, const AnalyzeOptions& options, const SingletonTest& may_pivot, bool gpu,
                    Indices permutation) {
  Stopwatch watch;
  const CompactedPattern<I> compacted = compact<I>(pattern);
  check_options(options);
  const Ordering ordering = checked_ordering(options.ordering, permutation, pattern.cols);
  const Singletons<I> singletons = find_singletons(compacted, options.singletons, may_pivot);
  const bool all_columns = static_cast<Index>(singletons.live_cols.size()) == pattern.cols;  // and so all rows
  const Compact<I> reduced = all_columns ? Compact<I>{} : reduce(compacted.a, singletons);
  const Compact<I>& rest = all_columns ? compacted.a : reduced;

  Symbolic shape;
  shape.rows = pattern.rows;
  shape.cols = pattern.cols;
  shape.entries = compacted.a.entries();
  shape.user_entries = pattern.entries;
  shape.singletons = static_cast<Index>(singletons.cols.size());
  shape.empty_rows = static_cast<Index>(singletons.empty_rows.size());
  shape.empty_cols = static_cast<Index>(singletons.empty_cols.size());

  Trials<I> trials(rest, singletons, options, permutation, shape, gpu);
  const double compact_seconds = watch.lap();
  if (ordering == Ordering::automatic) {
    trials.run_automatic();
  } else {
    trials.run(ordering);
  }
  watch.lap();
  auto [s, leftmost] = trials.finish();
  lay_out_matrix(compacted, singletons, leftmost, all_columns ? nullptr : singletons.live_rows.data(), s);
  gather_facts(s);
  s.facts.tree_seconds += compact_seconds;
  s.facts.layout_seconds = watch.lap();
  return std::move(s);
}

}  // namespace

Symbolic analyze_pattern(const Pattern& pattern, const AnalyzeOptions& options, const SingletonTest& may_pivot,
                         bool gpu, bool wide, Indices permutation) {
  return !wide && fits_narrow(pattern) ? analyze_by<std::int32_t>(pattern, options, may_pivot, gpu, permutation)
                                       : analyze_by<Index>(pattern, options, may_pivot, gpu, permutation);
}

template <class T>
Symbolic analyze_again(const Symbolic& s, const T* user_values, double tolerance,
                       const std::vector<std::int32_t>& exponents, bool gpu) {
  std::vector<Index> rows(s.user_entries), cols(s.user_entries);
  std::vector<std::int32_t> exponent(exponents.empty() ? 0 : s.user_entries);
  s.for_each_row([&](Index k, Index first, Index last, auto column) {
    const bool plain = s.gather_begin.empty();
    for (Index p = first; p < last; ++p)
      for (Index q = plain ? p : s.gather_begin[p]; q < (plain ? p + 1 : s.gather_begin[p + 1]); ++q) {
        rows[s.gather[q]] = s.row_perm[k];
        cols[s.gather[q]] = s.col_perm[column(p)];
        if (!exponents.empty()) exponent[s.gather[q]] = exponents[column(p)];
      }
  });
  const SingletonTest above = [&](const Index* entries, Index count) {
    const T pivot = sum_of(user_values, entries, count);
    return std::abs(static_cast<double>(exponents.empty() ? pivot : std::ldexp(pivot, exponent[entries[0]]))) >
           tolerance;
  };
  return analyze_pattern(by_triplets<T>(s.rows, s.cols, s.user_entries, rows.data(), cols.data(), user_values), {},
                         above, gpu, false, s.col_perm.data());
}
template Symbolic analyze_again(const Symbolic&, const float*, double, const std::vector<std::int32_t>&, bool);
template Symbolic analyze_again(const Symbolic&, const double*, double, const std::vector<std::int32_t>&, bool);

}  // namespace qrane::sparse
