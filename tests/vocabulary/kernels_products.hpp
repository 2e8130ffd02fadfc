// SPDX-License-Identifier: Apache-2.0
// Library products of the vocabulary. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

TYPED_TEST(Kernels, MultipliesMatrices) {
  using T = typename TestFixture::T;
  struct Sizes {
    Index m, n, k, count = 1;
  };
  for (const Sizes& s :
       std::vector<Sizes>{{1, 1, 1}, {5, 3, 0}, {0, 3, 2}, {31, 33, 32}, {65, 64, 17, 3}, {7, 130, 5}, {40, 9, 3001}})
    for (Op op_a : {Op::none, Op::transpose})
      for (Op op_b : {Op::none, Op::transpose}) {
        const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
        SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k << (ta ? " T" : " N")
                                        << (tb ? "T" : "N"));
        HostMatrix<T> a(ta ? s.k : s.m, ta ? s.m : s.k, 3, s.count, 4), b(tb ? s.n : s.k, tb ? s.k : s.n, 1, s.count);
        HostMatrix<T> c(s.m, s.n, 2, s.count, 5);
        a.random(1);
        b.random(2);
        c.random(3);
        const T alpha = T(-1.5), beta = ta ? T(0) : T(0.5);
        const HostMatrix<T> c0 = c;
        if (beta == 0) c.set([](Index, Index, Index) { return std::numeric_limits<T>::quiet_NaN(); });
        std::vector<T> first;
        for (int repeat = 0; repeat < 2; ++repeat) {
          auto dc = this->upload(c);
          gemm(this->q(), op_a, op_b, alpha, this->upload(a), this->upload(b), beta, dc);
          const HostMatrix<T> result = this->download(dc, c);
          if (repeat == 0) first = result.data;
          EXPECT_TRUE(same_bits(result.data, first));
          this->expect_canaries(result);
          for (Index k = 0; k < s.count; ++k) {
            const Reference product = multiply(to_reference(a, k), ta, to_reference(b, k), tb);
            for (Index j = 0; j < s.n; ++j)
              for (Index i = 0; i < s.m; ++i) {
                const Wide expected = alpha * product(i, j) + (beta == 0 ? 0 : beta * Wide(c0(i, j, k)));
                ASSERT_LE(std::fabs(result(i, j, k) - expected), (s.k + 10) * 8 * unit_roundoff<T>) << i << ", " << j;
              }
          }
        }
      }
}

TYPED_TEST(Kernels, SolvesTriangularSystems) {
  using T = typename TestFixture::T;
  for (Index n : {1, 5, 31, 33, 70})
    for (int variant = 0; variant < 16; ++variant) {
      const auto side = variant & 1 ? Side::right : Side::left;
      const auto triangle = variant & 2 ? Triangle::lower : Triangle::upper;
      const Op op = variant & 4 ? Op::transpose : Op::none;
      const auto diagonal = variant & 8 ? Diagonal::unit : Diagonal::non_unit;
      SCOPED_TRACE(testing::Message() << "n " << n << " variant " << variant);
      const Index other = 37, count = n == 33 ? 3 : 1;
      HostMatrix<T> a(n, n, 2, count);
      HostMatrix<T> b(side == Side::left ? n : other, side == Side::left ? other : n, 3, count, 1);
      a.random(4);
      b.random(5);
      // Well conditioned triangle; what the solve must not read is NaN.
      HostMatrix<T> given = a;
      Reference used(n, n);
      std::vector<Reference> triangles(std::size_t(count), used);
      for (Index k = 0; k < count; ++k)
        for (Index j = 0; j < n; ++j)
          for (Index i = 0; i < n; ++i) {
            const bool stored = triangle == Triangle::upper ? i <= j : i >= j;
            const T value = i == j ? T(2) + T(0.1) * a(i, j, k) : a(i, j, k) / T(2 * n);
            const bool read = stored && (i != j || diagonal == Diagonal::non_unit);
            given(i, j, k) = read ? value : std::numeric_limits<T>::quiet_NaN();
            triangles[std::size_t(k)](i, j) = !stored ? 0 : i == j && diagonal == Diagonal::unit ? 1 : Wide(value);
          }
      const T alpha = T(-0.75);
      auto db = this->upload(b);
      trsm(this->q(), side, triangle, op, diagonal, alpha, this->upload(given), db);
      const HostMatrix<T> x = this->download(db, b);
      this->expect_canaries(x);
      for (Index k = 0; k < count; ++k) {
        const bool t = op == Op::transpose;
        const Reference back = side == Side::left ? multiply(triangles[std::size_t(k)], t, to_reference(x, k), false)
                                                  : multiply(to_reference(x, k), false, triangles[std::size_t(k)], t);
        for (Index j = 0; j < b.cols; ++j)
          for (Index i = 0; i < b.rows; ++i)
            ASSERT_LE(std::fabs(back(i, j) - alpha * Wide(b(i, j, k))), (n + 10) * 8 * unit_roundoff<T>)
                << i << ", " << j;
      }
    }
}

TYPED_TEST(Kernels, FormsTheGramMatrixAndMultipliesWide) {
  using T = typename TestFixture::T;
  const Wide wide_roundoff = this->q().limits(T{}).has_double ? unit_roundoff<double> : unit_roundoff<float>;
  for (const Shape& s : some_of<Shape>({{1, 1},
                                        {5, 1, 1},
                                        {33, 8},
                                        {100, 31, 3},
                                        {2500, 65},
                                        {9001, 12, 1},
                                        {3000, 33},
                                        {1500, 130, 1},
                                        {1300, 150, 2},
                                        {200, 192},
                                        {197, 192, 3}},
                                       3)) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
    const Index m = s.rows, n = s.cols;
    HostMatrix<T> a(m, n, s.slack), product(m, n, 1);
    a.random(9);
    HostMatrix<double> w(n, n, 2), gram0(n, n, 1);
    w.random(10).set([&](Index i, Index j, Index) { return i <= j ? w(i, j) : 0.0; });
    auto da = this->upload(a);
    auto dw = this->upload(w);
    const Reference exact_gram = multiply(to_reference(a), true, to_reference(a), false);
    const Reference exact_product = multiply(to_reference(a), false, to_reference(w), false);
    for (const std::int64_t bytes : {std::int64_t(4) << 20, 32 * n * 8 + 65536 + (n > 128 ? 1 << 16 : 0)}) {
      auto scratch = this->scratch(bytes);
      std::vector<double> first;
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto dg = this->upload(gram0);
        gram(this->q(), da, dg, scratch);
        const HostMatrix<double> g = this->download(dg, gram0);
        if (repeat == 0) first = g.data;
        EXPECT_TRUE(same_bits(g.data, first));
        for (Index j = 0; j < n; ++j)
          for (Index i = 0; i <= j; ++i)
            ASSERT_LE(std::fabs(g(i, j) - exact_gram(i, j)), 100 * m * wide_roundoff) << i << ", " << j;
      }
      auto dp = this->upload(product);
      multiply_wide(this->q(), da, dw, dp, scratch);
      const HostMatrix<T> p = this->download(dp, product);
      this->expect_canaries(p);
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < m; ++i)
          ASSERT_LE(std::fabs(p(i, j) - exact_product(i, j)),
                    1.01L * unit_roundoff<T> * std::fabs(exact_product(i, j)) + 40 * n * wide_roundoff)
              << i << ", " << j;
    }
  }
}

TYPED_TEST(Kernels, ConditionSkipsWideProducts) {
  using T = typename TestFixture::T;
  HostMatrix<T> a(50, 6), product(50, 6);
  HostMatrix<double> w(6, 6), gram0(6, 6);
  a.random(1);
  w.random(2);
  for (std::int32_t value : {0, 1}) {
    auto when = this->q().when(this->flag(value));
    auto da = this->upload(a), dp = this->upload(product);
    auto dw = this->upload(w), dg = this->upload(gram0);
    auto scratch = this->scratch();
    gram(when, da, dg, scratch);
    multiply_wide(when, da, dw, dp, scratch);
    EXPECT_EQ(same_bits(this->download(dg, gram0).data, gram0.data), value == 0);
    EXPECT_EQ(same_bits(this->download(dp, product).data, product.data), value == 0);
  }
}

/// Every row of A goes to one row of S with a sign, the same on every backend.
TYPED_TEST(Kernels, Sketches) {
  using T = typename TestFixture::T;
  for (const Index rows : {1, 31, 64, 65, 500, 2049})
    for (const Index k : {32, 64, 160}) {
      SCOPED_TRACE(testing::Message() << rows << " rows to " << k);
      const Index n = rows == 500 ? 9 : 3;
      HostMatrix<T> a(rows, n, 2), s(k, n, 1);
      a.random(31);
      Reference expected(k, n), sizes(k, n);
      const auto groups = static_cast<std::uint32_t>(k / 32);
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < rows; ++i) {
          const auto row = static_cast<std::uint32_t>(i), target = count_sketch::target(row, groups);
          expected(target, j) += count_sketch::sign(row) ? -Wide(a(i, j)) : Wide(a(i, j));
          sizes(target, j) += std::fabs(Wide(a(i, j)));
        }
      auto given = this->upload(a);
      auto out = this->upload(s);
      apply_sketch(this->q().when(this->flag(0)), given, out);
      EXPECT_TRUE(same_bits(this->download(out, s).data, s.data));
      apply_sketch(this->q(), given, out);
      const HostMatrix<T> first = this->download(out, s);
      this->expect_canaries(first);
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < k; ++i)
          ASSERT_LE(std::fabs(first(i, j) - expected(i, j)), 100 * unit_roundoff<T> * sizes(i, j)) << i << ", " << j;
      apply_sketch(this->q(), given, out);
      EXPECT_TRUE(same_bits(this->download(out, s).data, first.data));
    }
}

/// Q R = A row by row to rounding, whatever R's condition; what lies below R's diagonal is not read.
TYPED_TEST(Kernels, SolvesFromTheRightInDouble) {
  auto& queue = this->q();
  using B = typename TestFixture::B;
  constexpr bool offered = requires(DeviceMatrix<B, double> a) {
    { solve_wide(queue, a, a, a) } -> std::same_as<void>;
  };
  if constexpr (!offered || sizeof(typename TestFixture::T) == 4) {
    GTEST_SKIP() << "no solve_wide for this backend and scalar";
  } else {
    for (const Index n : {1, 3, 8, 9, 33, 64, 65, 100, 136, 192})
      for (const Index rows : {1, 33, 700}) {
        if (n > queue.limits(1.0).max_cholesky) continue;
        SCOPED_TRACE(testing::Message() << rows << " x " << n);
        HostMatrix<double> a(rows, n, rows % 2 ? 3 : 4), r(n, n, 1), q(rows, n, rows % 2 ? 1 : 2);
        a.random(7);
        r.random(8);
        for (Index j = 0; j < n; ++j)  // an ill-conditioned triangle, columns of very different size
          for (Index i = 0; i < n; ++i)
            r(i, j) = i > j ? std::nan("") : std::ldexp(i == j ? 1.0 : r(i, j), int(j % 5) * 50 - 100 - int(i % 3) * 4);
        const auto given = this->upload(a), triangle = this->upload(r);
        auto out = this->upload(q);
        solve_wide(queue.when(this->flag(0)), given, triangle, out);
        EXPECT_TRUE(same_bits(this->download(out, q).data, q.data));
        solve_wide(queue, given, triangle, out);
        const HostMatrix<double> x = this->download(out, q);
        this->expect_canaries(x);
        for (Index j = 0; j < n; ++j)
          for (Index i = 0; i < rows; ++i) {
            Wide sum = 0, size = std::fabs(Wide(a(i, j)));
            for (Index k = 0; k <= j; ++k) {
              sum += Wide(x(i, k)) * r(k, j);
              size += std::fabs(Wide(x(i, k)) * r(k, j));
            }
            ASSERT_LE(std::fabs(sum - a(i, j)), (n + 4) * unit_roundoff<double> * size) << i << ", " << j;
          }
      }
  }
}

}  // namespace qrane::backend::test
