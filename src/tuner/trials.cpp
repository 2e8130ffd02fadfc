// SPDX-License-Identifier: Apache-2.0
// All matrices are windows of one flat buffer, filled once with a repeated sequence of random numbers whose length is
// prime: a column is the sequence from another place, so every window is as well conditioned as random numbers are,
// and the host knows each element without keeping the matrix.
#include "tuner/trials.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "api/engine.hpp"
#include "plan/plan.hpp"

namespace qrane::tuning {

namespace {

constexpr Index period = 1'000'003;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class T>
MatrixView<T> window(MatrixView<T> flat, Index offset, Index rows, Index cols) {
  if (flat.buffer)
    flat.offset += offset;
  else
    flat.data += offset;
  flat.rows = rows;
  flat.cols = cols;
  flat.ld = std::max<Index>(rows, 1);
  return flat;
}

template <class T>
class TrialsOf final : public Trials {
 public:
  explicit TrialsOf(const Context& context) : context_(context), sequence_(static_cast<std::size_t>(period)) {
    const DeviceInfo device = context.device();
    shared_ = !device.is_gpu;
    const Index room = device.free_bytes / static_cast<Index>(sizeof(T)) / 16;  // results and workspace beside it
    elements_ = std::clamp<Index>(room, 1 << 16, device.is_gpu ? Index{192} << 20 : Index{1} << 23);
    std::mt19937 random(1);
    std::uniform_real_distribution<T> uniform(T(-1), T(1));
    for (T& x : sequence_) x = uniform(random);
    flat_ = context.allocate<T>(elements_, 1);
    for (Index at = 0; at < elements_; at += period) {
      const Index count = std::min(period, elements_ - at);
      context.copy(MatrixView<const T>(sequence_.data(), count, 1, count), window(flat_.view(), at, count, 1));
    }
  }

  int scalar_bytes() const override { return sizeof(T); }
  Index most_elements() const override { return elements_; }

  Plan plan(const Case& c, const std::shared_ptr<const Tables>& tables) override {
    const plan::DeviceProfile profile{context_.backend(), context_.engine()->limits(sizeof(T)), tables};
    return plan::make_plan(profile, c.rows, c.cols, 1, sizeof(T), options(c));
  }

  Timing time(const Case& c, const std::shared_ptr<const Tables>& tables, double give_up_ms) override {
    context_.engine()->set_tuning(tables);
    const MatrixView<const T> a = window(flat_.view(), 0, c.rows, c.cols);
    QR<T> f = qr<T>(context_, a, options(c));
    const auto run = [&] { return context_.engine()->time_ms([&] { f.refactor(a); }); };
    run();
    std::vector<double> samples;
    const std::size_t least = shared_ ? 5 : 3;
    for (double total = 0; samples.size() < least || (total < 15 && samples.size() < 15); total += samples.back()) {
      samples.push_back(run());
      if (samples.back() > 2 * give_up_ms) break;
    }
    std::sort(samples.begin(), samples.end());
    const std::size_t n = samples.size();
    // others' work on the cores only ever adds time: there the fastest run says most, and the next ones how much
    const double low = shared_ ? samples.front() : samples[n / 4],
                 high = shared_ ? samples[n / 4] : samples[(3 * n) / 4];
    const double ms = shared_ ? samples.front() : samples[n / 2];
    return {ms, ms > 0 ? (high - low) / (shared_ ? 1 : 2) / ms : 0};
  }

  double error(const Case& c, const std::shared_ptr<const Tables>& tables) override {
    context_.engine()->set_tuning(tables);
    Case small = c;
    const Index enough = std::max<Index>({3 * c.cols, (Index{1} << 20) / c.cols, 2048});
    small.rows = std::min({c.rows, enough, elements_ / c.cols});
    const QR<T> f =
        qr<T>(context_, MatrixView<const T>(window(flat_.view(), 0, small.rows, small.cols)), options(small));
    const Matrix<T> r = on_host(f.r());
    if (c.q == QForm::none) return gram_error(small, r);
    return factor_error(small, on_host(f.q()), r);
  }

 private:
  using W = Wide<T>;

  static Options options(const Case& c) {
    Options o;
    o.algorithm = c.algorithm;
    o.q = c.q;
    return o;
  }
  Matrix<T> on_host(Matrix<T> a) const {
    return a.memory() == Memory::host ? std::move(a) : context_.to_host(std::as_const(a).view());
  }
  const T& a(const Case& c, Index i, Index j) const {
    return sequence_[static_cast<std::size_t>((i + j * c.rows) % period)];
  }
  static double unit(const Case& c) {
    return 30.0 * static_cast<double>(std::min(c.rows, c.cols) + 10) * std::numeric_limits<T>::epsilon() / 2;
  }
  static std::vector<Index> some_columns(Index count) {
    if (count <= 0) return {};
    return {0, count / 3, count / 2, count - 1};
  }
  static double ratio(W error_squared, W norm, const Case& c) {
    const double error = static_cast<double>(std::sqrt(error_squared) / norm) / unit(c);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }

  /// Columns of A - Q R and of I - QᵀQ.
  double factor_error(const Case& c, const Matrix<T>& q, const Matrix<T>& r) const {
    double worst = 0;
    std::vector<W> gap(static_cast<std::size_t>(c.rows));
    for (const Index j : some_columns(c.cols)) {
      W norm = 0, error = 0;
      for (Index i = 0; i < c.rows; ++i) gap[i] = a(c, i, j);
      for (const W x : gap) norm += x * x;
      for (Index l = 0; l <= std::min(j, q.cols() - 1); ++l)
        for (Index i = 0; i < c.rows; ++i) gap[i] -= static_cast<W>(q(i, l)) * static_cast<W>(r(l, j));
      for (const W x : gap) error += x * x;
      worst = std::max(worst, ratio(error, std::sqrt(norm), c));
    }
    for (const Index j : some_columns(q.cols())) {
      W error = 0;
      for (Index l = 0; l < q.cols(); ++l) {
        W dot = l == j ? -1 : 0;
        for (Index i = 0; i < c.rows; ++i) dot += static_cast<W>(q(i, l)) * static_cast<W>(q(i, j));
        error += dot * dot;
      }
      worst = std::max(worst, ratio(error, 1, c));
    }
    return worst;
  }

  /// Columns of AᵀA - RᵀR, relative to ‖A‖_F ‖a_j‖; both factors of RᵀR may be off by one limit.
  double gram_error(const Case& c, const Matrix<T>& r) const {
    W total = 0;
    for (Index j = 0; j < c.cols; ++j)
      for (Index i = 0; i < c.rows; ++i) total += static_cast<W>(a(c, i, j)) * a(c, i, j);
    double worst = 0;
    for (const Index j : some_columns(c.cols)) {
      W error = 0, norm = 0;
      for (Index l = 0; l < c.cols; ++l) {
        W gap = 0;
        for (Index i = 0; i < c.rows; ++i) gap += static_cast<W>(a(c, i, l)) * a(c, i, j);
        if (l == j) norm = gap;
        for (Index i = 0; i <= std::min({l, j, r.rows() - 1}); ++i) gap -= static_cast<W>(r(i, l)) * r(i, j);
        error += gap * gap;
      }
      worst = std::max(worst, ratio(error, 2 * std::sqrt(total * norm), c));
    }
    return worst;
  }

  Context context_;
  std::vector<T> sequence_;
  Matrix<T> flat_;
  Index elements_ = 0;
  bool shared_ = false;  // cores that other programs use too
};

}  // namespace

std::string to_string(const Case& c) {
  return detail::concat(c.rows, " x ", c.cols, " ", qrane::to_string(c.q), " ", qrane::to_string(c.algorithm));
}

std::unique_ptr<Trials> make_trials(const Context& context, int scalar_bytes) {
  if (scalar_bytes == 4) return std::make_unique<TrialsOf<float>>(context);
  return std::make_unique<TrialsOf<double>>(context);
}

}  // namespace qrane::tuning
