// SPDX-License-Identifier: Apache-2.0
// The QR tile kernels of the vocabulary: factor, factor_tree, apply_qt_h, apply_qt_tree, judged by what they
// return alone: Q is formed in long double from the stored reflectors and T. Included by kernels_test.hpp.
#pragma once

namespace qrane::backend::test {

/// Blocks of one launch, with a's content before and after it.
template <class T>
struct PanelCase {
  HostMatrix<T> a, factored;
  std::vector<T> t;
  std::vector<BlockTask> tasks;
  Index inner = 0, t_step = 0;
  bool tree = false;
  std::int32_t max_rows = 0, max_cols = 0;

  explicit PanelCase(HostMatrix<T> matrix) : a(matrix), factored(matrix) {}
  void add(BlockTask task) {
    const std::int32_t rows = tree ? task.rows * task.cols : task.rows;
    max_rows = std::max(max_rows, rows);
    max_cols = std::max(max_cols, task.cols);
    tasks.push_back(task);
  }
  /// T's place in the buffer, once all tasks are known.
  void place_t(Index slack) {
    inner = max_cols + slack;
    t_step = inner * inner;
    for (std::size_t k = 0; k < tasks.size(); ++k) tasks[k].t = static_cast<Index>(k) * t_step;
    t.assign(tasks.size() * static_cast<std::size_t>(t_step), canary<T>);
  }
};

template <class T>
Index block_height(const PanelCase<T>& p, const BlockTask& task) {
  return p.tree ? Index(task.rows) * task.cols : task.rows;
}

/// Row of the matrix where local row i of a block lies.
template <class T>
Index matrix_row(const PanelCase<T>& p, const BlockTask& task, Index i) {
  return p.tree ? task.row + i / task.cols * task.stride + i % task.cols : task.row + i;
}

/// Whether the kernels own element (i, j) of the block: a tree leaves what lies below its triangles alone.
template <class T>
bool owned(const PanelCase<T>& p, const BlockTask& task, Index i, Index j) {
  return !p.tree || i % task.cols <= j;
}

/// V of block `task`, from the factored panel.
template <class T>
Reference reflectors(const PanelCase<T>& p, std::size_t index) {
  const BlockTask& task = p.tasks[index];
  Reference v(block_height(p, task), task.cols);
  for (Index j = 0; j < std::min(v.rows, v.cols); ++j) {
    v(j, j) = 1;
    for (Index i = j + 1; i < v.rows; ++i)
      if (!p.tree || (i >= task.cols && i % task.cols <= j))
        v(i, j) = p.factored(matrix_row(p, task, i), task.col + j, task.matrix);
  }
  return v;
}

/// C := op(Q) C for one block, Q = prod_g (I - V_g T_g V_g^T) as the panel stores it.
template <class T>
void apply_reference(const PanelCase<T>& p, std::size_t index, const Reference& v, bool transpose, Reference& c) {
  const Index cols = v.cols, groups = p.inner > 0 ? (cols + p.inner - 1) / p.inner : 0;
  for (Index step = 0; step < groups; ++step) {
    const Index g = transpose ? step : groups - 1 - step, k0 = g * p.inner, k1 = std::min(cols, k0 + p.inner);
    Reference w(k1 - k0, c.cols), tw(k1 - k0, c.cols);
    for (Index j = 0; j < c.cols; ++j)
      for (Index k = k0; k < k1; ++k)
        for (Index i = 0; i < c.rows; ++i) w(k - k0, j) += v(i, k) * c(i, j);
    const Index t0 = p.tasks[index].t + g * p.inner * p.inner;
    for (Index j = 0; j < c.cols; ++j)
      for (Index k = 0; k < k1 - k0; ++k)
        for (Index l = transpose ? 0 : k; l < (transpose ? k + 1 : k1 - k0); ++l)
          tw(k, j) +=
              Wide(p.t[static_cast<std::size_t>(t0 + (transpose ? l + k * p.inner : k + l * p.inner))]) * w(l, j);
    for (Index j = 0; j < c.cols; ++j)
      for (Index i = 0; i < c.rows; ++i)
        for (Index k = k0; k < k1; ++k) c(i, j) -= v(i, k) * tw(k - k0, j);
  }
}

/// R of a block: its upper triangle; zeros elsewhere.
template <class T>
Reference upper_factor(const PanelCase<T>& p, std::size_t index) {
  const BlockTask& task = p.tasks[index];
  Reference r(block_height(p, task), task.cols);
  for (Index j = 0; j < r.cols; ++j)
    for (Index i = 0; i < std::min(j + 1, r.rows); ++i)
      r(i, j) = p.factored(matrix_row(p, task, i), task.col + j, task.matrix);
  return r;
}

/// Residual per column and orthogonality of every block.
template <class T>
void expect_factored(const PanelCase<T>& p) {
  for (std::size_t index = 0; index < p.tasks.size(); ++index) {
    const BlockTask& task = p.tasks[index];
    const Index m = block_height(p, task), n = task.cols;
    const Wide bound = 30 * (std::min(m, n) + 10) * unit_roundoff<T>;
    const Reference v = reflectors(p, index);
    Reference q(m, std::min(m, n)), product = upper_factor(p, index);
    for (Index j = 0; j < q.cols; ++j) q(j, j) = 1;
    apply_reference(p, index, v, false, q);
    apply_reference(p, index, v, false, product);
    const Wide defect = orthogonality(q);
    EXPECT_TRUE(defect <= bound) << "block " << index << " (" << m << " x " << n
                                 << "): |I - Q^T Q| = " << double(defect);
    for (Index j = 0; j < n; ++j) {
      Reference error(m, 1), column(m, 1);
      for (Index i = 0; i < m; ++i) {
        column(i, 0) = owned(p, task, i, j) ? Wide(p.a(matrix_row(p, task, i), task.col + j, task.matrix)) : 0;
        error(i, 0) = column(i, 0) - product(i, j);
      }
      const Wide least = 30 * (n + 10) * std::numeric_limits<T>::denorm_min();
      EXPECT_TRUE(column_norm(error, 0) <= bound * column_norm(column, 0) + least)
          << "block " << index << " (" << m << " x " << n << ") column " << j << ": residual "
          << double(column_norm(error, 0)) << " of " << double(column_norm(column, 0));
    }
  }
}

/// Runs a panel on a backend and reads everything back.
template <class Fixture, class T>
auto run_factor(Fixture& fixture, typename Fixture::Queue& queue, PanelCase<T>& p) {
  Panel<typename Fixture::B, T> panel;
  panel.a = fixture.device(p.a);
  panel.t = fixture.device(p.t);
  panel.tasks = fixture.device(p.tasks);
  panel.task_count = static_cast<Index>(p.tasks.size());
  panel.max_rows = p.max_rows;
  panel.max_cols = p.max_cols;
  panel.inner = static_cast<std::int32_t>(p.inner);
  if (p.tree)
    factor_tree(queue, panel);
  else
    factor(queue, panel);
  p.factored = fixture.host(panel.a, p.a);
  fixture.host(panel.t, p.t);
  return panel;
}

/// What no block owns is as it was.
template <class T>
void expect_untouched(const PanelCase<T>& p) {
  HostMatrix<T> expected = p.factored;
  std::vector<char> mine(expected.data.size(), 0);
  for (const BlockTask& task : p.tasks)
    for (Index j = 0; j < task.cols; ++j)
      for (Index i = 0; i < block_height(p, task); ++i)
        if (owned(p, task, i, j))
          mine[static_cast<std::size_t>(&expected(matrix_row(p, task, i), task.col + j, task.matrix) -
                                        expected.data.data())] = 1;
  for (std::size_t k = 0; k < mine.size(); ++k)
    if (!mine[k]) expected.data[k] = p.a.data[k];
  EXPECT_TRUE(same_bits(expected.data, p.factored.data)) << "memory outside the blocks changed";
}

/// Applies the panel to random columns, both ways, against the reference; also under a condition.
template <class Fixture, class T>
void expect_applied(Fixture& fixture, typename Fixture::Queue& queue, const PanelCase<T>& p,
                    const Panel<typename Fixture::B, T>& panel, Index cols) {
  for (Op op : {Op::transpose, Op::none}) {
    HostMatrix<T> c(p.a.rows, cols, 3, p.a.count, 2);
    c.random(77);
    Apply<typename Fixture::B, T> apply{panel, fixture.device(c), op};
    const auto run = [&](typename Fixture::Queue on) { p.tree ? apply_qt_tree(on, apply) : apply_qt_h(on, apply); };
    run(queue.when(fixture.device(std::vector<std::int32_t>{0})));
    EXPECT_TRUE(same_bits(fixture.host(apply.c, c).data, c.data)) << "a skipped apply changed C";
    run(queue);
    const HostMatrix<T> result = fixture.host(apply.c, c);
    HostMatrix<T> rest = result;
    for (std::size_t index = 0; index < p.tasks.size(); ++index) {
      const BlockTask& task = p.tasks[index];
      const Index m = block_height(p, task);
      Reference block(m, cols);
      for (Index j = 0; j < cols; ++j)
        for (Index i = 0; i < m; ++i) block(i, j) = c(matrix_row(p, task, i), j, task.matrix);
      apply_reference(p, index, reflectors(p, index), op == Op::transpose, block);
      for (Index j = 0; j < cols; ++j)
        for (Index i = 0; i < m; ++i) {
          const Index row = matrix_row(p, task, i);
          ASSERT_LE(std::fabs(result(row, j, task.matrix) - block(i, j)), 30 * (task.cols + 10) * unit_roundoff<T>)
              << "block " << index << " element " << i << ", " << j << (op == Op::none ? " of Q C" : " of Q^T C");
          rest(row, j, task.matrix) = c(row, j, task.matrix);
        }
    }
    EXPECT_TRUE(same_bits(rest.data, c.data)) << "an apply changed rows that no block owns";
  }
}

inline BlockTask contiguous(Index row, Index rows, Index cols, Index col = 0, Index matrix = 0) {
  return {row, 0, std::int32_t(matrix), std::int32_t(rows), 0, std::int32_t(col), std::int32_t(cols)};
}

inline BlockTask heads(Index row, Index count, Index stride, Index cols, Index col = 0, Index matrix = 0) {
  return {
      row, 0, std::int32_t(matrix), std::int32_t(count), std::int32_t(stride), std::int32_t(col), std::int32_t(cols)};
}

TYPED_TEST(Kernels, FactorsBlocksOfManySizes) {
  using T = typename TestFixture::T;
  const Limits limits = this->q().limits(T{});
  const Index tallest = std::min<Index>(limits.max_block_rows, 1024);  // the CPU's has no bound
  for (Index n : {1, 2, 7, 8, 9, 16, 17, 31, 32})
    for (Index m : in_turn({Index(1), Index(2), Index(17), Index(31), Index(32), Index(33), Index(97), tallest})) {
      if (n > limits.max_panel_cols || m > limits.max_block_rows) continue;
      SCOPED_TRACE(testing::Message() << m << " x " << n);
      // Two blocks in each of two matrices, of which the second is shorter, at column 2.
      HostMatrix<T> a(2 * m + 3, n + 3, 5, 2, 4);
      a.random(unsigned(100 * n + m));
      PanelCase<T> p(a);
      for (Index b = 0; b < 2; ++b) {
        p.add(contiguous(1, m, n, 2, b));
        if (m > 1) p.add(contiguous(m + 2, m - m / 3, n, 2, b));
      }
      p.place_t(n % 2);
      const auto panel = run_factor(*this, this->q(), p);
      expect_factored(p);
      expect_untouched(p);
      expect_applied(*this, this->q(), p, panel, m % 2 ? 5 : 67);
      const std::vector<T> t = p.t;
      const HostMatrix<T> factored = p.factored;
      run_factor(*this, this->q(), p);
      EXPECT_TRUE(same_bits(factored.data, p.factored.data) && same_bits(t, p.t)) << "two runs differ";
      if (this->HasFailure()) return;
    }
}

TYPED_TEST(Kernels, FactorsTreesOfTriangles) {
  using T = typename TestFixture::T;
  const Limits limits = this->q().limits(T{});
  for (Index n : {1, 2, 8, 15, 16, 17, 32})
    for (Index count : in_turn({1, 2, 3, 4, 7}, 2)) {
      if (n > limits.max_panel_cols || count * n > limits.max_block_rows) continue;
      SCOPED_TRACE(testing::Message() << count << " heads of " << n);
      const Index stride = n + count % 3;
      HostMatrix<T> a(2 * count * stride + 2, n + 2, 1, 2);
      a.random(unsigned(31 * n + count));
      PanelCase<T> p(a);
      p.tree = true;
      for (Index b = 0; b < 2; ++b) {
        p.add(heads(1, count, stride, n, 1, b));
        if (count > 1) p.add(heads(1 + count * stride, count - 1, stride, n, 1, b));
      }
      p.place_t(n % 2);
      // What the level below owns is NaN: neither read nor written.
      for (const BlockTask& task : p.tasks)
        for (Index j = 0; j < n; ++j)
          for (Index i = 0; i < block_height(p, task); ++i)
            if (!owned(p, task, i, j))
              p.a(matrix_row(p, task, i), task.col + j, task.matrix) = std::numeric_limits<T>::quiet_NaN();
      const auto panel = run_factor(*this, this->q(), p);
      expect_factored(p);
      expect_untouched(p);
      expect_applied(*this, this->q(), p, panel, count % 2 ? 3 : 66);
      if (this->HasFailure()) return;
    }
}

TYPED_TEST(Kernels, FactorsHostileBlocks) {
  using T = typename TestFixture::T;
  using Limit = std::numeric_limits<T>;
  const Index n = 16, m = 70;
  enum Kind {
    zero,
    identity,
    triangular,
    zero_columns,
    equal_columns,
    graded_columns,
    graded_rows,
    huge,
    tiny,
    denormal,
    near_identity,
    last_row_only,
    kinds
  };
  for (int kind = 0; kind < kinds; ++kind)
    for (bool tree : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << (tree ? " tree" : ""));
      HostMatrix<T> a(tree ? 4 * n : m, n, 1);
      a.random(unsigned(kind + 1));
      const int top = Limit::max_exponent - 6, bottom = Limit::min_exponent;
      a.set([&](Index i, Index j, Index) -> T {
        const T x = a(i, j), r = std::clamp(x, T(-2), T(2));
        switch (kind) {
          case zero: return 0;
          case identity: return i == j;
          case triangular: return i < j ? std::fabs(x) : i == j ? T(1) : T(0);
          case zero_columns: return j % 5 == 0 || j == n - 1 ? 0 : x;
          case equal_columns: return a(i, j % 3);
          case graded_columns: return std::ldexp(r, (top - bottom) * int(j) / int(n) + bottom);
          case graded_rows: return std::ldexp(r, top - (top - bottom) * int(i) / int(a.rows));
          case huge: return std::ldexp(r, top);
          case tiny: return std::ldexp(r, bottom);
          case denormal: return std::ldexp(r, bottom - Limit::digits / 2);
          case near_identity: return (i == j) + T(1e-4) * x;
          default: return i == a.rows - 1 ? x : 0;
        }
      });
      PanelCase<T> p(a);
      p.tree = tree;
      p.add(tree ? heads(0, 4, n, n) : contiguous(0, m, n));
      p.place_t(0);
      run_factor(*this, this->q(), p);
      expect_factored(p);
      expect_untouched(p);
    }
}

TYPED_TEST(Kernels, SpreadsNotFiniteNumbersWithinTheirBlock) {
  using T = typename TestFixture::T;
  const Index n = 9, m = 40;
  for (T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()})
    for (Index i : {Index(0), m - 1})
      for (Index j : {Index(0), n - 1}) {
        HostMatrix<T> a(2 * m, n);
        a.random(3);
        a(i, j) = bad;
        PanelCase<T> p(a), clean(a);
        p.add(contiguous(0, m, n));
        p.add(contiguous(m, m, n));
        p.place_t(0);
        run_factor(*this, this->q(), p);
        EXPECT_FALSE(std::isfinite(p.factored(j, j))) << "element " << i << ", " << j;
        clean.add(contiguous(m, m, n));
        clean.place_t(0);
        run_factor(*this, this->q(), clean);
        expect_factored(clean);
        for (Index k = 0; k < n; ++k)
          for (Index row = m; row < 2 * m; ++row) EXPECT_EQ(p.factored(row, k), clean.factored(row, k));
      }
}

TYPED_TEST(Kernels, ConditionSkipsPanels) {
  using T = typename TestFixture::T;
  HostMatrix<T> a(64, 8);
  a.random(1);
  for (bool tree : {false, true}) {
    PanelCase<T> p(a);
    p.tree = tree;
    p.add(tree ? heads(0, 4, 16, 8) : contiguous(0, 64, 8));
    p.place_t(0);
    auto never = this->q().when(this->flag(0)), always = this->q().when(this->flag(3));
    run_factor(*this, never, p);
    EXPECT_TRUE(same_bits(p.factored.data, p.a.data));
    EXPECT_EQ(p.t[0], canary<T>);
    run_factor(*this, always, p);
    expect_factored(p);
  }
}

}  // namespace qrane::backend::test
