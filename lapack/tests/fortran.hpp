// SPDX-License-Identifier: Apache-2.0
// Fortran routines by name: those that libqrane_lapack.so exports, and those of the LAPACK underneath.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace qrane::test {

/// The routine `name` for T ("geqrf" -> "dgeqrf_"), with a suffix for 64-bit integers. Arguments are passed as they
/// are, the lengths of character arguments after them.
template <class T>
class Fortran {
 public:
  static Fortran exported(const std::string& name, const char* prefix = "", const char* suffix = "_") {
    static void* const library = dlopen(QRANE_LAPACK_LIBRARY, RTLD_NOW);
    return {library, prefix + symbol(name) + suffix};
  }
  static Fortran underneath(const std::string& name) {
    static void* const library = dlopen("liblapack.so.3", RTLD_NOW);
    return {library, symbol(name) + "_"};
  }

  template <class... A>
  void operator()(A... arguments) const {
    reinterpret_cast<void (*)(A..., std::size_t, std::size_t)>(function_)(arguments..., 1, 1);
  }

 private:
  Fortran(void* library, const std::string& name) : function_(library ? dlsym(library, name.c_str()) : nullptr) {
    if (!function_) throw std::runtime_error("no function " + name);
  }
  static std::string symbol(const std::string& name) { return (std::is_same_v<T, float> ? "s" : "d") + name; }

  void* function_;
};

}  // namespace qrane::test
