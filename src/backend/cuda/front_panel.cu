// SPDX-License-Identifier: Apache-2.0
// factor_front_panels: panels of frontal matrices by Householder reflections, one cluster of blocks per panel, each
// block with a share of its rows. A panel goes by strips of 8 columns:
//
//     registers   a thread has whole rows of the strip. Column by column: p = xᵀ A over all rows gives the norm and the
//                 products of the update,
//                   beta = -sign(alpha) (alpha^2 + p_j)^(1/2),  tau = (beta - alpha) / beta,  v = [1; x / (alpha -
//                   beta)],
//                 one exchange between the blocks a column
//     products    W = V_sᵀ P, all 32 columns of the panel P at once: of the columns to the right for their update, of V
//     to
//                 the left for T, of V_s itself for both; fp64 tensor cores
//     update      P := P - V_s (T_sᵀ W); fp64 tensor cores
//
// The rows live in shared memory where they fit (768 of a block, 12288 of a cluster), else in device memory, that is in
// the second-level cache; taller shares than `tall_rows` also read the strip from there. Arithmetic is in double.
// Below a column's height there are zeros, so all columns go down to the panel's last height.
// The pivot row moves on where a column is live only: it is row `live` of the panel, always in warp 0 of block 0.
// Cost: 4 m b^2 flops or so and 36 exchanges; bound by their latency.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cuda/front_panel.cuh"
#include "backend/cuda/front_panel.hpp"

namespace qrane::backend::cuda {
namespace {

using namespace front_panel;

constexpr int tall_rows = 10;          // rows of a thread, where they do not fit shared memory
constexpr double negligible = 1e-290;  // squares below it underflow

/// The panel's rows of this block, in device or in shared memory; P(row, col) counts from the block's first row.
template <class T>
struct GlobalRows {
  T* a;
  std::int64_t ld;
  int rows, cols;

  __device__ double operator()(int row, int col) const {
    return row < rows && col < cols ? static_cast<double>(a[row + col * ld]) : 0.0;
  }
  __device__ void set(int row, int col, double x) const {
    if (row < rows && col < cols) a[row + col * ld] = static_cast<T>(x);
  }
};
struct SharedRows {
  double* a;
  int ld;  // 4 more than a multiple of 16: lanes (g, t) at row t of column g meet no bank twice

  __device__ double operator()(int row, int col) const { return a[row + col * ld]; }
  __device__ void set(int row, int col, double x) const { a[row + col * ld] = x; }
};

/// A panel and how far it has come; the same in all threads.
template <class T>
struct Panel {
  FrontShape shape;
  GlobalRows<T> device;         // this block's rows
  T *corner, *t;                // of the panel's columns
  int rows;                     // of this block
  int room;                     // rows of the front from the panel's first one on
  int first_col, cols, pivots;  // pivots: of this panel's columns
  int ld_corner;
  double tolerance;
  double dropped = 0;
  int live = 0, live_pivots = 0;
  // lane j has of column j:
  int stair_of_lane;       // counted from the panel's first row
  int row_of_lane = -1;    // the row at which it came, -1 where there was none left
  int pivot_of_lane = -1;  // that of its reflector
};

/// What column j's reflector is.
struct Reflector {
  double beta, tau, factor;
  bool live;
};

/// tail: sum of squares below alpha. Counts the column.
template <class T>
__device__ Reflector reflector(Panel<T>& panel, const Block& b, int j, double alpha, double tail) {
  Reflector h{alpha, 0, 0, panel.live < panel.room};
  if (threadIdx.x % 32 == j && h.live) panel.row_of_lane = panel.live;
  if (!h.live) return h;
  const double square = fma(alpha, alpha, tail);
  const double norm = square > negligible ? square * quick_rsqrt(square) : sqrt(square);
  if (j < panel.pivots) {
    const double true_norm = norm * b.scale[j][0] * b.scale[j][1];
    if (panel.tolerance >= 0 && true_norm <= panel.tolerance) {
      panel.dropped += true_norm * true_norm;
      h.live = false;
      return h;
    }
    ++panel.live_pivots;
  }
  if (threadIdx.x % 32 == j) panel.pivot_of_lane = panel.live;
  ++panel.live;
  if (!(tail <= negligible)) {  // NaN goes this way and spreads
    h.beta = -copysign(norm, alpha);
    h.tau = (h.beta - alpha) * quick_reciprocal(h.beta);
    h.factor = quick_reciprocal(alpha - h.beta);
  }
  return h;
}

/// Column j of the strip, the panel's column strip * width + j.
template <int j, class T, int R>
__device__ void factor_column(Panel<T>& panel, Team& team, Block& b, int strip, double (&a)[R][width], bool resident) {
  const int col = strip * width + j, pivot = panel.live, tid = threadIdx.x;
  const int tiles = resident ? 1 : (panel.rows + R * threads - 1) / (R * threads);
  const bool top = team.rank == 0;
  const auto load = [&](int tile) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int k = j; k < width; ++k) a[r][k] = panel.device((tile * R + r) * threads + tid, strip * width + k);
  };
  double p[width] = {}, row[width];
  for (int tile = 0; tile < tiles; ++tile) {
    if (!resident) load(tile);
    if (tile == 0) {
#pragma unroll
      for (int k = 0; k < width; ++k) row[k] = a[0][k];
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if ((tile * R + r) * threads >= panel.rows) break;
      const double x = r == 0 && tile == 0 && top && tid <= pivot ? 0.0 : a[r][j];
#pragma unroll
      for (int k = j; k < width; ++k) p[k] = fma(x, a[r][k], p[k]);
    }
  }
  double head;
  const double sum = team_sums<j>(team, b, p, row, pivot, head);
  const Reflector h = reflector(panel, b, col, __shfl_sync(0xffffffffu, head, j), __shfl_sync(0xffffffffu, sum, j));
  const double product = h.tau * fma(h.factor, sum, head);
  double w[width];
#pragma unroll
  for (int k = j + 1; k < width; ++k) w[k] = __shfl_sync(0xffffffffu, product, k);
  if (tid == 0) b.tau[col] = h.tau;
  for (int tile = 0; tile < tiles; ++tile) {
    if (!resident) load(tile);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if ((tile * R + r) * threads >= panel.rows) break;
      double v = a[r][j] * h.factor;
      if (r == 0 && tile == 0 && top) {
        const double above = a[0][j];
        if (tid <= pivot) v = tid == pivot && h.live ? 1.0 : 0.0;
        if (tid < panel.ld_corner)
          panel.corner[tid + col * panel.ld_corner] = static_cast<T>(tid < pivot              ? above
                                                                     : tid == pivot && h.live ? h.beta
                                                                                              : 0.0);
      }
#pragma unroll
      for (int k = j + 1; k < width; ++k) a[r][k] = fma(-w[k], v, a[r][k]);
      a[r][j] = v;
      if (!resident) {
#pragma unroll
        for (int k = j; k < width; ++k) panel.device.set((tile * R + r) * threads + tid, strip * width + k, a[r][k]);
      }
    }
  }
}

template <int R, class T, int... j>
__device__ void factor_strip(Panel<T>& panel, Team& team, Block& b, int strip, double (&a)[R][width], bool resident,
                             std::integer_sequence<int, j...>) {
  const int count = panel.cols - strip * width;
  ((j < count ? factor_column<j>(panel, team, b, strip, a, resident) : void()), ...);
}

/// warp_products := this warp's part of V_sᵀ P. A warp takes every eighth tile of 8 rows.
template <class Rows>
__device__ void multiply(const Rows& p, Block& b, int strip, int strips, int rows) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  double c[most_strips / 2][4] = {};
#pragma unroll 2
  for (int row = warp * 8; row < rows; row += warps * 8) {
    const double v0 = p(row + t, strip * width + g), v1 = p(row + t + 4, strip * width + g);
#pragma unroll
    for (int u = 0; u < most_strips / 2; ++u) {
      if (2 * u >= strips) break;
      const int col = 2 * u * width + g;
      mma_16x8x8(c[u], {p(row + t, col), p(row + t, col + 8), p(row + t + 4, col), p(row + t + 4, col + 8)}, v0, v1);
    }
  }
#pragma unroll
  for (int u = 0; u < most_strips / 2; ++u)
#pragma unroll
    for (int h = 0; h < 4; ++h)
      b.warp_products[warp][(2 * t + h % 2) * order + 2 * u * width + h / 2 * 8 + g] = c[u][h];
}

/// P := P - V_s W for the strips to the right. Of a product's 8 rows, row n / 2 + n % 2 * 4 stands in place n, so that
/// what a lane holds of P is (t, g) and (t + 4, g) as in `multiply`.
template <class Rows>
__device__ void update(const Rows& p, const Block& b, int strip, int strips, int rows) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  constexpr int pairs = most_strips / 2;
  const int first = (strip + 1) * width + g;
  double w[pairs][4];
#pragma unroll
  for (int u = 0; u < pairs; ++u)
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const int col = first + (2 * u + h % 2) * width;
      w[u][h] = col < order ? -b.w[t + h / 2 * 4][col] : 0.0;
    }
#pragma unroll 2
  for (int row = warp * 8; row < rows; row += warps * 8) {
    const int permuted = row + g / 2 + g % 2 * 4;
    const double v0 = p(permuted, strip * width + t), v1 = p(permuted, strip * width + t + 4);
#pragma unroll
    for (int u = 0; u < pairs; ++u) {
      const int tile = strip + 1 + 2 * u, col = first + 2 * u * width;
      if (tile >= strips) break;
      const bool both = tile + 1 < strips;
      double c[4] = {p(row + t, col), p(row + t + 4, col), both ? p(row + t, col + 8) : 0.0,
                     both ? p(row + t + 4, col + 8) : 0.0};
      mma_16x8x8(c, w[u], v0, v1);
      p.set(row + t, col, c[0]);
      p.set(row + t + 4, col, c[1]);
      if (both) {
        p.set(row + t, col + 8, c[2]);
        p.set(row + t + 4, col + 8, c[3]);
      }
    }
  }
}

/// w := T_sᵀ V_sᵀ P, a lane per column of P: w_i = tau_i (v_iᵀ P - sum_{l<i} v_iᵀ v_l w_l). By one warp.
__device__ void form_w(Block& b, int strip) {
  const int lane = threadIdx.x % 32;
  double rest[width];
#pragma unroll
  for (int i = 0; i < width; ++i) rest[i] = b.products[i * order + lane];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const double w = b.tau[strip * width + i] * rest[i];
    b.w[i][lane] = w;
#pragma unroll
    for (int l = i + 1; l < width; ++l) rest[l] = fma(-b.products[i * order + strip * width + l], w, rest[l]);
  }
}

/// T(:, j) = -tau_j T(:, 0:j) V(:, 0:j)ᵀ v_j: the sum over the strips to the left; a warp per column, a lane per row.
__device__ void sum_t(Block& b, int strip) {
  const int j = threadIdx.x / 32, i = threadIdx.x % 32;
  double sum = 0;
#pragma unroll 4
  for (int l = 0; l < strip * width; ++l) sum = fma(b.t[i][l], b.products[j * order + l], sum);
  b.t_sums[j][i] = sum;
}

/// The rest of T's columns of the strip; by one warp, a lane per row.
template <class T>
__device__ void form_t(const Panel<T>& panel, Block& b, int strip) {
  const int i = threadIdx.x % 32;
  double sum[width];
#pragma unroll
  for (int j = 0; j < width; ++j) sum[j] = b.t_sums[j][i];
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const int col = strip * width + j;
    const double tau = b.tau[col], x = i < col ? -tau * sum[j] : i == col ? tau : 0.0;
    b.t[i][col] = x;
    if (col < panel.cols && i < panel.ld_corner) panel.t[i + col * panel.ld_corner] = static_cast<T>(x);
#pragma unroll
    for (int l = j + 1; l < width; ++l) sum[l] = fma(x, b.products[j * order + strip * width + l], sum[l]);
  }
}

/// The panel but for its first strip into shared memory, with zeros up to a multiple of 8 rows; done after finish_load
/// and a barrier.
template <class T>
__device__ void load_rows(const Panel<T>& panel, const SharedRows& p) {
  const int rounded = (panel.rows + 7) / 8 * 8;
  for (int row = threadIdx.x; row < rounded; row += threads) {
    const T* const source = panel.device.a + row;
#pragma unroll 8
    for (int col = width; col < panel.cols; ++col) {
      double* const target = p.a + row + col * p.ld;
      if (row >= panel.rows) {
        *target = 0;
      } else if constexpr (sizeof(T) == 8) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(target)),
                     "l"(source + col * panel.device.ld)
                     : "memory");
      } else {
        *target = source[col * panel.device.ld];
      }
    }
  }
}
__device__ void finish_load() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// All strips; R: rows of a thread in registers. Rows::a of SharedRows has the panel but for its first strip.
template <int R, class T, class Rows>
__device__ void factor(Panel<T>& panel, Team& team, Block& b, const Rows& p) {
  constexpr bool in_device = std::is_same_v<Rows, GlobalRows<T>>;
  const int strips = (panel.cols + width - 1) / width, warp = threadIdx.x / 32;
  const int rounded = (panel.rows + 7) / 8 * 8;
  const bool resident = !in_device || panel.rows <= R * threads;
  for (int s = 0; s < strips; ++s) {
    double a[R][width];
    if (resident) {
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const int row = r * threads + threadIdx.x, col = s * width + k;
          a[r][k] = in_device || s == 0 ? panel.device(row, col) : row < rounded ? p(row, col) : 0.0;
        }
    }
    if constexpr (!in_device)
      if (s == 0) load_rows(panel, p);
    factor_strip<R>(panel, team, b, s, a, resident, std::make_integer_sequence<int, width>{});
    if (resident) {
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int row = r * threads + threadIdx.x;
#pragma unroll
        for (int k = 0; k < width; ++k) {
          if (!in_device && row < rounded) p.set(row, s * width + k, a[r][k]);
          panel.device.set(row, s * width + k, a[r][k]);
        }
      }
    }
    if (!in_device && s == 0) finish_load();
    __syncthreads();
    multiply(p, b, s, strips, panel.rows);
    team_products(team, b);
    if (warp == 0 && s + 1 < strips) form_w(b, s);
    const bool with_t = team.rank == team.active - 1;
    if (with_t) sum_t(b, s);
    __syncthreads();
    if (with_t && warp == warps - 1) form_t(panel, b, s);
    if (s + 1 < strips) update(p, b, s, strips, panel.rows);
    __syncthreads();
  }
}

/// What the panel leaves besides V, R and T; by the first warp of block 0.
template <class T>
__device__ void conclude(const Panel<T>& panel, const Fronts<Cuda, T>& f, FrontPanelTask task, int first_row) {
  const int lane = threadIdx.x;
  int height = panel.row_of_lane < 0 ? 0 : min(panel.room, max(panel.stair_of_lane, panel.row_of_lane + 1));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) height = max(height, __shfl_xor_sync(0xffffffffu, height, d));
  if (lane < panel.cols)
    f.pivot[panel.shape.columns + panel.first_col + lane] =
        panel.pivot_of_lane < 0 ? -1 : first_row + panel.pivot_of_lane;
  if (lane != 0) return;
  f.panels[panel.shape.panels + task.panel] = {first_row, height, panel.live, 0};
  FrontState& state = f.states[task.front];
  state.dropped += panel.dropped;
  state.position = first_row + panel.live;
  state.r_rows += panel.live_pivots;
}

/// Shares out the rows. Where the front has run out of them nothing is left to do: `room` <= 0.
template <class T>
__device__ Panel<T> begin(const Fronts<Cuda, T>& f, FrontPanelTask task, const FrontState& state, Block& b) {
  Panel<T> panel;
  panel.shape = f.shapes[task.front];
  const FrontShape& shape = panel.shape;
  const int lane = threadIdx.x % 32;
  panel.first_col = task.panel * f.panel;
  panel.cols = min(f.panel, shape.cols - panel.first_col);
  panel.pivots = shape.pivots - panel.first_col;
  panel.ld_corner = f.panel;
  panel.tolerance = f.tolerance;
  panel.room = state.rows - state.position;
  panel.corner = f.storage + shape.corner + Index(panel.first_col) * f.panel;
  panel.t = f.storage + shape.t + Index(panel.first_col) * f.panel;
  panel.device = {f.storage + shape.matrix + state.position + panel.first_col * Index(shape.ld), shape.ld, 0,
                  panel.cols};
  panel.stair_of_lane = lane < panel.cols ? f.stair[shape.columns + panel.first_col + lane] - state.position : 0;
  if (threadIdx.x < panel.cols) {
    const bool scaled = f.tolerance >= 0 && f.exponents != nullptr && lane < panel.pivots;
    const int exponent = scaled ? f.exponents[shape.first_col + panel.first_col + lane] : 0;
    b.scale[lane][0] = ldexp(1.0, -(exponent / 2));
    b.scale[lane][1] = ldexp(1.0, exponent / 2 - exponent);
  }
  return panel;
}

/// A panel without rows.
template <class T>
__device__ void leave_empty(const Panel<T>& panel, const Fronts<Cuda, T>& f, FrontPanelTask task, int first_row) {
  for (int e = threadIdx.x; e < panel.cols * panel.ld_corner; e += threads) panel.corner[e] = panel.t[e] = T(0);
  if (threadIdx.x < 32) conclude(panel, f, task, first_row);
}

/// Thread map: cluster i for task i; in registers a thread per row, in products a warp per tile of 8 rows. Shared
/// memory: Block, and 32 columns of resident_rows, ld apart. tall: a share may be taller than that.
template <class T, int R, bool tall>
__global__ void __launch_bounds__(threads, tall     ? 1
                                           : R == 1 ? 2
                                                    : 1)
    front_panel_kernel(const std::int32_t* condition, Fronts<Cuda, T> f, const FrontPanelTask* tasks, int blocks,
                       int resident_rows, int ld) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  Block& b = *reinterpret_cast<Block*>(shared);
  const FrontPanelTask task = tasks[blockIdx.x / blocks];
  Team team{cluster_rank(), 1};
  if (blocks > 1) team.init(b);
  const FrontState state = f.states[task.front];
  Panel<T> panel = begin(f, task, state, b);
  cluster_sync(blocks);  // boxes are ready; and everybody has read the state, which will change
  if (panel.room <= 0) {
    if (team.rank == 0) leave_empty(panel, f, task, state.position);
    return;
  }
  const int last = __shfl_sync(0xffffffffu, panel.stair_of_lane, panel.cols - 1);
  const int rows = min(panel.room, max(last, panel.cols));
  const bool resident = !tall || rows <= blocks * resident_rows;
  team.active = resident ? max((rows + resident_rows - 1) / resident_rows, 1) : blocks;
  if (team.rank >= team.active) return;
  const int chunk = ((rows + team.active - 1) / team.active + 7) / 8 * 8;
  panel.device.a += team.rank * chunk;
  panel.device.rows = panel.rows = max(min(chunk, rows - team.rank * chunk), 0);
  if (resident) {
    factor<R>(panel, team, b, SharedRows{shared + sizeof(Block) / 8, ld});
  } else if constexpr (tall) {
    factor<tall_rows>(panel, team, b, panel.device);
  }
  if (team.rank == 0 && threadIdx.x < 32) conclude(panel, f, task, state.position);
}

template <class T, int R, bool tall>
void start(const Launch& launch, const Fronts<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelTask>& tasks, int blocks,
           int resident_rows) {
  auto* const kernel = front_panel_kernel<T, R, tall>;
  const int ld = (resident_rows + 15) / 16 * 16 + 4;
  const int bytes = static_cast<int>(sizeof(Block)) + ld * order * 8;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute(front_panel)");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(tasks.count * blocks));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = blocks > 1 ? 1 : 0;
  if (blocks > 8)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
               "cudaFuncSetAttribute(front_panel)");
  check_cuda(cudaLaunchKernelEx(&config, kernel, launch.condition, f, static_cast<const FrontPanelTask*>(tasks.tasks),
                                blocks, resident_rows, ld),
             "front_panel kernel");
}

}  // namespace

template <class T>
void launch_factor_front_panels(const Launch& launch, const Fronts<Cuda, T>& f,
                                const FrontTasks<Cuda, FrontPanelTask>& tasks) {
  detail::check(f.panel > 0 && f.panel <= order, ErrorCode::invalid_argument,
                "factor_front_panels takes panels of 1 to ", order, " columns, got ", f.panel);
  detail::check(tasks.count <= (Index(1) << 31) / most_blocks - 1, ErrorCode::invalid_argument,
                "factor_front_panels takes at most 2^27 - 1 tasks, got ", tasks.count);
  if (tasks.count == 0) return;
  if (tasks.max_rows <= threads) return start<T, 1, false>(launch, f, tasks, 1, threads);
  // rows that fit shared memory, in steps of a row per thread
  const int fitting = (shared_memory_limit() - static_cast<int>(sizeof(Block)) - 4 * order * 8) / (order * 8 * threads);
  const int most = std::min(fitting, 3) * threads;
  const int limit = device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ? 1 : most_blocks;
  if (tasks.max_rows <= 2 * threads && 2 * threads <= most) return start<T, 2, false>(launch, f, tasks, 1, 2 * threads);
  int blocks = 1;
  while (blocks < limit && tasks.max_rows > blocks * most) blocks *= 2;
  if (tasks.max_rows <= blocks * most)
    start<T, 3, false>(launch, f, tasks, blocks, most);
  else
    start<T, 3, true>(launch, f, tasks, blocks, most);
}

template void launch_factor_front_panels(const Launch&, const Fronts<Cuda, float>&,
                                         const FrontTasks<Cuda, FrontPanelTask>&);
template void launch_factor_front_panels(const Launch&, const Fronts<Cuda, double>&,
                                         const FrontTasks<Cuda, FrontPanelTask>&);

}  // namespace qrane::backend::cuda
