// SPDX-License-Identifier: Apache-2.0
// Recursive least squares over a sliding window: a plant whose gains change halfway through a stream of measurements is
// identified from the last 500 rows, one row in and one out a step, without factoring anything anew. Exit status 1 when
// a number is not as it should be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <qrane/qrane.hpp>
#include <vector>

namespace {

constexpr int taps = 8, window = 500, steps = 3000, change_at = 1500;
constexpr double noise_level = 0.01;

/// Uniform in [-1, 1], the same on every run.
double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state >> 11) / 9007199254740992.0 * 2 - 1;
}

/// The plant's gain of tap j at a step.
double gain(int j, int step) { return std::exp(-0.4 * j) * (step < change_at ? 1.0 : j % 2 == 0 ? 1.5 : -0.5); }

/// Inputs u and outputs y of the plant: row i of the regression is u(i) .. u(i + taps - 1), its right-hand side y(i).
struct Stream {
  std::vector<double> input, output;

  Stream() {
    std::uint64_t seed = 7;
    for (int i = 0; i < steps + window + taps; ++i) input.push_back(uniform(seed));
    for (int i = 0; i < steps + window; ++i) {
      double sum = noise_level * uniform(seed);
      for (int j = 0; j < taps; ++j) sum += gain(j, i) * input[static_cast<std::size_t>(i + j)];
      output.push_back(sum);
    }
  }

  /// Rows from .. from+count-1 of the regression.
  qrane::Matrix<double> rows(int from, int count) const {
    auto a = qrane::Matrix<double>::host(count, taps);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < taps; ++j) a(i, j) = input[static_cast<std::size_t>(from + i + j)];
    return a;
  }
  qrane::MatrixView<const double> outputs(int from, int count) const { return {output.data() + from, count, 1}; }
};

double worst_gain_error(const qrane::Matrix<double>& x, int step) {
  double worst = 0;
  for (int j = 0; j < taps; ++j) worst = std::max(worst, std::abs(x(j, 0) - gain(j, step)));
  return worst;
}

}  // namespace

int main() {
  try {
    const qrane::Context context = qrane::Context::best();
    const Stream stream;
    const auto first = stream.rows(0, window);
    auto f = qrane::updatable_qr(context, first, {.q = qrane::QForm::none});
    f.attach(stream.outputs(0, window), first);

    qrane::UpdateOptions how;
    how.queued = true;  // the host need not wait for every step
    bool good = true;
    for (int step = 0; step < steps; ++step) {
      const auto in = stream.rows(step + window, 1), out = stream.rows(step, 1);
      f.insert_rows(f.rows(), in, stream.outputs(step + window, 1), how);
      f.delete_rows(0, 1, out, stream.outputs(step, 1), how);
      if (step % 500 == 499) {
        const auto x = f.solve().x;
        const double error = worst_gain_error(x, step + window);
        const bool settled = step + window < change_at || step >= change_at;
        std::printf("after %4d steps: worst error of a gain %.4f, residual norm %.4f%s\n", step + 1, error,
                    f.residual_norms().front(), settled ? "" : "  (the window spans the change)");
        good = good && (!settled || error < 0.01);
      }
    }
    const auto refused = static_cast<long long>(f.refused_updates());
    std::printf("%d rows in and out, %lld refused\n", steps, refused);
    return good && refused == 0 ? 0 : 1;
  } catch (const qrane::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
