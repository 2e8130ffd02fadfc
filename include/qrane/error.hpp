// SPDX-License-Identifier: Apache-2.0
// The one exception type of qrane. Nothing in the library calls exit or prints.
#pragma once

#include <qrane/version.hpp>

#include <cstdint>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace qrane {

/// What went wrong. The values are the return codes of the C interface (qrane.h).
enum class ErrorCode : int {
  invalid_argument = 1,  ///< a size, leading dimension, option or view that makes no sense
  not_finite = 2,        ///< NaN or Inf where a checked entry point refuses it
  file = 3,              ///< missing, truncated, malformed or unwritable file
  unavailable = 4,       ///< backend or device not built in, not found, or without the scalar type
  out_of_memory = 5,     ///< the message says how many bytes were needed and free
  rank_deficient = 6,    ///< a result that needs full rank was asked of a matrix without it
  device = 7,            ///< the device reported a failure
  interrupted = 8,       ///< a callback asked to stop
  not_converged = 9,     ///< an iteration reached its limit where that is an error
};

/// Error with a code and one sentence that names the argument and its value, or the file and its line.
///
/// Memory for matrices that cannot be had is Error{out_of_memory}, with the bytes needed. Where the host lacks the
/// little that is needed beside them, std::bad_alloc passes through (C: QRANE_OUT_OF_MEMORY). Both leave all objects
/// usable.
class QRANE_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

namespace detail {

/// All arguments, written one after the other. Streams keep to themselves that memory ran out, and the text would be
/// cut off.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  if (!out) throw std::bad_alloc();
  return out.str();
}

/// Throws Error{code} with the concatenated message unless the condition holds.
template <class... Args>
void check(bool condition, ErrorCode code, const Args&... message) {
  if (!condition) throw Error(code, concat(message...));
}

/// The known word that is nearest to a misspelled one; empty where none is near.
QRANE_API std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace detail
}  // namespace qrane
