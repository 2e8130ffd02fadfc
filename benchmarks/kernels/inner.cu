// SPDX-License-Identifier: Apache-2.0
// The layouts of kernels/inner.hpp. One CTA applies C reflectors of R elements, U (R x C in shared memory), to one
// block A (R x C); tau_j = 2 / ||u_j||^2, so that each application is orthogonal and may be repeated.
//
//   shared_parallel       R threads     row r of A in the registers of thread r; log2(R) steps for each column's sum
//   shared_serial         T threads     A by columns in shared memory; P = T / C threads a column, R / P terms each
//   shared_combined       T threads     A by rows in shared memory, summed as a vector of R C elements down to C
//   registers (3 kinds)   T threads     thread t owns column t mod C and every (T / C)-th row from t / C
// with T = min(128, R C). A block is a part of a tall matrix by columns; for registers_transposed it is stored by rows.
// Cost of a launch: 4 R C^2 flops and 3 R C elements moved for each block.
#include "kernels/inner.hpp"

#include <algorithm>
#include <cmath>

#include <stdexcept>

#include "common/seeded_matrix.hpp"
#include "kernels/device.hpp"
#include "kernels/fill.hpp"

namespace qrane::bench {
namespace {

template <int R, int C>
constexpr int threads_of = std::min(128, R* C);

/// Where a block's elements are: tall column-major matrices, or rows one after the other.
struct Blocks {
  float* a;
  const float* u;
  const float* tau;   ///< C a block
  std::int64_t tall;  ///< rows of the tall matrices
};

/// The row of the tall matrix that holds row r of block b; the tree's node takes C rows of each of four triangles,
/// which lie 4 C rows apart.
template <int R, int C, bool tree>
__device__ std::int64_t tall_row(int b, int r) {
  if (!tree) return static_cast<std::int64_t>(b) * R + r;
  return (static_cast<std::int64_t>(b) * 4 + r / C) * (4 * C) + r % C;
}

template <int R, int C, bool tree>
__device__ void load_u(const Blocks& p, float (*u)[R], float* tau) {
  for (int k = threadIdx.x; k < R * C; k += blockDim.x)
    u[k / R][k % R] = p.u[tall_row<R, C, tree>(blockIdx.x, k % R) + k / R * p.tall];
  for (int k = threadIdx.x; k < C; k += blockDim.x) tau[k] = p.tau[blockIdx.x * C + k];
  __syncthreads();
}

template <int R, int C>
__global__ void __launch_bounds__(R) shared_parallel(Blocks p) {
  __shared__ float u[C][R], tau[C], sums[R];
  load_u<R, C, false>(p, u, tau);
  const int r = threadIdx.x;
  const std::int64_t row = tall_row<R, C, false>(blockIdx.x, r);
  float a[C];
  for (int c = 0; c < C; ++c) a[c] = p.a[row + c * p.tall];
  for (int j = 0; j < C; ++j) {
    const float x = u[j][r];
    for (int c = 0; c < C; ++c) {
      sums[r] = a[c] * x;
      for (int half = R / 2; half > 0; half /= 2) {
        __syncthreads();
        if (r < half) sums[r] += sums[r + half];
      }
      __syncthreads();
      a[c] -= tau[j] * sums[0] * x;
      __syncthreads();
    }
  }
  for (int c = 0; c < C; ++c) p.a[row + c * p.tall] = a[c];
}

template <int R, int C>
__global__ void __launch_bounds__(threads_of<R, C>) shared_serial(Blocks p) {
  constexpr int T = threads_of<R, C>, P = std::min(T / C, R);
  __shared__ float u[C][R], tau[C], a[C][R + 1], parts[C][P];
  load_u<R, C, false>(p, u, tau);
  for (int k = threadIdx.x; k < R * C; k += T)
    a[k / R][k % R] = p.a[tall_row<R, C, false>(blockIdx.x, k % R) + k / R * p.tall];
  __syncthreads();
  const int c = threadIdx.x / P, part = threadIdx.x % P;
  for (int j = 0; j < C; ++j) {
    float sum = 0;
    for (int r = part; r < R; r += P) sum += a[c][r] * u[j][r];
    parts[c][part] = sum;
    __syncthreads();
    float w = 0;
    for (int k = 0; k < P; ++k) w += parts[c][k];
    w *= tau[j];
    for (int r = part; r < R; r += P) a[c][r] -= w * u[j][r];
    __syncthreads();
  }
  for (int k = threadIdx.x; k < R * C; k += T)
    p.a[tall_row<R, C, false>(blockIdx.x, k % R) + k / R * p.tall] = a[k / R][k % R];
}

template <int R, int C>
__global__ void __launch_bounds__(threads_of<R, C>) shared_combined(Blocks p) {
  constexpr int T = threads_of<R, C>;
  __shared__ float u[C][R], tau[C], a[R][C + 1], sums[T];
  load_u<R, C, false>(p, u, tau);
  for (int k = threadIdx.x; k < R * C; k += T)
    a[k % R][k / R] = p.a[tall_row<R, C, false>(blockIdx.x, k % R) + k / R * p.tall];
  __syncthreads();
  const int c = threadIdx.x % C, first = threadIdx.x / C;
  for (int j = 0; j < C; ++j) {
    float sum = 0;
    for (int r = first; r < R; r += T / C) sum += a[r][c] * u[j][r];
    sums[threadIdx.x] = sum;
    for (int half = T / 2; half >= C; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    const float w = tau[j] * sums[c];
    for (int r = first; r < R; r += T / C) a[r][c] -= w * u[j][r];
    __syncthreads();
  }
  for (int k = threadIdx.x; k < R * C; k += T)
    p.a[tall_row<R, C, false>(blockIdx.x, k % R) + k / R * p.tall] = a[k % R][k / R];
}

/// The sum over all threads of a column: lanes of a warp by shuffles, warps through shared memory (two buffers in
/// turn).
template <int T, int C>
__device__ float column_sum(float x, float (*parts)[C], int c) {
  for (int d = 16; d >= C; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  if (threadIdx.x % 32 < C) parts[threadIdx.x / 32][c] = x;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < T / 32; ++warp) sum += parts[warp][c];
  return sum;
}

template <int R, int C, bool transposed, bool tree>
__global__ void __launch_bounds__(threads_of<R, C>) registers(Blocks p) {
  constexpr int T = threads_of<R, C>, G = T / C, own = R / G;
  __shared__ float u[C][R], tau[C], parts[2][T / 32][C], a_shared[transposed ? 1 : C][R + 1];
  load_u<R, C, tree>(p, u, tau);
  const int c = threadIdx.x % C, first = threadIdx.x / C;
  float* by_rows = p.a + static_cast<std::int64_t>(blockIdx.x) * R * C;
  if (!transposed) {
    for (int k = threadIdx.x; k < R * C; k += T)
      a_shared[k / R][k % R] = p.a[tall_row<R, C, tree>(blockIdx.x, k % R) + k / R * p.tall];
    __syncthreads();
  }
  float a[own];
  for (int k = 0; k < own; ++k)
    a[k] = transposed ? by_rows[threadIdx.x + k * T] : a_shared[transposed ? 0 : c][first + k * G];
  for (int j = 0; j < C; ++j) {
    float x[own], sum = 0;
    for (int k = 0; k < own; ++k) {
      x[k] = u[j][first + k * G];
      sum += a[k] * x[k];
    }
    const float w = tau[j] * column_sum<T, C>(sum, parts[j % 2], c);
    for (int k = 0; k < own; ++k) a[k] -= w * x[k];
  }
  if (transposed) {
    for (int k = 0; k < own; ++k) by_rows[threadIdx.x + k * T] = a[k];
    return;
  }
  __syncthreads();
  for (int k = 0; k < own; ++k) a_shared[transposed ? 0 : c][first + k * G] = a[k];
  __syncthreads();
  for (int k = threadIdx.x; k < R * C; k += T)
    p.a[tall_row<R, C, tree>(blockIdx.x, k % R) + k / R * p.tall] = a_shared[transposed ? 0 : k / R][k % R];
}

/// Blocks by rows out of the tall matrix by columns.
template <int R, int C>
__global__ void __launch_bounds__(128) transpose_blocks(const float* tall_a, float* by_rows, std::int64_t tall) {
  __shared__ float a[C][R + 1];
  for (int k = threadIdx.x; k < R * C; k += blockDim.x)
    a[k / R][k % R] = tall_a[static_cast<std::int64_t>(blockIdx.x) * R + k % R + k / R * tall];
  __syncthreads();
  for (int k = threadIdx.x; k < R * C; k += blockDim.x)
    by_rows[static_cast<std::int64_t>(blockIdx.x) * R * C + k] = a[k % C][k / C];
}

/// tau = 2 / ||u||^2, a thread a reflector.
__global__ void fill_tau(Blocks p, float* tau, int blocks, int rows, int cols, bool tree) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= blocks * cols) return;
  float square = 0;
  for (int r = 0; r < rows; ++r) {
    const std::int64_t b = k / cols;
    const std::int64_t row = tree ? (b * 4 + r / cols) * (4 * cols) + r % cols : b * rows + r;
    const float x = p.u[row + k % cols * p.tall];
    square += x * x;
  }
  tau[k] = 2 / square;
}

template <int R, int C>
void launch(InnerLayout layout, const Blocks& p, int blocks, cudaStream_t stream) {
  constexpr int T = threads_of<R, C>;
  constexpr bool both_fit = 2 * R * C * sizeof(float) <= 40 * 1024;  // U and A in static shared memory
  const auto count = static_cast<unsigned>(blocks);
  if (layout == InnerLayout::shared_parallel) {
    shared_parallel<R, C><<<count, R, 0, stream>>>(p);
  } else if (layout == InnerLayout::registers_transposed) {
    registers<R, C, true, false><<<count, T, 0, stream>>>(p);
  } else if (layout == InnerLayout::tree) {
    registers<4 * C, C, false, true><<<count, threads_of<4 * C, C>, 0, stream>>>(p);
  } else if constexpr (both_fit) {
    if (layout == InnerLayout::shared_serial) shared_serial<R, C><<<count, T, 0, stream>>>(p);
    if (layout == InnerLayout::shared_combined) shared_combined<R, C><<<count, T, 0, stream>>>(p);
    if (layout == InnerLayout::registers) registers<R, C, false, false><<<count, T, 0, stream>>>(p);
  } else {
    throw std::runtime_error("the block and its reflectors do not fit 48 KiB of shared memory");
  }
  check(cudaGetLastError(), "an inner kernel");
}

using Launcher = void (*)(InnerLayout, const Blocks&, int, cudaStream_t);
using Transposer = void (*)(const float*, float*, std::int64_t, int, cudaStream_t);

template <int R, int C>
void transpose(const float* tall_a, float* by_rows, std::int64_t tall, int blocks, cudaStream_t stream) {
  transpose_blocks<R, C><<<static_cast<unsigned>(blocks), 128, 0, stream>>>(tall_a, by_rows, tall);
  check(cudaGetLastError(), "transposing blocks");
}

struct Shape {
  int rows, cols;
  Launcher launch;
  Transposer transpose;
};

template <int C>
constexpr Shape shapes_of_width[] = {{32, C, launch<32, C>, transpose<32, C>},
                                     {64, C, launch<64, C>, transpose<64, C>},
                                     {128, C, launch<128, C>, transpose<128, C>},
                                     {256, C, launch<256, C>, transpose<256, C>}};

const Shape& find_shape(int rows, int cols) {
  for (const Shape* list : {shapes_of_width<4>, shapes_of_width<8>, shapes_of_width<16>, shapes_of_width<32>})
    for (int k = 0; k < 4; ++k)
      if (list[k].cols == cols && list[k].rows == rows) return list[k];
  throw std::runtime_error("no inner kernel for " + std::to_string(rows) + " x " + std::to_string(cols));
}

/// Device events around a launch.
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~Timer() { cudaEventDestroy(start_), cudaEventDestroy(stop_); }

  template <class Function>
  double milliseconds(Function&& function) {
    check(cudaEventRecord(start_, stream_), "cudaEventRecord");
    function();
    check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "an inner kernel");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, start_, stop_), "cudaEventElapsedTime");
    return elapsed;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

/// Block `block` of what one launch must give, in double; element (r, c) at r + c rows.
std::vector<double> on_host(int block, int rows, int cols, std::int64_t tall, bool tree) {
  std::vector<double> a(static_cast<std::size_t>(rows * cols)), u(a.size());
  for (int c = 0; c < cols; ++c)
    for (int r = 0; r < rows; ++r) {
      const std::int64_t b = block;
      const std::int64_t row = tree ? (b * 4 + r / cols) * (4 * cols) + r % cols : b * rows + r;
      const auto place = static_cast<std::uint64_t>(row + c * tall);
      a[static_cast<std::size_t>(r + c * rows)] = static_cast<float>(uniform_at(1, place));
      u[static_cast<std::size_t>(r + c * rows)] = static_cast<float>(uniform_at(2, place));
    }
  for (int j = 0; j < cols; ++j) {
    const double* x = u.data() + static_cast<std::size_t>(j * rows);
    double square = 0;
    for (int r = 0; r < rows; ++r) square += x[r] * x[r];
    for (int c = 0; c < cols; ++c) {
      double* column = a.data() + static_cast<std::size_t>(c * rows);
      double sum = 0;
      for (int r = 0; r < rows; ++r) sum += column[r] * x[r];
      for (int r = 0; r < rows; ++r) column[r] -= 2 / square * sum * x[r];
    }
  }
  return a;
}

/// Largest difference of the first and the last block from the host's.
double error_of(const float* a, InnerLayout layout, int rows, int cols, int blocks, std::int64_t tall) {
  const bool tree = layout == InnerLayout::tree;
  double worst = 0;
  for (const int block : {0, blocks - 1}) {
    const std::vector<double> wanted = on_host(block, rows, cols, tall, tree);
    for (int c = 0; c < cols; ++c)
      for (int r = 0; r < rows; ++r) {
        const std::int64_t b = block;
        const std::int64_t row = tree ? (b * 4 + r / cols) * (4 * cols) + r % cols : b * rows + r;
        const std::int64_t place =
            layout == InnerLayout::registers_transposed ? (b * rows + r) * cols + c : row + c * tall;
        float found = 0;
        check(cudaMemcpy(&found, a + place, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
        const double gap = std::abs(found - wanted[static_cast<std::size_t>(r + c * rows)]);
        if (!(gap <= worst)) worst = gap;
      }
  }
  return worst;
}

}  // namespace

const std::vector<InnerLayout>& inner_layouts() {
  static const std::vector<InnerLayout> all = {InnerLayout::shared_parallel,      InnerLayout::shared_serial,
                                               InnerLayout::shared_combined,      InnerLayout::registers,
                                               InnerLayout::registers_transposed, InnerLayout::tree};
  return all;
}

const char* to_string(InnerLayout layout) {
  switch (layout) {
    case InnerLayout::shared_parallel: return "shared-parallel";
    case InnerLayout::shared_serial: return "shared-serial";
    case InnerLayout::shared_combined: return "shared-combined";
    case InnerLayout::registers: return "registers";
    case InnerLayout::registers_transposed: return "registers-transposed";
    default: return "tree";
  }
}

InnerResult measure_inner(InnerLayout layout, int rows, int cols, int blocks, int repeats, cudaStream_t stream) {
  const bool tree = layout == InnerLayout::tree;
  const Shape& shape = find_shape(tree ? 128 : rows, cols);
  if (tree && rows != 4 * cols) throw std::runtime_error("the tree's nodes are four triangles high");
  const std::int64_t tall =
      tree ? static_cast<std::int64_t>(blocks) * 16 * cols : static_cast<std::int64_t>(blocks) * rows;
  const auto size = static_cast<std::size_t>(tall * cols);
  DeviceArray<float> a(size), u(size), tau(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(cols));
  DeviceArray<float> by_rows(layout == InnerLayout::registers_transposed ? size : 0);
  fill_on_device(a.get(), tall, cols, 1, 1);
  fill_on_device(u.get(), tall, cols, 2, 1);
  Blocks p{a.get(), u.get(), tau.get(), tall};
  fill_tau<<<static_cast<unsigned>((blocks * cols + 127) / 128), 128, 0, stream>>>(p, tau.get(), blocks, rows, cols,
                                                                                   tree);
  check(cudaGetLastError(), "fill_tau");

  InnerResult result;
  Timer timer(stream);
  if (layout == InnerLayout::registers_transposed) {
    for (int run = 0; run < 2; ++run)
      result.transpose_ms = timer.milliseconds([&] { shape.transpose(a.get(), by_rows.get(), tall, blocks, stream); });
    p.a = by_rows.get();
  }
  result.flops = 4.0 * rows * cols * cols * blocks;
  for (int run = -1; run < repeats; ++run) {
    const double elapsed = timer.milliseconds([&] { shape.launch(layout, p, blocks, stream); });
    if (run < 0)
      result.error = error_of(p.a, layout, rows, cols, blocks, tall);  // after one application, which is not timed
    else
      result.samples_ms.push_back(elapsed);
  }
  return result;
}

}  // namespace qrane::bench
