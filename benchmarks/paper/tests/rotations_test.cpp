// SPDX-License-Identifier: Apache-2.0
// Wavefronts of Givens rotations on one backend: against plain loops with the rotations that were found.
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#if defined(QRANE_TEST_CUDA)
#include <cuda_runtime_api.h>

#include "paper/cuda.hpp"
#elif defined(QRANE_TEST_OPENCL)
#include "paper/opencl.hpp"
#else
#include "paper/cpu.hpp"
#endif

namespace qrane::backend::test {

#if defined(QRANE_TEST_CUDA)
using Tested = Cuda;
std::unique_ptr<cuda::Queue> make_queue(std::string& reason) {
  int count = 0;
  reason = "no CUDA device";
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return nullptr;
  return std::make_unique<cuda::Queue>(0);
}
#elif defined(QRANE_TEST_OPENCL)
using Tested = OpenCL;
std::unique_ptr<opencl::Queue> make_queue(std::string& reason) {
  if (opencl::device_infos(&reason).empty()) return nullptr;
  return std::make_unique<opencl::Queue>();
}
#else
using Tested = Cpu;
std::unique_ptr<cpu::Queue> make_queue(std::string&) { return std::make_unique<cpu::Queue>(2); }
#endif
using KernelTypes = testing::Types<std::tuple<Tested, float>, std::tuple<Tested, double>>;

}  // namespace qrane::backend::test

#include "vocabulary/kernels_fixture.hpp"

namespace qrane::backend::test {

struct Wavefronts {
  Index waves, cols, heights, rows;
};

inline std::vector<Wavefronts> rotation_shapes() {
  std::vector<Wavefronts> shapes;
  for (Index waves : {1, 2, 4, 8, 16}) {
    shapes.push_back({waves, 1 + waves, 1, 3});         // one step
    shapes.push_back({waves, 7, 6, 1});                 // every column full, fewer of them than waves for the widest
    shapes.push_back({waves, 40 + waves, 40, 65});      // the last columns a triangle
    shapes.push_back({waves, 100, 99, 129});            // every column full
    shapes.push_back({waves, 70 + 2 * waves, 70, 40});  // columns that the fronts do not reach
  }
  return shapes;
}

template <class T>
HostMatrix<T> strip_for(const Wavefronts& shape, unsigned seed) {
  HostMatrix<T> strip(shape.waves, shape.cols, 2);
  strip.random(seed);
  for (Index j = 0; j < shape.cols; ++j)
    for (Index r = 0; r < shape.waves; ++r)
      if (j > shape.heights + r) strip(r, j) = 0;
  return strip;
}

/// x by the definition, in long double.
template <class T>
Reference turned(Reference x, const std::vector<T>& cs, const Wavefronts& shape) {
  for (Index i = shape.heights; i >= 1; --i)
    for (Index j = 0; j < shape.waves && i + j < shape.cols; ++j) {
      const std::size_t at = std::size_t(2 * ((shape.heights - i) * shape.waves + j));
      const Wide c = cs[at], s = cs[at + 1];
      for (Index r = 0; r < x.rows; ++r) {
        const Wide a = x(r, i - 1 + j), b = x(r, i + j);
        x(r, i - 1 + j) = c * a + s * b;
        x(r, i + j) = c * b - s * a;
      }
    }
  return x;
}

TYPED_TEST(Kernels, MakesRotationsThatTriangularizeAStrip) {
  using T = typename TestFixture::T;
  for (const Wavefronts& shape : rotation_shapes()) {
    SCOPED_TRACE(testing::Message() << shape.waves << " waves, " << shape.cols << " columns, " << shape.heights
                                    << " steps");
    HostMatrix<T> strip = strip_for<T>(shape, 31);
    strip(0, shape.cols / 2) = 0;
    const Reference before = to_reference(strip);
    Rotations<typename TestFixture::B, T> task;
    task.strip = this->upload(strip);
    task.heights = shape.heights;
    const std::size_t count = std::size_t(2 * shape.heights * shape.waves);
    task.cs = this->upload(std::vector<T>(count + 1, canary<T>));
    make_rotations(this->q(), task);
    strip = this->download(task.strip, strip);
    this->expect_canaries(strip);
    const std::vector<T> cs = this->download(task.cs, Index(count) + 1);
    EXPECT_TRUE(same_bits(std::vector<T>{cs.back()}, std::vector<T>{canary<T>}));
    for (std::size_t k = 0; k < count; k += 2)
      ASSERT_NEAR(double(Wide(cs[k]) * cs[k] + Wide(cs[k + 1]) * cs[k + 1]), 1, 8 * std::numeric_limits<T>::epsilon());
    const Reference expected = turned(before, cs, shape);
    const double most = double(shape.heights + shape.cols) * 8 * std::numeric_limits<T>::epsilon();
    for (Index j = 0; j < shape.cols; ++j)
      for (Index r = 0; r < shape.waves; ++r) {
        if (j > r) {
          ASSERT_EQ(strip(r, j), T(0)) << r << ", " << j;
        }
        ASSERT_NEAR(double(strip(r, j)), double(expected(r, j)), most) << r << ", " << j;
      }
  }
}

TYPED_TEST(Kernels, RotatesRowsAsDefined) {
  using T = typename TestFixture::T;
  for (const Wavefronts& shape : rotation_shapes())
    for (const int flags : in_turn(numbers(4))) {
      SCOPED_TRACE(testing::Message() << shape.waves << " waves, " << shape.cols << " columns, " << shape.heights
                                      << " steps, flags " << flags);
      Rotations<typename TestFixture::B, T> found;
      found.strip = this->upload(strip_for<T>(shape, 32));
      found.heights = shape.heights;
      const Index count = 2 * shape.heights * shape.waves;
      found.cs = this->upload(std::vector<T>(std::size_t(count), T(0)));
      make_rotations(this->q(), found);
      const std::vector<T> cs = this->download(found.cs, count);

      HostMatrix<T> x(shape.rows, shape.cols, 3);
      x.random(33);
      Rotate<typename TestFixture::B, T> task;
      task.drop = flags & 1, task.lower = flags & 2;
      if (task.lower)
        for (Index j = 0; j < shape.cols; ++j)
          for (Index r = 0; r < std::min(j, shape.rows); ++r) x(r, j) = 0;
      const Reference expected = turned(to_reference(x), cs, shape);
      const HostMatrix<T> before = x;
      task.x = this->upload(x);
      task.heights = shape.heights;
      task.waves = shape.waves;
      task.cs = found.cs;
      const std::vector<std::int32_t> off = {0};
      auto skipped = this->q().when(this->upload(off));
      rotate(skipped, task);
      x = this->download(task.x, x);
      EXPECT_TRUE(same_bits(x.data, before.data));
      rotate(this->q(), task);
      x = this->download(task.x, x);
      this->expect_canaries(x);
      const double most = double(shape.heights + shape.cols) * 8 * std::numeric_limits<T>::epsilon();
      const Index shift = task.drop ? shape.waves : 0;
      for (Index j = shift; j < shape.cols; ++j)
        for (Index r = 0; r < shape.rows; ++r)
          ASSERT_NEAR(double(x(r, j - shift)), double(expected(r, j)), most) << r << ", " << j;
    }
}

}  // namespace qrane::backend::test
