// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <io/file_error.hpp>
#include <io/video/child_process.hpp>

extern char** environ;

namespace qrane::io {
namespace {

/// Attributes and file actions of posix_spawn, freed on every path.
struct SpawnSetup {
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, Direction direction, Input input)
    : errors_(std::tmpfile()) {
  const bool reading = direction == Direction::read;
  // A socket pair for writing: send() can be told not to raise SIGPIPE, write() to a pipe cannot.
  int ends[2];
  const int made = reading ? ::pipe2(ends, O_CLOEXEC) : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  if (made != 0) throw Error(ErrorCode::file, detail::concat("cannot make a pipe: ", system_reason()));
  pipe_ = ends[reading ? 0 : 1];
  const int childs = ends[reading ? 1 : 0];

  SpawnSetup setup;
  if (reading) {
    if (input == Input::none) posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&setup.actions, childs, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_adddup2(&setup.actions, childs, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&setup.actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  if (errors_) {
    ::fcntl(::fileno(errors_.get()), F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_adddup2(&setup.actions, ::fileno(errors_.get()), STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&setup.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&setup.attributes, &signals);
  for (const int s : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&signals, s);
  posix_spawnattr_setsigdefault(&setup.attributes, &signals);
  posix_spawnattr_setpgroup(&setup.attributes, 0);
  posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const int code = ::posix_spawnp(&pid_, argv[0], &setup.actions, &setup.attributes, argv.data(), environ);
  ::close(childs);
  if (code == 0) return;
  pid_ = -1;
  close_pipe();
  if (code == ENOENT) {
    throw Error(ErrorCode::unavailable,
                detail::concat("the program '", arguments[0], "' is not installed or not in PATH (on Debian and ",
                               "Ubuntu: apt-get install ffmpeg)"));
  }
  throw Error(ErrorCode::unavailable, detail::concat("cannot start '", arguments[0], "': ", system_reason(code)));
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  wait();
}

void ChildProcess::close_pipe() {
  if (pipe_ >= 0) ::close(pipe_);
  pipe_ = -1;
}

std::size_t ChildProcess::read(void* bytes, std::size_t count, const std::function<bool()>& stop) {
  std::size_t done = 0;
  while (done < count) {
    pollfd waiting{pipe_, POLLIN, 0};
    while (stop && ::poll(&waiting, 1, 100) <= 0) {
      detail::check(!stop(), ErrorCode::interrupted, "stopped while waiting for a frame");
    }
    const ssize_t got = ::read(pipe_, static_cast<char*>(bytes) + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool ChildProcess::write(const void* bytes, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t sent = ::send(pipe_, static_cast<const char*>(bytes) + done, count - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

int ChildProcess::wait() {
  close_pipe();
  if (pid_ <= 0) return status_;
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  // A parent that ignores SIGCHLD has its children reaped by the system: nothing is known then.
  if (reaped < 0) return status_ = 0;
  return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ChildProcess::error_tail() const {
  if (!errors_) return {};
  std::FILE* file = errors_.get();
  std::fseek(file, 0, SEEK_END);
  constexpr long tail = 4096;
  const long size = std::ftell(file);
  std::fseek(file, size > tail ? -tail : -size, SEEK_END);
  std::string text(static_cast<std::size_t>(size > tail ? tail : size), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

std::string ChildProcess::last_words() const {
  std::string text = error_tail();
  const std::size_t last = text.find_last_not_of("\r\n \t");
  if (last == std::string::npos) return {};
  text.resize(last + 1);
  return text.substr(text.find_last_of("\r\n") + 1);  // npos + 1 is 0: one line alone
}

std::string output_of(const std::vector<std::string>& arguments, int& status, std::string& last_words) {
  ChildProcess child(arguments, ChildProcess::Direction::read);
  std::string text;
  char part[4096];
  for (std::size_t got = 0; (got = child.read(part, sizeof(part))) > 0;) text.append(part, got);
  status = child.wait();
  last_words = child.last_words();
  return text;
}

}  // namespace qrane::io
