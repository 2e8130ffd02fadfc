// SPDX-License-Identifier: Apache-2.0
// The C interface of robust PCA (qrane_robust_pca.h) over qrane::robust_pca.
#include "api/c/c_interface.hpp"

namespace {

using namespace qrane::c_interface;

static_assert(QRANE_ROBUST_PCA_INEXACT_ALM == static_cast<int>(qrane::RobustPcaMethod::inexact_alm));
static_assert(QRANE_ROBUST_PCA_ALTERNATING == static_cast<int>(qrane::RobustPcaMethod::alternating));

qrane::RobustPcaOptions options_of(const qrane_robust_pca_options* given) {
  const auto o = read_struct(given, qrane_robust_pca_options QRANE_ROBUST_PCA_OPTIONS_INIT, "options");
  check_range("options->method", o.method, QRANE_ROBUST_PCA_ALTERNATING);
  check_range("options->algorithm", o.algorithm, QRANE_ALGORITHM_HOUSEHOLDER);
  check_range("options->max_iterations", o.max_iterations, std::numeric_limits<std::int32_t>::max());
  qrane::RobustPcaOptions options;
  options.method = static_cast<qrane::RobustPcaMethod>(o.method);
  options.algorithm = static_cast<qrane::Algorithm>(o.algorithm);
  if (o.max_iterations > 0) options.max_iterations = o.max_iterations;
  options.check_finite = o.check_finite != 0;
  options.relative_tolerance = o.relative_tolerance;
  options.lambda_multiplier = o.lambda_multiplier;
  options.mu = o.mu;
  options.rho = o.rho;
  if (o.on_iteration != nullptr)
    options.on_iteration = [call = o.on_iteration, user = o.user](const qrane::RobustPcaProgress& p) {
      const qrane_robust_pca_progress progress{p.iteration, 0, p.rank, p.residual, p.mu, p.seconds};
      return call(&progress, user) == 0;
    };
  return options;
}

template <class T>
int robust_pca(const char* function, qrane_context* context, const MatrixOf<T>* m,
               const qrane_robust_pca_options* options, const MatrixOf<T>* low_rank, const MatrixOf<T>* sparse,
               qrane_robust_pca_info* info) {
  return guarded(function, [&] {
    check_not_null(context, "context");
    const qrane::Context& c = context->context;
    if (info != nullptr) check_struct(info, "info");
    const auto matrix = view_of<T>(c, m, "m");
    const auto target = [&](const MatrixOf<T>* a, const char* name) {
      const auto view = view_of<T>(c, a, name);
      check_shape(name, view.rows, view.cols, matrix.rows, matrix.cols);
      return view;
    };
    qrane::MatrixView<T> l, s;
    if (low_rank != nullptr) l = target(low_rank, "low_rank");
    if (sparse != nullptr) s = target(sparse, "sparse");
    const qrane::RobustPca<T> found = qrane::robust_pca<T>(c, matrix, options_of(options));
    if (low_rank != nullptr) c.copy(found.low_rank, l);
    if (sparse != nullptr) c.copy(found.sparse, s);
    if (info != nullptr)
      write_struct(qrane_robust_pca_info{sizeof(qrane_robust_pca_info), found.iterations, found.converged, found.rank,
                                         found.residual, found.seconds},
                   info);
  });
}

}  // namespace

extern "C" {

int qrane_robust_pca_s(qrane_context* context, const qrane_matrix_s* m, const qrane_robust_pca_options* options,
                       const qrane_matrix_s* low_rank, const qrane_matrix_s* sparse, qrane_robust_pca_info* info) {
  return robust_pca<float>(__func__, context, m, options, low_rank, sparse, info);
}
int qrane_robust_pca_d(qrane_context* context, const qrane_matrix_d* m, const qrane_robust_pca_options* options,
                       const qrane_matrix_d* low_rank, const qrane_matrix_d* sparse, qrane_robust_pca_info* info) {
  return robust_pca<double>(__func__, context, m, options, low_rank, sparse, info);
}

}  // extern "C"
