// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖: from the Gram matrix where that is proven good enough (gram_least_squares.hpp), else by QR of A, or
// for wide A of Aᵀ = Q R, where x = Q [R^-T b; 0] has the least norm. A and b are read where they lie, if that is
// column-major device memory.
#pragma once

#include <qrane/least_squares.hpp>

#include <algorithm>

#include "dense/kept.hpp"
#include "dense/solve/consume.hpp"
#include "dense/solve/gram_least_squares.hpp"

namespace qrane::dense {

/// ‖A x - b‖_2 of every column by one pass over A, where the backend has it; negative where a square left double's
/// range.
template <class B, class T>
std::vector<double> fused_residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                                         const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& b) {
  std::vector<double> norms(static_cast<std::size_t>(b.cols));
  const Index scratch_bytes = least_squares_scratch_bytes(queue, 8), result_bytes = (b.cols * 8 + 255) / 256 * 256;
  const Buffer<B> memory(queue, result_bytes + scratch_bytes);
  const backend::Scratch<B> scratch{memory.template as<std::byte>(result_bytes), scratch_bytes};
  residual_squares(queue, a, x, b, memory.template as<double>(), scratch);
  queue.download(memory.template as<double>(), norms.data(), b.cols);
  for (double& norm : norms) norm = norm > 1e-290 && norm < 1e290 ? std::sqrt(norm) : -1;
  return norms;
}

/// ‖A x - b‖_2 of every column, r holding b on entry.
template <class B, class T>
std::vector<double> general_residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                                           const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& r) {
  using backend::Op;
  std::vector<double> norms(static_cast<std::size_t>(r.cols));
  if (a.cols > 0) gemm(queue, Op::none, Op::none, T(-1), a, x, T(1), r);
  const Index scratch_bytes = Index{1} << 20;
  const Buffer<B> memory(queue, r.cols * 8 + 256 + scratch_bytes);
  const backend::Scratch<B> scratch{memory.template as<std::byte>((r.cols * 8 + 255) / 256 * 256), scratch_bytes};
  const auto sums = memory.template as<double>();
  const auto measure = [&](const backend::DeviceMatrix<B, T>& a) {
    for (Index c = 0; c < a.cols; ++c) sum_squares(queue, a.columns(c, 1), sums + c, scratch);
    queue.download(sums, norms.data(), a.cols);
  };
  if (r.cols == 0) return norms;
  measure(r);
  const double largest = *std::max_element(norms.begin(), norms.end());
  double scale = 1;
  if (!(largest < 1e290) || largest < 1e-290) {  // squares near an end of double's range: again, scaled to about 1
    max_abs(queue, r, sums, scratch);
    double most = 0;
    queue.download(sums, &most, 1);
    if (most > 0 && std::isfinite(most)) {
      scale = std::ldexp(1.0, std::clamp(-std::ilogb(most), -1000, sizeof(T) == 4 ? 100 : 1000));
      Temporary<B, T> identity(queue, r.cols, r.cols), scaled(queue, r.rows, r.cols);
      fill(queue, identity.matrix, T(0), static_cast<T>(scale));
      gemm(queue, Op::none, Op::none, T(1), r, identity.matrix, T(0), scaled.matrix);
      measure(scaled.matrix);
      queue.synchronize();
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm) / scale;
  return norms;
}

/// ‖A x - b‖_2 of every column.
template <class B, class T>
std::vector<double> residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                                   const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& b) {
  constexpr Index most_rhs = 16, most_cols = 1024;  // past that products are faster
  const Index widest = std::min<Index>(most_cols, queue.limits(T{}).max_residual_columns);
  if (widest > 0 && a.cols <= widest && a.rows > 0 && b.cols > 0 && b.cols <= most_rhs) {
    std::vector<double> norms = fused_residual_norms<B, T>(queue, a, x, b);
    if (std::all_of(norms.begin(), norms.end(), [](double norm) { return norm >= 0; })) return norms;
  }
  const Temporary<B, T> residual(queue, b.rows, b.cols);
  copy(queue, b, residual.matrix, backend::Part::all);
  std::vector<double> norms = general_residual_norms<B, T>(queue, a, x, residual.matrix);
  queue.synchronize();
  return norms;
}

/// Least squares for systems of one shape: the decisions, the memory, and one solution at a time.
template <class B, class T>
class LeastSquaresWork {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  LeastSquaresWork(const Queue& queue, const plan::DeviceProfile& profile, Index rows, Index cols, Index nrhs,
                   Algorithm algorithm, Fallback fallback)
      : queue_(queue), profile_(profile), rows_(rows), cols_(cols), nrhs_(nrhs), queued_(fallback == Fallback::queued) {
    detail::check(nrhs >= 0, ErrorCode::invalid_argument, "the number of right-hand sides is negative: ", nrhs);
    constexpr Index most_rhs = 32;  // each four are one more pass over A
    const Index widest = std::min(profile.limits.max_solve_gram, profile.limits.max_cholesky);
    gram_ = sizeof(T) == 4 && algorithm == Algorithm::automatic && cols > 0 && cols <= widest && rows >= 2 * cols &&
            nrhs > 0 && nrhs <= most_rhs;
    Options wish;
    wish.algorithm = gram_ && queued_ ? Algorithm::caqr : algorithm;  // no library products under a flag
    const auto planned = [&](QForm q) {
      wish.q = q;
      plan_ = plan::make_plan(profile, std::max(rows, cols), std::min(rows, cols), 1, sizeof(T), wish);
      return plan_.algorithm;
    };
    // where Q comes out explicit from Cholesky QR it is the faster way to Qᵀ b too
    if (wide() || sizeof(T) == 4 || algorithm != Algorithm::automatic || planned(QForm::thin) != Algorithm::cholesky_qr)
      planned(QForm::implicit);
    plan_.workspace_bytes = Factorization<B, T>::workspace_bytes(plan_);
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index rhs_cols() const { return nrhs_; }
  const Plan& plan() const { return plan_; }

  /// With matrices of the user's in column-major device memory.
  Index workspace_bytes() {
    Carver<B> sizes;
    carve(sizes);
    const Index transposed_bytes = wide() ? bytes_of(rows_, cols_, 1, sizeof(T)) : 0;
    return sizes.used() + (takes_qr_at_once() ? plan_.workspace_bytes : 0) + transposed_bytes;
  }
  /// Device memory that is held.
  Index bytes() const {
    return memory_.bytes() + a_memory_.bytes() + b_memory_.bytes() + (f_ ? plan_.workspace_bytes : 0);
  }

  /// x, which finish() completes. Queues work alone from and to column-major device memory, and allocates the first
  /// time alone. `residuals`: finish() will ask for their norms.
  void execute(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x, bool check, bool residuals) {
    check_shapes(a, b, x);
    reserve();
    a_ = a_memory_.bring(queue_, wide() ? transposed(a) : a);
    b_ = b_memory_.bring(queue_, b);
    if (check) {
      check_finite<B, T>(queue_, "A", a_, wide());
      check_finite<B, T>(queue_, "b", b_);
    }
    a_view_ = a;
    x_view_ = x;
    x_ = is_in_place<B>(x) ? as_device<B>(x) : x_memory_;
    residuals_ = residuals;
    if (gram_)
      by_gram();
    else
      by_qr();
    deliver();
  }

  /// Waits, and decides the rank; x is replaced as the options ask where it is deficient. The solution comes without x.
  Solution<T> finish(const SolveOptions& options) {
    if (gram_) {
      if (auto out = finish_gram_solution<B, T>(queue_, profile_, gram_work_, a_, b_, x_, options, residuals_)) {
        if (out->deficient()) deliver();
        return std::move(*out);
      }
      if (!queued_) by_qr();
    }
    RankView<B, T> rank(*f_);
    const double tolerance = tolerance_or_default<T>(options.relative_tolerance, rows_, cols_);
    Solution<T> out;
    out.full = std::min(rows_, cols_);
    out.condition = rank.condition;
    out.rank = rank.decide(tolerance);
    refuse_deficient(options, out.rank, out.full, tolerance, out.condition);
    if (out.deficient()) wide() ? solve_deficient_wide(rank, out.rank, options) : solve_deficient_tall(rank, options);
    if (out.deficient() || gram_) deliver();
    if (residuals_) out.residual_norms = norms();
    queue_.synchronize();
    return out;
  }

 private:
  bool wide() const { return rows_ < cols_; }
  bool takes_qr_at_once() const { return queued_ || !gram_; }
  /// The rows of Qᵀ b, or b, that a solve keeps.
  Index rows_of_y() const { return wide() || plan_.q == QForm::thin ? std::min(rows_, cols_) : rows_; }

  void check_shapes(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& x) const {
    check_view("A", a);
    check_view("b", b);
    check_view("x", x);
    detail::check(a.rows == rows_ && a.cols == cols_, ErrorCode::invalid_argument, "A is ", a.rows, " x ", a.cols,
                  " where ", rows_, " x ", cols_, " is needed");
    detail::check(b.rows == rows_ && b.cols == nrhs_, ErrorCode::invalid_argument, "b is ", b.rows, " x ", b.cols,
                  " where ", rows_, " x ", nrhs_, " is needed");
    detail::check(x.rows == cols_ && x.cols == nrhs_, ErrorCode::invalid_argument, "x is ", x.rows, " x ", x.cols,
                  " where ", cols_, " x ", nrhs_, " is needed");
  }

  void carve(Carver<B>& carver) {
    if (gram_) gram_work_ = GramLeastSquares<B, T>(carver, queue_, rows_, cols_, nrhs_);
    x_memory_ = carver.template matrix<T>(cols_, nrhs_);
    y_ = carver.template matrix<T>(rows_of_y(), nrhs_);
    z_ = carver.template matrix<T>(gram_ ? cols_ : 0, nrhs_);
  }

  void reserve() {
    const bool needs_memory = memory_.bytes() == 0, needs_qr = takes_qr_at_once() && !f_;
    detail::check(!queue_.captured() || !(needs_memory || needs_qr), ErrorCode::unavailable,
                  "the first execute() of a LeastSquaresPlan allocates: call it once before the stream is captured");
    if (needs_memory) {
      Carver<B> sizes;
      carve(sizes);
      memory_ = Buffer<B>(queue_, std::max<Index>(sizes.used(), 1));
      Carver<B> carver(memory_.template as<std::byte>());
      carve(carver);
    }
    if (needs_qr) make_qr();
  }
  void make_qr() { f_ = std::make_unique<Factorization<B, T>>(queue_, plan_); }

  void by_gram() {
    queue_gram_solution<B, T>(queue_, gram_work_, a_, b_, x_, residuals_);
    if (!queued_) return;
    queue_.guarded(gram_work_.failed, [&](Queue& refused) {
      f_->run_under(refused, a_);
      copy(refused, b_, y_, backend::Part::all);
      f_->apply_under(refused, backend::Op::transpose, y_);
      copy(refused, y_.block(0, 0, cols_, nrhs_), z_, backend::Part::all);
    });
    solve_triangle<B, T>(*f_, backend::Op::none, z_);  // a library call: whether or not it counts
    auto refused = queue_.when(gram_work_.failed);
    copy(refused, z_, x_, backend::Part::all);
  }

  void by_qr() {
    using backend::Op;
    if (!f_) make_qr();
    f_->run(a_);
    if (wide()) {
      fill(queue_, x_, T(0), T(0));
      const Mat top = x_.block(0, 0, rows_, nrhs_);
      copy(queue_, b_, y_, backend::Part::all);
      copy(queue_, b_, top, backend::Part::all);
      solve_triangle<B, T>(*f_, Op::transpose, top);
      return lift(*f_, x_);
    }
    if (plan_.q != QForm::thin) copy(queue_, b_, y_, backend::Part::all);
    copy(queue_, project(*f_, plan_.q == QForm::thin ? b_ : y_, y_), x_, backend::Part::all);
    solve_triangle<B, T>(*f_, Op::none, x_);
  }

  /// From y, which stays for another look.
  void solve_deficient_tall(RankView<B, T>& rank, const SolveOptions& options) {
    const Temporary<B, T> y(queue_, cols_, nrhs_);
    copy(queue_, y_.block(0, 0, cols_, nrhs_), y.matrix, backend::Part::all);
    const Solution<T> solved = solve_projected<B, T>(*f_, rank, profile_, y.matrix, options, Memory::device);
    copy(queue_, as_device<B>(solved.x.view()), x_, backend::Part::all);
    queue_.synchronize();
  }
  /// Rᵀ w = b, rank-deficient, on the host; x = Q [w; 0].
  void solve_deficient_wide(RankView<B, T>& rank, Index numerical_rank, const SolveOptions& options) {
    HostMatrix lower(rows_, rows_);
    for (Index j = 0; j < rows_; ++j)
      for (Index i = j; i < rows_; ++i) lower(i, j) = rank.r()(j, i);
    const Matrix<T> w = from_host_matrix<T>(solve_deficient(pivoted_qr(std::move(lower)), numerical_rank,
                                                            to_host_matrix<B, T>(queue_, y_), options.least_norm));
    fill(queue_, x_, T(0), T(0));
    load<B, T>(queue_, w.view(), x_.block(0, 0, rows_, nrhs_));
    lift(*f_, x_);
  }

  std::vector<double> norms() {
    if (!wide()) return residual_norms<B, T>(queue_, a_, x_, b_);
    if (is_in_place<B>(a_view_)) return residual_norms<B, T>(queue_, as_device<B>(a_view_), x_, b_);
    const Temporary<B, T> a(queue_, rows_, cols_);
    transpose(queue_, a_, a.matrix);
    return residual_norms<B, T>(queue_, a.matrix, x_, b_);
  }

  void deliver() {
    if (!is_in_place<B>(x_view_)) store<B, T>(queue_, x_, x_view_);
  }

  Queue queue_;
  plan::DeviceProfile profile_;
  Index rows_, cols_, nrhs_;
  bool queued_, gram_ = false, residuals_ = false;
  Plan plan_;
  std::unique_ptr<Factorization<B, T>> f_;  // of A, or of Aᵀ where A is wide
  Buffer<B> memory_;
  Brought<B, T> a_memory_, b_memory_;
  GramLeastSquares<B, T> gram_work_;
  Mat x_memory_, y_, z_;  // x where the user's is out of reach; Qᵀ b, or b where A is wide; x by a QR under a flag
  // the last one
  Mat a_, b_, x_;
  MatrixView<const T> a_view_;
  MatrixView<T> x_view_;
};

template <class B, class T>
Solution<T> least_squares(typename B::Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept,
                          MatrixView<const T> a, MatrixView<const T> b, const LeastSquaresOptions& options) {
  check_view("A", a);
  check_view("b", b);
  detail::check(b.rows == a.rows, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", a.rows);
  auto work = kept.template lease<LeastSquaresWork<B, T>>({a.rows, a.cols, b.cols, options.algorithm}, [&] {
    return LeastSquaresWork<B, T>(queue, profile, a.rows, a.cols, b.cols, options.algorithm, Fallback::in_finish);
  });
  Matrix<T> x = b.memory == Memory::host ? Matrix<T>::host(a.cols, b.cols) : device_matrix<B, T>(queue, a.cols, b.cols);
  work->execute(a, b, x.view(), options.check_finite, true);
  Solution<T> out = work->finish(options.solve);
  out.x = std::move(x);
  work.keep();
  return out;
}

}  // namespace qrane::dense
