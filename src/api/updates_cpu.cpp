// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "cpu/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<QRState<float>> make_updated(dense::Factorization<backend::Cpu, float>&,
                                                      const plan::DeviceProfile&, Memory);
template std::unique_ptr<QRState<double>> make_updated(dense::Factorization<backend::Cpu, double>&,
                                                       const plan::DeviceProfile&, Memory);
template std::unique_ptr<BatchUpdater<backend::Cpu, float>> make_batch_updater(const backend::Cpu::Queue&,
                                                                               const plan::DeviceProfile&);
template std::unique_ptr<BatchUpdater<backend::Cpu, double>> make_batch_updater(const backend::Cpu::Queue&,
                                                                                const plan::DeviceProfile&);

}  // namespace qrane::detail
