// SPDX-License-Identifier: Apache-2.0
// What robust PCA adds to the vocabulary: its passes, fused and in steps, and its verdict. Included by
// kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

TYPED_TEST(Kernels, TakesARobustPcaStep) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  for (const Shape& s : std::vector<Shape>{{0, 3}, {1, 1}, {33, 7, 2}, {1000, 5}, {4099, 3, 1}}) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
    HostMatrix<T> m(s.rows, s.cols, s.slack), l(s.rows, s.cols, s.slack), y(s.rows, s.cols, s.slack);
    HostMatrix<T> sparse(s.rows, s.cols, s.slack), x(s.rows, s.cols, s.slack);
    m.random(50);
    l.random(51);
    y.random(52);
    RobustPcaPass<B, T> pass;
    pass.mu = 0.7;
    pass.mu_next = 1.05;
    pass.threshold = 0.9;
    std::vector<double> first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      pass.m = this->upload(m);
      pass.l = this->upload(l);
      pass.y = this->upload(y);
      pass.s = this->upload(sparse);
      pass.x = this->upload(x);
      pass.residual_squared = this->upload(std::vector<double>{canary<double>});
      auto scratch = this->scratch(65536);
      if (repeat == 2) {
        robust_pca_pass(this->q().when(this->flag(0)), pass, scratch);
        EXPECT_TRUE(same_bits(this->download(pass.y, y).data, y.data));
        EXPECT_EQ(this->download(pass.residual_squared, 1)[0], canary<double>);
        continue;
      }
      robust_pca_pass(this->q(), pass, scratch);
      const HostMatrix<T> y1 = this->download(pass.y, y), s1 = this->download(pass.s, sparse),
                          x1 = this->download(pass.x, x);
      this->expect_canaries(y1);
      this->expect_canaries(s1);
      this->expect_canaries(x1);
      const std::vector<double> residual = this->download(pass.residual_squared, 1);
      if (repeat == 0) first = residual;
      EXPECT_TRUE(same_bits(residual, first));
      Wide sum = 0;
      const Wide tolerance = 40 * unit_roundoff<T>;
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i) {
          const Wide v = Wide(m(i, j)) - l(i, j) + y(i, j) / 0.7L;
          const Wide shrunk = std::copysign(std::max(std::fabs(v) - 0.9L, Wide(0)), v);
          const Wide z = Wide(m(i, j)) - l(i, j) - shrunk, new_y = y(i, j) + 0.7L * z;
          sum += z * z;
          ASSERT_LE(std::fabs(s1(i, j) - shrunk), tolerance);
          ASSERT_LE(std::fabs(y1(i, j) - new_y), tolerance);
          ASSERT_LE(std::fabs(x1(i, j) - (m(i, j) - shrunk + new_y / 1.05L)), tolerance);
        }
      this->expect_close(residual[0], sum, 100 * unit_roundoff<T> * (sum + 1), "sum of z^2");
    }
  }
}

/// The fused step is gemm and robust_pca_pass in one.
TYPED_TEST(Kernels, TakesAFusedRobustPcaStep) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & q, const RobustPcaStep<B, T>& step, Scratch<B> s) {
                  { robust_pca_step(q, step, s) } -> std::same_as<void>;
                }) {
    for (const Shape& s : std::vector<Shape>{{1, 1}, {33, 7, 2}, {100, 33}, {1003, 65, 1}, {517, 100}, {64, 128, 4}}) {
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
      HostMatrix<T> m(s.rows, s.cols, s.slack), x(s.rows, s.cols, s.slack), y(s.rows, s.cols, s.slack);
      HostMatrix<double> p(s.cols, s.cols, 1), root(s.cols, s.cols);
      m.random(50);
      x.random(51);
      y.random(52);
      root.random(53);
      p.set([&](Index i, Index j, Index) { return (root(i, j) + root(j, i)) / double(s.cols); });
      RobustPcaStep<B, T> step;
      step.m = this->upload(m);
      step.x = this->upload(x);
      step.y = this->upload(y);
      step.projector = this->upload(p);
      step.mu = 0.7;
      step.mu_next = 1.05;
      step.threshold = 0.9;
      HostMatrix<T> l(s.rows, s.cols, s.slack), sparse = l, x_next = l, y_next = l;
      for (auto* out : {&step.l, &step.s, &step.x_next, &step.y_next}) *out = this->upload(l);
      step.residual_squared = this->upload(std::vector<double>{canary<double>});
      auto scratch = this->scratch(65536);
      robust_pca_step(this->q().when(this->flag(0)), step, scratch);
      EXPECT_EQ(this->download(step.residual_squared, 1)[0], canary<double>);
      robust_pca_step(this->q(), step, scratch);
      l = this->download(step.l, l);
      sparse = this->download(step.s, sparse);
      x_next = this->download(step.x_next, x_next);
      y_next = this->download(step.y_next, y_next);
      for (const auto* out : {&l, &sparse, &x_next, &y_next}) this->expect_canaries(*out);
      const Reference low = multiply(to_reference(x), false, to_reference(p), false);
      const Wide tolerance = 40 * unit_roundoff<T>;
      Wide sum = 0;
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i) {
          const Wide v = Wide(m(i, j)) - low(i, j) + y(i, j) / 0.7L;
          const Wide shrunk = std::copysign(std::max(std::fabs(v) - 0.9L, Wide(0)), v);
          const Wide z = Wide(m(i, j)) - low(i, j) - shrunk, new_y = y(i, j) + 0.7L * z;
          sum += z * z;
          ASSERT_LE(std::fabs(l(i, j) - low(i, j)), 8 * unit_roundoff<T>);
          ASSERT_LE(std::fabs(sparse(i, j) - shrunk), tolerance);
          ASSERT_LE(std::fabs(y_next(i, j) - new_y), tolerance);
          ASSERT_LE(std::fabs(x_next(i, j) - (m(i, j) - shrunk + new_y / 1.05L)), tolerance);
        }
      this->expect_close(this->download(step.residual_squared, 1)[0], sum, 100 * unit_roundoff<T> * (sum + 1), "sum");
    }
  } else {
    GTEST_SKIP() << "this backend takes the step as gemm and a pass";
  }
}

TYPED_TEST(Kernels, MultipliesByAnyMatrix) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & q, DeviceMatrix<B, T> a, DeviceMatrix<B, double> w) {
                  { multiply_full(q, a, w, a) } -> std::same_as<void>;
                }) {
    for (const Shape& s : std::vector<Shape>{{1, 1},
                                             {70, 3, 1},
                                             {33, 32},
                                             {129, 40, 3},
                                             {77, 65},
                                             {200, 100},
                                             {517, 101},
                                             {64, 128},
                                             {150, 129, 1},
                                             {400, 160},
                                             {517, 190, 2},
                                             {200, 192}}) {
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
      if (s.cols > this->q().limits(T{}).max_multiply_full) continue;
      HostMatrix<T> a(s.rows, s.cols, s.slack), q(s.rows, s.cols, s.slack + 1);
      HostMatrix<double> w(s.cols, s.cols, 1);
      a.random(54);
      w.random(55);
      auto out = this->upload(q);
      multiply_full(this->q(), this->upload(a), this->upload(w), out);
      q = this->download(out, q);
      this->expect_canaries(q);
      const Reference exact = multiply(to_reference(a), false, to_reference(w), false);
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i)
          ASSERT_LE(std::fabs(q(i, j) - exact(i, j)),
                    unit_roundoff<T> * std::fabs(exact(i, j)) + 4 * Wide(s.cols) * unit_roundoff<double>);
    }
  } else {
    GTEST_SKIP() << "this backend multiplies by triangles only";
  }
}

TYPED_TEST(Kernels, JudgesARobustPcaIteration) {
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & q, const RobustPcaVerdict<B>& verdict) {
                  { robust_pca_verdict(q, verdict) } -> std::same_as<void>;
                }) {
    enum Kind { converged, residual_large, moved, nan, kinds };
    for (int kind = 0; kind < kinds; ++kind)
      for (const bool settle : {false, true}) {
        std::vector<double> sigma(40), before(40);
        for (std::size_t i = 0; i < sigma.size(); ++i) {
          sigma[i] = 5 - 0.2 * double(i);  // 15 of them above 2.1
          before[i] = std::max(0.0, sigma[i] - 2.1) + (kind == moved && i == 3 ? 0.5 : 0.0);
        }
        RobustPcaVerdict<B> v;
        v.residual_squared = this->upload(std::vector<double>{kind == residual_large ? 4.0
                                                              : kind == nan          ? std::nan("")
                                                                                     : 1e-4});
        v.sigma = this->upload(sigma);
        v.before = this->upload(before);
        v.record = this->upload(std::vector<double>{canary<double>, canary<double>, canary<double>});
        v.running = this->flag(1);
        v.n = 40;
        v.threshold = 2.1;
        v.norm = 10;
        v.tolerance = 1e-2;
        v.settle = settle;
        robust_pca_verdict(this->q(), v);
        const std::vector<double> record = this->download(v.record, 3);
        EXPECT_EQ(record[1], 15);
        EXPECT_EQ(record[2], canary<double>);
        if (kind == nan) {
          EXPECT_TRUE(std::isnan(record[0]));
        } else {
          EXPECT_NEAR(record[0], kind == residual_large ? 0.2 : 1e-3, 1e-12);
        }
        const bool runs_on = kind == residual_large || (kind == moved && settle);
        EXPECT_EQ(this->download(v.running, 1)[0], runs_on ? 1 : 0) << "kind " << kind;
        const std::vector<double> left = this->download(v.before, 40);
        EXPECT_NEAR(left[3], 2.3, 1e-12);
        EXPECT_EQ(left[30], 0);
      }
  } else {
    GTEST_SKIP() << "this backend judges on the host";
  }
}

}  // namespace qrane::backend::test
