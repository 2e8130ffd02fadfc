// SPDX-License-Identifier: Apache-2.0
// What a BatchQR gives besides R and Q: apply, reflectors, solutions, results in the caller's batches, factoring in
// place, batches by tables of addresses. Every matrix must do as well as alone, and none may touch what is not its own.
#include <lapacke.h>

#include <bit>

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

/// Some whole in one launch where the backend does that, some of one panel, some of several and of several blocks.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {{1, 1},   {5, 3},   {3, 5},   {16, 16},  {40, 7},
                                          {64, 20}, {70, 33}, {90, 90}, {150, 140}};
  return list;
}

template <class Where>
class BatchApply : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  static Dense<T> one(const Dense<T>& all, Index b, Index cols) { return columns(all, b * cols, cols); }
  static Dense<T> hostile_batch(Shape s, Index count) {
    Dense<T> all(s.rows, 0);
    const auto& inputs = hostile::inputs<T>();
    for (Index b = 0; b < count; ++b) {
      const auto a = inputs[static_cast<std::size_t>(b) % inputs.size()].make(s.rows, s.cols, std::uint64_t(b) + 9);
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
      all.cols += s.cols;
    }
    return all;
  }
  /// Matrices side by side as a batch.
  static BatchView<const T> batch(const Dense<T>& all, Index cols) {
    const MatrixView<const T> first(all.values.data(), all.rows, cols, std::max<Index>(all.rows, 1));
    return {first, all.rows * cols, all.cols / std::max<Index>(cols, 1), nullptr};
  }
  static BatchView<T> batch(Dense<T>& all, Index cols) {
    const MatrixView<T> first(all.values.data(), all.rows, cols, std::max<Index>(all.rows, 1));
    return {first, all.rows * cols, all.cols / std::max<Index>(cols, 1), nullptr};
  }
  /// Matrices side by side in device memory.
  static BatchView<T> batch(Matrix<T>& all, Index cols) {
    MatrixView<T> first = all.view();
    first.cols = cols;
    return {first, all.ld() * cols, all.cols() / cols, nullptr};
  }
  static Options with(QForm q, Algorithm algorithm = Algorithm::automatic) { return options_for({algorithm, q}); }
  static const std::vector<Algorithm>& algorithms() {
    static const std::vector<Algorithm> list = {Algorithm::automatic, Algorithm::householder, Algorithm::caqr};
    return list;
  }
};

TYPED_TEST_SUITE(BatchApply, Everywhere, Names);

/// Qᵀ A is R, and Q undoes it; C may be wider than A, in host or device memory.
TYPED_TEST(BatchApply, QTransposedTimesAIsR) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : shapes())
    for (const Algorithm algorithm : in_turn(this->algorithms())) {
      SCOPED_TRACE(to_string(s) + " " + qrane::to_string(algorithm));
      const Index count = small_run() ? 2 : 5, k = std::min(s.rows, s.cols);
      const auto a = this->hostile_batch(s, count);
      const auto f = qr<T>(this->context(), this->batch(a, s.cols), this->with(QForm::implicit, algorithm));
      const auto r = this->host(f.r());
      auto c = a;
      f.apply_qt(this->batch(c, s.cols));
      for (Index b = 0; b < count; ++b) {
        Dense<T> full(s.rows, s.cols);
        for (Index j = 0; j < s.cols; ++j)
          for (Index i = 0; i < std::min(k, j + 1); ++i) full(i, j) = r(i, b * s.cols + j);
        EXPECT_TRUE(columns_agree(this->one(c, b, s.cols), full, s.rows, s.cols, 3)) << b;
      }
      Matrix<T> device = this->context().template to_device<T>(std::as_const(c).view());
      f.apply_q(this->batch(device, s.cols));
      EXPECT_TRUE(columns_agree(this->host(device), a, s.rows, s.cols, 3));
    }
}

TYPED_TEST(BatchApply, ManyColumnsAtATime) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{20, 6}, Shape{60, 40}}) {
    const Index count = small_run() ? 1 : 3, wide = 150;
    const auto f = qr<T>(this->context(), this->batch(random_normal<T>(s.rows, s.cols * count, 1), s.cols));
    const auto c = random_normal<T>(s.rows, wide * count, 2);
    auto back = c;
    f.apply_qt(this->batch(back, wide));
    for (Index j = 0; j < wide * count; ++j)
      EXPECT_NEAR(double(column_norm(widen(back), j) / column_norm(widen(c), j)), 1, limit<T>(s.rows, s.cols));
    f.apply_q(this->batch(back, wide));
    EXPECT_TRUE(columns_agree(back, c, s.rows, s.cols, 2));
  }
}

TYPED_TEST(BatchApply, ReflectorsAreGeqrfs) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{12, 5}, Shape{33, 32}, Shape{100, 40}, Shape{150, 140}, Shape{6, 11}}) {
    SCOPED_TRACE(to_string(s));
    const Index count = 4, k = std::min(s.rows, s.cols), sure = std::min(s.cols, s.rows - 1);
    Dense<T> all(s.rows, 0);
    for (Index b = 0; b < count; ++b) {
      const auto a = geometric_spectrum<T>(s.rows, s.cols, 5, std::uint64_t(b) + 4);
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
      all.cols += s.cols;
    }
    const auto f = qr<T>(this->context(), this->batch(all, s.cols), this->with(QForm::lapack));
    const auto reflectors = f.reflectors();
    const auto packed = this->host(reflectors.packed), tau = this->host(reflectors.tau);
    ASSERT_TRUE(has_shape(packed, s.rows, s.cols * count));
    ASSERT_TRUE(has_shape(tau, k, count));
    for (Index b = 0; b < count; ++b) {
      auto want = this->one(all, b, s.cols);
      std::vector<T> want_tau(static_cast<std::size_t>(k));
      ASSERT_EQ(geqrf(want, want_tau), 0);
      EXPECT_TRUE(columns_agree(columns(packed, b * s.cols, sure), columns(want, 0, sure), s.rows, s.cols, 100));
      for (Index j = 0; j < std::min(sure, k); ++j)
        EXPECT_NEAR(tau(j, b), want_tau[static_cast<std::size_t>(j)], 100 * limit<T>(s.rows, s.cols)) << j;
    }
    Dense<T> into(s.rows, s.cols * count), tau_into(k, count);
    f.reflectors_into(this->batch(into, s.cols), this->batch(tau_into, 1));
    EXPECT_EQ(into, packed);
    EXPECT_EQ(tau_into, tau);
  }
}

/// Results into strided batches with slack, canaries between them.
TYPED_TEST(BatchApply, ResultsStayWithinTheirMatrices) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Shape s : {Shape{13, 5}, Shape{60, 40}}) {
    const Index count = 3, k = std::min(s.rows, s.cols), ld = s.rows + 3, stride = ld * s.cols + 5;
    const auto a = this->hostile_batch(s, count);
    const auto f = qr<T>(context, this->batch(a, s.cols));
    const auto r = this->host(f.r()), q = this->host(f.q());
    for (const bool on_device : {false, true})
      for (const bool is_q : {false, true}) {
        const Index rows = is_q ? s.rows : k, cols = is_q ? k : s.cols;
        Dense<T> memory(stride * count + 1, 1, T(77));
        Matrix<T> device;
        MatrixView<T> first(memory.values.data() + 1, rows, cols, ld);
        if (on_device) {
          device = context.template to_device<T>(std::as_const(memory).view());
          first = block(device.view(), 1, 0, rows, cols);
          first.ld = ld;
        }
        const BatchView<T> out{first, stride, count, nullptr};
        is_q ? f.q_into(out) : f.r_into(out);
        if (on_device) memory = this->host(device);
        const auto& want = is_q ? q : r;
        for (Index e = 0; e < memory.rows; ++e) {
          const Index at = e - 1, b = e > 0 ? at / stride : 0, i = e > 0 ? at % stride % ld : -1,
                      j = e > 0 ? at % stride / ld : -1;
          const bool inside = e > 0 && i < rows && j < cols;
          ASSERT_EQ(memory(e, 0), inside ? want(i, b * cols + j) : T(77)) << "element " << e;
        }
      }
  }
}

TYPED_TEST(BatchApply, InPlaceIsAsGood) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : shapes())
    for (const bool beside :
         in_turn({false, true})) {  // one after the other, or one under the other in one tall matrix
      SCOPED_TRACE(to_string(s) + (beside ? " side by side" : ""));
      const Index count = 4;
      const auto a = this->hostile_batch(s, count);
      const auto want = qr<T>(this->context(), this->batch(a, s.cols), this->with(QForm::lapack));
      Dense<T> laid = a;
      if (beside) {
        laid = Dense<T>(s.rows * count, s.cols);
        for (Index b = 0; b < count; ++b)
          for (Index j = 0; j < s.cols; ++j)
            for (Index i = 0; i < s.rows; ++i) laid(b * s.rows + i, j) = a(i, b * s.cols + j);
      }
      Matrix<T> device = this->context().template to_device<T>(std::as_const(laid).view());
      BatchView<T> view = this->batch(device, s.cols);
      if (beside) {
        view.first.rows = s.rows;
        view.stride = s.rows;
        view.count = count;
      }
      const auto f = qr_in_place<T>(this->context(), view, this->with(QForm::lapack));
      const Index k = std::min(s.rows, s.cols);
      const auto q = this->host(f.q()), r = this->host(f.r());
      for (Index b = 0; b < count; ++b)
        EXPECT_TRUE(is_qr_of(this->one(a, b, s.cols), this->one(q, b, k), this->one(r, b, s.cols))) << b;
      if (beside) continue;  // a library's products may round otherwise where alignment differs
      EXPECT_EQ(r, this->host(want.r()));
      Dense<T> tau(k, count);
      f.reflectors_into({}, this->batch(tau, 1));
      EXPECT_EQ(tau, this->host(want.reflectors().tau));
    }
}

/// Addresses in host memory, and where the backend has addresses in device memory, there too.
TYPED_TEST(BatchApply, TablesOfAddresses) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Shape s : {Shape{24, 6}, Shape{60, 40}}) {
    const Index count = 6, ld = s.rows + 1;
    const auto a = this->hostile_batch(s, count);
    const auto want = qr<T>(context, this->batch(a, s.cols));
    Dense<T> spread(ld, s.cols * count, T(3));
    for (Index j = 0; j < a.cols; ++j) std::copy(a.column(j), a.column(j) + s.rows, spread.column(j));
    BatchView<const T> view;
    view.first = MatrixView<const T>(nullptr, s.rows, s.cols, ld);
    view.count = count;
    std::vector<const T*> table;
    for (Index b = 0; b < count; ++b) table.push_back(spread.column(b * s.cols));
    view.pointers = table.data();
    auto f = qr<T>(context, view);
    EXPECT_EQ(this->host(f.r()), this->host(want.r()));
    auto c = spread;
    std::vector<T*> targets;
    for (Index b = 0; b < count; ++b) targets.push_back(c.column(b * s.cols));
    BatchView<T> c_view{MatrixView<T>(nullptr, s.rows, s.cols, ld), 0, count, targets.data()};
    f.apply_qt(c_view);
    f.apply_q(c_view);
    for (Index j = 0; j < c.cols; ++j) EXPECT_EQ(c(s.rows, j), T(3));
    if (this->backend != Backend::cuda) continue;

    const Matrix<T> memory = context.template to_device<T>(std::as_const(spread).view());
    Dense<double> addresses(count, 1);
    for (Index b = 0; b < count; ++b) addresses(b, 0) = std::bit_cast<double>(memory.data() + b * s.cols * ld);
    const Matrix<double> device_table = context.to_device<double>(std::as_const(addresses).view());
    view.first.memory = Memory::device;
    view.pointers = reinterpret_cast<const T* const*>(device_table.data());
    EXPECT_EQ(this->host(qr<T>(context, view).r()), this->host(want.r()));
    f.refactor(view);
    EXPECT_EQ(this->host(f.r()), this->host(want.r()));
    EXPECT_EQ(this->host(memory), spread) << "the input is not written";
    BatchView<T> r_view{MatrixView<T>(nullptr, std::min(s.rows, s.cols), s.cols, ld, Memory::device), 0, count,
                        reinterpret_cast<T* const*>(const_cast<double*>(device_table.data()))};
    f.r_into(r_view);
    const auto written = this->host(memory), r = this->host(want.r());
    for (Index j = 0; j < r.cols; ++j)
      for (Index i = 0; i < r.rows; ++i) ASSERT_EQ(written(i, j), r(i, j));
  }
}

/// Full and deficient rank in one batch: every solution is the one that the matrix gets alone.
TYPED_TEST(BatchApply, SolvesEveryMatrixAsAlone) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{15, 6}, Shape{50, 40}, Shape{5, 9}}) {
    SCOPED_TRACE(to_string(s));
    const Index count = 5, nrhs = 2;
    Dense<T> all(s.rows, 0);
    for (Index b = 0; b < count; ++b) {
      const auto a = b == 1   ? hostile::product<T>(s.rows, s.cols, 3)
                     : b == 3 ? hostile::duplicate_columns<T>(s.rows, s.cols, 4)
                              : geometric_spectrum<T>(s.rows, s.cols, 10, std::uint64_t(b));
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
      all.cols += s.cols;
    }
    const auto rhs = random_normal<T>(s.rows, nrhs * count, 8);
    for (const QForm form : in_turn({QForm::implicit, QForm::thin})) {
      if (s.rows < s.cols && form == QForm::thin) continue;  // alone it needs reflectors, too
      const auto f = qr<T>(this->context(), this->batch(all, s.cols), this->with(form));
      const auto solution = f.solve(this->batch(rhs, nrhs));
      const auto x = this->host(solution.x);
      ASSERT_TRUE(has_shape(x, s.cols, nrhs * count));
      for (Index b = 0; b < count; ++b) {
        const auto alone =
            qr<T>(this->context(), this->one(all, b, s.cols).view()).solve(this->one(rhs, b, nrhs).view());
        EXPECT_EQ(solution.rank[static_cast<std::size_t>(b)], alone.rank) << b;
        EXPECT_TRUE(columns_agree(this->one(x, b, nrhs), this->host(alone.x), s.rows, s.cols, 200)) << b;
      }
      if (s.rows < s.cols) continue;
      SolveOptions trusting;
      trusting.relative_tolerance = 0;
      const auto quick = f.solve(this->batch(rhs, nrhs), trusting);
      EXPECT_TRUE(quick.rank.empty());
      EXPECT_EQ(this->one(this->host(quick.x), 0, nrhs), this->one(x, 0, nrhs));
      SolveOptions strict;
      strict.refuse_deficient = true;
      EXPECT_TRUE(refuses([&] { f.solve(this->batch(rhs, nrhs), strict); }, ErrorCode::rank_deficient, {"matrix 1"}));
    }
  }
}

TYPED_TEST(BatchApply, RefusesWhatDoesNotFit) {
  using T = typename TypeParam::Scalar;
  auto all = random_normal<T>(10, 12, 7);
  const auto f = qr<T>(this->context(), this->batch(std::as_const(all), 4));
  constexpr auto bad = ErrorCode::invalid_argument;
  EXPECT_TRUE(refuses([&] { f.apply_q(this->batch(all, 3)); }, bad, {"c is a batch of 4", "3 of 10"}));
  EXPECT_TRUE(refuses([&] { f.r_into(this->batch(all, 4)); }, bad, {"out", "10 x 4", "4 x 4"}));
  EXPECT_TRUE(refuses([&] { f.reflectors(); }, ErrorCode::unavailable, {"lapack"}));
  const auto thin = qr<T>(this->context(), this->batch(std::as_const(all), 4), this->with(QForm::thin));
  EXPECT_TRUE(refuses([&] { thin.apply_q(this->batch(all, 4)); }, ErrorCode::unavailable, {"reflectors"}));
  const auto none = qr<T>(this->context(), this->batch(std::as_const(all), 4), this->with(QForm::none));
  EXPECT_TRUE(refuses([&] { none.solve(this->batch(std::as_const(all), 4)); }, ErrorCode::unavailable, {"none"}));
  const BatchView<const T> table{MatrixView<const T>(nullptr, 10, 4, 9), 0, 1, nullptr};
  EXPECT_TRUE(refuses([&] { qr<T>(this->context(), table); }, bad, {"ld = 9"}));
}

}  // namespace
}  // namespace qrane::test
