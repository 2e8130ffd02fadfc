// SPDX-License-Identifier: Apache-2.0
// factor_front_panels: panels of frontal matrices by Householder reflections, one cluster of blocks per panel, each
// block with a share of its rows. A panel goes by strips of 8 columns:
//
//     registers   a thread has whole rows of the strip. Column by column: p = xᵀ A over all rows gives the norm and the
//                 products of the update, in one exchange between the blocks:
//                   beta = -sign(alpha) (alpha^2 + p_j)^(1/2),  tau = (beta - alpha) / beta,
//                   v = [1; x / (alpha - beta)]
//     products    W = V_sᵀ P, all 32 columns of the panel P at once: those to the right for their update, of V to the
//                 left for T, V_s itself for both; fp64 tensor cores
//     update      P := P - V_s (T_sᵀ W); fp64 tensor cores
//
// The rows live in shared memory where they fit (768 of a block, 12288 of a cluster), else in device memory, that is in
// the second-level cache, and a strip's V in shared memory; shares of more than tall_rows rows a thread have all of it
// in device memory. Arithmetic is in double. Below a column's height there are zeros, so all columns go down to the
// panel's last height. The pivot row moves on where a column is live only: it is row `live` of the panel, always in
// warp 0 of block 0.
// Cost: 4 m b^2 flops or so and 40 exchanges; bound by the latency of the columns' scalars and sums.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/fronts/panel_gram.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"
#include "cuda/collectives/kernel.cuh"
#include "cuda/fronts/panel_columns.cuh"
#include "cuda/fronts/panel_products.cuh"
#include "cuda/fronts/panel_task.cuh"

namespace qrane::backend::cuda {
namespace {

using namespace front_panel;

constexpr int tall_rows = 10;  // rows of a thread, where they do not fit shared memory
constexpr int tall_warps = 8, low_warps = 4;

/// What follows when a strip's V is in its places, v and p's columns.
template <class T, int warps, class Rows, class Strip>
__device__ void finish_strip(const Panel<T>& panel, Team<warps>& team, const Rows& p, const Strip& v, int strip) {
  Block<warps>& b = team.b;
  const int strips = (panel.cols + width - 1) / width, warp = threadIdx.x / 32;
  const bool with_t = team.rank == team.active - 1;
  multiply(panel, b, p, v, strip, strips);
  team_products(team);
  if (warp == 0 && strip + 1 < strips) form_w(b, strip);
  if (with_t && warp >= warps - 2) sum_t(b, strip, warps - 1 - warp);
  __syncthreads();
  if (with_t && warp == warps - 1) form_t(panel, b, strip);
  switch (strips - strip - 1) {
    case 3: update<3>(panel, b, p, v, strip); break;
    case 2: update<2>(panel, b, p, v, strip); break;
    case 1: update<1>(panel, b, p, v, strip); break;
  }
  __syncthreads();
}

using Columns = std::make_integer_sequence<int, width>;

/// A panel that fits shared memory, at p.
template <int R, int warps, class T>
__device__ void factor_low(Panel<T>& panel, Team<warps>& team, const SharedRows& p) {
  double a[R][width];
  load_strip<R, warps>(panel.device, panel.rows, a);
  const bool bulk = load_rows(panel, team.b, p);
  for (int first = 0; first < panel.cols; first += width) {
    if (first > 0) load_strip<R, warps>(p.from(first), panel.rows, a);
    factor_strip(panel, team, first / width, a, Columns{});
    store_strip<R, warps>(panel.device.from(first), p.from(first), a);
    if (first == 0 && bulk) team.b.copy_box.wait(0);
    __syncthreads();
    finish_strip(panel, team, p, p.from(first), first / width);
  }
}

/// One that does not, `chunk` rows of a block; `room`: shared memory for one strip.
template <int warps, class T>
__device__ void factor_tall(Panel<T>& panel, Team<warps>& team, const SharedRows& room, int chunk) {
  for (int first = 0; first < panel.cols; first += width) {
    if (chunk <= min(tall_rows * warps * 32, room.ld - 4)) {
      double a[tall_rows][width];
      load_strip<tall_rows, warps>(panel.device.from(first), panel.rows, a);
      factor_strip(panel, team, first / width, a, Columns{});
      store_strip<tall_rows, warps>(panel.device.from(first), room, a);
      __syncthreads();
      finish_strip(panel, team, panel.device, room, first / width);
    } else {
      factor_strip_in_place(panel, team, first / width);
      __syncthreads();
      finish_strip(panel, team, panel.device, panel.device.from(first), first / width);
    }
  }
}

/// Thread map: cluster i for task i; in registers a thread per row, in products a warp per tile of 8 rows. Shared
/// memory: Block, and 32 columns of resident_rows, ld apart, or one strip. R: rows of a thread when resident, which a
/// panel may be too tall for where R is 0.
template <class T, int R, int warps>
__global__ void __launch_bounds__(warps * 32, R == 0 || R > 2 ? 1 : 2)
    front_panel_kernel(const std::int32_t* condition, Fronts<Cuda, T> f, const FrontPanelTask* tasks, int blocks,
                       int resident_rows, int ld) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  Team<warps> team{*reinterpret_cast<Block<warps>*>(shared), cluster_rank()};
  team.init();
  const FrontPanelTask task = tasks[blockIdx.x / blocks];
  const FrontShape& shape = f.shapes[task.front];
  const FrontState state = f.states[task.front];
  Panel<T> panel = begin(f, task, shape, state, team.b.limit);
  cluster_sync(blocks);  // boxes are ready, and everybody has read the state, which will change
  if (panel.room <= 0) {
    if (team.rank != 0) return;
    for (int e = threadIdx.x; e < panel.cols * panel.ld_corner; e += warps * 32) panel.corner[e] = panel.t[e] = T(0);
    if (threadIdx.x < 32) conclude(panel, f, task, shape, state.position, team.b.dropped);
    return;
  }
  constexpr int most_rows = R == 0 ? 3 : R;
  const bool resident = R > 0 || panel.rows <= blocks * resident_rows;
  while (team.active < blocks && (!resident || panel.rows > team.active * resident_rows))
    team.active *= 2, ++team.log_active;
  if (team.rank >= team.active) return;
  const int chunk = (((panel.rows + team.active - 1) >> team.log_active) + 7) / 8 * 8;
  panel.rows = max(min(chunk, panel.rows - team.rank * chunk), 0);
  panel.device.a += team.rank * chunk;
  panel.device.rows = panel.rows;
  const SharedRows room{shared + sizeof(Block<warps>) / 8, ld};
  if (resident)
    factor_low<most_rows>(panel, team, room);
  else if constexpr (R == 0)
    factor_tall(panel, team, SharedRows{room.a, (ld * most_strips - 4) / 16 * 16 + 4}, chunk);
  if (team.rank == 0 && threadIdx.x < 32) conclude(panel, f, task, shape, state.position, team.b.dropped);
}

/// Shared memory for resident_rows.
template <int warps>
int bytes(int resident_rows) {
  return static_cast<int>(sizeof(Block<warps>)) + (resident_rows + 4) * order * 8;
}

template <int R, int warps, class T>
void start(const Launch& launch, const Fronts<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelTask>& tasks, int blocks,
           int resident_rows) {
  const ClusterShape shape{dim3(static_cast<unsigned>(tasks.count * blocks)), warps * 32, blocks,
                           bytes<warps>(resident_rows)};
  launch_cluster(front_panel_kernel<T, R, warps>, "front_panel kernel", shape, launch.stream, launch.condition, f,
                 tasks.tasks, blocks, resident_rows, resident_rows + 4);
}

}  // namespace

template <class T>
void factor_front_panels(const Queue& queue, const Fronts<Cuda, T>& f,
                                const FrontTasks<Cuda, FrontPanelTask>& tasks) {
  const Launch launch(queue);
  detail::check(f.panel > 0 && f.panel <= order, ErrorCode::invalid_argument,
                "factor_front_panels takes panels of 1 to ", order, " columns, got ", f.panel);
  detail::check(tasks.count <= (Index(1) << 31) / most_blocks - 1, ErrorCode::invalid_argument,
                "factor_front_panels takes at most 2^27 - 1 tasks, got ", tasks.count);
  if (tasks.count == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    if (tasks.max_rows > front_gram_rows && device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9)
      return launch_factor_front_panels_by_gram(launch, f, tasks);
  }
  constexpr int step = low_warps * 32;  // a row of each thread
  const int limit = shared_memory_limit();
  int most = 6 * step;  // of a block
  while (most > step && bytes<low_warps>(most) > limit) most -= step;
  if (tasks.max_rows <= step) return start<1, low_warps>(launch, f, tasks, 1, step);
  if (tasks.max_rows <= 2 * step) return start<2, low_warps>(launch, f, tasks, 1, 2 * step);
  if (tasks.max_rows <= std::min(4 * step, most)) return start<4, low_warps>(launch, f, tasks, 1, 4 * step);
  const int most_of_team = device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ? 1 : most_blocks;
  int blocks = 1;
  while (blocks < most_of_team && tasks.max_rows > blocks * most) blocks *= 2;
  if (tasks.max_rows <= blocks * most) return start<6, low_warps>(launch, f, tasks, blocks, most);
  while (most > step && bytes<tall_warps>(most) > limit) most -= step;
  start<0, tall_warps>(launch, f, tasks, blocks, most);
}

template void factor_front_panels(const Queue&, const Fronts<Cuda, float>&,
                                         const FrontTasks<Cuda, FrontPanelTask>&);
template void factor_front_panels(const Queue&, const Fronts<Cuda, double>&,
                                         const FrontTasks<Cuda, FrontPanelTask>&);

}  // namespace qrane::backend::cuda
