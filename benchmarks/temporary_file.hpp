// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <qrane/error.hpp>

namespace qrane::bench {

/// A path that no other file has, for what a peer reads; the file is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& ending) {
    static int count = 0;
    const std::string name = detail::concat("qrane-bench-", getpid(), "-", ++count, ".", ending);
    path_ = (std::filesystem::temp_directory_path() / name).string();
    if (path_.find_first_of(" \t\n") != std::string::npos)
      throw std::runtime_error("the folder of temporary files has a blank in its name: " + path_);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace qrane::bench
