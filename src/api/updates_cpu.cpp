// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "cpu/whole.hpp"

namespace qrane::detail {
template struct Updates<backend::Cpu, float>;
template struct Updates<backend::Cpu, double>;
}  // namespace qrane::detail
