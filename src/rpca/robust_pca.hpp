// SPDX-License-Identifier: Apache-2.0
// Robust PCA of a matrix given by the user: checks, and matrices wider than tall.
#pragma once

#include <qrane/robust_pca.hpp>

#include "rpca/iteration.hpp"

namespace qrane::rpca {

inline void check_options(const RobustPcaOptions& o) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(o.relative_tolerance >= 0, code, "RobustPcaOptions::relative_tolerance must not be negative, got ",
        o.relative_tolerance);
  check(o.max_iterations > 0, code, "RobustPcaOptions::max_iterations must be positive, got ", o.max_iterations);
  check(o.lambda_multiplier > 0, code, "RobustPcaOptions::lambda_multiplier must be positive, got ",
        o.lambda_multiplier);
  check(o.mu >= 0, code, "RobustPcaOptions::mu must not be negative, got ", o.mu);
  check(o.rho > 1 || o.method == RobustPcaMethod::alternating, code, "RobustPcaOptions::rho must exceed 1, got ",
        o.rho);
}

/// M of any shape; a wide one is separated as its transpose.
template <class B, class T>
RobustPca<T> robust_pca(typename B::Queue& queue, const plan::DeviceProfile& profile, MatrixView<const T> m,
                        const RobustPcaOptions& options) {
  dense::check_view("m", m);
  check_options(options);
  RobustPca<T> result;
  const bool wide = m.rows < m.cols;
  if (wide) {  // the storage of M read the other way round is its transpose
    std::swap(m.rows, m.cols);
    m.layout = m.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  }
  Iteration<B, T> iteration(queue, profile, m.rows, m.cols, options);
  auto& work = iteration.work;
  dense::load<B, T>(queue, m, work.m);
  if (options.check_finite) dense::check_finite<B, T>(queue, "m", work.m, wide);
  if (m.rows > 0 && m.cols > 0)
    iteration.run(result);
  else
    result.converged = true;
  const auto out = [&](const backend::DeviceMatrix<B, T>& a) {
    Matrix<T> r = m.memory == Memory::host
                      ? Matrix<T>::host(wide ? a.cols : a.rows, wide ? a.rows : a.cols)
                      : dense::device_matrix<B, T>(queue, wide ? a.cols : a.rows, wide ? a.rows : a.cols);
    MatrixView<T> v = r.view();
    if (wide) {
      std::swap(v.rows, v.cols);
      v.layout = Layout::row_major;
    }
    dense::store<B, T>(queue, a, v);
    return r;
  };
  result.low_rank = out(iteration.low_rank());
  result.sparse = out(iteration.sparse());
  queue.synchronize();
  return result;
}

}  // namespace qrane::rpca
