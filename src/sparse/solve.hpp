// SPDX-License-Identifier: Apache-2.0
// Solves with S = Q R, S = A(row_perm, col_perm), and products with Q: the algorithms, written once. A Side carries
// out the steps: HostSolve (host/solve.hpp) on the CPU, DeviceSolve (device/solve.hpp) by a device's kernels.
//
// Right-hand sides are taken in groups of columns. A Side's Group has `cols` columns of
//     rows    as S has rows                x, total   as S has columns
//     y       as R has rows                z          as S has columns
// and a Side has these members, g a Group, u a User (some columns of a user's matrix, where the Side can reach them):
//
//   factors()                    Factors<T>
//   in_groups(cols, needs, work) work(first column, g) for all columns
//   user(view), store(u, view)   from and to a user's matrix
//   output(rows, cols, memory)   a new matrix: columns(first, cols) is a User, finish() a Matrix in `memory`
//   take_rows(u, g)              rows[k] := u[row_perm[k]]               give_rows(g, u)     u[row_perm[k]] := rows[k]
//   take_q_rows(u, g)            rows[q_rows[k]] := u[k]                 give_q_rows(g, u)   u[k] := rows[q_rows[k]]
//   take_cols(u, g)              z[k] := 2^e[k] u[col_perm[k]]           give_cols(lines, g, u)
//                                                                        u[col_perm[k]] := 2^e[k] lines[k]
//   take_riding(first, g)        y := rows of R of the right-hand sides that the factorization carried along
//   reflect(op, g)               rows := Qᵀ rows or Q rows
//   r_of_rows(g), rows_of_r(g)   y := rows of R of `rows`; rows := zero but for y in the rows of R
//   solve_r(g), solve_rt(g)      R x = y, y is destroyed; Rᵀ y = z, z is destroyed
//   subtract_product(x, g)       rows := rows - S x
//   normal(g)                    z := Sᵀ rows
//   subtract_normal(g)           z := z - Sᵀ rows
//   clear_total(g), add_total(g) total := 0; total := total + x
//   row_norms(g, solution)       appends the norms of `rows`
//   col_norms(g, solution)       appends the norms of z in the user's scaling
#pragma once

#include <algorithm>

#include "sparse/factors.hpp"
#include "sparse/uses.hpp"

namespace qrane::sparse {

/// What a use needs of a group.
struct GroupNeeds {
  bool r = false;   ///< solves with R
  bool rt = false;  ///< solves with Rᵀ
  bool q = false;   ///< products with Q
};

template <class U>
MatrixView<U> columns_of(MatrixView<U> v, Index first, Index cols) {
  const Index skip = v.layout == Layout::row_major ? first : first * v.ld;
  if (v.data) v.data += skip;
  v.offset += skip;
  v.cols = cols;
  return v;
}

template <class Side, class T>
class Solves : public FactorUses<T> {
 public:
  /// C := Qᵀ C or Q C.
  void apply(Op op, MatrixView<T> c) final {
    side().in_groups(c.cols, {.q = true}, [&](Index first, auto& g) {
      const MatrixView<T> part = columns_of(c, first, g.cols);
      auto user = side().user(part);
      if (op == Op::transpose) {
        side().take_rows(user, g);
        side().reflect(op, g);
        side().give_q_rows(g, user);
      } else {
        side().take_q_rows(user, g);
        side().reflect(op, g);
        side().give_rows(g, user);
      }
      side().store(user, part);
    });
  }

  /// min ‖A x - b‖: R x = Qᵀ b, or without Q by corrected semi-normal equations, Rᵀ R x = Sᵀ b, then once more for the
  /// residual (Björck, "Stability analysis of the method of seminormal equations for linear least squares problems",
  /// 1987).
  SparseSolution<T> solve(MatrixView<const T> b) final {
    const bool q = factors().options().keep_q;
    SparseSolution<T> solution = start();
    auto x = side().output(symbolic().cols, b.cols, b.memory);
    side().in_groups(b.cols, {.r = true, .rt = !q, .q = q}, [&](Index first, auto& g) {
      const auto user = side().user(columns_of(b, first, g.cols));
      auto&& target = x.columns(first, g.cols);
      side().take_rows(user, g);
      if (q) {
        side().reflect(Op::transpose, g);
        side().r_of_rows(g);
        side().solve_r(g);
        side().take_rows(user, g);
        side().subtract_product(g.x, g);
        side().give_cols(g.x, g, target);
      } else {
        side().clear_total(g);
        for (int pass = 0; pass < 2; ++pass) {
          side().normal(g);
          side().solve_rt(g);
          side().solve_r(g);
          side().add_total(g);
          side().take_rows(user, g);
          side().subtract_product(g.total, g);
        }
        side().give_cols(g.total, g, target);
      }
      side().row_norms(g, solution);
    });
    solution.x = x.finish();
    return solution;
  }

  SparseSolution<T> solve_riding(Memory where) final {
    SparseSolution<T> solution = start();
    const Index cols = side().riding_cols();
    auto x = side().output(symbolic().cols, cols, where);
    side().in_groups(cols, {.r = true}, [&](Index first, auto& g) {
      side().take_riding(first, g);
      side().solve_r(g);
      auto&& target = x.columns(first, g.cols);
      side().give_cols(g.x, g, target);
    });
    solution.x = x.finish();
    return solution;
  }

  /// The solution of Aᵀ x = b of least norm: x = Q [y; 0], Rᵀ y = b.
  SparseSolution<T> solve_transposed(MatrixView<const T> b) final {
    SparseSolution<T> solution = start();
    auto x = side().output(symbolic().rows, b.cols, b.memory);
    side().in_groups(b.cols, {.r = true, .rt = true, .q = true}, [&](Index first, auto& g) {
      const auto user = side().user(columns_of(b, first, g.cols));
      auto&& target = x.columns(first, g.cols);
      side().take_cols(user, g);
      side().solve_rt(g);
      side().rows_of_r(g);
      side().reflect(Op::none, g);
      side().take_cols(user, g);
      side().subtract_normal(g);
      side().give_rows(g, target);
      side().col_norms(g, solution);
    });
    solution.x = x.finish();
    return solution;
  }

 private:
  Side& side() { return static_cast<Side&>(*this); }
  const Factors<T>& factors() { return side().factors(); }
  const Symbolic& symbolic() { return factors().symbolic(); }

  SparseSolution<T> start() {
    SparseSolution<T> solution;
    solution.rank = factors().rank();
    solution.full = std::min(symbolic().rows, symbolic().cols);
    return solution;
  }
};

}  // namespace qrane::sparse
