// SPDX-License-Identifier: Apache-2.0
// Sparse analysis: the public face of src/sparse/.
#include <array>
#include <cmath>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "plan/names.hpp"
#include "sparse/analysis/symbolic.hpp"

namespace qrane::sparse {
namespace {

constexpr std::array<std::pair<Ordering, const char*>, 6> ordering_names{{{Ordering::automatic, "automatic"},
                                                                          {Ordering::colamd, "colamd"},
                                                                          {Ordering::amd, "amd"},
                                                                          {Ordering::metis, "metis"},
                                                                          {Ordering::natural, "natural"},
                                                                          {Ordering::given, "given"}}};
constexpr std::array<std::pair<Processor, const char*>, 3> processor_names{
    {{Processor::automatic, "automatic"}, {Processor::cpu, "cpu"}, {Processor::device, "device"}}};

Analysis analyze_on(const Context& context, const Pattern& pattern, const AnalyzeOptions& options, Indices permutation,
                    const SingletonTest& may_pivot) {
  const bool gpu = context.device().is_gpu;
  try {
    return Analysis(context, std::make_shared<const Symbolic>(
                                 analyze_pattern(pattern, options, may_pivot, gpu, false, permutation)));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorCode::out_of_memory, detail::concat("analyze: no memory on the host for a pattern of ", pattern.rows,
                                                       " x ", pattern.cols, " with ", pattern.entries, " entries"));
}

/// "1.23e+09" for numbers too long to read, else the number.
std::string big(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

std::string bytes(double value) {
  constexpr std::array units{" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return big(value) + units[unit];
}

}  // namespace

const char* to_string(Ordering ordering) { return qrane::detail::name_of(ordering_names, ordering); }
Ordering ordering_from_string(const std::string& name) {
  return qrane::detail::value_of(ordering_names, name, "ordering");
}
const char* to_string(Processor processor) { return qrane::detail::name_of(processor_names, processor); }
Processor processor_from_string(const std::string& name) {
  return qrane::detail::value_of(processor_names, name, "processor");
}

bool has_metis() { return QRANE_WITH_METIS; }

const AnalysisFacts& Analysis::facts() const { return symbolic_->facts; }
const std::vector<Index>& Analysis::column_permutation() const { return symbolic_->col_perm; }
std::vector<FrontFacts> Analysis::fronts() const {
  std::vector<FrontFacts> result;
  result.reserve(symbolic_->fronts.size());
  for (const Front& f : symbolic_->fronts) result.push_back({f.rows, f.cols, f.pivots, f.parent, f.level, f.flops});
  return result;
}

Analysis analyze(const Context& context, const Pattern& pattern, const AnalyzeOptions& options, Indices permutation) {
  return analyze_on(context, pattern, options, permutation, {});
}

template <class T>
Analysis analyze(const Context& context, const SparseView<T>& a, const AnalyzeOptions& options, Indices permutation) {
  detail::check(a.values || a.entries == 0, ErrorCode::invalid_argument, "analyze: values is null");
  return analyze_on(context, a, options, permutation, pivots_above(options.singleton_tolerance, a.values));
}
template Analysis analyze<float>(const Context&, const SparseView<float>&, const AnalyzeOptions&, Indices);
template Analysis analyze<double>(const Context&, const SparseView<double>&, const AnalyzeOptions&, Indices);

std::string AnalysisFacts::explain() const {
  constexpr double value = sizeof(double);
  std::ostringstream out;
  out << "matrix         " << rows << " x " << cols << ", " << entries << " entries";
  if (duplicates > 0) out << " (" << duplicates << " more were duplicates)";
  out << "\ntaken out      " << singletons << " singleton columns, " << empty_cols << " empty columns, " << empty_rows
      << " empty rows\n";
  for (const OrderingTrial& trial : trials) {
    out << (trial.ordering == ordering ? "ordering       " : "  also tried   ") << to_string(trial.ordering) << ": "
        << big(trial.flops) << " flops, " << trial.r_entries << " entries of R, " << big(trial.seconds) << " s\n";
  }
  out << "fronts         " << fronts << " of " << supernodes << " supernodes, " << levels << " levels, " << roots
      << (roots == 1 ? " root" : " roots") << "; the largest " << largest_rows << " x " << largest_cols << '\n'
      << "R              " << r_entries << " entries in fronts, " << r_entries_exact << " in its pattern, "
      << structural_rank_bound << " rows\n"
      << "flops          " << big(flops) << ", " << big(intensity)
      << " for each byte of R and the Householder vectors\n"
      << "memory         " << bytes(static_cast<double>(r_entries) * value) << " R, "
      << bytes(static_cast<double>(v_entries) * value) << " Householder vectors, "
      << bytes(static_cast<double>(front_entries) * value) << " all fronts at once, "
      << bytes(static_cast<double>(peak_entries) * value) << " one front at a time\n"
      << "seconds        " << big(order_seconds) << " ordering, " << big(tree_seconds) << " tree, "
      << big(layout_seconds) << " layout";
  return out.str();
}

}  // namespace qrane::sparse
