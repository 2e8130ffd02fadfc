// SPDX-License-Identifier: Apache-2.0
// The vocabulary's tests on the first OpenCL device.
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#if QRANE_WITH_OPENCL
#include "opencl/whole.hpp"

namespace qrane::backend::test {

using KernelTypes = testing::Types<std::tuple<OpenCL, float>, std::tuple<OpenCL, double>>;

std::unique_ptr<opencl::Queue> make_queue(std::string& reason) {
  if (opencl::device_infos(&reason).empty()) return nullptr;
  return std::make_unique<opencl::Queue>();
}

}  // namespace qrane::backend::test

#include "kernels_test.hpp"

namespace qrane::backend::test {

// The same tests would pass on a big CPU whatever the kernels asked for: here the device is made small.
using opencl::QueueOptions;

template <class T>
void check_small_device(const QueueOptions& options) {
  std::string reason;
  if (opencl::device_infos(&reason).empty()) GTEST_SKIP() << "no device for backend opencl: " << reason;
  opencl::Queue queue(0, nullptr, 0, options);
  const Index m = 100, n = 20;
  HostMatrix<T> a(m, n);
  a.random(5);
  const auto bytes = [](std::size_t size) { return static_cast<Index>(size); };
  auto data = cast_pointer<T>(queue.allocate(bytes(a.data.size() * sizeof(T))));
  auto t = cast_pointer<T>(queue.allocate(bytes(n * n * sizeof(T))));
  auto tasks = cast_pointer<BlockTask>(queue.allocate(sizeof(BlockTask)));
  const BlockTask task{0, 0, 0, std::int32_t(m), 0, 0, std::int32_t(n)};
  queue.upload(a.data.data(), data, bytes(a.data.size()));
  queue.upload(&task, tasks, 1);
  Panel<OpenCL, T> panel;
  panel.a = {data + HostMatrix<T>::pad, m, n, a.ld, 0, 1};
  panel.t = t;
  panel.tasks = tasks;
  panel.task_count = 1;
  panel.max_rows = std::int32_t(m);
  panel.max_cols = panel.inner = std::int32_t(n);
  factor(queue, panel);

  HostMatrix<T> c(m, n);
  c.set([&](Index i, Index j, Index) { return a(i, j); });
  auto c_data = cast_pointer<T>(queue.allocate(bytes(c.data.size() * sizeof(T))));
  queue.upload(c.data.data(), c_data, bytes(c.data.size()));
  const DeviceMatrix<OpenCL, T> device_c{c_data + HostMatrix<T>::pad, m, n, c.ld, 0, 1};
  apply_qt_h(queue, Apply<OpenCL, T>{panel, device_c, Op::transpose});
  HostMatrix<T> r(m, n), qta(m, n);
  queue.download(data, r.data.data(), bytes(r.data.size()));
  queue.download(c_data, qta.data.data(), bytes(qta.data.size()));
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i)
      EXPECT_NEAR(double(qta(i, j)), i <= j ? double(r(i, j)) : 0.0, double(30 * (n + 10) * unit_roundoff<T> * 10))
          << i << ", " << j;

  // Q^T A = R once more by products: (A^T A) = (R^T R) through gemm and trsm.
  queue.upload(a.data.data(), data, bytes(a.data.size()));
  auto g_data = cast_pointer<T>(queue.allocate(bytes(n * n * sizeof(T))));
  const DeviceMatrix<OpenCL, T> g{g_data, n, n, n, 0, 1};
  gemm(queue, Op::transpose, Op::none, T(1), panel.a, panel.a, T(0), g);
  trsm(queue, Side::left, Triangle::upper, Op::transpose, Diagonal::non_unit, T(1), device_c.block(0, 0, n, n), g);
  std::vector<T> product(std::size_t(n * n));
  queue.download(g_data, product.data(), n * n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i)
      EXPECT_NEAR(double(product[std::size_t(i + j * n)]), double(r(i, j)), double(unit_roundoff<T> * 1e5));
}

TEST(OpenClSmallDevice, WorkGroupsOfEightAndLittleLocalMemory) {
  check_small_device<float>({.max_work_group = 8, .max_local_bytes = 16384, .as_gpu = true});
  check_small_device<double>({.max_work_group = 8, .max_local_bytes = 16384, .as_gpu = true});
}

TEST(OpenClSmallDevice, WorkGroupsOf64And48KilobytesOfLocalMemory) {
  check_small_device<float>({.max_work_group = 64, .max_local_bytes = 49152, .as_gpu = true});
  check_small_device<double>({.max_work_group = 256, .max_local_bytes = 49152, .as_gpu = true});
}

template <class T>
void check_fronts_on_small_device(const QueueOptions& options) {
  std::string reason;
  if (opencl::device_infos(&reason).empty()) GTEST_SKIP() << "no device for backend opencl: " << reason;
  opencl::Queue queue(0, nullptr, 0, options);
  for (const FrontMatrixCase& c : front_cases()) {
    SCOPED_TRACE(c.name);
    HostFronts<T> h = fronts_of<T>(c.symbolic, c.values, 2);
    h.tolerance = c.tolerance;
    const HostFronts<T> before = h;
    std::vector<opencl::Pointer<std::byte>> owned;
    const auto upload = [&](const auto& values) {
      using U = typename std::decay_t<decltype(values)>::value_type;
      const Index count = static_cast<Index>(values.size());
      owned.push_back(queue.allocate(std::max<Index>(1, count) * static_cast<Index>(sizeof(U))));
      const auto p = cast_pointer<U>(owned.back());
      queue.upload(values.data(), p, count);
      return p;
    };
    auto fronts = bound<OpenCL>(h, [&](auto& host, auto& pointer) {
      if (!host.empty()) pointer = upload(host);
    });
    using Fixture = FrontKernels<std::tuple<OpenCL, T>>;
    for (std::size_t level = 0; level < h.levels.size(); ++level)
      Fixture::walk_level_whole(queue, h, fronts, level, true, [&](const auto& list) {
        return Fixture::template front_tasks<OpenCL>(h, list, upload(list));
      });
    for_each_made(h, fronts, [&](auto& host, auto& pointer) {
      if (!host.empty()) queue.download(pointer, host.data(), static_cast<Index>(host.size()));
    });
    expect_factored(before, h);
    for (const auto& p : owned) queue.release(p);
  }
}

TEST(OpenClSmallDevice, FactorsFronts) {
  check_fronts_on_small_device<double>({.max_work_group = 8, .max_local_bytes = 16384, .as_gpu = true});
  check_fronts_on_small_device<double>({.max_work_group = 256, .max_local_bytes = 49152, .as_gpu = true});
  check_fronts_on_small_device<float>({.use_double = false});
}

TEST(OpenClSmallDevice, WithoutDoublePrecision) {
  std::string reason;
  if (opencl::device_infos(&reason).empty()) GTEST_SKIP() << "no device for backend opencl: " << reason;
  opencl::Queue queue(0, nullptr, 0, {.use_double = false});
  EXPECT_FALSE(queue.limits(1.0).has_double);
  EXPECT_EQ(queue.limits(1.0f).max_cholesky, 0);
  // Numbers that must survive the conversion between float and the doubles in memory, bit by bit.
  const std::vector<float> values = {0.0f,  -0.0f,           1.0f,     -3.25f, 1e-40f, -1e-45f,
                                     3e38f, 1.17549435e-38f, INFINITY, 0.1f};
  const Index n = static_cast<Index>(values.size());
  auto single = cast_pointer<float>(queue.allocate(n * 4));
  auto wide = cast_pointer<double>(queue.allocate(n * 8));
  queue.upload(values.data(), single, n);
  widen(queue, DeviceMatrix<OpenCL, float>{single, n, 1, n, 0, 1}, DeviceMatrix<OpenCL, double>{wide, n, 1, n, 0, 1});
  std::vector<double> widened(values.size());
  queue.download(wide, widened.data(), n);
  for (Index i = 0; i < n; ++i) EXPECT_EQ(widened[std::size_t(i)], double(values[std::size_t(i)])) << i;
  widened = {1.0, 1 / 3.0, 1e300, -1e-300, 1e-42, 3.4028235677973366e38, NAN, -INFINITY, 16777217.0, 2.5};
  queue.upload(widened.data(), wide, n);
  narrow(queue, DeviceMatrix<OpenCL, double>{wide, n, 1, n, 0, 1}, DeviceMatrix<OpenCL, float>{single, n, 1, n, 0, 1},
         Part::all);
  std::vector<float> narrowed(values.size());
  queue.download(single, narrowed.data(), n);
  for (Index i = 0; i < n; ++i) {
    const float expected = static_cast<float>(widened[std::size_t(i)]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(narrowed[std::size_t(i)]));
    else
      EXPECT_EQ(narrowed[std::size_t(i)], expected) << i;
  }
  EXPECT_THROW(fill(queue, DeviceMatrix<OpenCL, double>{wide, n, 1, n, 0, 1}, 0.0, 0.0), Error);
}

TEST(OpenClMemory, LimitAndUsersQueue) {
  std::string reason;
  if (opencl::device_infos(&reason).empty()) GTEST_SKIP() << "no device for backend opencl: " << reason;
  opencl::Queue queue(0, nullptr, 1 << 20);
  auto half = queue.allocate(600 << 10);
  try {
    queue.allocate(600 << 10);
    FAIL() << "an allocation past the limit succeeded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("614400"), std::string::npos) << error.what();
  }
  queue.release(half);
  queue.release(queue.allocate(600 << 10));
  opencl::Queue sharing(0, queue.command_queue());
  EXPECT_EQ(sharing.context(), queue.context());
  EXPECT_THROW(opencl::Queue(1000), Error);
}

}  // namespace qrane::backend::test

#else
TEST(Kernels, OpenCL) { GTEST_SKIP() << "built without OpenCL"; }
#endif
