// SPDX-License-Identifier: Apache-2.0
// The C interface (qrane.h) over the C++ one. Each function checks its arguments by the names that the C caller
// knows, and turns exceptions into a status and a thread-local sentence; there is no mathematics here.
#include "api/c/c_interface.hpp"

#include <cstdio>
#include <memory>

namespace qrane::c_interface {

// A fixed array: storing the sentence of an out-of-memory error must not allocate.
static thread_local char last_error[2048] = "";

int fail(int status, const char* function, const char* sentence) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s: %s", function, sentence);
  return status;
}

}  // namespace qrane::c_interface

namespace {

using qrane::ErrorCode;
using qrane::Index;
using qrane::MatrixView;
using qrane::Memory;
using namespace qrane::c_interface;

static_assert(QRANE_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(QRANE_NOT_FINITE == static_cast<int>(ErrorCode::not_finite));
static_assert(QRANE_FILE == static_cast<int>(ErrorCode::file));
static_assert(QRANE_UNAVAILABLE == static_cast<int>(ErrorCode::unavailable));
static_assert(QRANE_OUT_OF_MEMORY == static_cast<int>(ErrorCode::out_of_memory));
static_assert(QRANE_RANK_DEFICIENT == static_cast<int>(ErrorCode::rank_deficient));
static_assert(QRANE_DEVICE == static_cast<int>(ErrorCode::device));
static_assert(QRANE_INTERRUPTED == static_cast<int>(ErrorCode::interrupted));
static_assert(QRANE_NOT_CONVERGED == static_cast<int>(ErrorCode::not_converged));
static_assert(QRANE_BACKEND_AUTOMATIC == static_cast<int>(qrane::Backend::automatic));
static_assert(QRANE_BACKEND_CPU == static_cast<int>(qrane::Backend::cpu));
static_assert(QRANE_BACKEND_OPENCL == static_cast<int>(qrane::Backend::opencl));
static_assert(QRANE_BACKEND_CUDA == static_cast<int>(qrane::Backend::cuda));
static_assert(QRANE_ALGORITHM_AUTOMATIC == static_cast<int>(qrane::Algorithm::automatic));
static_assert(QRANE_ALGORITHM_TSQR == static_cast<int>(qrane::Algorithm::tsqr));
static_assert(QRANE_ALGORITHM_CAQR == static_cast<int>(qrane::Algorithm::caqr));
static_assert(QRANE_ALGORITHM_BLOCKED == static_cast<int>(qrane::Algorithm::blocked));
static_assert(QRANE_ALGORITHM_CHOLESKY_QR == static_cast<int>(qrane::Algorithm::cholesky_qr));
static_assert(QRANE_ALGORITHM_HOUSEHOLDER == static_cast<int>(qrane::Algorithm::householder));
static_assert(QRANE_Q_IMPLICIT == static_cast<int>(qrane::QForm::implicit));
static_assert(QRANE_Q_THIN == static_cast<int>(qrane::QForm::thin));
static_assert(QRANE_Q_LAPACK == static_cast<int>(qrane::QForm::lapack));
static_assert(QRANE_Q_NONE == static_cast<int>(qrane::QForm::none));
static_assert(QRANE_Q_FULL == static_cast<int>(qrane::QForm::full));
static_assert(QRANE_LEFT == static_cast<int>(qrane::Side::left));
static_assert(QRANE_RIGHT == static_cast<int>(qrane::Side::right));
static_assert(QRANE_MEMORY_HOST == static_cast<int>(Memory::host));
static_assert(QRANE_MEMORY_DEVICE == static_cast<int>(Memory::device));
static_assert(QRANE_COLUMN_MAJOR == static_cast<int>(qrane::Layout::column_major));
static_assert(QRANE_ROW_MAJOR == static_cast<int>(qrane::Layout::row_major));

template <class T>
void factor(qrane_context* context, const MatrixOf<T>* a, const qrane_options* options, qrane_qr** qr) {
  check_not_null(qr, "qr");
  *qr = nullptr;
  check_not_null(context, "context");
  const MatrixView<const T> view = view_of<T>(context->context, a, "a");
  *qr = new qrane_qr{context->context, qrane::qr<T>(context->context, view, options_of(options))};
}

template <class T>
void refactor(qrane_qr* handle, const MatrixOf<T>* a) {
  auto& qr = qr_of<T>(handle);
  const auto view = view_of<T>(handle->context, a, "a");
  check_shape("a", view.rows, view.cols, qr.rows(), qr.cols());
  qr.refactor(view);
}

template <class T>
void get_r(const qrane_qr* handle, const MatrixOf<T>* r) {
  auto& qr = qr_of<T>(handle);
  const auto target = view_of<T>(handle->context, r, "r");
  const Index thin = std::min(qr.rows(), qr.cols());
  const bool full = target.rows != thin && target.rows == qr.rows();
  check_shape("r", target.rows, target.cols, full ? qr.rows() : thin, qr.cols());
  const auto result = qr.r(full ? qrane::Columns::full : qrane::Columns::thin);
  handle->context.copy<T>(result.view(), target);
}

template <class T>
void get_q(const qrane_qr* handle, const MatrixOf<T>* q) {
  auto& qr = qr_of<T>(handle);
  const auto target = view_of<T>(handle->context, q, "q");
  const Index thin = std::min(qr.rows(), qr.cols());
  const bool full = target.cols != thin && target.cols == qr.rows();
  check_shape("q", target.rows, target.cols, qr.rows(), full ? qr.rows() : thin);
  const auto result = qr.q(full ? qrane::Columns::full : qrane::Columns::thin);
  handle->context.copy<T>(result.view(), target);
}

template <class T>
void apply(const qrane_qr* handle, int side, const MatrixOf<T>* c, bool transpose) {
  auto& qr = qr_of<T>(handle);
  check(side == QRANE_LEFT || side == QRANE_RIGHT, ErrorCode::invalid_argument, "side is ", side,
        ", neither QRANE_LEFT nor QRANE_RIGHT");
  const auto view = view_of<T>(handle->context, c, "c");
  const bool left = side == QRANE_LEFT;
  check((left ? view.rows : view.cols) == qr.rows(), ErrorCode::invalid_argument, left ? "c->rows is " : "c->cols is ",
        left ? view.rows : view.cols, " where Q is ", qr.rows(), " x ", qr.rows());
  if (transpose) {
    qr.apply_qt(view, static_cast<qrane::Side>(side));
  } else {
    qr.apply_q(view, static_cast<qrane::Side>(side));
  }
}

template <class T>
void solve(const qrane_qr* handle, const MatrixOf<T>* b, const qrane_solve_options* options, const MatrixOf<T>* x,
           qrane_solution* info) {
  auto& qr = qr_of<T>(handle);
  const MatrixView<const T> rhs = view_of<T>(handle->context, b, "b");
  const auto target = view_of<T>(handle->context, x, "x");
  check(rhs.rows == qr.rows(), ErrorCode::invalid_argument, "b->rows is ", rhs.rows, " where A has ", qr.rows(),
        " rows");
  check_shape("x", target.rows, target.cols, qr.cols(), rhs.cols);
  if (info != nullptr) check_struct(info, "info");
  write_solution<T>(handle->context, qr.solve(rhs, solve_options_of(options)), target, info);
}

}  // namespace

qrane::Options qrane::c_interface::options_of(const qrane_options* given) {
  const qrane_options o = read_struct(given, qrane_options QRANE_OPTIONS_INIT, "options");
  check_range("options->algorithm", o.algorithm, QRANE_ALGORITHM_HOUSEHOLDER);
  check_range("options->q", o.q, QRANE_Q_FULL);
  check_range("options->arity", o.arity, std::numeric_limits<std::int32_t>::max());
  check_range("options->block_rows", o.block_rows, std::numeric_limits<std::int64_t>::max());
  check_range("options->panel_cols", o.panel_cols, std::numeric_limits<int>::max());
  qrane::Options options;
  options.algorithm = static_cast<qrane::Algorithm>(o.algorithm);
  options.q = static_cast<qrane::QForm>(o.q);
  options.check_finite = o.check_finite != 0;
  options.expert.arity = o.arity;
  options.expert.block_rows = o.block_rows;
  options.expert.panel_cols = static_cast<int>(o.panel_cols);
  return options;
}

extern "C" {

const char* qrane_version(void) { return QRANE_VERSION_STRING; }

const char* qrane_last_error(void) { return qrane::c_interface::last_error; }

const char* qrane_status_name(int status) {
  switch (status) {
    case QRANE_OK: return "ok";
    case QRANE_INVALID_ARGUMENT: return "invalid_argument";
    case QRANE_NOT_FINITE: return "not_finite";
    case QRANE_FILE: return "file";
    case QRANE_UNAVAILABLE: return "unavailable";
    case QRANE_OUT_OF_MEMORY: return "out_of_memory";
    case QRANE_RANK_DEFICIENT: return "rank_deficient";
    case QRANE_DEVICE: return "device";
    case QRANE_INTERRUPTED: return "interrupted";
    case QRANE_NOT_CONVERGED: return "not_converged";
    case QRANE_INTERNAL: return "internal";
    default: return "unknown";
  }
}

int qrane_context_create(const qrane_context_options* options, qrane_context** context) {
  return guarded(__func__, [&] {
    check_not_null(context, "context");
    *context = nullptr;
    const auto o = read_struct(options, qrane_context_options QRANE_CONTEXT_OPTIONS_INIT, "options");
    check_range("options->backend", o.backend, QRANE_BACKEND_CUDA);
    check_range("options->device", o.device, std::numeric_limits<std::int32_t>::max());
    check_range("options->threads", o.threads, std::numeric_limits<std::int32_t>::max());
    check_range("options->memory_limit_bytes", o.memory_limit_bytes, std::numeric_limits<std::int64_t>::max());
    qrane::ContextOptions converted;
    converted.backend = static_cast<qrane::Backend>(o.backend);
    converted.device = o.device;
    converted.threads = o.threads;
    converted.stream = o.stream;
    converted.memory_limit_bytes = o.memory_limit_bytes;
    *context = new qrane_context{qrane::Context(converted)};
  });
}

void qrane_context_destroy(qrane_context* context) { delete context; }

int qrane_context_info(const qrane_context* context, qrane_device_info* info) {
  return guarded(__func__, [&] {
    check_not_null(context, "context");
    check_struct(info, "info");
    const auto device = context->context.device();
    qrane_device_info result = QRANE_DEVICE_INFO_INIT;
    result.backend = static_cast<int32_t>(device.backend);
    result.device = device.index;
    std::snprintf(result.name, sizeof result.name, "%s", device.name.c_str());
    result.memory_bytes = device.memory_bytes;
    result.free_bytes = device.free_bytes;
    result.compute_units = device.compute_units;
    result.is_gpu = device.is_gpu;
    result.has_double = device.has_double;
    write_struct(result, info);
  });
}

int qrane_context_synchronize(const qrane_context* context) {
  return guarded(__func__, [&] {
    check_not_null(context, "context");
    context->context.synchronize();
  });
}

int qrane_factor_s(qrane_context* context, const qrane_matrix_s* a, const qrane_options* options, qrane_qr** qr) {
  return guarded(__func__, [&] { factor<float>(context, a, options, qr); });
}
int qrane_factor_d(qrane_context* context, const qrane_matrix_d* a, const qrane_options* options, qrane_qr** qr) {
  return guarded(__func__, [&] { factor<double>(context, a, options, qr); });
}

int qrane_refactor_s(qrane_qr* qr, const qrane_matrix_s* a) {
  return guarded(__func__, [&] { refactor<float>(qr, a); });
}
int qrane_refactor_d(qrane_qr* qr, const qrane_matrix_d* a) {
  return guarded(__func__, [&] { refactor<double>(qr, a); });
}

void qrane_qr_destroy(qrane_qr* qr) { delete qr; }

int qrane_qr_info(const qrane_qr* qr, qrane_factor_info* info) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    check_struct(info, "info");
    qrane_factor_info result = QRANE_FACTOR_INFO_INIT;
    std::visit(
        [&](const auto& f) {
          const qrane::Plan& plan = f.plan();
          result.rows = f.rows();
          result.cols = f.cols();
          result.scalar_bytes = plan.scalar_bytes;
          result.algorithm = static_cast<int32_t>(plan.algorithm);
          result.q = static_cast<int32_t>(plan.q);
          result.fell_back = guard_report(f).fell_back;
          result.workspace_bytes = plan.workspace_bytes;
        },
        qr->qr);
    write_struct(result, info);
  });
}

int qrane_r_s(const qrane_qr* qr, const qrane_matrix_s* r) {
  return guarded(__func__, [&] { get_r<float>(qr, r); });
}
int qrane_r_d(const qrane_qr* qr, const qrane_matrix_d* r) {
  return guarded(__func__, [&] { get_r<double>(qr, r); });
}

int qrane_q_s(const qrane_qr* qr, const qrane_matrix_s* q) {
  return guarded(__func__, [&] { get_q<float>(qr, q); });
}
int qrane_q_d(const qrane_qr* qr, const qrane_matrix_d* q) {
  return guarded(__func__, [&] { get_q<double>(qr, q); });
}

int qrane_apply_q_s(const qrane_qr* qr, int side, const qrane_matrix_s* c) {
  return guarded(__func__, [&] { apply<float>(qr, side, c, false); });
}
int qrane_apply_q_d(const qrane_qr* qr, int side, const qrane_matrix_d* c) {
  return guarded(__func__, [&] { apply<double>(qr, side, c, false); });
}

int qrane_apply_qt_s(const qrane_qr* qr, int side, const qrane_matrix_s* c) {
  return guarded(__func__, [&] { apply<float>(qr, side, c, true); });
}
int qrane_apply_qt_d(const qrane_qr* qr, int side, const qrane_matrix_d* c) {
  return guarded(__func__, [&] { apply<double>(qr, side, c, true); });
}

int qrane_solve_s(const qrane_qr* qr, const qrane_matrix_s* b, const qrane_solve_options* options,
                  const qrane_matrix_s* x, qrane_solution* info) {
  return guarded(__func__, [&] { solve<float>(qr, b, options, x, info); });
}
int qrane_solve_d(const qrane_qr* qr, const qrane_matrix_d* b, const qrane_solve_options* options,
                  const qrane_matrix_d* x, qrane_solution* info) {
  return guarded(__func__, [&] { solve<double>(qr, b, options, x, info); });
}

}  // extern "C"
