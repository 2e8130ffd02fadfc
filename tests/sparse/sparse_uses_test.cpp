// SPDX-License-Identifier: Apache-2.0
// Sparse QR as long runs use it: the ranks of known matrices, progress, one analysis for many factorizations.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <stdexcept>
#include <vector>

#include <io/matrices/matrix_file.hpp>
#include <qrane/sparse_qr.hpp>

#include "support/backends.hpp"

namespace qrane::test {
namespace {

using sparse::Factor;
using sparse::FactorOptions;
using sparse::KeepQ;

/// A matrix of the examples; in a small run, where asked for, its leading columns alone.
template <class T>
struct File {
  explicit File(const std::string& name, Index most = 0)
      : a(io::read_sparse(std::string(QRANE_TEST_DATA) + "/" + name)) {
    if (most > 0 && small_run()) {
      a.cols = most;
      a.col_ptr.resize(static_cast<std::size_t>(most + 1));
      a.row_idx.resize(static_cast<std::size_t>(a.col_ptr.back()));
      a.values.resize(a.row_idx.size());
    }
    values.assign(a.values.begin(), a.values.end());
  }
  sparse::SparseView<T> view() const {
    return sparse::by_columns(a.rows, a.cols, a.col_ptr.data(), a.row_idx.data(), values.data());
  }
  io::Sparse<double> a;
  std::vector<T> values;
};

template <class Where>
class SparseUses : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using BackendTest<Where>::context;

  /// As `automatic` sends the whole matrices.
  static FactorOptions options() {
    FactorOptions options;
    if (small_run()) options.processor = sparse::Processor::device;
    return options;
  }
};
TYPED_TEST_SUITE(SparseUses, Everywhere, Names);

/// As SuiteSparseQR 5.12 finds them with its default tolerance, by METIS and by its default ordering.
TYPED_TEST(SparseUses, RanksOfKnownMatrices) {
  using T = typename TypeParam::Scalar;
  using Known = std::pair<const char*, Index>;
  const std::vector<Known> large = {{"lp_nug08_T.mtx.gz", 742}, {"ch6-6-b3.mtx.gz", 1985}};
  for (const auto& [name, rank] : small_run() ? std::vector<Known>{{"ash219.mtx", 85}} : large) {
    const File<T> file(name);
    for (const sparse::Ordering ordering : some_of({sparse::Ordering::automatic, sparse::Ordering::colamd}, 2)) {
      sparse::AnalyzeOptions analyze;
      analyze.ordering = ordering;
      FactorOptions options;
      options.q = KeepQ::discard;
      const Factor<T> f = sparse::analyze(TestFixture::context(), file.view(), analyze).factor(file.view(), options);
      EXPECT_EQ(f.rank(), rank) << name << ", " << to_string(ordering);
      const double longest = 20;  // no column of these is longer
      const double tolerance = std::max(f.facts().absolute_tolerance, f.facts().column_tolerance * longest);
      EXPECT_LT(f.facts().dropped_norm, tolerance * std::sqrt(static_cast<double>(file.a.cols))) << name;
      EXPECT_EQ(f.r().rows, rank);
    }
  }
}

TYPED_TEST(SparseUses, ProgressGoesUpToTheEnd) {
  using T = typename TypeParam::Scalar;
  const File<T> file("lp_nug08_T.mtx.gz", 300);
  const sparse::Analysis analysis = sparse::analyze(TestFixture::context(), file.view());
  for (const int threads : {1, 3}) {
    double last = 0, all = 0;
    int calls = 0;
    FactorOptions options = TestFixture::options();
    options.threads = threads;
    options.on_progress = [&](double done, double flops) {
      EXPECT_GE(done, last);
      EXPECT_LE(done, flops);
      last = done;
      all = flops;
      ++calls;
    };
    Factor<T> f = analysis.factor(file.view(), options);
    EXPECT_EQ(all, analysis.facts().flops);
    EXPECT_EQ(last, all);
    EXPECT_GE(calls, 2);
    last = 0;
    f.refactor(file.values.data());
    EXPECT_EQ(last, all);
  }
}

TYPED_TEST(SparseUses, WhatProgressThrowsEndsTheFactorization) {
  using T = typename TypeParam::Scalar;
  const File<T> file("lp_nug08_T.mtx.gz", 300);
  const sparse::Analysis analysis = sparse::analyze(TestFixture::context(), file.view());
  for (const int threads : {1, 3}) {
    bool stop = false;
    FactorOptions options = TestFixture::options();
    options.threads = threads;
    options.on_progress = [&](double, double) {
      if (stop) throw std::runtime_error("enough");
    };
    Factor<T> f = analysis.factor(file.view(), options);
    const sparse::SparseMatrix<T> r = f.r();
    stop = true;
    EXPECT_THROW(f.refactor(file.values.data()), std::runtime_error);
    EXPECT_THROW(f.r(), Error);
    stop = false;
    f.refactor(file.values.data());
    EXPECT_EQ(f.r().values, r.values) << threads << " threads";
  }
}

/// The memory that the first factorization took serves all others.
TYPED_TEST(SparseUses, RefactorUsesTheMemoryThatIsThere) {
  using T = typename TypeParam::Scalar;
  const File<T> file("ch6-6-b3.mtx.gz", 300);
  const sparse::Analysis analysis = sparse::analyze(TestFixture::context(), file.view());
  for (const auto& [q, threads] : {std::pair{KeepQ::discard, 1}, {KeepQ::discard, 4}, {KeepQ::keep, 4}}) {
    FactorOptions options = TestFixture::options();
    options.q = q;
    options.threads = threads;
    Factor<T> f = analysis.factor(file.view(), options);
    const sparse::SparseMatrix<T> r = f.r();
    const Index bytes = f.facts().bytes;
    for (int run = 0; run < (small_run() ? 1 : 4); ++run) {
      f.refactor(file.values.data());
      EXPECT_EQ(f.facts().bytes, bytes) << "run " << run;
    }
    EXPECT_EQ(f.r().values, r.values);
  }
}

/// Threads come from pools that the context keeps: each factorization has one for itself while it runs.
TEST(SparseUsesOnCpu, FactorizationsBesideEachOther) {
  const Context context(ContextOptions{.backend = Backend::cpu});
  const File<double> file("lp_nug08_T.mtx.gz");
  const sparse::Analysis analysis = sparse::analyze(context, file.view());
  FactorOptions options;
  options.q = KeepQ::discard;
  options.threads = 3;
  const Factor<double> alone = analysis.factor(file.view(), options);
  ASSERT_EQ(alone.facts().threads, 3);
  const std::vector<double> expected = alone.r().values;
  std::vector<std::future<std::vector<double>>> beside;
  for (int k = 0; k < 4; ++k)
    beside.push_back(std::async(std::launch::async, [&] {
      Factor<double> f = analysis.factor(file.view(), options);
      for (int run = 0; run < 3; ++run) f.refactor(file.values.data());
      return f.r().values;
    }));
  for (auto& each : beside) EXPECT_EQ(each.get(), expected);
}

TEST(SparseUsesOnCpu, LittleWorkTakesOneThread) {
  const Context context(ContextOptions{.backend = Backend::cpu});
  const std::vector<Index> rows{0, 1, 2, 0, 3}, cols{0, 0, 1, 2, 2};
  const std::vector<double> values{3, 4, 2, 1, 5};
  FactorOptions options;
  options.threads = 16;
  const auto a = sparse::by_triplets(4, 3, 5, rows.data(), cols.data(), values.data());
  EXPECT_EQ(sparse::analyze(context, a).factor(a, options).facts().threads, 1);
}

}  // namespace
}  // namespace qrane::test
