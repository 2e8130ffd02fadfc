// SPDX-License-Identifier: Apache-2.0
// CPU backend: the elementwise pass of robust PCA (reads m, l, y; writes y, s, x: 6 m n elements) and its verdict.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

template <class T>
void robust_pca_pass(const Queue& queue, const RobustPcaPass<Cpu, T>& p, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  constexpr Index chunk = 1 << 14;
  const Index per_column = (p.m.rows + chunk - 1) / chunk;
  std::vector<double> partial(static_cast<std::size_t>(per_column * p.m.cols), 0.0);
  const T mu = static_cast<T>(p.mu);
  const T inverse_mu = static_cast<T>(1 / p.mu);
  const T inverse_next = static_cast<T>(1 / p.mu_next);
  const T threshold = static_cast<T>(p.threshold);
  queue.workers().run(per_column * p.m.cols, p.m.rows * p.m.cols, [&](Index index, int) {
    const Index j = index / per_column, first = index % per_column * chunk;
    double sum = 0;
    for (Index i = first; i < std::min(p.m.rows, first + chunk); ++i) {
      const T m = p.m.data[i + j * p.m.ld];
      const T gap = m - p.l.data[i + j * p.l.ld];
      T& y = p.y.data[i + j * p.y.ld];
      const T v = gap + y * inverse_mu;
      const T s = v > threshold ? v - threshold : (v < -threshold ? v + threshold : v - v);  // v - v keeps NaN
      const T z = gap - s;
      y += mu * z;
      p.s.data[i + j * p.s.ld] = s;
      p.x.data[i + j * p.x.ld] = m - s + y * inverse_next;
      sum += static_cast<double>(z) * static_cast<double>(z);
    }
    partial[static_cast<std::size_t>(index)] = sum;
  });
  double total = 0;
  for (double s : partial) total += s;
  *p.residual_squared = total;
}

template void robust_pca_pass(const Queue&, const RobustPcaPass<Cpu, float>&, const Scratch<Cpu>&);
template void robust_pca_pass(const Queue&, const RobustPcaPass<Cpu, double>&, const Scratch<Cpu>&);

void robust_pca_verdict(const Queue& queue, const RobustPcaVerdict<Cpu>& v) {
  if (queue.skip()) return;
  double change = 0, rank = 0;
  for (Index i = 0; i < v.n; ++i) {
    const double left = std::max(v.sigma[i] - v.threshold, 0.0), moved = left - v.before[i];
    rank += left > 0;
    change += moved * moved;
    v.before[i] = left;
  }
  v.record[0] = std::sqrt(*v.residual_squared) / (v.norm > 0 ? v.norm : 1.0);
  v.record[1] = rank;
  const bool settled = !v.settle || std::sqrt(change) <= v.tolerance * v.norm;
  if (std::isnan(v.record[0]) || (v.record[0] <= v.tolerance && settled)) *v.running = 0;
}

}  // namespace qrane::backend::cpu
