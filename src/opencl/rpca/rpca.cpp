// SPDX-License-Identifier: Apache-2.0
// Robust PCA on OpenCL devices.
#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

template <class T>
void robust_pca_pass(const Queue& queue, const RobustPcaPass<OpenCL, T>& pass, const Scratch<OpenCL>& scratch) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(queue.device().is_gpu() ? 256 : 64);
  const int lanes = strip_lanes(pass.m.rows, work_group);
  const Index strips = strip_count(pass.m.rows, pass.m.cols, 1, lanes, work_group);
  const Index wanted = std::min<Index>(strips, 16 * static_cast<Index>(queue.device().compute_units()));
  const Index partials = std::max<Index>(1, std::min<Index>(wanted, scratch.bytes / 8));
  const Pointer<double> partial = partials > 1 ? cast_pointer<double>(scratch.data) : pass.residual_squared;
  queue.device().launch(queue.device().kernel({"robust_pca.cl"}, "robust_pca_pass", real_defines<T>(work_group)),
                        partials, work_group, queue.condition(), pass.m.data, pass.l.data, pass.y.data, pass.s.data,
                        pass.x.data, partial, pass.m.ld, pass.m.rows, pass.m.cols, lanes, static_cast<T>(pass.mu),
                        static_cast<T>(1 / pass.mu), static_cast<T>(1 / pass.mu_next), static_cast<T>(pass.threshold));
  if (partials > 1)
    queue.device().launch(queue.device().kernel({"reduce.cl"}, "reduce_partials", real_defines<T>(work_group)), 1,
                          work_group, queue.condition(), partial, pass.residual_squared, partials,
                          static_cast<int>(Reduction::sum_squares));
}

template void robust_pca_pass(const Queue&, const RobustPcaPass<OpenCL, float>&, const Scratch<OpenCL>&);
template void robust_pca_pass(const Queue&, const RobustPcaPass<OpenCL, double>&, const Scratch<OpenCL>&);

}  // namespace qrane::backend::opencl
