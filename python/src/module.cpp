// SPDX-License-Identifier: Apache-2.0
// qrane._core: qrane's functions on prepared arrays. What users call is in qrane/*.py, which checks and converts
// arguments and names them in errors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "session.hpp"

namespace qrane::python {

namespace {

/// qrane's error codes as the exceptions that SciPy raises for the like.
nb::handle exception_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::out_of_memory: return PyExc_MemoryError;
    case ErrorCode::file: return PyExc_OSError;
    case ErrorCode::device: return PyExc_RuntimeError;
    case ErrorCode::interrupted: return PyExc_KeyboardInterrupt;
    default: return PyExc_ValueError;
  }
}

nb::list backend_list() {
  nb::list out;
  for (const BackendStatus& status : backends()) {
    nb::dict entry;
    entry["backend"] = to_string(status.backend);
    entry["available"] = status.available;
    entry["reason"] = status.reason;
    nb::list names;
    for (const DeviceInfo& device : status.devices) names.append(device.name);
    entry["devices"] = names;
    out.append(entry);
  }
  return out;
}

}  // namespace

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::rank_deficient || error.code() == ErrorCode::not_converged)
        PyErr_SetString(nb::module_::import_("numpy.linalg").attr("LinAlgError").ptr(), error.what());
      else
        PyErr_SetString(exception_of(error.code()).ptr(), error.what());
    }
  });
}

void bind_places(nb::module_& m) {
  nb::enum_<Library>(m, "Library")
      .value("numpy", Library::numpy)
      .value("torch", Library::torch)
      .value("cupy", Library::cupy)
      .value("jax", Library::jax);
  nb::class_<Place>(m, "Place")
      .def(nb::init<const std::string&, int, std::uintptr_t, int, Library>(), nb::arg("backend"), nb::arg("device"),
           nb::arg("stream"), nb::arg("threads"), nb::arg("library"))
      .def_prop_ro("backend", [](Place& place) { return std::string(to_string(place.backend())); })
      .def("forget", &Place::forget);
  m.def("backends", &backend_list);
  m.attr("version") = version();
}

}  // namespace qrane::python

NB_MODULE(_core, m) {
  using namespace qrane::python;
  bind_errors();
  bind_places(m);
  bind_dense(m);
  bind_factors(m);
  bind_updatable(m);
  bind_sparse(m);
  bind_robust_pca(m);
}
