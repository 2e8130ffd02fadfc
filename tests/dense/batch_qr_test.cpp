// SPDX-License-Identifier: Apache-2.0
// qr of a BatchView: every matrix of a batch is factored as well as alone, whatever its neighbours hold.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class BatchQr : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  /// Matrix b of `count` laid side by side, each `cols` wide.
  static Dense<T> one(const Dense<T>& all, Index b, Index cols) { return columns(all, b * cols, cols); }

  static BatchView<const T> side_by_side(const Dense<T>& all, Index cols) {
    const Index count = all.cols / std::max<Index>(cols, 1);
    return {columns_view(all, cols), all.rows * cols, count};
  }
  static MatrixView<const T> columns_view(const Dense<T>& all, Index cols) {
    return {all.values.data(), all.rows, cols, std::max<Index>(all.rows, 1)};
  }
  /// One hostile input after the other.
  static Dense<T> hostile_batch(Shape s, Index count, Index start = 0) {
    Dense<T> all(s.rows, 0);
    const auto& inputs = hostile::inputs<T>();
    for (Index b = 0; b < count; ++b) {
      const auto a = inputs[static_cast<std::size_t>(start + b) % inputs.size()].make(s.rows, s.cols, std::uint64_t(b));
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
      all.cols += s.cols;
    }
    return all;
  }
  static void expect_good(const Dense<T>& all, Index cols, const BatchQR<T>& f, QForm form) {
    const Index k = std::min(all.rows, cols);
    const auto r = BackendTest<Where>::host(f.r());
    ASSERT_TRUE(has_shape(r, k, cols * f.count()));
    Dense<T> q;
    if (form != QForm::none) {
      q = BackendTest<Where>::host(f.q());
      ASSERT_TRUE(has_shape(q, all.rows, k * f.count()));
    }
    for (Index b = 0; b < f.count(); ++b) {
      SCOPED_TRACE("matrix " + std::to_string(b));
      const auto a = one(all, b, cols);
      EXPECT_TRUE(form == QForm::none ? is_r_of(a, one(r, b, cols)) : is_qr_of(a, one(q, b, k), one(r, b, cols)));
    }
  }
};

TYPED_TEST_SUITE(BatchQr, Everywhere, Names);

/// all_combos, and the algorithm for batches.
std::vector<Combo> batch_combos() {
  std::vector<Combo> list = legal_combos();
  for (const QForm q : {QForm::implicit, QForm::thin, QForm::none, QForm::lapack, QForm::full})
    list.push_back({Algorithm::householder, q});
  return list;
}

TYPED_TEST(BatchQr, EveryMatrixIsGoodAmongHostileNeighbours) {
  std::vector<Shape> shapes = {{32, 8}, {16, 16}, {7, 12}, {130, 9}, {33, 1}, {1, 1}};
  if (this->thorough) shapes.insert(shapes.end(), {{64, 33}, {257, 40}, {31, 31}, {65, 64}});
  for (const Shape s : shapes)
    for (const Combo combo : in_turn(batch_combos(), 2)) {
      if (!legal(combo, s) || combo.algorithm == Algorithm::cholesky_qr) continue;
      if (!this->thorough && combo.algorithm == Algorithm::blocked && s.rows > 100) continue;
      SCOPED_TRACE(label("batch", s, combo, {16, 2, 4}));
      const auto all = this->hostile_batch(
          s, small_run() ? 3 : static_cast<Index>(hostile::inputs<typename TypeParam::Scalar>().size()));
      for (const Tree tree : in_turn({Tree{}, Tree{16, 2, 4}})) {
        const auto f =
            qr<typename TypeParam::Scalar>(this->context(), this->side_by_side(all, s.cols), options_for(combo, tree));
        this->expect_good(all, s.cols, f, combo.q);
      }
    }
}

/// A batch of one is a matrix: `householder` named for a QR takes every hostile input, too.
TYPED_TEST(BatchQr, HouseholderTakesOneMatrix) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{50, 20}, Shape{40, 40}, Shape{9, 30}, Shape{128, 3}, Shape{150, 1}, Shape{140, 135}})
    for (const auto& input : hostile::sweep<T>()) {
      SCOPED_TRACE(label(input.name, s, {Algorithm::householder, QForm::lapack}, {}));
      const auto a = input.make(s.rows, s.cols, 31);
      try {
        auto f = qr<T>(this->context(), a.view(), options_for({Algorithm::householder, QForm::lapack}));
        EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r())));
        auto c = a;
        f.apply_qt(c.view());
        f.apply_q(c.view());
        EXPECT_TRUE(columns_agree(c, a, s.rows, s.cols, 2));
      } catch (const Error& e) {  // OpenCL devices with little local memory take 128 rows and say so
        ASSERT_TRUE(TypeParam::backend == Backend::opencl && s.rows > 128) << e.what();
        EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
        const std::string text = e.what();
        EXPECT_NE(text.find("householder takes matrices of at most 128 rows"), std::string::npos) << text;
        EXPECT_NE(text.find("got " + std::to_string(s.rows)), std::string::npos) << text;
      }
    }
}

TYPED_TEST(BatchQr, CountsFromNoneToMany) {
  using T = typename TypeParam::Scalar;
  for (const Index count : some_of<Index>({0, 1, 2, 31, 32, 33, 257}, 2)) {
    SCOPED_TRACE(count);
    const auto all = random_normal<T>(13, 5 * count, 3);
    const auto f = qr<T>(this->context(), BatchView<const T>{this->columns_view(all, 5), 13 * 5, count});
    EXPECT_EQ(f.count(), count);
    this->expect_good(all, 5, f, QForm::implicit);
  }
}

/// The same matrix at every place of a batch gives the same bits at every place.
TYPED_TEST(BatchQr, PlaceDoesNotMatter) {
  using T = typename TypeParam::Scalar;
  const auto a = random_normal<T>(40, 6, 4);
  Dense<T> all(40, 0);
  for (int b = 0; b < 19; ++b) {
    all.values.insert(all.values.end(), a.values.begin(), a.values.end());
    all.cols += 6;
  }
  const auto f = qr<T>(this->context(), this->side_by_side(all, 6));
  const auto r = this->host(f.r()), q = this->host(f.q());
  for (Index b = 1; b < 19; ++b) {
    EXPECT_EQ(this->one(r, b, 6), this->one(r, 0, 6)) << b;
    EXPECT_EQ(this->one(q, b, 6), this->one(q, 0, 6)) << b;
  }
}

TYPED_TEST(BatchQr, NotANumberStaysInItsMatrix) {
  using T = typename TypeParam::Scalar;
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
    SCOPED_TRACE(qrane::to_string(algorithm));
    const Options options = options_for({algorithm, QForm::implicit}, {16, 2, 4});
    const auto clean = random_normal<T>(40, 6 * 5, 5);
    auto dirty = clean;
    dirty(39, 6 * 2 + 1) = std::numeric_limits<T>::quiet_NaN();
    const auto want = this->host(qr<T>(this->context(), this->side_by_side(clean, 6), options).r());
    const auto got = this->host(qr<T>(this->context(), this->side_by_side(dirty, 6), options).r());
    for (Index b = 0; b < 5; ++b) {
      if (b != 2) {
        EXPECT_EQ(this->one(got, b, 6), this->one(want, b, 6)) << b;
      }
    }
    EXPECT_FALSE(all_finite(this->one(got, 2, 6)));
  }
}

/// Strides larger than a matrix, slack between columns, row-major members, device memory.
TYPED_TEST(BatchQr, EveryLayoutGivesTheSameBits) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const Index m = 21, n = 5, count = 4, ld = 24, stride = ld * n + 7;
  const auto all = random_normal<T>(m, n * count, 6);
  const auto want = this->host(qr<T>(context, this->side_by_side(all, n)).r());

  Dense<T> spread(stride * count + 1, 1, T(3)), row_major(stride * count, 1, T(3));
  for (Index b = 0; b < count; ++b)
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < m; ++i) {
        spread(1 + b * stride + i + j * ld, 0) = all(i, b * n + j);
        row_major(b * stride + i * n + j, 0) = all(i, b * n + j);
      }
  const auto spread_before = spread;
  const MatrixView<const T> first(spread.values.data() + 1, m, n, ld);
  EXPECT_EQ(this->host(qr<T>(context, BatchView<const T>{first, stride, count}).r()), want);

  const MatrixView<const T> by_rows(row_major.values.data(), m, n, n, Memory::host, Layout::row_major);
  EXPECT_EQ(this->host(qr<T>(context, BatchView<const T>{by_rows, stride, count}).r()), want);

  const Matrix<T> device = context.template to_device<T>(std::as_const(spread).view());
  MatrixView<const T> device_first = block(device.view(), 1, 0, m, n);
  device_first.ld = ld;
  EXPECT_EQ(this->host(qr<T>(context, BatchView<const T>{device_first, stride, count}).r()), want);
  EXPECT_EQ(this->host(device), spread_before) << "the input is not written";
}

TYPED_TEST(BatchQr, RefactorEqualsAFreshBatch) {
  using T = typename TypeParam::Scalar;
  for (const QForm form : {QForm::implicit, QForm::thin, QForm::none}) {
    SCOPED_TRACE(qrane::to_string(form));
    Options options;
    options.q = form;
    const auto a = this->hostile_batch({24, 6}, 9), b = this->hostile_batch({24, 6}, 9, 4);
    auto f = qr<T>(this->context(), this->side_by_side(a, 6), options);
    const auto first = this->host(f.r());
    f.refactor(this->side_by_side(b, 6));
    EXPECT_EQ(this->host(f.r()), this->host(qr<T>(this->context(), this->side_by_side(b, 6), options).r()));
    f.refactor(this->side_by_side(a, 6));
    EXPECT_EQ(this->host(f.r()), first);
    EXPECT_TRUE(refuses(
        [&] {
          f.refactor(BatchView<const T>{this->columns_view(a, 6), 24 * 6, 8});
        },
        ErrorCode::invalid_argument, {"9", "8"}));
  }
}

TYPED_TEST(BatchQr, RefusesBatchesThatMakeNoSense) {
  using T = typename TypeParam::Scalar;
  const auto all = random_normal<T>(10, 12, 7);
  const auto batch = [&](Index stride, Index count, Options options = {}) {
    return [this, &all, stride, count, options] {
      qr<T>(this->context(), BatchView<const T>{this->columns_view(all, 4), stride, count}, options);
    };
  };
  constexpr auto bad = ErrorCode::invalid_argument;
  EXPECT_TRUE(refuses(batch(40, -3), bad, {"count", "-3"}));
  EXPECT_TRUE(refuses(batch(39, 3), bad, {"stride", "39", "40"}));
  EXPECT_TRUE(refuses(batch(-40, 3), bad, {"stride", "-40"}));
  EXPECT_TRUE(refuses(batch(40, Index{1} << 60), bad, {std::to_string(Index{1} << 60)}));
  EXPECT_TRUE(refuses(batch(40, 3, options_for({Algorithm::cholesky_qr, QForm::none})), bad, {"cholesky_qr", "3"}));
  Options checked;
  checked.check_finite = true;
  auto poisoned = all;
  poisoned(3, 9) = std::numeric_limits<T>::infinity();
  EXPECT_TRUE(refuses([&] { qr<T>(this->context(), this->side_by_side(poisoned, 4), checked); }, ErrorCode::not_finite,
                      {"row 3", "column 1"}));
}

}  // namespace
}  // namespace qrane::test
