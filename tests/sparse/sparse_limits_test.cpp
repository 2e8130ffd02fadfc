// SPDX-License-Identifier: Apache-2.0
// Sparse QR by the device's kernels in less memory than it wants: the same bits, and the limit is kept.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include <qrane/sparse_qr.hpp>

#include "support/backends.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::Factor;
using sparse::FactorFacts;
using sparse::FactorOptions;
using sparse::KeepQ;

/// Twelve subtrees (five in a small run) that meet in twenty columns, and these in a front of many rows.
Triplets bushy(bool deficient) {
  const Index groups = small_run() ? 5 : 12;
  Triplets a{100 * groups, 50 * groups + 20, {}, {}, {}};
  for (Index group = 0; group < groups; ++group) {
    const Triplets block = random_sparse(100, 50, 0.1, 44 + static_cast<unsigned>(group));
    for (std::size_t k = 0; k < block.value.size(); ++k)
      a.add(100 * group + block.row[k], 50 * group + block.col[k], block.value[k]);
    for (Index i = 0; i < 60; ++i)
      a.add(100 * group + i, 50 * groups + (i * 7 + group) % 20, 0.5 + static_cast<double>(i % 3));
  }
  if (deficient)
    for (std::size_t k = 0; k < a.value.size(); ++k)
      if (a.col[k] % 9 == 4) a.value[k] = 0;
  return a;
}

/// Wide contribution blocks: more than fit into one piece.
Triplets dense_top() {
  Triplets a = random_sparse(700, 300, 0.012, 91);
  for (Index i = 0; i < 700; i += 3)
    for (Index j = 240; j < 300; j += 2) a.add(i, j, static_cast<double>((i * 31 + j * 17) % 23) - 11.0);
  return a;
}

template <class Where>
class SparseLimits : public BackendTest<Where> {
 public:
  using T = typename Where::Scalar;

  struct Problem {
    explicit Problem(const Triplets& a) : triplets(a), values(a.value.begin(), a.value.end()) {}
    sparse::SparseView<T> view() const {
      return sparse::by_triplets(triplets.rows, triplets.cols, static_cast<Index>(values.size()), triplets.row.data(),
                                 triplets.col.data(), values.data());
    }
    Triplets triplets;
    std::vector<T> values;
  };

  /// What a factorization gave.
  struct Outcome {
    sparse::SparseMatrix<T> r;
    std::vector<Index> permutation;
    Dense<T> x;                 // from the right-hand sides that rode along
    std::optional<Dense<T>> q;  // applied to those
    FactorFacts facts;
  };
  static Outcome outcome(const Context& context, const Factor<T>& f, const Dense<T>& b, KeepQ keep) {
    Outcome out{f.r(), f.permutation(), BackendTest<Where>::host_of(context, f.solve().x), {}, f.facts()};
    if (keep == KeepQ::keep) {
      out.q = b;
      f.apply_qt(out.q->view());
    }
    return out;
  }
  static void expect_same(const Outcome& a, const Outcome& b) {
    EXPECT_EQ(a.r.pointers, b.r.pointers);
    EXPECT_EQ(a.r.row_indices, b.r.row_indices);
    EXPECT_EQ(a.r.values, b.r.values);
    EXPECT_EQ(a.permutation, b.permutation);
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.facts.rank, b.facts.rank);
    EXPECT_EQ(a.facts.dropped_norm, b.facts.dropped_norm);
    ASSERT_EQ(a.q.has_value(), b.q.has_value());
    if (!a.q) return;
    for (Index j = 0; j < a.q->cols; ++j) {  // applied on the device or on the host
      Wide<T> gap = 0, length = 0;
      for (Index i = 0; i < a.q->rows; ++i) {
        const Wide<T> u = (*a.q)(i, j), v = (*b.q)(i, j);
        gap += (u - v) * (u - v);
        length += u * u;
      }
      EXPECT_LE(std::sqrt(gap),
                30 * static_cast<Wide<T>>(a.q->rows) * std::numeric_limits<T>::epsilon() * std::sqrt(length));
    }
  }
  static FactorOptions options(KeepQ keep) {
    FactorOptions options;
    options.processor = sparse::Processor::device;
    options.q = keep;
    return options;
  }
  /// The bytes that the refusal of a limit of one byte asks for.
  static Index least(const sparse::Analysis& analysis, const Problem& a, const Dense<T>& b, FactorOptions options) {
    options.memory_limit_bytes = 1;
    const Thrown thrown = thrown_by([&] { analysis.factor(a.view(), options, b.view()); });
    EXPECT_TRUE(thrown.happened);
    EXPECT_EQ(thrown.code, ErrorCode::out_of_memory);
    EXPECT_NE(thrown.message.find("front "), std::string::npos) << thrown.message;
    const std::size_t at = thrown.message.find("needs ");
    EXPECT_NE(at, std::string::npos) << thrown.message;
    return at == std::string::npos ? 0 : std::atoll(thrown.message.c_str() + at + 6);
  }
};
TYPED_TEST_SUITE(SparseLimits, Everywhere, Names);

TYPED_TEST(SparseLimits, SameBitsDownToOneFrontAlone) {
  using T = typename TypeParam::Scalar;
  using Problem = typename TestFixture::Problem;
  const Context& context = TestFixture::context();
  int most_stages = 1;
  for (const Triplets& triplets :
       small_run() ? std::vector{bushy(true), dense_top()} : std::vector{bushy(false), bushy(true), dense_top()}) {
    const Problem a(triplets);
    const Dense<T> b = random_normal<T>(triplets.rows, 2, 6);
    sparse::AnalyzeOptions analyze;
    analyze.expert.amalgamation = sparse::Amalgamation{.front_flops = 0, .entry_flops = 0};  // many fronts
    const sparse::Analysis analysis = sparse::analyze(context, a.view(), analyze);
    for (const KeepQ keep : in_turn({KeepQ::discard, KeepQ::keep})) {
      FactorOptions options = TestFixture::options(keep);
      const auto free = TestFixture::outcome(context, analysis.factor(a.view(), options, b.view()), b, keep);
      EXPECT_EQ(free.facts.stages, 1);
      const Index least = TestFixture::least(analysis, a, b, options), most = free.facts.peak_bytes;
      ASSERT_LT(least, most);
      const Index span = most - least;
      for (const Index limit :
           in_turn({least, least + span / 16, least + span / 4, least + span / 2, least + span * 3 / 4, most})) {
        SCOPED_TRACE(::testing::Message()
                     << "limit " << limit << " of " << most << (keep == KeepQ::keep ? ", Q kept" : ""));
        options.memory_limit_bytes = limit;
        Factor<T> f = analysis.factor(a.view(), options, b.view());
        const auto limited = TestFixture::outcome(context, f, b, keep);
        EXPECT_LE(limited.facts.peak_bytes, limit);
        TestFixture::expect_same(limited, free);
        most_stages = std::max(most_stages, limited.facts.stages);
        f.refactor(a.values.data(), b.view());
        TestFixture::expect_same(TestFixture::outcome(context, f, b, keep), free);
      }
      options.memory_limit_bytes = least / 2;
      EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options, b.view()); }, ErrorCode::out_of_memory,
                          {"front ", "bytes", std::to_string(least / 2)}));
    }
  }
  EXPECT_GT(most_stages, 1);
}

TYPED_TEST(SparseLimits, WhatTheDeviceHasFreeIsALimitToo) {
  using T = typename TypeParam::Scalar;
  using Problem = typename TestFixture::Problem;
  const Problem a(bushy(true));
  const Dense<T> b = random_normal<T>(a.triplets.rows, 1, 7);
  for (const KeepQ keep : {KeepQ::discard, KeepQ::keep}) {
    FactorOptions options = TestFixture::options(keep);
    const sparse::Analysis analysis = sparse::analyze(TestFixture::context(), a.view());
    const auto free =
        TestFixture::outcome(TestFixture::context(), analysis.factor(a.view(), options, b.view()), b, keep);
    const Index least = TestFixture::least(analysis, a, b, options);
    const Index room = least + (free.facts.peak_bytes - least) / 2;
    const Context small = fresh_context(TypeParam::backend, room * 64 / 63 + 64);
    const sparse::Analysis again = sparse::analyze(small, a.view());
    const Factor<T> f = again.factor(a.view(), options, b.view());
    EXPECT_LE(f.facts().peak_bytes, room);
    EXPECT_EQ(f.r().values, free.r.values);
    // and where even that is too little, the context goes on
    const Context tiny = fresh_context(TypeParam::backend, least / 2);
    const sparse::Analysis third = sparse::analyze(tiny, a.view());
    EXPECT_TRUE(
        refuses([&] { third.factor(a.view(), options, b.view()); }, ErrorCode::out_of_memory, {"front ", "free"}));
    options.processor = sparse::Processor::cpu;
    EXPECT_EQ(third.factor(a.view(), options, b.view()).facts().rank, free.facts.rank);
    EXPECT_EQ(f.r().values, free.r.values);
  }
}

}  // namespace
}  // namespace qrane::test
