// SPDX-License-Identifier: Apache-2.0
// The drop-in's factorizations and products with Q, every call forced through qrane (QRANE_LAPACK_MIN=0). Judged by the
// backward error and the orthogonality of Q, and by LAPACK's own routines where they read what qrane wrote.
#include <gtest/gtest.h>

#include <numeric>

#include <lapack/tests/fortran.hpp>

#include "support/hostile.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

constexpr const char* no = "N";
constexpr const char* yes = "T";

struct Shape {
  int m, n;
};
constexpr Shape shapes[] = {{1, 1}, {7, 1}, {1, 6}, {40, 12}, {33, 33}, {12, 40}, {300, 70}};

template <class T>
class LapackFactor : public ::testing::Test {
 protected:
  using Matrix = Dense<T>;

  /// A with slack below each column that nothing may write to.
  static Matrix with_slack(const Matrix& a) {
    Matrix out(a.rows + 3, a.cols, T(-77));
    for (Index j = 0; j < a.cols; ++j) std::copy_n(a.column(j), a.rows, out.column(j));
    return out;
  }
  static Matrix top(const Matrix& a, Index rows, Index cols) {
    Matrix out(rows, cols);
    for (Index j = 0; j < cols; ++j) std::copy_n(a.column(j), rows, out.column(j));
    return out;
  }
  static Matrix upper(const Matrix& a, Index k) {
    Matrix r = top(a, k, a.cols);
    for (Index j = 0; j < r.cols; ++j)
      for (Index i = j + 1; i < k; ++i) r(i, j) = 0;
    return r;
  }
  static Matrix transposed(const Matrix& a) {
    Matrix out(a.cols, a.rows);
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < a.rows; ++i) out(j, i) = a(i, j);
    return out;
  }
  static bool slack_is_untouched(const Matrix& a, Index rows) {
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = rows; i < a.rows; ++i)
        if (a(i, j) != T(-77)) return false;
    return true;
  }
  Matrix work = Matrix(100000, 1);
  std::vector<T> tau = std::vector<T>(500);
  int lwork = 100000, info = -99;
};

using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LapackFactor, Scalars);

TYPED_TEST(LapackFactor, GeqrfAndOrgqrByAnyName) {
  using T = TypeParam;
  struct Name {
    const char *factor, *prefix, *suffix;
  };
  for (const Name name : {Name{"geqrf", "", "_"}, Name{"geqrf", "scipy_", "_"}, Name{"geqr2", "", "_"}})
    for (const auto [m, n] : shapes) {
      const int k = std::min(m, n), ld = m + 3;
      const auto a = random_normal<T>(m, n, 5);
      auto f = this->with_slack(a);
      const auto factor = Fortran<T>::exported(name.factor, name.prefix, name.suffix);
      if (std::string(name.factor) == "geqrf")
        factor(&m, &n, f.values.data(), &ld, this->tau.data(), this->work.values.data(), &this->lwork, &this->info);
      else
        factor(&m, &n, f.values.data(), &ld, this->tau.data(), this->work.values.data(), &this->info);
      ASSERT_EQ(this->info, 0);
      EXPECT_TRUE(this->slack_is_untouched(f, m));
      auto q = this->top(f, m, k);
      Fortran<T>::exported("orgqr", name.prefix, name.suffix)(&m, &k, &k, q.values.data(), &m, this->tau.data(),
                                                              this->work.values.data(), &this->lwork, &this->info);
      ASSERT_EQ(this->info, 0);
      EXPECT_TRUE(is_qr_of(a, q, this->upper(this->top(f, m, n), k))) << m << " x " << n;
    }
}

TYPED_TEST(LapackFactor, SixtyFourBitIntegers) {
  using T = TypeParam;
  for (const char* prefix : {"", "scipy_"}) {
    const std::int64_t m = 30, n = 8, lwork = this->lwork;
    std::int64_t info = -99;
    const auto a = random_normal<T>(m, n, 5);
    auto q = a;
    Fortran<T>::exported("geqrf", prefix, "_64_")(&m, &n, q.values.data(), &m, this->tau.data(),
                                                  this->work.values.data(), &lwork, &info);
    ASSERT_EQ(info, 0);
    const auto r = this->upper(q, n);
    Fortran<T>::exported("orgqr", prefix, "_64_")(&m, &n, &n, q.values.data(), &m, this->tau.data(),
                                                  this->work.values.data(), &lwork, &info);
    ASSERT_EQ(info, 0);
    EXPECT_TRUE(is_qr_of(a, q, r));
  }
}

TYPED_TEST(LapackFactor, OrgqrGivesMoreColumnsThanReflectors) {
  using T = TypeParam;
  const int m = 40, n = 25, k = 10;
  auto q = random_normal<T>(m, n, 5);
  Fortran<T>::underneath("geqrf")(&m, &k, q.values.data(), &m, this->tau.data(), this->work.values.data(), &this->lwork,
                                  &this->info);
  auto want = q;
  for (const auto& [routine, out] :
       {std::pair{Fortran<T>::exported("orgqr"), &q}, std::pair{Fortran<T>::underneath("orgqr"), &want}})
    routine(&m, &n, &k, out->values.data(), &m, this->tau.data(), this->work.values.data(), &this->lwork, &this->info);
  EXPECT_TRUE(columns_agree(q, want, m, n));
}

TYPED_TEST(LapackFactor, LqIsTheTransposedQr) {
  using T = TypeParam;
  for (const auto [m, n] : shapes) {
    if (m > n) continue;
    const auto a = random_normal<T>(m, n, 6);
    auto q = a;
    Fortran<T>::exported("gelqf")(&m, &n, q.values.data(), &m, this->tau.data(), this->work.values.data(), &this->lwork,
                                  &this->info);
    ASSERT_EQ(this->info, 0);
    const auto r = this->upper(this->transposed(q), m);
    Fortran<T>::exported("orglq")(&m, &n, &m, q.values.data(), &m, this->tau.data(), this->work.values.data(),
                                  &this->lwork, &this->info);
    ASSERT_EQ(this->info, 0);
    EXPECT_TRUE(is_qr_of(this->transposed(a), this->transposed(q), r)) << m << " x " << n;
  }
}

TYPED_TEST(LapackFactor, ProductsAreLapacks) {
  using T = TypeParam;
  const int order = 50, k = 20, other = 7;
  struct Kind {
    const char *factor, *apply;
  };
  for (const Kind kind : {Kind{"geqrf", "ormqr"}, Kind{"geqrf", "orm2r"}, Kind{"gelqf", "ormlq"}})
    for (const char* side : {"L", "R"})
      for (const char* trans : {no, yes}) {
        const bool lq = std::string(kind.factor) == "gelqf";
        const int rows = lq ? k : order, cols = lq ? order : k;
        auto v = random_normal<T>(rows, cols, 8);
        Fortran<T>::underneath(kind.factor)(&rows, &cols, v.values.data(), &rows, this->tau.data(),
                                            this->work.values.data(), &this->lwork, &this->info);
        const int m = *side == 'L' ? order : other, n = *side == 'L' ? other : order, ld = m + 3;
        const auto c = random_normal<T>(m, n, 9);
        auto ours = this->with_slack(c), theirs = ours;
        for (const auto& [routine, out] : {std::pair{Fortran<T>::exported(kind.apply), &ours},
                                           std::pair{Fortran<T>::underneath(kind.apply), &theirs}}) {
          if (std::string(kind.apply) == "orm2r")
            routine(side, trans, &m, &n, &k, v.values.data(), &rows, this->tau.data(), out->values.data(), &ld,
                    this->work.values.data(), &this->info);
          else
            routine(side, trans, &m, &n, &k, v.values.data(), &rows, this->tau.data(), out->values.data(), &ld,
                    this->work.values.data(), &this->lwork, &this->info);
          ASSERT_EQ(this->info, 0);
        }
        EXPECT_TRUE(columns_agree(ours, theirs, order, k, 100)) << kind.apply << side << trans;
      }
}

/// LAPACK applies what geqrt and getsqrhrt wrote, by its gemqrt.
TYPED_TEST(LapackFactor, LapackReadsTheTFactors) {
  using T = TypeParam;
  const int m = 60, n = 23, nb = 5, mb1 = 40, nb1 = 6;
  for (const char* name : {"geqrt", "getsqrhrt"}) {
    const auto a = random_normal<T>(m, n, 3);
    auto f = a;
    Dense<T> t(nb, n);
    if (std::string(name) == "geqrt")
      Fortran<T>::exported(name)(&m, &n, &nb, f.values.data(), &m, t.values.data(), &nb, this->work.values.data(),
                                 &this->info);
    else
      Fortran<T>::exported(name)(&m, &n, &mb1, &nb1, &nb, f.values.data(), &m, t.values.data(), &nb,
                                 this->work.values.data(), &this->lwork, &this->info);
    ASSERT_EQ(this->info, 0);
    Dense<T> q(m, n);
    for (Index j = 0; j < n; ++j) q(j, j) = 1;
    Fortran<T>::underneath("gemqrt")("L", no, &m, &n, &n, &nb, f.values.data(), &m, t.values.data(), &nb,
                                     q.values.data(), &m, this->work.values.data(), &this->info);
    ASSERT_EQ(this->info, 0);
    EXPECT_TRUE(is_qr_of(a, q, this->upper(f, n))) << name;
  }
}

/// Either side's gemqr reads either side's geqr.
TYPED_TEST(LapackFactor, GeqrAndGemqrMixWithLapacks) {
  using T = TypeParam;
  const int m = 90, n = 20;
  const auto a = random_normal<T>(m, n, 3);
  const Fortran<T> factors[] = {Fortran<T>::exported("geqr"), Fortran<T>::underneath("geqr")};
  const Fortran<T> products[] = {Fortran<T>::exported("gemqr"), Fortran<T>::underneath("gemqr")};
  for (const auto& factor : factors)
    for (const auto& product : products) {
      auto f = a;
      T query[5] = {};
      const int ask = -1;
      factor(&m, &n, f.values.data(), &m, query, &ask, this->work.values.data(), &ask, &this->info);
      ASSERT_EQ(this->info, 0);
      const int size = static_cast<int>(query[0]);
      std::vector<T> t(static_cast<std::size_t>(size));
      factor(&m, &n, f.values.data(), &m, t.data(), &size, this->work.values.data(), &this->lwork, &this->info);
      ASSERT_EQ(this->info, 0);
      Dense<T> q(m, n);
      for (Index j = 0; j < n; ++j) q(j, j) = 1;
      product("L", no, &m, &n, &n, f.values.data(), &m, t.data(), &size, q.values.data(), &m, this->work.values.data(),
              &this->lwork, &this->info);
      ASSERT_EQ(this->info, 0);
      EXPECT_TRUE(is_qr_of(a, q, this->upper(f, n)));
    }
}

TYPED_TEST(LapackFactor, Geqp3OrdersTheDiagonal) {
  using T = TypeParam;
  for (const auto [m, n] : shapes) {
    const int k = std::min(m, n);
    const auto a = geometric_spectrum<T>(m, n, 1e3, 4);
    auto q = a;
    std::vector<int> pivots(static_cast<std::size_t>(n));
    Fortran<T>::exported("geqp3")(&m, &n, q.values.data(), &m, pivots.data(), this->tau.data(),
                                  this->work.values.data(), &this->lwork, &this->info);
    ASSERT_EQ(this->info, 0);
    Dense<T> permuted(m, n);
    for (Index j = 0; j < n; ++j) std::copy_n(a.column(pivots[static_cast<std::size_t>(j)] - 1), m, permuted.column(j));
    std::sort(pivots.begin(), pivots.end());
    for (int j = 0; j < n; ++j) EXPECT_EQ(pivots[static_cast<std::size_t>(j)], j + 1);
    const auto r = this->upper(q, k);
    for (Index j = 1; j < k; ++j) EXPECT_LE(std::abs(r(j, j)), std::abs(r(j - 1, j - 1)) * (1 + limit<T>(m, n)));
    q = this->top(q, m, k);
    Fortran<T>::underneath("orgqr")(&m, &k, &k, q.values.data(), &m, this->tau.data(), this->work.values.data(),
                                    &this->lwork, &this->info);
    EXPECT_TRUE(is_qr_of(permuted, q, r)) << m << " x " << n;
  }
}

TYPED_TEST(LapackFactor, Geqp3KeepsFixedColumnsInFront) {
  using T = TypeParam;
  const int m = 30, n = 5;
  auto a = random_normal<T>(m, n, 4);
  for (Index i = 0; i < m; ++i) a(i, 3) *= T(1e-3);
  int pivots[n] = {0, 0, 0, 1, 0};
  Fortran<T>::exported("geqp3")(&m, &n, a.values.data(), &m, pivots, this->tau.data(), this->work.values.data(),
                                &this->lwork, &this->info);
  EXPECT_EQ(this->info, 0);
  EXPECT_EQ(pivots[0], 4);
}

}  // namespace
}  // namespace qrane::test
