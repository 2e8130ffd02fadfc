// SPDX-License-Identifier: Apache-2.0
#include "api/sparse_device_engine.hpp"
#include "cpu/whole.hpp"

namespace qrane::detail {

template std::unique_ptr<sparse::Factors<float>> make_device_factors<backend::Cpu, float>(
    const backend::Cpu::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::unique_ptr<sparse::Factors<double>> make_device_factors<backend::Cpu, double>(
    const backend::Cpu::Queue&, std::shared_ptr<const sparse::Symbolic>, const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::Cpu, float>(const backend::Cpu::Queue&,
                                                                           const sparse::Symbolic&,
                                                                           const sparse::NumericOptions&, Index);
template std::vector<std::int32_t> plan_device_stages<backend::Cpu, double>(const backend::Cpu::Queue&,
                                                                            const sparse::Symbolic&,
                                                                            const sparse::NumericOptions&, Index);

}  // namespace qrane::detail
