// SPDX-License-Identifier: Apache-2.0
// sparse::analyze as its users call it: storages, singletons by value, names, and what is refused.
#include <gtest/gtest.h>

#include <numeric>

#include "sparse/analysis/symbolic.hpp"
#include "sparse/processor.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::AnalyzeOptions;
using sparse::Ordering;
using sparse::Symbolic;

TEST(SparseAnalyze, StoragesOfOneMatrixGiveOneAnalysis) {
  for (const auto& [name, a] : odd_matrices()) {
    SCOPED_TRACE(name);
    // Compressed both ways, entries of a line in the order in which they came.
    const auto entries = static_cast<Index>(a.row.size());
    std::vector<Index> by_col(entries), by_row(entries);
    std::iota(by_col.begin(), by_col.end(), Index{0});
    by_row = by_col;
    std::stable_sort(by_col.begin(), by_col.end(), [&a = a](Index p, Index q) { return a.col[p] < a.col[q]; });
    std::stable_sort(by_row.begin(), by_row.end(), [&a = a](Index p, Index q) { return a.row[p] < a.row[q]; });
    std::vector<Index> col_ptr(a.cols + 1, 0), row_ptr(a.rows + 1, 0), rows(entries), cols(entries);
    std::vector<double> col_values(entries), row_values(entries);
    for (Index k = 0; k < entries; ++k) {
      ++col_ptr[a.col[k] + 1];
      ++row_ptr[a.row[k] + 1];
      rows[k] = a.row[by_col[k]];
      col_values[k] = a.value[by_col[k]];
      cols[k] = a.col[by_row[k]];
      row_values[k] = a.value[by_row[k]];
    }
    std::partial_sum(col_ptr.begin(), col_ptr.end(), col_ptr.begin());
    std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
    const auto columns = sparse::by_columns(a.rows, a.cols, col_ptr.data(), rows.data(), col_values.data());
    const auto lines = sparse::by_rows(a.rows, a.cols, row_ptr.data(), cols.data(), row_values.data());
    ASSERT_EQ(columns.entries, entries);
    ASSERT_EQ(lines.entries, entries);
    AnalyzeOptions options;
    options.ordering = Ordering::natural;
    const Symbolic from_columns = sparse::analyze_pattern(columns, options, {}, false);
    const Symbolic from_rows = sparse::analyze_pattern(lines, options, {}, false);
    const Symbolic from_triplets = sparse::analyze_pattern(a.view(), options, {}, false);
    const auto gathered = [](const Symbolic& s, const std::vector<double>& user) {
      std::vector<double> values(s.entries);
      sparse::gather_values(s, user.data(), values.data());
      return values;
    };
    const std::vector<std::int32_t> col_ptr_32(col_ptr.begin(), col_ptr.end()), rows_32(rows.begin(), rows.end()),
        row_ptr_32(row_ptr.begin(), row_ptr.end()), cols_32(cols.begin(), cols.end()),
        row_32(a.row.begin(), a.row.end()), col_32(a.col.begin(), a.col.end());
    const auto columns_32 = sparse::by_columns(a.rows, a.cols, col_ptr_32.data(), rows_32.data(), col_values.data());
    const auto mixed = sparse::by_rows(a.rows, a.cols, row_ptr.data(), cols_32.data(), row_values.data());
    ASSERT_EQ(columns_32.entries, entries);
    const Symbolic from_columns_32 = sparse::analyze_pattern(columns_32, options, {}, false);
    const Symbolic from_mixed = sparse::analyze_pattern(mixed, options, {}, false);
    const Symbolic from_triplets_32 = sparse::analyze_pattern(
        sparse::by_triplets(a.rows, a.cols, entries, row_32.data(), col_32.data(), a.value.data()), options, {}, false);
    EXPECT_EQ(gathered(from_columns_32, col_values), gathered(from_triplets, a.value));
    EXPECT_EQ(gathered(from_mixed, row_values), gathered(from_triplets, a.value));
    EXPECT_EQ(gathered(from_triplets_32, a.value), gathered(from_triplets, a.value));
    for (const Symbolic* s : {&from_columns, &from_rows, &from_columns_32, &from_mixed, &from_triplets_32}) {
      EXPECT_EQ(s->col_perm, from_triplets.col_perm);
      EXPECT_EQ(s->row_perm, from_triplets.row_perm);
      EXPECT_EQ(s->columns_of_entries(), from_triplets.columns_of_entries());
      EXPECT_EQ(s->front_cols, from_triplets.front_cols);
      EXPECT_EQ(s->own_slot, from_triplets.own_slot);
      EXPECT_EQ(s->cb_slot, from_triplets.cb_slot);
    }
    EXPECT_EQ(gathered(from_columns, col_values), gathered(from_triplets, a.value));
    EXPECT_EQ(gathered(from_rows, row_values), gathered(from_triplets, a.value));
  }
}

TEST(SparseAnalyze, SingletonsNeedPivotsAboveTheTolerance) {
  Triplets a{3, 3, {0, 0, 1, 1, 2}, {0, 1, 1, 2, 2}, {1e-9, 2.0, 3.0, 4.0, 5.0}};
  const Context context({.backend = Backend::cpu});
  AnalyzeOptions options;
  EXPECT_EQ(sparse::analyze(context, a.view(), options).facts().singletons, 3);
  options.singleton_tolerance = 1e-6;
  EXPECT_EQ(sparse::analyze(context, a.view(), options).facts().singletons, 0);
  a.value[0] = 0;
  options.singleton_tolerance = 0;
  EXPECT_EQ(sparse::analyze(context, a.view(), options).facts().singletons, 0);
  EXPECT_EQ(sparse::analyze(context, sparse::Pattern(a.view()), options).facts().singletons, 3);
  a.value[0] = 1;
  a.add(0, 0, -1);  // a sum of zero
  EXPECT_EQ(sparse::analyze(context, a.view(), options).facts().singletons, 0);
}

TEST(SparseAnalyze, OrderingNames) {
  for (const Ordering ordering :
       {Ordering::automatic, Ordering::colamd, Ordering::amd, Ordering::metis, Ordering::natural, Ordering::given}) {
    EXPECT_EQ(sparse::ordering_from_string(sparse::to_string(ordering)), ordering);
  }
  EXPECT_THROW(sparse::ordering_from_string("best"), Error);
}

/// The message of the Error that analyzing throws.
std::string refusal(const sparse::Pattern& pattern, const AnalyzeOptions& options = {},
                    sparse::Indices permutation = {}) {
  const Context context({.backend = Backend::cpu});
  try {
    sparse::analyze(context, pattern, options, permutation);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

void expect_named(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
}

TEST(SparseAnalyze, BadPatternsAreRefusedByName) {
  const std::vector<Index> rows{0, 2, 1}, cols{0, 1, 3}, pointers{0, 1, 2, 3};
  sparse::Pattern p = sparse::by_triplets<double>(2, 4, 3, rows.data(), cols.data(), nullptr);
  expect_named(refusal(p), {"entry 1", "row 2", "0..1"});
  p.rows = 3;
  EXPECT_EQ(refusal(p), "");
  p.cols = 3;
  expect_named(refusal(p), {"entry 2", "column 3"});
  p.rows = -1;
  expect_named(refusal(p), {"-1 rows"});

  p = sparse::by_columns<double>(3, 3, pointers.data(), rows.data(), nullptr);
  EXPECT_EQ(refusal(p), "");
  p.entries = 5;
  expect_named(refusal(p), {"end at 3", "5 entries"});
  const std::vector<Index> falling{0, 2, 1, 3}, late{1, 1, 2, 3};
  expect_named(refusal(sparse::by_columns<double>(3, 3, falling.data(), rows.data(), nullptr)), {"fall", "column 1"});
  expect_named(refusal(sparse::by_rows<double>(3, 4, late.data(), cols.data(), nullptr)), {"pointers[0] is 1"});
  expect_named(refusal(sparse::by_columns<double>(3, 3, nullptr, rows.data(), nullptr)), {"pointers"});
  expect_named(refusal(sparse::by_rows<double>(3, 4, pointers.data(), nullptr, nullptr)), {"col_indices"});
  const std::vector<std::int32_t> narrow{0, -7, 1};
  expect_named(refusal(sparse::by_columns<double>(3, 3, pointers.data(), narrow.data(), nullptr)),
               {"entry 1", "row -7", "0..2"});
}

TEST(SparseAnalyze, BadOptionsAreRefusedByName) {
  const Triplets a = random_sparse(6, 4, 0.5, 1);
  AnalyzeOptions options;
  options.ordering = Ordering::given;
  expect_named(refusal(a.view(), options), {"permutation is null"});
  const std::vector<Index> twice{0, 1, 1, 2}, beyond{0, 1, 2, 4};
  expect_named(refusal(a.view(), options, twice.data()), {"permutation[2] is 1 a second time"});
  expect_named(refusal(a.view(), {}, beyond.data()), {"permutation[3] is 4"});
  options.ordering = Ordering::colamd;
  expect_named(refusal(a.view(), options, beyond.data()), {"permutation", "colamd"});
  options = {};
  options.expert.amalgamation = sparse::Amalgamation{.columns = {8, 1, 96}};
  expect_named(refusal(a.view(), options), {"columns[1] is 1"});
  options = {};
  options.expert.amalgamation = sparse::Amalgamation{.front_flops = -1};
  expect_named(refusal(a.view(), options), {"front_flops is -1"});
  options = {};
  options.expert.amalgamation = sparse::Amalgamation{.zeros = {0, 0, std::nan("")}};
  expect_named(refusal(a.view(), options), {"zeros[2]"});
  options = {};
  options.singleton_tolerance = -1;
  expect_named(refusal(a.view(), options), {"singleton_tolerance"});
}

TEST(SparseAnalyze, FrontsForAGpuMakeShorterPaths) {
  const Triplets a = random_sparse(900, 500, 0.008, 3);
  const auto path = [&](bool gpu, std::optional<sparse::Amalgamation> amalgamation) {
    AnalyzeOptions options;
    options.ordering = Ordering::colamd;
    options.expert.amalgamation = amalgamation;
    return sparse::longest_path(sparse::analyze_pattern(a.view(), options, {}, gpu), 8, 100);
  };
  const Index for_cores = path(false, {}), for_gpu = path(true, {});
  EXPECT_LT(for_gpu, for_cores);
  EXPECT_EQ(path(false, sparse::Amalgamation::for_gpu()), for_gpu);
  EXPECT_EQ(path(true, sparse::Amalgamation{}), for_cores);
}

}  // namespace
}  // namespace qrane::test
