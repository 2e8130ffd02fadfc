// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <chrono>

namespace qrane::python {

namespace {

/// Lets Python's signal handlers run every 50 ms; what they raise (KeyboardInterrupt) leaves the call.
class SignalCheck {
 public:
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

Held::Held(Place& place) : poll_(SignalCheck()) { std::tie(session_, lock_) = place.take(); }
Held::Held(SessionPtr session) : poll_(SignalCheck()), session_(std::move(session)), lock_(session_->mutex) {}

Place::Place(const std::string& backend, int device, std::uintptr_t stream, int threads, Library library)
    : library_(library) {
  options_.backend = backend_from_string(backend);
  options_.device = device;
  options_.stream = reinterpret_cast<void*>(stream);
  options_.threads = threads;
}

Backend Place::backend() { return Held(*this).context().backend(); }

std::pair<SessionPtr, std::unique_lock<std::mutex>> Place::take() {
  {
    const std::lock_guard guard(mutex_);
    for (const SessionPtr& session : sessions_) {
      std::unique_lock lock(session->mutex, std::try_to_lock);
      if (lock) return {session, std::move(lock)};
    }
  }
  auto session = std::make_shared<Session>(options_);
  std::unique_lock lock(session->mutex);
  const std::lock_guard guard(mutex_);
  sessions_.push_back(session);
  return {std::move(session), std::move(lock)};
}

void Place::forget() {
  new std::vector<SessionPtr>(std::move(sessions_));  // never destroyed: that would join threads that are not there
  sessions_.clear();
}

}  // namespace qrane::python
