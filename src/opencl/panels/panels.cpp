// SPDX-License-Identifier: Apache-2.0
// Panels of QR on OpenCL devices.
#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "opencl/reach.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

namespace {

constexpr int chunk_rows = 16;  // CHUNK of apply.cl

// What factor.cl keeps in local memory besides the panel, and a margin for what compilers add.
template <class T>
std::int64_t factor_bytes(int work_group) {
  const int lanes = std::min(work_group, 16);
  return sizeof(T) * panel_cols * (panel_cols + lanes + 4) + panel_cols * sizeof(std::int32_t) + 512;
}

// Work-items for one block: on a GPU enough to have about 16 elements each. A CPU runs a group on one core, where one
// work-item with vectors is fastest.
int factor_work_group(const Device& device, Index rows, Index cols) {
  if (!device.is_gpu()) return 1;
  return device.work_group(rows * cols <= 64 * 16 ? 64 : 256);
}

template <class T>
bool panel_fits(const Device& device, int work_group, Index rows, Index cols) {
  return factor_bytes<T>(work_group) + (rows | 1) * cols * static_cast<Index>(sizeof(T)) <= device.local_bytes();
}

template <class T>
void check_panel(const Panel<OpenCL, T>& panel) {
  detail::check(panel.max_cols <= panel_cols, ErrorCode::invalid_argument, "OpenCL panel kernels take ", panel_cols,
                " columns, got max_cols = ", panel.max_cols);
  detail::check(panel.inner >= panel.max_cols, ErrorCode::invalid_argument,
                "OpenCL panel kernels keep one T per panel: inner = ", panel.inner,
                " is less than max_cols = ", panel.max_cols);
}

}  // namespace

template <class T>
int max_block_rows(const Device& device) {
  int rows = 128;
  while (rows < 1024 && panel_fits<T>(device, device.work_group(256), rows + 32, panel_cols)) rows += 32;
  return rows;
}

namespace {

template <class T>
void factor_panel(const Queue& queue, const Panel<OpenCL, T>& panel, bool tree) {
  check_scalar<T>(queue.device());
  check_panel(panel);
  if (panel.max_cols == 0 || panel.max_rows == 0) return;
  const int work_group = factor_work_group(queue.device(), panel.max_rows, panel.max_cols);
  const bool local = panel_fits<T>(queue.device(), work_group, panel.max_rows, panel.max_cols);
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("NB", std::to_string(panel_cols));
  defines.emplace_back("TREE", tree ? "1" : "0");
  defines.emplace_back("PANEL", local ? "__local" : "__global");
  defines.emplace_back("PANEL_IS_LOCAL", local ? "1" : "0");
  const Index tile = local ? (panel.max_rows | 1) * Index{panel.max_cols} * static_cast<Index>(sizeof(T)) : 16;
  queue.device().launch(queue.device().kernel({"task.cl", "factor.cl"}, "factor", defines), panel.task_count,
                        work_group, queue.condition(), panel.a, panel.t, panel.tasks, panel.inner, LocalBytes{tile});
}

// Columns of C for a group of apply.cl: what local memory and the largest group hold.
template <class T>
int gpu_apply_cols(const Device& device, int padded, Index c_cols) {
  const auto local_bytes = [&](int cols) {
    return static_cast<std::int64_t>(sizeof(T)) * (chunk_rows * (padded + cols + 2) + padded * (cols + 1)) + 512;
  };
  int cols = c_cols > 16 ? 64 : 16;
  while (cols > 4 && (local_bytes(cols) > device.local_bytes() || padded * cols / 16 > device.work_group(1024)))
    cols /= 2;
  return cols;
}

// The same of apply_core.cl, and its CHUNK. With the widest panel of doubles they take 56 or 14 KiB of local memory.
struct CoreTile {
  int cols, chunk_rows;
};
CoreTile core_tile(const Device& device) {
  return device.local_bytes() >= 65536 ? CoreTile{48, 128} : CoreTile{12, 32};
}

template <class T>
void apply_panel(const Queue& queue, const Apply<OpenCL, T>& apply, bool tree) {
  check_scalar<T>(queue.device());
  const Panel<OpenCL, T>& panel = apply.panel;
  check_panel(panel);
  if (panel.max_cols == 0 || apply.c.cols == 0) return;
  const bool gpu = queue.device().is_gpu();
  const int padded = panel.max_cols <= 8 ? 8 : panel.max_cols <= 16 ? 16 : 32;
  const int cols = gpu ? gpu_apply_cols<T>(queue.device(), padded, apply.c.cols) : core_tile(queue.device()).cols;
  const int work_group = gpu ? padded * cols / 16 : 1;
  Defines defines = real_defines<T>(work_group);
  const auto define = [&](const char* name, const std::string& value) { defines.emplace_back(name, value); };
  define("TREE", tree ? "1" : "0");
  define("KP", std::to_string(padded));
  define("TC", std::to_string(cols));
  if (!gpu) {
    define("CHUNK", std::to_string(core_tile(queue.device()).chunk_rows));
    define("LANES", std::to_string(32 / sizeof(T)));
    for (const char* name : {"A_TYPE", "B_TYPE", "ACC"}) define(name, type_name<T>);
    define("A_SPACE", "__local");
  }
  const std::vector<std::string> files = gpu ? std::vector<std::string>{"task.cl", "product.cl", "apply.cl"}
                                             : std::vector<std::string>{"task.cl", "dots_core.cl", "apply_core.cl"};
  const Index tiles = (apply.c.cols + cols - 1) / cols;
  queue.device().launch(queue.device().kernel(files, "apply", defines), panel.task_count * tiles, work_group,
                        queue.condition(), panel.a, panel.t, panel.tasks, apply.c, apply.c.cols, panel.inner,
                        static_cast<int>(apply.op == Op::transpose));
}

}  // namespace

template <class T>
void factor(const Queue& queue, const Panel<OpenCL, T>& panel) {
  factor_panel(queue, panel, false);
}

template <class T>
void factor_tree(const Queue& queue, const Panel<OpenCL, T>& panel) {
  factor_panel(queue, panel, true);
}

template <class T>
void apply_qt_h(const Queue& queue, const Apply<OpenCL, T>& apply) {
  apply_panel(queue, apply, false);
}

template <class T>
void apply_qt_tree(const Queue& queue, const Apply<OpenCL, T>& apply) {
  apply_panel(queue, apply, true);
}

template <class T>
void reconstruct(const Queue& queue, const Reconstruct<OpenCL, T>& r) {
  check_scalar<T>(queue.device());
  const Index b = r.q1.rows;
  detail::check(2 * b * static_cast<Index>(sizeof(T)) <= queue.device().local_bytes(), ErrorCode::invalid_argument,
                "reconstruct: ", b, " columns need more local memory than the device's ", queue.device().local_bytes(),
                " bytes");
  if (b == 0) return;
  const int work_group = queue.device().work_group(queue.device().is_gpu() ? 256 : 64);
  queue.device().launch(queue.device().kernel({"reconstruct.cl"}, "reconstruct", real_defines<T>(work_group)),
                        r.panel.count, work_group, queue.condition(), r.q1, r.r, r.panel, r.t, r.u_inverse,
                        static_cast<int>(b), LocalBytes{2 * b * static_cast<Index>(sizeof(T))});
}

#define QRANE_INSTANTIATE(T)                                          \
  template int max_block_rows<T>(const Device&);                      \
  template void factor(const Queue&, const Panel<OpenCL, T>&);        \
  template void factor_tree(const Queue&, const Panel<OpenCL, T>&);   \
  template void apply_qt_h(const Queue&, const Apply<OpenCL, T>&);    \
  template void apply_qt_tree(const Queue&, const Apply<OpenCL, T>&); \
  template void reconstruct(const Queue&, const Reconstruct<OpenCL, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::opencl
