// SPDX-License-Identifier: Apache-2.0
// SVD through QR: singular values against LAPACK's and known ones, orthonormal vectors, reconstruction.
#include <lapacke.h>

#include <qrane/svd.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class SvdTest : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  static double largest_exponent_scale(const Dense<T>& a) {
    int e = -100000;
    for (T x : a.values)
      if (x != T(0)) e = std::max(e, std::ilogb(x));
    return e == -100000 ? 0 : e;
  }

  /// A = U S Vᵀ, everything scaled so that the largest element of A is near 1.
  static void expect_svd(const Dense<T>& a, const Svd<T>& svd) {
    const Index k = std::min(a.rows, a.cols);
    const auto u = BackendTest<Where>::host(svd.u), s = BackendTest<Where>::host(svd.s),
               vt = BackendTest<Where>::host(svd.vt);
    ASSERT_TRUE(has_shape(u, a.rows, k));
    ASSERT_TRUE(has_shape(s, k, 1));
    ASSERT_TRUE(has_shape(vt, k, a.cols));
    EXPECT_LE(orthogonality(u, a.rows, a.cols), 1);
    EXPECT_LE(orthogonality(transposed(vt), a.rows, a.cols), 1);
    const int e = static_cast<int>(largest_exponent_scale(a));
    auto us = widen(u), as = widen(a);
    for (Index j = 0; j < k; ++j)
      for (Index i = 0; i < a.rows; ++i) us(i, j) *= std::ldexp(static_cast<Wide<T>>(s(j, 0)), -e);
    for (auto& x : as.values) x = std::ldexp(x, -e);
    const double allowed = limit<T>(a.rows, a.cols) * static_cast<double>(norm(as)) +
                           static_cast<double>(std::ldexp(underflow_allowance<T>(a.rows, a.cols), -e)) * double(k);
    EXPECT_LE(static_cast<double>(norm(subtract(as, multiply(us, widen(vt))))), allowed);
    for (Index j = 0; j < k; ++j) {
      EXPECT_GE(s(j, 0), T(0));
      EXPECT_TRUE(j == 0 || s(j, 0) <= s(j - 1, 0)) << j;
    }
  }
};

TYPED_TEST_SUITE(SvdTest, Everywhere, Names);

TYPED_TEST(SvdTest, HostileInputsOfEveryShape) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{150, 12}, Shape{20, 20}, Shape{11, 40}, Shape{30, 1}, Shape{1, 30}, Shape{1, 1}})
    for (const auto& input : hostile::sweep<T>()) {
      SCOPED_TRACE(std::string(input.name) + ", " + to_string(s));
      const auto a = input.make(s.rows, s.cols, 41);
      this->expect_svd(a, svd<T>(this->context(), a.view()));
    }
}

TYPED_TEST(SvdTest, SingularValuesAreLapacks) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{150, 12}, Shape{20, 20}, Shape{11, 40}, Shape{300, 48}})
    for (const auto& input : hostile::sweep<T>()) {
      const std::string name = input.name;
      if (name == "denormal" || name == "near overflow" || name == "graded rows" || name == "graded columns" ||
          name == "huge and tiny")
        continue;  // LAPACK is asked in double, on numbers it need not scale
      SCOPED_TRACE(name + ", " + to_string(s));
      const auto a = input.make(s.rows, s.cols, 42);
      auto copy = convert<double>(a);
      const Index k = std::min(s.rows, s.cols);
      std::vector<double> want(static_cast<std::size_t>(k));
      double none = 0;
      ASSERT_EQ(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', int(s.rows), int(s.cols), copy.values.data(), int(s.rows),
                               want.data(), &none, int(s.rows), &none, int(k)),
                0);
      const auto got = this->host(svd<T>(this->context(), a.view()).s);
      for (Index j = 0; j < k; ++j)
        EXPECT_NEAR(static_cast<double>(got(j, 0)), want[static_cast<std::size_t>(j)],
                    2 * limit<T>(s.rows, s.cols) * want[0])
            << j;
    }
}

TYPED_TEST(SvdTest, SpectraThatAreKnown) {
  using T = typename TypeParam::Scalar;
  const auto s = this->host(svd<T>(this->context(), geometric_spectrum<T>(80, 6, 1e5, 3).view()).s);
  for (Index j = 0; j < 6; ++j) EXPECT_NEAR(static_cast<double>(s(j, 0)), std::pow(10.0, -j), limit<T>(80, 6));
  const auto zero = svd<T>(this->context(), Dense<T>(30, 5).view());
  EXPECT_EQ(this->host(zero.s), Dense<T>(5, 1));
  const auto deficient = this->host(svd<T>(this->context(), hostile::product<T>(50, 12, 4).view()).s);
  for (Index j = hostile::product_rank(50, 12); j < 12; ++j)
    EXPECT_LE(deficient(j, 0), static_cast<T>(limit<T>(50, 12)) * deficient(0, 0));
  Dense<T> column(40, 1);
  for (Index i = 0; i < 40; ++i) column(i, 0) = T(i % 2 == 0 ? 3 : -3);
  EXPECT_NEAR(static_cast<double>(this->host(svd<T>(this->context(), column.view()).s)(0, 0)), 3 * std::sqrt(40.0),
              1e-4);
}

/// From where the Gram matrix will do to where it must not be trusted, and beyond what the precision can tell.
TYPED_TEST(SvdTest, EveryConditionNumber) {
  using T = typename TypeParam::Scalar;
  for (const double condition : some_of({1.0, 1e1, 1e2, 1e3, 5e3, 9e3, 1.1e4, 1e5, 1e7, 1e10, 1e15, 1e20}, 4))
    for (const Shape s : in_turn({Shape{150, 12}, Shape{160, 40}, Shape{40, 160}})) {
      SCOPED_TRACE(to_string(s) + ", condition " + std::to_string(condition));
      const auto a = geometric_spectrum<T>(s.rows, s.cols, condition, 9);
      this->expect_svd(a, svd<T>(this->context(), a.view()));
    }
}

TYPED_TEST(SvdTest, ValuesAloneAreTheSameValues) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{150, 12}, Shape{12, 150}, Shape{20, 20}}) {
    const auto a = geometric_spectrum<T>(s.rows, s.cols, 100, 5);
    SvdOptions options;
    options.vectors = false;
    const auto alone = svd<T>(this->context(), a.view(), options);
    EXPECT_EQ(alone.u.rows() * alone.u.cols() + alone.vt.rows() * alone.vt.cols(), 0);
    const auto want = this->host(svd<T>(this->context(), a.view()).s), got = this->host(alone.s);
    for (Index j = 0; j < want.rows; ++j)
      EXPECT_NEAR(got(j, 0), want(j, 0), limit<T>(s.rows, s.cols)) << to_string(s) << ", " << j;
  }
}

TYPED_TEST(SvdTest, EveryAlgorithm) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(200, 10, 1e3, 6);
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked, Algorithm::cholesky_qr}) {
    SCOPED_TRACE(qrane::to_string(algorithm));
    SvdOptions options;
    options.algorithm = algorithm;
    this->expect_svd(a, svd<T>(this->context(), a.view(), options));
    const auto wide = transposed(a);
    this->expect_svd(wide, svd<T>(this->context(), wide.view(), options));
  }
}

TYPED_TEST(SvdTest, EveryStorageGivesTheSameBitsWhereTheInputLives) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{60, 7}, Shape{7, 60}}) {
    const auto a = random_normal<T>(s.rows, s.cols, 7);
    const auto want = svd<T>(this->context(), a.view());
    for (const Storage storage : in_turn(all_storages, 3)) {
      SCOPED_TRACE(to_string(s) + ", " + to_string(storage));
      Stored<T> stored(this->context(), a, storage);
      const auto got = svd<T>(this->context(), stored.view());
      EXPECT_EQ(this->host(got.s), this->host(want.s));
      EXPECT_EQ(this->host(got.u), this->host(want.u));
      EXPECT_EQ(this->host(got.vt), this->host(want.vt));
      EXPECT_TRUE(stored.untouched(this->context()));
      for (const Matrix<T>* part : {&got.u, &got.s, &got.vt}) EXPECT_EQ(part->memory(), stored.view().memory);
    }
  }
}

TYPED_TEST(SvdTest, EmptyMatricesAndNotANumber) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{0, 0}, Shape{5, 0}, Shape{0, 5}}) {
    const auto empty = svd<T>(this->context(), Dense<T>(s.rows, s.cols).view());
    EXPECT_TRUE(has_shape(this->host(empty.u), s.rows, 0)) << to_string(s);
    EXPECT_TRUE(has_shape(this->host(empty.s), 0, 1)) << to_string(s);
    EXPECT_TRUE(has_shape(this->host(empty.vt), 0, s.cols)) << to_string(s);
  }
  auto a = random_normal<T>(40, 6, 8);
  a(17, 3) = std::numeric_limits<T>::quiet_NaN();
  EXPECT_TRUE(std::isnan(this->host(svd<T>(this->context(), std::as_const(a).view()).s)(0, 0)));
}

}  // namespace
}  // namespace qrane::test
