// SPDX-License-Identifier: Apache-2.0
// The thin SVD of a matrix, tall or taken as its transpose, with nothing on the host but what the user's memory asks
// for.
//
//   through G   float data: G = AᵀA in double, V and Σ of G, U = A (V Σ^-1), with double products, rounded once. U is
//               orthonormal to κ² 2^-53, so Σ decides: beyond κ = 1e4 a flag is raised on the device, and the stable
//               way follows: queued at once under that flag (a plan), or after the host has read it (a call).
//   through R   A = Q R, R = U_R Σ Vᵀ, U = Q U_R: backward stable for every A.
//   on host     the same with the SVD of R by LAPACK, where the backend has none or R is too wide for it.
#pragma once

#include <qrane/svd.hpp>

#include "dense/kept.hpp"
#include "dense/solve/consume.hpp"

namespace qrane::dense {

using backend::small_svd_work;

inline HostMatrix transposed(const HostMatrix& a) {
  HostMatrix out(a.cols, a.rows);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) out(j, i) = a(i, j);
  return out;
}

/// SVDs of matrices of one shape: the decisions, the memory, and one SVD at a time. A is seen as tall, with m >= n; of
/// a wide one all views are transposed.
template <class B, class T>
class SvdWork {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  SvdWork(const Queue& queue, const plan::DeviceProfile& profile, Index rows, Index cols, const SvdOptions& options,
          Fallback fallback)
      : queue_(queue),
        rows_(rows),
        cols_(cols),
        m_(std::max(rows, cols)),
        n_(std::min(rows, cols)),
        vectors_(options.vectors),
        queued_(fallback == Fallback::queued) {
    const backend::Limits limits = queue_.limits(T{});
    on_device_ = n_ > 0 && n_ <= limits.max_small_svd;
    gram_ = on_device_ && sizeof(T) == 4 && options.algorithm == Algorithm::automatic && n_ <= limits.max_multiply_full;
    // R, and Q in the form that the algorithm is best at; what runs under a flag cannot use library products
    Options wish;
    wish.algorithm = gram_ && queued_ ? Algorithm::caqr : options.algorithm;
    const bool thin = options.algorithm == Algorithm::automatic || options.algorithm == Algorithm::cholesky_qr;
    wish.q = !vectors_ ? QForm::none : thin ? QForm::thin : QForm::implicit;
    plan_ = plan::make_plan(profile, m_, n_, 1, sizeof(T), wish);
    plan_.workspace_bytes = Factorization<B, T>::workspace_bytes(plan_);
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  const Plan& plan() const { return plan_; }
  bool on_device() const { return on_device_; }

  /// With matrices of the user's in column-major device memory.
  Index workspace_bytes() {
    Carver<B> sizes;
    carve(sizes);
    const Index matrix_bytes = rows_ < cols_ ? bytes_of(m_, n_, 1, sizeof(T)) : 0;  // Aᵀ, and U of Aᵀ
    return sizes.used() + (takes_qr_at_once() ? plan_.workspace_bytes : 0) + (vectors_ ? 2 : 1) * matrix_bytes;
  }
  /// Device memory that is held.
  Index bytes() const {
    return memory_.bytes() + a_memory_.bytes() + u_memory_.bytes() + (f_ ? plan_.workspace_bytes : 0);
  }

  /// A's SVD into s, u and vt, which finish() completes. Queues work alone where all of it runs on the device, from and
  /// to column-major device memory, and allocates the first time alone.
  void execute(MatrixView<const T> a, MatrixView<T> s, MatrixView<T> u, MatrixView<T> vt, bool check) {
    check_shapes(a, s, u, vt);
    const bool wide = rows_ < cols_;
    s_ = s;
    left_ = wide ? transposed(vt) : u;
    right_ = wide ? u : transposed(vt);
    reserve();
    a_ = a_memory_.bring(queue_, wide ? transposed(a) : a);
    if (check) check_finite<B, T>(queue_, "A", a_, wide);
    if (vectors_) u_ = place_of_u();
    small_.reset();
    if (gram_)
      through_gram();
    else
      through_r(queue_, false);
    const auto stays = [](const MatrixView<T>& v) { return v.rows == 0 || v.cols == 0 || is_resident<B>(v); };
    completed_ = !(stays(s_) && stays(left_) && stays(right_));
    if (completed_) corrected_ = complete();  // before anything leaves the device
    deliver();
  }

  /// Waits; whether LAPACK had the last word here, on the host.
  bool finish() {
    if (!completed_ && (corrected_ = complete())) deliver();
    queue_.synchronize();
    return on_device_ && small_.has_value();
  }

 private:
  static constexpr Index plenty = Index{1} << 26;  // of partial Gram matrices

  bool takes_qr_at_once() const { return queued_ || !gram_; }

  void check_shapes(const MatrixView<const T>& a, const MatrixView<T>& s, const MatrixView<T>& u,
                    const MatrixView<T>& vt) const {
    const auto shaped = [](const char* name, const auto& v, Index rows, Index cols) {
      check_view(name, v);
      detail::check(v.rows == rows && v.cols == cols, ErrorCode::invalid_argument, name, " is ", v.rows, " x ", v.cols,
                    " where ", rows, " x ", cols, " is needed");
    };
    shaped("A", a, rows_, cols_);
    shaped("s", s, n_, 1);
    shaped("u", u, vectors_ ? rows_ : 0, vectors_ ? n_ : 0);
    shaped("vt", vt, vectors_ ? n_ : 0, vectors_ ? cols_ : 0);
  }

  void carve(Carver<B>& carver) {
    if (!on_device_) return;
    for (auto* w : {&r_, &v_, &product_}) *w = carver.template matrix<double>(n_, n_);
    sigma_ = carver.template take<double>(n_);
    work_ = carver.template take<double>(small_svd_work(queue_, n_));
    failed_ = carver.template take<std::int32_t>(8);
    scratch_.bytes = gram_ ? std::clamp(8 * m_ * n_, Index{1} << 20, plenty) : 0;
    scratch_.data = carver.template take<std::byte>(scratch_.bytes);
  }

  void reserve() {
    const bool needs_memory = on_device_ && memory_.bytes() == 0, needs_qr = takes_qr_at_once() && !f_;
    detail::check(!queue_.captured() || !(needs_memory || needs_qr || !on_device_), ErrorCode::unavailable,
                  on_device_ ? "the first execute() of an SvdPlan allocates: call it once before the stream is captured"
                             : "an SVD of this width takes the host on this device, and cannot be captured");
    if (needs_memory) {
      Carver<B> sizes;
      carve(sizes);
      memory_ = Buffer<B>(queue_, sizes.used());
      Carver<B> carver(memory_.template as<std::byte>());
      carve(carver);
    }
    if (needs_qr) make_qr();
  }
  void make_qr() { f_ = std::make_unique<Factorization<B, T>>(queue_, plan_); }

  /// Where kernels leave U: where the user wants it, if they can.
  Mat place_of_u() {
    if (is_in_place<B>(left_)) return as_device<B>(left_);
    const Index ld = std::max<Index>(m_, 1);
    if (u_memory_.bytes() == 0) u_memory_ = Buffer<B>(queue_, bytes_of(ld, n_, 1, sizeof(T)));
    return {u_memory_.template as<T>(), m_, n_, ld, 0, 1};
  }

  typename B::template Pointer<std::int32_t> gram_refused() const { return failed_; }
  typename B::template Pointer<std::int32_t> not_orthonormal() const { return failed_ + 1; }

  void through_gram() {
    set_flags(queue_, failed_, 2, 0);
    gram(queue_, a_, r_, scratch_);
    backend::SmallSvd<B> task = small_task();
    task.gram = true;
    task.most_condition = 1e4;
    task.accuracy = 0x1p-40;  // U has V's errors times the condition number
    task.failed = gram_refused();
    if (vectors_) {
      task.product = backend::SmallSvd<B>::Product::whiten;
      task.result = product_;
    }
    small_svd(queue_, task);
    if (vectors_) multiply_full(queue_, a_, product_, u_);
    if (queued_) queue_.guarded(gram_refused(), [&](Queue& conditional) { through_r(conditional, true); });
  }

  void through_r(Queue& queue, bool conditional) {
    if (!f_) make_qr();
    conditional ? f_->run_under(queue, a_) : f_->run(a_);
    if (!on_device_) return finish_on_host();
    widen(queue, f_->r_source(), r_);
    backend::SmallSvd<B> task = small_task();
    if (vectors_) {
      set_flags(queue, not_orthonormal(), 1, 0);
      task.u = product_;
      task.most_condition = backend::SmallSvd<B>::orthonormal_to;
      task.failed = not_orthonormal();
    }
    small_svd(queue, task);
    if (vectors_) lift_u(queue);
  }

  backend::SmallSvd<B> small_task() const {
    backend::SmallSvd<B> task;
    task.r = r_;
    task.v = v_;
    task.sigma = sigma_;
    task.work = work_;
    task.accuracy = sizeof(T) == 4 ? 0x1p-28 : 0x1p-52;
    return task;
  }

  /// U := Q U_R, U_R in product_.
  void lift_u(Queue& queue) {
    using backend::Op;
    if (gram_) {
      multiply_full(queue, f_->q(), product_, u_);
      return;
    }
    if (f_->keeps_reflectors()) {
      fill(queue, u_, T(0), T(0));
      narrow(queue, product_, u_.block(0, 0, n_, n_), backend::Part::all);
      return lift(*f_, u_);
    }
    const Mat small{cast_pointer<T>(r_.data), n_, n_, n_, 0, 1};  // small_svd is done with R
    narrow(queue, product_, small, backend::Part::all);
    gemm(queue, Op::none, Op::none, T(1), f_->q(), small, T(0), u_);
  }

  /// Looks at the flags. True: u_, V and Σ have changed.
  bool complete() {
    if (!on_device_ || !(gram_ || vectors_)) return false;
    std::int32_t flags[2] = {};
    const auto look = [&] { queue_.download(failed_, flags, 2); };
    look();
    if (!gram_) flags[0] = 0;
    const bool again = flags[0] != 0 && !queued_;
    if (again) {
      through_r(queue_, false);
      if (vectors_) look();
    }
    if (!vectors_ || flags[1] == 0) return again;
    finish_on_host();
    return true;
  }

  /// R = U_R S Vᵀ by LAPACK, and U := Q U_R.
  void finish_on_host() {
    HostMatrix r = to_host_matrix<B, T>(queue_, f_->r_source());
    for (Index j = 0; j < r.cols; ++j)
      for (Index i = j + 1; i < r.rows; ++i) r(i, j) = 0;
    small_ = host_svd(std::move(r), vectors_);
    if (vectors_) multiply_q(*f_, from_host_matrix<T>(small_->u), u_);
  }

  /// Σ, V and U where the user wants them.
  void deliver() {
    write_into<B, T>(queue_, s_, n_, 1, "s", [&](const Mat& target) {
      if (small_) {
        HostMatrix values(n_, 1);
        values.data = small_->s;
        return put(values, target);
      }
      narrow(queue_, backend::DeviceMatrix<B, double>{sigma_, n_, 1, n_, 0, 1}, target, backend::Part::all);
    });
    if (!vectors_) return;
    const bool as_vt = right_.layout == Layout::row_major;  // its memory is Vᵀ in columns
    write_into<B, T>(queue_, as_vt ? transposed(right_) : right_, n_, n_, "V", [&](const Mat& target) {
      if (small_) return put(as_vt ? small_->vt : transposed(small_->vt), target);
      if (as_vt) transpose(queue_, v_, product_);  // which is done with
      narrow(queue_, as_vt ? product_ : v_, target, backend::Part::all);
    });
    if (!is_in_place<B>(left_)) store<B, T>(queue_, u_, left_);
  }
  void put(const HostMatrix& from, const Mat& target) {
    const Matrix<T> host = from_host_matrix<T>(from);
    load<B, T>(queue_, host.view(), target);
  }

  Queue queue_;
  Index rows_, cols_, m_, n_;
  bool vectors_, queued_, on_device_ = false, gram_ = false;
  Plan plan_;
  std::unique_ptr<Factorization<B, T>> f_;
  Buffer<B> memory_, u_memory_;
  Brought<B, T> a_memory_;
  backend::Scratch<B> scratch_;
  backend::DeviceMatrix<B, double> r_, v_, product_;
  typename B::template Pointer<double> sigma_{}, work_{};
  typename B::template Pointer<std::int32_t> failed_{};
  // the last one
  Mat a_, u_;
  MatrixView<T> s_, left_, right_;
  std::optional<HostSvd> small_;  // where LAPACK had the last word
  bool completed_ = false, corrected_ = false;
};

template <class B, class T>
Svd<T> svd(typename B::Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept, MatrixView<const T> a,
           const SvdOptions& options) {
  check_view("A", a);
  const Index k = std::min(a.rows, a.cols);
  const auto matrix = [&](Index rows, Index cols) {
    return a.memory == Memory::host ? Matrix<T>::host(rows, cols) : device_matrix<B, T>(queue, rows, cols);
  };
  auto work = kept.template lease<SvdWork<B, T>>({a.rows, a.cols, options.vectors, options.algorithm}, [&] {
    return SvdWork<B, T>(queue, profile, a.rows, a.cols, options, Fallback::in_finish);
  });
  Svd<T> out;
  out.s = matrix(k, 1);
  if (options.vectors) {
    out.u = matrix(a.rows, k);
    out.vt = matrix(k, a.cols);
  }
  work->execute(a, out.s.view(), out.u.view(), out.vt.view(), options.check_finite);
  work->finish();
  work.keep();
  return out;
}

}  // namespace qrane::dense
