// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <io/file_error.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
constexpr std::string_view partial_mark = ".partial-";

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

/// Opens an empty file and locks it where the file system can. The kernel drops the lock when the process ends, however
/// it ends.
int open_locked(const char* partial) {
  for (;;) {
    const int fd = ::open(partial, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return fd;
    (void)::flock(fd, LOCK_EX);
    struct stat file {};
    // remove_abandoned of another process may have come between open and flock: then the name is free again
    if (::fstat(fd, &file) == 0 && file.st_nlink > 0 && ::ftruncate(fd, 0) == 0) return fd;
    const int reason = errno;
    ::close(fd);
    if (file.st_nlink > 0) {
      errno = reason;
      return -1;
    }
  }
}

/// Removes a partial file that no process has locked.
void remove_unlocked(const char* partial) {
  const int fd = ::open(partial, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat locked {
  }, named{};
  const bool mine = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &locked) == 0 && S_ISREG(locked.st_mode) &&
                    ::stat(partial, &named) == 0 && locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
  if (mine) ::unlink(partial);
  ::close(fd);
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
  partial_ = direct ? target_ : detail::concat(target_, partial_mark, ::getpid());
  if (!direct) remember(partial_.c_str());
  fd_ = direct ? ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : open_locked(partial_.c_str());
  if (fd_ < 0) {
    forget(partial_.c_str());
    refuse(path_, system_reason());
  }
  if (exists && !direct) (void)!::fchmod(fd_, old.st_mode & 07777);  // the old file's mode is a courtesy
}

PartialFile::~PartialFile() {
  if (!committed_ && partial_ != target_) ::unlink(partial_.c_str());
  if (fd_ >= 0) ::close(fd_);
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

void PartialFile::commit() {
  flush();
  // A failing disk is found out before the old file goes; file systems that cannot synchronize say so in other codes.
  const bool synced = partial_ == target_ || ::fsync(fd_) == 0;
  if (!synced && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) stop(path_);
  const int lock = ::dup(fd_);  // held until the file has its name
  const bool named = [&] {
    const int fd = std::exchange(fd_, -1);
    // Network file systems report a full disk only here.
    if (::close(fd) != 0 && errno != EINTR) return false;
    return partial_ == target_ || ::rename(partial_.c_str(), target_.c_str()) == 0;
  }();
  const int reason = errno;
  if (lock >= 0) ::close(lock);
  errno = reason;
  if (!named) stop(path_);
  committed_ = true;
}

void remove_partial_files() noexcept {
  for (const auto& slot : under_construction) {
    if (const char* name = slot.load()) ::unlink(name);
  }
}

void remove_abandoned(const std::string& directory, const std::function<bool(const std::string& name)>& ours) try {
  for (const auto& entry : fs::directory_iterator(directory.empty() ? "." : directory)) {
    const std::string name = entry.path().filename().string();
    const std::size_t at = name.rfind(partial_mark);
    if (at == std::string::npos || at + partial_mark.size() == name.size()) continue;
    const bool process = name.find_first_not_of("0123456789", at + partial_mark.size()) == std::string::npos;
    if (process && ours(name.substr(0, at))) remove_unlocked(entry.path().c_str());
  }
} catch (const fs::filesystem_error&) {  // a directory that cannot be listed
}

void remove_abandoned(const std::string& path) {
  const fs::path target = resolve_links(path);
  remove_abandoned(target.parent_path().string(), [&](const std::string& name) { return name == target.filename(); });
}

void write_file(const std::string& path, std::string_view bytes) {
  PartialFile file(path);
  file.write(bytes);
  file.commit();
}

void make_directories(const std::string& path) {
  std::error_code reason;
  fs::create_directories(path, reason);
  if (reason) fail(path, "cannot make the directory: ", reason.message());
  if (!fs::is_directory(path, reason)) fail(path, "cannot make the directory: it is a file");
}

}  // namespace qrane::io
