// SPDX-License-Identifier: Apache-2.0
// QR by one work-group with as many columns as local memory has room for sums: several work-items share a column, so
// that neighbours read neighbouring elements, and a work-group takes columns in turn. The dot products of column `col`
// with all columns to its right and with itself are made in one pass, before v is known: v = (1, scale x), so that v^T
// a_j = a(col, j) + scale x^T a_j.
#pragma once

#include "example.hpp"

namespace more_columns {

constexpr int items = 64, lanes = 16;  // a work-group, and how many of it share a column

// A function, so that later steps can use it on other memory: MEMORY is global here.
const char* const factor_columns = R"cl(
#define LANES 16

// a is m x n with columns ld apart; s_sum has LANES n floats, s_dot n.
void factor_columns(MEMORY float* a, int ld, global float* tau, int m, int n, local float* s_sum, local float* s_dot) {
  const int id = get_local_id(0), items = get_local_size(0);
  const int lane = id % LANES, group = id / LANES, groups = items / LANES;
  for (int col = 0; col < min(m, n); ++col) {
    MEMORY float* x = a + col * (long)ld;
    for (int j = col + group; j < n; j += groups) {
      float sum = 0;
      for (int i = col + 1 + lane; i < m; i += LANES) sum += x[i] * a[i + j * (long)ld];
      s_sum[lane + LANES * j] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = col + id; j < n; j += items) {
      float sum = 0;
      for (int l = 0; l < LANES; ++l) sum += s_sum[l + LANES * j];
      s_dot[j] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // Every work-item computes the reflector for itself: that is faster than to wait for one.
    const float tail = s_dot[col], diagonal = x[col], image = -copysign(sqrt(diagonal * diagonal + tail), diagonal);
    const float t = tail > 0 ? (image - diagonal) / image : 0, scale = tail > 0 ? 1 / (diagonal - image) : 0;
    for (int j = col + 1 + group; j < n; j += groups) {
      MEMORY float* y = a + j * (long)ld;
      const float w = t * (y[col] + scale * s_dot[j]);
      for (int i = col + 1 + lane; i < m; i += LANES) y[i] -= w * scale * x[i];
      s_sum[lane + LANES * j] = w;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int j = col + 1 + id; j < n; j += items) a[col + j * (long)ld] -= s_sum[LANES * j];
    for (int i = col + 1 + id; i < m; i += items) x[i] *= scale;
    if (id == 0) {
      tau[col] = t;
      if (tail > 0) x[col] = image;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}
)cl";

const char* const kernel_text = R"cl(
kernel void factor(global float* a, global float* tau, int m, int n, local float* s_sum, local float* s_dot) {
  factor_columns(a, m, tau, m, n, s_sum, s_dot);
}
)cl";

inline cl::Kernel build(const Device& device) {
  return cl::Kernel(device.build(std::string(factor_columns) + kernel_text, "-DMEMORY=global"), "factor");
}

struct Factors {
  Matrix r;
  double seconds;
};

inline Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols;
  require((lanes + 1) * n * sizeof(float) <= device.local_bytes(), "this step takes fewer columns on this device");
  const cl::Kernel factor = build(device);
  const cl::Buffer a_buffer = device.upload(a), tau = device.allocate(n);
  Factors f;
  f.seconds = device.seconds(
      [&] { device.upload(a, a_buffer); },
      [&] { device.run(factor, 1, items, a_buffer, tau, m, n, local_floats(lanes * n), local_floats(n)); });
  f.r = upper_triangle(device.download(a_buffer, m, n));
  return f;
}

}  // namespace more_columns
