// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements: offsets of 32 bits anywhere would show. The matrix is a stack of k copies of one
// block B, whose R is known from B's: sqrt(k) R_B up to signs. Skipped where memory does not suffice.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrLarge : public BackendTest<Where> {};
using FloatOnDevices = ::testing::Types<On<Backend::cpu, float>, On<Backend::cuda, float>>;
TYPED_TEST_SUITE(QrLarge, FloatOnDevices, Names);

TYPED_TEST(QrLarge, MoreThanTwoToTheThirtyOneElements) {
  using T = float;
  const Context& context = this->context();
  const Index block_rows = Index{1} << 20, n = 16, copies = 131;
  const Index rows = block_rows * copies;
  ASSERT_GT(rows * n, Index{1} << 31);
  const double needed = 5.0 * static_cast<double>(rows * n) * sizeof(T);
  const DeviceInfo device = context.device();
  if (static_cast<double>(device.free_bytes) < needed || (!device.is_gpu && device.compute_units < 8))
    GTEST_SKIP() << "needs " << needed / 1e9 << " GB and a GPU or 8 cores; " << device.name << " has "
                 << static_cast<double>(device.free_bytes) / 1e9 << " GB free";

  auto b = random_normal<T>(block_rows, n, 1);
  for (Index i = 0; i < n; ++i) b(i, i) += 100;  // no sign left to chance
  Matrix<T> a = context.template allocate<T>(rows, n);
  for (Index k = 0; k < copies; ++k) context.copy<T>(b.view(), block(a.view(), k * block_rows, 0, block_rows, n));
  const auto r_of_block = householder_qr(widen(b)).r;

  for (const Combo combo : {Combo{Algorithm::automatic, QForm::none}, Combo{Algorithm::tsqr, QForm::none},
                            Combo{Algorithm::automatic, QForm::thin}}) {
    SCOPED_TRACE(to_string(combo));
    auto f = qr<T>(context, std::as_const(a).view(), options_for(combo));
    auto r = this->host(f.r());
    Dense<T> want(n, n);
    for (Index i = 0; i < n; ++i) {
      const bool flip = static_cast<double>(r(i, i)) * static_cast<double>(r_of_block(i, i)) < 0;
      for (Index j = i; j < n; ++j) {
        want(i, j) = static_cast<T>(std::sqrt(static_cast<double>(copies)) * r_of_block(i, j));
        if (flip) r(i, j) = -r(i, j);
      }
    }
    EXPECT_TRUE(columns_agree(r, want, rows, n));
    if (combo.q != QForm::thin) continue;
    // the last rows of Q times R are the last rows of the block
    const Index tail = 1000;
    const Matrix<T> q = f.q();
    Dense<T> q_tail(tail, n), a_tail(tail, n);
    context.copy<T>(block(q.view(), rows - tail, 0, tail, n), q_tail.view());
    context.copy<T>(block(std::as_const(a).view(), rows - tail, 0, tail, n), a_tail.view());
    EXPECT_LE(residual(a_tail, q_tail, this->host(f.r())), 100);  // in units of the tail's own, shorter columns
  }
}

}  // namespace
}  // namespace qrane::test
