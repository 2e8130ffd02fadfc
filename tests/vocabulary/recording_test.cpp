// SPDX-License-Identifier: Apache-2.0
// Recordings of a CUDA queue: what is guarded by a flag is done when the flag says so at that moment, on the queue,
// beside it and nested; and a recording that fails leaves the queue as it was.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>

#include "cuda/queue/conditional.hpp"
#include "cuda/whole.hpp"
#include "dense/buffer.hpp"

namespace qrane::backend::test {
namespace {

using Queue = cuda::Queue;
using Flags = std::array<std::int32_t, 2>;
using Values = std::array<double, 5>;

class Recording : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
    queue_ = std::make_unique<Queue>(0);
    memory_ = dense::Buffer<Cuda>(*queue_, 256 + static_cast<Index>(sizeof(Values)));
  }
  std::int32_t* flags() const { return memory_.as<std::int32_t>(); }
  DeviceMatrix<Cuda, double> value(Index i) const { return {memory_.as<double>(256) + i, 1, 1, 1, 0, 1}; }
  void set(const Flags& flags) {
    fill(*queue_, {memory_.as<double>(256), 5, 1, 5, 0, 1}, 0.0, 0.0);
    queue_->upload(flags.data(), this->flags(), 2);
  }
  Values values() {
    Values out{};
    queue_->download(memory_.as<double>(256), out.data(), 5);
    return out;
  }
  /// Values 0 to 3 become 1 under flag 0 on the queue, beside it, under flag 1 nested in it, beside it alone; 4 always.
  void work(Queue& queue) const {
    Queue other = queue.side();
    other.follow(queue);
    queue.guarded(flags(), [&](Queue& inner) {
      fill(inner, value(0), 1.0, 1.0);
      Queue side = inner.side();
      side.follow(inner);
      fill(side, value(1), 1.0, 1.0);
      inner.follow(side);
      inner.guarded(flags() + 1, [&](Queue& nested) { fill(nested, value(2), 1.0, 1.0); });
    });
    other.guarded(flags() + 1, [&](Queue& beside) { fill(beside, value(3), 1.0, 1.0); });
    queue.follow(other);
    fill(queue, value(4), 1.0, 1.0);
  }
  static Values expected(const Flags& f) {
    const bool a = f[0] != 0, b = f[1] != 0;
    return {double(a), double(a), double(a && b), double(b), 1.0};
  }

  std::unique_ptr<Queue> queue_;
  dense::Buffer<Cuda> memory_;
};

constexpr Flags choices[] = {{0, 0}, {1, 0}, {0, 1}, {7, -1}, {0, 0}};
constexpr bool inner_alone(const Flags& flags) { return flags[0] == 0 && flags[1] != 0; }

TEST_F(Recording, DoesWhatTheFlagsSayWhenItIsReplayed) {
  const auto recording = queue_->recorded([&](Queue& q) { work(q); });
  for (const Flags& flags : choices) {
    if (inner_alone(flags) && !cuda::has_conditional_nodes()) continue;  // a nested flag is then as on a queue, below
    set(flags);
    queue_->replay(recording);
    EXPECT_EQ(values(), expected(flags));
  }
}

/// The nested flag replaces the outer one, so that a queue that is not recorded would do more where only the inner is
/// set.
TEST_F(Recording, IsWhatAQueueDoesWhereTheInnerFlagImpliesTheOuter) {
  for (const Flags& flags : choices) {
    if (inner_alone(flags)) continue;
    set(flags);
    work(*queue_);
    EXPECT_EQ(values(), expected(flags));
  }
}

TEST_F(Recording, ThatFailsLeavesTheQueueAsItWas) {
  const auto fail = [&](Queue& q) {
    q.guarded(flags(), [&](Queue& inner) {
      fill(inner, value(0), 1.0, 1.0);
      throw Error(ErrorCode::unavailable, "on the way");
    });
  };
  EXPECT_THROW((void)queue_->recorded(fail), Error);
  set({1, 1});
  work(*queue_);
  EXPECT_EQ(values(), expected({1, 1}));
  const auto recording = queue_->recorded([&](Queue& q) { work(q); });
  set({1, 0});
  queue_->replay(recording);
  EXPECT_EQ(values(), expected({1, 0}));
}

/// Products of a recording work in the queue's own workspace; several recordings take turns.
TEST_F(Recording, HoldsLibraryProducts) {
  constexpr Index n = 40;
  const dense::Buffer<Cuda> buffer(*queue_, 4 * n * n * 8);
  const auto matrix = [&](Index i) {
    return DeviceMatrix<Cuda, double>{buffer.as<double>() + i * n * n, n, n, n, 0, 1};
  };
  (void)queue_->side();
  const auto products = [&](Queue& q) {
    Queue side = q.side();
    side.follow(q);
    gemm(q, Op::none, Op::none, 1.0, matrix(0), matrix(0), 0.0, matrix(1));
    gemm(side, Op::transpose, Op::none, 2.0, matrix(0), matrix(0), 0.0, matrix(2));
    q.follow(side);
    gemm(q, Op::none, Op::transpose, 1.0, matrix(1), matrix(2), 0.0, matrix(3));
  };
  std::vector<double> a(n * n), direct(3 * n * n), replayed(3 * n * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.0 / static_cast<double>(i + 3);
  queue_->upload(a.data(), matrix(0).data, n * n);
  products(*queue_);
  queue_->download(matrix(1).data, direct.data(), 3 * n * n);
  const auto first = queue_->recorded(products, true), second = queue_->recorded(products, true);
  for (const auto& recording : {first, second, first}) {
    fill(*queue_, matrix(3), 0.0, 0.0);
    queue_->replay(recording);
    queue_->download(matrix(1).data, replayed.data(), 3 * n * n);
    EXPECT_EQ(replayed, direct);
  }
}

}  // namespace
}  // namespace qrane::backend::test
