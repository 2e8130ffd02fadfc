// SPDX-License-Identifier: Apache-2.0
// The small dense pieces of the vocabulary: guarded Cholesky, reconstruction. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

/// An orthonormal basis of random columns, by Gram-Schmidt twice in long double.
inline Reference random_orthonormal(Index m, Index n, unsigned seed) {
  HostMatrix<double> a(m, n);
  a.random(seed);
  Reference q = to_reference(a);
  for (Index j = 0; j < n; ++j) {
    for (int pass = 0; pass < 2; ++pass)
      for (Index k = 0; k < j; ++k) {
        Wide dot = 0;
        for (Index i = 0; i < m; ++i) dot += q(i, k) * q(i, j);
        for (Index i = 0; i < m; ++i) q(i, j) -= dot * q(i, k);
      }
    const Wide norm = column_norm(q, j);
    for (Index i = 0; i < m; ++i) q(i, j) /= norm;
  }
  return q;
}

TYPED_TEST(Kernels, FactorsAGramMatrixWithProof) {
  using T = typename TestFixture::T;
  if (this->q().limits(T{}).max_cholesky == 0) GTEST_SKIP() << "no Cholesky factorization on this device";
  for (Index n : {1, 2, 31, 32, 33, 65, 100}) {
    SCOPED_TRACE(testing::Message() << "n " << n);
    if (n > this->q().limits(T{}).max_cholesky) continue;
    HostMatrix<double> a(2 * n + 3, n), gram(n, n, 1), r(n, n, 2), inverse(n, n, 3);
    a.random(20);
    for (Index j = 0; j < n; ++j)  // scales that the equilibration must take out
      for (Index i = 0; i < a.rows; ++i) a(i, j) = std::ldexp(a(i, j), int(j % 7) * 40 - 120);
    const Reference exact = multiply(to_reference(a), true, to_reference(a), false);
    gram.set([&](Index i, Index j, Index) { return i <= j ? double(exact(i, j)) : std::nan(""); });
    GuardedCholesky<typename TestFixture::B, T> cholesky;
    cholesky.gram = this->upload(gram);
    cholesky.r = this->upload(r);
    cholesky.inverse = this->upload(inverse);
    cholesky.failed = this->upload(std::vector<std::int32_t>{0});
    cholesky.condition = this->upload(std::vector<double>{-1, canary<double>});
    cholesky.verdict = this->upload(std::vector<std::int32_t>{7, 7, 7, 7});
    cholesky.limit = 1e7;
    cholesky.fit_limit = 1e8;
    cholesky.rounding = 1e-5;
    guarded_cholesky(this->q(), cholesky);
    r = this->download(cholesky.r, r);
    inverse = this->download(cholesky.inverse, inverse);
    this->expect_canaries(r);
    this->expect_canaries(inverse);
    EXPECT_EQ(this->download(cholesky.failed, 1)[0], 0);
    EXPECT_EQ(this->download(cholesky.verdict, 4), (std::vector<std::int32_t>{1, 0, 0, 0}));
    const std::vector<double> condition = this->download(cholesky.condition, 2);
    EXPECT_EQ(condition[1], canary<double>);
    const Reference square = multiply(to_reference(r), true, to_reference(r), false);
    const Reference identity = multiply(to_reference(r), false, to_reference(inverse), false);
    Wide r_norm = 0, inverse_norm = 0;
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < n; ++i) {
        if (i > j) {
          ASSERT_EQ(r(i, j), 0);
          ASSERT_EQ(inverse(i, j), 0);
        } else {
          const Wide scale = std::sqrt(exact(i, i) * exact(j, j));
          ASSERT_LE(std::fabs(square(i, j) - exact(i, j)), 30 * (n + 10) * unit_roundoff<double> * scale);
        }
        ASSERT_LE(std::fabs(identity(i, j) - (i == j)), 1e-10L) << i << ", " << j;
        r_norm += std::pow(Wide(r(i, j)), 2) / exact(j, j);
        inverse_norm += std::pow(Wide(inverse(i, j)), 2) * exact(i, i);
      }
    const Wide kappa = std::sqrt(r_norm * inverse_norm);
    EXPECT_NEAR(condition[0] / double(kappa + n * cholesky.rounding * kappa * kappa), 1, 1e-10);
  }
}

TYPED_TEST(Kernels, RefusesAGramMatrixThatProvesNothing) {
  using T = typename TestFixture::T;
  if (this->q().limits(T{}).max_cholesky == 0) GTEST_SKIP() << "no Cholesky factorization on this device";
  const Index n = 9;
  enum Kind { good, zero_column, indefinite, nan, infinite, underflown, past_limit, past_both, kinds };
  for (int kind = 0; kind < kinds; ++kind)
    for (std::int32_t condition : {0, 1}) {
      HostMatrix<double> gram(n, n), r(n, n), inverse(n, n);
      gram.set([](Index i, Index j, Index) { return i == j ? 1.0 : 0.25; });
      if (kind == zero_column)
        for (Index i = 0; i < n; ++i) gram(i, 4) = gram(4, i) = 0;
      if (kind == indefinite) gram(2, 6) = 1.5;
      if (kind == nan) gram(0, n - 1) = std::nan("");
      if (kind == infinite) gram(3, 3) = std::numeric_limits<double>::infinity();
      if (kind == underflown)
        for (Index i = 0; i < n; ++i) gram(i, 5) = gram(5, i) = i == 5 ? 1e-310 : 0;
      GuardedCholesky<typename TestFixture::B, T> cholesky;
      cholesky.gram = this->upload(gram);
      cholesky.r = this->upload(r);
      cholesky.inverse = this->upload(inverse);
      cholesky.failed = this->flag(0);
      cholesky.verdict = this->upload(std::vector<std::int32_t>{0, 0, 0, 0});
      cholesky.condition = this->upload(std::vector<double>{0});
      cholesky.limit = kind == past_limit || kind == past_both ? 2 : 1e6;
      cholesky.fit_limit = kind == past_both ? 3 : 1e6;
      cholesky.rounding = 1e-16;
      guarded_cholesky(this->q().when(this->flag(condition)), cholesky);
      const bool within = kind == good, fit = kind == past_limit;
      EXPECT_EQ(this->download(cholesky.failed, 1)[0], condition && !within && !fit) << "kind " << kind;
      const std::vector<std::int32_t> verdict{within, !within, fit, !within && !fit};
      EXPECT_EQ(this->download(cholesky.verdict, 4), condition ? verdict : std::vector<std::int32_t>(4, 0))
          << "kind " << kind;
      if (!condition) {
        EXPECT_TRUE(same_bits(this->download(cholesky.r, r).data, r.data));
      }
    }
}

TYPED_TEST(Kernels, KeepsAndShiftsAGramMatrix) {
  using T = typename TestFixture::T;
  if (this->q().limits(T{}).max_cholesky == 0) GTEST_SKIP() << "no Cholesky factorization on this device";
  const Index n = 21;
  HostMatrix<double> gram(n, n, 1), r(n, n, 2), inverse(n, n, 3);
  gram.set([](Index i, Index j, Index) { return std::ldexp(1.0, int(i + j)); });  // rank 1
  GuardedCholesky<typename TestFixture::B, T> cholesky;
  cholesky.gram = this->upload(gram);
  cholesky.r = this->upload(r);
  cholesky.inverse = this->upload(inverse);
  cholesky.condition = this->upload(std::vector<double>{0});
  cholesky.limit = cholesky.fit_limit = 1e300;
  cholesky.rounding = 1e-16;
  cholesky.shift = 0x1p-10;
  guarded_cholesky(this->q(), cholesky);
  EXPECT_TRUE(same_bits(this->download(cholesky.gram, gram).data, gram.data));
  r = this->download(cholesky.r, r);
  const Reference square = multiply(to_reference(r), true, to_reference(r), false);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      const double scaled = double(square(i, j)) / std::ldexp(1.0, int(i + j));
      EXPECT_NEAR(scaled, i == j ? 1 + cholesky.shift : 1, 1e-14) << i << ", " << j;
    }
}

TYPED_TEST(Kernels, ReconstructsHouseholderVectors) {
  using T = typename TestFixture::T;
  for (Index b : {1, 2, 7, 31, 32})
    for (Index m : {b, 3 * b + 5}) {
      SCOPED_TRACE(testing::Message() << m << " x " << b);
      const Index count = 2;
      HostMatrix<T> q1(b, b, 2, count), r(b, b, 1, count), panel(b, b, 3, count), t(b, b, 1, count), u(b, b, 0, count);
      std::vector<Reference> q;
      for (Index k = 0; k < count; ++k) q.push_back(random_orthonormal(m, b, unsigned(40 + k)));
      q1.set([&](Index i, Index j, Index k) { return q[std::size_t(k)](i, j); });
      r.random(41);
      Reconstruct<typename TestFixture::B, T> task;
      task.q1 = this->upload(q1);
      task.r = this->upload(r);
      task.panel = this->upload(panel);
      task.t = this->upload(t);
      task.u_inverse = this->upload(u);
      reconstruct(this->q().when(this->flag(0)), task);
      EXPECT_TRUE(same_bits(this->download(task.panel, panel).data, panel.data));
      reconstruct(this->q(), task);
      panel = this->download(task.panel, panel);
      t = this->download(task.t, t);
      u = this->download(task.u_inverse, u);
      this->expect_canaries(panel);
      this->expect_canaries(t);
      this->expect_canaries(u);
      for (Index k = 0; k < count; ++k) {
        const Reference& exact = q[std::size_t(k)];
        Reference v(m, b);
        Reference u_inverse = to_reference(u, k);
        for (Index j = 0; j < b; ++j)
          for (Index i = 0; i < b; ++i) {
            v(i, j) = i > j ? Wide(panel(i, j, k)) : Wide(i == j);
            if (i > j) {
              ASSERT_EQ(t(i, j, k), T(0));
              ASSERT_EQ(u(i, j, k), T(0));
            }
          }
        for (Index j = 0; j < b; ++j)
          for (Index i = b; i < m; ++i)
            for (Index l = 0; l <= j; ++l) v(i, j) += exact(i, l) * u_inverse(l, j);
        // Column j of I - V T V^T is s_j q_j.
        const Reference vt = multiply(v, false, to_reference(t, k), false);
        for (Index j = 0; j < b; ++j) {
          const T sign =
              std::fabs(panel(j, j, k) - r(j, j, k)) <= std::fabs(panel(j, j, k) + r(j, j, k)) ? T(1) : T(-1);
          for (Index l = j; l < b; ++l) EXPECT_EQ(panel(j, l, k), sign * r(j, l, k));
          for (Index i = 0; i < m; ++i) {
            Wide h = i == j;
            for (Index l = 0; l < b; ++l) h -= vt(i, l) * v(j, l);
            ASSERT_LE(std::fabs(h - sign * exact(i, j)), 30 * (b + 10) * unit_roundoff<T>) << i << ", " << j;
          }
        }
      }
    }
}

enum class Spectrum { random, identity, zero, deficient, clustered, graded };

}  // namespace qrane::backend::test
