// SPDX-License-Identifier: Apache-2.0
// m >= n below; a wide matrix is its leading m columns and a trailing matrix that every panel updates.
//   tree      2 m n^2 - 2 n^3 / 3 and the nodes' share: a level has 1/arity of the blocks of the one below, each n^2 to
//             n^3 of work on triangles. Every panel reads and writes itself and the trailing matrix once.
//   blocked   the same and Q of each panel (as many flops as factoring it); the matrix right of a block of columns is
//             read twice and written once, by two products.
//   Cholesky  m n^2 for the Gram matrix and as many for an explicit Q, A read once for each: the first pass. What comes
//             after it depends on the data.
#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>

#include "plan/plan.hpp"

namespace qrane::plan {

namespace {

/// Columns of the matrix that are still to be updated after each step of `width`, over all steps, times rows left.
double trailing_elements(double m, double n, double k, double width) {
  double sum = 0;
  for (double done = width; done - width < k; done += width)
    sum += std::max(0.0, n - std::min(done, k)) * (m - done + width);
  return sum;
}

double panel_elements(double m, double k, double width) {
  double sum = 0;
  for (double col = 0; col < k; col += width) sum += (m - col) * std::min(width, k - col);
  return sum;
}

}  // namespace

Cost predict(const Plan& p) {
  const double m = static_cast<double>(p.rows), n = static_cast<double>(p.cols), k = std::min(m, n);
  const double size = p.scalar_bytes, panel = std::max(p.expert.panel_cols, 1),
               block = std::max(p.expert.block_cols, 1);
  const bool explicit_q = p.q == QForm::thin || p.q == QForm::full;
  const double q_cols = p.q == QForm::full ? m : k;  // k reflectors on the columns that each of them reaches
  const double form_q = explicit_q ? 4 * m * q_cols * k - 2 * (m + q_cols) * k * k + 4 * k * k * k / 3 : 0;
  Cost c;
  if (p.expert.absorbing_units > 0) {  // A is read once for R, and read again and Q written once for thin Q
    const bool thin = p.q == QForm::thin;
    c.flops = 2 * m * n * n * (thin ? 3 : 1);
    c.bytes = size * m * n * (thin ? 3 : 1);
    return c;
  }
  switch (p.algorithm) {
    case Algorithm::cholesky_qr: {
      const double products = p.q == QForm::thin ? 1 : 0;
      c.flops = (1 + products) * m * n * (n + 1) + n * n * n;
      c.bytes = size * m * n * (1 + 2 * products);
      break;
    }
    case Algorithm::blocked: {
      const double panels = panel_elements(m, k, panel);
      c.flops = qr_flops(m, n) + 2 * panels * panel + form_q;
      c.bytes = size * (4 * panels + 3 * trailing_elements(m, n, k, block) + 3 * m * block * std::ceil(k / block) / 2 +
                        (explicit_q ? 3 * m * q_cols : 0));
      break;
    }
    case Algorithm::householder: {  // panels also read the rest of their block twice and write it once
      const double panels = panel_elements(m, k, panel), rest = panels * (block / panel - 1) / 2;
      c.flops = qr_flops(m, n) + (p.expert.small ? 0 : panels * (panel + block)) + form_q;
      c.bytes = p.expert.small ? size * (2 * m * n + (explicit_q ? 2 * m * q_cols : 0))
                               : size * (3 * panels + 3 * rest + 3 * trailing_elements(m, n, k, block) +
                                         (explicit_q ? 3 * m * q_cols : 0));
      break;
    }
    default: {
      // heads of all levels together, as a share of the leaves' rows
      const double heads = panel / std::max<double>(static_cast<double>(p.expert.block_rows), 1) * p.expert.arity /
                           (p.expert.arity - 1.0);
      c.flops = (qr_flops(m, n) + form_q) * (1 + heads);
      const double factored = panel_elements(m, k, panel), updated = trailing_elements(m, n, k, panel);
      c.bytes = size * 2 * (factored + updated) * (1 + heads);
      if (explicit_q) c.bytes += size * (2 * (m * q_cols + updated) + factored) * (1 + heads);
      break;
    }
  }
  c.flops *= static_cast<double>(p.count);
  c.bytes *= static_cast<double>(p.count);
  return c;
}

}  // namespace qrane::plan
