// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "cuda/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<QRState<float>> make_updated(dense::Factorization<backend::Cuda, float>&,
                                                      const plan::DeviceProfile&, Memory);
template std::unique_ptr<QRState<double>> make_updated(dense::Factorization<backend::Cuda, double>&,
                                                       const plan::DeviceProfile&, Memory);
template std::unique_ptr<BatchUpdater<backend::Cuda, float>> make_batch_updater(const backend::Cuda::Queue&,
                                                                                const plan::DeviceProfile&);
template std::unique_ptr<BatchUpdater<backend::Cuda, double>> make_batch_updater(const backend::Cuda::Queue&,
                                                                                 const plan::DeviceProfile&);

}  // namespace qrane::detail
