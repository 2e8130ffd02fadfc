// SPDX-License-Identifier: Apache-2.0
// What every program of this folder needs around its kernels: a device, a program built from text, matrices to and from
// the device, times, and checks against LAPACK. Matrices are column-major: element (i, j) is at i + j * rows.
#pragma once

#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_ENABLE_EXCEPTIONS
#include <cblas.h>
#include <lapacke.h>

#include <CL/opencl.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

struct Matrix {
  Matrix() = default;
  Matrix(int m, int n) : rows(m), cols(n), values(std::size_t(m) * n) {}
  float& operator()(int i, int j) { return values[i + std::size_t(j) * rows]; }
  float operator()(int i, int j) const { return values[i + std::size_t(j) * rows]; }

  int rows = 0, cols = 0;
  std::vector<float> values;
};

inline Matrix random_matrix(int m, int n) {
  std::mt19937 generator(1);
  Matrix a(m, n);
  for (float& x : a.values) x = 2 * float(generator()) / float(std::mt19937::max()) - 1;
  return a;
}

inline Matrix identity(int m, int n) {
  Matrix a(m, n);
  for (int i = 0; i < std::min(m, n); ++i) a(i, i) = 1;
  return a;
}

/// One device with a context and a queue that runs its commands in order.
class Device {
 public:
  /// The first GPU of any platform, or the first device if there is no GPU.
  Device() {
    std::vector<cl::Platform> platforms;
    cl::Platform::get(&platforms);
    std::vector<cl::Device> devices;
    for (const cl::Platform& platform : platforms) {
      std::vector<cl::Device> found;
      if (clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, nullptr) != CL_DEVICE_NOT_FOUND)
        platform.getDevices(CL_DEVICE_TYPE_ALL, &found);
      devices.insert(devices.end(), found.begin(), found.end());
    }
    if (devices.empty()) throw std::runtime_error("no OpenCL device");
    const auto is_gpu = [](const cl::Device& d) { return (d.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU) != 0; };
    const auto gpu = std::find_if(devices.begin(), devices.end(), is_gpu);
    device_ = gpu != devices.end() ? *gpu : devices.front();
    context_ = cl::Context(device_);
    queue = cl::CommandQueue(context_, device_);
    std::printf("device: %s\n", device_.getInfo<CL_DEVICE_NAME>().c_str());
  }

  /// Builds a program from OpenCL C. What the compiler says about an error is in the exception.
  cl::Program build(const std::string& source, const std::string& options = "") const {
    cl::Program program(context_, source);
    try {
      program.build({device_}, options.c_str());
    } catch (const cl::BuildError& error) {
      throw std::runtime_error("a program does not build:\n" + error.getBuildLog().front().second);
    }
    return program;
  }

  cl::Buffer allocate(std::size_t floats) const {
    return cl::Buffer(context_, CL_MEM_READ_WRITE, std::max<std::size_t>(1, floats) * sizeof(float));
  }
  void upload(const Matrix& a, const cl::Buffer& buffer) const {
    queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, a.values.size() * sizeof(float), a.values.data());
  }
  cl::Buffer upload(const Matrix& a) const {
    cl::Buffer buffer = allocate(a.values.size());
    upload(a, buffer);
    return buffer;
  }
  Matrix download(const cl::Buffer& buffer, int rows, int cols) const {
    Matrix a(rows, cols);
    queue.enqueueReadBuffer(buffer, CL_TRUE, 0, a.values.size() * sizeof(float), a.values.data());
    return a;
  }

  /// Runs a kernel in `groups` work-groups of `items` work-items.
  template <class... Arguments>
  void run(cl::Kernel kernel, int groups, int items, const Arguments&... arguments) const {
    cl_uint index = 0;
    (kernel.setArg(index++, arguments), ...);
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(std::size_t(groups) * items), cl::NDRange(items));
  }

  /// Seconds that the commands of `work` take: the shortest of three runs, after one to warm up, each after `prepare`.
  double seconds(const std::function<void()>& prepare, const std::function<void()>& work) const {
    double shortest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 4; ++i) {
      prepare();
      queue.finish();
      const auto start = std::chrono::steady_clock::now();
      work();
      queue.finish();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (i > 0) shortest = std::min(shortest, time.count());
    }
    return shortest;
  }

  std::size_t local_bytes() const { return device_.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>(); }
  std::size_t max_items() const { return device_.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>(); }

  cl::CommandQueue queue;

 private:
  cl::Device device_;
  cl::Context context_;
};

/// Local memory of so many floats, as a kernel's argument.
inline cl::LocalSpaceArg local_floats(std::size_t count) { return cl::Local(count * sizeof(float)); }

/// Prints a rate; flops are the algorithm's usual count, whatever a step really does, so that rates compare.
inline void report(const char* name, double flops, double seconds) {
  std::printf("%-44s %10.3f ms %9.3f GFLOP/s\n", name, 1e3 * seconds, 1e-9 * flops / seconds);
}
inline double qr_flops(double m, double n) { return 2 * n * n * (m - n / 3); }

// ---- checks: each is written so that a NaN fails ----

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("wrong: " + what);
}

/// Allowed rounding errors, relative to a column's length, for n columns of float.
inline double tolerance(int n) { return 30.0 * (n + 10) * 6e-8; }

inline double length(const float* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double(x[i]) * x[i];
  return std::sqrt(sum);
}

/// R must be upper triangular and LAPACK's, up to the signs of its rows.
inline void check_r(const Matrix& a, const Matrix& r) {
  Matrix expected = a;
  std::vector<float> tau(a.cols);
  LAPACKE_sgeqrf(LAPACK_COL_MAJOR, a.rows, a.cols, expected.values.data(), a.rows, tau.data());
  for (int j = 0; j < a.cols; ++j) {
    const double allowed = tolerance(a.cols) * length(&a.values[std::size_t(j) * a.rows], a.rows);
    for (int i = 0; i < r.rows; ++i) {
      const double sign = (expected(i, i) < 0) == (r(i, i) < 0) ? 1 : -1;
      const double difference = i <= j ? std::abs(sign * r(i, j) - expected(i, j)) : std::abs(double(r(i, j)));
      require(difference <= allowed, "R(" + std::to_string(i) + ", " + std::to_string(j) + ") = " +
                                         std::to_string(r(i, j)) + ", LAPACK has " + std::to_string(expected(i, j)));
    }
  }
}

/// Q must have orthonormal columns, and Q R must be A.
inline void check_q(const Matrix& a, const Matrix& q, const Matrix& r) {
  const int n = a.cols, k = q.cols;
  Matrix gram(k, k), rest = a;
  cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, k, k, q.rows, 1, q.values.data(), q.rows, q.values.data(),
              q.rows, 0, gram.values.data(), k);
  for (int j = 0; j < k; ++j)
    for (int i = 0; i < k; ++i)
      require(std::abs(gram(i, j) - (i == j)) <= tolerance(n), "Q has no orthonormal columns");
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, a.rows, n, k, -1, q.values.data(), q.rows, r.values.data(),
              r.rows, 1, rest.values.data(), a.rows);
  for (int j = 0; j < n; ++j)
    require(length(&rest.values[std::size_t(j) * a.rows], a.rows) <=
                tolerance(n) * length(&a.values[std::size_t(j) * a.rows], a.rows),
            "column " + std::to_string(j) + " of Q R is not A's");
}

/// The upper triangle of a factored matrix, whose reflectors stand below it.
inline Matrix upper_triangle(const Matrix& factored) {
  Matrix r(std::min(factored.rows, factored.cols), factored.cols);
  for (int j = 0; j < r.cols; ++j)
    for (int i = 0; i <= std::min(j, r.rows - 1); ++i) r(i, j) = factored(i, j);
  return r;
}

/// Runs a program's work; errors go to standard error, and the status is 1.
inline int run_example(const std::function<void()>& work) {
  try {
    work();
    std::printf("all checks hold\n");
    return 0;
  } catch (const cl::Error& error) {
    std::fprintf(stderr, "%s failed: OpenCL error %d\n", error.what(), error.err());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

/// The k-th number on the command line, or a default.
inline int argument(int argc, char** argv, int k, int otherwise) { return argc > k ? std::atoi(argv[k]) : otherwise; }
