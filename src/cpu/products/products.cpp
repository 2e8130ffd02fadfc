// SPDX-License-Identifier: Apache-2.0
// CPU backend: products, by BLAS, and the sketch.
#include <algorithm>
#include <mutex>
#include <vector>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"
#include "vocabulary/sketch.hpp"

// OpenBLAS only; with another BLAS its own threading stays as it is.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int);
__attribute__((weak)) int openblas_get_num_threads(void);
}

namespace qrane::backend::cpu {

namespace blas {
namespace {
std::mutex threads_mutex;
int threads_users = 0;   // SingleThread objects alive, on whatever threads: the setting is the whole process's
int threads_before = 0;  // what the first of them found, for the last one to restore
}  // namespace

SingleThread::SingleThread() {
  if (!openblas_set_num_threads || !openblas_get_num_threads) return;
  const std::lock_guard lock(threads_mutex);
  if (threads_users++ > 0) return;
  threads_before = openblas_get_num_threads();
  if (threads_before != 1) openblas_set_num_threads(1);
}
SingleThread::~SingleThread() {
  if (!openblas_set_num_threads || !openblas_get_num_threads) return;
  const std::lock_guard lock(threads_mutex);
  if (--threads_users == 0 && threads_before != 1) openblas_set_num_threads(threads_before);
}
}  // namespace blas

// Products are split over our own threads, each calling single-threaded BLAS: two pools of threads that wait for each
// other by spinning slow small problems down several times.

template <class T>
void gemm(const Queue& queue, Op op_a, Op op_b, T alpha, const Mat<T>& a, const Mat<T>& b, T beta, const Mat<T>& c) {
  if (queue.skip()) return;
  const Index k = op_a == Op::none ? a.cols : a.rows;
  const bool by_rows = c.rows > c.cols;
  const Index extent = by_rows ? c.rows : c.cols;
  const Index pieces = c.count == 1 ? std::min<Index>(queue.threads(), std::max<Index>(extent / 16, 1)) : 1;
  const blas::SingleThread single;
  queue.workers().run(c.count * pieces, c.count * c.rows * c.cols * k, [&](Index index, int) {
    const Index i = index / pieces, piece = index % pieces;
    const Index first = extent * piece / pieces, size = extent * (piece + 1) / pieces - first;
    const Index row = by_rows ? first : 0, rows = by_rows ? size : c.rows;
    const Index col = by_rows ? 0 : first, cols = by_rows ? c.cols : size;
    const T* left = a.data + i * a.stride + (op_a == Op::none ? row : row * a.ld);
    const T* right = b.data + i * b.stride + (op_b == Op::none ? col * b.ld : col);
    blas::gemm(op_a, op_b, rows, cols, k, alpha, left, std::max<Index>(a.ld, 1), right, std::max<Index>(b.ld, 1), beta,
               c.data + i * c.stride + row + col * c.ld, std::max<Index>(c.ld, 1));
  });
}

template <class T>
void trsm(const Queue& queue, Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, const Mat<T>& a,
          const Mat<T>& b) {
  if (queue.skip()) return;
  const Index extent = side == Side::left ? b.cols : b.rows;  // independent right-hand sides
  const Index pieces = b.count == 1 ? std::min<Index>(queue.threads(), std::max<Index>(extent / 16, 1)) : 1;
  const blas::SingleThread single;
  queue.workers().run(b.count * pieces, b.count * b.rows * b.cols * a.cols, [&](Index index, int) {
    const Index i = index / pieces, piece = index % pieces;
    const Index first = extent * piece / pieces, size = extent * (piece + 1) / pieces - first;
    const bool left = side == Side::left;
    blas::trsm(side, triangle, op, diagonal, left ? b.rows : size, left ? size : b.cols, alpha, a.data + i * a.stride,
               std::max<Index>(a.ld, 1), b.data + i * b.stride + (left ? first * b.ld : first),
               std::max<Index>(b.ld, 1));
  });
}

template <class T>
void gram(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  const Index n = a.cols;
  fill(queue, w, 0.0, 0.0);
  if (n == 0 || a.rows == 0) return;
  // Row slabs with a sum of their own, added in order: the same bits for any number of threads. Blocks of rows that
  // are converted stay in the cache.
  constexpr Index slab_rows = 4096, most_slabs = 64, block_rows = 1024;
  const Index slabs = std::clamp<Index>(a.rows / slab_rows, 1, most_slabs);
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(slabs));
  const blas::SingleThread single;
  queue.workers().run(slabs, a.rows * n * n, [&](Index slab, int) {
    std::vector<double>& sum = sums[static_cast<std::size_t>(slab)];
    sum.assign(static_cast<std::size_t>(n * n), 0.0);
    std::vector<double> wide;
    const Index end = a.rows * (slab + 1) / slabs;
    for (Index first = a.rows * slab / slabs; first < end; first += block_rows) {
      const Index rows = std::min(block_rows, end - first);
      const double* block = nullptr;
      Index ld = rows;
      if constexpr (sizeof(T) == 8) {
        block = a.data + first;
        ld = a.ld;
      } else {
        wide.resize(static_cast<std::size_t>(rows * n));
        for (Index j = 0; j < n; ++j) std::copy_n(a.data + first + j * a.ld, rows, wide.data() + j * rows);
        block = wide.data();
      }
      blas::add_gram(n, rows, block, ld, sum.data());
    }
  });
  for (const auto& sum : sums)
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i <= j; ++i) w.data[i + j * w.ld] += sum[static_cast<std::size_t>(i + j * n)];
}

template <class T>
void multiply_wide(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  const Index n = a.cols;
  if (n == 0) return;
  constexpr Index slab_rows = 4096;
  const Index slabs = (a.rows + slab_rows - 1) / slab_rows;
  const blas::SingleThread single;
  queue.workers().run(slabs, a.rows * n * q.cols, [&](Index slab, int) {
    const Index first = slab * slab_rows, rows = std::min(slab_rows, a.rows - first);
    if constexpr (sizeof(T) == 8) {
      blas::gemm(Op::none, Op::none, rows, q.cols, n, 1.0, a.data + first, a.ld, w.data, w.ld, 0.0, q.data + first,
                 q.ld);
    } else {
      std::vector<double> wide(static_cast<std::size_t>(rows * n)), product(static_cast<std::size_t>(rows * q.cols));
      for (Index j = 0; j < n; ++j) std::copy_n(a.data + first + j * a.ld, rows, wide.data() + j * rows);
      blas::gemm(Op::none, Op::none, rows, q.cols, n, 1.0, wide.data(), rows, w.data, w.ld, 0.0, product.data(), rows);
      for (Index j = 0; j < q.cols; ++j)
        for (Index i = 0; i < rows; ++i)
          q.data[first + i + j * q.ld] = static_cast<T>(product[static_cast<std::size_t>(i + j * rows)]);
    }
  });
}

template <class T>
void apply_sketch(const Queue& queue, const Mat<T>& a, const Mat<T>& s) {
  if (queue.skip()) return;
  const auto groups = static_cast<std::uint32_t>(s.rows / 32);
  queue.workers().run(a.cols, a.rows * a.cols, [&](Index j, int) {
    const T* x = a.data + j * a.ld;
    T* y = s.data + j * s.ld;
    std::fill(y, y + s.rows, T(0));
    for (Index i = 0; i < a.rows; ++i) {
      const auto row = static_cast<std::uint32_t>(i);
      y[count_sketch::target(row, groups)] += count_sketch::sign(row) ? -x[i] : x[i];
    }
  });
}

template <class T>
void multiply_full(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q) {
  multiply_wide(queue, a, w, q, {});  // which looks at no zeros
}

#define QRANE_INSTANTIATE(T)                                                                                        \
  template void gemm(const Queue&, Op, Op, T, const Mat<T>&, const Mat<T>&, T, const Mat<T>&);                      \
  template void trsm(const Queue&, Side, Triangle, Op, Diagonal, T, const Mat<T>&, const Mat<T>&);                  \
  template void gram(const Queue&, const Mat<T>&, const Mat<double>&, const Scratch<Cpu>&);                         \
  template void multiply_wide(const Queue&, const Mat<T>&, const Mat<double>&, const Mat<T>&, const Scratch<Cpu>&); \
  template void multiply_full(const Queue&, const Mat<T>&, const Mat<double>&, const Mat<T>&);                      \
  template void apply_sketch(const Queue&, const Mat<T>&, const Mat<T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
