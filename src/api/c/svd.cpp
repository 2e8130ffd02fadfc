// SPDX-License-Identifier: Apache-2.0
// The C interface of the SVD (qrane_svd.h) over qrane::svd.
#include "api/c/c_interface.hpp"

namespace {

using namespace qrane::c_interface;

template <class T>
int svd(const char* function, qrane_context* context, const MatrixOf<T>* a, const qrane_svd_options* given,
        const MatrixOf<T>* u, const MatrixOf<T>* s, const MatrixOf<T>* vt, qrane_svd_info* info) {
  return guarded(function, [&] {
    check_not_null(context, "context");
    const qrane::Context& c = context->context;
    const auto o = read_struct(given, qrane_svd_options QRANE_SVD_OPTIONS_INIT, "options");
    check_range("options->algorithm", o.algorithm, QRANE_ALGORITHM_HOUSEHOLDER);
    if (info != nullptr) check_struct(info, "info");
    const auto matrix = view_of<T>(c, a, "a");
    const qrane::Index k = std::min(matrix.rows, matrix.cols);
    const auto values = view_of<T>(c, s, "s");
    check_shape("s", values.rows, values.cols, k, 1);
    qrane::MatrixView<T> left, right;
    if (u != nullptr) {
      left = view_of<T>(c, u, "u");
      check_shape("u", left.rows, left.cols, matrix.rows, k);
    }
    if (vt != nullptr) {
      right = view_of<T>(c, vt, "vt");
      check_shape("vt", right.rows, right.cols, k, matrix.cols);
    }
    qrane::SvdOptions options;
    options.vectors = u != nullptr || vt != nullptr;
    options.algorithm = static_cast<qrane::Algorithm>(o.algorithm);
    options.check_finite = o.check_finite != 0;
    const qrane::Svd<T> found = qrane::svd<T>(c, matrix, options);
    c.copy(found.s, values);
    if (u != nullptr) c.copy(found.u, left);
    if (vt != nullptr) c.copy(found.vt, right);
    if (info == nullptr) return;
    const qrane::RankReport rank = qrane::numerical_rank(c.to_host(found.s), o.relative_tolerance);
    write_struct(qrane_svd_info{sizeof(qrane_svd_info), rank.rank, rank.full, rank.absolute_tolerance, rank.condition},
                 info);
  });
}

}  // namespace

extern "C" {

int qrane_svd_s(qrane_context* context, const qrane_matrix_s* a, const qrane_svd_options* options,
                const qrane_matrix_s* u, const qrane_matrix_s* s, const qrane_matrix_s* vt, qrane_svd_info* info) {
  return svd<float>(__func__, context, a, options, u, s, vt, info);
}
int qrane_svd_d(qrane_context* context, const qrane_matrix_d* a, const qrane_svd_options* options,
                const qrane_matrix_d* u, const qrane_matrix_d* s, const qrane_matrix_d* vt, qrane_svd_info* info) {
  return svd<double>(__func__, context, a, options, u, s, vt, info);
}

}  // extern "C"
