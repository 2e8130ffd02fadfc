// SPDX-License-Identifier: Apache-2.0
// One s-step Krylov basis [v, Av, ..., A^(s-1) v] of the 2-D Laplacian on 479 x 479 points, made orthonormal by one
// TSQR instead of s Gram-Schmidt steps (Demmel, Hoemmen, Mohiyuddin, Yelick, "Avoiding communication in sparse matrix
// computations", 2008). v is a sum of s eigenvectors, so that the space is invariant and the Ritz values, the
// eigenvalues of Q^T A Q, must be the s eigenvalues chosen. The basis grows ill-conditioned; Q must not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <qrane/qrane.hpp>
#include <vector>

namespace {

constexpr int side = 479, s = 8;
constexpr qrane::Index points = qrane::Index{side} * side;

/// y := A x / 8, the five-point Laplacian scaled to norm 1, zero outside the grid.
void laplacian(const double* x, double* y) {
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      const qrane::Index at = i + qrane::Index{j} * side;
      double sum = 4 * x[at];
      if (i > 0) sum -= x[at - 1];
      if (i + 1 < side) sum -= x[at + 1];
      if (j > 0) sum -= x[at - side];
      if (j + 1 < side) sum -= x[at + side];
      y[at] = sum / 8;
    }
  }
}

/// Frequency of the k-th eigenvector chosen, sin(f i pi / (side + 1)) sin(f j pi / (side + 1)).
int frequency(int k) { return (side + 1) / (2 * s) * (2 * k + 1); }

double eigenvalue(int k) { return (1 - std::cos(frequency(k) * std::numbers::pi / (side + 1))) / 2; }

/// The Krylov basis, column by column.
qrane::Matrix<double> krylov_basis() {
  auto basis = qrane::Matrix<double>::host(points, s);
  std::fill_n(basis.data(), points, 0.0);
  for (int k = 0; k < s; ++k) {
    std::vector<double> wave(side);
    for (int i = 0; i < side; ++i) wave[i] = std::sin(frequency(k) * (i + 1) * std::numbers::pi / (side + 1));
    for (qrane::Index at = 0; at < points; ++at) basis.data()[at] += wave[at % side] * wave[at / side];
  }
  for (int k = 1; k < s; ++k) laplacian(&basis(0, k - 1), &basis(0, k));
  return basis;
}

/// The largest |Q^T Q - I|.
double orthogonality(const qrane::Matrix<double>& q) {
  double worst = 0;
  for (int a = 0; a < s; ++a) {
    for (int b = 0; b <= a; ++b) {
      long double dot = a == b ? -1 : 0;  // plain sums of so many doubles would show their own rounding
      for (qrane::Index i = 0; i < points; ++i) dot += static_cast<long double>(q(i, a)) * q(i, b);
      worst = std::max(worst, std::abs(static_cast<double>(dot)));
    }
  }
  return worst;
}

}  // namespace

int main() {
  try {
    const qrane::Context context = qrane::Context::best();
    const auto basis = krylov_basis();
    const auto f = qrane::qr(context, basis, {.algorithm = qrane::Algorithm::tsqr});
    const auto q = f.q();
    const double error = orthogonality(q);
    std::printf("basis of %lld x %d, condition number about %.1e\n", static_cast<long long>(points), s, f.condition());
    std::printf("orthogonality of Q: largest |Q'Q - I| = %.1e\n", error);

    // H = Q^T (A Q): Q^T is applied without forming it; its first s rows are the thin Q's
    auto image = qrane::Matrix<double>::host(points, s);
    for (int k = 0; k < s; ++k) laplacian(&q(0, k), &image(0, k));
    f.apply_qt(image);
    auto h = qrane::Matrix<double>::host(s, s);
    for (int k = 0; k < s; ++k) std::copy_n(&image(0, k), s, &h(0, k));
    // H is symmetric positive definite: its singular values are its eigenvalues, largest first
    const auto ritz = qrane::svd(context, h, {.vectors = false});

    double worst = 0;
    for (int k = 0; k < s; ++k) {
      const double exact = eigenvalue(s - 1 - k);
      std::printf("  Ritz value %.12f   eigenvalue %.12f\n", ritz.s(k, 0), exact);
      worst = std::max(worst, std::abs(ritz.s(k, 0) - exact));
    }
    std::printf("largest difference %.1e\n", worst);
    return error < 1e-14 && worst < 1e-11 ? 0 : 1;
  } catch (const qrane::Error& error) {
    std::fprintf(stderr, "krylov: %s\n", error.what());
    return 1;
  }
}
