// SPDX-License-Identifier: Apache-2.0
// QR tile kernels, the small dense pieces that stay on the device, and the robust PCA pass.
#include <algorithm>

#include "opencl/queue/queue.hpp"
#include "opencl/queue/scalar.hpp"

namespace qrane::backend::opencl {

namespace {

constexpr int panel_cols = 32;  // NB of factor.cl
constexpr int chunk_rows = 16;  // CHUNK of apply.cl

// What factor.cl keeps in local memory besides the panel, and a margin for what compilers add.
template <class T>
std::int64_t factor_bytes(int work_group) {
  const int lanes = std::min(work_group, 16);
  return sizeof(T) * panel_cols * (panel_cols + lanes + 4) + 3 * panel_cols * sizeof(std::int32_t) + 512;
}

// Work-items for one block: on a GPU enough to have about 16 elements each. A CPU runs a group on one core,
// and each size is one more program to build: always the same.
int factor_work_group(const Device& device, Index rows, Index cols) {
  if (!device.is_gpu()) return device.work_group(64);
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
Limits Queue::limits(T) const {
  Limits limits;
  limits.max_panel_cols = panel_cols;
  limits.has_double = device_->has_double();
  limits.max_allocation_bytes = device_->max_allocation_bytes();
  limits.max_cholesky =
      device_->has_double()
          ? static_cast<int>(std::min<std::int64_t>(512, (device_->local_bytes() - 4096) / 16 / 32 * 32))
          : 0;
  // Taller blocks work in place in global memory; this is what is fast.
  int rows = 128;
  while (rows < 1024 && panel_fits<T>(*device_, device_->work_group(256), rows + 32, panel_cols)) rows += 32;
  limits.max_block_rows = rows;
  return limits;
}

template <class T>
void Queue::factor_panel(const Panel<OpenCL, T>& panel, bool tree) {
  check_scalar<T>(*device_);
  check_panel(panel);
  if (panel.max_cols == 0 || panel.max_rows == 0) return;
  const int work_group = factor_work_group(*device_, panel.max_rows, panel.max_cols);
  const bool local = panel_fits<T>(*device_, work_group, panel.max_rows, panel.max_cols);
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("NB", std::to_string(panel_cols));
  defines.emplace_back("TREE", tree ? "1" : "0");
  defines.emplace_back("PANEL", local ? "__local" : "__global");
  defines.emplace_back("PANEL_IS_LOCAL", local ? "1" : "0");
  const Index tile = local ? (panel.max_rows | 1) * Index{panel.max_cols} * static_cast<Index>(sizeof(T)) : 16;
  device_->launch(device_->kernel({"task.cl", "factor.cl"}, "factor", defines), panel.task_count, work_group,
                  condition_, panel.a, panel.t, panel.tasks, panel.staircase, panel.pivots, panel.inner, panel.max_cols,
                  static_cast<T>(panel.drop_tolerance), LocalBytes{tile});
}

template <class T>
void Queue::factor(const Panel<OpenCL, T>& panel) {
  factor_panel(panel, false);
}

template <class T>
void Queue::factor_tree(const Panel<OpenCL, T>& panel) {
  factor_panel(panel, true);
}

template <class T>
void Queue::apply_panel(const Apply<OpenCL, T>& apply, bool tree) {
  check_scalar<T>(*device_);
  const Panel<OpenCL, T>& panel = apply.panel;
  check_panel(panel);
  if (panel.max_cols == 0 || apply.c.cols == 0) return;
  const bool gpu = device_->is_gpu();  // on a CPU fewer programs to build matter more than the best tile
  const int padded = panel.max_cols <= 8 ? 8 : panel.max_cols <= 16 && gpu ? 16 : 32;
  const auto local_bytes = [&](int cols) {
    return static_cast<std::int64_t>(sizeof(T)) * (chunk_rows * (padded + cols + 2) + padded * (cols + 1)) +
           2 * padded * 4 + 512;
  };
  int cols = apply.c.cols > 16 && gpu ? 64 : 16;
  while (cols > 4 && (local_bytes(cols) > device_->local_bytes() || padded * cols / 16 > device_->work_group(1024)))
    cols /= 2;
  const int work_group = padded * cols / 16;
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("TREE", tree ? "1" : "0");
  defines.emplace_back("KP", std::to_string(padded));
  defines.emplace_back("TC", std::to_string(cols));
  const Index tiles = (apply.c.cols + cols - 1) / cols;
  device_->launch(device_->kernel({"task.cl", "product.cl", "apply.cl"}, "apply", defines), panel.task_count * tiles,
                  work_group, condition_, panel.a, panel.t, panel.tasks, panel.staircase, panel.pivots, apply.c,
                  apply.c.cols, panel.inner, panel.max_cols, static_cast<int>(apply.op == Op::transpose));
}

template <class T>
void Queue::apply_qt_h(const Apply<OpenCL, T>& apply) {
  apply_panel(apply, false);
}

template <class T>
void Queue::apply_qt_tree(const Apply<OpenCL, T>& apply) {
  apply_panel(apply, true);
}

template <class T>
void Queue::guarded_cholesky(const GuardedCholesky<OpenCL, T>& cholesky) {
  const Limits limit = limits(T{});
  const Index n = cholesky.gram.rows;
  detail::check(n <= limit.max_cholesky, limit.max_cholesky == 0 ? ErrorCode::unavailable : ErrorCode::invalid_argument,
                "guarded_cholesky: n = ", n, ", and this OpenCL device takes at most ", limit.max_cholesky);
  const int work_group = device_->work_group(device_->is_gpu() ? 256 : 64);
  device_->launch(device_->kernel({"cholesky.cl"}, "guarded_cholesky", real_defines<double>(work_group)), n > 0,
                  work_group, condition_, cholesky.gram, cholesky.r, cholesky.inverse, cholesky.failed,
                  cholesky.verdict, cholesky.condition, static_cast<int>(n), cholesky.limit, cholesky.fit_limit,
                  cholesky.rounding, cholesky.shift, LocalBytes{16 * n});
}

template <class T>
void Queue::reconstruct(const Reconstruct<OpenCL, T>& r) {
  check_scalar<T>(*device_);
  const Index b = r.q1.rows;
  detail::check(2 * b * static_cast<Index>(sizeof(T)) <= device_->local_bytes(), ErrorCode::invalid_argument,
                "reconstruct: ", b, " columns need more local memory than the device's ", device_->local_bytes(),
                " bytes");
  if (b == 0) return;
  const int work_group = device_->work_group(device_->is_gpu() ? 256 : 64);
  device_->launch(device_->kernel({"reconstruct.cl"}, "reconstruct", real_defines<T>(work_group)), r.panel.count,
                  work_group, condition_, r.q1, r.r, r.panel, r.t, r.u_inverse, static_cast<int>(b),
                  LocalBytes{2 * b * static_cast<Index>(sizeof(T))});
}

template <class T>
void Queue::robust_pca_pass(const RobustPcaPass<OpenCL, T>& pass, Scratch<OpenCL> scratch) {
  check_scalar<T>(*device_);
  const int work_group = device_->work_group(device_->is_gpu() ? 256 : 64);
  const int lanes = strip_lanes(pass.m.rows, work_group);
  const Index strips = strip_count(pass.m.rows, pass.m.cols, 1, lanes, work_group);
  const Index wanted = std::min<Index>(strips, 16 * static_cast<Index>(device_->compute_units()));
  const Index partials = std::max<Index>(1, std::min<Index>(wanted, scratch.bytes / 8));
  const Pointer<double> partial = partials > 1 ? cast_pointer<double>(scratch.data) : pass.residual_squared;
  device_->launch(device_->kernel({"robust_pca.cl"}, "robust_pca_pass", real_defines<T>(work_group)), partials,
                  work_group, condition_, pass.m.data, pass.l.data, pass.y.data, pass.s.data, pass.x.data, partial,
                  pass.m.ld, pass.m.rows, pass.m.cols, lanes, static_cast<T>(pass.mu), static_cast<T>(1 / pass.mu),
                  static_cast<T>(1 / pass.mu_next), static_cast<T>(pass.threshold));
  if (partials > 1)
    device_->launch(device_->kernel({"reduce.cl"}, "reduce_partials", real_defines<T>(work_group)), 1, work_group,
                    condition_, partial, pass.residual_squared, partials, static_cast<int>(Reduction::sum_squares));
}

#define QRANE_INSTANTIATE(T)                                                \
  template Limits Queue::limits(T) const;                                   \
  template void Queue::factor(const Panel<OpenCL, T>&);                     \
  template void Queue::factor_tree(const Panel<OpenCL, T>&);                \
  template void Queue::apply_qt_h(const Apply<OpenCL, T>&);                 \
  template void Queue::apply_qt_tree(const Apply<OpenCL, T>&);              \
  template void Queue::guarded_cholesky(const GuardedCholesky<OpenCL, T>&); \
  template void Queue::reconstruct(const Reconstruct<OpenCL, T>&);          \
  template void Queue::robust_pca_pass(const RobustPcaPass<OpenCL, T>&, Scratch<OpenCL>);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::opencl
