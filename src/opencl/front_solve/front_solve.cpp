// SPDX-License-Identifier: Apache-2.0
// Uses of factored fronts (vocabulary/front_solve.hpp).
#include "vocabulary/front_solve.hpp"
#include "opencl/queue/scalar.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

namespace {

int work_group_of(const Device& device) { return device.work_group(device.is_gpu() ? 256 : 64); }

/// `panel` columns of a panel of Q; where a kernel has to do with none, any.
template <class T, class... Arguments>
void launch(Device& device, const std::vector<std::string>& files, const std::string& kernel, Index groups,
            int work_group, int panel, const Arguments&... arguments) {
  check_scalar<T>(device);
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("NB", std::to_string(panel));
  device.launch(device.kernel(files, kernel, defines), groups, work_group, arguments...);
}

/// A work-item for each number.
template <class T, class... Arguments>
void launch_lines(Device& device, const std::string& kernel, Index numbers, const Arguments&... arguments) {
  const int work_group = work_group_of(device);
  launch<T>(device, {"front_lines.cl"}, kernel, (numbers + work_group - 1) / work_group, work_group, 1, arguments...);
}

template <class T>
void launch_solve(Device& device, Pointer<std::int32_t> condition, const std::string& kernel,
                  const FrontSolve<OpenCL, T>& f, const FrontTasks<OpenCL, FrontBlock>& tasks, Op op) {
  if (f.cols == 0) return;
  launch<T>(device, {"fronts.cl", "front_solve.cl"}, kernel, tasks.count, work_group_of(device), 1, condition, f.shapes,
            f.states, f.r_begin, f.live, f.front_cols, f.r, f.x, f.y, f.w, tasks.tasks, f.cols,
            static_cast<cl_int>(op == Op::transpose));
}

template <class T, class Task>
void launch_reflect(Device& device, Pointer<std::int32_t> condition, const std::string& kernel,
                    const FrontReflect<OpenCL, T>& f, const FrontTasks<OpenCL, Task>& tasks, Op op) {
  if (f.cols == 0) return;
  launch<T>(device, {"fronts.cl", "front_reflect.cl"}, kernel, tasks.count, work_group_of(device), f.panel, condition,
            f.shapes, f.panels, f.row_ids, f.storage, f.lines, f.products, tasks.tasks, f.cols,
            static_cast<cl_int>(op == Op::transpose));
}

}  // namespace

template <class T>
void copy_lines(const Queue& queue, const CopyLines<OpenCL, T>& t) {
  launch_lines<T>(queue.device(), "copy_lines", t.count * t.cols, queue.condition(), t.source, t.target, t.source_index,
                  t.target_index, t.exponents, static_cast<cl_long>(t.source_line), static_cast<cl_long>(t.source_step),
                  static_cast<cl_long>(t.target_line), static_cast<cl_long>(t.target_step),
                  static_cast<cl_long>(t.count), t.cols, t.sign, static_cast<cl_int>(t.add));
}

template <class T>
void sum_lines(const Queue& queue, const SumLines<OpenCL, T>& t) {
  launch_lines<T>(queue.device(), "sum_lines", t.count * t.cols, queue.condition(), t.out, t.in, t.x, t.values, t.list,
                  t.in_index, t.index, t.entry, t.begin, static_cast<cl_long>(t.count), t.cols, t.sign, t.skip);
}

template <class T>
void norm_lines(const Queue& queue, const NormLines<OpenCL, T>& t) {
  if (t.cols == 0) return;
  launch<T>(queue.device(), {"front_lines.cl"}, "norm_lines", t.parts, work_group_of(queue.device()), 1,
            queue.condition(), t.lines, t.exponents, t.partials, static_cast<cl_long>(t.count), t.cols, t.sign,
            t.parts);
}

template <class T>
void solve_front_rows(const Queue& queue, const FrontSolve<OpenCL, T>& f, const FrontTasks<OpenCL, FrontBlock>& tasks,
                      Op op) {
  launch_solve(queue.device(), queue.condition(), "solve_front_rows", f, tasks, op);
}

template <class T>
void update_front_rows(const Queue& queue, const FrontSolve<OpenCL, T>& f, const FrontTasks<OpenCL, FrontBlock>& tasks,
                       Op op) {
  launch_solve(queue.device(), queue.condition(), "update_front_rows", f, tasks, op);
}

template <class T>
void reflect_front_lines(const Queue& queue, const FrontReflect<OpenCL, T>& f,
                         const FrontTasks<OpenCL, std::int32_t>& list, Op op) {
  launch_reflect(queue.device(), queue.condition(), "reflect_front_lines", f, list, op);
}

template <class T>
void multiply_front_panels(const Queue& queue, const FrontReflect<OpenCL, T>& f,
                           const FrontTasks<OpenCL, FrontPanelPart>& tasks) {
  launch_reflect(queue.device(), queue.condition(), "multiply_front_panels", f, tasks, Op::none);
}

template <class T>
void update_front_lines(const Queue& queue, const FrontReflect<OpenCL, T>& f,
                        const FrontTasks<OpenCL, FrontPanelPart>& tasks, Op op) {
  launch_reflect(queue.device(), queue.condition(), "update_front_lines", f, tasks, op);
}

#define QRANE_INSTANTIATE(T)                                                                                         \
  template void copy_lines(const Queue&, const CopyLines<OpenCL, T>&);                                               \
  template void sum_lines(const Queue&, const SumLines<OpenCL, T>&);                                                 \
  template void norm_lines(const Queue&, const NormLines<OpenCL, T>&);                                               \
  template void solve_front_rows(const Queue&, const FrontSolve<OpenCL, T>&, const FrontTasks<OpenCL, FrontBlock>&,  \
                                 Op);                                                                                \
  template void update_front_rows(const Queue&, const FrontSolve<OpenCL, T>&, const FrontTasks<OpenCL, FrontBlock>&, \
                                  Op);                                                                               \
  template void reflect_front_lines(const Queue&, const FrontReflect<OpenCL, T>&,                                    \
                                    const FrontTasks<OpenCL, std::int32_t>&, Op);                                    \
  template void multiply_front_panels(const Queue&, const FrontReflect<OpenCL, T>&,                                  \
                                      const FrontTasks<OpenCL, FrontPanelPart>&);                                    \
  template void update_front_lines(const Queue&, const FrontReflect<OpenCL, T>&,                                     \
                                   const FrontTasks<OpenCL, FrontPanelPart>&, Op);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::opencl
