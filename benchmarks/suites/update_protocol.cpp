// SPDX-License-Identifier: Apache-2.0
// The paper's protocol (Andrew, Dingle, section 4): from the start of the transfers of Q (where it is kept), R and d to
// the end of the back substitution; against that a whole least-squares solution from the start of the transfer of the
// updated matrix and right-hand side. The transfers alone are timed once for all cases of a matrix and a form.
#include <qrane/least_squares.hpp>

#include "suites/update_cases.hpp"

namespace qrane::bench {

template <class T>
void UpdateCases<T>::time_protocol(const UpdateShape& update, const UpdatedMatrix<T>& matrix, UpdateCase& result) {
  const Context& context = session_.context();
  const UpdateSubject<T> shared = subject(update, update.ways.front());
  std::optional<UpdatableQR<T>> with_b;  // where the shared one does not carry the right-hand side
  const auto start = [&]() -> UpdateSubject<T> {
    if (attached_) return shared;
    with_b.emplace(fresh(update.form, true));
    return {UpdateWay::automatic, *with_b, nullptr};
  };
  const bool first = transfers_.host.empty();
  if (first) {
    const UpdatableQR<T>& g = start().f;
    if (has_q(update.form)) transfers_.host.push_back(context.to_host(g.q()));
    transfers_.host.push_back(context.to_host(g.r()));
    transfers_.host.push_back(context.to_host(g.projected()));
    for (const Matrix<T>& factor : transfers_.host)
      transfers_.device.push_back(context.template allocate<T>(factor.rows(), factor.cols()));
  }
  const auto transfer = [&] {
    for (std::size_t i = 0; i < transfers_.host.size(); ++i)
      context.template copy<T>(std::as_const(transfers_.host[i]).view(), transfers_.device[i].view());
  };
  for (int run = first ? -1 : 0; run < 5 && !session_.interrupted(); ++run) {
    const UpdateSubject<T> g = start();
    const double ms = time_ms(g, [&] {
      transfer();
      g.forward(matrix);
      g.f.solve();
    });
    if (attached_) take_back(g, matrix);
    if (run < 0) continue;
    result.protocol_ms.push_back(ms);
    if (first) transfers_.samples_ms.push_back(session_.time_ms(transfer));
  }
  result.transfer_ms = transfers_.samples_ms;
  result.full_protocol_ms = whole_solutions(matrix);
}

template <class T>
const std::vector<double>& UpdateCases<T>::whole_solutions(const UpdatedMatrix<T>& matrix) {
  const MatrixView<const T> after = matrix.after();
  std::vector<double>& samples = whole_solutions_[{after.rows, after.cols}];
  if (!samples.empty()) return samples;
  const Context& context = session_.context();
  const Matrix<T> a = context.to_host(after), b = context.to_host(matrix.b_after());
  Matrix<T> device_a = context.template allocate<T>(a.rows(), a.cols());
  Matrix<T> device_b = context.template allocate<T>(b.rows(), 1);
  for (int run = -1; run < 5 && !session_.interrupted(); ++run) {
    const double ms = session_.time_ms([&] {
      context.template copy<T>(a.view(), device_a.view());
      context.template copy<T>(b.view(), device_b.view());
      least_squares<T>(context, std::as_const(device_a).view(), std::as_const(device_b).view());
    });
    if (run >= 0) samples.push_back(ms);
  }
  return samples;
}

template void UpdateCases<float>::time_protocol(const UpdateShape&, const UpdatedMatrix<float>&, UpdateCase&);
template void UpdateCases<double>::time_protocol(const UpdateShape&, const UpdatedMatrix<double>&, UpdateCase&);

}  // namespace qrane::bench
