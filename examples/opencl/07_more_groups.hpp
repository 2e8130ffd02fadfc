// SPDX-License-Identifier: Apache-2.0
// QR of any matrix by as many work-groups as there are columns. Groups cannot wait for each other inside of a kernel,
// so that each column takes two launches: one group makes the reflector, then each column to the right has a group of
// its own. The whole rest of the matrix is read and written for every column.
#pragma once

#include "example.hpp"

namespace more_groups {

constexpr int items = 64;  // a work-group

const char* const source = R"cl(
// The sum of all work-items' values, in every work-item. All must call it.
float sum_of_group(float value, local float* s_sum) {
  const int id = get_local_id(0);
  s_sum[id] = value;
  for (int half_items = get_local_size(0) / 2; half_items > 0; half_items /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_items) s_sum[id] += s_sum[id + half_items];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float sum = s_sum[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// Column col of a becomes v below its diagonal; one group.
kernel void make_reflector(global float* a, global float* tau, int m, int col, local float* s_sum) {
  const int id = get_local_id(0), items = get_local_size(0);
  global float* x = a + col * (long)m;
  float sum = 0;
  for (int i = col + 1 + id; i < m; i += items) sum += x[i] * x[i];
  const float tail = sum_of_group(sum, s_sum);
  const float diagonal = x[col], image = -copysign(sqrt(diagonal * diagonal + tail), diagonal);
  barrier(CLK_GLOBAL_MEM_FENCE);  // all have read the diagonal
  const float scale = tail > 0 ? 1 / (diagonal - image) : 0;
  for (int i = col + 1 + id; i < m; i += items) x[i] *= scale;
  if (id == 0) {
    tau[col] = tail > 0 ? (image - diagonal) / image : 0;
    if (tail > 0) x[col] = image;
  }
}

// One group for each column to the right of col.
kernel void reflect(global float* a, global const float* tau, int m, int col, local float* s_sum) {
  const int id = get_local_id(0), items = get_local_size(0);
  global const float* v = a + col * (long)m;
  global float* y = a + (col + 1 + get_group_id(0)) * (long)m;
  float sum = 0;
  for (int i = col + 1 + id; i < m; i += items) sum += v[i] * y[i];
  const float w = tau[col] * (y[col] + sum_of_group(sum, s_sum));
  for (int i = col + 1 + id; i < m; i += items) y[i] -= w * v[i];
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (id == 0) y[col] -= w;
}
)cl";

struct Factors {
  Matrix r;
  double seconds;
};

inline Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols;
  const cl::Program program = device.build(source);
  const cl::Kernel make_reflector(program, "make_reflector"), reflect(program, "reflect");
  const cl::Buffer a_buffer = device.upload(a), tau = device.allocate(n);
  const auto sums = local_floats(items);
  Factors f;
  f.seconds = device.seconds([&] { device.upload(a, a_buffer); },
                             [&] {
                               for (int col = 0; col < std::min(m, n); ++col) {
                                 device.run(make_reflector, 1, items, a_buffer, tau, m, col, sums);
                                 if (col + 1 < n) device.run(reflect, n - col - 1, items, a_buffer, tau, m, col, sums);
                               }
                             });
  f.r = upper_triangle(device.download(a_buffer, m, n));
  return f;
}

}  // namespace more_groups
