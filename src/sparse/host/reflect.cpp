// SPDX-License-Identifier: Apache-2.0
#include "sparse/host/reflect.hpp"

#include <cstring>

// Function clones for several instruction sets; the loader selects the widest that the machine supports. Not with
// ThreadSanitizer, whose runtime is not initialized when the loader selects.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_THREAD__)
#define QRANE_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define QRANE_CLONES
#endif
#define QRANE_INLINE inline __attribute__((always_inline))

namespace qrane::sparse {

namespace {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
QRANE_INLINE void load(Vector<T>& x, const T* p) {
  std::memcpy(&x, __builtin_assume_aligned(p, vector_bytes), sizeof(x));
}
template <class T>
QRANE_INLINE void store(T* p, const Vector<T>& x) {
  std::memcpy(__builtin_assume_aligned(p, vector_bytes), &x, sizeof(x));
}
template <class T>
QRANE_INLINE T sum(const Vector<T>& x) {
  T part[lanes<T>];
  std::memcpy(part, &x, sizeof(x));
  for (Index half = lanes<T> / 2; half > 0; half /= 2)
    for (Index i = 0; i < half; ++i) part[i] += part[i + half];
  return part[0];
}

template <class T>
QRANE_INLINE T sum_squares_body(Index n, const T* x) {
  Vector<T> a{}, b{}, u, v;
  Index i = 0;
  for (; i + 2 * lanes<T> <= n; i += 2 * lanes<T>) {
    load(u, x + i);
    load(v, x + i + lanes<T>);
    a += u * u;
    b += v * v;
  }
  if (i < n) {
    load(u, x + i);
    a += u * u;
  }
  a += b;
  return sum<T>(a);
}

/// w := vᵀ [a_0 ... a_(count-1)] for a few columns at once, so that v is read once.
template <int count, class T>
QRANE_INLINE void few_dots(Index n, const T* v, const T* a, Index ld, T* w) {
  Vector<T> s[count]{}, x, y;
  for (Index i = 0; i < n; i += lanes<T>) {
    load(x, v + i);
    for (int c = 0; c < count; ++c) {
      load(y, a + c * ld + i);
      s[c] += x * y;
    }
  }
  for (int c = 0; c < count; ++c) w[c] = sum<T>(s[c]);
}

template <int count, class T>
QRANE_INLINE void few_updates(Index n, const T* v, const T* w, T* a, Index ld) {
  Vector<T> x, y;
  for (Index i = 0; i < n; i += lanes<T>) {
    load(x, v + i);
    for (int c = 0; c < count; ++c) {
      load(y, a + c * ld + i);
      y -= w[c] * x;
      store(a + c * ld + i, y);
    }
  }
}

template <class T>
QRANE_INLINE void reflect_body(Index n, const T* v, T tau, T* a, Index ld, Index cols) {
  T w[4];
  Index j = 0;
  for (; j + 4 <= cols; j += 4) {
    few_dots<4>(n, v, a + j * ld, ld, w);
    for (T& x : w) x *= tau;
    few_updates<4>(n, v, w, a + j * ld, ld);
  }
  for (; j < cols; ++j) {
    few_dots<1>(n, v, a + j * ld, ld, w);
    w[0] *= tau;
    few_updates<1>(n, v, w, a + j * ld, ld);
  }
}

template <class T>
QRANE_INLINE void dots_body(Index n, const T* v, const T* a, Index ld, Index cols, T* out) {
  Index j = 0;
  for (; j + 4 <= cols; j += 4) few_dots<4>(n, v, a + j * ld, ld, out + j);
  for (; j < cols; ++j) few_dots<1>(n, v, a + j * ld, ld, out + j);
}

}  // namespace

QRANE_CLONES float sum_squares(Index n, const float* x) { return sum_squares_body(n, x); }
QRANE_CLONES double sum_squares(Index n, const double* x) { return sum_squares_body(n, x); }
QRANE_CLONES void reflect(Index n, const float* v, float tau, float* a, Index ld, Index cols) {
  reflect_body(n, v, tau, a, ld, cols);
}
QRANE_CLONES void reflect(Index n, const double* v, double tau, double* a, Index ld, Index cols) {
  reflect_body(n, v, tau, a, ld, cols);
}
QRANE_CLONES void dots(Index n, const float* v, const float* a, Index ld, Index cols, float* out) {
  dots_body(n, v, a, ld, cols, out);
}
QRANE_CLONES void dots(Index n, const double* v, const double* a, Index ld, Index cols, double* out) {
  dots_body(n, v, a, ld, cols, out);
}

}  // namespace qrane::sparse
