// SPDX-License-Identifier: Apache-2.0
// U = Q C + Z L with orthonormal [Q Z]: columns that come in, or the unit vectors of rows that go out.
//
// Two steps of block Gram-Schmidt give C and S = U - Q C with what is left of Q in S at rounding of U ("twice is
// enough": Giraud, Langou, Rozložník, van den Eshof, Numer. Math. 2005). S = Z L by QR. Where S has columns near
// rounding, Z's directions may point into Q again; then Z is made orthogonal again, and
// columns of which nothing is left (those of U in the range of Q: rank that A loses, or does not gain) are replaced by
// random ones. Then L is ZᵀS. In the common case that is five passes over Q and one number that the host waits for.
#pragma once

#include <cmath>
#include <vector>

#include "dense/pivoted_matrix.hpp"
#include "update/store.hpp"

namespace qrane::update {

template <class B, class T>
struct Complement {
  DeviceMatrix<B, T> z;     // extent x min(p, rows - positions)
  DeviceMatrix<B, T> l;     // z.cols x p
  bool triangular = false;  // l is upper triangular, zeros below
};

namespace detail {

/// Largest |QᵀZ| and |ZᵀZ - I|; y := QᵀZ. Waits.
template <class B, class T>
double offset(Tools<B, T>& tools, const DeviceMatrix<B, T>& q, const DeviceMatrix<B, T>& z,
              const DeviceMatrix<B, T>& y) {
  constexpr Index scratch_bytes = Index{1} << 20;
  const backend::Scratch<B> scratch{tools.scratch.template take<std::byte>(scratch_bytes), scratch_bytes};
  const auto result = tools.scratch.template take<double>(2);
  const DeviceMatrix<B, T> gram = tools.scratch.template matrix<T>(z.cols, z.cols);
  double most[2] = {0, 0};
  fill(tools.queue, gram, T(0), T(1));
  gemm(tools.queue, Op::transpose, Op::none, T(-1), z, z, T(1), gram);
  max_abs(tools.queue, gram, result, scratch);
  if (q.cols > 0) {
    gemm(tools.queue, Op::transpose, Op::none, T(1), q, z, T(0), y);
    max_abs(tools.queue, y, result + 1, scratch);
  }
  tools.queue.download(result, most, q.cols > 0 ? 2 : 1);
  return std::isnan(most[0]) ? most[0] : std::isnan(most[1]) ? most[1] : std::max(most[0], most[1]);
}

/// A column := random numbers in the rows of `order`, zeros elsewhere.
template <class B, class T>
void randomize(Tools<B, T>& tools, const RowOrder& order, const DeviceMatrix<B, T>& column, std::uint64_t seed) {
  const double scale = 1 / std::sqrt(static_cast<double>(column.rows));
  std::vector<T> values(static_cast<std::size_t>(column.rows), T(0));
  for (const Run& run : order.runs())
    for (Index i = run.first; i < run.first + run.count; ++i)
      values[static_cast<std::size_t>(i)] =
          static_cast<T>(scale * (static_cast<double>(dense::random_bits(seed) >> 11) * 0x1p-52 - 1));
  tools.queue.upload(values.data(), column.data, column.rows);
}

/// Z := the orthonormal factor of S; returns the diagonal of the triangular one where it is asked for (which waits).
template <class B, class T>
std::vector<T> orthonormalize(Tools<B, T>& tools, const RowOrder& order, const DeviceMatrix<B, T>& s,
                              const DeviceMatrix<B, T>& z, bool want_diagonal) {
  auto& f = tools.factorization(s.rows, s.cols, QForm::thin);
  f.run(s);
  copy(tools.queue, f.q(), z, Part::all);
  for (const Run& hole : order.holes()) fill(tools.queue, z.block(hole.first, 0, hole.count, z.cols), T(0), T(0));
  std::vector<T> diagonal(static_cast<std::size_t>(want_diagonal ? z.cols : 0));
  if (want_diagonal) {
    const auto packed = tools.scratch.template take<T>(z.cols);
    const DeviceMatrix<B, T> r = f.r_source();
    const DeviceMatrix<B, T> from{r.data, 1, z.cols, r.ld + 1, 0, 1}, to{packed, 1, z.cols, 1, 0, 1};
    copy(tools.queue, from, to, Part::all);
    tools.queue.download(packed, diagonal.data(), z.cols);
  }
  return diagonal;
}

}  // namespace detail

/// s: U on entry (physical rows), destroyed. c: positions x p; on entry QᵀU where `known`. Z has room for no more than
/// `room` columns.
template <class B, class T>
Complement<B, T> complement(Tools<B, T>& tools, const RowOrder& order, const DeviceMatrix<B, T>& q,
                            const DeviceMatrix<B, T>& s, const DeviceMatrix<B, T>& c, bool known, Index room) {
  auto& queue = tools.queue;
  const Index p = s.cols, found = std::min(p, room);
  Complement<B, T> out{tools.scratch.template matrix<T>(s.rows, found), tools.scratch.template matrix<T>(found, p)};
  if (found == 0 && (known || q.cols == 0)) return out;
  if (q.cols > 0) {
    if (!known) gemm(queue, Op::transpose, Op::none, T(1), q, s, T(0), c);
    if (found == 0) return out;
    const DeviceMatrix<B, T> more = tools.scratch.template matrix<T>(q.cols, p);
    const DeviceMatrix<B, T> identity = tools.scratch.template matrix<T>(p, p);
    fill(queue, identity, T(0), T(1));
    gemm(queue, Op::none, Op::none, T(-1), q, c, T(1), s);
    gemm(queue, Op::transpose, Op::none, T(1), q, s, T(0), more);
    gemm(queue, Op::none, Op::none, T(-1), q, more, T(1), s);
    gemm(queue, Op::none, Op::none, T(1), more, identity, T(1), c);
  }
  tools.end_stage("projection");
  const DeviceMatrix<B, T> z = out.z, y = tools.scratch.template matrix<T>(q.cols, found);
  constexpr double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  constexpr int most_steps = 8;
  std::uint64_t seed = 1;
  if (found == p)
    detail::orthonormalize(tools, order, s, z, false);
  else  // the whole of what is orthogonal to Q, whichever part of it U needs
    for (Index j = 0; j < found; ++j) detail::randomize(tools, order, z.columns(j, 1), seed++);
  double before = 1e300;
  for (int step = 0; step < most_steps; ++step) {
    const double off = detail::offset(tools, q, z, y);
    if (!(off > 16 * u) ||
        (off < 256 * u && off > before / 2)) {  // NaN ends it too, and where there is no more to gain
      if (step > 0 || found < p) break;
      copy(queue, tools.factorization(s.rows, p, QForm::thin).r_source(), out.l, Part::upper);
      out.triangular = true;
      tools.end_stage("Householder");
      return out;
    }
    before = off;
    const DeviceMatrix<B, T> rest = tools.scratch.template matrix<T>(z.rows, found);
    copy(queue, z, rest, Part::all);
    if (q.cols > 0) gemm(queue, Op::none, Op::none, T(-1), q, y, T(1), rest);
    const std::vector<T> left = detail::orthonormalize(tools, order, rest, z, true);
    bool replaced = false;
    for (Index j = 0; j < found; ++j) {
      if (std::abs(static_cast<double>(left[static_cast<std::size_t>(j)])) > 16 * u) continue;
      detail::randomize(tools, order, rest.columns(j, 1), seed++);
      replaced = true;
    }
    if (!replaced) continue;
    detail::orthonormalize(tools, order, rest, z, false);
    before = 1e300;
  }
  gemm(queue, Op::transpose, Op::none, T(1), z, s, T(0), out.l);
  tools.end_stage("Householder");
  return out;
}

}  // namespace qrane::update
