// SPDX-License-Identifier: Apache-2.0
// The C interface of pivoted factorizations (qrane.h) over PivotedQR.
#include "api/c/c_interface.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

struct qrane_pivoted_qr {
  qrane::Context context;
  std::variant<qrane::PivotedQR<float>, qrane::PivotedQR<double>> qr;
};

namespace {

using namespace qrane::c_interface;
using qrane::ErrorCode;
using qrane::Index;
using qrane::MatrixView;

static_assert(QRANE_PIVOTING_AUTOMATIC == static_cast<int>(qrane::Pivoting::automatic));
static_assert(QRANE_PIVOTING_EXACT == static_cast<int>(qrane::Pivoting::exact));
static_assert(QRANE_PIVOTING_RANDOMIZED == static_cast<int>(qrane::Pivoting::randomized));

/// The factorization in the precision of the function called.
template <class T>
const qrane::PivotedQR<T>& pivoted_of(const qrane_pivoted_qr* handle) {
  check_not_null(handle, "qr");
  const auto* qr = std::get_if<qrane::PivotedQR<T>>(&handle->qr);
  check(qr != nullptr, ErrorCode::invalid_argument, "qr was factored in ",
        sizeof(T) == 4 ? "double: use the function ending in _d" : "float: use the function ending in _s");
  return *qr;
}

qrane::PivotOptions options_of(const qrane_pivot_options* given) {
  const qrane_pivot_options o = read_struct(given, qrane_pivot_options QRANE_PIVOT_OPTIONS_INIT, "options");
  check_range("options->q", o.q, QRANE_Q_NONE);
  check_range("options->pivoting", o.pivoting, QRANE_PIVOTING_RANDOMIZED);
  check(!std::isnan(o.relative_tolerance), ErrorCode::invalid_argument, "options->relative_tolerance is NaN");
  qrane::PivotOptions options;
  options.q = static_cast<qrane::QForm>(o.q);
  options.pivoting = static_cast<qrane::Pivoting>(o.pivoting);
  options.relative_tolerance = o.relative_tolerance;
  options.max_rank = o.max_rank;
  options.truncate = o.truncate != 0;
  options.check_finite = o.check_finite != 0;
  return options;
}

template <class T>
void factor(qrane_context* context, const MatrixOf<T>* a, const qrane_pivot_options* options, qrane_pivoted_qr** qr) {
  check_not_null(qr, "qr");
  *qr = nullptr;
  check_not_null(context, "context");
  const MatrixView<const T> view = view_of<T>(context->context, a, "a");
  *qr = new qrane_pivoted_qr{context->context, qrane::pivoted_qr<T>(context->context, view, options_of(options))};
}

template <class T>
void get_r(const qrane_pivoted_qr* handle, const MatrixOf<T>* r) {
  const auto& qr = pivoted_of<T>(handle);
  const auto target = view_of<T>(handle->context, r, "r");
  check_shape("r", target.rows, target.cols, qr.kept(), qr.cols());
  handle->context.copy<T>(qr.r().view(), target);
}

template <class T>
void get_q(const qrane_pivoted_qr* handle, const MatrixOf<T>* q) {
  const auto& qr = pivoted_of<T>(handle);
  const auto target = view_of<T>(handle->context, q, "q");
  check_shape("q", target.rows, target.cols, qr.rows(), qr.kept());
  handle->context.copy<T>(qr.q().view(), target);
}

template <class T>
void apply(const qrane_pivoted_qr* handle, int side, int transpose, const MatrixOf<T>* c) {
  const auto& qr = pivoted_of<T>(handle);
  check(side == QRANE_LEFT || side == QRANE_RIGHT, ErrorCode::invalid_argument, "side is ", side,
        ", neither QRANE_LEFT nor QRANE_RIGHT");
  const auto view = view_of<T>(handle->context, c, "c");
  if (transpose != 0)
    qr.apply_qt(view, static_cast<qrane::Side>(side));
  else
    qr.apply_q(view, static_cast<qrane::Side>(side));
}

template <class T>
void solve(const qrane_pivoted_qr* handle, const MatrixOf<T>* b, const qrane_solve_options* options,
           const MatrixOf<T>* x, qrane_solution* info) {
  const auto& qr = pivoted_of<T>(handle);
  const MatrixView<const T> rhs = view_of<T>(handle->context, b, "b");
  const auto target = view_of<T>(handle->context, x, "x");
  check(rhs.rows == qr.rows(), ErrorCode::invalid_argument, "b->rows is ", rhs.rows, " where A has ", qr.rows(),
        " rows");
  check_shape("x", target.rows, target.cols, qr.cols(), rhs.cols);
  if (info != nullptr) check_struct(info, "info");
  write_solution<T>(handle->context, qr.solve(rhs, solve_options_of(options)), target, info);
}

}  // namespace

extern "C" {

int qrane_pivoted_factor_s(qrane_context* context, const qrane_matrix_s* a, const qrane_pivot_options* options,
                           qrane_pivoted_qr** qr) {
  return guarded(__func__, [&] { factor<float>(context, a, options, qr); });
}
int qrane_pivoted_factor_d(qrane_context* context, const qrane_matrix_d* a, const qrane_pivot_options* options,
                           qrane_pivoted_qr** qr) {
  return guarded(__func__, [&] { factor<double>(context, a, options, qr); });
}

void qrane_pivoted_qr_destroy(qrane_pivoted_qr* qr) { delete qr; }

int qrane_pivoted_qr_info(const qrane_pivoted_qr* qr, qrane_pivot_info* info) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    check_struct(info, "info");
    std::visit(
        [&](const auto& f) {
          write_struct(qrane_pivot_info{sizeof(qrane_pivot_info), f.rows(), f.cols(), f.rank(), f.kept(),
                                        f.absolute_tolerance(), static_cast<std::int32_t>(f.pivoting())},
                       info);
        },
        qr->qr);
  });
}

int qrane_pivoted_permutation(const qrane_pivoted_qr* qr, int64_t* columns, int64_t count) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    const auto permutation = std::visit([](const auto& f) { return f.permutation(); }, qr->qr);
    check(count == static_cast<Index>(permutation.size()), ErrorCode::invalid_argument, "count is ", count,
          " where A has ", permutation.size(), " columns");
    if (count > 0) check_not_null(columns, "columns");
    std::copy(permutation.begin(), permutation.end(), columns);
  });
}

int qrane_pivoted_r_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* r) {
  return guarded(__func__, [&] { get_r<float>(qr, r); });
}
int qrane_pivoted_r_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* r) {
  return guarded(__func__, [&] { get_r<double>(qr, r); });
}
int qrane_pivoted_q_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* q) {
  return guarded(__func__, [&] { get_q<float>(qr, q); });
}
int qrane_pivoted_q_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* q) {
  return guarded(__func__, [&] { get_q<double>(qr, q); });
}
int qrane_pivoted_apply_s(const qrane_pivoted_qr* qr, int side, int transpose, const qrane_matrix_s* c) {
  return guarded(__func__, [&] { apply<float>(qr, side, transpose, c); });
}
int qrane_pivoted_apply_d(const qrane_pivoted_qr* qr, int side, int transpose, const qrane_matrix_d* c) {
  return guarded(__func__, [&] { apply<double>(qr, side, transpose, c); });
}
int qrane_pivoted_solve_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* b, const qrane_solve_options* options,
                          const qrane_matrix_s* x, qrane_solution* info) {
  return guarded(__func__, [&] { solve<float>(qr, b, options, x, info); });
}
int qrane_pivoted_solve_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* b, const qrane_solve_options* options,
                          const qrane_matrix_d* x, qrane_solution* info) {
  return guarded(__func__, [&] { solve<double>(qr, b, options, x, info); });
}

}  // extern "C"
