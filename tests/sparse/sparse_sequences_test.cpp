// SPDX-License-Identifier: Apache-2.0
// Random sequences of refactorizations with values that are bad, huge, or cancel: what comes after them is what a new
// factorization gives, bit for bit; and systems without rows or columns.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "random_calls/sparse_sequence.hpp"
#include "support/sparse_qr.hpp"

namespace qrane::test {
namespace {

template <class Where>
class SparseSequences : public SparseQr<Where> {
 protected:
  using T = typename Where::Scalar;

  using W = Wide<T>;
  using Fixture = SparseQr<Where>;

  static void expect_same(const Factor<T>& f, const Factor<T>& fresh) {
    const SparseMatrix<T> r = f.r(), other = fresh.r();
    EXPECT_EQ(r.pointers, other.pointers);
    EXPECT_EQ(r.row_indices, other.row_indices);
    EXPECT_EQ(r.values, other.values);
    EXPECT_EQ(f.permutation(), fresh.permutation());
  }

  /// Plays a sequence; what was not as expected.
  static std::string play(const SparseSequence& s) {
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      try {
        expect_sequence(s);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "it threw: " << error.what();
      }
    }
    return failures.size() == 0 ? "" : failures.GetTestPartResult(0).message();
  }

 private:
  struct Game {
    Values<T> a;
    Dense<T> b;
    FactorOptions options;
    sparse::Analysis analysis;
    Numbers numbers{};
    bool has_rhs = false, finite = true;

    MatrixView<const T> rhs() const { return has_rhs ? b.view() : MatrixView<const T>{}; }
  };

  static void expect_sequence(const SparseSequence& s) {
    AnalyzeOptions how;
    how.ordering = s.ordering;
    const Triplets pattern = pattern_of(s);
    Game game{Values<T>(pattern), random_normal<T>(s.rows, s.rhs_cols, s.seed), Fixture::options(),
              sparse::analyze(Fixture::context(), pattern.view(), how)};
    game.options.q = s.keeps_q ? KeepQ::keep : KeepQ::discard;
    game.options.detect_rank = s.detects_rank;
    game.options.refuse_deficient = s.refuses;
    game.options.check_finite = s.checks;
    game.options.threads = s.threads;
    game.has_rhs = s.has_rhs && s.rhs_cols > 0;  // no columns are none
    // what is refused at first is factored without refusals, so that the calls have something to begin with
    std::optional<Factor<T>> f = fresh(game, s, s.numbers, s.seed + 1);
    if (!f) {
      game.options.refuse_deficient = game.options.check_finite = false;
      f = fresh(game, s, s.numbers, s.seed + 1);
    }
    ASSERT_TRUE(f);
    compare(game, *f);
    bool valid = true;
    for (std::size_t i = 0; i < s.calls.size(); ++i) {
      SCOPED_TRACE(i);
      const SparseCall& call = s.calls[i];
      if (call.kind == SparseKind::refactor) {
        const std::optional<Factor<T>> other =
            fresh(game, s, call.numbers, s.seed + 10 + static_cast<std::uint32_t>(i));
        valid = !refused([&] { f->refactor(game.a.values.data(), game.rhs()); });
        EXPECT_EQ(valid, other.has_value());
        if (!valid || !other) continue;
        if (game.finite) expect_same(*f, *other);
        compare(game, *f);
      } else if (valid) {
        solve(game, *f, call.kind);
      }
    }
  }
  /// The factorization of other numbers, or nothing where it is refused.
  static std::optional<Factor<T>> fresh(Game& game, const SparseSequence& s, Numbers numbers, std::uint32_t seed) {
    game.numbers = numbers;
    game.a.values = values_of<T>(s, game.a.triplets, numbers, seed);
    game.finite = std::all_of(game.a.values.begin(), game.a.values.end(), [](T v) { return std::isfinite(v); });
    std::optional<Factor<T>> f;
    refused([&] { f.emplace(game.analysis.factor(game.a.values.data(), game.options, game.rhs())); });
    return f;
  }
  static bool refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::rank_deficient || error.code() == ErrorCode::not_finite) << error.what();
      return true;
    }
    return false;
  }
  static void compare(const Game& game, const Factor<T>& f) {
    if (!game.finite || game.numbers == Numbers::spoiled) return;  // the largest number overflows in norms
    if (game.options.q == KeepQ::keep) Fixture::expect_factorization(game.a, f);
    Fixture::expect_gram(game.a, f);
  }
  static void solve(const Game& game, const Factor<T>& f, SparseKind kind) {
    const Index m = f.rows(), n = f.cols();
    if (kind == SparseKind::solve_transposed) {
      if (game.options.q == KeepQ::discard) return;
      const Dense<T> c = random_normal<T>(n, game.b.cols, 5);
      EXPECT_EQ(Fixture::host(f.solve_transposed(c.view()).x).rows, m);
      return;
    }
    if (kind == SparseKind::solve && !game.has_rhs) return;
    const Solution<T> solution = kind == SparseKind::solve ? f.solve() : f.solve(game.b.view());
    const Dense<T> x = Fixture::host(solution.x);
    EXPECT_EQ(x.rows, n);
    EXPECT_EQ(x.cols, game.b.cols);
    const bool by_q = kind == SparseKind::solve || game.options.q == KeepQ::keep;
    if (game.numbers == Numbers::normal && by_q && f.rank() == n) Fixture::expect_least_squares(game.a, game.b, x, 10);
  }
};
TYPED_TEST_SUITE(SparseSequences, Ways, WayNames);

TYPED_TEST(SparseSequences, AgreeWithFreshFactorizations) {
  play_random(small_run() ? (this->thorough ? 200 : 20) : 10000, draw_sparse, TestFixture::play, simpler_sparse_steps);
}

TYPED_TEST(SparseSequences, HugeDuplicatesThatCancelLeaveTheRest) {
  using T = typename TypeParam::Scalar;
  Triplets triplets = random_sparse(30, 12, 0.3, 3);
  const Values<T> plain(triplets);
  const T huge = 0x1p20;
  const std::size_t entries = triplets.value.size();
  for (const T sign : {huge, -huge})
    for (std::size_t k = 0; k < entries; k += 2) triplets.add(triplets.row[k], triplets.col[k], sign);
  const Values<T> a(triplets);
  // (v + huge) - huge in T would be off by huge times T's roundoff
  const double allowed =
      1e3 * TestFixture::eps + 1e2 * static_cast<double>(huge * std::numeric_limits<Wide<T>>::epsilon());
  const SparseMatrix<T> r = TestFixture::factor(a).r(), expected = TestFixture::factor(plain).r();
  ASSERT_EQ(r.pointers, expected.pointers);
  for (std::size_t k = 0; k < r.values.size(); ++k)
    EXPECT_NEAR(r.values[k], expected.values[k], allowed) << "entry " << k;
}

TYPED_TEST(SparseSequences, SystemsWithoutRowsOrColumns) {
  using T = typename TypeParam::Scalar;
  for (const auto& [m, n] : {std::pair<Index, Index>{0, 20}, {20, 0}, {0, 0}}) {
    SCOPED_TRACE(m);
    const Values<T> a(Triplets{m, n, {}, {}, {}});
    const Dense<T> b(m, 2, T(3));
    Factor<T> f = TestFixture::factor(a, TestFixture::options(), Ordering::colamd, b.view());
    for (int pass = 0; pass < 2; ++pass) {
      for (const auto& solution : {f.solve(), f.solve(b.view())}) {
        EXPECT_EQ(TestFixture::host(solution.x), Dense<T>(n, 2));
        ASSERT_EQ(solution.residual_norms.size(), 2U);
        EXPECT_NEAR(solution.residual_norms[0], 3 * std::sqrt(static_cast<double>(m)), 1e-5);
      }
      EXPECT_EQ(TestFixture::host(f.solve_transposed(Dense<T>(n, 2).view()).x), Dense<T>(m, 2));
      f.refactor(a.values.data(), b.view());
    }
  }
}

}  // namespace
}  // namespace qrane::test
