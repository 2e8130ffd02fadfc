// SPDX-License-Identifier: Apache-2.0
// What a device does with factors that it holds, in the user's rows and columns: device_solve.hpp does it by kernels.
#pragma once

#include <qrane/sparse_qr.hpp>

#include "sparse/device/solve_cost.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::sparse {

template <class T>
class DeviceUses {
 public:
  virtual ~DeviceUses() = default;

  /// Whether the device has what this takes.
  virtual bool can(FactorUse use) const = 0;
  /// Whether this is expected to be faster than on the host: by the pattern alone, so that the same solve always takes
  /// the same way. resident: right-hand sides in device memory.
  virtual bool pays(FactorUse use, Index cols, bool resident) const = 0;

  /// Of a matrix in device memory. Throws Error{not_finite} naming the first NaN or Inf.
  virtual void check_finite(const char* name, MatrixView<const T> a) = 0;

  // As qrane::sparse::Factor has them; the callers have checked shapes. Throw Error{out_of_memory} before anything of
  // the user's is written.
  virtual void apply(backend::Op op, MatrixView<T> c) = 0;
  virtual SparseSolution<T> solve(MatrixView<const T> b) = 0;
  virtual SparseSolution<T> solve_transposed(MatrixView<const T> b) = 0;
  /// From the right-hand sides that rode along; without norms.
  virtual SparseSolution<T> solve_riding(Memory where) = 0;
};

}  // namespace qrane::sparse
