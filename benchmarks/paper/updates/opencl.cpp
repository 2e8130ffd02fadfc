// SPDX-License-Identifier: Apache-2.0
// Wavefronts of Givens rotations: rotate.cl.
#include "paper/opencl.hpp"
#include "opencl/queue/scalar.hpp"
#include "paper/sources.hpp"

namespace qrane::backend::opencl {

namespace {

template <class T>
cl_kernel kernel(Device& device, const char* name, int work_group, Index waves) {
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("WAVES", std::to_string(waves));
  return device.kernel({}, name, defines, detail::whole(paper::embedded_texts[0]));
}

}  // namespace

template <class T>
void make_rotations(const Queue& queue, const Rotations<OpenCL, T>& task) {
  check_scalar<T>(queue.device());
  if (task.heights < 1) return;
  const int work_group = queue.device().work_group(static_cast<int>(max_waves));
  detail::check(task.strip.rows <= work_group, ErrorCode::unavailable, "OpenCL: rotations in ", task.strip.rows,
                " waves need a work-group of as many items, the device takes ", work_group);
  queue.device().launch(kernel<T>(queue.device(), "make_rotations", work_group, task.strip.rows), 1, work_group,
                        queue.condition(), task.strip, task.cs, task.heights, task.strip.cols);
}

template <class T>
void rotate(const Queue& queue, const Rotate<OpenCL, T>& task) {
  check_scalar<T>(queue.device());
  if (task.heights < 1 || task.x.rows == 0) return;
  const int work_group = queue.device().work_group(64);
  queue.device().launch(kernel<T>(queue.device(), "rotate_columns", work_group, task.waves),
                        (task.x.rows + work_group - 1) / work_group, work_group, queue.condition(), task.x, task.cs,
                        task.x.rows, task.x.cols, task.heights, task.drop ? 1 : 0, task.lower ? 1 : 0);
}

template void make_rotations(const Queue&, const Rotations<OpenCL, float>&);
template void make_rotations(const Queue&, const Rotations<OpenCL, double>&);
template void rotate(const Queue&, const Rotate<OpenCL, float>&);
template void rotate(const Queue&, const Rotate<OpenCL, double>&);

}  // namespace qrane::backend::opencl
