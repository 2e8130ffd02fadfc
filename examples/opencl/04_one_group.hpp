// SPDX-License-Identifier: Apache-2.0
// QR of a square matrix by one work-group, one work-item for each row. Q is accumulated as a product of Householder
// matrices P, through three matrices: P, the product Q P, and Q. Each product takes n^3 operations and there are n of
// them: O(n^4) in all.
#pragma once

#include "example.hpp"

namespace one_group {

const char* const source = R"cl(
kernel void qr(global float* a, global float* q, global float* p, global float* product, local float* u,
               local float* s_shared) {
  const int id = get_local_id(0), n = get_local_size(0);
  for (int j = 0; j < n; ++j) q[id + j * n] = id == j;

  for (int col = 0; col + 1 < n; ++col) {
    // u = x - x', where x is column col from its diagonal down and x' has x's length in its first element
    u[id] = id >= col ? a[id + col * n] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) {
      float tail = 0;
      for (int i = col + 1; i < n; ++i) tail += u[i] * u[i];
      const float image = -copysign(sqrt(u[col] * u[col] + tail), u[col]);  // the sign that adds loses no digits
      s_shared[0] = 0;  // a column that is zero below its diagonal needs no reflection: P = I
      if (tail > 0) {
        a[col + col * n] = image;
        u[col] -= image;
        s_shared[0] = 2 / (tail + u[col] * u[col]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float factor = s_shared[0];  // 2 / u^T u
    if (id > col) a[id + col * n] = 0;

    // a_j := a_j - factor (u^T a_j) u for the columns to the right
    for (int j = col + 1; j < n; ++j) {
      if (id == 0) {
        float dot = 0;
        for (int i = col; i < n; ++i) dot += u[i] * a[i + j * n];
        s_shared[1] = dot;  // by one work-item, for all; a barrier before they read it, and before it is written again
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (id >= col) a[id + j * n] -= factor * s_shared[1] * u[id];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }

    for (int j = 0; j < n; ++j) p[id + j * n] = (id == j) - factor * u[id] * u[j];
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += q[id + k * n] * p[k + j * n];
      product[id + j * n] = sum;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int j = 0; j < n; ++j) q[id + j * n] = product[id + j * n];
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}
)cl";

struct Factors {
  Matrix q, r;
  double seconds;
};

inline Factors factor(const Device& device, const Matrix& a) {
  const int n = a.cols;
  require(a.rows == n && n <= int(device.max_items()), "this step takes square matrices no larger than a work-group");
  const cl::Kernel qr(device.build(source), "qr");
  const cl::Buffer a_buffer = device.upload(a), q = device.allocate(n * n), p = device.allocate(n * n),
                   product = device.allocate(n * n);
  Factors f;
  f.seconds = device.seconds([&] { device.upload(a, a_buffer); },
                             [&] { device.run(qr, 1, n, a_buffer, q, p, product, local_floats(n), local_floats(2)); });
  f.q = device.download(q, n, n);
  f.r = device.download(a_buffer, n, n);
  return f;
}

}  // namespace one_group
