// SPDX-License-Identifier: Apache-2.0
// The Fortran symbols. QRANE_LAPACK(geqrf, (parameters), (arguments)) exports, for the function template
//
//     template <class T, class I>
//     bool geqrf(const Call& call, parameters);    // false: not taken, and nothing has been written
//
// sgeqrf_ and dgeqrf_ (32-bit integers), sgeqrf_64_ and dgeqrf_64_ (64-bit integers), and the same four with the prefix
// scipy_, under which the wheels of NumPy and SciPy carry their LAPACK. Parameters are in terms of T and I.
#pragma once

#include <cstdint>

#include <lapack/call.hpp>

#define QRANE_LAPACK_ENTRY(symbol, label, function, scalar, integer, parameters, arguments)   \
  namespace entry_##symbol {                                                                  \
    using T = scalar;                                                                         \
    using I = integer;                                                                        \
    constinit Routine routine{#symbol, #label};                                               \
    extern "C" QRANE_API void symbol parameters { enter(routine, function<T, I>) arguments; } \
  }

#define QRANE_LAPACK_INTEGERS(stem, label, function, scalar, parameters, arguments)         \
  QRANE_LAPACK_ENTRY(stem##_, label, function, scalar, std::int32_t, parameters, arguments) \
  QRANE_LAPACK_ENTRY(stem##_64_, label, function, scalar, std::int64_t, parameters, arguments)

/// A function of another name than the symbol's.
#define QRANE_LAPACK_AS(name, function, parameters, arguments)                          \
  QRANE_LAPACK_INTEGERS(s##name, s##name, function, float, parameters, arguments)       \
  QRANE_LAPACK_INTEGERS(d##name, d##name, function, double, parameters, arguments)      \
  QRANE_LAPACK_INTEGERS(scipy_s##name, s##name, function, float, parameters, arguments) \
  QRANE_LAPACK_INTEGERS(scipy_d##name, d##name, function, double, parameters, arguments)

#define QRANE_LAPACK(name, parameters, arguments) QRANE_LAPACK_AS(name, name, parameters, arguments)
