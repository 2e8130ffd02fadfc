// SPDX-License-Identifier: Apache-2.0
// reflectors(): V, R and tau as LAPACK's geqrf leaves them. Judged by LAPACK's own definition of Q in wide
// arithmetic, by LAPACK's ormqr, and against geqrf itself where the problem determines the result.
#include <lapacke.h>

#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

int geqrf(Dense<float>& a, std::vector<float>& tau) {
  return LAPACKE_sgeqrf(LAPACK_COL_MAJOR, int(a.rows), int(a.cols), a.values.data(), int(a.rows), tau.data());
}
int geqrf(Dense<double>& a, std::vector<double>& tau) {
  return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, int(a.rows), int(a.cols), a.values.data(), int(a.rows), tau.data());
}
int ormqr(char op, Index k, const Dense<float>& v, const Dense<float>& tau, Dense<float>& c) {
  return LAPACKE_sormqr(LAPACK_COL_MAJOR, 'L', op, int(c.rows), int(c.cols), int(k), v.values.data(), int(v.rows),
                        tau.values.data(), c.values.data(), int(c.rows));
}
int ormqr(char op, Index k, const Dense<double>& v, const Dense<double>& tau, Dense<double>& c) {
  return LAPACKE_dormqr(LAPACK_COL_MAJOR, 'L', op, int(c.rows), int(c.cols), int(k), v.values.data(), int(v.rows),
                        tau.values.data(), c.values.data(), int(c.rows));
}

template <class Where>
class QrReflectors : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  static Options lapack(Tree tree = {}, PanelKind kind = PanelKind::automatic) {
    Options o = options_for({Algorithm::automatic, QForm::lapack}, tree);
    o.expert.panel_kind = kind;
    return o;
  }
  /// The ways a panel can be factored here: Cholesky panels need double, whatever the scalar.
  std::vector<PanelKind> kinds() {
    if (!this->context().device().has_double) return {PanelKind::tree};
    return {PanelKind::tree, PanelKind::cholesky};
  }

  /// The thin Q that packed and tau stand for: H_0 H_1 ... I.
  static Dense<T> q_of(const Dense<T>& packed, const Dense<T>& tau) {
    HouseholderQR<Wide<T>> f{Dense<Wide<T>>(packed.rows, tau.rows), {}, {}};
    for (Index j = 0; j < tau.rows; ++j) {
      f.v(j, j) = 1;
      for (Index i = j + 1; i < packed.rows; ++i) f.v(i, j) = packed(i, j);
      f.tau.push_back(tau(j, 0));
    }
    return convert<T>(f.q(tau.rows));
  }

  static Dense<T> r_of(const Dense<T>& packed, Index k) {
    Dense<T> r(k, packed.cols);
    for (Index j = 0; j < packed.cols; ++j)
      for (Index i = 0; i < std::min(k, j + 1); ++i) r(i, j) = packed(i, j);
    return r;
  }
};

TYPED_TEST_SUITE(QrReflectors, Everywhere, Names);

TYPED_TEST(QrReflectors, FactorEveryHostileInput) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{70, 9}, Shape{20, 20}, Shape{19, 18}, Shape{11, 30}, Shape{40, 1}, Shape{1, 6}})
    for (const Tree tree : in_turn({Tree{}, Tree{16, 2, 4}}))
      for (const auto& input : hostile::sweep<T>())
        for (const PanelKind kind : this->kinds()) {
          SCOPED_TRACE(label(input.name, s, {Algorithm::automatic, QForm::lapack}, tree));
          SCOPED_TRACE(kind == PanelKind::tree ? "tree panels" : "Cholesky panels");
          const auto a = input.make(s.rows, s.cols, 21);
          auto f = qr<T>(this->context(), a.view(), this->lapack(tree, kind));
          const auto form = reflectors(f);
          const auto packed = this->host(form.packed), tau = this->host(form.tau);
          ASSERT_TRUE(has_shape(packed, s.rows, s.cols));
          ASSERT_TRUE(has_shape(tau, std::min(s.rows, s.cols), 1));
          EXPECT_TRUE(is_qr_of(a, this->q_of(packed, tau), this->r_of(packed, tau.rows)));
          EXPECT_EQ(this->r_of(packed, tau.rows), this->host(f.r()));
          for (Index j = 0; j < tau.rows; ++j) {
            const double t = static_cast<double>(tau(j, 0));
            EXPECT_TRUE(t == 0 || (t >= 1 - 1e-5 && t <= 2 + 1e-5)) << "tau(" << j << ") = " << t;
          }
        }
}

TYPED_TEST(QrReflectors, AreGeqrfsOnAWellConditionedMatrix) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{150, 20}, Shape{60, 60}, Shape{25, 60}, Shape{39, 33}}) {
    SCOPED_TRACE(to_string(s));
    const auto a = geometric_spectrum<T>(s.rows, s.cols, 5, 4);
    auto want = a;
    std::vector<T> want_tau(static_cast<std::size_t>(std::min(s.rows, s.cols)));
    ASSERT_EQ(geqrf(want, want_tau), 0);
    const auto form = reflectors(qr<T>(this->context(), a.view(), this->lapack({32, 2, 8})));
    const auto packed = this->host(form.packed), tau = this->host(form.tau);
    // signs are determined; values to the condition of the leading columns. A square matrix's last reflector is
    // the identity in geqrf, and may be minus one here.
    const Index sure = std::min(s.cols, s.rows - 1);
    EXPECT_TRUE(columns_agree(columns(packed, 0, sure), columns(want, 0, sure), s.rows, s.cols, 100));
    for (Index j = 0; j < sure; ++j)
      EXPECT_NEAR(tau(j, 0), want_tau[static_cast<std::size_t>(j)], 100 * limit<T>(s.rows, s.cols)) << j;
  }
}

TYPED_TEST(QrReflectors, LapackAppliesThem) {
  using T = typename TypeParam::Scalar;
  const Shape s{90, 30};
  const auto a = random_normal<T>(s.rows, s.cols, 2), c = random_normal<T>(s.rows, 7, 3);
  auto f = qr<T>(this->context(), a.view(), this->lapack({32, 2, 8}));
  const auto form = reflectors(f);
  const auto packed = this->host(form.packed), tau = this->host(form.tau);
  for (const char op : {'N', 'T'}) {
    auto theirs = c, ours = c;
    ASSERT_EQ(ormqr(op, s.cols, packed, tau, theirs), 0);
    op == 'N' ? f.apply_q(ours.view()) : f.apply_qt(ours.view());
    EXPECT_TRUE(columns_agree(ours, theirs, s.rows, s.cols)) << op;
  }
}

TYPED_TEST(QrReflectors, OfLapackGiveTheSameQ) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{90, 30}, Shape{300, 150}, Shape{40, 40}, Shape{20, 35}, Shape{12, 1}, Shape{1, 3}}) {
    SCOPED_TRACE(to_string(s));
    auto packed = random_normal<T>(s.rows, s.cols, 2);
    const auto a = packed, c = random_normal<T>(s.rows, 7, 3);
    const Index k = std::min(s.rows, s.cols);
    std::vector<T> tau(static_cast<std::size_t>(k));
    ASSERT_EQ(geqrf(packed, tau), 0);
    const auto f = qr_from_reflectors(this->context(), std::as_const(packed).view(), tau);
    EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r())));
    Dense<T> taus(k, 1);
    taus.values = tau;
    EXPECT_EQ(this->host(reflectors(f).packed), packed);
    EXPECT_EQ(this->host(reflectors(f).tau), taus);
    for (const char op : {'N', 'T'}) {
      auto theirs = c, ours = c;
      ASSERT_EQ(ormqr(op, k, packed, taus, theirs), 0);
      op == 'N' ? f.apply_q(ours.view()) : f.apply_qt(ours.view());
      EXPECT_TRUE(columns_agree(ours, theirs, s.rows, s.cols)) << op;
    }
  }
}

TYPED_TEST(QrReflectors, NeedOneTauEach) {
  using T = typename TypeParam::Scalar;
  const auto packed = random_normal<T>(9, 4, 1);
  const std::vector<T> tau(3);
  EXPECT_TRUE(refuses([&] { qr_from_reflectors(this->context(), packed.view(), tau); }, ErrorCode::invalid_argument,
                      {"tau", "3 x 1", "4 x 1"}));
}

TYPED_TEST(QrReflectors, OnlyTheLapackFormHasThem) {
  using T = typename TypeParam::Scalar;
  auto f = qr<T>(this->context(), random_normal<T>(9, 4, 1).view());
  EXPECT_TRUE(refuses([&] { reflectors(f); }, ErrorCode::unavailable, {"lapack"}));
}

}  // namespace
}  // namespace qrane::test
