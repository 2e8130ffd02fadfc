// SPDX-License-Identifier: Apache-2.0
// The small dense pieces of the vocabulary: guarded Cholesky, reconstruction, small SVDs. Included by kernels_test.hpp.
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

/// An upper triangle of the kind; below the diagonal is what the kernels must not read.
inline HostMatrix<double> triangle_of(Spectrum kind, Index n, unsigned seed) {
  HostMatrix<double> r(n, n, 3);
  r.random(seed);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      double& x = r(i, j);
      if (kind == Spectrum::identity) x = i == j;
      if (kind == Spectrum::zero) x = 0;
      if (kind == Spectrum::deficient && (j % 3 == 1 || i > n / 2)) x = j % 3 == 1 && i < j ? r(i, j - 1) : 0.0;
      if (kind == Spectrum::clustered) x = (i == j ? 1.0 : 0.0) + 1e-9 * x;
      if (kind == Spectrum::graded) x = std::ldexp(x, -int(i * 40 / n));
    }
  return r;
}

inline Reference upper_of(const HostMatrix<double>& r) {
  Reference out = to_reference(r);
  for (Index j = 0; j < out.cols; ++j)
    for (Index i = j + 1; i < out.rows; ++i) out(i, j) = 0;
  return out;
}

/// R = U diag(sigma) Vᵀ with both orthonormal, but for a rank-deficient R, which is said.
TYPED_TEST(Kernels, DecomposesASmallTriangle) {
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & queue, const SmallSvd<B>& task) {
                  { small_svd(queue, task) } -> std::same_as<void>;
                }) {
    for (const Index n : some_of<Index>({1, 2, 3, 7, 32, 33, 65, 100}, 3))
      for (const Spectrum kind : in_turn({Spectrum::random, Spectrum::identity, Spectrum::zero, Spectrum::deficient,
                                          Spectrum::clustered, Spectrum::graded})) {
        SCOPED_TRACE(testing::Message() << "n = " << n << ", kind " << int(kind));
        if (n > this->q().limits(float{}).max_small_svd) continue;
        const HostMatrix<double> r = triangle_of(kind, n, 60);
        HostMatrix<double> u(n, n, 1), v(n, n, 2);
        SmallSvd<B> task;
        task.r = this->upload(r);
        task.u = this->upload(u);
        task.v = this->upload(v);
        task.sigma = this->upload(std::vector<double>(static_cast<std::size_t>(n), canary<double>));
        task.work = this->upload(std::vector<double>(static_cast<std::size_t>(small_svd_work(this->q(), n) + 1)));
        task.most_condition = 1e4;
        task.failed = this->flag(0);
        small_svd(this->q(), task);
        u = this->download(task.u, u);
        v = this->download(task.v, v);
        this->expect_canaries(u);
        this->expect_canaries(v);
        const std::vector<double> sigma = this->download(task.sigma, n);
        constexpr double tolerance = 1e-11;
        const bool deficient = !(sigma.front() < SmallSvd<B>::orthonormal_to * sigma.back());
        if (!deficient) {
          EXPECT_LE(orthogonality(to_reference(u)), tolerance);
          EXPECT_LE(orthogonality(to_reference(v)), tolerance);
        }
        const Reference turned = multiply(upper_of(r), false, to_reference(v), false);
        for (Index j = 0; j < n; ++j) {
          const double s = sigma[static_cast<std::size_t>(j)];
          EXPECT_GE(s, 0);
          EXPECT_LE(s, sigma[static_cast<std::size_t>(std::max<Index>(j, 1) - 1)]);
          if (kind == Spectrum::zero) {
            EXPECT_EQ(s, 0);
          }
          for (Index i = 0; i < n && !deficient; ++i)
            this->expect_close(double(turned(i, j)), Wide(u(i, j)) * s, tolerance * sigma[0], "R V = U sigma");
        }
        const bool bad = !(sigma.front() < 1e4 * sigma.back());
        EXPECT_EQ(this->download(task.failed, 1)[0], bad ? 1 : 0);
      }
    HostMatrix<double> poisoned(5, 5), v(5, 5);  // NaN ends too
    poisoned.random(61);
    poisoned(1, 3) = std::nan("");
    SmallSvd<B> task;
    task.r = this->upload(poisoned);
    task.v = this->upload(v);
    task.sigma = this->upload(std::vector<double>(5, 0.0));
    task.work = this->upload(std::vector<double>(64));
    small_svd(this->q(), task);
    for (const double s : this->download(task.sigma, 5)) EXPECT_TRUE(std::isnan(s));
  } else {
    GTEST_SKIP() << "this backend leaves the small SVD to the host";
  }
}

/// V and sigma of G = RᵀR, from nothing and from the V of a nearby G, and both products.
TYPED_TEST(Kernels, DecomposesASmallGramMatrix) {
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & queue, const SmallSvd<B>& task) {
                  { small_svd(queue, task) } -> std::same_as<void>;
                }) {
    using Product = typename SmallSvd<B>::Product;
    for (const Index n : small_run() ? std::vector<Index>{7, 33} : std::vector<Index>{1, 2, 7, 33, 100})
      for (const Spectrum kind :
           in_turn({Spectrum::random, Spectrum::zero, Spectrum::deficient, Spectrum::clustered})) {
        SCOPED_TRACE(testing::Message() << "n = " << n << ", kind " << int(kind));
        if (n > this->q().limits(float{}).max_small_svd) continue;
        HostMatrix<double> r = triangle_of(kind, n, 62), g(n, n, 1), v(n, n, 2), product(n, n, 1);
        SmallSvd<B> task;
        task.gram = true;
        task.v = this->upload(v);
        task.result = this->upload(product);
        task.sigma = this->upload(std::vector<double>(static_cast<std::size_t>(n), canary<double>));
        task.work = this->upload(std::vector<double>(static_cast<std::size_t>(small_svd_work(this->q(), n) + 1)));
        for (int repeat = 0; repeat < 3; ++repeat) {
          SCOPED_TRACE(repeat == 0 ? "from nothing" : "from the last V");
          for (Index j = 0; repeat > 0 && kind != Spectrum::zero && j < n; ++j) r(j, j) += 1e-3;
          const Reference exact = multiply(upper_of(r), true, upper_of(r), false);
          g.set([&](Index i, Index j, Index) { return i <= j ? double(exact(i, j)) : std::nan(""); });
          task.r = this->upload(g);
          if (repeat > 0) task.guess = task.v;
          const bool whiten = repeat == 2 && kind == Spectrum::clustered;
          task.product = whiten ? Product::whiten : Product::threshold;
          task.threshold = 0.5;
          small_svd(this->q(), task);
          v = this->download(task.v, v);
          product = this->download(task.result, product);
          this->expect_canaries(v);
          this->expect_canaries(product);
          const std::vector<double> sigma = this->download(task.sigma, n);
          constexpr double tolerance = 1e-11;
          const Reference basis = to_reference(v);
          EXPECT_LE(orthogonality(basis), tolerance);
          const Reference diagonal = multiply(basis, true, multiply(exact, false, basis, false), false);
          Reference weighted = basis, identity(n, n);
          for (Index j = 0; j < n; ++j) {
            const Wide s = sigma[static_cast<std::size_t>(j)];
            EXPECT_LE(s, sigma[static_cast<std::size_t>(std::max<Index>(j, 1) - 1)]);
            identity(j, j) = 1;
            for (Index i = 0; i < n; ++i) {
              this->expect_close(double(diagonal(i, j)), i == j ? s * s : Wide(0),
                                 tolerance * (sigma[0] * sigma[0] + 1e-300), "Vᵀ G V");
              weighted(i, j) *= whiten ? 1 / s : s > 0.5 ? 1 - 0.5 / s : Wide(0);
            }
          }
          const Reference expected = multiply(weighted, false, whiten ? identity : basis, !whiten);
          for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < n; ++i) this->expect_close(product(i, j), expected(i, j), tolerance, "the product");
        }
      }
  } else {
    GTEST_SKIP() << "this backend leaves the small SVD to the host";
  }
}

/// V, sigma and V diag(1 / sigma) of a Gram matrix from nothing: values that are apart, and others.
TYPED_TEST(Kernels, DecomposesAGramMatrixOfAnySpectrum) {
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & queue, const SmallSvd<B>& task) {
                  { small_svd(queue, task) } -> std::same_as<void>;
                }) {
    const std::vector<Index> sizes = small_run()
                                         ? std::vector<Index>{30, 100, 140}
                                         : std::vector<Index>{24, 33, 64, 65, 100, 104, 105, 128, 129, 192, 200};
    for (const Index n : sizes)
      for (const Spectrum kind : in_turn({Spectrum::random, Spectrum::identity, Spectrum::zero, Spectrum::deficient,
                                          Spectrum::clustered, Spectrum::graded})) {
        if (n > this->q().limits(float{}).max_small_svd) continue;
        const bool whiten = n % 2 == 0;
        SCOPED_TRACE(testing::Message() << "n = " << n << ", kind " << int(kind));
        HostMatrix<double> r = triangle_of(kind, n, 64), g(n, n, 3), v(n, n, 2), product(n, n, 1);
        for (Index j = 0; kind == Spectrum::random && j < n; ++j) r(j, j) += 10 + 3 * double(j % 7);
        const Reference exact = multiply(upper_of(r), true, upper_of(r), false);
        g.set([&](Index i, Index j, Index) { return i <= j ? double(exact(i, j)) : std::nan(""); });
        SmallSvd<B> task;
        task.gram = true;
        task.r = this->upload(g);
        task.v = this->upload(v);
        task.result = this->upload(product);
        task.sigma = this->upload(std::vector<double>(static_cast<std::size_t>(n), canary<double>));
        const auto work = static_cast<std::size_t>(small_svd_work(this->q(), n) + 1);
        task.work = this->upload(std::vector<double>(work, std::nan("")));
        task.most_condition = 1e4;
        task.failed = this->flag(0);
        task.accuracy = 0x1p-40;
        if (whiten) task.product = SmallSvd<B>::Product::whiten;
        small_svd(this->q(), task);
        v = this->download(task.v, v);
        product = this->download(task.result, product);
        this->expect_canaries(v);
        this->expect_canaries(product);
        const std::vector<double> sigma = this->download(task.sigma, n);
        const Reference basis = to_reference(v);
        const double tolerance = std::pow(double(n), 1.5) * task.accuracy;  // n cosines of a column
        EXPECT_LE(orthogonality(basis), tolerance);
        const Reference diagonal = multiply(basis, true, multiply(exact, false, basis, false), false);
        const bool fine = sigma.front() < 1e4 * sigma.back();
        for (Index j = 0; j < n; ++j) {
          const Wide s = sigma[static_cast<std::size_t>(j)];
          EXPECT_GE(s, 0);
          EXPECT_LE(s, sigma[static_cast<std::size_t>(std::max<Index>(j, 1) - 1)]);
          for (Index i = 0; i < n; ++i) {
            this->expect_close(double(diagonal(i, j)), i == j ? s * s : Wide(0),
                               tolerance * (sigma[0] * sigma[0] + 1e-300), "Vᵀ G V");
            if (whiten && fine)
              this->expect_close(product(i, j), Wide(v(i, j)) / s, tolerance / double(s), "the product");
          }
        }
        EXPECT_EQ(this->download(task.failed, 1)[0], fine ? 0 : 1);
      }
  } else {
    GTEST_SKIP() << "this backend leaves the small SVD to the host";
  }
}

}  // namespace qrane::backend::test
