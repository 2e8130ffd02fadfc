// SPDX-License-Identifier: Apache-2.0
// A text file, decompressed when it is a gzip file, as tokens with their line numbers. It is read piece by piece:
// memory does not grow with the file.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qrane::io {

/// Walks over a file line by line and token by token (blanks, tabs and carriage returns separate tokens). A token is
/// valid until the next call; of one longer than longest_token the first characters are given.
class TextFile {
 public:
  static constexpr std::size_t longest_token = 4096;

  /// Throws Error{file} for a missing, unreadable or corrupt file; reading on may throw it, too.
  explicit TextFile(const std::string& path);

  /// The next token of the current line; empty at its end.
  std::string_view next_on_line() {
    do {
      while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    } while (at_ == end_ && refill());
    const char* begin = at_;
    while (at_ != end_ && !ends_token(*at_)) ++at_;
    return at_ != end_ ? std::string_view(begin, static_cast<std::size_t>(at_ - begin)) : across_pieces(begin);
  }
  /// Steps over the end of the current line; false at the end of the text.
  bool next_line();
  /// The next token that is no comment (% to the end of its line), lines skipped as need be; empty at the end.
  std::string_view next() {
    for (;;) {
      const std::string_view token = next_on_line();
      if (!token.empty() && token.front() != '%') return token;
      if (!next_line()) return {};
    }
  }

  std::int64_t line() const { return line_; }  ///< 1-based
  bool at_end() { return at_ == end_ && !refill(); }
  /// The compressed file breaks off; known once its end was reached.
  bool truncated() const { return truncated_; }
  /// Tokens of the file, at most: from its size, and for a compressed one what is usual. For reserving memory.
  std::int64_t likely_tokens() const { return likely_tokens_; }

 private:
  struct Close {
    void operator()(gzFile f) const { gzclose_r(f); }
  };
  static bool ends_token(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  /// Reads the next piece; false at the end of the file.
  bool refill();
  /// The token that began at `begin` and reaches the end of the piece.
  std::string_view across_pieces(const char* begin);

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::vector<char> piece_;
  std::string token_;  ///< one that lay across pieces
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::int64_t line_ = 1;
  std::int64_t likely_tokens_ = 0;
  bool ended_ = false;
  bool truncated_ = false;
};

}  // namespace qrane::io
