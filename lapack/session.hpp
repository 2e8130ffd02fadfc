// SPDX-License-Identifier: Apache-2.0
// The process's one context, and which calls are worth giving to it.
#pragma once

#include <qrane/context.hpp>

namespace qrane::lapack {

/// What a call has qrane do. Each pays from another size and shape on.
enum class Work {
  factor,  ///< reflectors and R of an m x n matrix
  apply,   ///< given reflectors, m x n, times a matrix
  form,    ///< the leading columns of Q, m x n, from given reflectors
  reduce,  ///< R alone of m x n
  pivot,   ///< pivots, then reflectors and R
};

/// qrane's part of a process. It does one call at a time: whoever comes meanwhile, from another thread or from within
/// the call itself, goes to the LAPACK underneath. So qrane's own use of LAPACK never comes back to qrane.
class Session {
 public:
  /// The right to use qrane, if nobody has it.
  class Turn {
   public:
    Turn();
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return mine_; }

   private:
    bool mine_;
  };

  /// Whether qrane takes work on an m x n matrix, with `others` columns that Q is applied to: m * n * max(min(m, n),
  /// others) is at least QRANE_LAPACK_MIN, or where that is not set, qrane was measured to be faster. False, too, where
  /// there is no device. By the holder of the turn.
  static bool worthwhile(Work work, Index m, Index n, Index others = 0);
  /// After worthwhile.
  static const Context& context();
  /// "cpu", "opencl" or "cuda".
  static const char* backend_name();
};

}  // namespace qrane::lapack
