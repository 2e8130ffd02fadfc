// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace qrane::python {

namespace {

/// (low rank, sparse, rank, iterations, residual, converged)
template <class T>
nb::tuple robust_pca(Place& place, const Array& a, const RobustPcaOptions& options) {
  const auto view = matrix_of<T>(a, "a");
  RobustPca<T> out;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    out = qrane::robust_pca<T>(held.context(), view, options);
    if (place.library() == Library::jax) held.context().synchronize();
  }
  return nb::make_tuple(to_array(place, session, std::move(out.low_rank)),
                        to_array(place, session, std::move(out.sparse)), out.rank, out.iterations, out.residual,
                        out.converged);
}

/// What Python's callback is told, after signals have been looked at: returns whether to go on.
bool report(const nb::object& callback, const RobustPcaProgress& progress) {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (callback.is_none()) return true;
  const nb::object more = callback(progress.iteration, progress.residual, progress.rank);
  return more.is_none() || nb::cast<bool>(more);
}

}  // namespace

void bind_robust_pca(nb::module_& m) {
  m.def(
      "robust_pca",
      [](Place& place, const Array& a, const std::string& method, double rtol, int max_iterations,
         double lambda_multiplier, const nb::object& callback, bool check_finite) {
        RobustPcaOptions options;
        options.method = method == "alternating" ? RobustPcaMethod::alternating : RobustPcaMethod::inexact_alm;
        options.relative_tolerance = rtol;
        options.max_iterations = max_iterations;
        options.lambda_multiplier = lambda_multiplier;
        options.check_finite = check_finite;
        options.on_iteration = [&callback](const RobustPcaProgress& progress) { return report(callback, progress); };
        return by_scalar(a, [&](auto t) { return robust_pca<decltype(t)>(place, a, options); });
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace qrane::python
