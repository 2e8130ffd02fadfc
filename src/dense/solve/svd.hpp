// SPDX-License-Identifier: Apache-2.0
// The thin SVD of a matrix, tall or taken as its transpose, with nothing on the host but what the user's memory asks
// for.
//
//   through G   float data: G = AᵀA in double, V and Σ of G, U = A (V Σ^-1), with double products, rounded once. U is
//               orthonormal to κ² 2^-53, so Σ decides: beyond κ = 1e4 a flag is raised on the device, which is read
//               when all is done, and the stable way follows.
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

/// A small host matrix where the user's data lives.
template <class B, class T>
Matrix<T> place(typename B::Queue& queue, const HostMatrix& a, Memory where) {
  Matrix<T> host = from_host_matrix<T>(a);
  if (where == Memory::host) return host;
  Matrix<T> out = device_matrix<B, T>(queue, a.rows, a.cols);
  load<B, T>(queue, std::as_const(host).view(), as_device<B>(out.view()));
  queue.synchronize();
  return out;
}

/// The SVD of a tall matrix on its way: A = U diag(sigma) Vᵀ.
template <class B, class T>
class TallSvd {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  /// a: m x n, m >= n, only read, and kept in place by the caller.
  TallSvd(Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept, const Mat& a, const SvdOptions& options)
      : queue_(queue), profile_(profile), kept_(kept), a_(a), options_(options) {
    if (options.vectors) u_ = device_matrix<B, T>(queue, a.rows, a.cols);
  }

  /// Leaves a result that failed() may have to take back.
  void run() {
    if (a_.cols > 0 && a_.cols <= queue_.limits(T{}).max_small_svd)
      run_on_device();
    else
      run_on_host();
  }

  /// Waits; true when run() was to be done by run_again().
  bool failed() {
    if (!doubtful_) return false;
    std::int32_t failed = 0;
    queue_.download(failed_, &failed, 1);
    return failed != 0;
  }
  void run_again() { through_r(); }
  /// All went well.
  void keep() {
    if (memory_) memory_->keep();
  }

  /// U, m x n, in the device's memory. Wants vectors, as v_transposed does.
  Matrix<T>& u() { return u_; }
  /// n x 1 where wanted.
  Matrix<T> s(Memory where) {
    if (on_host_) {
      HostMatrix values(static_cast<Index>(small_.s.size()), 1);
      values.data = small_.s;
      return place<B, T>(queue_, values, where);
    }
    return narrowed(backend::DeviceMatrix<B, double>{sigma_, a_.cols, 1, a_.cols, 0, 1}, where);
  }
  /// V (`vt`: Vᵀ), n x n, where wanted.
  Matrix<T> v(bool vt, Memory where) {
    if (on_host_) return place<B, T>(queue_, vt ? small_.vt : transposed(small_.vt), where);
    if (!vt) return narrowed(v_, where);
    transpose(queue_, v_, product_);  // which is done with
    return narrowed(product_, where);
  }

 private:
  Matrix<T> narrowed(const backend::DeviceMatrix<B, double>& a, Memory where) {
    if (where == Memory::device) {
      Matrix<T> out = device_matrix<B, T>(queue_, a.rows, a.cols);
      narrow(queue_, a, as_device<B>(out.view()), backend::Part::all);
      return out;
    }
    Temporary<B, T> out(queue_, a.rows, a.cols);
    narrow(queue_, a, out.matrix, backend::Part::all);
    return export_matrix<B, T>(queue_, out.matrix, where);
  }

  void run_on_device() {
    const Index n = a_.cols;
    const auto carve = [&](Carver<B>& carver) {
      for (auto* w : {&r_, &v_, &product_}) *w = carver.template matrix<double>(n, n);
      sigma_ = carver.template take<double>(n);
      work_ = carver.template take<double>(small_svd_work(queue_, n));
      failed_ = carver.template take<std::int32_t>(8);
      scratch_.bytes = takes_gram() ? std::clamp(8 * a_.rows * n, Index{1} << 20, plenty) : 0;
      scratch_.data = carver.template take<std::byte>(scratch_.bytes);
    };
    Carver<B> sizes;
    carve(sizes);
    memory_.emplace(kept_.memory(queue_, sizes.used()));
    Carver<B> carver((*memory_)->template as<std::byte>());
    carve(carver);
    doubtful_ = takes_gram();
    if (doubtful_)
      through_gram();
    else
      through_r();
  }

  static constexpr Index plenty = Index{1} << 26;  // of partial Gram matrices

  bool takes_gram() const {
    return sizeof(T) == 4 && options_.algorithm == Algorithm::automatic &&
           a_.cols <= queue_.limits(T{}).max_multiply_full;
  }

  void through_gram() {
    set_flags(queue_, failed_, 1, 0);
    gram(queue_, a_, r_, scratch_);
    backend::SmallSvd<B> task = small_task();
    task.gram = true;
    task.most_condition = 1e4;
    task.accuracy = 0x1p-40;  // U has V's errors times the condition number
    task.failed = failed_;
    if (options_.vectors) {
      task.product = backend::SmallSvd<B>::Product::whiten;
      task.result = product_;
    }
    small_svd(queue_, task);
    if (options_.vectors) multiply_full(queue_, a_, product_, as_device<B>(u_.view()));
  }

  void through_r() {
    auto f = factorization();
    f->run(a_);
    widen(queue_, f->r_source(), r_);
    backend::SmallSvd<B> task = small_task();
    if (options_.vectors) {
      set_flags(queue_, failed_, 1, 0);
      task.u = product_;
      task.most_condition = backend::SmallSvd<B>::orthonormal_to;
      task.failed = failed_;
    }
    small_svd(queue_, task);
    if (options_.vectors) {
      lift_u(*f);
      std::int32_t deficient = 0;
      queue_.download(failed_, &deficient, 1);
      if (deficient != 0) finish_on_host(*f);
    }
    f.keep();
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

  /// R, and Q in the form that the algorithm is best at.
  auto factorization() const {
    Options wish;
    wish.algorithm = options_.algorithm;
    const bool thin = options_.algorithm == Algorithm::automatic || options_.algorithm == Algorithm::cholesky_qr;
    wish.q = !options_.vectors ? QForm::none : thin ? QForm::thin : QForm::implicit;
    return kept_.template factorization<T>(queue_, profile_, a_.rows, a_.cols, wish);
  }

  /// U := Q U_R, U_R in product_.
  void lift_u(Factorization<B, T>& f) {
    using backend::Op;
    const Index n = a_.cols;
    const Mat u = as_device<B>(u_.view());
    if (f.keeps_reflectors()) {
      fill(queue_, u, T(0), T(0));
      narrow(queue_, product_, u.block(0, 0, n, n), backend::Part::all);
      lift(f, u);
      return;
    }
    const Mat small{cast_pointer<T>(r_.data), n, n, n, 0, 1};  // small_svd is done with R
    narrow(queue_, product_, small, backend::Part::all);
    gemm(queue_, Op::none, Op::none, T(1), f.q(), small, T(0), u);
  }

  void run_on_host() {
    auto f = factorization();
    f->run(a_);
    finish_on_host(*f);
    f.keep();
  }

  /// R = U_R S Vᵀ by LAPACK, and U := Q U_R.
  void finish_on_host(Factorization<B, T>& f) {
    on_host_ = true;
    HostMatrix r = to_host_matrix<B, T>(queue_, f.r_source());
    for (Index j = 0; j < r.cols; ++j)
      for (Index i = j + 1; i < r.rows; ++i) r(i, j) = 0;
    small_ = host_svd(std::move(r), options_.vectors);
    if (options_.vectors) multiply_q(f, from_host_matrix<T>(small_.u), as_device<B>(u_.view()));
  }

  Queue& queue_;
  const plan::DeviceProfile& profile_;
  Kept<B>& kept_;
  Mat a_;
  SvdOptions options_;
  Matrix<T> u_;
  std::optional<typename Kept<B>::template Lease<Buffer<B>>> memory_;
  backend::Scratch<B> scratch_;
  backend::DeviceMatrix<B, double> r_, v_, product_;
  typename B::template Pointer<double> sigma_{}, work_{};
  typename B::template Pointer<std::int32_t> failed_{};
  bool on_host_ = false, doubtful_ = false;
  HostSvd small_;
};

/// A device matrix that is already where U or Vᵀ goes, or a copy.
template <class B, class T>
Matrix<T> hand_over(typename B::Queue& queue, Matrix<T>& a, Memory where) {
  if (where == Memory::device) return std::move(a);
  return export_matrix<B, T>(queue, as_device<B>(a.view()), where);
}

template <class B, class T>
Svd<T> svd(typename B::Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept, MatrixView<const T> a,
           const SvdOptions& options) {
  check_view("A", a);
  const Memory where = a.memory;
  const bool wide = a.rows < a.cols;
  if (wide) {  // the storage of A read the other way round
    std::swap(a.rows, a.cols);
    a.layout = a.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  }
  const Index m = a.rows, n = a.cols;
  const bool in_place = is_resident<B>(a) && a.layout == Layout::column_major;
  std::optional<typename Kept<B>::template Lease<Buffer<B>>> copy;
  backend::DeviceMatrix<B, T> matrix;
  if (in_place) {
    matrix = as_device<B>(a);
  } else {
    copy.emplace(kept.memory(queue, m * n * static_cast<Index>(sizeof(T))));
    matrix = {(*copy)->template as<T>(), m, n, std::max<Index>(m, 1), 0, 1};
    load<B, T>(queue, a, matrix);
  }
  if (options.check_finite) check_finite<B, T>(queue, "A", matrix, wide);
  TallSvd<B, T> tall(queue, profile, kept, matrix, options);
  Svd<T> out;
  const auto collect = [&] {
    out.s = tall.s(where);
    if (options.vectors) (wide ? out.u : out.vt) = tall.v(!wide, where);
  };
  tall.run();
  collect();
  if (tall.failed()) {
    tall.run_again();
    collect();
  }
  if (options.vectors && !wide) {
    out.u = hand_over<B, T>(queue, tall.u(), where);
  } else if (options.vectors) {  // Aᵀ = U S Vᵀ, so A = V S Uᵀ
    Matrix<T> ut = device_matrix<B, T>(queue, n, m);
    transpose(queue, as_device<B>(tall.u().view()), as_device<B>(ut.view()));
    out.vt = hand_over<B, T>(queue, ut, where);
  }
  queue.synchronize();
  tall.keep();
  if (copy) copy->keep();
  return out;
}

}  // namespace qrane::dense
