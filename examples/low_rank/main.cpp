// SPDX-License-Identifier: Apache-2.0
// Low-rank approximation by a randomized range finder (Halko, Martinsson, Tropp, "Finding structure with randomness",
// 2011, algorithms 4.1 and 5.1): Y = A W for a random W, Y = Q R, B = Q^T A, B = U S V^T, A ~ (Q U) S V^T.
// A is made with known singular values, so that the best possible error is known too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <qrane/qrane.hpp>

namespace {

using Matrix = qrane::Matrix<double>;
constexpr int m = 4000, n = 300, rank = 20, oversampling = 10, width = rank + oversampling;

double singular_value(int j) { return std::pow(0.8, j); }

/// Nearly normal pseudo-random entries: sums of twelve uniform ones. The same on every run.
Matrix random_matrix(int rows, int cols, std::uint64_t seed) {
  auto a = Matrix::host(rows, cols);
  for (int j = 0; j < cols; ++j) {
    for (int i = 0; i < rows; ++i) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sum += static_cast<double>(seed >> 11) / 9007199254740992.0;
      }
      a(i, j) = sum;
    }
  }
  return a;
}

/// A B
Matrix multiply(const Matrix& a, const Matrix& b) {
  auto c = Matrix::host(a.rows(), b.cols());
  for (qrane::Index j = 0; j < b.cols(); ++j) {
    std::fill_n(&c(0, j), c.rows(), 0.0);
    for (qrane::Index k = 0; k < a.cols(); ++k) {
      for (qrane::Index i = 0; i < a.rows(); ++i) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

/// A = X diag(singular values) Z^T with orthonormal X and Z.
Matrix test_matrix(const qrane::Context& context) {
  auto x = qrane::qr(context, random_matrix(m, n, 1)).q();
  const auto z = qrane::qr(context, random_matrix(n, n, 2)).q();
  auto zt = Matrix::host(n, n);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) zt(i, j) = singular_value(i) * z(j, i);
  }
  return multiply(x, zt);
}

}  // namespace

int main() {
  try {
    const qrane::Context context = qrane::Context::best();
    const Matrix a = test_matrix(context);

    const auto f = qrane::qr(context, multiply(a, random_matrix(n, width, 3)));
    auto image = Matrix::host(m, n);  // Q^T A, whose first rows belong to the thin Q
    std::copy_n(a.data(), qrane::Index{m} * n, image.data());
    f.apply_qt(image);
    auto b = Matrix::host(width, n);
    for (int j = 0; j < n; ++j) std::copy_n(&image(0, j), width, &b(0, j));
    const auto svd = qrane::svd(context, b);

    auto core = Matrix::host(width, n);  // U S V^T, the first `rank` terms
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < width; ++i) {
        core(i, j) = 0;
        for (int k = 0; k < rank; ++k) core(i, j) += svd.u(i, k) * svd.s(k, 0) * svd.vt(k, j);
      }
    }
    const Matrix approximation = multiply(f.q(), core);

    double error = 0, best = 0;
    for (qrane::Index i = 0; i < qrane::Index{m} * n; ++i) {
      error += std::pow(a.data()[i] - approximation.data()[i], 2);
    }
    for (int j = rank; j < n; ++j) best += std::pow(singular_value(j), 2);
    const double ratio = std::sqrt(error / best);
    std::printf("%d x %d by rank %d\n", m, n, rank);
    std::printf("largest singular values %.4f %.4f %.4f   (exact 1, 0.8, 0.64)\n", svd.s(0, 0), svd.s(1, 0),
                svd.s(2, 0));
    std::printf("error %.3e, best possible %.3e, ratio %.3f\n", std::sqrt(error), std::sqrt(best), ratio);
    return ratio >= 1 - 1e-9 && ratio < 1.1 && std::abs(svd.s(0, 0) - 1) < 1e-3 ? 0 : 1;
  } catch (const qrane::Error& error) {
    std::fprintf(stderr, "low_rank: %s\n", error.what());
    return 1;
  }
}
