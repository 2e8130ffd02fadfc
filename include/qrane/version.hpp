// SPDX-License-Identifier: Apache-2.0
// The version of these headers: QRANE_VERSION_MAJOR, _MINOR, _PATCH, _STRING, and qrane::version().
#pragma once

#include <qrane/export.h>
#include <qrane/version.h>

#if __cplusplus < 202002L
#error "qrane's C++ headers need C++20: compile with -std=c++20, or use the C interface, qrane/qrane.h"
#endif

namespace qrane {

/// "major.minor.patch" of the headers that the caller was compiled with.
constexpr const char* version() { return QRANE_VERSION_STRING; }

}  // namespace qrane
