// SPDX-License-Identifier: Apache-2.0
#include "paper/cuda.hpp"
#include "paper/updates/updated.hpp"

namespace qrane::paper {

template <class T>
Updates<T> make_cuda_updates(const Context& context, MatrixView<const T> a, QForm form) {
  return make_updates<backend::Cuda, T>(backend::cuda::Queue(context.device().index), context, a, form);
}
template Updates<float> make_cuda_updates(const Context&, MatrixView<const float>, QForm);
template Updates<double> make_cuda_updates(const Context&, MatrixView<const double>, QForm);

}  // namespace qrane::paper
