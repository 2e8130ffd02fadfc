// SPDX-License-Identifier: Apache-2.0
// QR by panels of 16 columns. A panel is factored as in step 7; its 16 reflectors are then applied together to tiles of
// 16 columns, a group for each, as products of matrices: H_0 ... H_15 = I - V T V^T (Schreiber and Van Loan 1989). The
// rest of the matrix is read and written for every panel and not for every column, and a tile of V and C in local
// memory is used 16 times for each time that it is read.
#pragma once

#include "07_more_groups.hpp"

namespace tiles {

constexpr int width = 16, items = width * width / 4;  // columns of a panel and of a tile; a work-group

const char* const source = R"cl(
#define NB 16

// V(i, k) of the panel at row and column `first`: one on the diagonal, zero above it, and below it as it lies.
float reflector(global const float* a, int ld, int first, int m, int i, int k) {
  if (i >= m || i < first + k) return 0;
  return i == first + k ? 1 : a[i + (first + k) * (long)ld];
}

// T of the panel, upper triangular: T(k, k) = tau_k, and T(0:k, k) = -tau_k T(0:k, 0:k) (V^T V)(0:k, k). One group;
// each work-item has four elements of V^T V.
kernel void form_t(global const float* a, int ld, int first, int m, global const float* tau, global float* t) {
  local float s_v[NB][NB], s_gram[NB][NB], s_t[NB][NB];  // [row][column]; the last two [column][row]
  const int x = get_local_id(0) % NB, y = get_local_id(0) / NB * 4;
  float4 sum = 0;
  for (int i0 = first; i0 < m; i0 += NB) {
    for (int s = 0; s < 4; ++s) s_v[x][y + s] = reflector(a, ld, first, m, i0 + x, y + s);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < NB; ++r) sum += s_v[r][x] * vload4(0, &s_v[r][y]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  vstore4(sum, 0, &s_gram[x][y]);
  vstore4((float4)(0), 0, &s_t[x][y]);
  for (int k = 0; k < NB; ++k) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y == 0 && x <= k) {
      float product = 0;
      for (int l = x; l < k; ++l) product += s_t[l][x] * s_gram[k][l];
      s_t[k][x] = x == k ? tau[first + k] : -tau[first + k] * product;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = 0; s < 4; ++s) t[y + s + x * NB] = s_t[x][y + s];
}

// C := (I - V T^T V^T) C for the NB columns of C that this group has. A work-item has row x of W = V^T C and four of
// its columns, in registers: what it reads of V is used four times.
kernel void apply(global float* a, int ld, int first, int m, int n, global const float* t) {
  local float s_v[NB][NB], s_c[NB][NB], s_w[NB][NB];  // [row of W or column of V][the other]
  const int x = get_local_id(0) % NB, y = get_local_id(0) / NB * 4;
  const int col = first + NB + get_group_id(0) * NB + y;
  global float* c = a + col * (long)ld;

  float4 sum = 0;
  for (int i0 = first; i0 < m; i0 += NB) {
    const int i = i0 + x;
    for (int s = 0; s < 4; ++s) {
      s_v[x][y + s] = reflector(a, ld, first, m, i, y + s);
      s_c[x][y + s] = i < m && col + s < n ? c[i + s * (long)ld] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < NB; ++r) sum += s_v[r][x] * vload4(0, &s_c[r][y]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  vstore4(sum, 0, &s_c[x][y]);
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;  // W = T^T W
  for (int k = 0; k < NB; ++k) sum += t[k + x * NB] * vload4(0, &s_c[k][y]);
  vstore4(sum, 0, &s_w[x][y]);
  for (int i0 = first; i0 < m; i0 += NB) {  // C = C - V W
    const int i = i0 + x;
    for (int s = 0; s < 4; ++s) s_v[y + s][x] = reflector(a, ld, first, m, i, y + s);
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int k = 0; k < NB; ++k) sum += s_v[k][x] * vload4(0, &s_w[k][y]);
    const float change[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int s = 0; s < 4; ++s)
      if (i < m && col + s < n) c[i + s * (long)ld] -= change[s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
)cl";

struct Factors {
  Matrix r;
  double seconds;
};

inline Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols;
  require(m >= n, "the matrix must not be wide");
  const cl::Program program = device.build(source);
  const cl::Program panel = device.build(more_groups::source);
  const cl::Kernel make_reflector(panel, "make_reflector"), reflect(panel, "reflect"), form_t(program, "form_t"),
      apply(program, "apply");
  const cl::Buffer a_buffer = device.upload(a), tau = device.allocate(n), t = device.allocate(width * width);
  const auto sums = local_floats(more_groups::items);
  const auto work = [&] {
    for (int first = 0; first < n; first += width) {
      const int end = std::min(first + width, n), right = n - end;
      for (int col = first; col < end; ++col) {
        device.run(make_reflector, 1, more_groups::items, a_buffer, tau, m, col, sums);
        if (col + 1 < end) device.run(reflect, end - col - 1, more_groups::items, a_buffer, tau, m, col, sums);
      }
      if (right == 0) break;
      device.run(form_t, 1, items, a_buffer, m, first, m, tau, t);
      device.run(apply, (right + width - 1) / width, items, a_buffer, m, first, m, n, t);
    }
  };
  Factors f;
  f.seconds = device.seconds([&] { device.upload(a, a_buffer); }, work);
  f.r = upper_triangle(device.download(a_buffer, m, n));
  return f;
}

}  // namespace tiles
