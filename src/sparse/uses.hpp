// SPDX-License-Identifier: Apache-2.0
// What factors are used for, in the user's rows and columns: solve.hpp has the algorithms, once for the host and for
// devices.
#pragma once

#include <qrane/sparse_qr.hpp>

#include "vocabulary/vocabulary.hpp"

namespace qrane::sparse {

enum class FactorUse { apply, solve, solve_riding, solve_transposed };

template <class T>
class FactorUses {
 public:
  virtual ~FactorUses() = default;

  /// Whether this side has what the use takes.
  virtual bool can(FactorUse) const { return true; }
  /// Whether this is expected to be faster than on the host. It depends on the pattern alone, so that the same solve
  /// always runs on the same side. resident: right-hand sides in device memory.
  virtual bool pays(FactorUse, Index /*cols*/, bool /*resident*/) const { return true; }

  /// Throws Error{not_finite} naming the first NaN or Inf.
  virtual void check_finite(const char* name, MatrixView<const T> a) = 0;

  // As qrane::sparse::Factor has them; the callers have checked shapes. Throw Error{out_of_memory} before anything of
  // the user's is written.
  virtual void apply(backend::Op op, MatrixView<T> c) = 0;
  virtual SparseSolution<T> solve(MatrixView<const T> b) = 0;
  virtual SparseSolution<T> solve_transposed(MatrixView<const T> b) = 0;
  /// From the right-hand sides that the factorization carried along; without norms.
  virtual SparseSolution<T> solve_riding(Memory where) = 0;
};

}  // namespace qrane::sparse
