// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <io/file_error.hpp>
#include <io/input_file.hpp>

namespace qrane::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int release() { return std::exchange(fd, -1); }
  int fd;
};

/// Reads until `count` bytes are there or the stream ends.
std::size_t read_some(const std::string& path, int fd, char* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(fd, to + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_by_system(path, "cannot read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_all(const std::string& path, int fd, const char* from, std::size_t count) {
  while (count > 0) {
    const ssize_t put = ::write(fd, from, count);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_by_system(path, "cannot copy it to a temporary file");
    from += put;
    count -= static_cast<std::size_t>(put);
  }
}

/// Whether the first bytes are those of a .npy, Matrix Market or gzip file: an endless stream is not worth a copy.
bool looks_like_a_matrix(std::string_view head) {
  return head.starts_with("\x93NUMPY") || head.starts_with("%%") || head.starts_with("\x1f\x8b");
}

/// The descriptor of an unnamed temporary file with all that the stream holds.
int copy_of(const std::string& path) {
  const Descriptor stream(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (stream.fd < 0) fail_by_system(path, "cannot read");
  const char* const directory = std::getenv("TMPDIR");
  std::string name = detail::concat(directory != nullptr && *directory != '\0' ? directory : "/tmp", "/qrane-XXXXXX");
  Descriptor copy(::mkostemp(name.data(), O_CLOEXEC));
  if (copy.fd < 0) fail_by_system(path, "cannot copy it to a temporary file");
  ::unlink(name.c_str());
  std::vector<char> piece(piece_bytes);
  for (bool first = true;; first = false) {
    const std::size_t got = read_some(path, stream.fd, piece.data(), piece.size());
    if (first && !looks_like_a_matrix({piece.data(), got})) fail(path, "neither a .npy nor a Matrix Market file");
    write_all(path, copy.fd, piece.data(), got);
    if (got < piece.size()) return copy.release();
  }
}

}  // namespace

bool is_stream(const std::string& path) {
  struct stat status {};
  return path == "-" || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

std::string seekable_path(const std::string& path) {
  struct stat status {};
  if (path != "-" && ::stat(path.c_str(), &status) != 0) fail_by_system(path, "cannot read");
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read: it is a directory");
  if (!is_stream(path)) return path;
  static std::mutex mutex;
  static std::map<std::string, int> copies;  // open until the program ends: a stream can be read once only
  const std::lock_guard lock(mutex);
  const auto found = copies.find(path);
  const int fd = found != copies.end() ? found->second : copies.emplace(path, copy_of(path)).first->second;
  return detail::concat("/proc/self/fd/", fd);
}

File open_input(const std::string& path, std::int64_t& bytes) {
  File file(std::fopen(seekable_path(path).c_str(), "rbe"));
  struct stat status {};
  if (!file || ::fstat(::fileno(file.get()), &status) != 0) fail_by_system(path, "cannot read");
  bytes = status.st_size;
  return file;
}

std::string read_file(const std::string& path, std::int64_t most_bytes) {
  std::int64_t size = 0;
  const File file = open_input(path, size);
  if (size > most_bytes) fail(path, "it has ", size, " bytes; at most ", most_bytes, " are read");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get()) != 0) fail_by_system(path, "cannot read");
  return bytes;
}

}  // namespace qrane::io
