// SPDX-License-Identifier: Apache-2.0
// QR by one work-group without Householder matrices: H = I - tau v v^T is kept as v, scaled to v(0) = 1, in the place
// of the zeros that it makes, and tau beside it, as LAPACK does. H takes 4 operations for each element it is applied
// to. One work-item for each column: its dot product needs no barrier.
#pragma once

#include "example.hpp"

namespace reflectors {

const char* const source = R"cl(
// a is m x n, n work-items; s_v has m floats, s_shared two.
kernel void factor(global float* a, global float* tau, int m, local float* s_v, local float* s_shared) {
  const int id = get_local_id(0), n = get_local_size(0);
  for (int col = 0; col < min(m, n); ++col) {
    for (int i = col + id; i < m; i += n) s_v[i] = a[i + col * m];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) {
      float tail = 0;
      for (int i = col + 1; i < m; ++i) tail += s_v[i] * s_v[i];
      const float x = s_v[col], image = -copysign(sqrt(x * x + tail), x);
      s_shared[0] = tail > 0 ? (image - x) / image : 0;  // tau
      s_shared[1] = tail > 0 ? 1 / (x - image) : 0;      // what scales v
      if (tail > 0) a[col + col * m] = image;
      tau[col] = s_shared[0];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = col + id; i < m; i += n) s_v[i] = i == col ? 1 : s_shared[1] * s_v[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id > col) {
      float dot = 0;
      for (int i = col; i < m; ++i) dot += s_v[i] * a[i + id * m];
      for (int i = col; i < m; ++i) a[i + id * m] -= s_shared[0] * dot * s_v[i];
    }
    for (int i = col + 1 + id; i < m; i += n) a[i + col * m] = s_v[i];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}

// The first columns of Q = H_0 H_1 ... times the identity, from the last reflector to the first; one work-item for each
// column. Reflector k changes nothing in columns left of k.
kernel void form_q(global const float* a, global const float* tau, global float* q, int m) {
  const int id = get_global_id(0), n = get_global_size(0);
  for (int i = 0; i < m; ++i) q[i + id * m] = i == id;
  for (int k = min(m, n) - 1; k >= 0; --k) {
    if (k > id) continue;
    float dot = q[k + id * m];
    for (int i = k + 1; i < m; ++i) dot += a[i + k * m] * q[i + id * m];
    q[k + id * m] -= tau[k] * dot;
    for (int i = k + 1; i < m; ++i) q[i + id * m] -= tau[k] * dot * a[i + k * m];
  }
}
)cl";

struct Factors {
  Matrix q, r;
  double r_seconds, q_seconds;
};

inline Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols;
  require(m >= n && n <= int(device.max_items()) && std::size_t(m + 2) * sizeof(float) <= device.local_bytes(),
          "this step takes no more columns than a work-group has work-items, and a column in local memory");
  const cl::Program program = device.build(source);
  const cl::Kernel factor(program, "factor"), form_q(program, "form_q");
  const cl::Buffer a_buffer = device.upload(a), q = device.allocate(a.values.size()), tau = device.allocate(n);
  Factors f;
  f.r_seconds = device.seconds([&] { device.upload(a, a_buffer); },
                               [&] { device.run(factor, 1, n, a_buffer, tau, m, local_floats(m), local_floats(2)); });
  f.q_seconds = device.seconds([] {}, [&] { device.run(form_q, 1, n, a_buffer, tau, q, m); });
  f.r = upper_triangle(device.download(a_buffer, m, n));
  f.q = device.download(q, m, n);
  return f;
}

}  // namespace reflectors
