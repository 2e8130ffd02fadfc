// SPDX-License-Identifier: Apache-2.0
// Contribution blocks that leave their fronts: packed in pieces, unpacked into parents, read packed by them; bit by
// bit.
#pragma once

#include "kernels_fronts_checks.hpp"

namespace qrane::backend::test {

template <class Case>
class FrontStaging : public FrontKernels<Case> {
 public:
  using T = typename Kernels<Case>::T;

  /// Every front's contribution block in a place of its own behind the fronts, cut into pieces of up to `most` columns.
  struct Blocks {
    std::vector<std::int64_t> place;  // by front
    std::vector<std::vector<FrontPieceTask>> pieces;
  };
  static Blocks make_room(HostFronts<T>& h, Index most) {
    Blocks blocks;
    blocks.pieces.resize(h.shapes.size());
    std::vector<std::int32_t> parent(h.shapes.size(), -1);
    for (std::int32_t f = 0; f < h.count(); ++f)
      for (Index k = 0; k < h.shape(f).child_count; ++k)
        parent[std::size_t(h.children[std::size_t(h.shape(f).children + k)])] = f;
    std::int64_t end = std::int64_t(h.storage.size());
    for (std::int32_t f = 0; f < h.count(); ++f) {
      const FrontShape& shape = h.shape(f);
      const std::int32_t cols = shape.cols - shape.pivots;
      blocks.place.push_back(end);
      for (std::int32_t first = 0, count; first < cols && parent[std::size_t(f)] >= 0; first += count) {
        count = std::min<std::int32_t>(cols - first, std::int32_t(1 + (f + first) % most));
        blocks.pieces[std::size_t(f)].push_back(
            {f, parent[std::size_t(f)], first, count, end + packed_front_block(first, shape.cb_bound)});
      }
      end += packed_front_block(cols, shape.cb_bound) + HostFronts<T>::pad;
    }
    h.storage.resize(std::size_t(end), canary<T>);
    return blocks;
  }
  static std::vector<FrontPieceTask> all_pieces(const Blocks& blocks, const std::vector<std::int32_t>& fronts) {
    std::vector<FrontPieceTask> list;
    for (const std::int32_t f : fronts)
      list.insert(list.end(), blocks.pieces[std::size_t(f)].begin(), blocks.pieces[std::size_t(f)].end());
    return list;
  }
  static std::vector<std::int32_t> children_of(const HostFronts<T>& h, const std::vector<std::int32_t>& parents) {
    std::vector<std::int32_t> list;
    for (const std::int32_t f : parents)
      for (Index k = 0; k < h.shape(f).child_count; ++k)
        list.push_back(h.children[std::size_t(h.shape(f).children + k)]);
    return list;
  }
  static std::int64_t element(const HostFronts<T>& h, const Blocks& blocks, Index f, Index i, Index j) {
    return blocks.place[std::size_t(f)] + packed_front_block(j, h.shape(f).cb_bound) + i;
  }
  /// Contribution blocks where pack_fronts would put them.
  static void pack_on_host(HostFronts<T>& h, const Blocks& blocks) {
    for (Index f = 0; f < h.count(); ++f)
      for (Index j = 0; j < h.shape(f).cols - h.shape(f).pivots; ++j)
        for (Index i = 0; i < std::min<Index>(j + 1, h.state(f).cb_rows); ++i)
          h.storage[std::size_t(element(h, blocks, f, i, j))] = h.r_of(f, h.state(f).r_rows + i, h.shape(f).pivots + j);
  }
  static void forget_front(HostFronts<T>& h, Index f) {
    const FrontShape& shape = h.shape(f);
    const auto forget = [&](std::int64_t first, std::int64_t count) {
      std::fill_n(h.storage.begin() + first, count, std::numeric_limits<T>::quiet_NaN());
    };
    forget(shape.matrix, std::int64_t{shape.ld} * h.all_cols(f));
    forget(shape.corner, std::int64_t{h.panel} * shape.cols);
  }
  /// What parents of a level must hold when everything has been assembled; their columns of right-hand sides are left
  /// out.
  static void expect_assembled(const HostFronts<T>& tree, const HostFronts<T>& h,
                               const std::vector<std::int32_t>& parents) {
    for (const std::int32_t f : parents) {
      const Reference expected = assembled(tree, f);
      for (Index j = 0; j < h.shape(f).cols; ++j)
        for (Index i = 0; i < h.state(f).rows; ++i)
          ASSERT_EQ(h.matrix(f, i, j), T(expected(i, j))) << "front " << f << ": " << i << ", " << j;
    }
  }
};
TYPED_TEST_SUITE(FrontStaging, KernelTypes);

TYPED_TEST(FrontStaging, PackFronts) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> tree = fronts_of<T>(c.symbolic, c.values, 2);
    tree.tolerance = c.tolerance;
    this->walk_on_host(tree);
    const auto blocks = TestFixture::make_room(tree, 40);
    for (const std::vector<std::int32_t>& list : tree.levels) {
      HostFronts<T> h = tree;
      auto fronts = this->to_device(h);
      pack_fronts(this->q(), fronts, this->tasks(h, TestFixture::all_pieces(blocks, list)));
      this->to_host(fronts, h);
      for (const std::int32_t f : list)
        for (const FrontPieceTask& piece : blocks.pieces[std::size_t(f)])
          for (Index j = piece.first; j < piece.first + piece.cols; ++j)
            for (Index i = 0; i < std::min<Index>(j + 1, h.shape(f).cb_bound); ++i) {
              T& packed = h.storage[std::size_t(TestFixture::element(h, blocks, f, i, j))];
              if (i < h.state(f).cb_rows) {
                ASSERT_EQ(packed, h.r_of(f, h.state(f).r_rows + i, h.shape(f).pivots + j))
                    << "front " << f << ": " << i << ", " << j;
              }
              packed = canary<T>;  // below them anything may be
            }
      EXPECT_TRUE(same_bits(h.storage, tree.storage)) << "written elsewhere";
      EXPECT_TRUE(same_bits(h.states, tree.states) && same_bits(h.r, tree.r) && same_bits(h.rhs, tree.rhs));
    }
  }
}

// Every second child comes by unpack_fronts, whole or in pieces; it has nothing left where it was.
TYPED_TEST(FrontStaging, UnpackFrontsIntoParentsThatAreThere) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> tree = fronts_of<T>(c.symbolic, c.values, 2);
    tree.tolerance = c.tolerance;
    this->walk_on_host(tree);
    for (const Index most : {Index{7}, Index{1000}})
      for (std::size_t level = 1; level < tree.levels.size(); ++level) {
        HostFronts<T> h = tree;
        const std::vector<std::int32_t>& parents = h.levels[level];
        const auto blocks = TestFixture::make_room(h, most);
        TestFixture::pack_on_host(h, blocks);
        std::vector<std::int32_t> came;
        for (const std::int32_t f : TestFixture::children_of(h, parents))
          if (f % 2 == 0) {
            came.push_back(f);
            h.shapes[std::size_t(f)].packed = -1;
            TestFixture::forget_front(h, f);
          }
        auto fronts = this->to_device(h);
        assemble_fronts(this->q(), fronts, this->tasks(h, this->shares(parents)));
        unpack_fronts(this->q(), fronts, this->tasks(h, TestFixture::all_pieces(blocks, came)));
        const HostFronts<T> before = h;
        this->to_host(fronts, h);
        TestFixture::expect_assembled(tree, h, parents);
        for (const std::int32_t f : parents)
          std::copy_n(before.storage.begin() + h.shape(f).matrix, std::int64_t{h.shape(f).ld} * h.all_cols(f),
                      h.storage.begin() + h.shape(f).matrix);
        EXPECT_TRUE(same_bits(h.storage, before.storage)) << "written outside of the parents";
      }
  }
}

TYPED_TEST(FrontStaging, ParentsReadPackedBlocks) {
  using T = typename TestFixture::T;
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> tree = fronts_of<T>(c.symbolic, c.values, 0);
    tree.tolerance = c.tolerance;
    this->walk_on_host(tree);
    for (std::size_t level = 1; level < tree.levels.size(); ++level) {
      HostFronts<T> h = tree;
      const auto blocks = TestFixture::make_room(h, 1000);
      TestFixture::pack_on_host(h, blocks);
      for (const std::int32_t f : TestFixture::children_of(h, h.levels[level]))
        if (f % 2 == 1) {
          h.shapes[std::size_t(f)].packed = blocks.place[std::size_t(f)];
          TestFixture::forget_front(h, f);
        }
      auto fronts = this->to_device(h);
      assemble_fronts(this->q(), fronts, this->tasks(h, this->shares(h.levels[level])));
      this->to_host(fronts, h);
      TestFixture::expect_assembled(tree, h, h.levels[level]);
    }
  }
}

}  // namespace qrane::backend::test
