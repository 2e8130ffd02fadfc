// SPDX-License-Identifier: Apache-2.0
// What each file of bindings adds to the module qrane._core.
#pragma once

#include <nanobind/nanobind.h>

namespace qrane::python {
void bind_errors();
void bind_places(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
void bind_factors(nanobind::module_& m);
void bind_updatable(nanobind::module_& m);
void bind_sparse(nanobind::module_& m);
void bind_robust_pca(nanobind::module_& m);
}  // namespace qrane::python
