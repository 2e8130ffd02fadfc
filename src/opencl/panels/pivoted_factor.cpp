// SPDX-License-Identifier: Apache-2.0
// Column-pivoted QR for OpenCL devices: by the CPU's, on a copy in host memory.
#include <vector>

#include "cpu/whole.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

template <class T>
void pivoted_factor(const Queue& queue, const PivotedFactor<OpenCL, T>& task, const Scratch<OpenCL>&) {
  std::int32_t wanted = 1, rank = 0;
  if (queue.condition()) queue.download(queue.condition(), &wanted, 1);
  if (wanted == 0) return;
  const Index m = task.a.rows, n = task.a.cols;
  // one contiguous copy on the device, since transfers take one piece
  const Pointer<std::byte> memory = queue.allocate(std::max<Index>(m * n, 1) * static_cast<Index>(sizeof(T)));
  const Mat<T> piece{cast_pointer<T>(memory), m, n, std::max<Index>(m, 1), 0, 1};
  std::vector<T> a(static_cast<std::size_t>(m * n)), packed(a.size()),
      inverse_tau(static_cast<std::size_t>(task.steps));
  std::vector<std::int32_t> columns(static_cast<std::size_t>(n));
  try {
    copy(queue, task.a, piece, Part::all);
    queue.download(piece.data, a.data(), m * n);
    PivotedFactor<Cpu, T> host;
    host.a = {a.data(), m, n, piece.ld, 0, 1};
    host.packed = {packed.data(), m, n, piece.ld, 0, 1};
    host.columns = columns.data();
    host.inverse_tau = inverse_tau.data();
    host.rank = &rank;
    host.steps = task.steps;
    host.tolerance = task.tolerance;
    host.truncate = task.truncate;
    pivoted_factor(cpu::Queue(1), host, Scratch<Cpu>{});
    queue.upload(packed.data(), piece.data, m * n);
    copy(queue, piece, task.packed, Part::all);
    queue.upload(columns.data(), task.columns, n);
    queue.upload(inverse_tau.data(), task.inverse_tau, task.steps);
    queue.upload(&rank, task.rank, 1);
  } catch (...) {
    queue.release(memory);
    throw;
  }
  queue.release(memory);
}

template void pivoted_factor(const Queue&, const PivotedFactor<OpenCL, float>&, const Scratch<OpenCL>&);
template void pivoted_factor(const Queue&, const PivotedFactor<OpenCL, double>&, const Scratch<OpenCL>&);

}  // namespace qrane::backend::opencl
