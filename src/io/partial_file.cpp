// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include <io/file_error.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

/// Names of files under construction, where a signal handler finds them without a lock; more than these at once are
/// not removed by it.
std::atomic<const char*> under_construction[16];

void remember(const char* name) {
  for (auto& slot : under_construction) {
    const char* none = nullptr;
    if (slot.compare_exchange_strong(none, name)) return;
  }
}

void forget(const char* name) {
  for (auto& slot : under_construction) {
    const char* mine = name;
    slot.compare_exchange_strong(mine, nullptr);
  }
}

/// Where the file cannot even be opened.
[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  fail(path == "-" ? "standard output" : path, "cannot write: ", reason);
}

/// Where writing stops.
[[noreturn]] void stop(const std::string& path) {
  throw WriteError(detail::concat(path == "-" ? "standard output" : path, ": cannot write: ", system_reason()));
}

/// The path with symbolic links followed when it exists, else the path itself.
std::string resolve_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

}  // namespace

PartialFile::PartialFile(const std::string& path) : path_(path), target_(resolve_links(path)) {
  if (path == "-") {
    target_ = partial_ = path;
    fd_ = ::dup(STDOUT_FILENO);
    if (fd_ < 0) refuse(path_, system_reason());
    return;
  }
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) refuse(path_, "it is a directory");
  // A rename would get past a read-only mark that its owner put there on purpose.
  if (exists && ::access(target_.c_str(), W_OK) != 0) refuse(path_, system_reason());
  const bool direct = exists && !S_ISREG(old.st_mode);
  partial_ = direct ? target_ : detail::concat(target_, ".partial-", ::getpid());
  if (!direct) remember(partial_.c_str());
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (direct ? 0 : O_TRUNC), 0666);
  if (fd_ < 0) {
    forget(partial_.c_str());
    refuse(path_, system_reason());
  }
  if (exists && !direct) (void)!::fchmod(fd_, old.st_mode & 07777);  // the old file's mode is a courtesy
}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_ && partial_ != target_) ::unlink(partial_.c_str());
  forget(partial_.c_str());
}

void PartialFile::write(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const std::size_t part = std::min(count, buffer_bytes - buffer_.size());
    buffer_.append(from, part);
    from += part;
    count -= part;
    if (buffer_.size() == buffer_bytes) flush();
  }
}

void PartialFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) stop(path_);
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

void PartialFile::close() {
  const int fd = fd_;
  fd_ = -1;
  // Network file systems report a full disk only here.
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) stop(path_);
}

void PartialFile::commit() {
  flush();
  // A failing disk is found out before the old file goes; file systems that cannot synchronize say so in other codes.
  const bool synced = partial_ == target_ || ::fsync(fd_) == 0;
  if (!synced && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) stop(path_);
  close();
  if (partial_ != target_ && ::rename(partial_.c_str(), target_.c_str()) != 0) {
    stop(path_);
  }
  committed_ = true;
}

void remove_partial_files() noexcept {
  for (const auto& slot : under_construction) {
    if (const char* name = slot.load()) ::unlink(name);
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  PartialFile file(path);
  file.write(bytes);
  file.commit();
}

void make_directories(const std::string& path) {
  std::error_code reason;
  std::filesystem::create_directories(path, reason);
  if (reason) fail(path, "cannot make the directory: ", reason.message());
  if (!std::filesystem::is_directory(path, reason)) fail(path, "cannot make the directory: it is a file");
}

}  // namespace qrane::io
