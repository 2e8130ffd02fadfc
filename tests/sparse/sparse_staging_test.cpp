// SPDX-License-Identifier: Apache-2.0
// Plans in less memory than fronts want: what leaves, when it is back, and that nothing is overwritten meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <qrane/error.hpp>

#include "sparse/processor.hpp"
#include "support/backends.hpp"
#include "support/front_simulation.hpp"

namespace qrane::sparse {
namespace {

using test::analyzed;
using test::expect_r_in_order;
using test::Simulation;

/// Carries a staged plan out on memory whose elements say what they hold. Copies are taken to happen anywhere in the
/// time that the plan gives them: what they read must be there all the while, and nobody else may touch what they
/// write.
class MemorySimulation {
 public:
  MemorySimulation(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan)
      : s_(s),
        o_(o),
        plan_(plan),
        device_(at(plan.storage_size), nothing),
        written_(at(plan.storage_size), -1),
        blocks_(at(plan.blocks_size), nothing),
        images_(at(plan.images_size), nothing),
        unpacked_(s.fronts.size(), 0) {}

  void run() {
    auto in = plan_.ins.begin();
    auto out = plan_.outs.begin(), image = plan_.images.begin();
    std::vector<Copy> outs, images, ins;
    for (Index r = 0; r < plan_.rounds(); ++r) {
      for (Copy& copy : ins) land(copy, blocks_, device_, copy.plan.host, copy.plan.device);
      ins.clear();
      finish(outs, r, blocks_);
      finish(images, r, images_);
      // copies for the next round may be under way now, and have waited for those that left before this one
      for (; in != plan_.ins.end() && in->round <= r + 1; ++in) {
        ASSERT_EQ(in->round, r + 1);
        for (Copy& copy : outs)
          if (copy.plan.round <= r - 1) std::copy(copy.data.begin(), copy.data.end(), blocks_.begin() + copy.plan.host);
        ins.push_back(take(*in, blocks_, device_, in->host, in->device));
      }
      kernels(r);
      if (::testing::Test::HasFatalFailure()) return;
      for (; out != plan_.outs.end() && out->round == r; ++out)
        outs.push_back(take(*out, device_, blocks_, out->device, out->host));
      for (; image != plan_.images.end() && image->round == r; ++image)
        images.push_back(take(*image, device_, images_, image->device, image->host));
    }
    finish(outs, plan_.rounds() + 2, blocks_);
    finish(images, plan_.rounds() + 2, images_);
    ASSERT_TRUE(in == plan_.ins.end() && out == plan_.outs.end() && image == plan_.images.end());
    for (Index f = 0; f < s_.front_count(); ++f) {
      const auto [first, end] = image_of(f);
      for (Index e = first; e < end; ++e)
        ASSERT_EQ(images_[at(e + plan_.host_shift[at(f)])], f) << "image of front " << f;
    }
  }

 private:
  static constexpr std::int64_t nothing = -1, under_way = -2;
  struct Copy {
    StagedCopy plan;
    std::vector<std::int64_t> data;
  };
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  /// What element e of front f's packed contribution block is called; elements of its memory are called f.
  static std::int64_t packed(Index f, Index e) { return ((f + 1) << 32) + e; }

  std::pair<Index, Index> memory_of(Index f) const {
    const auto& shape = plan_.shapes[at(f)];
    Index end = shape.t + o_.panel * shape.cols;
    if (o_.r_in_storage) end = std::max<Index>(end, shape.r + r_size(shape));
    return {shape.matrix, end};
  }
  std::pair<Index, Index> image_of(Index f) const {
    const auto& shape = plan_.shapes[at(f)];
    if (o_.keep_q) return memory_of(f);
    return o_.r_in_storage ? std::pair<Index, Index>{shape.r, shape.r + r_size(shape)} : std::pair<Index, Index>{0, 0};
  }
  static Index r_size(const backend::FrontShape& shape) {
    const Index m = shape.r_bound;
    return m * (m + 1) / 2 + m * (shape.cols - m);
  }
  Index block_size(Index f) const {
    const auto& shape = plan_.shapes[at(f)];
    return shape.cb_bound > 0 ? packed_front_block(shape.cols - shape.pivots, shape.cb_bound) : 0;
  }

  /// Begins a copy: its target is nobody's until it ends.
  static Copy take(const StagedCopy& plan, const std::vector<std::int64_t>& from, std::vector<std::int64_t>& to,
                   Index source, Index target) {
    Copy copy{plan, {from.begin() + source, from.begin() + source + plan.count}};
    std::fill_n(to.begin() + target, plan.count, under_way);
    return copy;
  }
  static void land(const Copy& copy, const std::vector<std::int64_t>& from, std::vector<std::int64_t>& to, Index source,
                   Index target) {
    ASSERT_TRUE(std::equal(copy.data.begin(), copy.data.end(), from.begin() + source)) << "source changed meanwhile";
    std::copy(copy.data.begin(), copy.data.end(), to.begin() + target);
  }
  void finish(std::vector<Copy>& copies, Index round, std::vector<std::int64_t>& host) {
    for (Copy& copy : copies)
      if (copy.plan.round + 2 <= round) land(copy, device_, host, copy.plan.device, copy.plan.host);
    std::erase_if(copies, [&](const Copy& copy) { return copy.plan.round + 2 <= round; });
  }

  void write(Index round, Index first, Index end, std::int64_t what) {
    for (Index e = first; e < end; ++e) {
      ASSERT_NE(written_[at(e)], round) << "element " << e << " written twice in round " << round;
      ASSERT_NE(device_[at(e)], under_way) << "element " << e << " written while a copy has it, round " << round;
      written_[at(e)] = round;
      device_[at(e)] = what;
    }
  }
  void expect(Index round, Index first, Index end, std::int64_t what, Index step) const {
    for (Index e = first; e < end; ++e) {
      ASSERT_EQ(device_[at(e)], what + step * (e - first)) << "element " << e << ", round " << round;
      ASSERT_NE(written_[at(e)], round) << "element " << e << " read and written in round " << round;
    }
  }

  /// Nothing that a round reads is written in it, but for what a front does in its own memory.
  void kernels(Index r) {
    for (Index f = 0; f < s_.front_count(); ++f) {
      if (plan_.begin[at(f)] > r || plan_.end[at(f)] < r) continue;
      const auto [first, end] = memory_of(f);
      if (plan_.begin[at(f)] < r) {
        for (Index e = first; e < end; ++e) ASSERT_EQ(device_[at(e)], f) << "front " << f << ", round " << r;
      }
      write(r, first, end, f);
    }
    pieces(r, FrontStep::pack, [&](const backend::FrontPieceTask& piece, Index offset, Index count) {
      ASSERT_LT(plan_.end[at(piece.front)], r);
      const std::int64_t name = packed(piece.front, offset);
      for (Index e = 0; e < count; ++e) write(r, piece.place + e, piece.place + e + 1, name + e);
      const auto [first, end] = memory_of(piece.front);
      expect(r, first, end, piece.front, 0);
    });
    pieces(r, FrontStep::unpack, [&](const backend::FrontPieceTask& piece, Index offset, Index count) {
      ASSERT_EQ(plan_.shapes[at(piece.front)].packed, block_in_pieces);
      ASSERT_EQ(piece.parent, s_.fronts[at(piece.front)].parent);
      ASSERT_GE(r, plan_.begin[at(piece.parent)]);
      ASSERT_LE(r, plan_.start[at(piece.parent)]);
      expect(r, piece.place, piece.place + count, packed(piece.front, offset), 1);
      ASSERT_EQ(unpacked_[at(piece.front)], offset);  // in their order, each once
      unpacked_[at(piece.front)] += count;
    });
    for (Index f = 0; f < s_.front_count(); ++f) {
      if (plan_.start[at(f)] != r && plan_.begin[at(f)] != r) continue;
      for (Index c = 0; c < s_.fronts[at(f)].child_count; ++c) {
        const Index child = s_.children[at(s_.fronts[at(f)].child_begin + c)], place = plan_.shapes[at(child)].packed;
        ASSERT_LT(plan_.end[at(child)], plan_.begin[at(f)]);
        if (place == block_in_front && plan_.begin[at(f)] == r && block_size(child) > 0) {
          const auto [first, end] = memory_of(child);
          expect(r, first, end, child, 0);
        } else if (place > 0 && plan_.begin[at(f)] == r) {
          ASSERT_EQ(plan_.start[at(f)], r);
          expect(r, place, place + block_size(child), packed(child, 0), 1);
        } else if (place == block_in_pieces && plan_.start[at(f)] == r) {
          ASSERT_EQ(unpacked_[at(child)], block_size(child)) << "child " << child << " of " << f;
        }
      }
    }
  }

  /// visit(piece, its first element in the packed block, elements), fronts' pieces by their columns.
  template <class Visit>
  void pieces(Index r, FrontStep step, Visit visit) {
    std::vector<backend::FrontPieceTask> tasks;
    for (Index l = plan_.round_begin[at(r)]; l < plan_.round_begin[at(r + 1)]; ++l)
      if (const FrontLaunch& launch = plan_.launches[at(l)]; launch.step == step)
        tasks.insert(tasks.end(), plan_.pieces.begin() + launch.first,
                     plan_.pieces.begin() + launch.first + launch.count);
    std::sort(tasks.begin(), tasks.end(),
              [](const auto& a, const auto& b) { return a.front != b.front ? a.front < b.front : a.first < b.first; });
    for (const backend::FrontPieceTask& task : tasks) {
      const Index rows = plan_.shapes[at(task.front)].cb_bound, offset = packed_front_block(task.first, rows);
      visit(task, offset, packed_front_block(task.first + task.cols, rows) - offset);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  const Symbolic& s_;
  const FrontRoundsOptions& o_;
  const FrontRounds& plan_;
  std::vector<std::int64_t> device_;
  std::vector<Index> written_;  // last round
  std::vector<std::int64_t> blocks_, images_;
  std::vector<Index> unpacked_;  // elements of each front's block
};

void simulate(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) {
  Simulation(s, o, plan).run();
  if (!::testing::Test::HasFatalFailure()) MemorySimulation(s, o, plan).run();
}

TEST(Staging, LimitsAreKeptDownToOneFrontAlone) {
  Index most_stages = 0, pieces = 0, whole_blocks = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    test::Triplets a = test::random_sparse(300 + 50 * seed, 140, 0.02, 60 + seed);
    if (seed == 2)  // and others beside it: several roots
      for (Index k = 0; k < 12; ++k) {
        const test::Triplets more = test::random_sparse(120, 50, 0.05, 70 + static_cast<unsigned>(k));
        for (std::size_t e = 0; e < more.value.size(); ++e)
          a.add(a.rows + more.row[e], a.cols + more.col[e], more.value[e]);
        a.rows += more.rows;
        a.cols += more.cols;
      }
    const Symbolic s = analyzed(a);
    for (const bool keep_q : {false, true})
      for (const bool r_in_storage : {false, true})
        for (const Index whole : {Index{0}, Index{1500}}) {
          FrontRoundsOptions options{.rhs_cols = seed % 2,
                                     .panel = 8,
                                     .whole_elements = whole,
                                     .update_cols = 16,
                                     .share_elements = 40,
                                     .keep_q = keep_q,
                                     .detect_rank = seed != 3,
                                     .piece = 200,
                                     .r_in_storage = r_in_storage};
          const FrontRounds all_at_once = plan_rounds(s, options);
          const Index least = least_storage(s, options).elements;
          EXPECT_LT(least, all_at_once.storage_size);
          for (const Index k : {0, 1, 3, 6}) {
            options.storage_limit = least + (all_at_once.storage_size - least) * k * k / 36;
            SCOPED_TRACE(::testing::Message()
                         << "seed " << seed << ", limit " << options.storage_limit << " of " << all_at_once.storage_size
                         << (keep_q ? ", Q" : "") << ", whole " << whole << (r_in_storage ? ", R in storage" : ""));
            const FrontRounds plan = plan_rounds(s, options);
            EXPECT_LE(plan.storage_size, options.storage_limit);
            EXPECT_TRUE(plan.staged());
            simulate(s, options, plan);
            if (!r_in_storage) expect_r_in_order(plan);
            for (std::size_t f = 0; f < plan.shapes.size(); ++f) {  // nothing that a kernel chooses by differs
              ASSERT_EQ(plan.shapes[f].ld, all_at_once.shapes[f].ld);
              ASSERT_EQ(plan.shapes[f].rows_bound, all_at_once.shapes[f].rows_bound);
              whole_blocks += plan.shapes[f].packed > 0;
            }
            most_stages = std::max<Index>(most_stages, *std::max_element(plan.stage.begin(), plan.stage.end()) + 1);
            pieces += static_cast<Index>(plan.pieces.size());
            if (HasFatalFailure()) return;
          }
        }
  }
  EXPECT_GE(most_stages, 3);
  EXPECT_GT(pieces, 1000);
  EXPECT_GT(whole_blocks, 10);
}

TEST(Staging, WithRoomForEverythingNothingMovesButImages) {
  const Symbolic s = analyzed(test::random_sparse(400, 150, 0.02, 7));
  FrontRoundsOptions options{.panel = 8, .whole_elements = 40, .update_cols = 1000, .piece = 100};
  const FrontRounds free = plan_rounds(s, options);
  options.storage_limit = 2 * free.storage_size;
  const FrontRounds plan = plan_rounds(s, options);
  EXPECT_EQ(plan.rounds(), longest_path(s, options.panel, options.whole_elements));
  EXPECT_TRUE(plan.outs.empty());
  EXPECT_TRUE(plan.ins.empty());
  EXPECT_EQ(std::accumulate(plan.images.begin(), plan.images.end(), Index{0},
                            [](Index sum, const StagedCopy& copy) { return sum + copy.count; }),
            plan.images_size);
  EXPECT_EQ(*std::max_element(plan.stage.begin(), plan.stage.end()), 0);
}

TEST(Staging, ALimitBelowTheLeastIsRefused) {
  const Symbolic s = analyzed(test::random_sparse(200, 90, 0.03, 8));
  FrontRoundsOptions options{.panel = 8, .whole_elements = 40, .update_cols = 16, .keep_q = false};
  const LeastStorage least = least_storage(s, options);
  for (std::size_t f = 0; f < s.fronts.size(); ++f)
    EXPECT_LE(s.fronts[f].rows_bound * s.fronts[f].cols, s.fronts[static_cast<std::size_t>(least.front)].rows_bound *
                                                                 s.fronts[static_cast<std::size_t>(least.front)].cols +
                                                             16 * 2 * 90);
  options.storage_limit = least.elements;
  EXPECT_LE(plan_rounds(s, options).storage_size, least.elements);
  options.storage_limit = least.elements - 16;
  const test::Thrown thrown = test::thrown_by([&] { plan_rounds(s, options); });
  EXPECT_TRUE(thrown.happened);
  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_NE(thrown.message.find(std::to_string(least.elements - 16)), std::string::npos) << thrown.message;
}

TEST(Staging, TheSamePlanEachTime) {
  const Symbolic s = analyzed(test::random_sparse(300, 140, 0.02, 9));
  FrontRoundsOptions options{.panel = 8, .whole_elements = 100, .update_cols = 16, .piece = 150};
  options.storage_limit = least_storage(s, options).elements * 3 / 2;
  const FrontRounds a = plan_rounds(s, options), b = plan_rounds(s, options);
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.host_shift, b.host_shift);
  const auto equal = [](const std::vector<StagedCopy>& x, const std::vector<StagedCopy>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const StagedCopy& p, const StagedCopy& q) {
      return p.round == q.round && p.device == q.device && p.host == q.host && p.count == q.count;
    });
  };
  EXPECT_TRUE(equal(a.outs, b.outs));
  EXPECT_TRUE(equal(a.ins, b.ins));
  EXPECT_FALSE(a.ins.empty());
  EXPECT_TRUE(equal(a.images, b.images));
}

}  // namespace
}  // namespace qrane::sparse
