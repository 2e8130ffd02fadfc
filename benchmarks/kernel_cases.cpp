// SPDX-License-Identifier: Apache-2.0
// The CAQR paper's sections IV.E and IV.F: the inner kernel in each layout over block shapes, the same number of
// elements in each case. A node of the tree is four triangles high whatever the blocks are.
#include "session.hpp"

#ifdef QRANE_BENCH_KERNELS
#include "kernels/inner.hpp"
#endif

namespace qrane::bench {
namespace {

#ifdef QRANE_BENCH_KERNELS
constexpr int elements = 1 << 25;
constexpr double error_limit = 1e-4;  // numbers are in (-1, 1)

KernelCase measure(Session& session, InnerLayout layout, int rows, int cols) {
  KernelCase result;
  result.layout = to_string(layout);
  result.rows = rows;
  result.cols = cols;
  // a node's triangles lie 4 cols rows apart: the tall matrix has as many elements, of which a quarter take part
  result.blocks = elements / (rows * cols) / (layout == InnerLayout::tree ? 4 : 1);
  try {
    const InnerResult found = measure_inner(layout, rows, cols, static_cast<int>(result.blocks), 10, nullptr);
    result.samples_ms = found.samples_ms;
    result.flops = found.flops;
    result.error = found.error;
    result.transpose_ms = found.transpose_ms;
    const double bytes = 3.0 * sizeof(float) * rows * cols * static_cast<double>(result.blocks);
    result.floor = session.floor_for("f32", result.flops, bytes);
    if (!(result.error <= error_limit)) {
      result.outcome = Outcome::failed;
      result.reason = "the result differs from the host's";
    }
  } catch (const std::exception& fault) {
    result.outcome = Outcome::left_out;
    result.reason = fault.what();
  }
  return result;
}
#endif

}  // namespace

void run_kernel_cases(Session& session, const std::function<void(const KernelCase&)>& report) {
#ifdef QRANE_BENCH_KERNELS
  if (session.device().backend == Backend::cuda) {
    session.context().synchronize();  // the device of this context is the current one from here on
    for (const InnerLayout layout : inner_layouts())
      for (const int cols : {4, 8, 16, 32})
        for (const int rows :
             layout == InnerLayout::tree ? std::vector<int>{4 * cols} : std::vector<int>{32, 64, 128, 256})
          if (!session.interrupted()) report(measure(session, layout, rows, cols));
    return;
  }
#endif
  KernelCase none;
  none.layout = "all";
  none.outcome = Outcome::left_out;
  none.reason = std::string("these kernels run on the cuda backend, this is ") + to_string(session.device().backend);
  report(none);
}

}  // namespace qrane::bench
