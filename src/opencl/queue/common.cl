// SPDX-License-Identifier: Apache-2.0
// Placed before every other file. The host defines
//   REAL        float or double            REAL_IS_DOUBLE  0 or 1
//   HAS_DOUBLE  the device has cl_khr_fp64 WG              work-items of a group (one-dimensional)
// All memory comes as a buffer and a byte offset; an offset of -1 says "not given". Indices into matrices
// are 64-bit. Every kernel starts by reading the condition of Queue::when. A skipped kernel with barriers does
// not return early: its sizes become zero and its loops empty, so that control flow around barriers is the
// plainest there is (PoCL 3.1 miscompiles some kernels that return before a barrier in a loop).

#if HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// One rounding where that is fast, else two and the compiler's choice, which is fixed for a device.
#if REAL_IS_DOUBLE || defined(FP_FAST_FMAF)
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
#define BUFFER(name) __global char *name##_buffer, const long name##_at
#define MATRIX(name) __global char *name##_buffer, const long name##_at, const long name##_ld, const long name##_stride
#define AT(type, name) ((__global type*)(name##_buffer + name##_at))
#define CONDITION BUFFER(condition)
#define WANTED (condition_at < 0 || *AT(const int, condition) != 0)

// A double as it lies in memory, and the widest number this device computes with. Without cl_khr_fp64 the
// buffers that the host reads as doubles still hold doubles, converted bit by bit.
#if HAS_DOUBLE
typedef double stored_wide;
typedef double wide;
wide to_wide(stored_wide x) { return x; }
stored_wide from_wide(wide x) { return x; }
#else
typedef ulong stored_wide;
typedef float wide;
wide to_wide(stored_wide x) {
  const int exponent = (int)((x >> 52) & 0x7ff);
  const ulong fraction = x & 0xfffffffffffffUL;
  float magnitude;
  if (exponent == 0x7ff)
    magnitude = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = 0.0f;
  else
    magnitude = ldexp((float)(fraction | 0x10000000000000UL), exponent - 1075);
  return (x >> 63) ? -magnitude : magnitude;
}
stored_wide from_wide(wide x) {
  const ulong sign = (ulong)(as_uint(x) >> 31) << 63;
  if (isnan(x)) return 0x7ff8000000000000UL;
  if (isinf(x)) return sign | 0x7ff0000000000000UL;
  if (x == 0.0f) return sign;
  int exponent;
  const float fraction = frexp(fabs(x), &exponent);  // in [1/2, 1): 24 bits
  const ulong bits = (ulong)ldexp(fraction, 24) << 29;
  return sign | ((ulong)(exponent + 1022) << 52) | (bits & 0xfffffffffffffUL);
}
#endif

// Work-item `lane` visits e = lane, lane + WG, ... below total. Every work-item makes the same number of turns:
// PoCL 3.1 miscompiles loops that divide by a run-time number when their trip counts differ between work-items
// (elements past the end were written).
#define FOR_EACH(e, total)                                    \
  for (long e##_base = 0; e##_base < (total); e##_base += WG) \
    for (long e = e##_base + get_local_id(0), e##_once = 1; e##_once && e < (total); e##_once = 0)

// The tile of a matrix batch that element-wise kernels give one group in one turn: lanes_r * STRIP_ROWS rows
// by WG / lanes_r columns.
#define STRIP_ROWS 8
typedef struct {
  long batch, row, col;
} Strip;
long strip_count(long rows, long cols, long count, int lanes_r) {
  const long r = (rows + lanes_r * STRIP_ROWS - 1) / (lanes_r * STRIP_ROWS);
  const long lanes_c = WG / lanes_r;
  return r * ((cols + lanes_c - 1) / lanes_c) * count;
}
// First element of this work-item in strip s; its rows are row, row + lanes_r, ... (STRIP_ROWS of them).
Strip strip_at(long s, long rows, long cols, int lanes_r) {
  const long strips_r = (rows + lanes_r * STRIP_ROWS - 1) / (lanes_r * STRIP_ROWS);
  const long lanes_c = WG / lanes_r;
  const long strips_c = (cols + lanes_c - 1) / lanes_c;
  const int lane = (int)get_local_id(0);
  Strip strip;
  strip.row = s % strips_r * (lanes_r * STRIP_ROWS) + lane % lanes_r;
  strip.col = s / strips_r % strips_c * lanes_c + lane / lanes_r;
  strip.batch = s / strips_r / strips_c;
  return strip;
}
