// SPDX-License-Identifier: Apache-2.0
#include "api/sparse_device_engine.hpp"
#include "cuda/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<sparse::Factors<float>> make_device_factors<backend::Cuda, float>(
    const backend::Cuda::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::unique_ptr<sparse::Factors<double>> make_device_factors<backend::Cuda, double>(
    const backend::Cuda::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::Cuda, float>(const backend::Cuda::Queue&,
                                                                            const sparse::Symbolic&,
                                                                            const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::Cuda, double>(const backend::Cuda::Queue&,
                                                                             const sparse::Symbolic&,
                                                                             const sparse::NumericOptions&, Index);

}  // namespace qrane::detail
