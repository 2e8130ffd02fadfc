// SPDX-License-Identifier: Apache-2.0
// Layout, assembly and finishing of frontal matrices: what they copy, bit by bit.
#pragma once

#include "kernels_fronts_checks.hpp"

namespace qrane::backend::test {

template <class Case>
class FrontLayouts : public FrontKernels<Case> {
 public:
  using T = typename Kernels<Case>::T;

  void lay_out(HostFronts<T>& h, const std::vector<std::int32_t>& list) {
    auto fronts = this->to_device(h);
    lay_out_fronts(this->q(), fronts, this->tasks(h, list));
    this->to_host(fronts, h);
  }

  /// Lays out level after level on the device; children's heights are `heights` of their states, which it sets.
  template <class F>
  void lay_out_tree(HostFronts<T>& h, F&& heights) {
    for (const std::vector<std::int32_t>& list : h.levels) {
      const HostFronts<T> before = h;
      lay_out(h, list);
      for (const std::int32_t f : list) {
        EXPECT_EQ(h.state(f).dropped, 0);
        EXPECT_EQ(h.state(f).position, 0);
        EXPECT_EQ(h.state(f).r_rows, 0);
        EXPECT_EQ(h.state(f).cb_rows, 0);
        heights(f);
        const FrontShape& shape =
            h.shape(f);  // its pivots have yet to be found: until then a kernel may use their place
        std::copy_n(before.pivot.begin() + shape.columns, shape.cols, h.pivot.begin() + shape.columns);
      }
      EXPECT_TRUE(same_bits(h.storage, before.storage) && same_bits(h.pivot, before.pivot) && same_bits(h.r, before.r));
    }
  }
};
TYPED_TEST_SUITE(FrontLayouts, KernelTypes);

TYPED_TEST(FrontLayouts, AreThoseOfTheAnalysisWithFullRank) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, 0);
    this->lay_out_tree(h, [&](Index f) {
      ASSERT_EQ(h.state(f).rows, h.shape(f).full_rows);
      h.state(f).r_rows = std::min(h.shape(f).full_rows, h.shape(f).pivots);
      h.state(f).cb_rows = h.shape(f).cb_rows;
    });
    for (Index f = 0; f < h.count(); ++f) {
      const FrontShape& shape = h.shape(f);
      for (Index j = 0; j < shape.cols; ++j)
        ASSERT_EQ(h.stair_of(f, j), h.full_stair[std::size_t(shape.columns + j)]) << "front " << f << ", column " << j;
      for (Index r = shape.first_row; r < shape.first_row + shape.own_rows; ++r)
        ASSERT_EQ(h.own_slot[std::size_t(r)], h.full_own_slot[std::size_t(r)]) << "front " << f << ", row " << r;
      for (Index c2 = 0; c2 < shape.child_count; ++c2) {
        const FrontShape& child = h.shape(h.children[std::size_t(shape.children + c2)]);
        for (Index i = 0; i < child.cb_rows; ++i)
          ASSERT_EQ(h.cb_slot[std::size_t(child.slots + i)], h.full_cb_slot[std::size_t(child.full_slots + i)]);
      }
    }
  }
}

// With any heights of the children: as sparse::lay_out_rows has it; every row of S stands in one slot, and goes with
// its row from front to front.
TYPED_TEST(FrontLayouts, FollowHeightsThatTheAnalysisDidNotExpect) {
  using T = typename TestFixture::T;
  std::mt19937 engine(3);
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, 0);
    this->lay_out_tree(h, [&](Index f) {
      SCOPED_TRACE(testing::Message() << "front " << f);
      const FrontShape& shape = h.shape(f);
      std::vector<Index> child_rows, stair(std::size_t(shape.cols));
      std::vector<sparse::Local> own(std::size_t(shape.own_rows)), slots(std::size_t(shape.rows_bound));
      for (Index k = 0; k < shape.child_count; ++k)
        child_rows.push_back(h.state(h.children[std::size_t(shape.children + k)]).cb_rows);
      const Index rows = lay_out_rows(c.symbolic, f, child_rows.data(), stair.data(), own.data(), slots.data());
      ASSERT_EQ(h.state(f).rows, rows);
      for (Index j = 0; j < shape.cols; ++j) ASSERT_EQ(h.stair_of(f, j), stair[std::size_t(j)]);
      std::vector<std::int32_t> ids(std::size_t(rows), HostFronts<T>::unset);
      for (Index i = 0; i < shape.own_rows; ++i) {
        ASSERT_EQ(h.own_slot[std::size_t(shape.first_row + i)], own[std::size_t(i)]);
        ids[std::size_t(own[std::size_t(i)])] = std::int32_t(shape.first_row + i);
      }
      auto slot = slots.begin();
      for (Index k = 0; k < shape.child_count; ++k) {
        const Index number = h.children[std::size_t(shape.children + k)];
        const FrontShape& child = h.shape(number);
        for (Index i = 0; i < child_rows[std::size_t(k)]; ++i, ++slot) {
          ASSERT_EQ(h.cb_slot[std::size_t(child.slots + i)], *slot);
          ids[std::size_t(*slot)] = h.row_ids[std::size_t(child.row_ids + h.state(number).r_rows + i)];
        }
      }
      for (Index i = 0; i < rows; ++i) ASSERT_EQ(h.row_ids[std::size_t(shape.row_ids + i)], ids[std::size_t(i)]);
      std::sort(ids.begin(), ids.end());
      ASSERT_TRUE(std::adjacent_find(ids.begin(), ids.end()) == ids.end()) << "a row of S stands twice";
      FrontState& state = h.state(f);
      state.r_rows = std::int32_t(engine() % unsigned(std::min(state.rows, shape.pivots) + 1));
      state.cb_rows = std::min(state.rows - state.r_rows, shape.cols - shape.pivots);
    });
  }
}

TYPED_TEST(FrontLayouts, AssembleFronts) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> tree = fronts_of<T>(c.symbolic, c.values, 2);
    tree.tolerance = c.tolerance;
    this->walk_on_host(tree);
    for (std::size_t level = 0; level < tree.levels.size(); ++level) {
      HostFronts<T> h = tree;
      for (const std::int32_t f : h.levels[level])
        for (Index j = 0; j < h.all_cols(f); ++j)
          for (Index i = 0; i < h.shape(f).ld; ++i) h.matrix(f, i, j) = canary<T>;
      const HostFronts<T> before = h;
      auto fronts = this->to_device(h);
      assemble_fronts(this->q(), fronts, this->tasks(h, this->shares(h.levels[level])));
      this->to_host(fronts, h);
      for (const std::int32_t f : h.levels[level]) {
        const Reference expected = assembled(tree, f);
        for (Index j = 0; j < h.all_cols(f); ++j) {
          for (Index i = 0; i < h.state(f).rows; ++i) {
            const std::int32_t id = h.row_ids[std::size_t(h.shape(f).row_ids + i)];
            const Wide value =
                j < h.shape(f).cols ? expected(i, j) : h.rhs[std::size_t(id + (j - h.shape(f).cols) * h.rhs_ld)];
            ASSERT_EQ(h.matrix(f, i, j), T(value)) << "front " << f << ": " << i << ", " << j;
          }
          for (Index i = 0; i < h.shape(f).ld; ++i) h.matrix(f, i, j) = canary<T>;
        }
      }
      EXPECT_TRUE(same_bits(h.storage, before.storage)) << "storage around the fronts changed";
      EXPECT_TRUE(same_bits(h.rhs, before.rhs) && same_bits(h.states, before.states) &&
                  same_bits(h.stair, before.stair) && same_bits(h.cb_slot, before.cb_slot));
    }
  }
}

TYPED_TEST(FrontLayouts, FinishFronts) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, 2);
    h.tolerance = c.tolerance;
    this->walk_on_host(h);
    std::vector<std::int32_t> cb_rows;
    for (FrontState& state : h.states) cb_rows.push_back(state.cb_rows), state.cb_rows = 0;
    for (const std::vector<std::int32_t>& list : h.levels) {
      std::fill(h.r.begin(), h.r.end(), canary<T>);
      std::fill(h.rhs.begin(), h.rhs.end(), canary<T>);
      HostFronts<T> after = h;
      auto fronts = this->to_device(after);
      finish_fronts(this->q(), fronts, this->tasks(h, this->shares(list)));
      this->to_host(fronts, after);
      EXPECT_TRUE(same_bits(after.storage, h.storage));
      for (const std::int32_t f : list) {
        SCOPED_TRACE(testing::Message() << "front " << f);
        const FrontShape& shape = h.shape(f);
        ASSERT_EQ(after.state(f).cb_rows, cb_rows[std::size_t(f)]);
        Index live = 0;
        for (Index j = 0; j < shape.cols; ++j) {
          if (j < shape.pivots) live += h.pivot_of(f, j) >= 0;
          const std::int64_t at = h.packed(f, j), end = h.packed(f, j + 1);
          for (Index i = 0; i < live; ++i) ASSERT_EQ(after.r[std::size_t(at + i)], h.r_of(f, i, j)) << i << ", " << j;
          std::fill(after.r.begin() + at, after.r.begin() + end, canary<T>);  // below them anything may be
        }
        ASSERT_EQ(live, h.state(f).r_rows);
        for (Index j = 0; j < h.rhs_cols; ++j)
          for (Index i = 0; i < h.state(f).rows; ++i) {
            T& b = after.rhs[std::size_t(h.row_ids[std::size_t(shape.row_ids + i)] + j * h.rhs_ld)];
            ASSERT_EQ(b, h.matrix(f, i, shape.cols + j));
            b = canary<T>;
          }
      }
      EXPECT_TRUE(same_bits(after.r, h.r)) << "written between the fronts' R";
      EXPECT_TRUE(same_bits(after.rhs, h.rhs)) << "right-hand sides of other rows changed";
    }
  }
}

}  // namespace qrane::backend::test
