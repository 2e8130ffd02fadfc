// SPDX-License-Identifier: Apache-2.0
// absorb and form_absorbed: the leaves of TSQR as flat trees, one per warp, for matrices of at most 32 columns.
//
// After Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS 2011), section
// III (a flat tree below a tree of higher arity); the chains, and Q recomputed from checkpoints, are this code's own.
//
// A chain is a head of NB rows followed by chunks of 32 K rows, each absorbed into the chain's triangle (absorb.cuh).
// Neighbouring chains lie side by side, so that all warps read one region of A at a time:
//
//     rows    | head + chunk of chain 0 | of chain 1 | ... | chunk of chain 0 | of chain 1 | ...
//
// absorb without checkpoints: the warps of a CTA merge their triangles through shared memory, one triangle per CTA
// comes out, and A is read once. With checkpoints every chain's triangle comes out, and R as it was before every chunk
// is kept (n/(32 K) of A's size); form_absorbed then walks the chains backwards, factors each chunk once more,
// and writes Q: A is read twice and Q written once.
#include <algorithm>

#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/panels.hpp"
#include "cuda/panels/absorb.cuh"

namespace qrane::backend::cuda {
namespace {

/// Chunk rows / 32, warps and CTAs per multiprocessor. `last`: one CTA makes the one triangle that remains.
template <class T, int NB, bool last = false>
struct ChainShape {
  static constexpr bool single = sizeof(T) == 4;
  static constexpr int first_chunk = single ? (NB <= 8 ? 12 : NB <= 16 ? 8 : 4) : (NB <= 8 ? 6 : 4);
  static constexpr int chunk = last && NB <= 8 ? first_chunk / 2 : first_chunk;
  static constexpr int warps = !last || NB > 16 ? 4 : NB <= 8 ? 16 : 8;
  static constexpr int ctas = last ? 1 : NB <= 8 ? 3 : 2;
  static constexpr int threads = warps * warp_size;
  static constexpr int first_rows = NB + chunk * warp_size;  // of a chain
};

/// Where the rows of a chain are.
template <class Shape>
struct ChainRows {
  std::int64_t rows, chains;

  /// First row of chunk d of chain w (chunk 0 begins with the head).
  __device__ std::int64_t first(std::int64_t w, std::int64_t d) const {
    constexpr std::int64_t chunk = Shape::chunk * warp_size;
    return d == 0 ? w * Shape::first_rows : chains * Shape::first_rows + ((d - 1) * chains + w) * chunk;
  }
};

/// Merges the triangles of a CTA's warps: warp 0 absorbs the others' and writes the one that results.
template <class T, int NB, int Warps, class Rows>
__device__ void merge_warps(const Rows& chain, typename Rows::Shared& shared, T* g_r, std::int64_t ld, int cols) {
  constexpr int heads = Warps * NB, rest = heads - NB;
  __shared__ T s_heads[NB][heads];
  const int warp = threadIdx.x / warp_size, lane = chain.lane;
  if (lane < NB) {
#pragma unroll
    for (int c = 0; c < NB; ++c) s_heads[c][warp * NB + lane] = chain.r(c);
  }
  __syncthreads();
  if (warp > 0) return;
  Chain<T, NB, (rest + warp_size - 1) / warp_size, false> last(shared, nullptr);
  last.load_head(&s_heads[0][0], heads, NB, heads);
  last.load_shared(&s_heads[0][NB], heads, rest);
  last.scale(false);
  last.factor();
  last.order_head();
#pragma unroll
  for (int c = 0; c < NB; ++c) {
    if (c < cols && lane < cols) g_r[lane + c * ld] = last.r(c);
  }
}

/// Thread map: a warp is a chain. Shared memory: ChainShared of every warp and the CTA's triangles.
template <class T, int NB, class Shape, bool merge>
__global__ void __launch_bounds__(Shape::threads, Shape::ctas)
    absorb_kernel(const std::int32_t* condition, Absorb<Cuda, T> task, std::int64_t chains) {
  if (skipped(condition)) return;
  using Rows = Chain<T, NB, Shape::chunk, false>;
  __shared__ typename Rows::Shared s_chain[Shape::warps];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const std::int64_t w = static_cast<std::int64_t>(blockIdx.x) * Shape::warps + warp;
  const int cols = static_cast<int>(task.a.cols);
  const ChainRows<Shape> map{task.a.rows, chains};
  Rows chain(s_chain[warp], nullptr);
  if (!merge && w >= chains) return;

  std::int64_t row = map.first(w, 0);
  chain.load_head(task.a.data + row, task.a.ld, cols, map.rows - row);
  row += NB;
  for (std::int64_t d = 0; d == 0 || row < map.rows; ++d) {
    if (!merge && d > 0) {
      T* g_state = task.checkpoints + ((d - 1) * chains + w) * NB * NB;
#pragma unroll
      for (int c = 0; c < NB; ++c) {
        if (lane < NB) g_state[lane + c * NB] = chain.r(c);
      }
    }
    chain.load(task.a.data + row, task.a.ld, cols, map.rows - row);
    chain.scale(d > 0);
    chain.factor();
    chain.order_head();
    row = map.first(w, d + 1);
  }

  if constexpr (merge) {
    merge_warps<T, NB, Shape::warps>(chain, s_chain[0], task.r.data + static_cast<std::int64_t>(blockIdx.x) * cols,
                                     task.r.ld, cols);
  } else {
    T* g_r = task.r.data + w * cols;
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      if (c < cols && lane < cols) g_r[lane + c * task.r.ld] = chain.r(c);
    }
  }
}

/// Elements of shared memory for the next chunk of one warp of form_kernel.
template <class T, int NB>
constexpr int stage_elements = ChainShape<T, NB>::chunk* warp_size* NB;

/// What a warp of form_kernel needs besides its chain.
template <class T, int NB>
struct FormShared {
  alignas(16) T c[NB][NB];        // the slice of Q's upper part, by columns
  alignas(16) T product[NB][NB];  // M = T V^T [C; 0], by columns
  T b[NB][NB];                    // V_head^T C, by columns
  T v[NB][NB];                    // V's head, by columns
  T t[NB][NB];                    // T, by columns
};

/// M := T V_head^T C from the chain's V, its Gram matrix and tau.
template <class T, int NB, int K>
__device__ void reflector_product(const Chain<T, NB, K, true>& chain, FormShared<T, NB>& s) {
  const int lane = chain.lane;
  __syncwarp();  // the last step's row of the Gram matrix and tau are there
  if (lane < NB) {
#pragma unroll
    for (int c = 0; c < NB; ++c) s.v[c][lane] = lane > c ? chain.head[chain.finished_position(c)] : T(lane == c);
    T sums[NB];  // lane l solves T = (I + diag(tau) striu(V^T V))^-1 diag(tau) for column l
#pragma unroll
    for (int i = 0; i < NB; ++i) sums[i] = T(0);
#pragma unroll
    for (int k = NB - 1; k >= 0; --k) {
      const T tau = chain.shared.tau[k];
      const T value = k == lane ? tau : (k < lane ? -tau * sums[k] : T(0));
      s.t[lane][k] = value;
#pragma unroll
      for (int i = 0; i < k; ++i) sums[i] = fma(chain.shared.gram[k][i], value, sums[i]);
    }
  }
  __syncwarp();
  constexpr int groups = warp_size / NB;
  const int column = lane % NB;
#pragma unroll 1
  for (int i = lane / NB; i < NB; i += groups) {
    T sum = T(0);
#pragma unroll
    for (int l = 0; l < NB; ++l) sum = fma(l >= i ? s.v[i][l] : T(0), s.c[column][l], sum);
    s.b[column][i] = sum;
  }
  __syncwarp();
#pragma unroll 1
  for (int i = lane / NB; i < NB; i += groups) {
    T sum = T(0);
#pragma unroll
    for (int l = 0; l < NB; ++l) sum = fma(s.t[l][i], s.b[column][l], sum);
    s.product[column][i] = sum;
  }
  __syncwarp();
}

/// The chunk's rows of Q: -V M.
template <class T, int NB, int K>
__device__ void store_rows(const Chain<T, NB, K, true>& chain, const FormShared<T, NB>& s, T* g_q, std::int64_t ld,
                           int cols, std::int64_t rows) {
  constexpr int lanes = 16 / sizeof(T);
#pragma unroll 1
  for (int c = 0; c < cols; ++c) {
    T q[K];
#pragma unroll
    for (int k = 0; k < K; ++k) q[k] = T(0);
#pragma unroll
    for (int i = 0; i < NB; i += lanes) {
      const auto m = *reinterpret_cast<const Vector<T, lanes>*>(&s.product[c][i]);
#pragma unroll
      for (int l = 0; l < lanes; ++l) {
#pragma unroll
        for (int k = 0; k < K; ++k) q[k] = fma(-chain.x[k][chain.finished_position(i + l)], m.v[l], q[k]);
      }
    }
    T* g_column = g_q + chain.lane + c * ld;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (chain.lane + k * warp_size < rows) g_column[k * warp_size] = q[k];
    }
  }
}

/// Thread map: a warp is a chain. Shared memory: ChainShared of every warp; dynamic: FormShared and the next chunk.
template <class T, int NB>
__global__ void __launch_bounds__(ChainShape<T, NB>::threads, ChainShape<T, NB>::ctas)
    form_kernel(const std::int32_t* condition, FormAbsorbed<Cuda, T> task, std::int64_t chains) {
  if (skipped(condition)) return;
  using Shape = ChainShape<T, NB>;
  using Rows = Chain<T, NB, Shape::chunk, true>;
  __shared__ typename Rows::Shared s_chain[Shape::warps];
  extern __shared__ __align__(16) unsigned char s_bytes[];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  FormShared<T, NB>& s = reinterpret_cast<FormShared<T, NB>*>(s_bytes)[warp];
  const std::int64_t w = static_cast<std::int64_t>(blockIdx.x) * Shape::warps + warp;
  if (w >= chains) return;
  const int cols = static_cast<int>(task.a.cols);
  const ChainRows<Shape> map{task.a.rows, chains};
  Rows chain(s_chain[warp], reinterpret_cast<T*>(s_bytes + sizeof(s) * Shape::warps) + warp * stage_elements<T, NB>);
  for (int e = lane; e < NB * NB; e += warp_size) {
    const int i = e % NB, c = e / NB;
    s.c[c][i] = i < cols && c < cols ? task.top.data[w * cols + i + c * task.top.ld] : T(0);
  }
  std::int64_t last = 0;
  while (map.first(w, last + 1) < map.rows) ++last;
  const auto body_of = [&](std::int64_t d) { return map.first(w, d) + (d == 0 ? NB : 0); };
  std::int64_t body = body_of(last);
  chain.fetch(task.a.data + body, task.a.ld, cols, map.rows - body);
  for (std::int64_t d = last; d >= 0; --d) {
    const std::int64_t row = map.first(w, d), next = d > 0 ? body_of(d - 1) : map.rows;
    body = body_of(d);
    if (d == 0) {
      chain.load_head(task.a.data + row, task.a.ld, cols, map.rows - row);
    } else {
      chain.load_head(task.checkpoints + ((d - 1) * chains + w) * NB * NB, NB, NB, NB);
    }
    chain.take(cols, map.rows - body);
    chain.fetch(task.a.data + next, task.a.ld, cols, map.rows - next);
    chain.scale(false);
    chain.factor();
    reflector_product(chain, s);
    store_rows(chain, s, task.q.data + body, task.q.ld, cols, map.rows - body);
    // the head: C - V_head M, rows of Q in the first chunk and the next chunk's C else
#pragma unroll 1
    for (int c = 0; c < cols; ++c) {
      if (lane >= NB) continue;
      T sum = s.c[c][lane];
#pragma unroll
      for (int l = 0; l < NB; ++l) sum = fma(-s.v[l][lane], l <= lane ? s.product[c][l] : T(0), sum);
      s.c[c][lane] = sum;
      if (d == 0 && lane < map.rows - row) task.q.data[row + lane + c * task.q.ld] = sum;
    }
    __syncwarp();
  }
}

template <class T, int NB, class Shape, bool merge>
void launch_shape(const Launch& launch, const Absorb<Cuda, T>& task, std::int64_t chains) {
  const unsigned grid = static_cast<unsigned>((chains + Shape::warps - 1) / Shape::warps);
  absorb_kernel<T, NB, Shape, merge><<<grid, Shape::threads, 0, launch.stream>>>(launch.condition, task, chains);
}

template <class T, int NB>
void absorb(const Launch& launch, const Absorb<Cuda, T>& task) {
  using Shape = ChainShape<T, NB>;
  using Last = ChainShape<T, NB, true>;
  const std::int64_t triangles = task.r.rows / task.a.cols;
  if (task.checkpoints != nullptr) {
    launch_shape<T, NB, Shape, false>(launch, task, triangles);
  } else if (triangles > 1) {
    launch_shape<T, NB, Shape, true>(launch, task, triangles * Shape::warps);
  } else {
    launch_shape<T, NB, Last, true>(launch, task, Last::warps);
  }
}

template <class T, int NB>
void form(const Launch& launch, const FormAbsorbed<Cuda, T>& task) {
  using Shape = ChainShape<T, NB>;
  const std::int64_t chains = task.top.rows / task.a.cols;
  const unsigned grid = static_cast<unsigned>((chains + Shape::warps - 1) / Shape::warps);
  constexpr std::size_t bytes = (sizeof(FormShared<T, NB>) + sizeof(T) * stage_elements<T, NB>)*Shape::warps;
  allow_shared_memory(form_kernel<T, NB>, bytes, "form_absorbed");
  form_kernel<T, NB><<<grid, Shape::threads, bytes, launch.stream>>>(launch.condition, task, chains);
}

template <class T, int NB>
Chains chains(Index rows, bool checkpoints, int multiprocessors) {
  using Shape = ChainShape<T, NB>;
  using Last = ChainShape<T, NB, true>;
  if (!checkpoints && rows <= 2 * Last::warps * Last::first_rows) return {1, 0};
  const std::int64_t most = std::int64_t{multiprocessors} * Shape::ctas * Shape::warps;
  const std::int64_t used = std::clamp<std::int64_t>((rows + Shape::first_rows - 1) / Shape::first_rows, 1, most);
  if (!checkpoints) return {(used + Shape::warps - 1) / Shape::warps, 0};
  const std::int64_t chunk = Shape::chunk * warp_size, rest = std::max<Index>(rows - used * Shape::first_rows, 0);
  return {used, (rest + chunk - 1) / chunk * NB * NB};
}

}  // namespace

template <class T>
Chains absorb_chains(Cuda, T, Index rows, Index cols, bool checkpoints, int multiprocessors) {
  if (cols <= 8) return chains<T, 8>(rows, checkpoints, multiprocessors);
  if constexpr ((max_absorbed<T>) > 16) {
    if (cols > 16) return chains<T, 32>(rows, checkpoints, multiprocessors);
  }
  return chains<T, 16>(rows, checkpoints, multiprocessors);
}

template <class T>
void absorb(const Queue& queue, const Absorb<Cuda, T>& task) {
  const Launch where(queue);
  if (task.a.cols == 0 || task.r.rows == 0) return;
  if (task.a.cols <= 8) {
    absorb<T, 8>(where, task);
  } else if (task.a.cols <= 16) {
    absorb<T, 16>(where, task);
  } else if constexpr (max_absorbed<T> > 16) {
    absorb<T, 32>(where, task);
  }
  check_launch("absorb");
}

template <class T>
void form_absorbed(const Queue& queue, const FormAbsorbed<Cuda, T>& task) {
  const Launch where(queue);
  if (task.a.cols == 0 || task.a.rows == 0) return;
  if (task.a.cols <= 8) {
    form<T, 8>(where, task);
  } else {
    form<T, 16>(where, task);
  }
  check_launch("form_absorbed");
}

template Chains absorb_chains(Cuda, float, Index, Index, bool, int);
template Chains absorb_chains(Cuda, double, Index, Index, bool, int);
template void absorb<float>(const Queue&, const Absorb<Cuda, float>&);
template void absorb<double>(const Queue&, const Absorb<Cuda, double>&);
template void form_absorbed<float>(const Queue&, const FormAbsorbed<Cuda, float>&);
template void form_absorbed<double>(const Queue&, const FormAbsorbed<Cuda, double>&);

}  // namespace qrane::backend::cuda
