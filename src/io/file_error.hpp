// SPDX-License-Identifier: Apache-2.0
// How the file layer says what is wrong with a file.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <qrane/error.hpp>

namespace qrane::io {

/// The path for messages: "-" is "standard input".
inline std::string shown(const std::string& path) { return path == "-" ? "standard input" : path; }

/// "PATH: message".
template <class... Args>
[[noreturn]] void fail(const std::string& path, const Args&... message) {
  throw Error(ErrorCode::file, detail::concat(shown(path), ": ", message...));
}

/// "PATH:LINE: message", the form that editors and compilers use; line is 1-based.
template <class... Args>
[[noreturn]] void fail_at(const std::string& path, std::int64_t line, const Args&... message) {
  throw Error(ErrorCode::file, detail::concat(shown(path), ":", line, ": ", message...));
}

/// "PATH: MESSAGE: REASON" of the system. Memory that the system lacks is no fault of the file.
[[noreturn]] inline void fail_by_system(const std::string& path, const char* message, int code = errno) {
  throw Error(code == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::file,
              detail::concat(shown(path), ": ", message, ": ", std::strerror(code)));
}

/// A file that was begun could not be written to its end: a full disk, a reader of a pipe that went away.
class WriteError : public Error {
 public:
  explicit WriteError(const std::string& message) : Error(ErrorCode::file, message) {}
};

/// The system's words for errno ("No such file or directory").
inline std::string system_reason(int code = errno) { return std::strerror(code); }

/// Whether a name ends in an ending given in lower case, whatever its own case.
inline bool has_ending(const std::string& path, const char* ending) {
  const std::size_t length = std::strlen(ending);
  if (path.size() < length) return false;
  for (std::size_t k = 0; k < length; ++k) {
    const char c = path[path.size() - length + k];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != ending[k]) return false;
  }
  return true;
}

}  // namespace qrane::io
