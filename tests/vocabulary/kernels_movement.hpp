// SPDX-License-Identifier: Apache-2.0
// Memory, data movement and reductions of the vocabulary. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

struct Shape {
  Index rows, cols, slack = 0, count = 1, stride_slack = 0;
};

inline std::vector<Shape> movement_shapes() {
  return {{0, 0},         {0, 3},          {3, 0},           {1, 1},          {1, 37},
          {31, 1, 2},     {32, 5},         {33, 17, 3},      {63, 64},        {65, 31, 7},
          {257, 3, 1, 2}, {5, 1031, 0, 1}, {8, 8, 0, 67, 5}, {1021, 2, 3, 3}, {16, 16, 1, 4, 9}};
}

TYPED_TEST(Kernels, AllocatesUploadsAndReleases) {
  auto empty = this->q().allocate(0);
  this->q().release(empty);
  this->q().release({});
  auto p = this->template allocate<TypeParam*>(1);
  (void)p;
  const std::vector<std::int64_t> values = {1, -2, std::int64_t(1) << 40};
  const auto device = this->upload(values);
  EXPECT_EQ(this->download(device, 3), values);
  EXPECT_EQ(this->download(device + 2, 1).front(), values[2]);
  this->q().upload(values.data(), device, 0);
}

TYPED_TEST(Kernels, SaysHowMuchMemoryWasNeededAndStaysUsable) {
  const Index bytes = Index(1) << 60;
  try {
    this->q().allocate(bytes);
    FAIL() << "2^60 bytes were granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos) << error.what();
  }
  const std::vector<double> values = {1, 2, 3};
  EXPECT_EQ(this->download(this->upload(values), 3), values);
}

TYPED_TEST(Kernels, CopiesEveryPart) {
  using T = typename TestFixture::T;
  for (const Shape& s : movement_shapes())
    for (Part part : {Part::all, Part::upper, Part::upper_only, Part::unit_lower}) {
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols << " part " << int(part));
      HostMatrix<T> a(s.rows, s.cols, s.slack, s.count, s.stride_slack), b(s.rows, s.cols, 2, s.count, 1);
      a.random(1);
      b.random(2);
      const HostMatrix<T> before = b;
      auto da = this->upload(a), db = this->upload(b);
      copy(this->q(), da, db, part);
      b = this->download(db, b);
      this->expect_canaries(b);
      for (Index k = 0; k < s.count; ++k)
        for (Index j = 0; j < s.cols; ++j)
          for (Index i = 0; i < s.rows; ++i) {
            T expected = a(i, j, k);
            if (part == Part::upper && i > j) expected = 0;
            if (part == Part::upper_only && i > j) expected = before(i, j, k);
            if (part == Part::unit_lower && i <= j) expected = i == j;
            ASSERT_EQ(b(i, j, k), expected) << i << ", " << j << ", " << k;
          }
    }
}

TYPED_TEST(Kernels, TransposesAndFills) {
  using T = typename TestFixture::T;
  for (const Shape& s : movement_shapes()) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
    HostMatrix<T> a(s.rows, s.cols, s.slack, s.count, s.stride_slack), b(s.cols, s.rows, 3, s.count, 2);
    a.random(3);
    auto da = this->upload(a), db = this->upload(b);
    transpose(this->q(), da, db);
    b = this->download(db, b);
    this->expect_canaries(b);
    for (Index k = 0; k < s.count; ++k)
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i) ASSERT_EQ(b(j, i, k), a(i, j, k)) << i << ", " << j << ", " << k;
    fill(this->q(), da, T(2), T(-3));
    a = this->download(da, a);
    this->expect_canaries(a);
    for (Index k = 0; k < s.count; ++k)
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i) ASSERT_EQ(a(i, j, k), i == j ? T(-3) : T(2));
  }
}

TYPED_TEST(Kernels, SetsFlags) {
  for (const Index count : {0, 1, 3, 200}) {
    const std::vector<std::int32_t> before(std::size_t(count) + 2, 5);
    const auto flags = this->upload(before);
    set_flags(this->q().when(this->flag(0)), flags + 1, count, 0);
    EXPECT_EQ(this->download(flags, count + 2), before);
    set_flags(this->q().when(this->flag(2)), flags + 1, count, -1);
    std::vector<std::int32_t> after(std::size_t(count) + 2, -1);
    after.front() = after.back() = 5;
    EXPECT_EQ(this->download(flags, count + 2), after);
  }
}

TYPED_TEST(Kernels, CopiesRowsByLists) {
  using T = typename TestFixture::T;
  for (const Shape& s : movement_shapes())
    for (int lists = 0; lists < 4; ++lists) {  // bit 0: of the source's rows, bit 1: of the target's
      SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols << " lists " << lists);
      HostMatrix<T> a(s.rows, s.cols, s.slack, s.count, s.stride_slack), b(s.rows + 3, s.cols, 1, s.count, 4);
      a.random(9);
      b.random(10);
      const HostMatrix<T> before = b;
      std::vector<std::int64_t> from, to;
      for (Index i = 0; i < s.rows; ++i) {
        from.push_back(i * 7 % s.rows);  // some more than once where 7 divides the rows
        to.push_back(s.rows + 2 - i);
      }
      const Index count = s.rows - s.rows / 3;
      const typename TestFixture::template Pointer<std::int64_t> no_list{};
      auto da = this->upload(a), db = this->upload(b);
      copy_rows(this->q(), da, lists & 1 ? this->upload(from) : no_list, db, lists & 2 ? this->upload(to) : no_list,
                count);
      b = this->download(db, b);
      this->expect_canaries(b);
      HostMatrix<T> expected = before;
      for (Index k = 0; k < s.count; ++k)
        for (Index j = 0; j < s.cols; ++j)
          for (Index i = 0; i < count; ++i)
            expected(lists & 2 ? to[std::size_t(i)] : i, j, k) = a(lists & 1 ? from[std::size_t(i)] : i, j, k);
      EXPECT_TRUE(same_bits(b.data, expected.data));
    }
}

TYPED_TEST(Kernels, NarrowsAndWidens) {
  using T = typename TestFixture::T;
  for (const Shape& s : std::vector<Shape>{{0, 2}, {1, 1}, {33, 17, 3}, {65, 64}}) {
    HostMatrix<double> w(s.rows, s.cols, s.slack), back(s.rows, s.cols, 1);
    w.random(4);
    for (Part part : {Part::all, Part::upper}) {
      HostMatrix<T> a(s.rows, s.cols, 2);
      auto dw = this->upload(w);
      auto da = this->upload(a);
      auto dback = this->upload(back);
      narrow(this->q(), dw, da, part);
      widen(this->q(), da, dback);
      a = this->download(da, a);
      const HostMatrix<double> wide = this->download(dback, back);
      this->expect_canaries(a);
      this->expect_canaries(wide);
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i < s.rows; ++i) {
          ASSERT_EQ(a(i, j), part == Part::upper && i > j ? T(0) : T(w(i, j)));
          ASSERT_EQ(wide(i, j), double(a(i, j)));
        }
    }
  }
}

TYPED_TEST(Kernels, ReducesInWideAndRepeats) {
  using T = typename TestFixture::T;
  for (const Shape& s :
       std::vector<Shape>{{0, 0}, {0, 5}, {1, 1}, {31, 2, 5}, {33, 33}, {3, 2003}, {10007, 3, 1}, {641, 130}}) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols);
    HostMatrix<T> a(s.rows, s.cols, s.slack);
    a.random(6);
    Wide squares = 0, sum = 0, largest = 0;
    for (Index j = 0; j < s.cols; ++j)
      for (Index i = 0; i < s.rows; ++i) {
        squares += Wide(a(i, j)) * a(i, j);
        sum += std::fabs(Wide(a(i, j)));
        largest = std::max(largest, std::fabs(Wide(a(i, j))));
      }
    auto da = this->upload(a);
    auto result = this->upload(std::vector<double>(5, canary<double>));
    auto scratch = this->scratch();
    std::vector<double> first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      sum_squares(this->q(), da, result + 1, scratch);
      sum_abs(this->q(), da, result + 2, scratch);
      max_abs(this->q(), da, result + 3, scratch);
      const std::vector<double> values = this->download(result, 5);
      if (repeat == 0) first = values;
      EXPECT_TRUE(same_bits(values, first));
    }
    const Wide tolerance = this->q().limits(T{}).has_double ? 1e-13L : 1e-5L;
    this->expect_close(first[1], squares, tolerance * squares, "sum of squares");
    this->expect_close(first[2], sum, tolerance * sum, "sum of magnitudes");
    EXPECT_EQ(first[3], double(largest));
    EXPECT_EQ(first[0], canary<double>);
    EXPECT_EQ(first[4], canary<double>);
  }
}

TYPED_TEST(Kernels, FindsTheFirstNumberThatIsNotFinite) {
  using T = typename TestFixture::T;
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  struct Spot {
    Index i, j;
  };
  for (const Shape& s : std::vector<Shape>{{1, 1}, {33, 65, 2}, {4099, 3}, {2, 700}})
    for (const Spot& spot :
         std::vector<Spot>{{-1, -1}, {0, 0}, {s.rows - 1, 0}, {0, s.cols - 1}, {s.rows - 1, s.cols - 1}}) {
      HostMatrix<T> a(s.rows, s.cols, s.slack);
      a.random(7);
      if (spot.i >= 0) {
        a(spot.i, spot.j) = spot.j % 2 ? nan : -infinity;
        a(s.rows - 1, s.cols - 1) = nan;
      }
      auto da = this->upload(a);
      auto position = this->upload(std::vector<std::int64_t>{7, 7, 7});
      auto scratch = this->scratch();
      auto result = this->upload(std::vector<double>(1));
      first_not_finite(this->q(), da, position, scratch);
      EXPECT_EQ(this->download(position, 3), (std::vector<std::int64_t>{spot.i, spot.j, 7}))
          << s.rows << " x " << s.cols;
      max_abs(this->q(), da, result, scratch);
      EXPECT_EQ(std::isnan(this->download(result, 1)[0]), spot.i >= 0);
    }
  HostMatrix<T> empty(0, 4);
  auto position = this->upload(std::vector<std::int64_t>{7, 7});
  first_not_finite(this->q(), this->upload(empty), position, this->scratch());
  EXPECT_EQ(this->download(position, 2), (std::vector<std::int64_t>{-1, -1}));
}

TYPED_TEST(Kernels, ConditionSkipsMovementAndReductions) {
  using T = typename TestFixture::T;
  HostMatrix<T> a(40, 12), b(40, 12), c(12, 40);
  a.random(8);
  HostMatrix<double> w(40, 12);
  for (std::int32_t value : {0, 1, 5}) {
    auto when = this->q().when(this->flag(value));
    auto da = this->upload(a), db = this->upload(b), dc = this->upload(c), df = this->upload(b), dr = this->upload(b);
    auto dw = this->upload(w);
    auto sum = this->upload(std::vector<double>(1, canary<double>));
    auto position = this->upload(std::vector<std::int64_t>{7, 7});
    auto scratch = this->scratch();
    copy(when, da, db, Part::all);
    transpose(when, da, dc);
    copy_rows(when, da, {}, dr, {}, Index(17));
    fill(when, df, T(1), T(2));
    widen(when, da, dw);
    sum_squares(when, da, sum, scratch);
    first_not_finite(when, da, position, scratch);
    const bool skipped = value == 0;
    EXPECT_EQ(same_bits(this->download(db, b).data, b.data), skipped);
    EXPECT_EQ(same_bits(this->download(dc, c).data, c.data), skipped);
    EXPECT_EQ(same_bits(this->download(dr, b).data, b.data), skipped);
    EXPECT_EQ(same_bits(this->download(df, b).data, b.data), skipped);
    EXPECT_EQ(same_bits(this->download(dw, w).data, w.data), skipped);
    EXPECT_EQ(this->download(sum, 1)[0] == canary<double>, skipped);
    EXPECT_EQ(this->download(position, 2)[0] == 7, skipped);
  }
}

}  // namespace qrane::backend::test
