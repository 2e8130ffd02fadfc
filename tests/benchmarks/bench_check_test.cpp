// SPDX-License-Identifier: Apache-2.0
// The error measures of `qrane bench` against factorizations whose errors are known, because they were put there.
#include <benchmarks/check.hpp>

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <limits>
#include <vector>

#include <benchmarks/common/seeded_matrix.hpp>

namespace qrane::bench {
namespace {

/// A, Q and R by LAPACK in double.
struct Factors {
  Index rows, cols;
  std::vector<double> a, q, r;

  Factors(Index m, Index n, double condition = 1)
      : rows(m), cols(n), a(static_cast<std::size_t>(m * n)), r(static_cast<std::size_t>(n * n)) {
    fill_seeded(a.data(), m, n, 7, condition);
    q = a;
    std::vector<double> tau(static_cast<std::size_t>(n));
    const auto mi = static_cast<lapack_int>(m), ni = static_cast<lapack_int>(n);
    EXPECT_EQ(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, mi, ni, q.data(), mi, tau.data()), 0);
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i <= j; ++i) r[static_cast<std::size_t>(i + j * n)] = q[static_cast<std::size_t>(i + j * m)];
    EXPECT_EQ(LAPACKE_dorgqr(LAPACK_COL_MAJOR, mi, ni, ni, q.data(), mi, tau.data()), 0);
  }

  MatrixView<const double> view_a() const { return {a.data(), rows, cols}; }
  MatrixView<const double> view_q() const { return {q.data(), rows, cols}; }
  MatrixView<const double> view_r() const { return {r.data(), cols, cols}; }
  double unit() const { return static_cast<double>(cols + 10) * std::numeric_limits<double>::epsilon() / 2; }
};

constexpr CheckBudget whole{1e12}, sampled{1};

TEST(CheckFactors, householder_is_far_below_the_limit) {
  const Factors f(500, 90);
  for (const CheckBudget& budget : {whole, sampled}) {
    const ErrorMeasures errors = check_factors<double>(f.view_a(), f.view_q(), f.view_r(), budget);
    EXPECT_LT(errors.orthogonality, 3) << errors.how;
    EXPECT_LT(errors.residual, 3) << errors.how;
    EXPECT_GT(errors.orthogonality, 0);
    EXPECT_TRUE(errors.good());
  }
}

TEST(CheckFactors, lost_orthogonality_is_measured) {
  Factors f(500, 90);
  const double size = 1e-9;  // Q := Q (I + size): ‖I - QᵀQ‖_F = 2 size sqrt(n)
  for (double& x : f.q) x *= 1 + size;
  const double known = 2 * size * std::sqrt(90.0) / f.unit();
  EXPECT_NEAR(check_factors<double>(f.view_a(), f.view_q(), f.view_r(), whole).orthogonality / known, 1, 1e-4);
  const ErrorMeasures estimate = check_factors<double>(f.view_a(), f.view_q(), f.view_r(), sampled);
  EXPECT_NEAR(estimate.orthogonality / known, 1, 0.2) << estimate.how;
  EXPECT_FALSE(estimate.good());
}

TEST(CheckFactors, one_wrong_column_is_measured) {
  Factors f(500, 90);
  const double size = 1e-9;
  for (Index i = 0; i <= 89; ++i) f.r[static_cast<std::size_t>(i + 89 * 90)] *= 1 + size;
  for (const CheckBudget& budget : {whole, sampled}) {
    const ErrorMeasures errors = check_factors<double>(f.view_a(), f.view_q(), f.view_r(), budget);
    EXPECT_NEAR(errors.residual / (size / f.unit()), 1, 1e-4) << errors.how;
    EXPECT_FALSE(errors.good());
  }
}

TEST(CheckFactors, nan_is_never_good) {
  Factors f(50, 9);
  f.q[17] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_factors<double>(f.view_a(), f.view_q(), f.view_r(), whole).good());
  EXPECT_FALSE(check_factors<double>(f.view_a(), f.view_q(), f.view_r(), sampled).good());
}

TEST(CheckRAlone, householder_passes_whatever_its_signs) {
  Factors f(900, 60);
  EXPECT_LT(check_r_alone<double>(f.view_a(), f.view_r()).residual, 5);
  for (Index j = 3; j < 60; ++j) f.r[static_cast<std::size_t>(3 + j * 60)] *= -1;
  EXPECT_LT(check_r_alone<double>(f.view_a(), f.view_r()).residual, 5);
}

TEST(CheckRAlone, wrong_r_is_measured_and_nan_is_not_good) {
  Factors f(900, 60);
  const double size = 1e-9;
  for (double& x : f.r) x *= 1 + size;  // the polar factor cannot mend a length
  EXPECT_NEAR(check_r_alone<double>(f.view_a(), f.view_r()).residual / (size / f.unit()), 1, 1e-4);
  f.r[60] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_r_alone<double>(f.view_a(), f.view_r()).good());
}

TEST(CheckRAlone, is_not_asked_where_a_may_be_ill_conditioned) {
  EXPECT_TRUE(can_check_r_alone(1000, 192, ReferenceR::gram, whole));
  EXPECT_FALSE(can_check_r_alone(200, 192, ReferenceR::gram, whole));
  EXPECT_TRUE(can_check_r_alone(200, 192, ReferenceR::householder, whole));
  EXPECT_FALSE(can_check_r_alone(8192, 1024, ReferenceR::gram, whole));
  EXPECT_FALSE(can_check_r_alone(1'000'000, 192, ReferenceR::gram, {1e9}));
}

TEST(CheckRAlone, serves_ill_conditioned_matrices_by_householder) {
  Factors f(150'000, 30, 0x1p53);  // more rows than one chunk
  const ErrorMeasures errors = check_r_alone<double>(f.view_a(), f.view_r(), ReferenceR::householder);
  EXPECT_LT(errors.residual, 5);
  EXPECT_GT(errors.residual, 0);
  EXPECT_GT(condition_of<double>(f.view_r()), 1e15);
  for (double& x : f.r) x *= 1 + 1e-9;
  EXPECT_FALSE(check_r_alone<double>(f.view_a(), f.view_r(), ReferenceR::householder).good());
}

TEST(SeededMatrix, has_the_condition_asked_for) {
  for (const double condition : {1.0, 1e3, 1e9}) {
    const double found = condition_of<double>(Factors(2000, 30, condition).view_r());
    EXPECT_GT(found, condition / 1.3);
    EXPECT_LT(found, condition * 1.5);
  }
}

}  // namespace
}  // namespace qrane::bench
