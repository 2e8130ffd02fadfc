// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "cuda/whole.hpp"

namespace qrane::detail {
template struct Updates<backend::Cuda, float>;
template struct Updates<backend::Cuda, double>;
}  // namespace qrane::detail
