// SPDX-License-Identifier: Apache-2.0
// What the OpenCL backend says when its driver fails. The functions below stand before the loader's of the same name,
// and fail where a test asks for it. Also the disk cache of programs, and limits from the environment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <qrane/qrane.hpp>

#include "opencl/queue/binary_cache.hpp"
#include "opencl/queue/device.hpp"
#include "support/backends.hpp"

namespace {

struct Failures {
  cl_int finish = CL_SUCCESS, enqueue = CL_SUCCESS, build = CL_SUCCESS, create_buffer = CL_SUCCESS;
} failures;

template <class Function>
Function* driver(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

cl_int clFinish(cl_command_queue queue) {
  static auto* const real = driver<decltype(clFinish)>("clFinish");
  return failures.finish != CL_SUCCESS ? failures.finish : real(queue);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint count, const cl_event* waits,
                              cl_event* event) {
  static auto* const real = driver<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  if (failures.enqueue != CL_SUCCESS) return failures.enqueue;
  return real(queue, kernel, dimensions, offset, global, local, count, waits, event);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                      void (*notify)(cl_program, void*), void* data) {
  static auto* const real = driver<decltype(clBuildProgram)>("clBuildProgram");
  // a real failure with a real log
  return real(program, count, devices, failures.build != CL_SUCCESS ? "-Dint=no_such_type" : options, notify, data);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  static auto* const real = driver<decltype(clCreateBuffer)>("clCreateBuffer");
  if (failures.create_buffer == CL_SUCCESS) return real(context, flags, size, host, status);
  *status = failures.create_buffer;
  return nullptr;
}

}  // extern "C"

namespace qrane::test {

using backend::opencl::load_binary;
using backend::opencl::QueueOptions;
using backend::opencl::store_binary;

class OpenClErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    const BackendStatus status = status_of(Backend::opencl);
    if (!status.available) GTEST_SKIP() << "opencl is absent: " << status.reason;
  }
  void TearDown() override { failures = {}; }

  static Matrix<float> random() {
    auto a = Matrix<float>::host(60, 20);
    for (Index j = 0; j < 20; ++j)
      for (Index i = 0; i < 60; ++i) a(i, j) = static_cast<float>((i * 7 + j * 13 + i * j) % 17) - 8;
    return a;
  }
};

TEST_F(OpenClErrors, ALostDeviceIsSaidAndDoesNotHang) {
  const Context context = fresh_context(Backend::opencl);
  const auto f = qr<float>(context, random());
  for (cl_int status : {CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE}) {
    failures.finish = status;
    EXPECT_TRUE(refuses([&] { context.synchronize(); }, ErrorCode::device, {"clFinish", "lost"}));
  }
  failures.finish = CL_SUCCESS;
  failures.enqueue = CL_DEVICE_NOT_AVAILABLE;
  EXPECT_TRUE(refuses([&] { qr<float>(context, random()); }, ErrorCode::device,
                      {"kernel", "CL_DEVICE_NOT_AVAILABLE", "local memory"}));
}

TEST_F(OpenClErrors, AnotherContextWorksAfterOneIsLost) {
  {
    const Context lost = fresh_context(Backend::opencl);
    failures.enqueue = CL_OUT_OF_RESOURCES;
    EXPECT_THROW(qr<float>(lost, random()), Error);
  }
  failures = {};
  const auto r = qr<float>(fresh_context(Backend::opencl), random()).r();
  EXPECT_GT(std::abs(r(0, 0)), 0.0f);
}

TEST_F(OpenClErrors, ABuildErrorComesWithTheLog) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  const auto cold = std::filesystem::temp_directory_path() / ("qrane-cold-" + std::to_string(::getpid()));
  ::setenv("XDG_CACHE_HOME", cold.c_str(), 1);  // what is in the cache is not built
  const Context context = fresh_context(Backend::opencl);
  failures.build = CL_BUILD_PROGRAM_FAILURE;
  EXPECT_TRUE(refuses([&] { qr<float>(context, random()); }, ErrorCode::device,
                      {"building", "CL_BUILD_PROGRAM_FAILURE", "error"}));
  before ? ::setenv("XDG_CACHE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(cold);
}

TEST_F(OpenClErrors, OutOfMemoryLeavesTheContextUsable) {
  const Context context = fresh_context(Backend::opencl);
  for (cl_int status : {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY}) {
    failures.create_buffer = status;
    EXPECT_TRUE(refuses([&] { context.allocate<float>(1000, 10); }, ErrorCode::out_of_memory, {"40000", "free"}));
    failures.create_buffer = CL_SUCCESS;
    EXPECT_EQ(context.allocate<float>(1000, 10).rows(), 1000);
  }
  failures.enqueue = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  EXPECT_TRUE(refuses([&] { qr<float>(context, random()); }, ErrorCode::out_of_memory, {"kernel", "bytes"}));
  failures = {};
  EXPECT_GT(std::abs(qr<float>(context, random()).r()(0, 0)), 0.0f);
}

TEST_F(OpenClErrors, BuildingIsCountedAndAnnounced) {
  backend::opencl::Queue queue;
  EXPECT_EQ(queue.build_seconds(), 0);
  std::vector<std::string> notices;
  double last = 0;
  queue.on_build([&](const std::string& what, double seconds) {
    notices.push_back(what);
    EXPECT_GE(seconds, last + 1);
    last = seconds;
  });
  auto& programs = queue.device().programs();
  const backend::opencl::Defines defines = {{"REAL", "float"}, {"REAL_IS_DOUBLE", "0"}, {"WG", "8"}};
  cl_kernel kernel = programs.kernel({"transpose.cl"}, "transpose", defines);
  EXPECT_GT(queue.build_seconds(), 0);
  EXPECT_TRUE(notices.empty());
  EXPECT_TRUE(programs.runs_first(kernel));
  EXPECT_FALSE(programs.runs_first(kernel));
  programs.count_in(kernel, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1100)); });
  programs.count_in(kernel, [] {});
  programs.count_in(kernel, [] {});
  EXPECT_EQ(notices, std::vector<std::string>{"transpose"});
}

TEST(OpenClLimits, OfTheEnvironmentAreCheckedAndUsed) {
  const auto limited = [](const char* text) {
    ::setenv("QRANE_OPENCL_LIMITS", text, 1);
    return backend::opencl::lowered({.max_work_group = 100, .max_local_bytes = 20000});
  };
  const char* const given = std::getenv("QRANE_OPENCL_LIMITS");
  const std::string before = given ? given : "";
  QueueOptions options = limited("work_group=64,local_bytes=32768,no_double,gpu");
  EXPECT_EQ(options.max_work_group, 64);
  EXPECT_EQ(options.max_local_bytes, 20000);
  EXPECT_FALSE(options.use_double);
  EXPECT_TRUE(options.as_gpu);
  options = limited("");
  EXPECT_EQ(options.max_work_group, 100);
  EXPECT_TRUE(options.use_double);
  for (const char* wrong : {"work_group", "work_group=0", "local_bytes=16k", "work_group=-8", "fast"})
    EXPECT_TRUE(refuses([&] { limited(wrong); }, ErrorCode::invalid_argument, {"QRANE_OPENCL_LIMITS", wrong}));
  ::setenv("QRANE_OPENCL_LIMITS", "fast", 1);
  EXPECT_NE(status_of(Backend::opencl).reason.find("QRANE_OPENCL_LIMITS"), std::string::npos);
  ::setenv("QRANE_OPENCL_LIMITS", before.c_str(), 1);
}

class BinaryCache : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const given = std::getenv("XDG_CACHE_HOME");
    before_ = given ? given : "";
    folder_ = std::filesystem::temp_directory_path() / ("qrane_cache_" + std::to_string(::getpid()));
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }

  std::filesystem::path folder_;
  std::string before_;
};

TEST_F(BinaryCache, ReturnsWhatWasStoredForTheKeyOnly) {
  const std::vector<unsigned char> binary = {0, 1, 2, 255, 0, 7};
  EXPECT_TRUE(load_binary("device|driver|source").empty());
  store_binary("device|driver|source", binary);
  EXPECT_EQ(load_binary("device|driver|source"), binary);
  EXPECT_TRUE(load_binary("device|driver 2|source").empty());
}

TEST_F(BinaryCache, ABrokenEntryIsAsGoodAsNone) {
  const std::vector<unsigned char> binary(1000, 42);
  store_binary("key", binary);
  const auto path = entries().at(0);
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto write = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    write(whole.substr(0, length));
    EXPECT_TRUE(load_binary("key").empty()) << length;
  }
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write(changed);
    EXPECT_TRUE(load_binary("key").empty()) << at;
  }
  write(whole);
  EXPECT_EQ(load_binary("key"), binary);
}

TEST_F(BinaryCache, WritersAtTheSameTimeLeaveOneWholeEntry) {
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([w] {
      for (int i = 0; i < 50; ++i) {
        store_binary("key", std::vector<unsigned char>(2000 + w, static_cast<unsigned char>(w)));
        const auto read = load_binary("key");
        ASSERT_FALSE(read.empty());
        ASSERT_EQ(read.size(), 2000u + read.front());
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(entries().size(), 1u);
}

}  // namespace qrane::test
