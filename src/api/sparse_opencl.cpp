// SPDX-License-Identifier: Apache-2.0
#include "api/sparse_device_engine.hpp"
#include "opencl/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<sparse::Factors<float>> make_device_factors<backend::OpenCL, float>(
    const backend::OpenCL::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::unique_ptr<sparse::Factors<double>> make_device_factors<backend::OpenCL, double>(
    const backend::OpenCL::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::OpenCL, float>(const backend::OpenCL::Queue&,
                                                                              const sparse::Symbolic&,
                                                                              const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::OpenCL, double>(const backend::OpenCL::Queue&,
                                                                               const sparse::Symbolic&,
                                                                               const sparse::NumericOptions&, Index);

}  // namespace qrane::detail
