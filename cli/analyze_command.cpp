// SPDX-License-Identifier: Apache-2.0
// `qrane analyze A`: what a sparse QR of A will cost, before any number of it is touched, and a picture of its tree.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/outputs.hpp>
#include <cli/sparse.hpp>
#include <cli/tree_picture.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane::cli {
namespace {

using namespace qrane::sparse;

struct AnalyzeCommandOptions {
  CommonOptions common;
  std::string a, picture;
  std::string ordering = "automatic";
  std::string memory_limit;
};

/// Of each front of a factorization without Q within the limit; all 0 without a limit.
template <class T>
std::vector<std::int32_t> stages_within(const Analysis& analysis, std::int64_t limit_bytes) {
  if (limit_bytes == 0) return std::vector<std::int32_t>(static_cast<std::size_t>(analysis.facts().fronts), 0);
  FactorOptions options;
  options.q = KeepQ::discard;
  options.memory_limit_bytes = limit_bytes;
  return analysis.stages<T>(options);
}

/// Fronts up to a width, and their share of the work.
struct WidthClass {
  Index widest = 0;
  Index fronts = 0;
  double flops = 0;
};

std::vector<WidthClass> by_width(const std::vector<FrontFacts>& fronts) {
  std::vector<WidthClass> classes;
  for (const Index widest : {16, 64, 256, 1024, 4096}) classes.push_back({widest, 0, 0});
  classes.push_back({std::numeric_limits<Index>::max(), 0, 0});
  for (const FrontFacts& front : fronts) {
    const auto at =
        std::find_if(classes.begin(), classes.end(), [&](const WidthClass& c) { return front.cols <= c.widest; });
    ++at->fronts;
    at->flops += front.flops;
  }
  return classes;
}

Json widths_json(const std::vector<WidthClass>& classes) {
  Json list = Json::array();
  for (const WidthClass& c : classes) {
    if (c.fronts == 0) continue;
    Json one{{"fronts", c.fronts}, {"flops", c.flops}};
    if (c.widest != std::numeric_limits<Index>::max()) one["columns_at_most"] = c.widest;
    list.push_back(one);
  }
  return list;
}

void say_widths(const Words& say, const std::vector<WidthClass>& classes, double flops) {
  const char* title = "widths         ";
  for (const WidthClass& c : classes) {
    if (c.fronts == 0) continue;
    const bool last = c.widest == std::numeric_limits<Index>::max();
    say(title, c.fronts, " fronts of ", last ? "more than 4096" : detail::concat("up to ", c.widest),
        " columns: ", brief(flops > 0 ? 100 * c.flops / flops : 0), " % of the flops");
    title = "               ";
  }
}

Json facts_json(const AnalysisFacts& f) {
  Json trials = Json::array();
  for (const OrderingTrial& t : f.trials) {
    trials.push_back(
        {{"ordering", to_string(t.ordering)}, {"flops", t.flops}, {"r_entries", t.r_entries}, {"seconds", t.seconds}});
  }
  return {{"rows", f.rows},
          {"cols", f.cols},
          {"entries", f.entries},
          {"ordering", to_string(f.ordering)},
          {"trials", trials},
          {"singletons", f.singletons},
          {"empty_rows", f.empty_rows},
          {"empty_cols", f.empty_cols},
          {"structural_rank_bound", f.structural_rank_bound},
          {"fronts", f.fronts},
          {"supernodes", f.supernodes},
          {"roots", f.roots},
          {"levels", f.levels},
          {"largest_front", {f.largest_rows, f.largest_cols}},
          {"widest_front", f.widest},
          {"r_entries", f.r_entries},
          {"r_entries_exact", f.r_entries_exact},
          {"v_entries", f.v_entries},
          {"front_entries", f.front_entries},
          {"peak_entries", f.peak_entries},
          {"flops", f.flops},
          {"intensity", f.intensity},
          {"matrix_bytes", f.matrix_bytes},
          {"factor_bytes", f.factor_bytes},
          {"order_seconds", f.order_seconds},
          {"tree_seconds", f.tree_seconds},
          {"layout_seconds", f.layout_seconds}};
}

int run(const AnalyzeCommandOptions& options) {
  AnalyzeOptions how;
  how.ordering = pick_ordering(options.ordering);
  const std::int64_t limit_bytes = memory_limit_bytes(options.memory_limit);
  if (!options.picture.empty()) io::check_picture_path(options.picture);
  const Precision precision = pick_precision(options.common, Precision::f64);
  check_outputs({{"--picture", options.picture, false}, {"--json", options.common.json, false}}, {{"A", options.a}});
  const Context context = make_context(options.common, precision);

  const io::Sparse<double> a = io::read_sparse(options.a);
  io::require_finite(options.a, a);
  const auto view = by_columns(a.rows, a.cols, a.col_ptr.data(), a.row_idx.data(), a.values.data());
  const Analysis analysis = analyze(context, view, how);
  const AnalysisFacts& facts = analysis.facts();
  const std::vector<FrontFacts> fronts = analysis.fronts();
  const std::vector<std::int32_t> stages =
      with_scalar(precision, [&](auto scalar) { return stages_within<decltype(scalar)>(analysis, limit_bytes); });
  const std::int32_t stage_count = stages.empty() ? 1 : *std::max_element(stages.begin(), stages.end()) + 1;

  const Words say(options.common.quiet);
  say("file           ", options.a);
  say(facts.explain());
  const std::vector<WidthClass> widths = by_width(fronts);
  say_widths(say, widths, facts.flops);
  if (limit_bytes > 0) say("stages         ", stage_count, " on the device within the limit");
  if (!options.picture.empty()) {
    const std::string caption =
        detail::concat(options.a, ": ", shape(facts.rows, facts.cols), ", ", facts.fronts, " fronts in ", facts.levels,
                       " levels, ", brief(facts.flops), " flops, ordering ", to_string(facts.ordering));
    io::write_picture(options.picture, draw_tree(fronts, stages, caption));
    say("picture        ", options.picture);
  }
  Json json = describe(context, precision);
  json["file"] = options.a;
  json.update(facts_json(facts));
  json["widths"] = widths_json(widths);
  json["stages"] = stage_count;
  write_json(options.common.json, json);
  return exit_success;
}

}  // namespace

Command add_analyze_command(CLI::App& parent) {
  auto options = std::make_shared<AnalyzeCommandOptions>();
  CLI::App* app = parent.add_subcommand("analyze", "what a sparse QR will cost: ordering, tree, counts");
  app->add_option("A", options->a, "matrix file; of a dense one the nonzeros")->required();
  add_ordering_option(*app, options->ordering);
  app->add_option("--picture", options->picture, "draw the tree of fronts here: .svg or .png")->type_name("FILE");
  app->add_option(
         "--memory-limit", options->memory_limit,
         "device memory, such as 4G: says how many stages a factorization takes, and colours the picture by them")
      ->type_name("BYTES");
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
