// SPDX-License-Identifier: Apache-2.0
// Batches in the C interface (qrane.h) over the C++ one; as in context.cpp there is no mathematics here.
#include <variant>

#include "api/c/c_interface.hpp"

struct qrane_batch_qr {
  qrane::Context context;
  std::variant<qrane::BatchQR<float>, qrane::BatchQR<double>> qr;
};

namespace {

using namespace qrane::c_interface;
using qrane::BatchView;
using qrane::ErrorCode;
using qrane::Index;

template <class T>
using BatchOf = std::conditional_t<std::is_same_v<T, float>, qrane_batch_s, qrane_batch_d>;

/// The caller's batch as a view. What the C++ side cannot know by the caller's names is checked here: the first matrix,
/// or with a table its shape.
template <class T>
BatchView<T> batch_of(const qrane::Context& context, const BatchOf<T>* a, const char* name) {
  check_not_null(a, name);
  check(a->count >= 0, ErrorCode::invalid_argument, name, "->count is ", a->count, ", negative");
  auto first = a->first;
  const bool no_memory = a->count == 0 || a->pointers != nullptr;
  if (no_memory) first.rows = 0, first.cols = 0;  // then it may be null
  BatchView<T> view;
  view.first = view_of<T>(context, &first, name);
  if (no_memory) {
    check(a->first.rows >= 0 && a->first.cols >= 0, ErrorCode::invalid_argument, name, "->first is ", a->first.rows,
          " x ", a->first.cols, ", negative");
    view.first.rows = a->first.rows;
    view.first.cols = a->first.cols;
  }
  view.stride = a->stride;
  view.count = a->count;
  view.pointers = a->pointers;
  return view;
}

/// The factorizations in the precision of the function called.
template <class T>
qrane::BatchQR<T>& batch_qr_of(const qrane_batch_qr* handle) {
  check_not_null(handle, "qr");
  auto* qr = std::get_if<qrane::BatchQR<T>>(&const_cast<qrane_batch_qr*>(handle)->qr);
  check(qr != nullptr, ErrorCode::invalid_argument, "qr was factored in ",
        sizeof(T) == 4 ? "double: use the function ending in _d" : "float: use the function ending in _s");
  return *qr;
}

template <class T>
void factor(qrane_context* context, const BatchOf<T>* a, const qrane_options* options, qrane_batch_qr** qr,
            bool in_place) {
  check_not_null(qr, "qr");
  *qr = nullptr;
  check_not_null(context, "context");
  const BatchView<T> view = batch_of<T>(context->context, a, "a");
  const qrane::Options o = options_of(options);
  *qr = new qrane_batch_qr{context->context, in_place ? qrane::qr_in_place<T>(context->context, view, o)
                                                      : qrane::qr<T>(context->context, BatchView<const T>(view), o)};
}

template <class T>
void refactor(qrane_batch_qr* handle, const BatchOf<T>* a) {
  auto& qr = batch_qr_of<T>(handle);
  qr.refactor(batch_of<T>(handle->context, a, "a"));
}

template <class T>
void get_r(const qrane_batch_qr* handle, const BatchOf<T>* r) {
  batch_qr_of<T>(handle).r_into(batch_of<T>(handle->context, r, "r"));
}

template <class T>
void get_q(const qrane_batch_qr* handle, const BatchOf<T>* q) {
  batch_qr_of<T>(handle).q_into(batch_of<T>(handle->context, q, "q"));
}

template <class T>
void apply(const qrane_batch_qr* handle, const BatchOf<T>* c, bool transpose) {
  auto& qr = batch_qr_of<T>(handle);
  const auto view = batch_of<T>(handle->context, c, "c");
  if (transpose)
    qr.apply_qt(view);
  else
    qr.apply_q(view);
}

template <class T>
void get_reflectors(const qrane_batch_qr* handle, const BatchOf<T>* packed, const BatchOf<T>* tau) {
  auto& qr = batch_qr_of<T>(handle);
  const BatchView<T> none;
  qr.reflectors_into(packed != nullptr ? batch_of<T>(handle->context, packed, "packed") : none,
                     batch_of<T>(handle->context, tau, "tau"));
}

template <class T>
void solve(const qrane_batch_qr* handle, const BatchOf<T>* b, const qrane_solve_options* options, const BatchOf<T>* x,
           std::int64_t* ranks) {
  auto& qr = batch_qr_of<T>(handle);
  const auto rhs = batch_of<T>(handle->context, b, "b");
  const auto target = batch_of<T>(handle->context, x, "x");
  const auto ranks_found = qr.solve_into(rhs, target, solve_options_of(options));
  if (ranks != nullptr) std::copy(ranks_found.begin(), ranks_found.end(), ranks);
}

}  // namespace

extern "C" {

int qrane_batch_factor_s(qrane_context* context, const qrane_batch_s* a, const qrane_options* options,
                         qrane_batch_qr** qr) {
  return guarded(__func__, [&] { factor<float>(context, a, options, qr, false); });
}
int qrane_batch_factor_d(qrane_context* context, const qrane_batch_d* a, const qrane_options* options,
                         qrane_batch_qr** qr) {
  return guarded(__func__, [&] { factor<double>(context, a, options, qr, false); });
}

int qrane_batch_factor_in_place_s(qrane_context* context, const qrane_batch_s* a, const qrane_options* options,
                                  qrane_batch_qr** qr) {
  return guarded(__func__, [&] { factor<float>(context, a, options, qr, true); });
}
int qrane_batch_factor_in_place_d(qrane_context* context, const qrane_batch_d* a, const qrane_options* options,
                                  qrane_batch_qr** qr) {
  return guarded(__func__, [&] { factor<double>(context, a, options, qr, true); });
}

int qrane_batch_refactor_s(qrane_batch_qr* qr, const qrane_batch_s* a) {
  return guarded(__func__, [&] { refactor<float>(qr, a); });
}
int qrane_batch_refactor_d(qrane_batch_qr* qr, const qrane_batch_d* a) {
  return guarded(__func__, [&] { refactor<double>(qr, a); });
}

void qrane_batch_qr_destroy(qrane_batch_qr* qr) { delete qr; }

int qrane_batch_qr_info(const qrane_batch_qr* qr, qrane_factor_info* info) {
  return guarded(__func__, [&] {
    check_not_null(qr, "qr");
    check_struct(info, "info");
    qrane_factor_info result = QRANE_FACTOR_INFO_INIT;
    const qrane::Plan& plan = *std::visit([](const auto& f) { return &f.plan(); }, qr->qr);
    result.rows = plan.rows;
    result.cols = plan.cols;
    result.scalar_bytes = plan.scalar_bytes;
    result.algorithm = static_cast<int32_t>(plan.algorithm);
    result.q = static_cast<int32_t>(plan.q);
    result.workspace_bytes = plan.workspace_bytes;
    write_struct(result, info);
  });
}

int qrane_batch_r_s(const qrane_batch_qr* qr, const qrane_batch_s* r) {
  return guarded(__func__, [&] { get_r<float>(qr, r); });
}
int qrane_batch_r_d(const qrane_batch_qr* qr, const qrane_batch_d* r) {
  return guarded(__func__, [&] { get_r<double>(qr, r); });
}

int qrane_batch_q_s(const qrane_batch_qr* qr, const qrane_batch_s* q) {
  return guarded(__func__, [&] { get_q<float>(qr, q); });
}
int qrane_batch_q_d(const qrane_batch_qr* qr, const qrane_batch_d* q) {
  return guarded(__func__, [&] { get_q<double>(qr, q); });
}

int qrane_batch_apply_q_s(const qrane_batch_qr* qr, const qrane_batch_s* c) {
  return guarded(__func__, [&] { apply<float>(qr, c, false); });
}
int qrane_batch_apply_q_d(const qrane_batch_qr* qr, const qrane_batch_d* c) {
  return guarded(__func__, [&] { apply<double>(qr, c, false); });
}

int qrane_batch_apply_qt_s(const qrane_batch_qr* qr, const qrane_batch_s* c) {
  return guarded(__func__, [&] { apply<float>(qr, c, true); });
}
int qrane_batch_apply_qt_d(const qrane_batch_qr* qr, const qrane_batch_d* c) {
  return guarded(__func__, [&] { apply<double>(qr, c, true); });
}

int qrane_batch_reflectors_s(const qrane_batch_qr* qr, const qrane_batch_s* packed, const qrane_batch_s* tau) {
  return guarded(__func__, [&] { get_reflectors<float>(qr, packed, tau); });
}
int qrane_batch_reflectors_d(const qrane_batch_qr* qr, const qrane_batch_d* packed, const qrane_batch_d* tau) {
  return guarded(__func__, [&] { get_reflectors<double>(qr, packed, tau); });
}

int qrane_batch_solve_s(const qrane_batch_qr* qr, const qrane_batch_s* b, const qrane_solve_options* options,
                        const qrane_batch_s* x, int64_t* ranks) {
  return guarded(__func__, [&] { solve<float>(qr, b, options, x, ranks); });
}
int qrane_batch_solve_d(const qrane_batch_qr* qr, const qrane_batch_d* b, const qrane_solve_options* options,
                        const qrane_batch_d* x, int64_t* ranks) {
  return guarded(__func__, [&] { solve<double>(qr, b, options, x, ranks); });
}

}  // extern "C"
