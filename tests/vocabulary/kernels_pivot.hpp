// SPDX-License-Identifier: Apache-2.0
// The pivoted factorization of the vocabulary, where a backend has one. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

/// H_0 H_1 ... R of a packed factorization, with tau from its inverses.
template <class T>
Reference unpack(const HostMatrix<T>& packed, const std::vector<T>& inverse_tau, Index steps) {
  Reference product = to_reference(packed);
  for (Index j = 0; j < std::min(steps, packed.cols); ++j)
    for (Index i = j + 1; i < packed.rows; ++i) product(i, j) = 0;
  for (Index h = steps - 1; h >= 0; --h) {
    const Wide tau = inverse_tau[static_cast<std::size_t>(h)] > T(1e17)
                         ? Wide(0)
                         : 1 / Wide(inverse_tau[static_cast<std::size_t>(h)]);
    for (Index j = 0; j < packed.cols; ++j) {
      Wide dot = product(h, j);
      for (Index i = h + 1; i < packed.rows; ++i) dot += Wide(packed(i, h)) * product(i, j);
      product(h, j) -= tau * dot;
      for (Index i = h + 1; i < packed.rows; ++i) product(i, j) -= tau * dot * packed(i, h);
    }
  }
  return product;
}

TYPED_TEST(Kernels, FactorsWithPivots) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  using Queue = typename TestFixture::Queue;
  if constexpr (requires(Queue & queue, const PivotedFactor<B, T>& task, Scratch<B> scratch) {
                  { pivoted_factor(queue, task, scratch) } -> std::same_as<void>;
                }) {
    using Sizes = std::vector<std::tuple<Index, Index, Index>>;
    const Sizes few = {{33, 33, 33}, {12, 70, 12}, {200, 9, 9}},
                all = {{1, 1, 1},     {1, 9, 1},     {9, 1, 1},    {33, 33, 33},   {40, 300, 40},
                       {300, 40, 40}, {72, 500, 20}, {3000, 5, 5}, {260, 250, 250}};
    for (const auto& [rows, cols, steps] : small_run() ? few : all) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols << ", " << steps << " steps");
      HostMatrix<T> a(rows, cols, 3), packed(rows, cols, 2);
      a.random(70);
      for (Index j = 0; j < cols; ++j)  // sizes in no order, and a column of zeros
        for (Index i = 0; i < rows; ++i)
          a(i, j) = j % 11 == 7 ? T(0) : std::ldexp(a(i, j), static_cast<int>(j * 7 % 13));
      PivotedFactor<B, T> task;
      task.steps = steps;
      task.columns = this->upload(std::vector<std::int32_t>(static_cast<std::size_t>(cols), -1));
      task.inverse_tau = this->upload(std::vector<T>(static_cast<std::size_t>(steps), T(0)));
      task.rank = this->upload(std::vector<std::int32_t>{-1});
      task.packed = this->upload(packed);
      task.a = this->upload(a);
      const auto scratch =
          this->scratch(std::max<Index>(pivoted_factor_scratch_bytes(this->q(), rows, cols, T{}), 256));
      pivoted_factor(this->q().when(this->flag(0)), task, scratch);
      EXPECT_EQ(this->download(task.rank, 1)[0], -1);
      HostMatrix<T> first = packed;
      for (int repeat = 0; repeat < 2; ++repeat) {
        task.a = this->upload(a);
        pivoted_factor(this->q(), task, scratch);
        packed = this->download(task.packed, packed);
        this->expect_canaries(packed);
        if (repeat == 0) first = packed;
      }
      EXPECT_TRUE(same_bits(packed.data, first.data));
      const std::vector<std::int32_t> columns = this->download(task.columns, cols);
      std::vector<std::int32_t> sorted = columns;
      std::sort(sorted.begin(), sorted.end());
      for (Index j = 0; j < cols; ++j) ASSERT_EQ(sorted[static_cast<std::size_t>(j)], j);
      for (Index j = 1; j < steps; ++j)
        EXPECT_LE(std::fabs(packed(j, j)), std::fabs(packed(j - 1, j - 1)) * (1 + 100 * unit_roundoff<T>)) << j;
      const Reference product = unpack(packed, this->download(task.inverse_tau, steps), steps);
      for (Index j = 0; j < cols; ++j) {
        Reference difference(rows, 1), column(rows, 1);
        for (Index i = 0; i < rows; ++i) {
          column(i, 0) = a(i, columns[static_cast<std::size_t>(j)]);
          difference(i, 0) = product(i, j) - column(i, 0);
        }
        EXPECT_LE(column_norm(difference, 0), 30 * Wide(steps + 10) * unit_roundoff<T> * column_norm(column, 0)) << j;
      }
      task.a = this->upload(a);
      task.tolerance = 0.5;
      task.truncate = true;
      pivoted_factor(this->q(), task, scratch);
      const Index rank = this->download(task.rank, 1)[0];
      ASSERT_LE(rank, steps);
      const HostMatrix<T> cut = this->download(task.packed, packed);
      for (Index j = 0; j < rank; ++j) EXPECT_EQ(cut(j, j), packed(j, j));
      if (rank < steps) {
        EXPECT_LE(std::fabs(packed(rank, rank)), 0.5 * std::fabs(packed(0, 0)) * (1 + 1e-5));
      }
    }
  } else {
    GTEST_SKIP() << "this backend leaves pivoting to the host";
  }
}

}  // namespace qrane::backend::test
