// SPDX-License-Identifier: Apache-2.0
// Wavefronts of Givens rotations. A chunk of rows has a window of waves + 1 columns at a time, which moves left with
// the fronts: a column is read once and written once for all of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "paper/cpu.hpp"

namespace qrane::backend::cpu {
namespace {

constexpr Index chunk_rows = 64;

/// c and s with c f + s g = r >= 0, c g - s f = 0; returns r. No overflow but of r itself.
template <class T>
T givens(T f, T g, T& c, T& s) {
  c = 1, s = 0;
  if (g == T(0)) return f;
  const T scale = std::max(std::abs(f), std::abs(g));
  const T x = f / scale, y = g / scale, length = std::sqrt(x * x + y * y);
  c = x / length, s = y / length;
  return scale * length;
}

template <class T>
void rotate_rows(const Rotate<Cpu, T>& task, Index row, Index rows) {
  const Index waves = task.waves, slots = waves + 1, cols = task.x.cols;
  const Index start = task.lower ? std::min(task.heights, row + rows) : task.heights;
  std::array<T, (max_waves + 1) * chunk_rows> memory;
  const auto window = [&](Index column) { return memory.data() + column % slots * chunk_rows; };
  const auto column = [&](Index j) { return task.x.data + row + j * task.x.ld; };
  const auto load = [&](Index j) {
    if (j >= 0 && j < cols) std::copy_n(column(j), rows, window(j));
  };
  if (start < 1) return;
  for (Index j = start - 1; j < start + waves; ++j) load(j);
  if (task.drop)
    for (Index j = start + waves; j < cols; ++j) std::copy_n(column(j), rows, column(j - waves));
  for (Index i = start; i >= 1; --i) {
    const T* cs = task.cs + 2 * (task.heights - i) * waves;
    for (Index j = 0; j < waves && i + j < cols; ++j) {
      const T c = cs[2 * j], s = cs[2 * j + 1];
      T *a = window(i - 1 + j), *b = window(i + j);
      for (Index r = 0; r < rows; ++r) {
        const T x = a[r], y = b[r];
        a[r] = c * x + s * y;
        b[r] = c * y - s * x;
      }
    }
    const Index done = i + waves - 1;
    if (done < cols) std::copy_n(window(done), rows, column(task.drop ? i - 1 : done));
    load(i - 2);
  }
  for (Index j = 0; j < waves && j < cols && !task.drop; ++j) std::copy_n(window(j), rows, column(j));
}

}  // namespace

template <class T>
void make_rotations(const Queue& queue, const Rotations<Cpu, T>& task) {
  if (queue.skip()) return;
  const Index waves = task.strip.rows, cols = task.strip.cols;
  for (Index i = task.heights; i >= 1; --i)
    for (Index j = 0; j < waves; ++j) {
      T* cs = task.cs + 2 * ((task.heights - i) * waves + j);
      cs[0] = 1, cs[1] = 0;
      if (i + j >= cols) continue;
      T *a = task.strip.data + (i - 1 + j) * task.strip.ld, *b = a + task.strip.ld;
      a[j] = givens(a[j], b[j], cs[0], cs[1]);
      b[j] = 0;
      for (Index r = j + 1; r < waves; ++r) {
        const T x = a[r], y = b[r];
        a[r] = cs[0] * x + cs[1] * y;
        b[r] = cs[0] * y - cs[1] * x;
      }
    }
}

template <class T>
void rotate(const Queue& queue, const Rotate<Cpu, T>& task) {
  if (queue.skip()) return;
  const Index rows = task.x.rows, chunks = (rows + chunk_rows - 1) / chunk_rows;
  queue.workers().run(chunks, 6 * rows * task.heights * task.waves, [&](Index chunk, int) {
    rotate_rows(task, chunk * chunk_rows, std::min(chunk_rows, rows - chunk * chunk_rows));
  });
}

template void make_rotations(const Queue&, const Rotations<Cpu, float>&);
template void make_rotations(const Queue&, const Rotations<Cpu, double>&);
template void rotate(const Queue&, const Rotate<Cpu, float>&);
template void rotate(const Queue&, const Rotate<Cpu, double>&);

}  // namespace qrane::backend::cpu
