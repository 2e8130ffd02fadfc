// SPDX-License-Identifier: Apache-2.0
// CPU backend: column-pivoted Householder QR (Businger, Golub 1965; LAPACK's geqp3), columns shared out to threads.
//
// Every column carries a power of two that puts its largest element between 1 and 2: QR commutes with that, and norms
// neither overflow nor vanish. The pass that updates a column measures what is left of it, so norms are never
// downdated. Cost: 4 m n k flops for k steps, the trailing matrix read twice and written once a step.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

/// A column that has not been taken: where it stands in `a`, its scale, and what is left of it.
struct Column {
  Index place = 0;
  int exponent = 0;
  double norm = 0;  // times 2^-exponent; NaN or infinite where the column is
};

/// Whether x must come before y: the longer one, zeros late, what is not finite last.
bool longer(const Column& x, const Column& y) {
  if (!std::isfinite(x.norm)) return false;
  if (!std::isfinite(y.norm)) return true;
  if (x.norm == 0 || y.norm == 0) return x.norm > y.norm;
  const int ex = x.exponent + std::ilogb(x.norm), ey = y.exponent + std::ilogb(y.norm);
  if (ex != ey) return ex > ey;
  return std::ldexp(x.norm, x.exponent - ex) > std::ldexp(y.norm, y.exponent - ey);
}

template <class T>
void scale_and_measure(T* x, Index m, Column& c) {
  double most = 0;
  for (Index i = 0; i < m; ++i) {
    const double size = std::abs(static_cast<double>(x[i]));
    most = size > most || size != size ? size : most;
  }
  c.exponent = most > 0 && std::isfinite(most) ? std::ilogb(most) : 0;
  double sum = 0;
  for (Index i = 0; i < m; ++i) {
    x[i] = std::scalbn(x[i], -c.exponent);
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  c.norm = std::sqrt(sum);
}

/// y := (I - tau v vᵀ) y for n rows; returns the norm of all but its first element.
template <class T>
double reflect(const T* v, double tau, T* y, Index n) {
  double dot = 0;
  for (Index i = 0; i < n; ++i) dot += static_cast<double>(v[i]) * static_cast<double>(y[i]);
  dot *= tau;
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<double>(y[i]) - dot * static_cast<double>(v[i]));
    if (i > 0) sum += static_cast<double>(y[i]) * static_cast<double>(y[i]);
  }
  return std::sqrt(sum);
}

}  // namespace

template <class T>
void pivoted_factor(const Queue& queue, const PivotedFactor<Cpu, T>& task, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  constexpr double negligible = sizeof(T) == 4 ? 0x1p-100 : 0x1p-500;  // of a column whose largest element was 1
  const Index m = task.a.rows, n = task.a.cols;
  std::vector<Column> columns(static_cast<std::size_t>(n));
  const auto at = [&](Index position) {
    return task.a.data + columns[static_cast<std::size_t>(position)].place * task.a.ld;
  };
  queue.workers().run(n, m * n, [&](Index j, int) {
    columns[static_cast<std::size_t>(j)].place = j;
    scale_and_measure(at(j), m, columns[static_cast<std::size_t>(j)]);
  });
  std::vector<T> v(static_cast<std::size_t>(m));
  Index step = 0, rank = -1;
  Column first;
  for (; step < task.steps; ++step) {
    Index best = step;
    for (Index j = step + 1; j < n; ++j)
      if (longer(columns[static_cast<std::size_t>(j)], columns[static_cast<std::size_t>(best)])) best = j;
    std::swap(columns[static_cast<std::size_t>(step)], columns[static_cast<std::size_t>(best)]);
    const Column chosen = columns[static_cast<std::size_t>(step)];
    if (step == 0) first = chosen;
    const double norm = chosen.norm <= negligible ? 0.0 : chosen.norm;
    if (rank < 0 && std::ldexp(norm, chosen.exponent - first.exponent) <= task.tolerance * first.norm) rank = step;
    if (rank >= 0 && task.truncate) break;
    T* x = at(step) + step;
    const double alpha = static_cast<double>(x[0]), beta = alpha >= 0 ? -norm : norm;
    const double tau = norm == 0 ? 0 : (beta - alpha) / beta;
    x[0] = static_cast<T>(beta);
    v[0] = 1;
    for (Index i = 1; i < m - step; ++i)
      x[i] = v[static_cast<std::size_t>(i)] =
          norm == 0 ? T(0) : static_cast<T>(static_cast<double>(x[i]) / (alpha - beta));
    task.inverse_tau[step] = tau == 0 ? static_cast<T>(0x1p60) : static_cast<T>(1 / tau);
    if (tau == 0) continue;
    const double rounded_tau = static_cast<double>(static_cast<T>(tau));
    queue.workers().run(n - step - 1, 4 * (m - step) * (n - step - 1), [&](Index k, int) {
      const Index j = step + 1 + k;
      columns[static_cast<std::size_t>(j)].norm = reflect(v.data(), rounded_tau, at(j) + step, m - step);
    });
  }
  queue.workers().run(n, m * n, [&](Index j, int) {
    const Column& c = columns[static_cast<std::size_t>(j)];
    const Index scaled = j < step ? j + 1 : m;  // reflectors have no scale
    T* target = task.packed.data + j * task.packed.ld;
    for (Index i = 0; i < m; ++i) target[i] = i < scaled ? std::scalbn(at(j)[i], c.exponent) : at(j)[i];
    task.columns[j] = static_cast<std::int32_t>(c.place);
  });
  *task.rank = static_cast<std::int32_t>(rank < 0 ? step : rank);
}

template <class T>
void gather_columns(const Queue& queue, const Mat<T>& source, std::int32_t* columns, const Mat<T>& target) {
  if (queue.skip()) return;
  queue.workers().run(target.cols, target.rows * target.cols, [&](Index j, int) {
    if (columns[j] < source.cols)
      std::copy_n(source.data + columns[j] * source.ld, target.rows, target.data + j * target.ld);
  });
}

#define QRANE_INSTANTIATE(T)                                                                     \
  template void pivoted_factor(const Queue&, const PivotedFactor<Cpu, T>&, const Scratch<Cpu>&); \
  template void gather_columns(const Queue&, const Mat<T>&, std::int32_t*, const Mat<T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
