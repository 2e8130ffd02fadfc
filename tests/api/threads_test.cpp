// SPDX-License-Identifier: Apache-2.0
// One context a thread; contexts that come and go while others work; callbacks that throw; destruction in every order.
// Meant for ThreadSanitizer, too.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/backends.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

template <class Where>
class Threads : public BackendTest<Where> {};
using Backends = ::testing::Types<On<Backend::cpu, double>, On<Backend::opencl, double>, On<Backend::cuda, double>>;
TYPED_TEST_SUITE(Threads, Backends, Names);

/// What a user may do with a context, all numbers that came out of it.
std::vector<double> everything(const Context& context, std::uint64_t seed) {
  std::vector<double> out;
  const auto keep = [&](const Matrix<double>& a) {
    const Matrix<double> host = context.to_host<double>(a);
    for (Index j = 0; j < host.cols(); ++j) out.insert(out.end(), &host(0, j), &host(0, j) + host.rows());
  };
  const Dense<double> a = random_normal<double>(3000, 40, seed), b = random_normal<double>(3000, 2, seed + 1);
  for (const QForm form : {QForm::implicit, QForm::thin}) {
    Options options;
    options.q = form;
    auto f = updatable_qr<double>(context, a.view(), options);
    keep(f.r());
    keep(f.solve(b.view()).x);
    f.refactor(a.view());
    const Dense<double> rows = random_normal<double>(5, 40, seed + 2);
    f.insert_rows(7, rows.view());
    f.delete_rows(100, 20);
    keep(f.r());
  }
  keep(least_squares<double>(context, a.view(), b.view()).x);
  keep(svd<double>(context, a.view()).s);
  RobustPcaOptions few;
  few.max_iterations = 4;
  keep(robust_pca<double>(context, a.view(), few).low_rank);
  const Triplets sparse_a = random_sparse(400, 150, 0.03, static_cast<unsigned>(seed));
  const Dense<double> sparse_b = random_normal<double>(400, 1, seed + 3);
  const auto factor = sparse::analyze(context, sparse_a.view()).factor(sparse_a.view());
  keep(factor.solve(sparse_b.view()).x);
  return out;
}

/// body(i) in so many threads; what one throws is thrown here.
void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        errors[static_cast<std::size_t>(i)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

ContextOptions on(Backend backend) {
  ContextOptions options;
  options.backend = backend;
  options.threads = 2;
  return options;
}

TYPED_TEST(Threads, EachWithItsContextGetsWhatOneAloneGets) {
  const Context alone(on(TypeParam::backend));
  const std::array expected{everything(alone, 1), everything(alone, 2)};
  std::array<std::vector<double>, 4> got;
  in_threads(4, [&](int i) {
    const Context mine(on(TypeParam::backend));
    got[static_cast<std::size_t>(i)] = everything(mine, static_cast<std::uint64_t>(1 + i % 2));
  });
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i % 2].size()) << "thread " << i;
    const auto [mine, others] = std::mismatch(got[i].begin(), got[i].end(), expected[i % 2].begin());
    EXPECT_TRUE(mine == got[i].end()) << "thread " << i << ", number " << mine - got[i].begin() << " of "
                                      << got[i].size() << ": " << *mine << " where alone it is " << *others;
  }
}

TYPED_TEST(Threads, ContextsComeAndGoWhileOthersWork) {
  const std::vector<double> expected = everything(Context(on(TypeParam::backend)), 1);
  std::atomic<bool> done = false;
  std::thread coming_and_going([&] {
    const Dense<double> a = random_normal<double>(300, 9, 5);
    while (!done) {
      const Context brief(on(TypeParam::backend));
      (void)qr<double>(brief, a.view()).r();
    }
  });
  std::vector<double> got;
  in_threads(2, [&](int i) {
    const std::vector<double> mine = everything(Context(on(TypeParam::backend)), 1);
    if (i == 0) got = mine;
  });
  done = true;
  coming_and_going.join();
  EXPECT_EQ(got, expected);
}

TYPED_TEST(Threads, CallbacksThatThrowLeaveTheContextUsable) {
  in_threads(2, [&](int) {
    const Context context(on(TypeParam::backend));
    const Dense<double> a = random_normal<double>(600, 20, 3);
    const std::vector<double> before = everything(context, 4);
    RobustPcaOptions stops;
    stops.on_iteration = [](const RobustPcaProgress&) -> bool { throw std::domain_error("enough"); };
    EXPECT_THROW((void)robust_pca<double>(context, a.view(), stops), std::domain_error);
    const Triplets sparse_a = random_sparse(400, 150, 0.05, 3);
    const sparse::Analysis analysis = sparse::analyze(context, sparse_a.view());
    sparse::FactorOptions options;
    options.on_progress = [](double, double) { throw std::domain_error("enough"); };
    EXPECT_THROW((void)analysis.factor(sparse_a.view(), options), std::domain_error);
    (void)analysis.factor(sparse_a.view());
    EXPECT_EQ(everything(context, 4), before);
  });
}

/// Whatever was made from a context keeps what it needs, and goes in any order, in any thread.
TYPED_TEST(Threads, DestructionInEveryOrder) {
  const Dense<double> a = random_normal<double>(200, 12, 6);
  const Triplets sparse_a = random_sparse(90, 40, 0.1, 6);
  std::array<int, 5> order{};
  std::iota(order.begin(), order.end(), 0);
  do {
    std::optional<Context> context(on(TypeParam::backend));
    std::optional<Matrix<double>> device(context->to_device<double>(a.view()));
    std::optional<QR<double>> f(qr<double>(*context, device->view()));
    std::optional<sparse::Analysis> analysis(sparse::analyze(*context, sparse_a.view()));
    std::optional<sparse::Factor<double>> factor(analysis->factor(sparse_a.view()));
    std::thread other([&] {
      for (const int which : order) {
        if (which == 0) context.reset();
        if (which == 1) device.reset();
        if (which == 2) f.reset();
        if (which == 3) analysis.reset();
        if (which == 4) factor.reset();
        if (f && which == 0) {
          EXPECT_EQ(f->r().rows(), 12);
        }
        if (factor && which == 3) {
          EXPECT_GT(factor->rank(), 0);
        }
      }
    });
    other.join();
  } while (std::next_permutation(order.begin(), order.end()) && (this->thorough || order[0] == 0));
}

#ifndef NDEBUG
/// A debug build says so when two threads use one context at once.
TEST(Misuse, OneContextFromTwoThreadsIsRefused_cpu_) {
  const Context shared(on(Backend::cpu));
  const Dense<double> a = random_normal<double>(20000, 30, 7);
  std::atomic<int> refused = 0, rounds = 0;
  in_threads(2, [&](int) {
    while (refused == 0 && rounds < 10000) {
      ++rounds;
      try {
        (void)qr<double>(shared, a.view());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
        ++refused;
      }
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_EQ(qr<double>(shared, a.view()).r().rows(), 30);
}
#endif

}  // namespace
}  // namespace qrane::test
