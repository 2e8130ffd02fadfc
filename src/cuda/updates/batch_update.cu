// SPDX-License-Identifier: Apache-2.0
// Updates of many small factorizations (BatchUpdate in vocabulary/updates.hpp), one block each: R in shared memory
// by rows, where one warp finds the chain of small transforms (batch_update.cuh), and then Q, a row a thread, with the
// p numbers that the chain carries along in registers. Q is read and written once. About 4 m n p flops. Here rows that
// come and columns that go; rows that go: batch_update_rows_out.cu.
#include "cuda/queue/launch.hpp"
#include "vocabulary/updates.hpp"
#include "cuda/updates/batch_update_block.cuh"

namespace qrane::backend::cuda {
namespace changes {
namespace {

constexpr std::size_t most_bytes = 110 * 1024;  // two blocks on a multiprocessor

struct RowsIn {
  static constexpr bool completes = false;

  template <int C, int P, class T>
  static __device__ void apply(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
    const int n = s.n, first = static_cast<int>(task.k), p = static_cast<int>(task.p);
    const T* g_u = of_batch(task.rows);
    bool extreme = load_r(task.r, s, n, 0);
    T u[C][P] = {};
    if (threadIdx.x < 32) {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int l = 0; l < P; ++l) {
          const int j = static_cast<int>(threadIdx.x) + 32 * c;
          if (l < p && j < n) u[c][l] = g_u[l + j * task.rows.ld];
          extreme |= is_extreme(u[c][l]);
        }
    }
    if (__syncthreads_or(extreme)) {
      scale_columns(s, n, g_u, task.rows.ld, p);
      __syncthreads();
    }
    if (threadIdx.x < 32) {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int l = 0; l < P; ++l) {
          const int j = static_cast<int>(threadIdx.x) + 32 * c;
          if (j < n) u[c][l] /= s.unscale[j];
        }
      rows_in_chain<T, C, P>(s.r, s.ld, n, u, s.turns);
    }
    __syncthreads();
    store_r(task.r_after, s);
    const T* g_q = of_batch(task.q);
    T* g_out = of_batch(task.q_after);
#pragma unroll 1
    for (int i = threadIdx.x; i < task.q_after.rows && task.q.cols > 0; i += blockDim.x) {
      const int row = i - first;  // of those that come in
      const RowOfQ<T> q{g_q + (row < 0 ? i : i - p), task.q.ld, n, row < 0 || row >= p};
      T carry[P];
#pragma unroll
      for (int l = 0; l < P; ++l) carry[l] = l == row ? T(1) : T(0);
#pragma unroll 8
      for (int k = 0; k < n; ++k) {
        const T* s_h = s.turns + k * (P + 1);
        T x = q[k], sum = x;
#pragma unroll
        for (int l = 0; l < P; ++l) sum = fma(s_h[1 + l], carry[l], sum);
        sum *= s_h[0];
        g_out[i + k * task.q_after.ld] = x - sum;
#pragma unroll
        for (int l = 0; l < P; ++l) carry[l] = fma(-sum, s_h[1 + l], carry[l]);
      }
    }
  }
};

struct ColumnsOut {
  static constexpr bool completes = false;

  template <int C, int P, class T>
  static __device__ void apply(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
    const int n = s.n, first = static_cast<int>(task.k), p = static_cast<int>(task.p), cols = n - p;
    if (__syncthreads_or(load_r(task.r, s, first, p))) {
      scale_columns<T>(s, cols, nullptr, 0, 0);
      __syncthreads();
    }
    if (threadIdx.x < 32) columns_out_chain<T, C, P>(s.r, s.ld, n, cols, first, s.turns);
    __syncthreads();
    store_r(task.r_after, s);
    const T* g_q = of_batch(task.q);
    T* g_out = of_batch(task.q_after);
#pragma unroll 1
    for (int i = threadIdx.x; i < task.q.rows && task.q.cols > 0; i += blockDim.x) {
      const RowOfQ<T> q{g_q + i, task.q.ld, n, true};
      for (int k = 0; k < first; ++k) g_out[i + k * task.q_after.ld] = q[k];
      T x = q[first], carry[P];
#pragma unroll
      for (int l = 0; l < P; ++l) carry[l] = q[first + 1 + l];
#pragma unroll 4
      for (int k = first; k < cols; ++k) {
        const T* s_h = s.turns + k * (P + 1);
        const T next = q[k + 1 + P];
        T sum = x;
#pragma unroll
        for (int l = 0; l < P; ++l) sum = fma(s_h[1 + l], carry[l], sum);
        sum *= s_h[0];
        g_out[i + k * task.q_after.ld] = x - sum;
        x = fma(-sum, s_h[1], carry[0]);
#pragma unroll
        for (int l = 0; l + 1 < P; ++l) carry[l] = fma(-sum, s_h[2 + l], carry[l + 1]);
        carry[P - 1] = next;
      }
    }
  }
};

}  // namespace
}  // namespace changes

template <class T>
bool takes_batch_update(const Queue&, Index m, Index n, Index p, T) {
  using namespace changes;
  if (n > most_cols || p > most_carried || n < 1 || m > (1 << 14)) return false;
  const int carried = p <= most_carried / 2 ? most_carried / 2 : most_carried;
  return sizeof(T) * Space<T>::elements(static_cast<int>(m), static_cast<int>(n), carried, true) <= most_bytes;
}

template <class T>
void batch_update(const Queue& queue, const BatchUpdate<Cuda, T>& task) {
  const Launch launch(queue);
  detail::check(takes_batch_update(queue, task.q.cols > 0 ? task.q.rows : 0, task.r.cols, task.p, T{}),
                ErrorCode::invalid_argument, "batch_update: ", task.p, " rows or columns of matrices of ", task.q.rows,
                " x ", task.r.cols, " are beyond its limits");
  if (task.p == 0 || task.r.count == 0 || task.r_after.cols == 0) return;
  using Change = typename BatchUpdate<Cuda, T>::Change;
  switch (task.change) {
    case Change::rows_in: return changes::run<changes::RowsIn>(launch, task);
    case Change::rows_out: return launch_batch_rows_out(launch, task);
    default: return changes::run<changes::ColumnsOut>(launch, task);
  }
}

template bool takes_batch_update(const Queue&, Index, Index, Index, float);
template bool takes_batch_update(const Queue&, Index, Index, Index, double);
template void batch_update(const Queue&, const BatchUpdate<Cuda, float>&);
template void batch_update(const Queue&, const BatchUpdate<Cuda, double>&);

}  // namespace qrane::backend::cuda
