// SPDX-License-Identifier: Apache-2.0
// Frontal matrices (vocabulary/fronts.hpp): a group per task. Small fronts go through the same kernels, all of a list
// at once.
#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "opencl/reach.hpp"
#include "opencl/whole.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::opencl {

constexpr int most_panel_cols = 32;

// A CPU runs a group on one core.
template <class T>
int front_update_cols(const Device& device) {
  constexpr int chunk_rows = 16;  // CHUNK of product.cl
  const auto local_bytes = [](int cols) {
    return static_cast<std::int64_t>(sizeof(T)) *
               (chunk_rows * (most_panel_cols + cols + 2) + most_panel_cols * (cols + 1)) +
           512;
  };
  int cols = device.is_gpu() ? 64 : 16;
  while (cols > 4 &&
         (local_bytes(cols) > device.local_bytes() || most_panel_cols * cols / 16 > device.work_group(1024)))
    cols /= 2;
  return cols;
}

namespace {

constexpr int tasks_as_given = -1;  // the kernels' argument `whole`

template <class T>
class FrontLaunch {
 public:
  FrontLaunch(Device& device, Pointer<std::int32_t> condition, const Fronts<OpenCL, T>& fronts)
      : device_(device), condition_(condition), f_(fronts), work_group_(device.work_group(device.is_gpu() ? 256 : 64)) {
    check_scalar<T>(device);
    detail::check(f_.panel > 0 && f_.panel <= most_panel_cols, ErrorCode::invalid_argument,
                  "OpenCL: panels of fronts have 1 to ", most_panel_cols, " columns, got ", f_.panel);
  }

  void lay_out(const FrontTasks<OpenCL, std::int32_t>& list) {
    launch("fronts_layout.cl", "lay_out_fronts", list.count, list.tasks);
  }
  template <class Task>
  void assemble(const FrontTasks<OpenCL, Task>& tasks, int whole) {
    launch("fronts_layout.cl", "assemble_fronts", tasks.count, tasks.tasks, whole);
  }
  void pack(const FrontTasks<OpenCL, FrontPieceTask>& tasks) {
    launch("fronts_layout.cl", "pack_fronts", tasks.count, tasks.tasks);
  }
  void unpack(const FrontTasks<OpenCL, FrontPieceTask>& tasks) {
    launch("fronts_layout.cl", "unpack_fronts", tasks.count, tasks.tasks);
  }
  template <class Task>
  void factor_panels(const FrontTasks<OpenCL, Task>& tasks, int whole) {
    launch("fronts_panel.cl", "factor_front_panels", tasks.count, tasks.tasks, whole);
  }
  /// `tiles` groups for each task.
  template <class Task>
  void update(const FrontTasks<OpenCL, Task>& tasks, int whole, int tiles) {
    const int padded = (f_.panel + 3) / 4 * 4, cols = front_update_cols<T>(device_), work_group = padded * cols / 16;
    launch_as({"fronts.cl", "product.cl", "fronts_update.cl"}, "update_fronts", tasks.count * tiles, work_group,
              {{"KP", std::to_string(padded)}, {"TC", std::to_string(cols)}}, tasks.tasks, whole, tiles);
  }
  template <class Task>
  void finish(const FrontTasks<OpenCL, Task>& tasks, int whole) {
    launch("fronts_layout.cl", "finish_fronts", tasks.count, tasks.tasks, whole);
  }

 private:
  template <class... More>
  void launch(const std::string& file, const std::string& kernel, Index groups, const More&... more) {
    launch_as({"fronts.cl", file}, kernel, groups, work_group_, {}, more...);
  }
  template <class... More>
  void launch_as(const std::vector<std::string>& files, const std::string& kernel, Index groups, int work_group,
                 Defines defines, const More&... more) {
    for (auto& define : real_defines<T>(work_group)) defines.push_back(define);
    defines.emplace_back("NB", std::to_string(f_.panel));
    device_.launch(device_.kernel(files, kernel, defines), groups, work_group, condition_, f_.shapes, f_.children,
                   f_.row_begin, f_.entry_col, f_.own_column, f_.parent_col, f_.values, f_.exponents, f_.rhs, f_.states,
                   f_.panels, f_.stair, f_.own_slot, f_.cb_slot, f_.row_ids, f_.pivot, f_.storage, f_.r,
                   static_cast<cl_long>(f_.rhs_ld), f_.rhs_cols, f_.tolerance, f_.scaled_tolerance, more...);
  }

  Device& device_;
  Pointer<std::int32_t> condition_;
  const Fronts<OpenCL, T>& f_;
  int work_group_;
};

}  // namespace

template <class T>
void lay_out_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, std::int32_t>& list) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).lay_out(list);
}

template <class T>
void assemble_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontShare>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).assemble(tasks, tasks_as_given);
}

template <class T>
void factor_front_panels(const Queue& queue, const Fronts<OpenCL, T>& fronts,
                         const FrontTasks<OpenCL, FrontPanelTask>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).factor_panels(tasks, tasks_as_given);
}

template <class T>
void update_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts,
                   const FrontTasks<OpenCL, FrontUpdateTask>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).update(tasks, tasks_as_given, 1);
}

template <class T>
void finish_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontShare>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).finish(tasks, tasks_as_given);
}

template <class T>
void pack_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts, const FrontTasks<OpenCL, FrontPieceTask>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).pack(tasks);
}

template <class T>
void unpack_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts,
                   const FrontTasks<OpenCL, FrontPieceTask>& tasks) {
  FrontLaunch<T>(queue.device(), queue.condition(), fronts).unpack(tasks);
}

// V and T are written with or without keep_q: the kernels work on them where they stand.
template <class T>
void factor_whole_fronts(const Queue& queue, const Fronts<OpenCL, T>& fronts,
                         const FrontTasks<OpenCL, std::int32_t>& list, bool) {
  FrontLaunch<T> launch(queue.device(), queue.condition(), fronts);
  const int cols = front_update_cols<T>(queue.device());
  launch.lay_out(list);
  launch.assemble(list, 0);
  for (int k = 0; k * fronts.panel < list.max_cols - fronts.rhs_cols; ++k) {
    launch.factor_panels(list, k);
    const int right = std::max(list.max_cols - (k + 1) * fronts.panel, fronts.rhs_cols);
    if (right > 0) launch.update(list, k, (right + cols - 1) / cols);
  }
  launch.finish(list, 0);
}

#define QRANE_INSTANTIATE(T)                                                                                         \
  template void lay_out_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, std::int32_t>&);     \
  template void assemble_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, FrontShare>&);      \
  template void factor_front_panels(const Queue&, const Fronts<OpenCL, T>&,                                          \
                                    const FrontTasks<OpenCL, FrontPanelTask>&);                                      \
  template void update_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, FrontUpdateTask>&);   \
  template void finish_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, FrontShare>&);        \
  template void pack_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, FrontPieceTask>&);      \
  template void unpack_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, FrontPieceTask>&);    \
  template void factor_whole_fronts(const Queue&, const Fronts<OpenCL, T>&, const FrontTasks<OpenCL, std::int32_t>&, \
                                    bool);                                                                           \
  template int front_update_cols<T>(const Device&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::opencl
