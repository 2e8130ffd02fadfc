// SPDX-License-Identifier: Apache-2.0
// The k-th allocation of a call fails, each k in turn: the call throws, and afterwards everything works as before. The
// program's operator new is replaced here; tools/fail-allocations does the same to the command line.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "support/backends.hpp"
#include "support/sparse.hpp"

namespace {
std::atomic<long> until_failure{-1};  // allocations that succeed before one fails; negative: none fails

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (until_failure.load(std::memory_order_relaxed) >= 0 && until_failure.fetch_sub(1) == 0) throw std::bad_alloc();
  void* const p = alignment <= alignof(std::max_align_t)
                      ? std::malloc(bytes)
                      : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
// Not inlined: compilers would take free() of what new returned for an error.
[[gnu::noinline]] void release(void* p) noexcept { std::free(p); }
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate(bytes, static_cast<std::size_t>(a)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace qrane::test {
namespace {

constexpr std::int64_t limit_bytes = 64 << 20;

/// Each k (in a small run about 200 of them): `call` fails at the k-th allocation, and works on the same context then.
void fail_each(const std::function<std::vector<double>(const Context&)>& call) {
  ContextOptions options;
  options.backend = Backend::cpu;
  options.threads = 3;
  options.memory_limit_bytes = limit_bytes;
  const Context context(options);
  const std::vector<double> expected = call(context);
  until_failure = 1'000'000'000;
  (void)call(context);
  const long count = 1'000'000'000 - until_failure.exchange(-1);
  const long step = small_run() ? std::max(1L, count / 200) : 1;
  for (long k = 0; k < count; k += step) {
    std::vector<double> got;
    try {
      until_failure = k;
      got = call(context);
    } catch (const Error& error) {
      until_failure = -1;
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << "k = " << k << ": " << error.what();
    } catch (const std::bad_alloc&) {
    }
    until_failure = -1;
    if (!got.empty()) {
      EXPECT_EQ(got, expected) << "k = " << k;
    }
    ASSERT_EQ(call(context), expected) << "after k = " << k;
  }
  // nothing of a failed call is held: all of the limit is there, but for what a context keeps for the next call
  EXPECT_EQ(context.allocate<double>(limit_bytes / 8 - 32, 1).rows(), limit_bytes / 8 - 32);
}

void keep(std::vector<double>& out, const Matrix<double>& a) {
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i) out.push_back(a(i, j));
}

TEST(OutOfMemory, FactorAndSolve) {
  const Dense<double> a = random_normal<double>(700, 70, 1), b = random_normal<double>(700, 2, 2);
  for (const QForm form : {QForm::implicit, QForm::thin, QForm::full, QForm::lapack}) {
    fail_each([&](const Context& context) {
      Options options;
      options.q = form;
      auto f = qr<double>(context, a.view(), options);
      std::vector<double> out;
      keep(out, f.r());
      keep(out, f.solve(b.view()).x);
      out.push_back(static_cast<double>(f.rank().rank));
      return out;
    });
  }
}

/// An update that fails leaves the factorization as it was.
TEST(OutOfMemory, Updates) {
  const Dense<double> a = random_normal<double>(60, 9, 3), u = random_normal<double>(4, 9, 4),
                      c = random_normal<double>(60, 3, 5);
  for (const QForm form : {QForm::implicit, QForm::thin, QForm::full}) {
    fail_each([&](const Context& context) {
      Options options;
      options.q = form;
      auto f = updatable_qr<double>(context, a.view(), options);
      const auto tried = [&](auto change) {
        const Index rows = f.rows(), cols = f.cols();
        try {
          change();
        } catch (...) {
          EXPECT_EQ(f.rows(), rows);
          EXPECT_EQ(f.cols(), cols);
          throw;
        }
      };
      tried([&] { f.insert_columns(2, c.view()); });
      tried([&] { f.delete_columns(2, 3); });
      tried([&] { f.insert_rows(5, u.view()); });
      tried([&] { f.delete_rows(5, 4); });
      std::vector<double> out;
      keep(out, f.r());
      return out;
    });
  }
}

TEST(OutOfMemory, SvdAndRobustPca) {
  const Dense<double> a = random_normal<double>(300, 20, 6);
  fail_each([&](const Context& context) {
    std::vector<double> out;
    keep(out, svd<double>(context, a.view()).s);
    RobustPcaOptions few;
    few.max_iterations = 2;
    keep(out, robust_pca<double>(context, a.view(), few).low_rank);
    return out;
  });
}

TEST(OutOfMemory, Sparse) {
  const Triplets a = random_sparse(900, 400, 0.02, 7);
  const Dense<double> b = random_normal<double>(900, 1, 8);
  fail_each([&](const Context& context) {
    const auto factor = sparse::analyze(context, a.view()).factor(a.view());
    std::vector<double> out;
    keep(out, factor.solve(b.view()).x);
    return out;
  });
}

}  // namespace
}  // namespace qrane::test
