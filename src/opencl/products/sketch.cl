// SPDX-License-Identifier: Apache-2.0
// S := Omega A, a CountSketch whose rows of A are read 32 at a time (vocabulary/sketch.hpp has the map and its source).
// One work-item sums one element of S, over the blocks of A in order. Bytes: A once.

uint mix(uint x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

KERNEL sketch(CONDITION, MATRIX(a), MATRIX(s), const long rows, const long sketch_rows, const long elements) {
  const long e = get_global_id(0);
  if (!WANTED || e >= elements) return;
  const uint groups = (uint)(sketch_rows / 32), target = (uint)(e % sketch_rows);
  __global const REAL* a = AT(const REAL, a) + e / sketch_rows * a_ld;
  REAL sum = 0;
  for (long first = 0; first < rows; first += sketch_rows) {
    const uint shuffle = mix((uint)(first / sketch_rows) + 0x9e3779b9u);
    const uint group = (target / 32 + groups - (shuffle >> 5) % groups) % groups;
    const long i = first + 32 * group + ((target % 32) ^ (shuffle & 31u));
    if (i >= rows) continue;
    const REAL x = a[i];
    sum += mix((uint)i + 0x7f4a7c15u) & 1u ? -x : x;
  }
  AT(REAL, s)[target + e / sketch_rows * s_ld] = sum;
}
