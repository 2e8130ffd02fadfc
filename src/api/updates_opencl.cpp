// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "opencl/whole.hpp"

namespace qrane::detail {
template struct Updates<backend::OpenCL, float>;
template struct Updates<backend::OpenCL, double>;
}  // namespace qrane::detail
