// SPDX-License-Identifier: Apache-2.0
// The judges themselves: a factorization that is good to rounding passes on every hostile input, one that is
// wrong by little more than the limit does not.
#include "support/measures.hpp"

#include "support/hostile.hpp"

namespace qrane::test {
namespace {

template <class T>
class Measures : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Measures, Scalars);

constexpr Shape shapes[] = {{41, 12}, {13, 13}, {9, 24}, {30, 1}, {1, 7}, {1, 1}};

/// Q and R in wide arithmetic, rounded to T. Columns are scaled by powers of two around the factorization.
template <class T>
std::pair<Dense<T>, Dense<T>> good_qr(const Dense<T>& a) {
  const auto e = column_exponents(a);
  const auto f = householder_qr(scaled(a, e));
  auto r = f.r;
  for (Index j = 0; j < r.cols; ++j)
    for (Index i = 0; i < r.rows; ++i) r(i, j) = std::ldexp(r(i, j), e[static_cast<std::size_t>(j)]);
  return {convert<T>(f.q(f.v.cols)), convert<T>(r)};
}

TYPED_TEST(Measures, PassGoodFactors) {
  for (const auto& input : hostile::inputs<TypeParam>())
    for (const Shape s : shapes) {
      SCOPED_TRACE(std::string(input.name) + ", " + to_string(s));
      const auto a = input.make(s.rows, s.cols, 1);
      const auto [q, r] = good_qr(a);
      EXPECT_TRUE(is_qr_of(a, q, r));
      EXPECT_TRUE(is_r_of(a, r));
    }
}

TYPED_TEST(Measures, RefuseOneColumnOfRSlightlyLong) {
  for (const auto& input : hostile::inputs<TypeParam>())
    for (const Shape s : shapes) {
      SCOPED_TRACE(std::string(input.name) + ", " + to_string(s));
      const auto a = input.make(s.rows, s.cols, 2);
      if (std::string(input.name) == "denormal") continue;  // underflow's allowance is larger than this error
      auto [q, r] = good_qr(a);
      const Index j = s.cols / 2;
      if (column_norm(scaled(a, column_exponents(a)), j) == 0) continue;
      for (Index i = 0; i < r.rows; ++i) r(i, j) *= static_cast<TypeParam>(1 + 3 * limit<TypeParam>(s.rows, s.cols));
      EXPECT_FALSE(is_qr_of(a, q, r));
      EXPECT_FALSE(is_r_of(a, r));
    }
}

TYPED_TEST(Measures, RefuseFlippedSignInsideR) {
  for (const auto& input : hostile::inputs<TypeParam>()) {
    SCOPED_TRACE(input.name);
    const auto a = input.make(30, 8, 3);
    auto [q, r] = good_qr(a);
    const double size = std::abs(static_cast<double>(r(0, 5)));
    if (size < 1e-3 * static_cast<double>(column_norm(widen(r), 5)) || column_norm(widen(r), 5) == 0) continue;
    if (std::abs(r(0, 0)) < std::numeric_limits<TypeParam>::min()) continue;
    if (std::string(input.name) == "ones" || std::string(input.name) == "near-dependent columns")
      continue;  // columns with but one component: the flip is another matrix's sign, still Q R
    r(0, 5) = -r(0, 5);
    EXPECT_FALSE(is_qr_of(a, q, r));
    EXPECT_FALSE(is_r_of(a, r));
  }
}

TYPED_TEST(Measures, RefuseZeroQAndNotANumber) {
  const auto a = random_normal<TypeParam>(200, 5, 4);
  auto [q, r] = good_qr(a);
  EXPECT_FALSE(is_qr_of(a, Dense<TypeParam>(200, 5), r));
  r(1, 2) = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_FALSE(is_qr_of(a, q, r));
  EXPECT_FALSE(is_r_of(a, r));
  r = good_qr(a).second;
  r(3, 1) = std::numeric_limits<TypeParam>::denorm_min();  // below the diagonal only zero will do
  EXPECT_FALSE(is_qr_of(a, q, r));
  q(7, 3) = std::numeric_limits<TypeParam>::infinity();
  EXPECT_FALSE(is_qr_of(a, q, good_qr(a).second));
}

/// Cholesky of the Gram matrix in the same precision loses kappa^2: the measure must see it where the residual
/// of R against A has to be looked for column by column.
TYPED_TEST(Measures, RefuseROfAnUnguardedGramMatrix) {
  using T = TypeParam;
  const Index m = 60, n = 12;
  const auto a = geometric_spectrum<T>(m, n, std::sqrt(hostile::inverse_eps<T>), 5);
  Dense<T> g = multiply_transposed(a, a);
  for (Index j = 0; j < n; ++j) g(j, j) += static_cast<T>(n * unit_roundoff<T>);  // so that it exists
  Dense<T> r(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      const T s = g(i, j) - dot(i, r.column(i), r.column(j));
      r(i, j) = i == j ? std::sqrt(std::max(s, std::numeric_limits<T>::min())) : s / r(i, i);
    }
  EXPECT_FALSE(is_r_of(a, r));
}

TYPED_TEST(Measures, SingularValuesOfAKnownMatrix) {
  const auto s = singular_values(widen(geometric_spectrum<TypeParam>(20, 5, 1e4, 6)));
  ASSERT_EQ(s.size(), 5u);
  for (int j = 0; j < 5; ++j)
    EXPECT_NEAR(static_cast<double>(s[static_cast<std::size_t>(j)]), std::pow(10.0, -j), 40 * unit_roundoff<TypeParam>);
}

}  // namespace
}  // namespace qrane::test
