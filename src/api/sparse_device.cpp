// SPDX-License-Identifier: Apache-2.0
#include "api/sparse_device.hpp"

#include <utility>

#include "cpu/whole.hpp"
#if QRANE_WITH_OPENCL
#include "opencl/whole.hpp"
#endif
#if QRANE_WITH_CUDA
#include "cuda/whole.hpp"
#endif
#include "sparse/device/numeric.hpp"

namespace qrane::detail {

template <class B, class T>
std::unique_ptr<sparse::Factors<T>> SparseDevice<B, T>::factors(const Queue& queue,
                                                                std::shared_ptr<const sparse::Symbolic> symbolic,
                                                                const sparse::NumericOptions& options, Index rhs_cols) {
  return std::make_unique<sparse::DeviceNumeric<B, T>>(queue, std::move(symbolic), options, rhs_cols);
}

template <class B, class T>
std::vector<std::int32_t> SparseDevice<B, T>::stages(const Queue& queue, const sparse::Symbolic& symbolic,
                                                     const sparse::NumericOptions& options, Index rhs_cols) {
  sparse::DeviceMemory<B, T> memory;
  memory.make_plan(queue, symbolic, options, rhs_cols);
  return memory.plan.staged() ? std::move(memory.plan.stage) : std::vector<std::int32_t>(symbolic.fronts.size(), 0);
}

template struct SparseDevice<backend::Cpu, float>;
template struct SparseDevice<backend::Cpu, double>;
#if QRANE_WITH_OPENCL
template struct SparseDevice<backend::OpenCL, float>;
template struct SparseDevice<backend::OpenCL, double>;
#endif
#if QRANE_WITH_CUDA
template struct SparseDevice<backend::Cuda, float>;
template struct SparseDevice<backend::Cuda, double>;
#endif

}  // namespace qrane::detail
