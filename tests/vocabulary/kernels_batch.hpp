// SPDX-License-Identifier: Apache-2.0
// The kernels of batches: whole panels and whole small matrices, every hostile kind, and against the steps they stand
// for. Included by kernels_test.hpp.
#pragma once

#include "kernels_reflect.hpp"

namespace qrane::backend::test {

template <class B, class T>
concept FactorsWholePanels = requires(typename B::Queue& q, WholePanel<B, T> task) {
  { factor_whole_panel(q, task) } -> std::same_as<void>;
};
template <class B, class T>
concept FactorsSmall = requires(typename B::Queue& q, FactorSmall<B, T> task) {
  { factor_small(q, task) } -> std::same_as<void>;
};

TYPED_TEST(Kernels, FactorsWholePanelsOfABatch) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (FactorsWholePanels<B, T>) {
    const Limits limits = this->q().limits(T{});
    for (const auto& [m, widest] : {std::pair<Index, Index>{64, 32},
                                    {1, 1},
                                    {7, 7},
                                    {65, 31},
                                    {129, 16},
                                    {300, 32},
                                    {512, 32},
                                    {1000, 32},
                                    {2048, 5}}) {
      const Index n = std::min(widest, limits.whole_panel_elements / Index(std::bit_ceil(std::uint64_t(m))));
      for (const int kind : in_turn(numbers(int(PanelKind::kinds)))) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " kind " << kind);
        const auto a = panel_input<T>(PanelKind(kind), m, n, 2);
        HostMatrix<T> panel = a, t(n, n, 1, 2), v(m, n, 0, 2);
        const auto da = this->upload(a), dt = this->upload(t), dv = this->upload(v);
        factor_whole_panel(this->q().when(this->flag(0)), WholePanel<B, T>{da, dt, dv});
        EXPECT_TRUE(same_bits(this->download(da, panel).data, a.data));
        factor_whole_panel(this->q(), WholePanel<B, T>{da, dt, dv});
        panel = this->download(da, panel), t = this->download(dt, t), v = this->download(dv, v);
        this->expect_canaries(panel);
        this->expect_canaries(t);
        this->expect_canaries(v);
        for (Index k = 0; k < 2; ++k) expect_panel(a, panel, t, v, k);
      }
    }
  } else {
    GTEST_SKIP() << "not on this backend";
  }
}

/// One warp's arithmetic against the tile kernel's on whole matrices: the same signs, values to rounding.
TYPED_TEST(Kernels, FactorsSmallMatricesAsTheirSteps) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (FactorsSmall<B, T>) {
    for (const auto& [m, n] : {std::pair<Index, Index>{1, 1},
                               {5, 3},
                               {8, 8},
                               {30, 8},
                               {128, 7},
                               {16, 16},
                               {33, 12},
                               {64, 16},
                               {127, 16},
                               {32, 32},
                               {61, 25}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n);
      const Index count = 9;
      const auto a = HostMatrix<T>(m, n, 1, count, 3).random(5);
      HostMatrix<T> small = a, steps = a, tau(n, 1, 0, count), t(n, n, 0, count);
      const auto da = this->upload(a), ds = this->upload(a), dt = this->upload(t), dtau = this->upload(tau);
      factor_small(this->q(), FactorSmall<B, T>{da, da, dtau});
      std::vector<BlockTask> tasks;
      for (Index b = 0; b < count; ++b) tasks.push_back({0, b * n * n, int(b), int(m), 0, 0, int(n)});
      Panel<B, T> panel;
      panel.a = ds, panel.t = dt.data, panel.tasks = this->upload(tasks), panel.task_count = count;
      panel.max_rows = int(m), panel.max_cols = panel.inner = int(n);
      factor(this->q(), panel);
      small = this->download(da, small), steps = this->download(ds, steps);
      tau = this->download(dtau, tau), t = this->download(dt, t);
      this->expect_canaries(small);
      this->expect_canaries(tau);
      const Wide tolerance = 1000 * Wide(n + 10) * unit_roundoff<T>;  // times the condition of random columns
      for (Index b = 0; b < count; ++b)
        for (Index j = 0; j < std::min(n, m - 1); ++j) {
          this->expect_close(tau(j, 0, b), t(j, j, b), tolerance, "tau");
          for (Index i = 0; i < m; ++i) this->expect_close(small(i, j, b), steps(i, j, b), tolerance * 10, "V or R");
        }
    }
  } else {
    GTEST_SKIP() << "not on this backend";
  }
}

}  // namespace qrane::backend::test
