// SPDX-License-Identifier: Apache-2.0
// What tests of files share: a directory of their own, and errors by code and words.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <qrane/error.hpp>

namespace qrane::test {

/// A fresh directory for each test, removed after it.
class InDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "qrane_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::size_t files() const {
    using std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(directory_iterator(directory_), directory_iterator()));
  }

  std::filesystem::path directory_;
};

/// Runs `action` and expects an Error with this code whose message begins with `begin` and contains `words`.
inline void expect_error(ErrorCode code, const std::string& begin, const std::string& words,
                         const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << begin << " ... " << words;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), code) << message;
    EXPECT_EQ(message.substr(0, begin.size()), begin);
    EXPECT_NE(message.find(words), std::string::npos) << message << "\nlacks: " << words;
  }
}

}  // namespace qrane::test
