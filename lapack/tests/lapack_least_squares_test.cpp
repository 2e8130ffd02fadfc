// SPDX-License-Identifier: Apache-2.0
// The drop-in's least-squares drivers, every call forced through qrane (QRANE_LAPACK_MIN=0), against LAPACK's own.
#include <gtest/gtest.h>

#include <cmath>

#include <lapack/tests/fortran.hpp>

#include "support/hostile.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

struct Shape {
  int m, n, nrhs;
};

/// What one driver returned.
template <class T>
struct Answer {
  Dense<T> a, b;
  std::vector<T> s;
  std::vector<int> jpvt;
  int rank = -1, info = -99;
};

template <class T>
class LapackLeastSquares : public ::testing::Test {
 protected:
  static Answer<T> plain(const Fortran<T>& routine, const char* trans, const Dense<T>& a, const Dense<T>& b) {
    Answer<T> r{a, b, {}, {}};
    const int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), nrhs = static_cast<int>(b.cols),
              ldb = static_cast<int>(b.rows), lwork = 100000;
    std::vector<T> work(lwork);
    routine(trans, &m, &n, &nrhs, r.a.values.data(), &m, r.b.values.data(), &ldb, work.data(), &lwork, &r.info);
    return r;
  }

  static Answer<T> ranked(const Fortran<T>& routine, const std::string& name, const Dense<T>& a, const Dense<T>& b,
                          T rcond) {
    Answer<T> r{a, b, std::vector<T>(static_cast<std::size_t>(std::min(a.rows, a.cols))),
                std::vector<int>(static_cast<std::size_t>(a.cols))};
    const int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), nrhs = static_cast<int>(b.cols),
              ldb = static_cast<int>(b.rows), lwork = 100000;
    std::vector<T> work(lwork);
    std::vector<int> iwork(lwork);
    if (name == "gelsd")
      routine(&m, &n, &nrhs, r.a.values.data(), &m, r.b.values.data(), &ldb, r.s.data(), &rcond, &r.rank, work.data(),
              &lwork, iwork.data(), &r.info);
    else if (name == "gelss")
      routine(&m, &n, &nrhs, r.a.values.data(), &m, r.b.values.data(), &ldb, r.s.data(), &rcond, &r.rank, work.data(),
              &lwork, &r.info);
    else
      routine(&m, &n, &nrhs, r.a.values.data(), &m, r.b.values.data(), &ldb, r.jpvt.data(), &rcond, &r.rank,
              work.data(), &lwork, &r.info);
    return r;
  }

  static Dense<T> rows(const Dense<T>& a, Index first, Index count) {
    Dense<T> out(count, a.cols);
    for (Index j = 0; j < a.cols; ++j) std::copy_n(a.column(j) + first, count, out.column(j));
    return out;
  }
  static T norm(const Dense<T>& a, Index j) {
    T sum = 0;
    for (Index i = 0; i < a.rows; ++i) sum += a(i, j) * a(i, j);
    return std::sqrt(sum);
  }
};

using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LapackLeastSquares, Scalars);

constexpr Shape shapes[] = {{1, 1, 1}, {9, 1, 2}, {30, 30, 3}, {60, 12, 1}, {60, 12, 80}, {200, 40, 7}};

TYPED_TEST(LapackLeastSquares, PlainDriversSolveAllFourProblems) {
  using T = TypeParam;
  for (const char* name : {"gels", "gelst", "getsls"})
    for (const auto [rows, cols, nrhs] : shapes)
      for (const bool wide : {false, true})
        for (const char* trans : {"N", "T"}) {
          SCOPED_TRACE(std::string(name) + " " + trans + " " + std::to_string(rows) + " x " + std::to_string(cols));
          const int m = wide ? cols : rows, n = wide ? rows : cols;
          const auto a = geometric_spectrum<T>(m, n, 10, 3), b = random_normal<T>(rows, nrhs, 4);
          const auto ours = this->plain(Fortran<T>::exported(name), trans, a, b);
          const auto theirs = this->plain(Fortran<T>::underneath(name), trans, a, b);
          ASSERT_EQ(ours.info, 0);
          const Index length = *trans == 'N' ? n : m;
          EXPECT_TRUE(columns_agree(this->rows(ours.b, 0, length), this->rows(theirs.b, 0, length), m, n, 100));
          if (length == rows) continue;
          const auto got = this->rows(ours.b, length, rows - length),
                     want = this->rows(theirs.b, length, rows - length);
          for (Index j = 0; j < nrhs; ++j)
            EXPECT_NEAR(this->norm(got, j), this->norm(want, j), 100 * limit<T>(m, n) * this->norm(b, j));
        }
}

TYPED_TEST(LapackLeastSquares, PlainDriversLeaveTheFactorsInA) {
  using T = TypeParam;
  const auto a = random_normal<T>(50, 20, 3), b = random_normal<T>(50, 2, 4);
  const auto ours = this->plain(Fortran<T>::exported("gels"), "N", a, b);
  const auto theirs = this->plain(Fortran<T>::underneath("gels"), "N", a, b);
  EXPECT_TRUE(columns_agree(ours.a, theirs.a, 50, 20, 100));
}

TYPED_TEST(LapackLeastSquares, PlainDriversNameAZeroOnTheDiagonal) {
  using T = TypeParam;
  auto a = random_normal<T>(50, 20, 3);
  for (Index i = 0; i < a.rows; ++i) a(i, 6) = 0;
  const auto b = random_normal<T>(50, 2, 4);
  EXPECT_EQ(this->plain(Fortran<T>::exported("gels"), "N", a, b).info,
            this->plain(Fortran<T>::underneath("gels"), "N", a, b).info);
}

TYPED_TEST(LapackLeastSquares, RankedDriversAgreeWithLapacks) {
  using T = TypeParam;
  for (const char* name : {"gelsd", "gelss", "gelsy"})
    for (const auto [m, n, nrhs] : shapes)
      for (const bool deficient : {false, true}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(m) + " x " + std::to_string(n) +
                     (deficient ? " deficient" : ""));
        auto a = geometric_spectrum<T>(m, n, 10, 3);
        if (deficient && n > 2)
          for (Index i = 0; i < m; ++i) a(i, 2) = a(i, 0) + a(i, 1);
        const auto b = random_normal<T>(m, nrhs, 4);
        const T rcond = std::sqrt(std::numeric_limits<T>::epsilon());
        const auto ours = this->ranked(Fortran<T>::exported(name), name, a, b, rcond);
        const auto theirs = this->ranked(Fortran<T>::underneath(name), name, a, b, rcond);
        ASSERT_EQ(ours.info, 0);
        EXPECT_EQ(ours.rank, theirs.rank);
        EXPECT_EQ(ours.rank, deficient && n > 2 ? n - 1 : n);
        EXPECT_TRUE(columns_agree(this->rows(ours.b, 0, n), this->rows(theirs.b, 0, n), m, n, 200));
        for (std::size_t i = 0; i < ours.s.size(); ++i)
          EXPECT_NEAR(ours.s[i], theirs.s[i], limit<T>(m, n) * theirs.s[0]);
        if (std::string(name) == "gelsy" || m == n || ours.rank < n) continue;
        const auto got = this->rows(ours.b, n, m - n), want = this->rows(theirs.b, n, m - n);
        for (Index j = 0; j < nrhs; ++j)
          EXPECT_NEAR(this->norm(got, j), this->norm(want, j), 100 * limit<T>(m, n) * this->norm(b, j));
      }
}

/// Matrices that LAPACK scales are LAPACK's, to the last bit.
TYPED_TEST(LapackLeastSquares, TinyHugeAndZeroMatricesAreLapacks) {
  using T = TypeParam;
  for (const T scale : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max() / 64, T(0)}) {
    auto a = geometric_spectrum<T>(40, 8, 10, 3);
    for (T& x : a.values) x *= scale;
    const auto b = random_normal<T>(40, 2, 4);
    EXPECT_EQ(this->plain(Fortran<T>::exported("gels"), "N", a, b).b,
              this->plain(Fortran<T>::underneath("gels"), "N", a, b).b);
    const auto ours = this->ranked(Fortran<T>::exported("gelsd"), "gelsd", a, b, T(-1));
    const auto theirs = this->ranked(Fortran<T>::underneath("gelsd"), "gelsd", a, b, T(-1));
    EXPECT_EQ(ours.b, theirs.b);
    EXPECT_EQ(ours.rank, theirs.rank);
  }
}

}  // namespace
}  // namespace qrane::test
