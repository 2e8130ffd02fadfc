// SPDX-License-Identifier: Apache-2.0
#include "paper/updates/updates.hpp"

namespace qrane::paper {

template <class T>
Updates<T> make_cpu_updates(const Context& context, MatrixView<const T> a, QForm form);
template <class T>
Updates<T> make_opencl_updates(const Context& context, MatrixView<const T> a, QForm form);
template <class T>
Updates<T> make_cuda_updates(const Context& context, MatrixView<const T> a, QForm form);

const char* to_string(Method method) { return method == Method::paper ? "paper" : "paper_dense"; }

template <class T>
Updates<T> make_updates(const Context& context, MatrixView<const T> a, QForm form) {
#if QRANE_WITH_CUDA
  if (context.backend() == Backend::cuda) return make_cuda_updates<T>(context, a, form);
#endif
#if QRANE_WITH_OPENCL
  if (context.backend() == Backend::opencl) return make_opencl_updates<T>(context, a, form);
#endif
  return make_cpu_updates<T>(context, a, form);
}
template Updates<float> make_updates(const Context&, MatrixView<const float>, QForm);
template Updates<double> make_updates(const Context&, MatrixView<const double>, QForm);

}  // namespace qrane::paper
