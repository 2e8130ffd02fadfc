// SPDX-License-Identifier: Apache-2.0
// The backends that tests run on, as types (backend x scalar), with one Context per backend and process:
// a context may cost seconds where kernels are compiled for the device. An absent backend skips and says why.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <qrane/qrane.hpp>

#include "support/hostile.hpp"

namespace qrane::test {

/// What `backends()` says of one backend.
inline BackendStatus status_of(Backend backend) {
  for (BackendStatus& status : backends())
    if (status.backend == backend) return status;
  BackendStatus missing;
  missing.backend = backend;
  missing.reason = "backends() does not list it";
  return missing;
}

/// The process's context on a backend that is there.
inline const Context& shared_context(Backend backend) {
  static std::map<Backend, Context> contexts;
  auto found = contexts.find(backend);
  if (found == contexts.end()) {
    ContextOptions options;
    options.backend = backend;
    found = contexts.emplace(backend, Context(options)).first;
  }
  return found->second;
}

/// A context of its own, with a memory limit where one is given.
inline Context fresh_context(Backend backend, std::int64_t memory_limit_bytes = 0) {
  ContextOptions options;
  options.backend = backend;
  options.memory_limit_bytes = memory_limit_bytes;
  return Context(options);
}

template <Backend backend_, class Scalar_>
struct On {
  static constexpr Backend backend = backend_;
  using Scalar = Scalar_;
};

using Everywhere = ::testing::Types<On<Backend::cpu, float>, On<Backend::cpu, double>, On<Backend::opencl, float>,
                                    On<Backend::opencl, double>, On<Backend::cuda, float>, On<Backend::cuda, double>>;

/// Test names end in cpu_float, opencl_double, ...: what CMakeLists.txt filters by.
struct Names {
  template <class Where>
  static std::string GetName(int) {
    return std::string(qrane::to_string(Where::backend)) + (sizeof(typename Where::Scalar) == 4 ? "_float" : "_double");
  }
};

/// Skips the test where the backend or its double precision is absent.
template <class Where>
class BackendTest : public ::testing::Test {
 public:
  using T = typename Where::Scalar;
  static constexpr Backend backend = Where::backend;
  /// An OpenCL device may be slow at many small launches: fewer shapes there, all inputs.
  static constexpr bool thorough = backend != Backend::opencl;

 protected:
  void SetUp() override {
    static const BackendStatus status = status_of(backend);
    if (!status.available) GTEST_SKIP() << qrane::to_string(backend) << " is absent: " << status.reason;
    if (sizeof(T) == 8 && !context().device().has_double)
      GTEST_SKIP() << "no double precision on " << context().device().name;
  }

  static const Context& context() { return shared_context(backend); }

  /// A host copy of a result, wherever it lives.
  static Dense<T> host(const Matrix<T>& a) { return host_of(context(), a); }
  static Dense<T> host_of(const Context& context, const Matrix<T>& a) {
    Dense<T> b(a.rows(), a.cols());
    if (!b.values.empty()) context.copy<T>(a.view(), b.view());
    return b;
  }
};

/// The code and sentence of the Error that `action` throws; a test failure when it throws none.
struct Thrown {
  bool happened = false;
  ErrorCode code{};
  std::string message;
};

template <class Action>
Thrown thrown_by(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  }
  return {};
}

/// `action` throws Error with this code, and the sentence contains every word.
template <class Action>
::testing::AssertionResult refuses(Action action, ErrorCode code, std::initializer_list<std::string> words) {
  const Thrown thrown = thrown_by(action);
  if (!thrown.happened) return ::testing::AssertionFailure() << "nothing was thrown";
  if (thrown.code != code)
    return ::testing::AssertionFailure() << "code " << static_cast<int>(thrown.code) << " instead of "
                                         << static_cast<int>(code) << ": " << thrown.message;
  for (const std::string& word : words)
    if (thrown.message.find(word) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << word << "' is not in: " << thrown.message;
  return ::testing::AssertionSuccess();
}

}  // namespace qrane::test
