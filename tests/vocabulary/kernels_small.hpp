// SPDX-License-Identifier: Apache-2.0
// Small SVDs of triangles and Gram matrices. Part of kernels_test.hpp.
#pragma once

#include "kernels_guard.hpp"

namespace qrane::backend::test {

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
