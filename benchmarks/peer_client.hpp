// SPDX-License-Identifier: Apache-2.0
// qrane bench's end of a peer program (common/protocol.hpp): a child process that answers one line a request.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "common/protocol.hpp"

namespace qrane::bench {

/// A peer program that runs. The child has a process group of its own, so that Ctrl-C reaches qrane alone; the
/// destructor ends it.
class PeerProcess {
 public:
  /// Starts arguments[0] with `environment` ("NAME=value") added to this process's own.
  /// Throws std::runtime_error when it cannot be started.
  PeerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Sends a line and waits for the reply. Throws std::runtime_error with the peer's words for "error ...", when the
  /// program died, did not answer within `timeout_seconds`, or when `interrupted` says so; in the last three cases
  /// the child is gone.
  Message ask(const std::string& request, double timeout_seconds, const std::function<bool()>& interrupted);
  bool alive() const { return pid_ > 0; }

 private:
  void end();

  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string received_;
};

}  // namespace qrane::bench
