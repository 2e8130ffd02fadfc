// SPDX-License-Identifier: Apache-2.0
// A regression: fifty years of monthly values as a parabola in time and a yearly wave, fitted by least squares; then
// the same fit with a column given twice, which the answer reports. Exit status 1 when a number is not as it should be.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <qrane/qrane.hpp>
#include <string>

namespace {

constexpr int months = 600;
constexpr double noise_level = 0.3;
constexpr double truth[] = {315.0, 0.8, 0.012, 2.5, -1.4};  // level, per year, per year^2, cosine, sine
const char* const names[] = {"level", "per year", "per year^2", "yearly cosine", "yearly sine"};

/// Column j of the model at time t (years).
double term(int j, double t) {
  const double angle = 2 * std::numbers::pi * t;
  switch (j) {
    case 0: return 1;
    case 1: return t;
    case 2: return t * t;
    case 3: return std::cos(angle);
    default: return std::sin(angle);
  }
}

/// The same "measurement error" on every run: uniform in [-1, 1], scaled to a standard deviation of 1.
double noise(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (static_cast<double>(state >> 11) / 9007199254740992.0 * 2 - 1) * std::sqrt(3.0);
}

/// The model's columns, and column 3 once more when `repeat` is set.
qrane::Matrix<double> model(bool repeat) {
  auto a = qrane::Matrix<double>::host(months, repeat ? 6 : 5);
  for (int i = 0; i < months; ++i) {
    for (int j = 0; j < a.cols(); ++j) a(i, j) = term(j < 5 ? j : 3, i / 12.0);
  }
  return a;
}

bool expect(bool condition, const std::string& what) {
  if (!condition) std::printf("NOT AS EXPECTED: %s\n", what.c_str());
  return condition;
}

}  // namespace

int main() {
  try {
    const qrane::Context context = qrane::Context::best();
    auto b = qrane::Matrix<double>::host(months, 1);
    std::uint64_t seed = 1;
    for (int i = 0; i < months; ++i) {
      b(i, 0) = noise_level * noise(seed);
      for (int j = 0; j < 5; ++j) b(i, 0) += truth[j] * term(j, i / 12.0);
    }

    auto a = model(false);
    const auto fit = qrane::least_squares(context, a, b);
    std::printf("%d values, %d unknowns, rank %d, condition number about %.0f\n", months, 5, static_cast<int>(fit.rank),
                fit.condition);
    bool good = expect(!fit.deficient(), "full rank");
    const double tolerances[] = {0.2, 0.02, 0.0005, 0.1, 0.1};  // five standard errors or more
    for (int j = 0; j < 5; ++j) {
      std::printf("  %-14s %10.4f   (truth %g)\n", names[j], fit.x(j, 0), truth[j]);
      good &= expect(std::abs(fit.x(j, 0) - truth[j]) < tolerances[j], names[j]);
    }
    const double deviation = fit.residual_norms[0] / std::sqrt(months - 5.0);
    std::printf("standard deviation of the residual %.3f   (truth %g)\n", deviation, noise_level);
    good &= expect(std::abs(deviation - noise_level) < 0.03, "residual");

    auto twice = model(true);
    const auto again = qrane::least_squares(context, twice, b);
    std::printf("with the cosine given twice: rank %d of %d, least-norm coefficients %.4f and %.4f\n",
                static_cast<int>(again.rank), static_cast<int>(again.full), again.x(3, 0), again.x(5, 0));
    good &= expect(again.deficient() && again.rank == 5, "rank 5 of 6");
    good &= expect(std::abs(again.x(3, 0) - again.x(5, 0)) < 1e-9, "equal shares");
    good &= expect(std::abs(again.x(3, 0) * 2 - fit.x(3, 0)) < 1e-9, "the same sum");
    return good ? 0 : 1;
  } catch (const qrane::Error& error) {
    std::fprintf(stderr, "regression: %s\n", error.what());
    return 1;
  }
}
