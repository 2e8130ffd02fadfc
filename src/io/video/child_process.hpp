// SPDX-License-Identifier: Apache-2.0
// Another program at the other end of a pipe: started without a shell, reaped on every path.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace qrane::io {

/// One child with one pipe: we read its standard output, or we write its standard input. Its standard error goes to
/// an unnamed temporary file, which cannot fill up and block it as a second pipe could.
///
/// The child has a process group of its own, so that Ctrl-C reaches this program alone, which then decides what is
/// finished. The destructor kills a child that still runs.
class ChildProcess {
 public:
  enum class Direction { read, write };
  /// Standard input of a child that we read from: nothing, or our own.
  enum class Input { none, inherited };

  /// Throws Error{unavailable} when arguments[0] is not installed.
  ChildProcess(const std::vector<std::string>& arguments, Direction direction, Input input = Input::none);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads until `count` bytes are there or the child closes its end; how many came. `stop` is asked now and then while
  /// nothing comes: true throws Error{interrupted}.
  std::size_t read(void* bytes, std::size_t count, const std::function<bool()>& stop = {});
  /// False when the child closed its end; never raises SIGPIPE.
  bool write(const void* bytes, std::size_t count);
  /// Closes the pipe and waits: the exit status, or 128 + the signal that ended the child.
  int wait();
  /// The last line that the child wrote to standard error; empty when there is none.
  std::string last_words() const;
  /// Whether the end of what it wrote there (4096 bytes) contains the words.
  bool said(const std::string& words) const { return error_tail().find(words) != std::string::npos; }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  void close_pipe();
  std::string error_tail() const;

  pid_t pid_ = -1;
  int pipe_ = -1;
  int status_ = 0;
  std::unique_ptr<std::FILE, Close> errors_;
};

/// All that the program writes to standard output, and its exit status.
std::string output_of(const std::vector<std::string>& arguments, int& status, std::string& last_words);

}  // namespace qrane::io
