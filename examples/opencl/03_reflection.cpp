// SPDX-License-Identifier: Apache-2.0
// Step 3: the Householder reflection x' = P x in the hyperplane perpendicular to u, P = I - 2 u u^T / u^T u. P is its
// own inverse, and u = x - x' leads from x to any x' of the same length. First with P as a matrix, then without it: x'
// = x - (2 u^T x / u^T u) u takes 4 n operations instead of 4 n^2. Usage: 03_reflection [n]
#include "example.hpp"

const char* const source = R"cl(
// Every work-item sums u^T u itself: all need it, and it costs less than to pass it on.
float dot_of(global const float* x, global const float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// One work-item for each row of P.
kernel void form_p(global const float* u, global float* p, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const float factor = 2 / dot_of(u, u, n);
  for (int j = 0; j < n; ++j) p[i + j * n] = (i == j) - factor * u[i] * u[j];
}

// y := P x, one work-item for each element.
kernel void multiply(global const float* p, global const float* x, global float* y, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  float sum = 0;
  for (int j = 0; j < n; ++j) sum += p[i + j * n] * x[j];
  y[i] = sum;
}

// y := x - (2 u^T x / u^T u) u by one work-group. Each work-item has part of the two sums in s_sum.
kernel void reflect(global const float* u, global const float* x, global float* y, int n, local float2* s_sum) {
  const int id = get_local_id(0), items = get_local_size(0);
  float2 sum = 0;
  for (int i = id; i < n; i += items) sum += u[i] * (float2)(u[i], x[i]);
  s_sum[id] = sum;
  for (int half_items = items / 2; half_items > 0; half_items /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_items) s_sum[id] += s_sum[id + half_items];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float factor = 2 * s_sum[0].y / s_sum[0].x;
  for (int i = id; i < n; i += items) y[i] = x[i] - factor * u[i];
}
)cl";

void check_equal(const Matrix& x, const Matrix& expected) {
  require(x.values.size() == expected.values.size(), "a size");
  for (std::size_t i = 0; i < x.values.size(); ++i)
    require(std::abs(x.values[i] - expected.values[i]) <= 1e-4, "an element of a reflection");
}

int main(int argc, char** argv) {
  return run_example([&] {
    const Device device;
    const cl::Program program = device.build(source);
    const cl::Kernel form_p(program, "form_p"), multiply(program, "multiply"), reflect(program, "reflect");
    const int items = 64;
    double with_p = 0, without_p = 0;
    const auto reflection = [&](const Matrix& u, const Matrix& x, Matrix* p_out = nullptr) {
      const int n = u.rows, groups = (n + items - 1) / items;
      const cl::Buffer u_buffer = device.upload(u), x_buffer = device.upload(x), y_buffer = device.allocate(n),
                       p_buffer = device.allocate(std::size_t(n) * n);
      with_p = device.seconds([] {},
                              [&] {
                                device.run(form_p, groups, items, u_buffer, p_buffer, n);
                                device.run(multiply, groups, items, p_buffer, x_buffer, y_buffer, n);
                              });
      const Matrix y = device.download(y_buffer, n, 1);
      without_p = device.seconds(
          [] {}, [&] { device.run(reflect, 1, items, u_buffer, x_buffer, y_buffer, n, local_floats(2 * items)); });
      check_equal(device.download(y_buffer, n, 1), y);
      if (p_out) *p_out = device.download(p_buffer, n, n);
      return y;
    };
    const auto vector = [](std::initializer_list<float> values) {
      Matrix x(int(values.size()), 1);
      std::copy(values.begin(), values.end(), x.values.begin());
      return x;
    };

    // u is the second axis: the second element changes its sign.
    check_equal(reflection(vector({0, 5, 0, 0}), vector({1, 2, 3, 4})), vector({1, -2, 3, 4}));

    const int n = argument(argc, argv, 1, 1024);
    require(n >= 1, "n must be positive");
    Matrix x = random_matrix(n, 1), p, pp(n, n);
    // x' has x's length in its first element and zeros below. The sign that adds in x - x' loses no digits.
    Matrix image(n, 1);
    image(0, 0) = -std::copysign(float(length(x.values.data(), n)), x(0, 0));
    Matrix u = x;
    u(0, 0) -= image(0, 0);
    check_equal(reflection(u, x, &p), image);
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, p.values.data(), n, p.values.data(), n, 0,
                pp.values.data(), n);
    check_equal(pp, identity(n, n));
    report("with P as a matrix", 4.0 * n, with_p);
    report("step 3: without P", 4.0 * n, without_p);
  });
}
