// SPDX-License-Identifier: Apache-2.0
// CPU backend: chains of orthogonal blocks over the columns of an explicit Q; rows in and out of small factorizations
// of which R and d are kept.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

/// [R d] of one matrix by rows, and the rows that come and go, each column of all of them scaled by one power of two,
/// so that nothing overflows or is lost on the way, whatever the columns' scales.
template <class T>
class SmallFactor {
 public:
  SmallFactor(const RowUpdate<Cpu, T>& task, Index b)
      : task_(task),
        b_(b),
        n_(task.r.cols),
        width_(n_ + task.d.cols),
        rows_(static_cast<std::size_t>(n_ * width_)),
        row_(static_cast<std::size_t>(width_)),
        a_(static_cast<std::size_t>(n_)),
        root_(static_cast<std::size_t>(n_ + 1)),
        scale_(static_cast<std::size_t>(width_)),
        unscale_(scale_),
        squares_(task.squares ? task.squares + b * task.d.cols : nullptr,
                 task.squares ? task.squares + (b + 1) * task.d.cols : nullptr) {
    for (Index j = 0; j < width_; ++j) {
      const T* column = j < n_ ? at(task.r, 0, j) : at(task.d, 0, j - n_);
      const Index height = j < n_ ? j + 1 : n_;
      T largest = 0;
      for (Index i = 0; i < height; ++i) largest = std::max(largest, std::abs(column[i]));
      for (Index i = 0; i < task.rows_in.rows; ++i) largest = std::max(largest, std::abs(in(i, j)));
      for (Index i = 0; i < task.rows_out.rows; ++i) largest = std::max(largest, std::abs(out(i, j)));
      constexpr int most = std::numeric_limits<T>::max_exponent - 2;
      const int e = largest > 0 && std::isfinite(largest) ? std::clamp(std::ilogb(largest), -most, most) : 0;
      scale_[index(j)] = std::ldexp(T(1), -e);
      unscale_[index(j)] = std::ldexp(T(1), e);
      for (Index i = 0; i < height; ++i) row(i)[j] = column[i] * scale_[index(j)];
    }
  }

  /// R := that of [R; u].
  void add(Index which) {
    for (Index j = 0; j < width_; ++j) row_[index(j)] = in(which, j) * scale_[index(j)];
    T* u = row_.data();
    for (Index k = 0; k < n_; ++k) {
      T* r = row(k);
      if (u[k] == T(0)) continue;
      const T h = std::copysign(std::hypot(r[k], u[k]), r[k]), c = r[k] / h, s = u[k] / h;
      r[k] = h;
      for (Index j = k + 1; j < width_; ++j) {
        const T x = r[j], y = u[j];
        r[j] = c * x + s * y;
        u[j] = c * y - s * x;
      }
    }
    add_squares(1);
  }

  /// R without u; false when that is refused.
  bool remove(Index which) {
    for (Index j = 0; j < width_; ++j) row_[index(j)] = out(which, j) * scale_[index(j)];
    T* u = row_.data();
    T left = 1;
    for (Index k = 0; k < n_; ++k) {  // Rᵀ a = u; of d's columns e - aᵀ d remains
      root_[index(k)] = std::sqrt(left);
      const T* r = row(k);
      const T a = u[k] == T(0) ? T(0) : u[k] / r[k];
      a_[index(k)] = a;
      left -= a * a;
      for (Index j = k + 1; j < width_; ++j) u[j] -= a * r[j];
    }
    if (!(left > T(RowUpdate<Cpu, T>::least_left(n_)))) return false;
    const T t = std::sqrt(left);
    root_[index(n_)] = t;
    // A row below [R d] that the rotations, from the bottom up, turn into u: of R's columns it is zero, of d's what the
    // residual has of it.
    for (Index j = 0; j < n_; ++j) u[j] = 0;
    for (Index j = n_; j < width_; ++j) u[j] /= t;
    add_squares(-1);
    // The rotation at k takes (root of what a_0 .. a_k leave of 1, a_k) to (root of what a_0 .. a_(k-1) leave, 0).
    // Summed from the other end the roots near 1 would all err to the same side, and R's first columns grow in a long
    // window.
    for (Index k = n_ - 1; k >= 0; --k) {
      T* r = row(k);
      const T h = root_[index(k)], c = root_[index(k + 1)] / h, s = a_[index(k)] / h;
      for (Index j = k; j < width_; ++j) {
        const T x = r[j], y = u[j];
        r[j] = c * x - s * y;
        u[j] = c * y + s * x;
      }
    }
    return true;
  }

  void store() const {
    for (Index j = 0; j < width_; ++j) {
      T* column = j < n_ ? at(task_.r, 0, j) : at(task_.d, 0, j - n_);
      for (Index i = 0; i < (j < n_ ? j + 1 : n_); ++i) column[i] = rows_[index(i * width_ + j)] * unscale_[index(j)];
    }
    if (task_.squares) std::copy(squares_.begin(), squares_.end(), task_.squares + b_ * task_.d.cols);
  }

 private:
  static std::size_t index(Index i) { return static_cast<std::size_t>(i); }
  T* row(Index i) { return rows_.data() + i * width_; }
  T* at(const DeviceMatrix<Cpu, T>& a, Index i, Index j) const { return a.data + b_ * a.stride + i + j * a.ld; }
  T in(Index i, Index j) const { return j < n_ ? *at(task_.rows_in, i, j) : *at(task_.e_in, i, j - n_); }
  T out(Index i, Index j) const { return j < n_ ? *at(task_.rows_out, i, j) : *at(task_.e_out, i, j - n_); }
  void add_squares(double sign) {
    for (Index j = 0; j < static_cast<Index>(squares_.size()); ++j) {
      const double f = static_cast<double>(row_[index(n_ + j)]) * unscale_[index(n_ + j)];
      squares_[index(j)] = std::max(0.0, squares_[index(j)] + sign * f * f);
    }
  }

  const RowUpdate<Cpu, T>& task_;
  Index b_, n_, width_;
  std::vector<T> rows_, row_, a_, root_, scale_, unscale_;
  std::vector<double> squares_;
};

}  // namespace

// A strip of rows goes through the whole chain while it lies in the cache: [carry | X_J] is copied together,
// multiplied, and copied apart.
template <class T>
void sweep(const Queue& queue, const Sweep<Cpu, T>& task) {
  if (queue.skip()) return;
  constexpr Index strip_rows = 128;
  const Index p = task.p, most = task.block + p, blocks = (task.cols + task.block - 1) / task.block;
  const Index strips = (task.x.rows + strip_rows - 1) / strip_rows;
  const blas::SingleThread single;
  queue.workers().run(strips * task.x.count, 2 * task.x.count * task.x.rows * blocks * most * most, [&](Index k, int) {
    const Index b = k / strips, row = k % strips * strip_rows, rows = std::min(strip_rows, task.x.rows - row);
    const auto copy = [&](const T* from, Index from_ld, T* to, Index to_ld, Index cols) {
      for (Index j = 0; j < cols; ++j) std::copy(from + j * from_ld, from + j * from_ld + rows, to + j * to_ld);
    };
    const auto of_strip = [&](const DeviceMatrix<Cpu, T>& a) { return a.data + b * a.stride + row; };
    std::vector<T> in(static_cast<std::size_t>(rows * most)), out(in.size()), carry(static_cast<std::size_t>(rows * p));
    copy(of_strip(task.carry_in), task.carry_in.ld, carry.data(), rows, std::min(p, task.carry_in.cols));
    for (Index step = 0; step < blocks; ++step) {
      const Index j = task.down ? step : blocks - 1 - step, w = std::min(task.block, task.cols - j * task.block);
      T* x = of_strip(task.x) + (task.first + j * task.block) * task.x.ld;
      std::copy(carry.begin(), carry.end(), in.begin() + (task.down ? 0 : rows * w));
      copy(x, task.x.ld, in.data() + (task.down ? rows * p : 0), rows, w);
      blas::gemm(Op::none, Op::none, rows, w + p, w + p, T(1), in.data(), rows,
                 task.h + b * task.h_stride + j * most * most, w + p, T(0), out.data(), rows);
      copy(out.data() + (task.down ? 0 : rows * p), rows, x + task.shift * task.x.ld, task.x.ld, w);
      copy(out.data() + (task.down ? rows * w : 0), rows, carry.data(), rows, p);
    }
    copy(carry.data(), rows, of_strip(task.carry_out), task.carry_out.ld, std::min(p, task.carry_out.cols));
  });
}

template <class T>
void update_rows(const Queue& queue, const RowUpdate<Cpu, T>& task) {
  if (queue.skip()) return;
  const Index rows = task.rows_in.rows + task.rows_out.rows, n = task.r.cols;
  queue.workers().run(task.r.count, task.r.count * n * (n + task.d.cols) * (rows + 1), [&](Index b, int) {
    SmallFactor<T> factor(task, b);
    for (Index i = 0; i < task.rows_in.rows; ++i) factor.add(i);
    bool taken = true;
    for (Index i = 0; i < task.rows_out.rows && taken; ++i) taken = factor.remove(i);
    if (taken)
      factor.store();
    else if (task.refused)
      ++task.refused[b];
  });
}

template void sweep(const Queue&, const Sweep<Cpu, float>&);
template void sweep(const Queue&, const Sweep<Cpu, double>&);
template void update_rows(const Queue&, const RowUpdate<Cpu, float>&);
template void update_rows(const Queue&, const RowUpdate<Cpu, double>&);

}  // namespace qrane::backend::cpu
