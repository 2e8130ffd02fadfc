// SPDX-License-Identifier: Apache-2.0
#include "peer_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace qrane::bench {
namespace {

std::runtime_error fault(const std::string& what, int code) {
  return std::runtime_error(what + ": " + std::strerror(code));
}

std::string name_of(const std::string& entry) { return entry.substr(0, entry.find('=')); }

/// This process's environment with `added` replacing or following its entries.
std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> entries = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& own : added) replaced = replaced || name_of(own) == name_of(*entry);
    if (!replaced) entries.emplace_back(*entry);
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

PeerProcess::PeerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  // Sockets rather than pipes: a write to a dead child is then an error here (MSG_NOSIGNAL) and not a signal.
  int input[2], output[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0) throw fault("socketpair", errno);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, output) != 0) {
    const int code = errno;
    close(input[0]), close(input[1]);
    throw fault("socketpair", code);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = arguments, entries = merged_environment(environment);
  const int code = posix_spawn(&pid_, arguments[0].c_str(), &actions, &attributes, pointers_to(words).data(),
                               pointers_to(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(input[0]), close(output[1]);
  to_child_ = input[1];
  from_child_ = output[0];
  if (code != 0) {
    pid_ = -1;
    close(to_child_), close(from_child_);
    throw fault("cannot start " + arguments[0], code);
  }
}

PeerProcess::~PeerProcess() { end(); }

void PeerProcess::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(to_child_), close(from_child_);
  pid_ = -1;
}

Message PeerProcess::ask(const std::string& request, double timeout_seconds, const std::function<bool()>& interrupted) {
  if (!alive()) throw std::runtime_error("the peer program ended before");
  const std::string line = request + "\n";
  if (send(to_child_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    end();
    throw std::runtime_error("the peer program ended");
  }
  const auto start = std::chrono::steady_clock::now();
  std::size_t newline;
  while ((newline = received_.find('\n')) == std::string::npos) {
    if (interrupted && interrupted()) {
      end();
      throw std::runtime_error("interrupted");
    }
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > timeout_seconds) {
      end();
      throw std::runtime_error("no answer within " + std::to_string(static_cast<int>(timeout_seconds)) + " s");
    }
    pollfd waiting{from_child_, POLLIN, 0};
    const int ready = poll(&waiting, 1, 200);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char buffer[4096];
    const ssize_t count = ready < 0 ? -1 : read(from_child_, buffer, sizeof buffer);
    if (count <= 0) {
      end();
      throw std::runtime_error("the peer program ended without an answer");
    }
    received_.append(buffer, static_cast<std::size_t>(count));
  }
  Message reply(received_.substr(0, newline));
  received_.erase(0, newline + 1);
  if (reply.verb != "ok") throw std::runtime_error(reply.text.empty() ? "an answer without meaning" : reply.text);
  return reply;
}

}  // namespace qrane::bench
