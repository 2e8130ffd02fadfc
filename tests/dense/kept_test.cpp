// SPDX-License-Identifier: Apache-2.0
// What a context keeps between calls (dense/kept.hpp): repeated calls give the bits of first ones, whatever came
// between, and memory that is kept is there for whoever needs it.
#include <thread>

#include "cpu/whole.hpp"
#include "dense/buffer.hpp"
#include "dense/kept.hpp"
#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class KeptTest : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using Test = BackendTest<Where>;

  static std::vector<T> together(const Context& context, std::initializer_list<const Matrix<T>*> parts) {
    std::vector<T> all;
    for (const Matrix<T>* part : parts) {
      const auto values = Test::host_of(context, *part).values;
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  static std::vector<T> svd_of(const Context& context, MatrixView<const T> a, const SvdOptions& options = {}) {
    const Svd<T> out = svd<T>(context, a, options);
    return together(context, {&out.u, &out.s, &out.vt});
  }
  static std::vector<T> solution_of(const Context& context, MatrixView<const T> a) {
    Dense<T> b(a.rows, 2);
    for (Index i = 0; i < b.rows; ++i) b(i, 0) = T(i % 7), b(i, 1) = T(1);
    const auto out = least_squares<T>(context, a, std::as_const(b).view());
    std::vector<T> all = together(context, {&out.x});
    for (Index c = 0; c < 2; ++c) all.push_back(static_cast<T>(out.residual_norms.data()[c]));
    return all;
  }
  static std::vector<T> of(const Context& context, bool svd, MatrixView<const T> a) {
    return svd ? svd_of(context, a) : solution_of(context, a);
  }
};

TYPED_TEST_SUITE(KeptTest, Everywhere, Names);

constexpr Shape shapes[] = {{400, 24}, {24, 400}, {90, 60}, {1200, 3}};

/// The same memory with other numbers in it, through the Gram matrix, R and the tree, often enough for recordings.
TYPED_TEST(KeptTest, ChangedDataGiveWhatAFirstCallGives) {
  using T = typename TypeParam::Scalar;
  for (const bool with_svd : {true, false})
    for (const Shape s : in_turn(shapes)) {
      const Context context = fresh_context(this->backend);
      Matrix<T> a = context.allocate<T>(s.rows, s.cols);
      for (int call = 0; call < (this->thorough ? 6 : 3); ++call) {
        SCOPED_TRACE((with_svd ? "svd of " : "least squares of ") + to_string(s) + ", call " + std::to_string(call));
        const auto data = call % 3 == 2   ? geometric_spectrum<T>(s.rows, s.cols, 1e6, 5)
                          : call % 3 == 1 ? hostile::product<T>(s.rows, s.cols, 6)
                                          : random_normal<T>(s.rows, s.cols, static_cast<unsigned>(call));
        context.copy<T>(data.view(), a.view());
        EXPECT_EQ(this->of(context, with_svd, std::as_const(a).view()),
                  this->of(fresh_context(this->backend), with_svd, std::as_const(data).view()));
      }
    }
}

/// More shapes and wishes than are kept, by turns, from host and device memory.
TYPED_TEST(KeptTest, ShapesTakeTurns) {
  using T = typename TypeParam::Scalar;
  const Context context = fresh_context(this->backend);
  std::vector<Dense<T>> data;
  std::vector<std::vector<T>> want;
  for (Index k = 0; k < (this->thorough ? 10 : 4); ++k) {
    data.push_back(random_normal<T>(60 + 25 * k, 5 + k % 3, static_cast<unsigned>(k)));
    for (const bool with_svd : {true, false})
      want.push_back(this->of(fresh_context(this->backend), with_svd, std::as_const(data.back()).view()));
  }
  for (int round = 0; round < 3; ++round) {
    auto expected = want.begin();
    for (const auto& a : data)
      for (const bool with_svd : {true, false})
        EXPECT_EQ(this->of(context, with_svd, a.view()), *expected++) << "round " << round << ", " << a.rows << " rows";
  }
  SvdOptions values;
  values.vectors = false;
  values.algorithm = Algorithm::tsqr;
  EXPECT_EQ(this->svd_of(context, data[0].view(), values),
            this->svd_of(fresh_context(this->backend), data[0].view(), values));
}

TYPED_TEST(KeptTest, ACallThatFailsLeavesNothingBehind) {
  using T = typename TypeParam::Scalar;
  const Context context = fresh_context(this->backend);
  const auto good = random_normal<T>(150, 12, 1);
  auto bad = good;
  bad(3, 4) = std::numeric_limits<T>::infinity();
  const auto deficient = hostile::product<T>(150, 12, 2);
  const auto first = this->svd_of(context, good.view());
  const auto solved = this->solution_of(context, good.view());
  for (int repeat = 0; repeat < 4; ++repeat) {
    SvdOptions finite;
    finite.check_finite = true;
    EXPECT_TRUE(refuses([&] { svd<T>(context, std::as_const(bad).view(), finite); }, ErrorCode::not_finite, {"row 3"}));
    LeastSquaresOptions full;
    full.solve.refuse_deficient = true;
    EXPECT_TRUE(refuses([&] { least_squares<T>(context, deficient.view(), good.view(), full); },
                        ErrorCode::rank_deficient, {"rank"}));
    EXPECT_EQ(this->svd_of(context, good.view()), first);
    EXPECT_EQ(this->solution_of(context, good.view()), solved);
  }
}

TYPED_TEST(KeptTest, ContextsOfDifferentThreadsKeepApart) {
  using T = typename TypeParam::Scalar;
  const auto a = random_normal<T>(300, 20, 1);
  const auto want = this->svd_of(fresh_context(this->backend), a.view());
  const auto solved = this->solution_of(fresh_context(this->backend), a.view());
  int wrong[2] = {};
  std::vector<std::thread> threads;
  for (int& mine : wrong)
    threads.emplace_back([&] {
      const Context context = fresh_context(this->backend);
      for (int call = 0; call < 5; ++call) {
        mine += this->svd_of(context, a.view()) != want;
        mine += this->solution_of(context, a.view()) != solved;
        (void)backend::Reserve::give_back_all();  // as an allocation that fails does, and for both
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

/// As many pieces fit after calls whose memory is kept as after one call and nothing kept.
TYPED_TEST(KeptTest, MemoryIsThereForWhoeverNeedsIt) {
  using T = typename TypeParam::Scalar;
  constexpr Index limit = Index{64} << 20;
  const auto pieces = [&](const Context& context) {
    std::vector<Matrix<T>> all;
    const Thrown end = thrown_by([&] {
      while (true) all.push_back(context.allocate<T>((Index{1} << 18) / Index(sizeof(T)), 1));
    });
    EXPECT_EQ(end.code, ErrorCode::out_of_memory) << end.message;
    return all.size();
  };
  const auto a = random_normal<T>(2000, 8, 1), b = random_normal<T>(800, 40, 2);
  const Context once = fresh_context(this->backend, limit), often = fresh_context(this->backend, limit);
  const auto first = this->svd_of(once, b.view());
  (void)this->solution_of(once, a.view());
  (void)backend::Reserve::give_back_all();
  const auto free = pieces(once);
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(this->svd_of(often, b.view()), first);
    (void)this->solution_of(often, a.view());
    (void)this->svd_of(often, a.view());
  }
  EXPECT_EQ(pieces(often), free);
  EXPECT_EQ(this->svd_of(often, b.view()), first);
}

using Cpu = backend::Cpu;
using KeptOnCpu = dense::Kept<Cpu>;

/// Device memory as a thing that is kept.
struct Piece {
  dense::Buffer<Cpu> memory;
  Index bytes() const { return memory.bytes(); }
  std::byte* address() const { return memory.as<std::byte>(); }
};
struct OtherPiece : Piece {};

template <class Thing = Piece>
KeptOnCpu::Lease<Thing> piece(KeptOnCpu& kept, const backend::cpu::Queue& queue, Index bytes) {
  return kept.lease<Thing>({bytes}, [&] { return Thing{dense::Buffer<Cpu>(queue, bytes)}; });
}

TEST(KeptOnCpu, TheSameThingComesBack) {
  backend::cpu::Queue queue(1);
  KeptOnCpu kept(queue, 1 << 20);
  const auto address = [&](Index bytes, bool keep) {
    auto first = piece(kept, queue, bytes);
    const auto second = piece(kept, queue, bytes);  // which is taken is nobody else's
    EXPECT_NE(first->address(), second->address());
    std::byte* const p = first->address();
    if (keep) first.keep();
    return p;
  };
  std::byte* const first = address(4096, true);
  EXPECT_EQ(kept.bytes(), 4096);
  EXPECT_EQ(address(4096, true), first);
  EXPECT_NE(address(8192, false), first);
  EXPECT_EQ(address(4096, true), first);
  EXPECT_NE(piece<OtherPiece>(kept, queue, 4096)->address(), first) << "another type";
  EXPECT_TRUE(kept.give_back());
  EXPECT_EQ(kept.bytes(), 0);
  EXPECT_FALSE(kept.give_back());
  (void)address(8192, false);
  EXPECT_FALSE(kept.give_back()) << "what was not to be kept";
}

TEST(KeptOnCpu, NoMoreThanItsBounds) {
  backend::cpu::Queue queue(1, 1 << 20);
  KeptOnCpu kept(queue, 100000);
  const auto keep = [&](Index bytes) { piece(kept, queue, bytes).keep(); };
  keep(100001);
  EXPECT_FALSE(kept.give_back());
  const Index before = queue.available_bytes();
  for (Index k = 0; k < 5; ++k) keep(30000 + 256 * k);
  EXPECT_GE(queue.available_bytes(), before - 100000);
  EXPECT_LE(queue.available_bytes(), before - 90000);
  for (Index k = 0; k < 100; ++k) keep(256 * (k + 1));
  EXPECT_GE(queue.available_bytes(), before - 100000);
  kept.set_limit(30000);
  EXPECT_GE(queue.available_bytes(), before - 30000);
  // an allocation that fails without it gets what is kept, and one that fails anyhow says so
  const dense::Buffer<Cpu> all(queue, before);
  EXPECT_EQ(queue.available_bytes(), 0);
  EXPECT_EQ(thrown_by([&] { dense::Buffer<Cpu>(queue, 1); }).code, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace qrane::test
