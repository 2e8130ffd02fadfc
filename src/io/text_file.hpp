// SPDX-License-Identifier: Apache-2.0
// A text file in memory, decompressed when it is a gzip file, and its tokens with their line numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qrane::io {

struct TextFile {
  std::string text;
  /// The compressed file breaks off: `text` is what could be had.
  bool truncated = false;
};

/// At most `limit` bytes (0: all). Throws Error{file} for a missing, unreadable or corrupt file.
TextFile read_text_file(const std::string& path, std::size_t limit = 0);

/// Walks over text line by line and token by token (blanks, tabs and carriage returns separate tokens).
class Tokens {
 public:
  explicit Tokens(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  /// The next token of the current line; empty at its end.
  std::string_view next_on_line() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    const char* begin = at_;
    while (at_ != end_ && *at_ != ' ' && *at_ != '\n' && *at_ != '\t' && *at_ != '\r') ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  /// Steps over the end of the current line; false at the end of the text.
  bool next_line() {
    while (at_ != end_ && *at_ != '\n') ++at_;
    if (at_ == end_) return false;
    ++at_;
    ++line_;
    return true;
  }
  /// The next token that is no comment (% to the end of its line), lines skipped as need be; empty at the end.
  std::string_view next() {
    for (;;) {
      const std::string_view token = next_on_line();
      if (!token.empty() && token.front() != '%') return token;
      if (!next_line()) return {};
    }
  }

  std::int64_t line() const { return line_; }  ///< 1-based
  std::size_t bytes_left() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const char* at_;
  const char* end_;
  std::int64_t line_ = 1;
};

}  // namespace qrane::io
