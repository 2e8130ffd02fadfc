// SPDX-License-Identifier: Apache-2.0
#include "api/updated_engine.hpp"
#include "opencl/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<QRState<float>> make_updated(dense::Factorization<backend::OpenCL, float>&,
                                                      const plan::DeviceProfile&, Memory);
template std::unique_ptr<QRState<double>> make_updated(dense::Factorization<backend::OpenCL, double>&,
                                                       const plan::DeviceProfile&, Memory);
template std::unique_ptr<BatchUpdater<backend::OpenCL, float>> make_batch_updater(const backend::OpenCL::Queue&,
                                                                                  const plan::DeviceProfile&);
template std::unique_ptr<BatchUpdater<backend::OpenCL, double>> make_batch_updater(const backend::OpenCL::Queue&,
                                                                                   const plan::DeviceProfile&);

}  // namespace qrane::detail
