// SPDX-License-Identifier: Apache-2.0
// Where calls run: a Place names a backend, device, stream and count of threads; its Sessions are contexts, each used
// by one thread at a time. A call takes a session that is free, or makes one, so that Python threads do not wait for
// each other. A factorization stays with the session it was made in, and waits for it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <qrane/qrane.hpp>

namespace qrane::python {

namespace nb = nanobind;

/// Whose arrays results are.
enum class Library { numpy, torch, cupy, jax };

struct Session {
  explicit Session(const ContextOptions& options) : context(options) {}
  Context context;
  std::mutex mutex;
};
using SessionPtr = std::shared_ptr<Session>;

/// The GIL given back and a session held, until the end of the scope. Ctrl-C leaves the calls in it.
class Held {
 public:
  explicit Held(class Place& place);
  explicit Held(SessionPtr session);
  const Context& context() const { return session_->context; }
  const SessionPtr& session() const { return session_; }

 private:
  nb::gil_scoped_release release_;
  PollScope poll_;
  SessionPtr session_;
  std::unique_lock<std::mutex> lock_;
};

class Place {
 public:
  Place(const std::string& backend, int device, std::uintptr_t stream, int threads, Library library);
  Library library() const { return library_; }
  int device() const { return options_.device; }
  Backend backend();
  /// A session that nobody holds, locked. Without the GIL.
  std::pair<SessionPtr, std::unique_lock<std::mutex>> take();
  /// After a fork: the contexts' threads are not in the child. They are left alone, and new ones are made.
  void forget();

 private:
  ContextOptions options_;
  Library library_;
  std::mutex mutex_;
  std::vector<SessionPtr> sessions_;
};

}  // namespace qrane::python
