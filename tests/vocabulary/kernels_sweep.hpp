// SPDX-License-Identifier: Apache-2.0
// Chains of orthogonal blocks over the columns of X, where a backend has them. Included by kernels_test.hpp.
#pragma once

#include "vocabulary/updates.hpp"

namespace qrane::backend::test {

struct SweepShape {
  Index rows, cols, block, p, count;
};

/// The blocks of a chain one behind the other, each (w + p)² and a product of reflections.
template <class T>
std::vector<T> random_chain(const SweepShape& s, Index stride) {
  std::mt19937_64 engine(91);
  std::normal_distribution<double> normal;
  std::vector<T> h(static_cast<std::size_t>(stride * s.count), canary<T>);
  for (Index k = 0; k < s.count; ++k)
    for (Index j = 0; j * s.block < s.cols; ++j) {
      const Index order = std::min(s.block, s.cols - j * s.block) + s.p;
      Reference q(order, order);
      for (Index i = 0; i < order; ++i) q(i, i) = 1;
      for (int reflections = 0; reflections < 3; ++reflections) {
        Reference v(order, 1);
        for (Index i = 0; i < order; ++i) v(i, 0) = normal(engine);
        const Wide norm = column_norm(v, 0);
        const Reference dots = multiply(q, true, v, false);
        for (Index c = 0; c < order; ++c)
          for (Index i = 0; i < order; ++i) q(i, c) -= 2 * v(i, 0) * dots(c, 0) / (norm * norm);
      }
      for (std::size_t e = 0; e < q.data.size(); ++e)
        h[static_cast<std::size_t>(k * stride + j * (s.block + s.p) * (s.block + s.p)) + e] = static_cast<T>(q.data[e]);
    }
  return h;
}

/// What `Sweep` says, element by element.
template <class T>
void sweep_by_loops(Reference& x, Reference& carry, const T* h, const SweepShape& s, Index first, Index shift,
                    bool down) {
  const Index blocks = (s.cols + s.block - 1) / s.block;
  for (Index step = 0; step < blocks; ++step) {
    const Index j = down ? step : blocks - 1 - step, w = std::min(s.block, s.cols - j * s.block), order = w + s.p;
    const T* block = h + j * (s.block + s.p) * (s.block + s.p);
    for (Index i = 0; i < x.rows; ++i) {
      std::vector<Wide> from, to(static_cast<std::size_t>(order), 0);
      const auto take_x = [&] {
        for (Index c = 0; c < w; ++c) from.push_back(x(i, first + j * s.block + c));
      };
      const auto take_carry = [&] {
        for (Index c = 0; c < s.p; ++c) from.push_back(carry(i, c));
      };
      if (down)
        take_carry(), take_x();
      else
        take_x(), take_carry();
      for (Index c = 0; c < order; ++c)
        for (Index r = 0; r < order; ++r)
          to[static_cast<std::size_t>(c)] += from[static_cast<std::size_t>(r)] * Wide(block[r + c * order]);
      for (Index c = 0; c < w; ++c)
        x(i, first + j * s.block + shift + c) = to[static_cast<std::size_t>(down ? c : s.p + c)];
      for (Index c = 0; c < s.p; ++c) carry(i, c) = to[static_cast<std::size_t>(down ? w + c : c)];
    }
  }
}

template <class Queue, class B, class T>
concept SweepsInDouble = requires(Queue& queue, const WideSweep<B, T>& task) {
  { wide_sweep(queue, task) } -> std::same_as<void>;
};
template <class Queue, class B, class T>
concept Sweeps = SweepsInDouble<Queue, B, T> || requires(Queue& queue, const Sweep<B, T>& task) {
  { sweep(queue, task) } -> std::same_as<void>;
};

/// The task with its blocks h, in whatever scalar the backend takes them.
template <class B, class T, class Test, class Queue>
void sweep(Test& test, Queue queue, Sweep<B, T> task, const std::vector<T>& h) {
  if constexpr (SweepsInDouble<Queue, B, T>) {
    const std::vector<double> wide(h.begin(), h.end());
    wide_sweep(queue, WideSweep<B, T>{task, test.device(wide)});
  } else {
    task.h = test.device(h);
    sweep(queue, task);
  }
}

/// One chain with its carry beside X or (inside) in columns of X, and (shifted) X moving over by p.
template <class B, class T, class Test, class Queue>
void check_sweep(Test& test, Queue& queue, const SweepShape& s, bool down, bool inside, bool shifted, Index slack) {
  const Index first = s.p + 3, shift = shifted ? (down ? -s.p : s.p) : 0;
  const Index blocks = (s.cols + s.block - 1) / s.block;
  const Index stride = blocks * (s.block + s.p) * (s.block + s.p) + slack;
  HostMatrix<T> x(s.rows, s.cols + 2 * s.p + 4 + first, slack, s.count, slack),
      carry(s.rows, s.p, slack, s.count, 2 * slack);
  x.random(92);
  carry.random(93);
  const std::vector<T> h = random_chain<T>(s, stride);
  const Index in = down ? first - s.p : first + s.cols, out = down ? first + s.cols - s.p : first;  // when inside
  Sweep<B, T> task;
  task.x = test.device(x);
  const auto beside = test.device(carry);
  task.carry_in = inside ? task.x.columns(in, s.p) : beside;
  task.carry_out = inside ? task.x.columns(out, s.p) : beside;
  task.h_stride = stride;
  task.first = first, task.cols = s.cols, task.block = s.block, task.p = s.p, task.shift = shift, task.down = down;
  sweep(test, queue, task, h);
  const HostMatrix<T> x_out = test.host(task.x, x), carry_out = test.host(beside, carry);
  HostMatrix<T> x_around = x_out, carry_around = carry_out;
  for (Index k = 0; k < s.count; ++k) {
    Reference x_expected = to_reference(x, k), carry_expected(s.rows, s.p);
    for (Index c = 0; c < s.p; ++c)
      for (Index i = 0; i < s.rows; ++i) carry_expected(i, c) = inside ? x(i, in + c, k) : carry(i, c, k);
    std::vector<Wide> norms(static_cast<std::size_t>(s.rows), 0);
    for (Index i = 0; i < s.rows; ++i) {
      for (Index c = 0; c < x.cols; ++c) norms[static_cast<std::size_t>(i)] += x_expected(i, c) * x_expected(i, c);
      for (Index c = 0; c < s.p; ++c) norms[static_cast<std::size_t>(i)] += carry_expected(i, c) * carry_expected(i, c);
    }
    sweep_by_loops(x_expected, carry_expected, h.data() + k * stride, s, first, shift, down);
    if (inside)
      for (Index c = 0; c < s.p; ++c)
        for (Index i = 0; i < s.rows; ++i) x_expected(i, out + c) = carry_expected(i, c);
    const Wide u = 4 * Wide(s.block + s.p + 10) * unit_roundoff<T>;
    const auto close = [&](T value, Wide expected, Index i) {
      return std::fabs(value - expected) <= u * std::sqrt(norms[static_cast<std::size_t>(i)]);
    };
    for (Index i = 0; i < s.rows; ++i) {
      for (Index c = 0; c < x.cols; ++c) {
        ASSERT_TRUE(close(x_out(i, c, k), x_expected(i, c), i))
            << "X " << i << ", " << c << " of matrix " << k << ": " << x_out(i, c, k) << ", not "
            << double(x_expected(i, c));
        x_around(i, c, k) = x(i, c, k);
      }
      for (Index c = 0; c < s.p; ++c) {
        ASSERT_TRUE(inside || close(carry_out(i, c, k), carry_expected(i, c), i)) << "carry " << i << ", " << c;
        carry_around(i, c, k) = carry(i, c, k);
      }
    }
  }
  EXPECT_TRUE(same_bits(x_around.data, x.data) && same_bits(carry_around.data, carry.data)) << "memory around changed";
}

TYPED_TEST(Kernels, SweepsChainsOverColumns) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (Sweeps<typename TestFixture::Queue, B, T>) {
    for (const SweepShape& s : std::vector<SweepShape>{{1, 1, 1, 1, 1},
                                                       {17, 64, 32, 1, 1},
                                                       {16, 70, 32, 2, 3},
                                                       {100, 33, 8, 3, 1},
                                                       {203, 95, 32, 8, 2},
                                                       {64, 96, 16, 16, 1},
                                                       {515, 96, 32, 16, 2},
                                                       {90, 130, 32, 32, 1},
                                                       {33, 61, 31, 31, 1},
                                                       {70, 100, 32, 64, 1},
                                                       {250, 40, 7, 47, 1},
                                                       {16, 0, 32, 4, 1},
                                                       {0, 64, 32, 4, 1},
                                                       {small_run() ? 300 : 2100, 64, 32, 32, 1},
                                                       {5, 3, 32, 20, 70}})
      for (const int way : in_turn(numbers(8))) {
        if (s.p > this->q().limits(T{}).max_sweep_carry || s.block > this->q().limits(T{}).max_sweep_block) continue;
        const bool down = way & 1, inside = (way & 2) && s.cols >= s.p, shifted = way & 4;
        SCOPED_TRACE(testing::Message() << s.rows << " x " << s.cols << " block " << s.block << " p " << s.p
                                        << " count " << s.count << " way " << way);
        check_sweep<B, T>(*this, this->q(), s, down, inside, shifted, way % 3);
        if (this->HasFatalFailure()) return;
      }
  }
}

TYPED_TEST(Kernels, SweepsWithNarrowCarriesAndUnderConditions) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  if constexpr (Sweeps<typename TestFixture::Queue, B, T>) {
    const SweepShape s{50, 40, 32, 5, 1};
    const Index stride = 2 * (s.block + s.p) * (s.block + s.p);
    HostMatrix<T> x(s.rows, s.cols);
    x.random(94);
    const std::vector<T> h = random_chain<T>(s, stride);
    Sweep<B, T> task;
    task.x = this->upload(x);
    task.cols = s.cols, task.block = s.block, task.p = s.p;
    HostMatrix<T> narrow(s.rows, 3);
    narrow.random(95);
    task.carry_in = this->upload(narrow).columns(0, 0);
    task.carry_out = this->upload(narrow).columns(0, 2);
    sweep(*this, this->q().when(this->flag(0)), task, h);
    EXPECT_TRUE(same_bits(this->download(task.x, x).data, x.data));
    sweep(*this, this->q().when(this->flag(1)), task, h);
    Reference expected = to_reference(x), carry(s.rows, s.p);
    sweep_by_loops(expected, carry, h.data(), s, 0, 0, true);
    const HostMatrix<T> result = this->download(task.x, x);
    for (Index c = 0; c < s.cols; ++c)
      for (Index i = 0; i < s.rows; ++i)
        ASSERT_LE(std::fabs(result(i, c) - expected(i, c)), 2000 * unit_roundoff<T>) << i << ", " << c;
    const HostMatrix<T> carried = this->download(task.carry_out, narrow);
    for (Index i = 0; i < s.rows; ++i)
      for (Index c = 0; c < 3; ++c)
        ASSERT_LE(std::fabs(carried(i, c) - (c < 2 ? carry(i, c) : narrow(i, c))), 2000 * unit_roundoff<T>)
            << i << ", " << c;
  }
}

}  // namespace qrane::backend::test
