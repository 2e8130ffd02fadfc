// SPDX-License-Identifier: Apache-2.0
// One call of a Fortran symbol: to qrane when it takes the call, else to the LAPACK underneath.
//
// A call is taken only when its arguments are right, it is no workspace query, and it is worthwhile. All others are
// forwarded as they came, so that xerbla, info and workspace sizes are those of the LAPACK underneath.
#pragma once

#include <cctype>
#include <chrono>
#include <cstddef>
#include <exception>

#include <qrane/export.h>
#include <qrane/qr.hpp>

#include <lapack/routine.hpp>
#include <lapack/session.hpp>

namespace qrane::lapack {

/// Fortran passes the lengths of character arguments after all others. Routines have two at most, and those that have
/// fewer do not look.
template <class... Arguments>
void call_fortran(void* function, Arguments... arguments) {
  using Function = void (*)(Arguments..., std::size_t, std::size_t);
  reinterpret_cast<Function>(function)(arguments..., 1, 1);
}

/// What a routine sees of qrane and of the LAPACK underneath.
class Call {
 public:
  explicit Call(Routine& routine) : routine_(routine) {}

  bool worthwhile(Work work, Index m, Index n, Index others = 0) const {
    return Session::worthwhile(work, m, n, others);
  }
  const Context& context() const { return Session::context(); }
  /// The same routine underneath. What it calls in turn stays there.
  template <class... Arguments>
  void next(Arguments... arguments) const {
    call_fortran(routine_.next(), arguments...);
  }

 private:
  Routine& routine_;
};

template <class... P>
auto enter(Routine& routine, bool (*take)(const Call&, P...)) {
  return [&routine, take](P... arguments) noexcept {
    const bool counts = reporting();
    const auto begin = counts ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    bool taken = false;
    if (const Session::Turn turn; turn) {
      try {
        taken = take(Call(routine), arguments...);
      } catch (const std::exception&) {
        // memory or the device failed before anything was written: LAPACK does it
      }
    }
    if (!taken) call_fortran(routine.next(), arguments...);
    if (counts) routine.count(taken, std::chrono::steady_clock::now() - begin);
  };
}

/// A, m x n, as Fortran has it.
template <class T>
MatrixView<T> matrix(T* a, Index m, Index n, Index lda) {
  return {a, m, n, lda};
}
/// Aᵀ, n x m, where A is m x n as Fortran has it.
template <class T>
MatrixView<T> transposed(T* a, Index m, Index n, Index lda) {
  return {a, n, m, lda, Memory::host, Layout::row_major};
}

/// Whether a character argument is this letter.
inline bool is(const char* argument, char letter) {
  return std::toupper(static_cast<unsigned char>(*argument)) == letter;
}

}  // namespace qrane::lapack
