// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. Each target is one reader: an Error is an answer, any other end is a find.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <qrane/error.hpp>

/// The entry point that libFuzzer and tests/fuzz/main.cpp call.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace qrane::fuzz {

/// Bytes under a name that can be opened, in memory.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

/// Runs a reader; its Errors are fine.
template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace qrane::fuzz
