// SPDX-License-Identifier: Apache-2.0
// One warp-wide product of small tiles on the tensor cores, in the accuracy of the scalar:
//     D (16 x 8) += A (16 x 8) B (8 x 8)
//
// With g = lane / 4 and q = lane % 4, a lane holds
//     D   d[0], d[1] = D(g, 2q), D(g, 2q+1);  d[2], d[3] = D(g+8, 2q), D(g+8, 2q+1)
//     A   the same four elements of A, in D's order, so that a result is the next product's A without moving
//     B   b[0], b[1] = B(2q, g), B(2q+1, g)
// (The instructions' own order of the inner index differs; a permutation of it common to A and B changes nothing.)
//
// double: products in double (m16n8k4 from compute capability 9.0, where m8n8k4 runs at half the rate). float: three
// TF32 products of a high and a low part each ("3xTF32"): x = hi + lo with hi the leading 11 bits, and
// A B = hi hi + hi lo + lo hi to about 2^-22 relative to |A||B|.
#pragma once

#include "cuda/collectives/tile.cuh"

namespace qrane::backend::cuda {

template <class T>
struct TileMma;

template <>
struct TileMma<double> {
  struct A {
    double x[4];
  };

  static __device__ A prepare(const double (&d)[4]) { return {{d[0], d[2], d[1], d[3]}}; }

  static __device__ void multiply(double (&d)[4], const A& a, const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    for (int k = 0; k < 2; ++k) {
      asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
          : "d"(a.x[2 * k]), "d"(a.x[2 * k + 1]), "d"(b[k]));
    }
#else
    for (int k = 0; k < 2; ++k) {
      for (int h = 0; h < 2; ++h) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(d[2 * h]), "+d"(d[2 * h + 1])
            : "d"(a.x[2 * k + h]), "d"(b[k]));
      }
    }
#endif
  }
};

template <>
struct TileMma<float> {
  struct A {
    std::uint32_t hi[4], lo[4];
  };

  /// hi is rounded to nearest by adding half of its last place; the unit ignores what lies below the leading bits of
  /// lo, whose sign is that of a rounding error, so that what it drops has no direction. Only for |x| below the largest
  /// binade (operands are scaled), where hi cannot round to Inf. A NaN of all ones wraps in hi, but is one in lo.
  static __device__ void split(float x, std::uint32_t& hi, std::uint32_t& lo) {
    hi = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    lo = __float_as_uint(x - __uint_as_float(hi));
  }

  static __device__ A prepare(const float (&d)[4]) {
    A a;
    split(d[0], a.hi[0], a.lo[0]);
    split(d[2], a.hi[1], a.lo[1]);
    split(d[1], a.hi[2], a.lo[2]);
    split(d[3], a.hi[3], a.lo[3]);
    return a;
  }

  static __device__ void m16n8k8(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }

  static __device__ void multiply(float (&d)[4], const A& a, const float (&b)[2]) {
    std::uint32_t hi[2], lo[2];
    split(b[0], hi[0], lo[0]);
    split(b[1], hi[1], lo[1]);
    m16n8k8(d, a.lo, hi[0], hi[1]);
    m16n8k8(d, a.hi, lo[0], lo[1]);
    m16n8k8(d, a.hi, hi[0], hi[1]);
  }
};

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

/// Two neighbours in shared memory, aligned as a pair.
template <class T>
__device__ void load_pair(T (&to)[2], const T* s_from) {
  const auto pair = *reinterpret_cast<const Pair<T>*>(s_from);
  to[0] = pair.x;
  to[1] = pair.y;
}

/// A tile of V (rows x NB) in shared memory, column-major, every column shifted so that both reads are free of bank
/// conflicts: pairs of rows of eight columns (for V^T C), and eight rows of pairs of columns (for V W).
template <class T>
struct VTile {
  static constexpr int slack = 128 / sizeof(T);  // at least the largest shift, and a multiple of all banks
  T* data;
  int ld;  // rows + slack, rows a multiple of 32

  __device__ T* column(int c) const {
    const int shift = sizeof(T) == 4 ? 8 * ((c ^ (c >> 2)) & 1) + 16 * ((c >> 1) & 1) : 4 * (((c >> 1) + 2 * c) & 3);
    return data + c * ld + shift;
  }
};

}  // namespace qrane::backend::cuda
