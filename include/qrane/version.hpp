// SPDX-License-Identifier: Apache-2.0
// The version of these headers: QRANE_VERSION_MAJOR, _MINOR, _PATCH, _STRING, and qrane::version().
#pragma once

#include <qrane/version.h>

namespace qrane {

/// "major.minor.patch" of the headers that the caller was compiled with.
constexpr const char* version() { return QRANE_VERSION_STRING; }

}  // namespace qrane
