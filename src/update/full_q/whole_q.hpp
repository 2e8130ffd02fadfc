// SPDX-License-Identifier: Apache-2.0
// The whole m x m Q while rows and columns come and go, in either form: explicit (full_q.hpp) or as a list of steps
// (q_by_steps.hpp).
//
// Positions are the columns of Q and the rows of [R; 0]. They lie in one row whose end never moves: new rows of A enter
// as unit vectors before the first position, and what goes out with rows of A goes at the front, too. So every step of
// an update stands on consecutive positions and leaves them where they are:
//
//     enter    p rows of A come in: Q := diag(I, Q), positions -p .. -1
//     reflect  the Q of a factorization of rows x cols on `rows` positions
//     chain    down: [carry | J] becomes [J | carry]; up: [J | carry] becomes [carry | J] (chain.hpp)
//     rotate   [a | b] becomes [b | a]
//     leave    the first p positions are ± the unit vectors of rows that go out; both go
//
// An update computes all of its steps from small data, has everything allocated (prepare), and then commits.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "update/thin_q/columns.hpp"

namespace qrane::update {

template <class B, class T>
using Reflectors = dense::Factorization<B, TransformScalar<B, T>>;

template <class B, class T>
struct Step {
  enum class Kind { enter, reflect, chain, rotate, leave };
  Kind kind;
  Index at = 0;                                       // first position, as they are counted before the step
  Index k = 0, p = 0;                                 // enter, leave: rows of A
  std::shared_ptr<Reflectors<B, T>> reflectors = {};  // reflect
  Chain<B, T> chain = {};
  Index a = 0, b = 0;  // rotate

  static Step enter(Index k, Index p) { return {.kind = Kind::enter, .k = k, .p = p}; }
  static Step leave(Index k, Index p) { return {.kind = Kind::leave, .k = k, .p = p}; }
  static Step reflect(Index at, std::shared_ptr<Reflectors<B, T>> f) {
    return {.kind = Kind::reflect, .at = at, .reflectors = std::move(f)};
  }
  static Step windows(Index at, const Chain<B, T>& chain) { return {.kind = Kind::chain, .at = at, .chain = chain}; }
  static Step rotate(Index at, Index a, Index b) { return {.kind = Kind::rotate, .at = at, .a = a, .b = b}; }
};

template <class B, class T>
using Steps = std::vector<Step<B, T>>;

template <class B, class T>
class WholeQ {
 public:
  using Mat = DeviceMatrix<B, T>;
  virtual ~WholeQ() = default;
  /// c := Q c or Qᵀ c, in place; the rows of A as the user counts them on one side, positions on the other.
  virtual void apply(Op op, const Mat& c) = 0;
  /// w := rows k .. k+p-1 of Q, transposed: m x p.
  virtual void rows(Index k, Index p, const Mat& w) = 0;
  /// out := the first out.cols columns of Q, rows as the user counts them.
  virtual void columns(const Mat& out) = 0;
  /// Everything that the steps need and that may fail.
  virtual void prepare(Steps<B, T>& steps) = 0;
  virtual void commit(Steps<B, T>& steps) = 0;
  /// No rows are left.
  virtual void clear() = 0;
  /// Elements that it is made of.
  virtual Index elements() const = 0;
  /// Dependent steps that updates have added to the application of Q.
  virtual Index added_steps() const { return 0; }
};

/// A factorization of its own, of block x p, run: its triangle goes back to the block's top, zeros below.
template <class B, class T>
std::shared_ptr<Reflectors<B, T>> factor_block(Tools<B, T>& tools, const DeviceMatrix<B, T>& block) {
  if constexpr (in_double<B, T>) {
    const DeviceMatrix<B, double> wide = widened(tools, block);
    auto f = factor_block(tools.wide(), wide);
    narrow(tools, wide, block);
    return f;
  } else {
    auto f = std::make_shared<dense::Factorization<B, T>>(
        tools.queue, plan::make_plan(tools.profile, block.rows, block.cols, 1, sizeof(T), Options{}));
    f->run(block);
    copy(tools.queue, f->r_source(), block.block(0, 0, f->k(), block.cols), Part::upper);
    if (block.rows > f->k()) fill(tools.queue, block.block(f->k(), 0, block.rows - f->k(), block.cols), T(0), T(0));
    return f;
  }
}

/// Shortens what C = QᵀU has below R's rows to a triangle, where that is taller than wide.
template <class B, class T>
bool reduce_bottom(Tools<B, T>& tools, const DeviceMatrix<B, T>& c, Index n, Steps<B, T>& steps) {
  if (c.rows - n <= c.cols) return false;
  steps.push_back(Step<B, T>::reflect(n, factor_block(tools, c.block(n, 0, c.rows - n, c.cols))));
  return true;
}

/// What updates of a whole Q share: R's next value and the steps that lead to it.
template <class B, class T>
struct Whole {
  using Mat = DeviceMatrix<B, T>;
  Tools<B, T>& tools;
  Store<B, T>& store;  // of R and the order of rows
  WholeQ<B, T>& q;

  Mat scratch(Index rows, Index cols) { return tools.scratch.template matrix<T>(rows, cols); }
  /// The store's R on top of zeros, `at` rows down in a matrix of that many rows.
  Mat next(Index rows, Index at) {
    const Mat m = store.next_r(rows, store.n);
    const Index s = store.positions();
    if (s > 0) copy(tools.queue, store.triangle(), m.block(at, 0, s, store.n), Part::upper);
    if (rows > at + s) fill(tools.queue, m.block(at + s, 0, rows - at - s, store.n), T(0), T(0));
    return m;
  }
  void finish(Steps<B, T>& steps, const Mat& r, Index m, Index n) {
    q.prepare(steps);
    q.commit(steps);
    store.take_r(r);
    store.m = m;
    store.n = n;
  }
};

/// u: p x n on the device, before row k.
template <class B, class T>
void insert_rows(Whole<B, T> w, Index k, const DeviceMatrix<B, T>& u, Index block) {
  const Index p = u.rows, n = w.store.n, s = w.store.positions(), carry = std::min(p, n);
  Steps<B, T> steps{Step<B, T>::enter(k, p)};
  const auto m = w.next(carry + s, carry);
  if (p > n && n > 0) {  // [U; R] becomes [R_U; 0; R], and that [R_U; R; 0]
    const auto copied = w.scratch(p, n);
    copy(w.tools.queue, u, copied, Part::all);
    steps.push_back(Step<B, T>::reflect(0, factor_block(w.tools, copied)));
    if (s > 0) steps.push_back(Step<B, T>::rotate(n, p - n, s));
    copy(w.tools.queue, copied.block(0, 0, n, n), m.block(0, 0, n, n), Part::all);
  } else if (carry > 0) {
    copy(w.tools.queue, u, m.block(0, 0, p, n), Part::all);
  }
  if (carry > 0) steps.push_back(Step<B, T>::windows(0, chain_down(w.tools, m, carry, s, n, block, true)));
  w.finish(steps, m.block(0, 0, std::min(w.store.m + p, n), n), w.store.m + p, n);
}

/// Rows k .. k+p-1.
template <class B, class T>
void delete_rows(Whole<B, T> w, Index k, Index p, Index block) {
  const Index m = w.store.m, n = w.store.n, left = std::min(n, m - p);
  if (p == m) {
    const auto none = w.store.next_r(0, n);
    w.q.clear();
    w.store.take_r(none);
    w.store.m = 0;
    return;
  }
  Steps<B, T> steps;
  const auto g = w.scratch(m, p), corner = w.scratch(p, p);
  w.q.rows(k, p, g);
  reduce_bottom(w.tools, g, n, steps);
  const auto r = w.next(left + p, 0);
  steps.push_back(
      Step<B, T>::windows(0, chain_up(w.tools, g.block(0, 0, left + p, p), r, p, left, corner, block, true)));
  steps.push_back(Step<B, T>::leave(k, p));
  w.finish(steps, r.block(p, 0, left, n), m - p, n);
}

/// u: m x p on the device, before column k.
template <class B, class T>
void insert_columns(Whole<B, T> w, Index k, const DeviceMatrix<B, T>& u, Index block, bool trailing = false) {
  auto& queue = w.tools.queue;
  const Index p = u.cols, m = w.store.m, n = w.store.n, s = w.store.positions(), after = std::min(m, n + p);
  Steps<B, T> steps;
  const auto c = w.scratch(m, p);
  copy(queue, u, c, Part::all);
  w.q.apply(Op::transpose, c);
  const bool triangular = reduce_bottom(w.tools, c, n, steps);
  const auto r = w.store.next_r(after, n + p);
  const Chain<B, T> chain = insert_into_r(w.tools, w.store, k, c.block(0, 0, s, p), c.block(s, 0, after - s, p),
                                          triangular, r, block, trailing);
  if (chain.carry > 0) steps.push_back(Step<B, T>::windows(k, chain));
  w.finish(steps, r, m, n + p);
}

/// Columns k .. k+p-1.
template <class B, class T>
void delete_columns(Whole<B, T> w, Index k, Index p, Index block, bool trailing = false) {
  const Index n = w.store.n - p, s = w.store.positions();
  const Index carry = std::clamp<Index>(s - k, 0, trailing ? s : p), cols = std::max<Index>(s - k - carry, 0);
  Steps<B, T> steps;
  const auto r = w.store.next_r(s, n);
  copy_r_columns(w.tools, w.store, 0, k, r, 0);
  copy_r_columns(w.tools, w.store, k + p, n - k, r, k);
  if (carry > 0)
    steps.push_back(
        Step<B, T>::windows(k, chain_down(w.tools, r.block(k, k, s - k, n - k), carry, cols, n - k, block, true)));
  w.finish(steps, r.block(0, 0, std::min(w.store.m, n), n), w.store.m, n);
}

/// A + U Vᵀ: with C = QᵀU, [C; L; 0] goes up to [T; 0], the same turns R into p subdiagonals, T Vᵀ joins its first
/// rows, and the chain down makes it triangular.
template <class B, class T>
void rank_k_update(Whole<B, T> w, const DeviceMatrix<B, T>& u, const DeviceMatrix<B, T>& v, Index block) {
  auto& queue = w.tools.queue;
  const Index p = u.cols, m = w.store.m, n = w.store.n, s = w.store.positions(), rows = std::min(m, s + p),
              carry = std::min(p, rows);
  Steps<B, T> steps;
  const auto c = w.scratch(m, p), corner = w.scratch(carry, p);
  copy(queue, u, c, Part::all);
  w.q.apply(Op::transpose, c);
  reduce_bottom(w.tools, c, n, steps);
  const auto r = w.next(rows, 0);
  if (carry > 0 && n > 0) {
    steps.push_back(
        Step<B, T>::windows(0, chain_up(w.tools, c.block(0, 0, rows, p), r, carry, rows - carry, corner, block, true)));
    gemm(queue, Op::none, Op::transpose, T(1), corner, v, T(1), r.block(0, 0, carry, n));
    steps.push_back(
        Step<B, T>::windows(0, chain_down(w.tools, r, carry, rows - carry, std::min(rows, n), block, true)));
  }
  w.finish(steps, r.block(0, 0, s, n), m, n);
}

}  // namespace qrane::update
