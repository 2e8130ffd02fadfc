// SPDX-License-Identifier: Apache-2.0
// An UpdatableQR from factors that are there.
#include <algorithm>
#include <utility>

#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {
namespace {

template <class Where>
class GivenFactors : public BackendTest<Where> {};
TYPED_TEST_SUITE(GivenFactors, Everywhere, Names);

TYPED_TEST(GivenFactors, UpdatesGoOnFromThem) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const auto& [m, n] : {std::pair<Index, Index>{40, 7}, {7, 7}, {5, 9}, {0, 3}, {4, 0}})
    for (const QForm form : {QForm::thin, QForm::full}) {
      const Dense<T> a = random_normal<T>(m, n, 3), u = random_normal<T>(2, n, 4);
      Options options;
      options.q = form;
      const QR<T> f = qr<T>(context, a.view(), options);
      const Columns columns = form == QForm::full ? Columns::full : Columns::thin;
      const Matrix<T> q = f.q(columns), r = f.r(columns);
      UpdatableQR<T> given = updatable_qr<T>(context, q.view(), r.view(), form);
      EXPECT_EQ(given.plan().q, form);
      given.insert_rows(std::min<Index>(m, 1), u.view());
      UpdatableQR<T> expected = updatable_qr<T>(context, a.view(), options);
      expected.insert_rows(std::min<Index>(m, 1), u.view());
      const Matrix<T> r_given = given.r(), r_expected = expected.r(), q_given = given.q(), q_expected = expected.q();
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < r_given.rows(); ++i) EXPECT_EQ(r_given(i, j), r_expected(i, j));
      for (Index j = 0; j < q_given.cols(); ++j)
        for (Index i = 0; i < m + 2; ++i) EXPECT_EQ(q_given(i, j), q_expected(i, j));
    }
}

TYPED_TEST(GivenFactors, BadShapesAreRefused) {
  using T = typename TypeParam::Scalar;
  const Dense<T> q = random_normal<T>(9, 4, 1), r = random_normal<T>(4, 4, 2), short_r = random_normal<T>(3, 4, 2);
  const auto refused = [&](const Dense<T>& left, const Dense<T>& right, QForm form) {
    try {
      (void)updatable_qr<T>(this->context(), left.view(), right.view(), form);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused(q, short_r, QForm::thin));
  EXPECT_TRUE(refused(q, r, QForm::full));
  EXPECT_TRUE(refused(q, r, QForm::implicit));
  EXPECT_TRUE(refused(q, random_normal<T>(4, 5, 2), QForm::thin));
  EXPECT_FALSE(refused(q, r, QForm::thin));
}

}  // namespace
}  // namespace qrane::test
