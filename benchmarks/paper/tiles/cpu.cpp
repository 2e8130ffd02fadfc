// SPDX-License-Identifier: Apache-2.0
#include "paper/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qrane::backend::cpu {

namespace {

constexpr Index tile = front_tile;

template <class T>
class TileRound {
 public:
  explicit TileRound(const FrontTileRound<Cpu, T>& round) : round_(round) {}

  void run() {
    for (std::int32_t k = 0; k < round_.apply_factorize.count; ++k) {
      const ApplyFactorizeTask& task = round_.apply_factorize.tasks[k];
      const Bundle& factored = round_.bundles.tasks[task.factored];
      apply(round_.bundles.tasks[task.applied], factored.column, 1);
      factorize(factored);
    }
    for (std::int32_t k = 0; k < round_.factorize.count; ++k)
      factorize(round_.bundles.tasks[round_.factorize.tasks[k].bundle]);
    for (std::int32_t k = 0; k < round_.apply.count; ++k) {
      const ApplyTask& task = round_.apply.tasks[k];
      apply(round_.bundles.tasks[task.bundle], task.first_column, task.columns);
    }
    for (std::int32_t k = 0; k < round_.pack.count; ++k) pack(round_.pack.tasks[k]);
    for (std::int32_t k = 0; k < round_.s_assembly.count; ++k) scatter(round_.s_assembly.tasks[k]);
    for (std::int32_t k = 0; k < round_.finish.count; ++k) finish(round_.finish.tasks[k]);
  }

 private:
  /// Element (i, j) of the bundle's rows of column tile `column`.
  T& element(const Bundle& bundle, Index column, Index i, Index j) const {
    const TileFront& front = round_.fronts[bundle.front];
    const Index row = round_.row_tiles[bundle.first_row + i / tile] * tile + i % tile;
    return round_.storage[front.matrix + row + (column * tile + j) * front.ld];
  }
  T* vt(const Bundle& bundle) const { return round_.vt + std::int64_t{bundle.vt} * vt_elements; }

  void factorize(const Bundle& bundle) const {
    constexpr T negligible = sizeof(T) == 4 ? T(1e-34) : T(1e-290);
    const Index rows = bundle.rows * tile, column = bundle.column;
    T* const slot = vt(bundle);
    std::vector<T> v(static_cast<std::size_t>(rows * tile), T(0));
    for (Index j = 0; j < tile; ++j) {
      T* const vj = v.data() + j * rows;
      const T alpha = element(bundle, column, j, j);
      T square = 0;
      for (Index i = j + 1; i < rows; ++i) square += element(bundle, column, i, j) * element(bundle, column, i, j);
      T tau = 0, beta = alpha, factor = 0;
      if (!(square <= negligible)) {
        beta = -std::copysign(std::sqrt(alpha * alpha + square), alpha);
        tau = (beta - alpha) / beta;
        factor = 1 / (alpha - beta);
      }
      vj[j] = 1;
      for (Index i = j + 1; i < rows; ++i) vj[i] = element(bundle, column, i, j) * factor;
      for (Index k = j + 1; k < tile; ++k) {
        T sum = 0;
        for (Index i = j; i < rows; ++i) sum += vj[i] * element(bundle, column, i, k);
        for (Index i = j; i < rows; ++i) element(bundle, column, i, k) -= tau * sum * vj[i];
      }
      element(bundle, column, j, j) = beta;
      // T(0:j, j) = -tau_j T(0:j, 0:j) Vᵀ v_j
      T products[front_tile];
      for (Index k = 0; k < j; ++k) {
        products[k] = 0;
        for (Index i = j; i < rows; ++i) products[k] += v[static_cast<std::size_t>(i + k * rows)] * vj[i];
      }
      for (Index i = 0; i < j; ++i) {
        T sum = 0;
        for (Index k = i; k < j; ++k) sum += slot[i + k * (tile + 1)] * products[k];
        slot[i + j * (tile + 1)] = -tau * sum;
      }
      slot[j + j * (tile + 1)] = tau;
      for (Index i = j + 1; i < tile; ++i) slot[i + 1 + j * (tile + 1)] = vj[i];
    }
    for (Index j = 0; j < tile; ++j)
      for (Index i = j + 1; i < rows; ++i)
        element(bundle, column, i, j) = i < tile ? T(0) : v[static_cast<std::size_t>(i + j * rows)];
  }

  T reflector(const Bundle& bundle, Index i, Index j) const {
    if (i >= tile) return element(bundle, bundle.column, i, j);
    return i > j ? vt(bundle)[i + 1 + j * (tile + 1)] : T(i == j);
  }

  void apply(const Bundle& bundle, Index first, Index columns) const {
    const Index rows = bundle.rows * tile;
    T w[front_tile], x[front_tile];
    for (Index c = first * tile; c < (first + columns) * tile; ++c) {
      const Index column = c / tile, j = c % tile;
      for (Index k = 0; k < tile; ++k) {
        w[k] = 0;
        for (Index i = k; i < rows; ++i) w[k] += reflector(bundle, i, k) * element(bundle, column, i, j);
      }
      for (Index k = 0; k < tile; ++k) {
        x[k] = 0;
        for (Index l = 0; l <= k; ++l) x[k] += vt(bundle)[l + k * (tile + 1)] * w[l];
      }
      for (Index k = 0; k < tile; ++k)
        for (Index i = k; i < rows; ++i) element(bundle, column, i, j) -= reflector(bundle, i, k) * x[k];
    }
  }

  /// Row of a front's tiles that holds row i of R, or of what is below R.
  Index place(std::int32_t order, Index i) const { return round_.order[order + i / tile] * tile + i % tile; }

  void pack(const PackTilesTask& task) const {
    const TileFront &child = round_.fronts[task.block.front], &parent = round_.fronts[child.parent];
    for (Index j = task.block.first_column; j < task.block.first_column + task.block.columns; ++j)
      for (Index i = task.block.first_row; i < std::min<Index>(task.block.first_row + task.block.rows, j + 1); ++i)
        round_.storage[parent.matrix + round_.cb_slot[child.slots + i] +
                       Index{round_.parent_col[child.columns + child.pivots + j]} * parent.ld] =
            round_.storage[child.matrix + place(task.order, child.pivots + i) + (child.pivots + j) * child.ld];
  }

  void scatter(const SAssemblyTask& task) const {
    const TileFront& front = round_.fronts[task.front];
    const Index first = round_.row_begin[front.first_row] + task.first;
    for (Index p = first, row = front.first_row; p < first + task.count; ++p) {
      while (round_.row_begin[row + 1] <= p) ++row;
      round_.storage[front.matrix + round_.own_slot[row] + Index{round_.entry_col[p]} * front.ld] = round_.values[p];
    }
  }

  void finish(const FinishTilesTask& task) const {
    const TileFront& front = round_.fronts[task.front];
    T* r = round_.r + front.r;
    for (Index j = 0; j < front.cols; ++j) {
      const Index count = j < front.pivots ? std::min<Index>(j + 1, front.r_rows) : front.r_rows;
      if (j % task.parts == task.part)
        for (Index i = 0; i < count; ++i) r[i] = round_.storage[front.matrix + place(task.order, i) + j * front.ld];
      r += count;
    }
  }

  const FrontTileRound<Cpu, T>& round_;
};

}  // namespace

template <class T>
void run_tile_round(const Queue&, const FrontTileRound<Cpu, T>& round, std::int32_t) {
  TileRound<T>(round).run();
}

template void run_tile_round(const Queue&, const FrontTileRound<Cpu, float>&, std::int32_t);
template void run_tile_round(const Queue&, const FrontTileRound<Cpu, double>&, std::int32_t);

}  // namespace qrane::backend::cpu
