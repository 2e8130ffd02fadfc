// SPDX-License-Identifier: Apache-2.0
// Every call of README and docs, with each type of matrix that it takes: Matrix, MatrixView (const and not), std::span,
// std::vector and, where it is installed, Eigen's. That they compile is most of the test; the numbers are checked in
// passing.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include <qrane/qrane.hpp>
#if __has_include(<Eigen/Core>)
#include <Eigen/QR>

#include <qrane/eigen.hpp>
#endif

#include "support/hostile.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

constexpr Index m = 20, n = 4;

const Context& context() {
  static const Context cpu({.backend = Backend::cpu});
  return cpu;
}

Matrix<double> some(Index rows, Index cols, double phase = 0) {
  auto a = Matrix<double>::host(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) {
      const auto k = static_cast<double>(i + 20 * j + 1);
      a(i, j) = std::sin(1.3 * k * k + phase);  // without the square the rank would be 2
    }
  return a;
}

double gap(const Matrix<double>& a, const Matrix<double>& b) {
  EXPECT_EQ(a.rows(), b.rows());
  EXPECT_EQ(a.cols(), b.cols());
  double worst = 0;
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i) worst = std::max(worst, std::abs(a(i, j) - b(i, j)));
  return worst;
}

/// One call with a as a Matrix, constant Matrix, view and constant view.
template <class Call>
void with_each(Matrix<double>& a, Call call) {
  call(a);
  call(std::as_const(a));
  call(a.view());
  call(std::as_const(a).view());
}

TEST(Calls, FunctionsDeduceTheScalar) {
  Matrix<double> a = some(m, n), b = some(m, 1, 0.5);
  const std::vector<double> vector(b.data(), b.data() + m);
  with_each(a, [&](auto&& x) {
    EXPECT_EQ(qr(context(), x).cols(), n);
    EXPECT_EQ(qr(context(), x, {.algorithm = Algorithm::tsqr, .q = QForm::thin}).q().cols(), n);
    EXPECT_EQ(updatable_qr(context(), x).cols(), n);
    EXPECT_EQ(svd(context(), x).s.rows(), n);
    EXPECT_EQ(svd(context(), x, {.vectors = false}).u.rows(), 0);
    EXPECT_EQ(pivoted_qr(context(), x).rank(), n);
    EXPECT_EQ(pivoted_qr(context(), x, {.relative_tolerance = 1e-3}).kept(), n);
    EXPECT_EQ(robust_pca(context(), x, {.max_iterations = 2}).low_rank.cols(), n);
    EXPECT_EQ(least_squares(context(), x, b).rank, n);
    EXPECT_EQ(least_squares(context(), x, b.view()).rank, n);
    EXPECT_EQ(least_squares(context(), x, vector).x.rows(), n);
    EXPECT_EQ(least_squares(context(), x, std::span(vector), {.check_finite = true}).residual_norms.size(), 1u);
    EXPECT_EQ(gap(context().to_host(x), a), 0);
    EXPECT_EQ(context().to_device(x).cols(), n);
    Matrix<double> copy = Matrix<double>::host(m, n);
    context().copy(x, copy);
    context().copy(x, copy.view());
    EXPECT_EQ(gap(copy, a), 0);
  });
  EXPECT_EQ(plan_qr<double>(context(), m, n).cols, n);
  EXPECT_EQ(numerical_rank(svd(context(), a).s).rank, n);
}

TEST(Calls, MembersTakeEveryMatrix) {
  Matrix<double> a = some(m, n), b = some(m, 2, 0.5);
  auto f = qr(context(), a);
  const Matrix<double> x = f.solve(b).x;
  with_each(b, [&](auto&& right) {
    EXPECT_EQ(gap(f.solve(right).x, x), 0);
    EXPECT_EQ(pivoted_qr(context(), a).solve(right).rank, n);
  });
  with_each(a, [&](auto&& again) { f.refactor(again); });
  Matrix<double> c = some(m, 2, 0.5);
  f.apply_qt(c);
  f.apply_q(c.view());
  EXPECT_LT(gap(b, c), 1e-13);
  std::vector<double> column(b.data(), b.data() + m);
  f.apply_qt(column);
  f.apply_q(std::span(column));
  EXPECT_NEAR(column[3], b(3, 0), 1e-13);
  std::array<double, m> fixed{};
  EXPECT_EQ(f.solve(fixed).x(0, 0), 0);
  Matrix<double> r = Matrix<double>::host(n, n), q = Matrix<double>::host(m, n);
  f.r_into(r);
  f.q_into(q);
  EXPECT_EQ(gap(r, f.r()), 0);
  EXPECT_EQ(gap(q, f.q()), 0);
  EXPECT_EQ(f.rank().rank, n);
  EXPECT_GT(f.condition(), 1);
  EXPECT_EQ(range_basis(f).cols(), n);
  EXPECT_EQ(null_space_basis(f).cols(), 0);
  EXPECT_EQ(determinant(qr(context(), some(n, n))).sign * determinant(qr(context(), some(n, n))).sign, 1);
  Matrix<double> place = some(m, n);
  EXPECT_LT(gap(qr_in_place(context(), place).r(), f.r()), 1e-13);
}

TEST(Calls, PlansTakeEveryMatrix) {
  Matrix<double> a = some(m, n), b = some(m, 1, 0.5);
  SvdPlan<double> decompose(context(), m, n);
  LeastSquaresPlan<double> solve(context(), m, n);
  EXPECT_GT(decompose.workspace_bytes() + solve.workspace_bytes(), 0);
  EXPECT_TRUE(decompose.on_device());
  const std::vector<double> right(b.data(), b.data() + m);
  std::vector<double> s(n), x(n);
  Matrix<double> u = Matrix<double>::host(m, n), vt = Matrix<double>::host(n, n);
  const auto svd_of_a = svd(context(), a);
  const auto solved = least_squares(context(), a, b);
  with_each(a, [&](auto&& matrix) {
    decompose.execute(matrix, s, u, vt.view());
    decompose.finish();
    solve.execute(matrix, right, std::span(x));
    EXPECT_EQ(solve.finish().rank, n);
    EXPECT_EQ(s[0], svd_of_a.s(0, 0));
    EXPECT_EQ(gap(u, svd_of_a.u), 0);
    EXPECT_EQ(x[1], solved.x(1, 0));
  });
  context().set_cache_limit(context().cache_limit());
  EXPECT_GT(context().cached_bytes(), 0);
  context().clear_cache();
  EXPECT_EQ(context().cached_bytes(), 0);
}

TEST(Calls, RowMajorData) {
  const Matrix<double> a = some(m, n);
  std::vector<double> rows;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) rows.push_back(a(i, j));
  const auto view = MatrixView<const double>::row_major(rows.data(), m, n);
  EXPECT_LT(gap(qr(context(), view).r(), qr(context(), a).r()), 1e-14);
  try {  // the leading dimension of row-major data, and no layout
    qr(context(), MatrixView<const double>(rows.data(), m, n, n));
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("row_major"), std::string::npos) << error.what();
  }
}

TEST(Calls, Updates) {
  Matrix<double> a = some(m, n), b = some(m, 1, 0.5), u = some(2, n, 0.7), e = some(2, 1, 0.9), p = some(m, 1, 0.2);
  UpdatableQR<double> w = updatable_qr(context(), a, {.q = QForm::thin});
  w.insert_columns(2, p);
  w.insert_columns(0, p.view(), {.method = UpdateMethod::orthogonal});
  w.delete_columns(3, 1);
  w.delete_columns(0, 1, {.check_finite = true});
  w.insert_rows(w.rows(), u);
  w.delete_rows(m, 2);
  w.attach(b);
  w.attach(std::span(b.data(), m));
  w.insert_rows(0, u, e);
  w.insert_rows(2, u.view(), std::vector<double>{1, 2}, {.method = UpdateMethod::automatic});
  EXPECT_EQ(w.solve().rank, n);
  EXPECT_EQ(w.solve(SolveOptions{.refuse_deficient = true}).x.rows(), n);
  EXPECT_EQ(w.residual_norms().size(), 1u);
  EXPECT_EQ(w.projected().rows(), n);
  w.delete_rows(0, 4);
  EXPECT_EQ(w.solve(b).x.rows(), n);
  w.rank_k_update(p, std::vector<double>(n, 1.0));
  EXPECT_GE(w.drift(), 0);
  EXPECT_EQ(w.plan_update(Change::delete_rows, 0, 1).rows, m);
  w.refactor(a);
  EXPECT_LT(gap(w.r(), qr(context(), a, {.q = QForm::thin}).r()), 1e-13);

  auto f = qr(context(), a, {.q = QForm::none});
  UpdatableQR<double> taken = updatable_qr(std::move(f));
  Matrix<double> first = Matrix<double>::host(1, n);
  for (Index j = 0; j < n; ++j) first(0, j) = a(0, j);
  EXPECT_FALSE(taken.delete_rows(0, 1, first).refused);
  EXPECT_EQ(taken.rows(), m - 1);
  QR<double> plain = std::move(taken);  // still updatable
  EXPECT_EQ(updatable_qr(std::move(plain)).delete_columns(0, 1).p, 1);
}

TEST(Calls, Batches) {
  Matrix<double> a = some(m, n * 3), u = some(2, n * 3, 0.3);
  const auto batch = [](auto&& view, Index cols) {
    auto first = view;
    first.cols = cols;
    return BatchView<std::remove_reference_t<decltype(*view.data)>>{first, view.ld * cols, 3};
  };
  EXPECT_EQ(qr(context(), batch(a.view(), n)).count(), 3);
  auto f = qr(context(), batch(std::as_const(a).view(), n), {.q = QForm::thin});
  EXPECT_EQ(f.solve(batch(a.view(), 2)).x.cols(), 6);
  f.refactor(batch(a.view(), n));
  EXPECT_FALSE(f.insert_rows(0, batch(u.view(), n)).refused);
  EXPECT_FALSE(f.delete_rows(0, 2).refused);
  EXPECT_EQ(f.delete_columns(0, 1).p, 1);
  EXPECT_EQ(qr_in_place(context(), batch(a.view(), n)).count(), 3);
}

TEST(Calls, Sparse) {
  // columns of 2, -1 on the diagonal and below it
  const std::vector<std::int32_t> pointers{0, 2, 4, 6}, rows{0, 1, 1, 2, 2, 3};
  const std::vector<double> values{2, -1, 2, -1, 2, -1};
  const auto a = sparse::by_columns(4, 3, pointers.data(), rows.data(), values.data());
  const std::vector<double> b{2, 1, 1, -1};
  auto f = sparse::analyze(context(), a).factor(a);
  EXPECT_NEAR(f.solve(b).x(2, 0), 1, 1e-14);
  EXPECT_NEAR(sparse::least_squares(context(), a, b).x(0, 0), 1, 1e-14);
  Matrix<double> c = some(4, 1);
  f.apply_qt(c);
  f.apply_q(c);
  EXPECT_LT(gap(c, some(4, 1)), 1e-14);
}

/// The rank of a tall matrix of four columns, one nearly dependent, is one number whoever is asked.
TEST(Calls, OneRankRule) {
  const Index tall = 200000;
  auto a = Matrix<float>::host(tall, 4), b = Matrix<float>::host(tall, 1);
  const Dense<float> random = random_normal<float>(tall, 4, 3);
  for (const double size : {1e-2, 1e-4, 1e-5, 3e-7, 0.0}) {
    for (Index i = 0; i < tall; ++i) {
      for (Index j = 0; j < 3; ++j) a(i, j) = random(i, j);
      a(i, 3) = random(i, 0) + static_cast<float>(size) * random(i, 3);
      b(i, 0) = random(i, 1);
    }
    const Index rank = numerical_rank(svd(context(), a).s).rank;
    EXPECT_EQ(rank, size > 1e-5 ? 4 : size == 0 ? 3 : rank) << size;
    if (size == 3e-7) continue;  // within a factor of three of the tolerance singular values and pivots may differ
    EXPECT_EQ(qr(context(), a).rank().rank, rank) << size;
    EXPECT_EQ(pivoted_qr(context(), a).rank(), rank) << size;
    EXPECT_EQ(least_squares(context(), a, b).rank, rank) << size;
    EXPECT_EQ(qr(context(), a).solve(b).rank, rank) << size;
    EXPECT_EQ(updatable_qr(context(), a, {.q = QForm::thin}).rank().rank, rank) << size;
  }
}

#if __has_include(<Eigen/Core>)
TEST(Calls, Eigen) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::MatrixXd a = Eigen::MatrixXd::Random(m, n);
  const RowMajor rows = a;
  Eigen::VectorXd b = Eigen::VectorXd::Random(m);
  const Eigen::VectorXd want = a.colPivHouseholderQr().solve(b);
  const auto f = qr(context(), a);
  EXPECT_LT((to_eigen(least_squares(context(), a, b).x) - want).norm(), 1e-12);
  EXPECT_LT((to_eigen(least_squares(context(), rows, b).x) - want).norm(), 1e-12);
  EXPECT_LT((to_eigen(f.solve(b).x) - want).norm(), 1e-12);
  EXPECT_LT((to_eigen(f.q()) * to_eigen(f.r()) - a).norm(), 1e-13);
  EXPECT_EQ(qr(context(), a.block(2, 1, 10, 2)).rows(), 10);
  EXPECT_EQ(qr(context(), Eigen::MatrixXf(a.cast<float>())).cols(), n);
  Eigen::VectorXd c = b;
  f.apply_qt(c);
  f.apply_q(c);
  EXPECT_LT((c - b).norm(), 1e-13);
  EXPECT_THROW(qr(context(), a.row(0)), Error);  // its elements are a column apart

  Eigen::SparseMatrix<double> s(4, 3);
  for (int j = 0; j < 3; ++j) s.insert(j, j) = 2, s.insert(j + 1, j) = -1;
  EXPECT_THROW(sparse::view(s), Error);
  s.makeCompressed();
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(3), right = s * ones;
  EXPECT_LT((to_eigen(sparse::analyze(context(), s).factor(sparse::view(s)).solve(right).x) - ones).norm(), 1e-14);
  const Eigen::SparseMatrix<double, Eigen::RowMajor, std::int64_t> by_rows = s;
  EXPECT_LT((to_eigen(sparse::least_squares(context(), sparse::view(by_rows), right).x) - ones).norm(), 1e-14);
}
#endif

}  // namespace
}  // namespace qrane::test
