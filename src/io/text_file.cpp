// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include <io/file_error.hpp>
#include <io/input_file.hpp>
#include <io/text_file.hpp>

namespace qrane::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18;
/// Text to compressed bytes, as matrices have it; more is read as well, with memory taken as it comes.
constexpr std::int64_t usual_compression = 8;

}  // namespace

TextFile::TextFile(const std::string& path) : path_(path) {
  std::int64_t bytes = 0;
  open_input(path, bytes);  // the messages of a file that cannot be read
  // zlib hands files that are not compressed through as they are.
  file_.reset(gzopen(seekable_path(path).c_str(), "rbe"));
  if (!file_) fail_by_system(path, "cannot read");
  gzbuffer(file_.get(), static_cast<unsigned>(piece_bytes));
  piece_.resize(piece_bytes);
  at_ = end_ = piece_.data();
  likely_tokens_ = (gzdirect(file_.get()) != 0 ? bytes : bytes * usual_compression) / 2 + 1;
}

bool TextFile::refill() {
  if (ended_) return false;
  const int got = gzread(file_.get(), piece_.data(), static_cast<unsigned>(piece_.size()));
  int code = Z_OK;
  const char* words = gzerror(file_.get(), &code);
  truncated_ = truncated_ || code == Z_BUF_ERROR;
  if (got < 0 && code == Z_MEM_ERROR) throw std::bad_alloc();
  if (got < 0 && code != Z_BUF_ERROR) {
    if (code == Z_ERRNO) fail_by_system(path_, "cannot read");
    std::string_view reason = words;  // zlib puts the name in front
    if (const std::size_t at = reason.rfind(": "); at != std::string_view::npos) reason.remove_prefix(at + 2);
    fail(path_, "cannot read: ", reason);
  }
  at_ = piece_.data();
  end_ = at_ + std::max(got, 0);
  ended_ = got <= 0;
  return !ended_;
}

std::string_view TextFile::across_pieces(const char* begin) {
  const auto append = [this](const char* from) {
    const auto length = static_cast<std::size_t>(at_ - from);
    token_.append(from, std::min(length, longest_token - token_.size()));
  };
  token_.clear();
  append(begin);
  while (at_ == end_ && refill()) {
    const char* const from = at_;
    while (at_ != end_ && !ends_token(*at_)) ++at_;
    append(from);
  }
  return token_;
}

bool TextFile::next_line() {
  for (;;) {
    while (at_ != end_ && *at_ != '\n') ++at_;
    if (at_ != end_) break;
    if (!refill()) return false;
  }
  ++at_;
  ++line_;
  return true;
}

}  // namespace qrane::io
