// SPDX-License-Identifier: Apache-2.0
// Where only R (and d) is kept: rows out by LINPACK's method in blocks, and right-hand sides attached.
//
// Rows out (Dongarra, Bunch, Moler, Stewart, LINPACK Users' Guide, chapter 10, p rows at once): W = R^-T Uᵀ, I - WᵀW =
// LᵀL, and the chain up on [W; L], applied to [R d; 0 t], t = L^-T (e - Wᵀ d), takes U out of the top rows. What of e
// is not in A's range leaves the residual: ‖r‖² - ‖t‖². Where I - WᵀW is not positive definite to working accuracy, or
// fewer rows than columns would be left, the removed rows carry the rank, and R knows too little of the others:
// refused.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "update/thin_q/blocked_cholesky.hpp"
#include "update/thin_q/rows.hpp"

namespace qrane::update {

/// Whether update_rows does it: in one launch where R is small and rows are few, and judged on the device.
template <class B, class T>
bool takes_update_rows(Tools<B, T>& tools, const Store<B, T>& store, Index p) {
  constexpr Index most_rows = 8;
  return !store.has_q && store.n > 0 && store.m >= store.n && p <= most_rows &&
         store.n <= tools.queue.limits(T{}).max_update_cols;
}

/// Rows in (and then none out) or out of R in place; `refused`: one counter, or null.
template <class B, class T>
void update_small(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& u, const DeviceMatrix<B, T>& e,
                  bool in, typename B::template Pointer<std::int32_t> refused) {
  backend::RowUpdate<B, T> task;
  task.r = store.triangle();
  task.d = store.d();
  if (store.nrhs > 0) task.squares = store.residual_squares.data;
  (in ? task.rows_in : task.rows_out) = u;
  (in ? task.e_in : task.e_out) = e;
  task.refused = refused;
  update_rows(tools.queue, task);
  store.m += in ? u.rows : -u.rows;
}

/// Deletions whose refusal, if any, the host has not looked at yet: a counter on the device for each.
template <class B>
class Pending {
 public:
  explicit Pending(const typename B::Queue& queue) : queue_(queue) {}

  bool full() const { return static_cast<Index>(rows_.size()) == slots; }
  bool empty() const { return rows_.empty(); }
  /// The counter of the next deletion, of p rows; only when not full.
  typename B::template Pointer<std::int32_t> next(Index p) {
    if (counters_.bytes() == 0) {
      counters_ = dense::Buffer<B>(queue_, slots * 4);
      clear();
    }
    rows_.push_back(p);
    return counters_.template as<std::int32_t>() + (static_cast<Index>(rows_.size()) - 1);
  }
  struct Refused {
    Index updates = 0, rows = 0;
  };
  /// Those refused, and the rows that have stayed by it. Waits, where there is anything to wait for.
  Refused settle() {
    Refused refused;
    if (rows_.empty()) return refused;
    std::vector<std::int32_t> counts(rows_.size());
    queue_.download(counters_.template as<std::int32_t>(), counts.data(), static_cast<Index>(counts.size()));
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] != 0) {
        ++refused.updates;
        refused.rows += rows_[i];
      }
    rows_.clear();
    if (refused.updates > 0) clear();
    return refused;
  }

 private:
  static constexpr Index slots = 1024;
  void clear() {
    const DeviceMatrix<B, float> all{counters_.template as<float>(), slots, 1, slots, 0, 1};
    fill(queue_, all, 0.0F, 0.0F);
  }
  typename B::Queue queue_;
  dense::Buffer<B> counters_;
  std::vector<Index> rows_;
};

namespace detail {

/// The Cholesky factor of I - gram (upper triangle given, p x p), in place; false where a pivot is not above `least`,
/// or anything is not finite.
inline bool downdate_factor(dense::HostMatrix& gram, double least) {
  const Index p = gram.rows;
  for (Index j = 0; j < p; ++j) {
    for (Index i = 0; i <= j; ++i) {
      double x = (i == j ? 1.0 : 0.0) - gram(i, j);
      for (Index l = 0; l < i; ++l) x -= gram(l, i) * gram(l, j);
      if (i == j && !(x > least)) return false;
      gram(i, j) = i == j ? std::sqrt(x) : x / gram(i, i);
    }
    for (Index i = j + 1; i < p; ++i) gram(i, j) = 0;
  }
  return true;
}

/// The same for many rows, on the device, which waits for the pivots alone. `l`: zeros below, as the host's.
template <class B, class T>
bool wide_downdate_factor(Tools<B, T>& tools, const DeviceMatrix<B, double>& gram, double least,
                          const DeviceMatrix<B, double>& l) {
  auto& queue = tools.queue;
  const Index p = gram.cols;
  const DeviceMatrix<B, double> left = tools.scratch.template matrix<double>(p, p);
  const auto failed = tools.scratch.template take<std::int32_t>(1);
  set_flags(queue, failed, 1, 0);
  fill(queue, l, 0.0, 1.0);
  fill(queue, left, 0.0, 1.0);
  gemm(queue, Op::none, Op::none, -1.0, l, gram, 1.0, left);
  blocked_cholesky(
      tools, left, l, failed, std::numeric_limits<double>::max(),
      [&](const CholeskyBlock<B, T>& block, const DeviceMatrix<B, double>& left12, const DeviceMatrix<B, double>& l12) {
        copy(queue, left12, l12, Part::all);
        trsm(queue, backend::Side::left, backend::Triangle::upper, Op::transpose, backend::Diagonal::non_unit, 1.0,
             block.r, l12);
      },
      [](Index, const CholeskyBlock<B, T>&) {});
  const DeviceMatrix<B, double> roots = tools.scratch.template matrix<double>(1, p);
  copy(queue, DeviceMatrix<B, double>{l.data, 1, p, l.ld + 1, 0, 1}, roots, Part::all);
  std::vector<double> pivots(static_cast<std::size_t>(p));
  std::int32_t refused = 0;
  queue.download(roots.data, pivots.data(), p);
  queue.download(failed, &refused, 1);
  return refused == 0 && std::all_of(pivots.begin(), pivots.end(), [&](double x) { return x * x > least; });
}

}  // namespace detail

/// u: the rows (p x n), e: their right-hand sides, on the device, in error by `error` times a row's rounding. Returns
/// false, with nothing changed, where it is refused.
template <class B, class T>
bool delete_rows_without_q(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& u,
                           const DeviceMatrix<B, T>& e, Index p, Index block, double error = 1) {
  auto& queue = tools.queue;
  const Index n = store.n, nrhs = store.nrhs, width = n + nrhs;
  if (p == store.m) {
    remove_all_rows(tools, store);
    return true;
  }
  if (n == 0) {
    add_residuals(tools, store, e, -1);
    store.m -= p;
    return true;
  }
  if (store.m - p < n) return false;
  if (p > n) {  // U = Y T: rows T go out, and what is left of Yᵀe leaves the residual
    auto& f = tools.factorization(p, n, QForm::implicit);
    const DeviceMatrix<B, T> t = tools.scratch.template matrix<T>(n, n),
                             turned = tools.scratch.template matrix<T>(p, nrhs);
    f.run(u);
    copy(queue, f.r_source(), t, Part::upper);
    if (nrhs > 0) {
      copy(queue, e, turned, Part::all);
      f.apply(Op::transpose, turned);
    }
    const Index m = store.m;
    constexpr double of_a_factorization = 15;  // decision 9's 30 (n + 10) u over least_left
    if (!delete_rows_without_q(tools, store, t, turned.block(0, 0, n, nrhs), n, block, of_a_factorization))
      return false;
    if (nrhs > 0) add_residuals(tools, store, turned.block(n, 0, p - n, nrhs), -1);
    store.m = m - p;
    return true;
  }
  const DeviceMatrix<B, T> g = tools.scratch.template matrix<T>(n + p, p), w = g.block(0, 0, n, p);
  transpose(queue, u, w);
  trsm(queue, backend::Side::left, backend::Triangle::upper, Op::transpose, backend::Diagonal::non_unit, T(1),
       store.triangle(), w);
  constexpr Index most_on_host = 48;
  const double least = error * backend::RowUpdate<B, T>::least_left(n);
  const DeviceMatrix<B, double> gram = tools.gram_of(w);
  const DeviceMatrix<B, T> bottom = g.block(n, 0, p, p);
  if (p > most_on_host && tools.profile.limits.max_cholesky > 0) {
    const DeviceMatrix<B, double> l = tools.scratch.template matrix<double>(p, p);
    if (!detail::wide_downdate_factor(tools, gram, least, l)) return false;
    narrow(queue, l, bottom, Part::all);
  } else {
    dense::HostMatrix l(p, p);
    queue.download(gram.data, l.data.data(), p * p);
    if (!detail::downdate_factor(l, least)) return false;
    const Matrix<T> factor = dense::from_host_matrix<T>(l);
    dense::load<B, T>(queue, factor.view(), bottom);
  }

  const DeviceMatrix<B, T> m = store.next_r(n + p, width), corner = tools.scratch.template matrix<T>(p, p);
  copy(queue, store.triangle(), m.block(0, 0, n, n), Part::upper);
  fill(queue, m.block(n, 0, p, n), T(0), T(0));
  const DeviceMatrix<B, T> t = m.block(n, n, p, nrhs), scaled = tools.scratch.template matrix<T>(n + p, p);
  scaled_copy(tools, off_unit<T>, g, scaled);
  if (nrhs > 0) {
    copy(queue, store.d(), m.block(0, n, n, nrhs), Part::all);
    copy(queue, e, t, Part::all);
    gemm(queue, Op::transpose, Op::none, T(-1), w, store.d(), T(1), t);
    trsm(queue, backend::Side::left, backend::Triangle::upper, Op::transpose, backend::Diagonal::non_unit, T(1), bottom,
         t);
    const DeviceMatrix<B, T> kept = tools.scratch.template matrix<T>(p, nrhs);
    copy(queue, t, kept, Part::all);
    chain_up(tools, scaled, m, p, n, corner, block, false);
    add_residuals(tools, store, kept, -1);
  } else {
    chain_up(tools, scaled, m, p, n, corner, block, false);
  }
  store.take_r(m.block(p, 0, n, width));
  store.m -= p;
  return true;
}

/// r := [R d] of [a b], and the squares of the residuals, with memory for them.
template <class B, class T>
void factor_augmented(Tools<B, T>& tools, Store<B, T>& store, MatrixView<const T> a, const DeviceMatrix<B, T>& b,
                      const DeviceMatrix<B, T>& r) {
  auto& queue = tools.queue;
  const Index m = a.rows, n = a.cols, c = std::min(m, n), width = n + b.cols, k = std::min(m, width);
  const DeviceMatrix<B, T> augmented = tools.scratch.template matrix<T>(m, width);
  const DeviceMatrix<B, T> upper = tools.scratch.template matrix<T>(k, width);
  if (k > 0) {
    dense::load<B, T>(queue, a, augmented.columns(0, n));
    copy(queue, b, augmented.columns(n, b.cols), Part::all);
    auto& f = tools.factorization(m, width, QForm::none);
    f.run(augmented);
    copy(queue, f.r_source(), upper, Part::upper);
    if (c > 0) copy(queue, upper.block(0, 0, c, width), r, Part::all);
  }
  store.reserve_b(b.cols);
  fill(queue, store.residual_squares, 0.0, 0.0);
  add_residuals(tools, store, upper.block(c, n, k - c, b.cols), 1);
}

}  // namespace qrane::update
