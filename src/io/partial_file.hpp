// SPDX-License-Identifier: Apache-2.0
// Output files that appear whole or not at all: written beside their place, renamed into it at the end.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace qrane::io {

/// A file under construction at PATH.partial-PID, locked while it is.
///
/// A symbolic link is followed, so that the link stays; what exists and is no regular file (/dev/null, a fifo) is
/// written directly, since a rename would replace it; "-" is standard output. Faults are Error{file} naming PATH and
/// the reason.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// For another program that writes the file: the name to write to.
  const std::string& writable_path() const { return partial_; }
  /// What was written is in the file.
  void flush();
  /// Closes and renames. Without it the destructor removes what was written.
  void commit();

 private:
  std::string path_;     ///< as the caller named it, for messages
  std::string target_;   ///< links resolved
  std::string partial_;  ///< equals target_ when written directly
  std::string buffer_;
  int fd_ = -1;
  bool committed_ = false;
};

/// Removes what PartialFile's of this process have written and not committed; a signal handler may call it before the
/// process ends.
void remove_partial_files() noexcept;

/// Removes the partial files of a path that processes have left which were killed: those that no process has locked.
void remove_abandoned(const std::string& path);
/// The same of all files in a directory whose names, once complete, are `ours`.
void remove_abandoned(const std::string& directory, const std::function<bool(const std::string& name)>& ours);

/// The whole file at once (JSON, text).
void write_file(const std::string& path, std::string_view bytes);

/// Makes the directory and its parents. Throws Error{file} naming the path and the reason.
void make_directories(const std::string& path);

}  // namespace qrane::io
