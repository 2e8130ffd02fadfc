// SPDX-License-Identifier: Apache-2.0
// Calls that the drop-in forwards: workspace queries, wrong arguments (xerbla and info are LAPACK's), calls from
// several threads; and what forwarding costs.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <lapack/tests/fortran.hpp>

#include "support/hostile.hpp"
#include "support/measures.hpp"

namespace {
std::string wrong_routine;
int wrong_argument = 0;
}  // namespace

/// LAPACK's error handler, which programs may replace.
extern "C" __attribute__((visibility("default"))) void xerbla_(const char* name, const int* argument,
                                                               std::size_t length) {
  wrong_routine.assign(name, length);
  wrong_argument = *argument;
}

namespace qrane::test {
namespace {

using Clock = std::chrono::steady_clock;

TEST(LapackCalls, WorkspaceQueriesAreLapacks) {
  const int m = 500, n = 60, ask = -1;
  double ours = 0, theirs = 0;
  int info = -99;
  for (const char* name : {"geqrf", "gelqf"}) {
    Fortran<double>::exported(name)(&m, &n, nullptr, &m, nullptr, &ours, &ask, &info);
    EXPECT_EQ(info, 0);
    Fortran<double>::underneath(name)(&m, &n, nullptr, &m, nullptr, &theirs, &ask, &info);
    EXPECT_EQ(ours, theirs) << name;
    EXPECT_GE(ours, n);
  }
}

TEST(LapackCalls, WrongArgumentsReachXerbla) {
  const int m = 5, n = 3, bad = -1, lwork = 100;
  double a[15] = {}, tau[3], work[100];
  int info = 0;
  const auto geqrf = Fortran<double>::exported("geqrf");
  struct Case {
    const int *m, *n, *lda, *lwork;
    int argument;
  };
  const int short_ld = 4, short_work = 2;
  for (const Case c : {Case{&bad, &n, &m, &lwork, 1}, Case{&m, &bad, &m, &lwork, 2}, Case{&m, &n, &short_ld, &lwork, 4},
                       Case{&m, &n, &m, &short_work, 7}}) {
    wrong_argument = 0;
    geqrf(c.m, c.n, a, c.lda, tau, work, c.lwork, &info);
    EXPECT_EQ(info, -c.argument);
    EXPECT_EQ(wrong_argument, c.argument);
    EXPECT_EQ(wrong_routine.substr(0, 6), "DGEQRF");
  }
}

TEST(LapackCalls, SeveralThreadsGetTheirOwnResults) {
  const int m = 80, n = 20, lwork = 2000;
  std::vector<std::thread> threads;
  std::vector<::testing::AssertionResult> results(4, ::testing::AssertionFailure());
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const auto a = random_normal<double>(m, n, 10 * i + static_cast<std::size_t>(repeat));
        auto q = a;
        std::vector<double> tau(n), work(lwork);
        int info = 0;
        Fortran<double>::exported("geqrf")(&m, &n, q.values.data(), &m, tau.data(), work.data(), &lwork, &info);
        Dense<double> r(n, n);
        for (Index j = 0; j < n; ++j) std::copy_n(q.column(j), j + 1, r.column(j));
        Fortran<double>::exported("orgqr")(&m, &n, &n, q.values.data(), &m, tau.data(), work.data(), &lwork, &info);
        results[i] = is_qr_of(a, q, r);
        if (!results[i]) return;
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_TRUE(result);
}

/// The fastest of many calls of a matrix without rows, which LAPACK returns from at once.
double nanoseconds_of_an_empty_call(const Fortran<double>& routine) {
  const int m = 0, n = 1, lwork = 1;
  double a = 0, tau = 0, work = 0;
  int info = 0;
  double best = 1e9;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) routine(&m, &n, &a, &n, &tau, &work, &lwork, &info);
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / 100);
  }
  return best;
}

TEST(LapackCalls, ForwardingTakesLessThanAMicrosecond) {
  const double added = nanoseconds_of_an_empty_call(Fortran<double>::exported("geqrf")) -
                       nanoseconds_of_an_empty_call(Fortran<double>::underneath("geqrf"));
  RecordProperty("nanoseconds", std::to_string(added));
  EXPECT_LT(added, 1000);
}

}  // namespace
}  // namespace qrane::test
