// SPDX-License-Identifier: Apache-2.0
// The guard of Cholesky-based methods on OpenCL devices.

#include "opencl/queue/scalar.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

template <class T>
void guarded_cholesky(const Queue& queue, const GuardedCholesky<OpenCL, T>& cholesky) {
  const Limits limit = queue.limits(T{});
  const Index n = cholesky.gram.rows;
  detail::check(n <= limit.max_cholesky, limit.max_cholesky == 0 ? ErrorCode::unavailable : ErrorCode::invalid_argument,
                "guarded_cholesky: n = ", n, ", and this OpenCL device takes at most ", limit.max_cholesky);
  const int work_group = queue.device().work_group(queue.device().is_gpu() ? 256 : 64);
  queue.device().launch(queue.device().kernel({"cholesky.cl"}, "guarded_cholesky", real_defines<double>(work_group)),
                        n > 0, work_group, queue.condition(), cholesky.gram, cholesky.r, cholesky.inverse,
                        cholesky.failed, cholesky.verdict, cholesky.condition, static_cast<int>(n), cholesky.limit,
                        cholesky.fit_limit, cholesky.rounding, cholesky.shift, LocalBytes{16 * n});
}

template void guarded_cholesky(const Queue&, const GuardedCholesky<OpenCL, float>&);
template void guarded_cholesky(const Queue&, const GuardedCholesky<OpenCL, double>&);

}  // namespace qrane::backend::opencl
