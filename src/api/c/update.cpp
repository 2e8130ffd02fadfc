// SPDX-License-Identifier: Apache-2.0
// The C interface of updates (qrane_update.h) over UpdatableQR.
#include "api/c/c_interface.hpp"

#include <cmath>

namespace qrane::c_interface {

UpdateOptions update_options_of(const qrane_update_options* given) {
  constexpr auto bad = ErrorCode::invalid_argument;
  const qrane_update_options o = read_struct(given, qrane_update_options QRANE_UPDATE_OPTIONS_INIT, "options");
  check_range("options->method", o.method, QRANE_UPDATE_REFACTOR);
  check_range("options->block_cols", o.block_cols, std::numeric_limits<std::int32_t>::max());
  check_range("options->drift_every", o.drift_every, std::numeric_limits<std::int32_t>::max());
  check(o.drift_limit >= 0, bad, "options->drift_limit is ", o.drift_limit, ", not a number from 0 on");
  UpdateOptions options;
  options.method = static_cast<UpdateMethod>(o.method);
  options.check_finite = o.check_finite != 0;
  options.block_cols = o.block_cols;
  options.queued = o.queued != 0;
  options.refresh = o.no_refresh == 0;
  if (o.drift_every > 0) options.drift_every = o.drift_every;
  if (o.drift_limit > 0) options.drift_limit = o.drift_limit;
  return options;
}

void write_report(const UpdateReport& report, qrane_update_report* target) {
  if (target == nullptr) return;
  qrane_update_report out = QRANE_UPDATE_REPORT_INIT;
  out.rows = report.rows;
  out.cols = report.cols;
  out.k = report.k;
  out.p = report.p;
  out.method = static_cast<std::int32_t>(report.method);
  out.queued = report.queued;
  out.refused = report.refused;
  out.fell_back = report.fell_back;
  out.refreshed = report.refreshed;
  out.drift = report.drift;
  for (const qrane::UpdateCandidate& c : report.candidates)
    if (c.method == report.method) out.predicted_ms = c.predicted_ms;
  write_struct(out, target);
}

}  // namespace qrane::c_interface

namespace {

using namespace qrane::c_interface;
using qrane::Change;
using qrane::ErrorCode;
using qrane::Index;
using qrane::MatrixView;
using qrane::UpdateMethod;
using qrane::UpdateOptions;
using qrane::UpdateReport;

static_assert(QRANE_UPDATE_AUTOMATIC == static_cast<int>(UpdateMethod::automatic));
static_assert(QRANE_UPDATE_ORTHOGONAL == static_cast<int>(UpdateMethod::orthogonal));
static_assert(QRANE_UPDATE_CHOLESKY == static_cast<int>(UpdateMethod::cholesky));
static_assert(QRANE_UPDATE_TRAILING == static_cast<int>(UpdateMethod::trailing));
static_assert(QRANE_UPDATE_REFACTOR == static_cast<int>(UpdateMethod::refactor));

/// One update: update(qr, options) makes it.
template <class T, class Update>
int run(const char* function, qrane_qr* handle, const qrane_update_options* options, qrane_update_report* report,
        Update update) {
  return guarded(function, [&] {
    if (report != nullptr) check_struct(report, "report");
    const UpdateOptions how = update_options_of(options);
    write_report(update(updatable_of<T>(handle), how), report);
  });
}

template <class T>
int insert_rows(const char* function, qrane_qr* handle, Index k, const MatrixOf<T>* u, const MatrixOf<T>* e,
                const MatrixOf<T>* updated, const qrane_update_options* options, qrane_update_report* report) {
  return run<T>(function, handle, options, report, [&](qrane::UpdatableQR<T>& qr, const UpdateOptions& how) {
    const qrane::Context& context = handle->context;
    return qr.insert_rows(k, view_of<T>(context, u, "u"), optional_view<T>(context, e, "e"), how,
                          optional_view<T>(context, updated, "updated"));
  });
}

template <class T>
int delete_rows(const char* function, qrane_qr* handle, Index k, Index p, const MatrixOf<T>* removed,
                const MatrixOf<T>* removed_b, const MatrixOf<T>* updated, const qrane_update_options* options,
                qrane_update_report* report) {
  return run<T>(function, handle, options, report, [&](qrane::UpdatableQR<T>& qr, const UpdateOptions& how) {
    const qrane::Context& context = handle->context;
    return qr.delete_rows(k, p, optional_view<T>(context, removed, "removed"),
                          optional_view<T>(context, removed_b, "removed_b"), how,
                          optional_view<T>(context, updated, "updated"));
  });
}

template <class T>
int insert_columns(const char* function, qrane_qr* handle, Index k, const MatrixOf<T>* u, const MatrixOf<T>* updated,
                   const qrane_update_options* options, qrane_update_report* report) {
  return run<T>(function, handle, options, report, [&](qrane::UpdatableQR<T>& qr, const UpdateOptions& how) {
    return qr.insert_columns(k, view_of<T>(handle->context, u, "u"), how,
                             optional_view<T>(handle->context, updated, "updated"));
  });
}

template <class T>
int delete_columns(const char* function, qrane_qr* handle, Index k, Index p, const MatrixOf<T>* updated,
                   const qrane_update_options* options, qrane_update_report* report) {
  return run<T>(function, handle, options, report, [&](qrane::UpdatableQR<T>& qr, const UpdateOptions& how) {
    return qr.delete_columns(k, p, how, optional_view<T>(handle->context, updated, "updated"));
  });
}

template <class T>
int rank_k(const char* function, qrane_qr* handle, const MatrixOf<T>* u, const MatrixOf<T>* v,
           const MatrixOf<T>* updated, const qrane_update_options* options, qrane_update_report* report) {
  return run<T>(function, handle, options, report, [&](qrane::UpdatableQR<T>& qr, const UpdateOptions& how) {
    const qrane::Context& context = handle->context;
    return qr.rank_k_update(view_of<T>(context, u, "u"), view_of<T>(context, v, "v"), how,
                            optional_view<T>(context, updated, "updated"));
  });
}

template <class T>
int attach(const char* function, qrane_qr* handle, const MatrixOf<T>* b, const MatrixOf<T>* a) {
  return guarded(function, [&] {
    updatable_of<T>(handle).attach(view_of<T>(handle->context, b, "b"), optional_view<T>(handle->context, a, "a"));
  });
}

/// Throws where nothing can be attached yet.
template <class T>
const qrane::UpdatableQR<T>& attached_of(const qrane_qr* handle) {
  (void)qr_of<T>(handle);
  const auto* qr = std::get_if<qrane::UpdatableQR<T>>(&handle->qr);
  check(qr != nullptr, ErrorCode::unavailable, "no right-hand sides are attached: qrane_attach comes first");
  return *qr;
}

template <class T>
int solve_attached(const char* function, const qrane_qr* handle, const qrane_solve_options* options,
                   const MatrixOf<T>* x, qrane_solution* info) {
  return guarded(function, [&] {
    const qrane::UpdatableQR<T>& qr = attached_of<T>(handle);
    const auto target = view_of<T>(handle->context, x, "x");
    if (info != nullptr) check_struct(info, "info");
    const auto solution = qr.solve(solve_options_of(options));
    check_shape("x", target.rows, target.cols, solution.x.rows(), solution.x.cols());
    write_solution<T>(handle->context, solution, target, info);
  });
}

template <class T>
int get_drift(const char* function, qrane_qr* handle, const MatrixOf<T>* a, double* drift) {
  return guarded(function, [&] {
    const qrane::UpdatableQR<T>& qr = updatable_of<T>(handle);
    check_not_null(drift, "drift");
    *drift = qr.drift(optional_view<T>(handle->context, a, "a"));
  });
}

}  // namespace

extern "C" {

int qrane_insert_rows_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u, const qrane_matrix_s* e,
                        const qrane_matrix_s* updated, const qrane_update_options* options,
                        qrane_update_report* report) {
  return insert_rows<float>(__func__, qr, k, u, e, updated, options, report);
}
int qrane_insert_rows_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u, const qrane_matrix_d* e,
                        const qrane_matrix_d* updated, const qrane_update_options* options,
                        qrane_update_report* report) {
  return insert_rows<double>(__func__, qr, k, u, e, updated, options, report);
}

int qrane_delete_rows_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_s* removed,
                        const qrane_matrix_s* removed_b, const qrane_matrix_s* updated,
                        const qrane_update_options* options, qrane_update_report* report) {
  return delete_rows<float>(__func__, qr, k, p, removed, removed_b, updated, options, report);
}
int qrane_delete_rows_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_d* removed,
                        const qrane_matrix_d* removed_b, const qrane_matrix_d* updated,
                        const qrane_update_options* options, qrane_update_report* report) {
  return delete_rows<double>(__func__, qr, k, p, removed, removed_b, updated, options, report);
}

int qrane_insert_columns_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u, const qrane_matrix_s* updated,
                           const qrane_update_options* options, qrane_update_report* report) {
  return insert_columns<float>(__func__, qr, k, u, updated, options, report);
}
int qrane_insert_columns_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u, const qrane_matrix_d* updated,
                           const qrane_update_options* options, qrane_update_report* report) {
  return insert_columns<double>(__func__, qr, k, u, updated, options, report);
}

int qrane_delete_columns_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_s* updated,
                           const qrane_update_options* options, qrane_update_report* report) {
  return delete_columns<float>(__func__, qr, k, p, updated, options, report);
}
int qrane_delete_columns_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_d* updated,
                           const qrane_update_options* options, qrane_update_report* report) {
  return delete_columns<double>(__func__, qr, k, p, updated, options, report);
}

int qrane_rank_k_update_s(qrane_qr* qr, const qrane_matrix_s* u, const qrane_matrix_s* v, const qrane_matrix_s* updated,
                          const qrane_update_options* options, qrane_update_report* report) {
  return rank_k<float>(__func__, qr, u, v, updated, options, report);
}
int qrane_rank_k_update_d(qrane_qr* qr, const qrane_matrix_d* u, const qrane_matrix_d* v, const qrane_matrix_d* updated,
                          const qrane_update_options* options, qrane_update_report* report) {
  return rank_k<double>(__func__, qr, u, v, updated, options, report);
}

int qrane_attach_s(qrane_qr* qr, const qrane_matrix_s* b, const qrane_matrix_s* a) {
  return attach<float>(__func__, qr, b, a);
}
int qrane_attach_d(qrane_qr* qr, const qrane_matrix_d* b, const qrane_matrix_d* a) {
  return attach<double>(__func__, qr, b, a);
}

int qrane_solve_attached_s(const qrane_qr* qr, const qrane_solve_options* options, const qrane_matrix_s* x,
                           qrane_solution* info) {
  return solve_attached<float>(__func__, qr, options, x, info);
}
int qrane_solve_attached_d(const qrane_qr* qr, const qrane_solve_options* options, const qrane_matrix_d* x,
                           qrane_solution* info) {
  return solve_attached<double>(__func__, qr, options, x, info);
}

int qrane_residual_norms(const qrane_qr* qr, double* norms, int64_t count) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    const bool single = std::visit([](const auto& f) { return f.plan().scalar_bytes == 4; }, qr->qr);
    const auto result = single ? attached_of<float>(qr).residual_norms() : attached_of<double>(qr).residual_norms();
    check(count == static_cast<Index>(result.size()), ErrorCode::invalid_argument, "count is ", count, " where ",
          result.size(), " right-hand sides are attached");
    if (count > 0) check_not_null(norms, "norms");
    std::copy(result.begin(), result.end(), norms);
  });
}

int qrane_drift_s(qrane_qr* qr, const qrane_matrix_s* a, double* drift) {
  return get_drift<float>(__func__, qr, a, drift);
}
int qrane_drift_d(qrane_qr* qr, const qrane_matrix_d* a, double* drift) {
  return get_drift<double>(__func__, qr, a, drift);
}

int qrane_refused_updates(qrane_qr* qr, int64_t* count) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    check_not_null(count, "count");
    *count = 0;
    if (auto* f = std::get_if<qrane::UpdatableQR<float>>(&qr->qr)) *count = f->refused_updates();
    if (auto* f = std::get_if<qrane::UpdatableQR<double>>(&qr->qr)) *count = f->refused_updates();
  });
}

}  // extern "C"
