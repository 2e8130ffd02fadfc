// SPDX-License-Identifier: Apache-2.0
// A smooth surface through scattered heights, one in twenty of them nonsense: sparse least squares, reweighted until
// the nonsense has no say. The pattern is analyzed once; every round is other values of it. Exit status 1 when a number
// is not as it should be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <qrane/qrane.hpp>
#include <vector>

namespace {

using qrane::Index;

constexpr Index side = 60, unknowns = side * side, heights = 10000, rounds = 6;
constexpr double noise_level = 0.01, stiffness = 0.3;

/// Uniform in [0, 1), the same on every run.
double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state >> 11) / 9007199254740992.0;
}

double surface(double x, double y) { return std::sin(5 * x) * std::cos(3 * y) + x * y; }

/// A x = b row by row, each row in the order in which it was put down.
struct System {
  std::vector<Index> pointers{0}, columns;
  std::vector<double> values, b;

  void add(Index column, double value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row(double right) {
    pointers.push_back(static_cast<Index>(columns.size()));
    b.push_back(right);
  }
  Index rows() const { return static_cast<Index>(b.size()); }
};

/// Heights first, each between four grid points; then, at every inner grid point and along both axes, second
/// differences that should vanish.
System measured() {
  System s;
  std::uint64_t seed = 11;
  for (Index k = 0; k < heights; ++k) {
    const double x = uniform(seed) * (side - 1), y = uniform(seed) * (side - 1);
    const auto i = static_cast<Index>(x), j = static_cast<Index>(y);
    const double u = x - static_cast<double>(i), v = y - static_cast<double>(j);
    s.add(i + j * side, (1 - u) * (1 - v));
    s.add(i + 1 + j * side, u * (1 - v));
    s.add(i + (j + 1) * side, (1 - u) * v);
    s.add(i + 1 + (j + 1) * side, u * v);
    const double height = surface(x / (side - 1), y / (side - 1)) + noise_level * (2 * uniform(seed) - 1);
    s.end_row(uniform(seed) < 0.05 ? height + 10 * uniform(seed) : height);
  }
  for (Index j = 0; j < side; ++j)
    for (Index i = 0; i < side; ++i)
      for (const Index step : {Index{1}, side}) {
        const Index along = step == 1 ? i : j, at = i + j * side;
        if (along == 0 || along == side - 1) continue;
        s.add(at - step, stiffness);
        s.add(at, -2 * stiffness);
        s.add(at + step, stiffness);
        s.end_row(0);
      }
  return s;
}

double worst_error(const qrane::Matrix<double>& x) {
  double worst = 0;
  for (Index j = 0; j < side; ++j)
    for (Index i = 0; i < side; ++i) {
      const double there = surface(static_cast<double>(i) / (side - 1), static_cast<double>(j) / (side - 1));
      worst = std::max(worst, std::abs(x(i + j * side, 0) - there));
    }
  return worst;
}

}  // namespace

int main() {
  try {
    const qrane::Context context = qrane::Context::best();
    const System s = measured();
    const auto pattern =
        qrane::sparse::by_rows(s.rows(), unknowns, s.pointers.data(), s.columns.data(), s.values.data());
    const auto analysis = qrane::sparse::analyze(context, pattern);
    std::printf("%lld x %lld, %lld fronts, %.2e flops\n", static_cast<long long>(s.rows()),
                static_cast<long long>(unknowns), static_cast<long long>(analysis.facts().fronts),
                analysis.facts().flops);

    std::vector<double> values = s.values, b = s.b;
    qrane::sparse::FactorOptions options;
    options.q = qrane::sparse::KeepQ::discard;  // Qᵀb is all that is wanted of it
    const qrane::MatrixView<const double> right(b.data(), s.rows(), 1);
    auto f = analysis.factor(values.data(), options, right);
    double first_error = 0, error = 0;
    for (Index round = 0;; ++round) {
      const auto x = f.solve().x;
      error = worst_error(x);
      if (round == 0) first_error = error;
      std::printf("round %d: worst error of the surface %.4f\n", static_cast<int>(round), error);
      if (round == rounds) break;
      for (Index k = 0; k < heights; ++k) {  // weights of Geman and McClure: the residual's scale over itself
        double residual = s.b[k];
        for (Index p = s.pointers[k]; p < s.pointers[k + 1]; ++p) residual -= s.values[p] * x(s.columns[p], 0);
        const double scaled = residual / (10 * noise_level), weight = 1 / (1 + scaled * scaled);
        for (Index p = s.pointers[k]; p < s.pointers[k + 1]; ++p) values[p] = weight * s.values[p];
        b[k] = weight * s.b[k];
      }
      f.refactor(values.data(), right);
    }
    std::printf("rank %lld of %lld\n", static_cast<long long>(f.rank()), static_cast<long long>(unknowns));
    return f.rank() == unknowns && error < 0.05 && error < first_error / 10 ? 0 : 1;
  } catch (const qrane::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
