// SPDX-License-Identifier: Apache-2.0
// What OpenCL devices do whole: nothing yet, so that every operation with a default takes it.
#pragma once

#include "opencl/basic.hpp"

namespace qrane::backend::opencl {}  // namespace qrane::backend::opencl
