// SPDX-License-Identifier: Apache-2.0
// Files to read. Standard input ("-") and pipes are copied to an unnamed temporary file once, so that every reader may
// open them again and seek.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace qrane::io {

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// "-", or what is neither a regular file nor a directory: a pipe, a character device.
bool is_stream(const std::string& path);

/// The name under which the content of `path` can be opened and read with seeks: `path` itself but for a stream.
/// Throws Error{file} for what cannot be read, for a directory, and for a stream that holds no matrix.
std::string seekable_path(const std::string& path);

/// Opens seekable_path(path); `bytes` is its size.
File open_input(const std::string& path, std::int64_t& bytes);

/// All bytes of a file. Throws Error{file} where it has more than most_bytes.
std::string read_file(const std::string& path, std::int64_t most_bytes);

}  // namespace qrane::io
