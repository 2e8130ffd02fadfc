// SPDX-License-Identifier: Apache-2.0
// Bad input: every refusal has the right code and a sentence that names the argument and its value, and leaves
// the context usable.
#include <qrane/qrane.hpp>

#include <cctype>
#include <utility>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrErrors : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using View = MatrixView<const T>;

  static auto factoring(View a, Options options = {}) {
    return [=] { qr<T>(BackendTest<Where>::context(), a, options); };
  }
  static void expect_usable(const Context& context) {
    const auto a = random_normal<T>(40, 6, 1);
    auto f = qr<T>(context, a.view());
    EXPECT_TRUE(is_qr_of(a, BackendTest<Where>::host_of(context, f.q()), BackendTest<Where>::host_of(context, f.r())));
  }
};

TYPED_TEST_SUITE(QrErrors, Everywhere, Names);

constexpr ErrorCode bad = ErrorCode::invalid_argument;

TYPED_TEST(QrErrors, ViewsThatMakeNoSense) {
  using T = typename TypeParam::Scalar;
  using View = MatrixView<const T>;
  const auto a = random_normal<T>(6, 4, 1);
  const T* p = a.values.data();
  EXPECT_TRUE(refuses(this->factoring(View(p, -1, 4, 6)), bad, {"A", "rows", "-1"}));
  EXPECT_TRUE(refuses(this->factoring(View(p, 6, -4, 6)), bad, {"A", "cols", "-4"}));
  EXPECT_TRUE(refuses(this->factoring(View(p, 6, 4, 5)), bad, {"A", "ld", "5", "6"}));
  EXPECT_TRUE(refuses(this->factoring(View(p, 6, 4, 3, Memory::host, Layout::row_major)), bad, {"A", "ld", "3", "4"}));
  EXPECT_TRUE(refuses(this->factoring(View(nullptr, 6, 4, 6)), bad, {"A", "null"}));
  const Index huge = Index{1} << 62;
  EXPECT_TRUE(refuses(this->factoring(View(p, huge, 1000, huge)), bad, {std::to_string(huge)}));
  EXPECT_TRUE(refuses(this->factoring(View(p, 1000, huge, 1000)), bad, {std::to_string(huge)}));
  EXPECT_TRUE(refuses(this->factoring(View(p, 6, 4, huge)), bad, {"A", "ld", std::to_string(huge)}));
  EXPECT_TRUE(refuses([&] { plan_qr<T>(this->context(), -3, 2); }, bad, {"rows", "-3"}));
  EXPECT_TRUE(refuses([&] { plan_qr<T>(this->context(), 3, -2); }, bad, {"cols", "-2"}));
  EXPECT_TRUE(refuses([&] { plan_qr<T>(this->context(), huge, 8); }, bad, {std::to_string(huge)}));
  EXPECT_TRUE(refuses([&] { plan_qr<T>(this->context(), 8, 8, {}, -1); }, bad, {"count", "-1"}));
  EXPECT_TRUE(refuses([&] { this->context().template allocate<T>(-1, 2); }, bad, {"-1"}));
  EXPECT_TRUE(refuses([&] { Matrix<T>::host(2, -7); }, bad, {"-7"}));
  EXPECT_TRUE(refuses([&] { Matrix<T>::host(huge, 8); }, bad, {std::to_string(huge)}));
  this->expect_usable(this->context());
}

/// A view as one of another backend would have it: OpenCL's have a buffer, the others an address.
template <class T>
MatrixView<T> of_another_device(const Context& context, T* data, Index rows, Index cols) {
  MatrixView<T> v(data, rows, cols, rows, Memory::device);
  if (context.backend() != Backend::opencl) v.buffer = std::exchange(v.data, nullptr);
  return v;
}

TYPED_TEST(QrErrors, MemoryOfAnotherDevice) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  auto a = random_normal<T>(20, 4, 1), u = random_normal<T>(3, 4, 2);
  const MatrixView<const T> foreign = of_another_device<T>(context, a.values.data(), 20, 4);
  const MatrixView<const T> foreign_rows = of_another_device<T>(context, u.values.data(), 3, 4);
  const char* const name = to_string(context.backend());
  EXPECT_TRUE(refuses(this->factoring(foreign), bad, {"20 x 4", name}));
  EXPECT_TRUE(refuses([&] { svd<T>(context, foreign); }, bad, {"20 x 4", name}));
  EXPECT_TRUE(refuses([&] { least_squares<T>(context, a.view(), foreign); }, bad, {"20 x 4", name}));
  EXPECT_TRUE(refuses([&] { pivoted_qr<T>(context, foreign); }, bad, {"20 x 4", name}));
  EXPECT_TRUE(refuses([&] { context.to_host(foreign); }, bad, {"20 x 4", name}));
  for (const QForm form : {QForm::thin, QForm::implicit, QForm::none, QForm::full}) {
    auto f = updatable_qr(context, a.view(), {.q = form});
    EXPECT_TRUE(refuses([&] { f.refactor(foreign); }, bad, {"20 x 4", name}));
    if (form != QForm::none) {
      EXPECT_TRUE(refuses([&] { f.solve(foreign); }, bad, {"20 x 4", name}));
    }
    const auto before = this->host_of(context, f.r());
    EXPECT_TRUE(refuses([&] { f.insert_rows(5, foreign_rows); }, bad, {"3 x 4"}));
    const MatrixView<const T> lent = form == QForm::none ? MatrixView<const T>(a.view()) : MatrixView<const T>();
    EXPECT_TRUE(refuses([&] { f.attach(foreign, lent); }, bad, {"20 x 4", name}));
    if (form != QForm::none) {
      EXPECT_TRUE(refuses([&] { f.insert_columns(2, foreign); }, bad, {"20 x 4", name}));
    }
    EXPECT_EQ(f.rows(), 20);
    EXPECT_EQ(f.cols(), 4);
    EXPECT_EQ(this->host_of(context, f.r()).values, before.values);
    f.insert_rows(5, u.view());
    EXPECT_EQ(f.rows(), 23);
  }
  // a host matrix without an address
  MatrixView<const T> nowhere(nullptr, 20, 4, 20);
  nowhere.buffer = a.values.data();
  EXPECT_TRUE(refuses(this->factoring(nowhere), bad, {"A", "null"}));
  this->expect_usable(context);
}

TYPED_TEST(QrErrors, OptionsThatContradictEachOther) {
  using T = typename TypeParam::Scalar;
  const auto tall = random_normal<T>(40, 6, 1), wide = random_normal<T>(6, 40, 1), square = random_normal<T>(9, 9, 1);
  const auto with = [](Algorithm algorithm, QForm q) { return options_for({algorithm, q}); };
  EXPECT_TRUE(refuses(this->factoring(tall.view(), with(Algorithm::cholesky_qr, QForm::implicit)), bad,
                      {"cholesky_qr", "implicit"}));
  EXPECT_TRUE(refuses(this->factoring(tall.view(), with(Algorithm::cholesky_qr, QForm::lapack)), bad,
                      {"cholesky_qr", "lapack"}));
  EXPECT_TRUE(refuses(this->factoring(wide.view(), with(Algorithm::cholesky_qr, QForm::none)), bad,
                      {"cholesky_qr", "6", "40"}));
  EXPECT_TRUE(refuses(this->factoring(tall.view(), with(Algorithm::tsqr, QForm::lapack)), bad, {"lapack", "tsqr"}));
  EXPECT_TRUE(refuses(this->factoring(tall.view(), with(Algorithm::caqr, QForm::lapack)), bad, {"lapack", "caqr"}));
  Options options;
  options.expert.block_rows = -5;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"block_rows", "-5"}));
  options = {};
  options.expert.block_rows = Index{1} << 40;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"block_rows", std::to_string(Index{1} << 40)}));
  options = {};
  options.expert.arity = 1;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"arity", "1"}));
  options.expert.arity = -2;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"arity", "-2"}));
  options = {};
  options.expert.panel_cols = -1;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"panel_cols", "-1"}));
  options.expert.panel_cols = 1 << 30;
  EXPECT_TRUE(refuses(this->factoring(tall.view(), options), bad, {"panel_cols", std::to_string(1 << 30)}));
  this->expect_usable(this->context());
}

TYPED_TEST(QrErrors, NamesAreCheckedAndRoundTrip) {
  for (Algorithm a :
       {Algorithm::automatic, Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked, Algorithm::cholesky_qr})
    EXPECT_EQ(algorithm_from_string(qrane::to_string(a)), a);
  for (QForm q : {QForm::implicit, QForm::thin, QForm::lapack, QForm::none, QForm::full})
    EXPECT_EQ(q_form_from_string(qrane::to_string(q)), q);
  for (Backend b : {Backend::automatic, Backend::cpu, Backend::opencl, Backend::cuda})
    EXPECT_EQ(backend_from_string(qrane::to_string(b)), b);
  EXPECT_TRUE(refuses([] { algorithm_from_string("qr2"); }, bad, {"qr2"}));
  EXPECT_TRUE(refuses([] { q_form_from_string("fat"); }, bad, {"fat"}));
  EXPECT_TRUE(refuses([] { backend_from_string("metal"); }, bad, {"metal"}));
}

TYPED_TEST(QrErrors, DevicesThatAreNotThere) {
  ContextOptions options;
  options.backend = this->backend;
  options.device = 1000;
  EXPECT_TRUE(refuses([&] { Context context(options); }, ErrorCode::unavailable, {"1000"}));
  std::string message = thrown_by([&] { Context context(options); }).message;
  std::transform(message.begin(), message.end(), message.begin(), [](unsigned char c) { return std::tolower(c); });
  EXPECT_NE(message.find(qrane::to_string(this->backend)), std::string::npos) << message;
  options.device = -1;
  EXPECT_TRUE(refuses([&] { Context context(options); }, ErrorCode::unavailable, {"-1"}));
  int stream = 0;  // the address of anything: it is refused before it is used
  options.device = 0;
  options.stream = &stream;
  for (const Backend unsuited : {Backend::automatic, Backend::cpu}) {
    options.backend = unsuited;
    EXPECT_TRUE(refuses([&] { Context context(options); }, bad, {"stream", qrane::to_string(unsuited)}));
  }
  const DeviceInfo device = this->context().device();
  EXPECT_EQ(device.backend, this->backend);
  EXPECT_EQ(this->context().backend(), this->backend);
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memory_bytes, 0);
  EXPECT_GT(device.compute_units, 0);
  for (const BackendStatus& status : backends())
    EXPECT_TRUE(status.available ? !status.devices.empty() : !status.reason.empty())
        << qrane::to_string(status.backend);
}

/// The first position in column-major order is named, wherever it lies and however A is stored.
TYPED_TEST(QrErrors, NotFiniteIsRefusedByPosition) {
  using T = typename TypeParam::Scalar;
  const Index m = 131, n = 10;
  Options options;
  options.check_finite = true;
  const T poisons[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity()};
  int which = 0;
  for (const auto& [row, col] :
       {std::pair<Index, Index>{0, 0}, {m - 1, n - 1}, {0, n - 1}, {m - 1, 0}, {64, 5}, {16, 3}})
    for (const Storage storage : {Storage::contiguous, Storage::row_major_slack, Storage::device_misaligned}) {
      auto a = random_normal<T>(m, n, 1);
      a(row, col) = poisons[which++ % 3];
      if (col + 1 < n) a(0, col + 1) = poisons[0];  // comes later in column-major order
      Stored<T> stored(this->context(), a, storage);
      EXPECT_TRUE(refuses(this->factoring(stored.view(), options), ErrorCode::not_finite,
                          {"row " + std::to_string(row), "column " + std::to_string(col)}))
          << to_string(storage);
    }
  // what is outside the matrix does not count
  Dense<T> padded(m + 2, n, std::numeric_limits<T>::quiet_NaN());
  const auto a = random_normal<T>(m, n, 2);
  for (Index j = 0; j < n; ++j) std::copy(a.column(j), a.column(j) + m, padded.column(j) + 1);
  EXPECT_FALSE(thrown_by(this->factoring(block(std::as_const(padded).view(), 1, 0, m, n), options)).happened);
  // nor do the largest and the smallest numbers
  for (const char* name : {"near overflow", "denormal", "huge and tiny"})
    for (const auto& input : hostile::inputs<T>())
      if (std::string(input.name) == name) {
        EXPECT_FALSE(thrown_by(this->factoring(input.make(m, n, 3).view(), options)).happened) << name;
      }
  this->expect_usable(this->context());
}

TYPED_TEST(QrErrors, CheckedConsumersRefuseNotFinite) {
  using T = typename TypeParam::Scalar;
  auto a = random_normal<T>(30, 5, 1);
  auto b = random_normal<T>(30, 2, 2);
  LeastSquaresOptions ls;
  ls.check_finite = true;
  b(7, 1) = std::numeric_limits<T>::quiet_NaN();
  EXPECT_TRUE(refuses([&] { least_squares<T>(this->context(), std::as_const(a).view(), std::as_const(b).view(), ls); },
                      ErrorCode::not_finite, {"b", "row 7", "column 1"}));
  a(3, 4) = std::numeric_limits<T>::infinity();
  EXPECT_TRUE(refuses([&] { least_squares<T>(this->context(), std::as_const(a).view(), std::as_const(b).view(), ls); },
                      ErrorCode::not_finite, {"A", "row 3", "column 4"}));
  SvdOptions sv;
  sv.check_finite = true;
  EXPECT_TRUE(refuses([&] { svd<T>(this->context(), std::as_const(a).view(), sv); }, ErrorCode::not_finite,
                      {"row 3", "column 4"}));
  RobustPcaOptions pca;
  pca.check_finite = true;
  EXPECT_TRUE(refuses([&] { robust_pca<T>(this->context(), std::as_const(a).view(), pca); }, ErrorCode::not_finite,
                      {"row 3", "column 4"}));
  const auto wide = transposed(a);
  EXPECT_TRUE(refuses([&] { svd<T>(this->context(), wide.view(), sv); }, ErrorCode::not_finite, {"row 4", "column 3"}));
}

/// Out of memory says how much was needed and free; then everything still works, many times over.
TYPED_TEST(QrErrors, OutOfMemoryLeavesTheContextUsable) {
  using T = typename TypeParam::Scalar;
  const Context small = fresh_context(this->backend, std::int64_t{4} << 20);
  const Dense<T> big(40000, 40);
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_TRUE(refuses([&] { qr<T>(small, big.view()); }, ErrorCode::out_of_memory, {"bytes", "free"}));
    EXPECT_TRUE(refuses([&] { small.allocate<T>(1 << 20, 16); }, ErrorCode::out_of_memory, {"bytes", "free"}));
    EXPECT_TRUE(refuses([&] { svd<T>(small, big.view()); }, ErrorCode::out_of_memory, {"bytes", "free"}));
    this->expect_usable(small);
  }
  // what is handed back counts as free again: a leak would end this
  for (int repeat = 0; repeat < 50; ++repeat) qr<T>(small, random_normal<T>(2000, 10, 1).view());
}

}  // namespace
}  // namespace qrane::test
