// SPDX-License-Identifier: Apache-2.0
// Least squares to the accuracy of double from sparse factorizations in float.
#include <gtest/gtest.h>

#include <qrane/sparse_qr.hpp>

#include "support/backends.hpp"
#include "support/dense.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::Factor;

Factor<float> factor_in_float(const Context& context, const Triplets& a) {
  const std::vector<float> values(a.value.begin(), a.value.end());
  const auto view =
      sparse::by_triplets(a.rows, a.cols, static_cast<Index>(values.size()), a.row.data(), a.col.data(), values.data());
  return sparse::analyze(context, view).factor(view);
}

std::vector<long double> residual_of(const Triplets& a, const double* b, const double* x) {
  std::vector<long double> r(b, b + a.rows);
  for (std::size_t k = 0; k < a.value.size(); ++k) r[a.row[k]] -= static_cast<long double>(a.value[k]) * x[a.col[k]];
  return r;
}

/// ‖Aᵀ r‖ / (‖A‖ (‖b‖ + ‖A‖ ‖x‖)), in units of double's roundoff.
double normal_error(const Triplets& a, const double* b, const double* x) {
  const auto r = residual_of(a, b, x);
  std::vector<long double> z(a.cols, 0);
  long double norm_a = 0, norm_z = 0, norm_b = 0, norm_x = 0;
  for (std::size_t k = 0; k < a.value.size(); ++k) {
    z[a.col[k]] += a.value[k] * r[a.row[k]];
    norm_a += static_cast<long double>(a.value[k]) * a.value[k];
  }
  for (const long double v : z) norm_z += v * v;
  for (Index i = 0; i < a.rows; ++i) norm_b += static_cast<long double>(b[i]) * b[i];
  for (Index j = 0; j < a.cols; ++j) norm_x += static_cast<long double>(x[j]) * x[j];
  const long double scale = std::sqrt(norm_a) * (std::sqrt(norm_b) + std::sqrt(norm_a * norm_x));
  return scale == 0 ? 0 : static_cast<double>(std::sqrt(norm_z) / scale) * 0x1p53;
}

Matrix<double> right_hand_sides(Index rows, Index cols) {
  std::mt19937 generator(9);
  std::normal_distribution<double> normal;
  Matrix<double> b = Matrix<double>::host(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) b(i, j) = normal(generator);
  return b;
}

TEST(SparseRefine, OddMatricesToDoubleAccuracy) {
  const Context context = Context({.backend = Backend::cpu});
  for (const NamedTriplets& odd : odd_matrices()) {
    SCOPED_TRACE(odd.name);
    const Factor<float> f = factor_in_float(context, odd.a);
    const Matrix<double> b = right_hand_sides(odd.a.rows, 2);
    const auto solution = sparse::refine(context, f, odd.a.view(), b.view());
    EXPECT_EQ(solution.rank, f.rank());
    EXPECT_TRUE(solution.converged);
    ASSERT_EQ(solution.x.rows(), odd.a.cols);
    for (Index j = 0; j < 2; ++j) {
      const double* x = solution.x.data() + j * odd.a.cols;
      if (!solution.deficient() || odd.a.rows <= odd.a.cols) {
        EXPECT_LE(normal_error(odd.a, b.data() + j * odd.a.rows, x), 30.0 * static_cast<double>(odd.a.cols + 10));
      }
      long double sum = 0;
      for (const long double v : residual_of(odd.a, b.data() + j * odd.a.rows, x)) sum += v * v;
      EXPECT_NEAR(solution.residual_norms[j], static_cast<double>(std::sqrt(sum)), 1e-12 * (1 + std::sqrt(odd.a.rows)));
    }
  }
}

TEST(SparseRefine, ConditionedFarBeyondFloatsDigits) {
  Triplets a = random_sparse(400, 120, 0.05, 3);
  for (Index j = 0; j < a.cols; ++j) a.add(j, j, 3);
  for (std::size_t k = 0; k < a.value.size(); ++k)
    a.value[k] *= std::pow(10.0, 4.0 * a.col[k] / a.cols);  // columns graded
  const Context context = Context({.backend = Backend::cpu});
  const Factor<float> f = factor_in_float(context, a);
  const Matrix<double> b = right_hand_sides(a.rows, 1);
  const auto solution = sparse::refine(context, f, a.view(), b.view());
  EXPECT_EQ(solution.rank, a.cols);
  EXPECT_TRUE(solution.converged);
  EXPECT_LE(solution.iterations, 20);
  EXPECT_LE(normal_error(a, b.data(), solution.x.data()), 30.0 * static_cast<double>(a.cols + 10));
  const auto alone = sparse::refine(context, f, a.view(), b.view(), {.max_iterations = 0});
  EXPECT_FALSE(alone.converged) << "nothing was done";
}

/// Differences of neighbours on a grid, and a hundredth of every node: condition numbers of some hundreds.
Triplets smoothing(Index side) {
  const Index nodes = side * side;
  Triplets a{3 * nodes, nodes, {}, {}, {}};
  Index row = 0;
  for (const Index stride : {Index{1}, side})
    for (Index k = 0; k < nodes; ++k) {
      if (k / stride % side == side - 1) continue;
      const double weight = 1 + static_cast<double>((7 * k + stride) % 13) / 10;
      a.add(row, k, weight);
      a.add(row++, k + stride, -weight);
    }
  for (Index k = 0; k < nodes; ++k) a.add(row++, k, 0.01);
  return a;
}

TEST(SparseRefine, FewStepsThatDoNotFollowNoise) {
  const Context context = Context({.backend = Backend::cpu});
  for (Index side = 8; side <= 24; ++side) {
    SCOPED_TRACE(side);
    const Triplets a = smoothing(side);
    const Factor<float> f = factor_in_float(context, a);
    const Matrix<double> b = right_hand_sides(a.rows, 3);
    const auto solution = sparse::refine(context, f, a.view(), b.view());
    EXPECT_TRUE(solution.converged);
    EXPECT_LE(solution.iterations, 4) << "each gains four digits or more";
    for (Index j = 0; j < 3; ++j)
      EXPECT_LE(normal_error(a, b.data() + j * a.rows, solution.x.data() + j * a.cols),
                30.0 * static_cast<double>(a.cols + 10));
  }
}

TEST(SparseRefine, BasicSolutionsOfDeficientMatrices) {
  Triplets a = random_sparse(300, 90, 0.06, 4);
  Triplets twice = a;
  for (std::size_t k = 0; k < a.value.size(); ++k)
    if (a.col[k] < 10) twice.add(a.row[k], a.cols + a.col[k], a.value[k]);  // ten columns once more
  twice.cols += 10;
  const Context context = Context({.backend = Backend::cpu});
  const Factor<float> f = factor_in_float(context, twice);
  ASSERT_EQ(f.rank(), 90);
  const Matrix<double> b = right_hand_sides(a.rows, 1);
  const auto solution = sparse::refine(context, f, twice.view(), b.view());
  EXPECT_TRUE(solution.deficient());
  EXPECT_TRUE(solution.converged);
  EXPECT_LE(normal_error(twice, b.data(), solution.x.data()), 30.0 * static_cast<double>(twice.cols + 10));
  Index zeros = 0;
  for (Index j = 0; j < twice.cols; ++j) zeros += solution.x(j, 0) == 0;
  EXPECT_EQ(zeros, 10);
}

TEST(SparseRefine, ColumnsDroppedInFloatAloneAreNotConverged) {
  Triplets a = random_sparse(300, 90, 0.06, 4);
  const std::size_t entries = a.value.size();
  for (std::size_t k = 0; k < entries; ++k)
    if (a.col[k] == 3) a.add(a.row[k], 90, a.value[k]);
  a.cols = 91;
  const Context context = Context({.backend = Backend::cpu});
  const Matrix<double> b = right_hand_sides(a.rows, 1);
  a.add(200, 90, 1e-5);  // below float's tolerance, far above double's
  const Factor<float> f = factor_in_float(context, a);
  ASSERT_EQ(f.rank(), 90);
  EXPECT_FALSE(sparse::refine(context, f, a.view(), b.view()).converged);
  const Factor<double> in_double = sparse::analyze(context, a.view()).factor(a.view());
  ASSERT_EQ(in_double.rank(), 91);
  EXPECT_TRUE(sparse::refine(context, in_double, a.view(), b.view()).converged);
  a.value.back() = 1e-15;  // below double's, too
  const Factor<float> deficient = factor_in_float(context, a);
  ASSERT_EQ(deficient.rank(), 90);
  EXPECT_TRUE(sparse::refine(context, deficient, a.view(), b.view()).converged);
}

TEST(SparseRefine, RefusesShapesThatDoNotMatch) {
  const Context context = Context({.backend = Backend::cpu});
  const Triplets a = random_sparse(30, 10, 0.3, 5), other = random_sparse(30, 11, 0.3, 5);
  const Factor<float> f = factor_in_float(context, a);
  const Matrix<double> b = right_hand_sides(30, 1), shorter = right_hand_sides(29, 1);
  EXPECT_THROW(sparse::refine(context, f, other.view(), b.view()), Error);
  EXPECT_THROW(sparse::refine(context, f, a.view(), shorter.view()), Error);
  EXPECT_THROW(sparse::refine(context, f, a.view(), b.view(), {.max_iterations = -1}), Error);

  const std::vector<Index> pointers{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, falling{0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const Index row = 3, beyond = 30;
  const double value = 1;
  const auto refine = [&](const Index* at, const Index* in, const double* v) {
    return [=, &context, &f, &b] { sparse::refine(context, f, sparse::by_columns(30, 10, at, in, v), b.view()); };
  };
  constexpr auto bad = ErrorCode::invalid_argument;
  EXPECT_TRUE(refuses(refine(pointers.data(), &row, nullptr), bad, {"refine", "values is null"}));
  EXPECT_TRUE(refuses(refine(pointers.data(), nullptr, &value), bad, {"refine", "row_indices is null"}));
  EXPECT_TRUE(refuses(refine(nullptr, &row, &value), bad, {"refine", "pointers is null"}));
  EXPECT_TRUE(refuses(refine(falling.data(), &row, &value), bad, {"refine", "pointers fall", "column 1"}));
  EXPECT_TRUE(refuses(refine(pointers.data(), &beyond, &value), bad, {"refine", "row 30"}));
}

}  // namespace
}  // namespace qrane::test
