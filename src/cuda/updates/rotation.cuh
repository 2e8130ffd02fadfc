// SPDX-License-Identifier: Apache-2.0
// Plane rotations, and which numbers can be squared: what the kernels that update small factorizations share.
#pragma once

#include "cuda/collectives/tile.cuh"

namespace qrane::backend::cuda {

template <class T>
struct alignas(2 * sizeof(T)) Rotation {
  T c, s;
};

/// Numbers whose squares are as good as they are.
template <class T>
constexpr int safe_exponent = sizeof(T) == 4 ? 55 : 480;

template <class T>
__device__ bool is_extreme(T x) {
  const int e = (magnitude(x) >> Bits<T>::key_shift) - Bits<T>::bias;
  return x != T(0) && (e > safe_exponent<T> || e < -safe_exponent<T>);  // NaN and Inf, too
}

__device__ inline double rounded_inverse_root(double x) { return rsqrt(x); }
__device__ inline float rounded_inverse_root(float x) { return __frsqrt_rn(x); }

/// c, s with c r + s x = h, c x - s r = 0, h of r's sign.
template <class T>
__device__ Rotation<T> make_rotation(T r, T x, T& h) {
  if (x == T(0)) {
    h = r;
    return {T(1), T(0)};
  }
  T scale = 1, sum = r * r + x * x;
  constexpr T most = sizeof(T) == 4 ? T(0x1p120) : static_cast<T>(0x1p1000), least = 1 / most;
  if (!(sum > least && sum < most)) {
    const int e = scale_exponent<T>(max(magnitude(r), magnitude(x)));
    scale = Bits<T>::power_of_two(e);
    r *= Bits<T>::power_of_two(-e);
    x *= Bits<T>::power_of_two(-e);
    sum = r * r + x * x;
  }
  const T inverse = rounded_inverse_root(sum);
  h = copysign(sum * inverse, r) * scale;
  return {fabs(r) * inverse, (signbit(r) ? -x : x) * inverse};
}

}  // namespace qrane::backend::cuda
