// SPDX-License-Identifier: Apache-2.0
// Step 2: the matrix product C = A B. A column of B is contiguous, a row of A is not. With A transposed first, both
// are, and an element of C is a sum of dot products of float4. Usage: 02_product [n], n a multiple of 4
#include "example.hpp"

const char* const source = R"cl(
// One work-item for each element of C, row by row of A as it lies.
kernel void product(global const float* a, global const float* b, global float* c, int n) {
  const int i = get_global_id(0) % n, j = get_global_id(0) / n;
  if (j >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[i + k * n] * b[k + j * n];
  c[i + j * n] = sum;
}

kernel void transpose(global const float* a, global float* at, int n) {
  const int i = get_global_id(0) % n, j = get_global_id(0) / n;
  if (j < n) at[j + i * n] = a[i + j * n];
}

// One work-item for each element of C: column i of A^T times column j of B, four elements at a time.
kernel void product_by_dot(global const float4* at, global const float4* b, global float* c, int n) {
  const int i = get_global_id(0) % n, j = get_global_id(0) / n, vectors = n / 4;
  if (j >= n) return;
  float sum = 0;
  for (int k = 0; k < vectors; ++k) sum += dot(at[k + i * vectors], b[k + j * vectors]);
  c[i + j * n] = sum;
}
)cl";

int main(int argc, char** argv) {
  return run_example([&] {
    const int n = argument(argc, argv, 1, 512), items = 64, groups = (n * n + items - 1) / items;
    require(n >= 4 && n % 4 == 0, "n must be a multiple of 4");
    const Device device;
    const cl::Program program = device.build(source);
    const cl::Kernel product(program, "product"), transpose(program, "transpose"), by_dot(program, "product_by_dot");
    const Matrix a = random_matrix(n, n), b = random_matrix(n, n);
    const cl::Buffer a_buffer = device.upload(a), b_buffer = device.upload(b), c_buffer = device.allocate(n * n),
                     at_buffer = device.allocate(n * n);

    Matrix expected(n, n);
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.values.data(), n, b.values.data(), n, 0,
                expected.values.data(), n);
    const auto clear = [&] { device.upload(Matrix(n, n), c_buffer); };
    const auto check = [&] {
      const Matrix c = device.download(c_buffer, n, n);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i)
          require(std::abs(c(i, j) - expected(i, j)) <= tolerance(n) * std::sqrt(n), "an element of the product");
    };

    const double plain_time =
        device.seconds(clear, [&] { device.run(product, groups, items, a_buffer, b_buffer, c_buffer, n); });
    check();
    const double dot_time = device.seconds(clear, [&] {
      device.run(transpose, groups, items, a_buffer, at_buffer, n);
      device.run(by_dot, groups, items, at_buffer, b_buffer, c_buffer, n);
    });
    check();
    const double flops = 2.0 * n * n * n;
    report("A as it lies", flops, plain_time);
    report("step 2: A transposed, then dot of float4", flops, dot_time);
  });
}
