// SPDX-License-Identifier: Apache-2.0
#include "paper/cpu.hpp"
#include "paper/updates/updated.hpp"

namespace qrane::paper {

template <class T>
Updates<T> make_cpu_updates(const Context& context, MatrixView<const T> a, QForm form) {
  return make_updates<backend::Cpu, T>(backend::cpu::Queue(context.engine()->host_threads()), context, a, form);
}
template Updates<float> make_cpu_updates(const Context&, MatrixView<const float>, QForm);
template Updates<double> make_cpu_updates(const Context&, MatrixView<const double>, QForm);

}  // namespace qrane::paper
