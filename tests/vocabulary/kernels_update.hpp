// SPDX-License-Identifier: Apache-2.0
// Rows in and out of small factorizations with R and d alone, where a backend has them. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

/// R with a positive diagonal, d and ‖b - A x‖² of a well-conditioned A, by the normal equations in long double.
struct NormalFactor {
  Reference r, d;
  std::vector<Wide> squares;

  NormalFactor(const Reference& a, const Reference& b)
      : r(multiply(a, true, a, false)), d(multiply(a, true, b, false)) {
    for (Index j = 0; j < r.cols; ++j)
      for (Index i = 0; i <= j; ++i) {
        for (Index k = 0; k < i; ++k) r(i, j) -= r(k, i) * r(k, j);
        r(i, j) = i < j ? r(i, j) / r(i, i) : std::sqrt(r(i, j));
      }
    for (Index j = 0; j < b.cols; ++j) {
      Wide square = 0;
      for (Index i = 0; i < b.rows; ++i) square += b(i, j) * b(i, j);
      for (Index i = 0; i < r.cols; ++i) {
        for (Index k = 0; k < i; ++k) d(i, j) -= r(k, i) * d(k, j);
        d(i, j) /= r(i, i);
        square -= d(i, j) * d(i, j);
      }
      squares.push_back(square);
    }
  }
};

template <class T>
Reference rows_of(const HostMatrix<T>& a, Index first, Index count, Index b) {
  Reference r(count, a.cols);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < count; ++i) r(i, j) = a(first + i, j, b);
  return r;
}

/// A batch of systems as a long window sees them: the first `out` rows leave, the last `in` rows come.
template <class T>
struct UpdateProblem {
  Index n, nrhs, count, in, out, kept;
  HostMatrix<T> a, b, r, d;
  std::vector<double> squares;

  UpdateProblem(Index n_, Index nrhs_, Index count_, Index in_, Index out_)
      : n(n_),
        nrhs(nrhs_),
        count(count_),
        in(in_),
        out(out_),
        kept(3 * n_ + 20),
        a(out + kept + in, n, 3, count, 1),
        b(out + kept + in, nrhs, 1, count),
        r(n, n, 2, count, 3),
        d(n, nrhs, 0, count, 2) {
    a.random(81);
    b.random(82);
  }
  /// Columns of A by 2^exponent(j), of b by 2^right.
  template <class F>
  void scale(F exponent, int right) {
    for (Index k = 0; k < count; ++k) {
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < a.rows; ++i) a(i, j, k) = std::ldexp(a(i, j, k), exponent(j));
      for (Index j = 0; j < nrhs; ++j)
        for (Index i = 0; i < a.rows; ++i) b(i, j, k) = std::ldexp(b(i, j, k), right);
    }
  }
  void factor() {
    squares.clear();
    for (Index k = 0; k < count; ++k) {
      const NormalFactor f = reference(k, 0, out + kept);
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i <= j; ++i) r(i, j, k) = static_cast<T>(f.r(i, j));
      for (Index j = 0; j < nrhs; ++j) {
        for (Index i = 0; i < n; ++i) d(i, j, k) = static_cast<T>(f.d(i, j));
        squares.push_back(static_cast<double>(f.squares[static_cast<std::size_t>(j)]));
      }
    }
  }
  NormalFactor reference(Index k, Index first, Index rows) const {
    return {rows_of(a, first, rows, k), rows_of(b, first, rows, k)};
  }
  /// `d` and `squares` against the rows that are there now.
  void expect_updated(Index k) const {
    const NormalFactor f = reference(k, out, kept + in);
    const Wide u = 100 * Wide(n + 10) * unit_roundoff<T>, least = 8 * Wide(std::numeric_limits<T>::denorm_min());
    for (Index j = 0; j < n; ++j) {
      const Wide tolerance = u * column_norm(f.r, j) + least;
      for (Index i = 0; i < n; ++i) {
        if (i > j)
          ASSERT_EQ(r(i, j, k), canary<T>) << "below the diagonal";
        else
          ASSERT_LE(std::fabs(r(i, j, k) - f.r(i, j)), tolerance) << "R " << i << ", " << j << " of " << n;
      }
    }
    for (Index j = 0; j < nrhs; ++j) {
      const Wide square = f.squares[static_cast<std::size_t>(j)];
      const Wide norm = std::sqrt(square + column_norm(f.d, j) * column_norm(f.d, j));
      for (Index i = 0; i < n; ++i)
        ASSERT_LE(std::fabs(d(i, j, k) - f.d(i, j)), u * norm + least) << "d " << i << ", " << j;
      ASSERT_LE(std::fabs(squares[static_cast<std::size_t>(k * nrhs + j)] - square), u * norm * norm)
          << "squares " << j;
    }
  }
};

/// Puts a problem on the device, updates it there, and brings [R d] back.
template <class B, class T, class Test, class Queue>
std::vector<std::int32_t> update_rows(Test& test, Queue& queue, UpdateProblem<T>& p) {
  RowUpdate<B, T> task;
  task.r = test.device(p.r);
  task.d = test.device(p.d);
  if (p.nrhs > 0) task.squares = test.device(p.squares);
  const auto a = test.device(p.a);
  const auto b = test.device(p.b);
  const Index last = p.out + p.kept;
  if (p.in > 0) task.rows_in = a.block(last, 0, p.in, p.n), task.e_in = b.block(last, 0, p.in, p.nrhs);
  if (p.out > 0) task.rows_out = a.block(0, 0, p.out, p.n), task.e_out = b.block(0, 0, p.out, p.nrhs);
  std::vector<std::int32_t> refused(static_cast<std::size_t>(p.count), 5);
  task.refused = test.device(refused);
  update_rows(queue, task);
  p.r = test.host(task.r, p.r);
  p.d = test.host(task.d, p.d);
  if (p.nrhs > 0) test.host(task.squares, p.squares);
  test.host(task.refused, refused);
  return refused;
}

template <class Queue, class B, class T>
concept UpdatesRows = requires(Queue& queue, const RowUpdate<B, T>& task) {
  { update_rows(queue, task) } -> std::same_as<void>;
};

TYPED_TEST(Kernels, UpdatesRowsOfSmallFactors) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (UpdatesRows<typename TestFixture::Queue, B, T>) {
    constexpr int wide = std::numeric_limits<T>::max_exponent - 12;
    constexpr int denormal = std::numeric_limits<T>::min_exponent - 12;
    for (Index n : {1, 2, 5, 32, 33, 64, 100, 128})
      for (const auto& [in, out, nrhs, count] : std::vector<std::tuple<Index, Index, Index, Index>>{{1, 0, 1, 1},
                                                                                                    {0, 1, 1, 1},
                                                                                                    {1, 1, 0, 1},
                                                                                                    {1, 1, 2, 3},
                                                                                                    {2, 0, 3, 1},
                                                                                                    {4, 3, 40, 2},
                                                                                                    {11, 2, 1, 1},
                                                                                                    {0, 0, 1, 1}})
        for (int scales = 0; scales < 3; ++scales) {
          if (n > 64 ? scales > 0 || count == 3 : scales > 0 && nrhs > 3) continue;
          SCOPED_TRACE(testing::Message()
                       << "n " << n << " in " << in << " out " << out << " nrhs " << nrhs << " scales " << scales);
          UpdateProblem<T> p(n, nrhs, count, in, out);
          if (scales == 1)  // all that the type has, side by side
            p.scale([](Index j) { return j % 3 == 0   ? wide
                                         : j % 3 == 1 ? -wide
                                                      : 0; },
                    sizeof(T) == 4 ? wide / 2 : wide / 3);
          if (scales == 2) p.scale([](Index) { return denormal; }, 0);
          p.factor();
          for (std::int32_t refused : update_rows<B>(*this, this->q(), p)) EXPECT_EQ(refused, 5);
          this->expect_canaries(p.d);
          for (Index k = 0; k < count; ++k) p.expect_updated(k);
          if (this->HasFatalFailure()) return;
        }
  }
}

TYPED_TEST(Kernels, RefusesRowsThatCarryTheRank) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (UpdatesRows<typename TestFixture::Queue, B, T>)
    for (Index n : {1, 7, 40, 90}) {
      UpdateProblem<T> p(n, 2, 3, 1, 2);
      for (Index i = 0; i < p.a.rows; ++i)  // of the second matrix, column n / 2 is a row's that goes last
        if (i != 1) p.a(i, n / 2, 1) = 0;
      p.factor();
      const UpdateProblem<T> before = p;
      EXPECT_EQ(update_rows<B>(*this, this->q(), p), (std::vector<std::int32_t>{5, 6, 5}));
      p.expect_updated(0);
      p.expect_updated(2);
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < n; ++i) ASSERT_EQ(p.r(i, j, 1), before.r(i, j, 1));
      for (Index j = 0; j < 2; ++j) {
        for (Index i = 0; i < n; ++i) ASSERT_EQ(p.d(i, j, 1), before.d(i, j, 1));
        ASSERT_EQ(p.squares[static_cast<std::size_t>(2 + j)], before.squares[static_cast<std::size_t>(2 + j)]);
      }
    }
}

TYPED_TEST(Kernels, UpdatesRowsFromNothingAndKeepsZeroColumns) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (UpdatesRows<typename TestFixture::Queue, B, T>) {
    UpdateProblem<T> p(5, 1, 1, 13, 0);  // R = 0, and every row comes in
    p.kept = 0;
    p.r.set([](Index i, Index j, Index) { return i > j ? canary<T> : T(0); });
    p.d.set([](Index, Index, Index) { return T(0); });
    p.squares = {0};
    const NormalFactor expected = p.reference(0, 0, 13);
    update_rows<B>(*this, this->q(), p);
    for (Index j = 0; j < 5; ++j)  // the signs of a zero diagonal are anyone's
      for (Index i = 0; i <= j; ++i)
        ASSERT_LE(std::fabs(std::fabs(p.r(i, j)) - std::fabs(expected.r(i, j))),
                  3000 * unit_roundoff<T> * column_norm(expected.r, j));
    ASSERT_LE(std::fabs(p.squares[0] - expected.squares[0]), 3000 * unit_roundoff<T> * 13);

    UpdateProblem<T> zero(9, 1, 1, 0, 1);  // a column of zeros is no reason to refuse
    zero.factor();
    for (Index i = 0; i < 9; ++i) {
      if (i <= 4) zero.r(i, 4) = 0;
      if (i >= 4) zero.r(4, i) = i == 4 ? T(0) : zero.r(4, i);
    }
    zero.a(0, 4) = 0;
    EXPECT_EQ(update_rows<B>(*this, this->q(), zero)[0], 5);
    for (Index i = 0; i <= 4; ++i) EXPECT_EQ(zero.r(i, 4), T(0));
  }
}

TYPED_TEST(Kernels, ConditionSkipsRowUpdates) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (UpdatesRows<typename TestFixture::Queue, B, T>) {
    UpdateProblem<T> p(12, 1, 1, 1, 1);
    p.factor();
    const UpdateProblem<T> before = p;
    auto when = this->q().when(this->flag(0));
    update_rows<B>(*this, when, p);
    EXPECT_TRUE(same_bits(p.r.data, before.r.data) && same_bits(p.d.data, before.d.data));
    EXPECT_EQ(p.squares, before.squares);
    update_rows<B>(*this, this->q(), p);
    p.expect_updated(0);
  }
}

}  // namespace qrane::backend::test
