// SPDX-License-Identifier: Apache-2.0
// Panels of blocked QR as one operation, where a backend has it: reflect_panel and householder_panel. Judged as
// geqrf's result is: Q = I - V T Vᵀ orthogonal, A = Q R column by column. Included by kernels_test.hpp.
#pragma once

#include "kernels_guard.hpp"

namespace qrane::backend::test {

template <class B, class T>
concept ReflectsPanels = requires(typename B::Queue& q, ReflectPanel<B, T> p, Scratch<B> s) {
  { reflect_panel(q, p, s) } -> std::same_as<void>;
};
template <class B, class T>
concept FactorsPanels = requires(typename B::Queue& q, HouseholderPanel<B, T> p) {
  { householder_panel(q, p) } -> std::same_as<void>;
};

/// A panel's three results, on the host; matrix k of a batch.
template <class T>
void expect_panel(const HostMatrix<T>& a, const HostMatrix<T>& panel, const HostMatrix<T>& t, const HostMatrix<T>& v,
                  Index k) {
  const Index m = a.rows, n = a.cols;
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) ASSERT_EQ(v(i, j, k), i > j ? panel(i, j, k) : T(i == j)) << i << ", " << j;
    for (Index i = j + 1; i < n; ++i) ASSERT_EQ(t(i, j, k), T(0)) << i << ", " << j;
    const Wide tau = t(j, j, k);
    EXPECT_TRUE(tau == 0 || (tau >= 1 - 1e-5L && tau <= 2 + 1e-5L)) << "tau(" << j << ") = " << double(tau);
  }
  const Reference wide_v = to_reference(v, k);
  const Reference vt = multiply(wide_v, false, to_reference(t, k), false);
  Reference q(m, n);  // the first n columns of I - V T Vᵀ
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) {
      q(i, j) = i == j;
      for (Index l = 0; l < n; ++l) q(i, j) -= vt(i, l) * wide_v(j, l);
    }
  const Wide limit = 30 * Wide(n + 10) * unit_roundoff<T>;
  EXPECT_LE(orthogonality(q), limit);
  const Reference given = to_reference(a, k);
  Reference rest = given;
  for (Index j = 0; j < n; ++j) {
    for (Index l = 0; l <= j; ++l)
      for (Index i = 0; i < m; ++i) rest(i, j) -= q(i, l) * panel(l, j, k);
    const Wide underflow = Wide(m) * Wide(n) * std::numeric_limits<T>::denorm_min();
    EXPECT_LE(column_norm(rest, j), limit * column_norm(given, j) + underflow) << "column " << j;
  }
}

/// y = V T.
template <class T>
void expect_product(const HostMatrix<T>& y, const HostMatrix<T>& v, const HostMatrix<T>& t, Index k) {
  const Reference vt = multiply(to_reference(v, k), false, to_reference(t, k), false);
  for (Index j = 0; j < v.cols; ++j)
    for (Index i = 0; i < v.rows; ++i)
      ASSERT_LE(std::fabs(y(i, j, k) - vt(i, j)), 30 * (v.cols + 10) * unit_roundoff<T>) << i << ", " << j;
}

enum class PanelKind { random, graded, zero_columns, dependent, tiny, huge, zero, kinds };

template <class T>
HostMatrix<T> panel_input(PanelKind kind, Index m, Index n, Index count) {
  HostMatrix<T> a(m, n, 3, count, 2);
  a.random(50 + unsigned(kind));
  const int most = sizeof(T) == 4 ? 30 : 240;
  for (Index k = 0; k < count; ++k)
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < m; ++i) {
        T& x = a(i, j, k);
        if (kind == PanelKind::graded) x = std::ldexp(x, int(j % 5 - 2) * most);
        if (kind == PanelKind::zero_columns && j % 3 == 1) x = 0;
        if (kind == PanelKind::dependent && j > 0) x = a(i, 0, k) * T(j + 1);
        if (kind == PanelKind::tiny) x = x * std::numeric_limits<T>::min() / 8;
        if (kind == PanelKind::huge) x = x * (std::numeric_limits<T>::max() / 512);
        if (kind == PanelKind::zero) x = 0;
      }
  return a;
}

TYPED_TEST(Kernels, FactorsPanelsColumnByColumn) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (FactorsPanels<B, T>) {
    if (this->q().limits(T{}).max_householder_rows == 0) GTEST_SKIP() << "not on this device";
    for (const auto& [m, n] :
         some_of<std::pair<Index, Index>>({{7, 7}, {64, 64}, {1, 1}, {65, 33}, {300, 64}, {1100, 5}}, 3))
      for (const int kind : in_turn(numbers(int(PanelKind::kinds)))) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " kind " << kind);
        const auto a = panel_input<T>(PanelKind(kind), m, n, 2);
        HostMatrix<T> panel = a, t(n, n, 1, 2), v(m, n, 0, 2), y(m, n, 1, 2);
        const auto da = this->upload(a), dt = this->upload(t), dv = this->upload(v), dy = this->upload(y);
        householder_panel(this->q().when(this->flag(0)), HouseholderPanel<B, T>{da, dt, dv, dy});
        EXPECT_TRUE(same_bits(this->download(da, panel).data, a.data));
        householder_panel(this->q().when(this->flag(1)), HouseholderPanel<B, T>{da, dt, dv, dy});
        panel = this->download(da, panel), t = this->download(dt, t), v = this->download(dv, v);
        y = this->download(dy, y);
        this->expect_canaries(panel);
        this->expect_canaries(t);
        this->expect_canaries(v);
        this->expect_canaries(y);
        for (Index k = 0; k < 2; ++k) {
          expect_panel(a, panel, t, v, k);
          expect_product(y, v, t, k);
        }
      }
  } else {
    GTEST_SKIP() << "not on this backend";
  }
}

TYPED_TEST(Kernels, ReflectsPanelsThroughTheGramMatrix) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (ReflectsPanels<B, T>) {
    for (const auto& [m, n] :
         some_of<std::pair<Index, Index>>({{14, 7}, {128, 64}, {1, 1}, {166, 33}, {300, 48}, {1100, 5}}, 3))
      for (const int kind : in_turn(numbers(int(PanelKind::kinds)), 2))
        for (const double limit : {sizeof(T) == 4 ? 1e7 : 100.0, -1.0}) {
          SCOPED_TRACE(testing::Message() << m << " x " << n << " kind " << kind << " limit " << limit);
          const auto a = panel_input<T>(PanelKind(kind), m, n, 1);
          HostMatrix<T> panel = a, t(n, n, 1), v(m, n), y(m, n, 1);
          const auto da = this->upload(a), dt = this->upload(t), dv = this->upload(v), dy = this->upload(y);
          const auto failed = this->flag(7);
          const ReflectPanel<B, T> task{da, dt, dv, dy, failed, limit};
          const auto scratch = this->scratch(reflect_scratch_bytes(m));
          reflect_panel(this->q().when(this->flag(0)), task, scratch);
          EXPECT_EQ(this->download(failed, 1)[0], 7);
          reflect_panel(this->q(), task, scratch);
          const bool refused = this->download(failed, 1)[0] != 0;
          panel = this->download(da, panel), t = this->download(dt, t), v = this->download(dv, v);
          y = this->download(dy, y);
          this->expect_canaries(panel);
          this->expect_canaries(t);
          this->expect_canaries(v);
          this->expect_canaries(y);
          const bool singular = kind == int(PanelKind::zero) ||
                                (n > 1 && (kind == int(PanelKind::zero_columns) || kind == int(PanelKind::dependent)));
          if (limit < 0 || singular) {
            EXPECT_TRUE(refused);
          } else if (kind == int(PanelKind::random)) {
            EXPECT_FALSE(refused);
          }
          if (refused) {
            EXPECT_TRUE(same_bits(panel.data, a.data));
          } else {
            expect_panel(a, panel, t, v, 0);
            expect_product(y, v, t, 0);
          }
        }
  } else {
    GTEST_SKIP() << "not on this backend";
  }
}

/// A panel with a known condition: the guard lets pass what is near orthonormal and refuses before Q could suffer.
TYPED_TEST(Kernels, GuardsPanelsByTheirCondition) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (ReflectsPanels<B, T>) {
    const Index m = 200, n = 16;
    for (int bits = 0; bits <= 30; bits += 3) {
      HostMatrix<T> a(m, n);
      const Reference q = random_orthonormal(m, n, 60);
      a.set([&](Index i, Index j, Index) {  // the last column leans on the first
        return j + 1 < n ? q(i, j) : q(i, 0) + std::ldexp(Wide(1), -bits) * q(i, j);
      });
      HostMatrix<T> panel = a, t(n, n), v(m, n), y(m, n);
      const auto da = this->upload(a), dt = this->upload(t), dv = this->upload(v), dy = this->upload(y);
      const auto failed = this->flag(7);
      const double limit = 0x1p12;
      reflect_panel(this->q(), ReflectPanel<B, T>{da, dt, dv, dy, failed, limit},
                    this->scratch(reflect_scratch_bytes(m)));
      const bool refused = this->download(failed, 1)[0] != 0;
      EXPECT_EQ(refused, bits >= 6) << bits;  // ‖Ĝ^-1‖ is about 2^(2 bits + 1)
      if (refused) continue;
      panel = this->download(da, panel), t = this->download(dt, t), v = this->download(dv, v);
      y = this->download(dy, y);
      expect_panel(a, panel, t, v, 0);
      expect_product(y, v, t, 0);
    }
  } else {
    GTEST_SKIP() << "not on this backend";
  }
}

TYPED_TEST(Kernels, FollowAnotherQueue) {
  using T = typename TestFixture::T;
  HostMatrix<T> a(300, 200), b(300, 200), c(300, 200);
  a.random(70);
  const auto da = this->upload(a), db = this->upload(b), dc = this->upload(c);
  auto side = this->q().side();
  for (int turn = 0; turn < 20; ++turn) {
    copy(this->q(), turn == 0 ? da : dc, db, Part::all);
    side.follow(this->q());
    copy(side, db, dc, Part::all);
    this->q().follow(side);
  }
  EXPECT_TRUE(same_bits(this->download(dc, a).data, a.data));
}

}  // namespace qrane::backend::test
