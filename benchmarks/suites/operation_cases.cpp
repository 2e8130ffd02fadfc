// SPDX-License-Identifier: Apache-2.0
// Public calls that use a factorization, from a matrix in device memory to results in device memory, timed whole: what
// they allocate and wait for on the way is theirs.
//
//   svd    U, S, V^T of a tall A. Canonical flops 4 m n^2 - 4 n^3 / 3 + 2 m n^2 (Q's factors as thin QR counts them,
//   then
//          Q times a small matrix) + 20 n^3; floor bytes: A read twice, U written.
//          Errors, with p = min(m, n) + 10 and u the unit roundoff: ||I - U^T U||_F / (p u) and
//          max_j ||a_j - U S v_j|| / (p u ||A||_2) over all columns or 64 of them.
//   batched  BatchQR::refactor of equal matrices, LAPACK-shaped or with thin Q. Canonical flops and floor bytes as
//   those
//            of one matrix, times their number. Errors: the worst of the first, the middle and the last matrix.
//   gels   min ||A x - b||. Canonical flops 2 m n^2 - 2 n^3 / 3 + 4 m n rhs; floor bytes: A read once, b read.
//          Error: ||A^T (A x - b)|| / (p u ||A||_F (||A||_F ||x|| + ||b||)): optimality to backward error's measure.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <qrane/least_squares.hpp>
#include <qrane/qr.hpp>
#include <qrane/svd.hpp>

#include "session.hpp"

namespace qrane::bench {
namespace {

constexpr std::uint64_t matrix_seed = 2011;

double norm_of(const std::vector<double>& x) {
  return x.empty() ? 0 : cblas_dnrm2(static_cast<int>(x.size()), x.data(), 1);
}

template <class T>
class OperationCases {
 public:
  OperationCases(Session& session, const OperationShape& operation, const std::string& precision)
      : session_(session), operation_(operation), shape_(operation.shape), precision_(precision) {}

  void run(const std::function<void(const OperationCase&)>& report) {
    OperationCase result = new_case();
    result.reason = reason_to_leave_out(result);
    if (!result.reason.empty()) {
      result.outcome = Outcome::left_out;
    } else {
      fill();
      measure_peers(result);
      measure(result);
    }
    if (session_.interrupted()) return;
    report(result);
  }

 private:
  bool svd_asked() const { return operation_.operation == "svd"; }
  bool batch_asked() const { return operation_.operation == "batched"; }
  Index all_cols() const { return shape_.cols * operation_.count; }
  double unit() const {
    return static_cast<double>(std::min(shape_.rows, shape_.cols) + 10) * std::numeric_limits<T>::epsilon() / 2;
  }

  OperationCase new_case() {
    const double m = static_cast<double>(shape_.rows), n = static_cast<double>(shape_.cols);
    const double rhs = static_cast<double>(operation_.rhs), size = sizeof(T);
    OperationCase result;
    result.operation = operation_;
    result.precision = precision_;
    double bytes = m * (n + rhs) * size;
    if (svd_asked()) {
      result.flops = 6 * m * n * n - 4 * n * n * n / 3 + 20 * n * n * n;
      bytes = 3 * m * n * size;
    } else if (batch_asked()) {
      const double count = static_cast<double>(operation_.count), thin = operation_.mode == QForm::thin ? 1 : 0;
      result.flops = count * (2 * m * n * n - 2 * n * n * n / 3) * (1 + thin);
      bytes = count * m * n * size * (2 + thin);
    } else {
      result.flops = 2 * m * n * n - 2 * n * n * n / 3 + 4 * m * n * rhs;
    }
    result.floor = session_.floor_for(precision_, result.flops, bytes);
    return result;
  }

  std::string reason_to_leave_out(const OperationCase& result) {
    const std::int64_t matrix = shape_.rows * all_cols() * static_cast<std::int64_t>(sizeof(T));
    std::string reason = session_.too_large(7 * matrix, 7 * matrix);
    if (reason.empty()) reason = session_.out_of_time();
    if (reason.empty()) reason = session_.too_long(precision_, result.flops, result.floor.bytes);
    return reason;
  }

  void fill() {
    device_a_ = session_.seeded<T>({shape_.rows, all_cols()}, matrix_seed);
    device_b_ = session_.seeded<T>({shape_.rows, operation_.rhs}, matrix_seed + 1);
    const bool on_cpu = session_.context().backend() == Backend::cpu;
    if (on_cpu)
      a_ = std::move(device_a_);
    else if (!batch_asked())  // a batch is looked at in part
      a_ = session_.context().to_host(device_a_);
    b_ = on_cpu ? std::move(device_b_) : session_.context().to_host(device_b_);
  }

  MatrixView<const T> input(const Matrix<T>& host, const Matrix<T>& device) const {
    return session_.context().backend() == Backend::cpu ? host.view() : device.view();
  }

  void measure_peers(OperationCase& result) {
    if (batch_asked() && operation_.mode != QForm::lapack) return;  // the peers are LAPACK-shaped
    const PeerTask task{.task = operation_.operation,
                        .shape = shape_,
                        .precision = precision_,
                        .seed = matrix_seed,
                        .count = operation_.count,
                        .rhs = operation_.rhs};
    for (const std::string& peer : session_.peers(task.task)) {
      PeerTime time{peer, {}, 0, ""};
      note("peer " + peer);
      try {
        time.samples_ms = session_.measure_peer(peer, task).numbers("total_ms");
      } catch (const std::exception& fault) {
        time.reason = fault.what();
      }
      result.peers.push_back(time);
    }
  }

  void measure(OperationCase& result) {
    try {
      note("timing");
      Options options;
      options.q = svd_asked() ? QForm::thin : batch_asked() ? operation_.mode : QForm::implicit;
      const Plan plan = plan_qr<T>(session_.context(), shape_.rows, shape_.cols, options, operation_.count);
      result.algorithm = to_string(plan.algorithm);
      result.plan = plan.explain();
      if (svd_asked())
        measure_svd(result);
      else if (batch_asked())
        measure_batch(result, options);
      else
        measure_gels(result);
      for (PeerTime& peer : result.peers)
        if (!peer.samples_ms.empty()) peer.ratio = median(peer.samples_ms) / result.median_ms();
      for (const NamedError& error : result.errors)
        if (!(error.value <= ErrorMeasures::limit)) {
          result.outcome = Outcome::failed;
          result.reason = error.name + " is above its limit";
        }
    } catch (const Error& fault) {
      const bool lacking = fault.code() == ErrorCode::out_of_memory || fault.code() == ErrorCode::unavailable;
      result.outcome = lacking ? Outcome::left_out : Outcome::failed;
      result.reason = fault.what();
      if (fault.code() == ErrorCode::device) throw;
    }
  }

  void measure_svd(OperationCase& result) {
    Svd<T> parts;
    result.samples_ms = session_.sample_ms([&] { parts = svd<T>(session_.context(), input(a_, device_a_)); });
    if (session_.interrupted()) return;
    note("checking");
    const Matrix<T> u = session_.context().to_host(parts.u), s = session_.context().to_host(parts.s);
    Matrix<T> svt = session_.context().to_host(parts.vt);
    for (Index j = 0; j < svt.cols(); ++j)
      for (Index i = 0; i < svt.rows(); ++i) svt(i, j) *= s(i, 0);
    // A and U as a factorization with S V^T in R's place; its residual counts each column's own norm, a stronger demand
    // that uniform matrices, whose columns have like norms, meet
    const ErrorMeasures errors =
        check_factors<T>(std::as_const(a_).view(), u.view(), std::as_const(svt).view(), {5e10 * std::max(2, 16)});
    result.errors = {{"orthogonality", errors.orthogonality}, {"residual", errors.residual}};
  }

  void measure_batch(OperationCase& result, const Options& options) {
    MatrixView<const T> first = input(a_, device_a_);
    first.cols = shape_.cols;
    const BatchView<const T> batch{.first = first, .stride = shape_.rows * shape_.cols, .count = operation_.count};
    BatchQR<T> f = qr<T>(session_.context(), batch, options);
    result.samples_ms = session_.sample_ms([&] { f.refactor(batch); });
    if (session_.interrupted()) return;
    note("checking");
    const Matrix<T> all_q = f.q(), all_r = f.r();
    const Index n = shape_.cols, k = std::min(shape_.rows, n);
    ErrorMeasures worst;
    for (const Index b : {Index{0}, operation_.count / 2, operation_.count - 1}) {
      const Matrix<T> a = columns_on_host(input(a_, device_a_), b * n, n);
      const Matrix<T> q = columns_on_host(all_q.view(), b * k, k), r = columns_on_host(all_r.view(), b * n, n);
      const ErrorMeasures errors = check_factors<T>(a.view(), q.view(), r.view(), {1e11});
      worst.orthogonality = worse(worst.orthogonality, errors.orthogonality);
      worst.residual = worse(worst.residual, errors.residual);
    }
    result.errors = {{"orthogonality", worst.orthogonality}, {"residual", worst.residual}};
  }

  /// Some columns of a matrix on the device, whose other columns stay there.
  Matrix<T> columns_on_host(MatrixView<const T> a, Index first, Index count) const {
    if (a.buffer)
      a.offset += first * a.ld;
    else
      a.data += first * a.ld;
    a.cols = count;
    return session_.context().to_host(a);
  }

  void measure_gels(OperationCase& result) {
    LeastSquaresResult<T> found;
    result.samples_ms = session_.sample_ms(
        [&] { found = least_squares<T>(session_.context(), input(a_, device_a_), input(b_, device_b_)); });
    if (session_.interrupted()) return;
    note("checking");
    if (found.from_gram) {
      result.algorithm = "gram";
      result.plan.clear();
    }
    const Matrix<T> x = session_.context().to_host(found.solution.x);
    double worst = 0;
    for (Index j = 0; j < operation_.rhs; ++j) worst = worse(worst, optimality(x, j));
    result.errors = {{"optimality", worst}};
  }

  /// ||A^T (A x - b)|| / (||A||_F (||A||_F ||x|| + ||b||)) for one right-hand side, in units of p u.
  double optimality(const Matrix<T>& x, Index column) const {
    const Index m = shape_.rows, n = shape_.cols;
    std::vector<double> residual(static_cast<std::size_t>(m)), gradient(static_cast<std::size_t>(n)), wide_x(gradient),
        squares(gradient);
    for (Index j = 0; j < n; ++j) wide_x[static_cast<std::size_t>(j)] = static_cast<double>(x(j, column));
    std::vector<double> wide_b(residual);
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < m; ++i) wide_b[static_cast<std::size_t>(i)] = static_cast<double>(b_(i, column));
    residual = wide_b;
    constexpr Index tile = 4096;
#pragma omp parallel for schedule(static)
    for (Index begin = 0; begin < m; begin += tile)
      for (Index j = 0; j < n; ++j)
        for (Index i = begin; i < std::min(m, begin + tile); ++i)
          residual[static_cast<std::size_t>(i)] -= static_cast<double>(a_(i, j)) * wide_x[static_cast<std::size_t>(j)];
#pragma omp parallel for schedule(static)
    for (Index j = 0; j < n; ++j) {
      double sum = 0, square = 0;
      for (Index i = 0; i < m; ++i) {
        const double a = static_cast<double>(a_(i, j));
        sum += a * residual[static_cast<std::size_t>(i)];
        square += a * a;
      }
      gradient[static_cast<std::size_t>(j)] = sum;
      squares[static_cast<std::size_t>(j)] = std::sqrt(square);
    }
    const double norm_a = norm_of(squares);
    return norm_of(gradient) / (norm_a * (norm_a * norm_of(wide_x) + norm_of(wide_b))) / unit();
  }

  void note(const std::string& what) const {
    session_.progress(
        detail::concat(operation_.operation, " ", shape_.rows, " x ", shape_.cols, " ", precision_, ": ", what));
  }

  Session& session_;
  const OperationShape& operation_;
  Shape shape_;
  std::string precision_;
  Matrix<T> a_, device_a_, b_, device_b_;
};

}  // namespace

void run_operation_case(Session& session, const OperationShape& operation, const std::string& precision,
                        const std::function<void(const OperationCase&)>& report) {
  if (precision == "f32")
    OperationCases<float>(session, operation, precision).run(report);
  else
    OperationCases<double>(session, operation, precision).run(report);
}

}  // namespace qrane::bench
