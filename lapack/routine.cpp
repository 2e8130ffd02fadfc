// SPDX-License-Identifier: Apache-2.0
// Finding the LAPACK underneath, and the report at the end of the process.
//
// RTLD_NEXT looks only at what was loaded with the program: a Python module's LAPACK is loaded later, for that module
// alone. So every loaded object is asked for the symbol, in the order of loading, and an answer from this library
// itself is passed over.
#include <lapack/routine.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <lapack/session.hpp>

namespace qrane::lapack {
namespace {

const void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* find_underneath(const char* symbol) {
  std::vector<std::string> paths;
  // The loader is locked in here; objects are opened afterwards.
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* list) {
        if (object->dlpi_name && *object->dlpi_name)
          static_cast<std::vector<std::string>*>(list)->push_back(object->dlpi_name);
        return 0;
      },
      &paths);
  const void* const own = object_of(reinterpret_cast<const void*>(&find_underneath));
  for (const std::string& path : paths) {
    void* const object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!object) continue;
    void* const found = dlsym(object, symbol);
    dlclose(object);  // the reference that dlopen took, not the object
    if (found && object_of(found) != own) return found;
  }
  return nullptr;
}

/// The routines that were counted, newest first.
std::atomic<Routine*> counted{nullptr};

const char* report_path() {
  static const char* const path = std::getenv("QRANE_LAPACK_REPORT");
  return path;
}

}  // namespace

bool reporting() { return report_path() != nullptr; }

void* Routine::look_up() {
  void* const found = find_underneath(symbol_);
  if (!found) {
    std::fprintf(stderr, "libqrane_lapack: no loaded library has %s\n", symbol_);
    std::abort();
  }
  next_.store(found, std::memory_order_release);
  return found;
}

void Routine::count(bool taken, std::chrono::nanoseconds time) {
  Count& c = taken ? taken_ : forwarded_;
  c.calls.fetch_add(1, std::memory_order_relaxed);
  c.nanoseconds.fetch_add(time.count(), std::memory_order_relaxed);
  if (listed_.exchange(true)) return;
  other_ = counted.load();
  while (!counted.compare_exchange_weak(other_, this)) {
  }
}

/// At the end of the process, lines "ROUTINE WHERE CALLS SECONDS" are appended to the file QRANE_LAPACK_REPORT. One
/// write, so that several processes can share the file.
class Report {
 public:
  ~Report() {
    const char* const path = report_path();
    std::string lines;
    for (const Routine* r = counted.load(); r && path; r = r->other_) {
      add(lines, *r, r->taken_, Session::backend_name());
      add(lines, *r, r->forwarded_, "lapack");
    }
    if (lines.empty()) return;
    const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    (void)!::write(file, lines.data(), lines.size());
    ::close(file);
  }

 private:
  static void add(std::string& lines, const Routine& routine, const Routine::Count& count, const char* where) {
    if (count.calls == 0) return;
    char line[160];
    std::snprintf(line, sizeof line, "%s %s %lld %.9f\n", routine.label_, where,
                  static_cast<long long>(count.calls.load()), 1e-9 * static_cast<double>(count.nanoseconds.load()));
    lines += line;
  }
};

namespace {
const Report report;
}

}  // namespace qrane::lapack
