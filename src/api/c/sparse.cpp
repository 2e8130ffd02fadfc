// SPDX-License-Identifier: Apache-2.0
// The C interface of sparse QR (qrane_sparse.h) over sparse::Analysis and sparse::Factor.
#include "api/c/c_interface.hpp"

#include <qrane/qrane_sparse.h>

#include <qrane/sparse_qr.hpp>

struct qrane_sparse_analysis {
  qrane::sparse::Analysis analysis;
};

struct qrane_sparse_factor {
  qrane::Context context;
  qrane::Index values;  // that a factorization takes
  std::variant<qrane::sparse::Factor<float>, qrane::sparse::Factor<double>> factor;
};

namespace {

using namespace qrane::c_interface;
using qrane::ErrorCode;
using qrane::Index;
using qrane::MatrixView;
namespace sparse = qrane::sparse;

static_assert(QRANE_BY_COLUMNS == static_cast<int>(sparse::Storage::columns));
static_assert(QRANE_BY_ROWS == static_cast<int>(sparse::Storage::rows));
static_assert(QRANE_BY_TRIPLETS == static_cast<int>(sparse::Storage::triplets));
static_assert(QRANE_ORDERING_AUTOMATIC == static_cast<int>(sparse::Ordering::automatic));
static_assert(QRANE_ORDERING_COLAMD == static_cast<int>(sparse::Ordering::colamd));
static_assert(QRANE_ORDERING_AMD == static_cast<int>(sparse::Ordering::amd));
static_assert(QRANE_ORDERING_METIS == static_cast<int>(sparse::Ordering::metis));
static_assert(QRANE_ORDERING_NATURAL == static_cast<int>(sparse::Ordering::natural));
static_assert(QRANE_ORDERING_GIVEN == static_cast<int>(sparse::Ordering::given));
static_assert(QRANE_PROCESSOR_AUTOMATIC == static_cast<int>(sparse::Processor::automatic));
static_assert(QRANE_PROCESSOR_CPU == static_cast<int>(sparse::Processor::cpu));
static_assert(QRANE_PROCESSOR_DEVICE == static_cast<int>(sparse::Processor::device));

template <class T>
sparse::Factor<T>& factor_of(const qrane_sparse_factor* handle) {
  check_not_null(handle, "factor");
  auto* factor = std::get_if<sparse::Factor<T>>(&const_cast<qrane_sparse_factor*>(handle)->factor);
  check(factor != nullptr, ErrorCode::invalid_argument, "factor was made in ",
        sizeof(T) == 4 ? "double: use the function ending in _d" : "float: use the function ending in _s");
  return *factor;
}

sparse::Pattern pattern_of(const qrane_sparse_pattern* pattern) {
  check_not_null(pattern, "pattern");
  check_range("pattern->storage", pattern->storage, QRANE_BY_TRIPLETS);
  const std::int32_t bytes = pattern->index_bytes;
  check(bytes == 0 || bytes == 4 || bytes == 8, ErrorCode::invalid_argument, "pattern->index_bytes is ", bytes,
        ", none of 0, 4 and 8");
  const auto indices = [bytes](const void* p) -> sparse::Indices {
    if (bytes == 4) return static_cast<const std::int32_t*>(p);
    return static_cast<const std::int64_t*>(p);
  };
  return {pattern->rows,
          pattern->cols,
          pattern->entries,
          static_cast<sparse::Storage>(pattern->storage),
          indices(pattern->pointers),
          indices(pattern->row_indices),
          indices(pattern->col_indices)};
}

void check_count(Index count, Index expected, const char* what) {
  check(count == expected, ErrorCode::invalid_argument, "count is ", count, " where ", expected, " ", what,
        " are needed");
}

sparse::FactorOptions options_of(const qrane_sparse_options* given) {
  const auto o = read_struct(given, qrane_sparse_options QRANE_SPARSE_OPTIONS_INIT, "options");
  check_range("options->processor", o.processor, QRANE_PROCESSOR_DEVICE);
  sparse::FactorOptions options;
  options.processor = static_cast<sparse::Processor>(o.processor);
  options.q = o.discard_q != 0 ? sparse::KeepQ::discard : sparse::KeepQ::keep;
  options.detect_rank = o.no_rank_detection == 0;
  options.refuse_deficient = o.refuse_deficient != 0;
  options.check_finite = o.check_finite != 0;
  options.threads = o.threads;
  options.absolute_tolerance = o.absolute_tolerance;
  options.memory_limit_bytes = o.memory_limit_bytes;
  if (o.progress != nullptr)
    options.on_progress = [call = o.progress, user = o.user](double done, double all) { call(done, all, user); };
  return options;
}

template <class T>
int factor(const char* function, const qrane_sparse_analysis* analysis, const T* values, Index count,
           const MatrixOf<T>* rhs, const qrane_sparse_options* options, qrane_sparse_factor** target) {
  return guarded(function, [&] {
    check_not_null(target, "factor");
    *target = nullptr;
    check_not_null(analysis, "analysis");
    const sparse::AnalysisFacts& facts = analysis->analysis.facts();
    check_count(count, facts.entries + facts.duplicates, "values of the pattern");
    const qrane::Context& context = analysis->analysis.context();
    const MatrixView<const T> right = optional_view<T>(context, rhs, "rhs");
    *target = new qrane_sparse_factor{context, count, analysis->analysis.factor(values, options_of(options), right)};
  });
}

template <class T>
int refactor(const char* function, qrane_sparse_factor* handle, const T* values, Index count, const MatrixOf<T>* rhs) {
  return guarded(function, [&] {
    sparse::Factor<T>& f = factor_of<T>(handle);
    check_count(count, handle->values, "values of the pattern");
    f.refactor(values, optional_view<T>(handle->context, rhs, "rhs"));
  });
}

template <class T>
int get_r(const char* function, const qrane_sparse_factor* handle, Index* pointers, Index* row_indices, T* values,
          Index capacity) {
  return guarded(function, [&] {
    const sparse::Factor<T>& f = factor_of<T>(handle);
    check_not_null(pointers, "pointers");
    check((row_indices == nullptr) == (values == nullptr), ErrorCode::invalid_argument,
          "one of row_indices and values is null, and the other is not");
    const sparse::SparseMatrix<T> r = f.r();
    check(values == nullptr || capacity >= r.pointers.back(), ErrorCode::invalid_argument, "capacity is ", capacity,
          " where R has ", r.pointers.back(), " entries");
    std::copy(r.pointers.begin(), r.pointers.end(), pointers);
    if (values == nullptr) return;
    std::copy(r.row_indices.begin(), r.row_indices.end(), row_indices);
    std::copy(r.values.begin(), r.values.end(), values);
  });
}

template <class T>
void write(const qrane_sparse_factor& handle, const qrane::Solution<T>& solution, const MatrixOf<T>* x,
           qrane_sparse_solution* info, double* norms) {
  const MatrixView<T> target = view_of<T>(handle.context, x, "x");
  check_shape("x", target.rows, target.cols, solution.x.rows(), solution.x.cols());
  handle.context.template copy<T>(solution.x.view(), target);
  if (info != nullptr)
    write_struct(qrane_sparse_solution{sizeof(qrane_sparse_solution), solution.rank, solution.full}, info);
  if (norms != nullptr) std::copy(solution.residual_norms.begin(), solution.residual_norms.end(), norms);
}

template <class T>
int solve(const char* function, bool transposed, const qrane_sparse_factor* handle, const MatrixOf<T>* b,
          const MatrixOf<T>* x, qrane_sparse_solution* info, double* norms) {
  return guarded(function, [&] {
    const sparse::Factor<T>& f = factor_of<T>(handle);
    if (info != nullptr) check_struct(info, "info");
    if (b == nullptr && !transposed) return write<T>(*handle, f.solve(), x, info, norms);
    const MatrixView<const T> rhs = view_of<T>(handle->context, b, "b");
    write<T>(*handle, transposed ? f.solve_transposed(rhs) : f.solve(rhs), x, info, norms);
  });
}

template <class T>
int apply(const char* function, const qrane_sparse_factor* handle, int transpose, const MatrixOf<T>* c) {
  return guarded(function, [&] {
    const sparse::Factor<T>& f = factor_of<T>(handle);
    const MatrixView<T> target = view_of<T>(handle->context, c, "c");
    transpose != 0 ? f.apply_qt(target) : f.apply_q(target);
  });
}

void copy_columns(const std::vector<Index>& columns, Index* target, Index count) {
  check_count(count, static_cast<Index>(columns.size()), "columns");
  if (count > 0) check_not_null(target, "columns");
  std::copy(columns.begin(), columns.end(), target);
}

}  // namespace

extern "C" {

int qrane_sparse_analyze(qrane_context* context, const qrane_sparse_pattern* pattern, const int64_t* permutation,
                         const qrane_analyze_options* given, qrane_sparse_analysis** analysis) {
  return guarded(__func__, [&] {
    check_not_null(analysis, "analysis");
    *analysis = nullptr;
    check_not_null(context, "context");
    const sparse::Pattern entries = pattern_of(pattern);
    const auto o = read_struct(given, qrane_analyze_options QRANE_ANALYZE_OPTIONS_INIT, "options");
    check_range("options->ordering", o.ordering, QRANE_ORDERING_GIVEN);
    sparse::AnalyzeOptions options;
    options.ordering = static_cast<sparse::Ordering>(o.ordering);
    options.singletons = o.no_singletons == 0;
    *analysis = new qrane_sparse_analysis{sparse::analyze(context->context, entries, options, permutation)};
  });
}

void qrane_sparse_analysis_destroy(qrane_sparse_analysis* analysis) { delete analysis; }

int qrane_sparse_analysis_facts(const qrane_sparse_analysis* analysis, qrane_analysis_facts* target) {
  return guarded(__func__, [&] {
    check_not_null(analysis, "analysis");
    check_struct(target, "facts");
    const sparse::AnalysisFacts& facts = analysis->analysis.facts();
    qrane_analysis_facts out = QRANE_ANALYSIS_FACTS_INIT;
    out.rows = facts.rows;
    out.cols = facts.cols;
    out.entries = facts.entries;
    out.duplicates = facts.duplicates;
    out.ordering = static_cast<std::int32_t>(facts.ordering);
    out.singletons = facts.singletons;
    out.fronts = facts.fronts;
    out.largest_rows = facts.largest_rows;
    out.largest_cols = facts.largest_cols;
    out.r_entries = facts.r_entries;
    out.rank_bound = facts.structural_rank_bound;
    out.flops = facts.flops;
    out.factor_bytes = facts.factor_bytes;
    out.intensity = facts.intensity;
    write_struct(out, target);
  });
}

int qrane_sparse_ordering(const qrane_sparse_analysis* analysis, int64_t* columns, int64_t count) {
  return guarded(__func__, [&] {
    check_not_null(analysis, "analysis");
    copy_columns(analysis->analysis.column_permutation(), columns, count);
  });
}

int qrane_sparse_factor_s(const qrane_sparse_analysis* analysis, const float* values, int64_t count,
                          const qrane_matrix_s* rhs, const qrane_sparse_options* options, qrane_sparse_factor** f) {
  return factor<float>(__func__, analysis, values, count, rhs, options, f);
}
int qrane_sparse_factor_d(const qrane_sparse_analysis* analysis, const double* values, int64_t count,
                          const qrane_matrix_d* rhs, const qrane_sparse_options* options, qrane_sparse_factor** f) {
  return factor<double>(__func__, analysis, values, count, rhs, options, f);
}

int qrane_sparse_refactor_s(qrane_sparse_factor* f, const float* values, int64_t count, const qrane_matrix_s* rhs) {
  return refactor(__func__, f, values, count, rhs);
}
int qrane_sparse_refactor_d(qrane_sparse_factor* f, const double* values, int64_t count, const qrane_matrix_d* rhs) {
  return refactor(__func__, f, values, count, rhs);
}

void qrane_sparse_factor_destroy(qrane_sparse_factor* f) { delete f; }

int qrane_sparse_factor_facts(const qrane_sparse_factor* f, qrane_sparse_facts* target) {
  return guarded(__func__, [&] {
    check_not_null(f, "factor");
    check_struct(target, "facts");
    const auto& facts = std::visit(
        [](const auto& of) -> const auto& { return of.facts(); }, f->factor);
    qrane_sparse_facts out = QRANE_SPARSE_FACTS_INIT;
    out.rows = std::visit([](const auto& of) { return of.rows(); }, f->factor);
    out.cols = std::visit([](const auto& of) { return of.cols(); }, f->factor);
    out.rank = facts.rank;
    out.backend = static_cast<std::int32_t>(facts.backend);
    out.threads = facts.threads;
    out.scalar_bytes = f->factor.index() == 0 ? 4 : 8;
    out.analyzed_again = facts.analyzed_again;
    out.seconds = facts.seconds;
    out.flops = facts.flops;
    out.absolute_tolerance = facts.absolute_tolerance;
    out.dropped_norm = facts.dropped_norm;
    out.bytes = facts.bytes;
    out.peak_bytes = facts.peak_bytes;
    out.moved_bytes = facts.moved_bytes;
    out.on_device = facts.on_device;
    out.stages = facts.stages;
    out.column_tolerance = facts.column_tolerance;
    write_struct(out, target);
  });
}

int qrane_sparse_permutation(const qrane_sparse_factor* f, int64_t* columns, int64_t count) {
  return guarded(__func__, [&] {
    check_not_null(f, "factor");
    copy_columns(std::visit([](const auto& of) { return of.permutation(); }, f->factor), columns, count);
  });
}

int qrane_sparse_r_s(const qrane_sparse_factor* f, int64_t* pointers, int64_t* row_indices, float* values,
                     int64_t capacity) {
  return get_r(__func__, f, pointers, row_indices, values, capacity);
}
int qrane_sparse_r_d(const qrane_sparse_factor* f, int64_t* pointers, int64_t* row_indices, double* values,
                     int64_t capacity) {
  return get_r(__func__, f, pointers, row_indices, values, capacity);
}

int qrane_sparse_solve_s(const qrane_sparse_factor* f, const qrane_matrix_s* b, const qrane_matrix_s* x,
                         qrane_sparse_solution* info, double* norms) {
  return solve<float>(__func__, false, f, b, x, info, norms);
}
int qrane_sparse_solve_d(const qrane_sparse_factor* f, const qrane_matrix_d* b, const qrane_matrix_d* x,
                         qrane_sparse_solution* info, double* norms) {
  return solve<double>(__func__, false, f, b, x, info, norms);
}

int qrane_sparse_solve_transposed_s(const qrane_sparse_factor* f, const qrane_matrix_s* b, const qrane_matrix_s* x,
                                    qrane_sparse_solution* info, double* norms) {
  return solve<float>(__func__, true, f, b, x, info, norms);
}
int qrane_sparse_solve_transposed_d(const qrane_sparse_factor* f, const qrane_matrix_d* b, const qrane_matrix_d* x,
                                    qrane_sparse_solution* info, double* norms) {
  return solve<double>(__func__, true, f, b, x, info, norms);
}

int qrane_sparse_refine(const qrane_sparse_factor* f, const qrane_sparse_pattern* pattern, const double* values,
                        int32_t max_iterations, const qrane_matrix_d* b, const qrane_matrix_d* x,
                        qrane_sparse_refinement* info, double* norms) {
  return guarded(__func__, [&] {
    check_not_null(f, "factor");
    const sparse::SparseView<double> a{pattern_of(pattern), values};
    const MatrixView<const double> rhs = view_of<double>(f->context, b, "b");
    if (info != nullptr) check_struct(info, "info");
    sparse::RefineOptions options;
    if (max_iterations >= 0) options.max_iterations = max_iterations;
    const sparse::RefinedSolution refined =
        std::visit([&](const auto& factor) { return sparse::refine(f->context, factor, a, rhs, options); }, f->factor);
    write<double>(*f, refined, x, nullptr, norms);
    if (info != nullptr)
      write_struct(qrane_sparse_refinement{sizeof(qrane_sparse_refinement), refined.rank, refined.full,
                                           refined.iterations, refined.converged},
                   info);
  });
}

int qrane_sparse_apply_s(const qrane_sparse_factor* f, int transpose, const qrane_matrix_s* c) {
  return apply<float>(__func__, f, transpose, c);
}
int qrane_sparse_apply_d(const qrane_sparse_factor* f, int transpose, const qrane_matrix_d* c) {
  return apply<double>(__func__, f, transpose, c);
}

}  // extern "C"
