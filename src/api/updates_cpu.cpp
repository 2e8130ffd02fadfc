// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "backend/cpu/queue.hpp"

namespace qrane::detail {

template std::unique_ptr<QRState<float>> make_updated(dense::Factorization<backend::Cpu, float>&,
                                                      const plan::DeviceProfile&, Memory);
template std::unique_ptr<QRState<double>> make_updated(dense::Factorization<backend::Cpu, double>&,
                                                       const plan::DeviceProfile&, Memory);

}  // namespace qrane::detail
