// SPDX-License-Identifier: Apache-2.0
// Below m, n, k, p as in the header, c = positions that a chain stands on, b = its block, s = bytes of a scalar.
//   orthogonal  R: c / b windows of order b + p, reflectors on what is right of them; Q: one sweep, 2 (b + p)^2 / b
//               operations an element of the c columns, which are read and written once
//   cholesky    WWᵀ, its factor and that factor's inverse, R := S R (n^3 each or less), Q := Q S^-1 (2 m n^2)
//   trailing    Q(:, k:) times the small factor of what is right of the change, or that part of `updated` anew
//   refactor    the plan of qr() of the updated matrix (plan/cost.hpp), or of a factor and a product with Q
#include "update/choice/cost.hpp"

#include <algorithm>
#include <cmath>

#include <qrane/error.hpp>

#include "plan/cost.hpp"
#include "update/chains/window.hpp"

namespace qrane::update {

namespace {

/// Operations, traffic and dependent steps of a method, with the device's constants at hand.
class Price {
 public:
  Price(const tuning::UpdateTuning& tuning, double count, double scalar_bytes)
      : t_(tuning), count_(count), size_(scalar_bytes) {}

  /// Products of full rate, or of a share of it.
  void products(double flops, double elements, double percent = 100) {
    flops_ += flops;
    bytes_ += size_ * elements;
    ms_ += count_ * flops / (t_.gemm_gflops * 1e6) * 100 / percent + count_ * size_ * elements / (t_.copy_gbytes * 1e6);
  }
  void steps(double number) {
    launches_ += number;
    ms_ += number * t_.step_ns * 1e-6;
  }
  /// Columns that are factored one after another.
  void columns(double number) {
    launches_ += number / tuning::UpdateModel{}.columns_per_launch;
    ms_ += number * t_.column_ns * 1e-6;
  }
  void refactorization(double ms, double flops, double bytes, double times = 1) {
    flops_ += flops;
    bytes_ += bytes;
    ms_ += ms;
    launches_ += times;
  }

  UpdateCandidate candidate(UpdateMethod method) const {
    UpdateCandidate c;
    c.method = method;
    c.flops = flops_ * count_;
    c.bytes = bytes_ * count_;
    c.launches = static_cast<int>(std::min(std::ceil(launches_), 2e9));
    c.predicted_ms = ms_;
    return c;
  }

 private:
  const tuning::UpdateTuning& t_;
  double count_, size_, flops_ = 0, bytes_ = 0, launches_ = 0, ms_ = 0;
};

struct QRPrice {
  double ms = 0, flops = 0, bytes = 0;
};

QRPrice qr_price(const plan::DeviceProfile& device, Index rows, Index cols, QForm form, Index count, int scalar_bytes) {
  QRPrice price;
  if (rows == 0 || cols == 0 || count == 0) return price;
  const tuning::UpdateTuning t = (device.tuning ? *device.tuning : tuning::Tables{device.backend, {}})
                                     .look_up_update({scalar_bytes, tuning::shape_class(rows, cols, count), form});
  Options options;
  options.q = form;
  const Plan plan = plan::make_plan(device, rows, cols, count, scalar_bytes, options);
  const plan::Cost cost = plan::predict(plan);
  price.flops = cost.flops;
  price.bytes = cost.bytes;
  const tuning::UpdateModel model;
  // a small matrix is factored by one warp; an explicit Q is formed panel by panel, too
  const double columns = static_cast<double>(std::min(rows, cols)) * (plan.expert.small ? model.small_columns : 1) *
                         (form == QForm::thin || form == QForm::full ? model.explicit_q_columns : 1);
  price.ms = (cost.flops / (t.gemm_gflops * 1e6) + cost.bytes / (t.copy_gbytes * 1e6) + columns * t.column_ns * 1e-6 +
              model.call_steps * t.step_ns * 1e-6) *
             t.refactor_percent / 100;
  return price;
}

class Prices {
 public:
  Prices(const plan::DeviceProfile& device, const UpdateShape& shape)
      : device_(device),
        shape_(shape),
        m_(static_cast<double>(shape.rows)),
        n_(static_cast<double>(shape.cols)),
        k_(static_cast<double>(shape.k)),
        p_(static_cast<double>(shape.p)),
        explicit_(shape.form == QForm::thin || shape.form == QForm::full) {
    tuning_ =
        (device.tuning ? *device.tuning : tuning::Tables{device.backend, {}})
            .look_up_update({shape.scalar_bytes, tuning::shape_class(shape.rows, shape.cols, shape.count), shape.form});
    if (shape.block_cols > 0) tuning_.block_cols = shape.block_cols;
    // Q has min(m, n) columns, or all m
    q_ = shape.form == QForm::full ? m_ : std::min(m_, n_);
  }

  UpdateCandidate of(UpdateMethod method) const {
    Price price(tuning_, static_cast<double>(std::max<Index>(shape_.count, 1)), shape_.scalar_bytes);
    const std::string excluded = why_not(method);
    if (excluded.empty() && !shape_.changes_nothing()) {
      switch (method) {
        case UpdateMethod::orthogonal: orthogonal(price); break;
        case UpdateMethod::cholesky: cholesky(price); break;
        case UpdateMethod::trailing: trailing(price); break;
        default: refactor(price); break;
      }
    }
    UpdateCandidate candidate = price.candidate(method);
    candidate.excluded = excluded;
    return candidate;
  }
  double margin() const {
    return 1 - (p_ > tuning_.block_cols ? tuning_.wide_margin_percent : tuning_.margin_percent) / 100.0;
  }

 private:
  double rows_of_q() const { return explicit_ ? m_ : 0; }

  std::string why_not(UpdateMethod method) const {
    const QForm form = shape_.form;
    const Change change = shape_.change;
    const bool none = form == QForm::none, single = shape_.count == 1;
    if (shape_.changes_nothing()) return "";
    if (none && !shape_.updated && (change == Change::insert_columns || change == Change::rank_k))
      return "with QForm::none it needs the updated matrix";
    switch (method) {
      case UpdateMethod::refactor:
        if (!single) return "a batch is factored anew by BatchQR::refactor";
        if (!shape_.updated && none) return "with QForm::none it needs the updated matrix";
        if (!shape_.updated && (form != QForm::thin || change == Change::rank_k)) return "it needs the updated matrix";
        return none && shape_.attached ? "with QForm::none the attached right-hand sides would be lost" : "";
      case UpdateMethod::orthogonal:
        if (none && change == Change::rank_k) return "with QForm::none the updated matrix is factored anew";
        if (none && change == Change::insert_columns && shape_.attached)
          return "with QForm::none the right-hand sides cannot follow: detach them, and attach them anew";
        return "";
      case UpdateMethod::cholesky:
        if (change != Change::delete_rows || form != QForm::thin || !single) return "it removes rows from a thin Q";
        if (device_.limits.max_cholesky == 0) return "the device has no double precision";
        return shape_.rows - shape_.p < shape_.cols ? "fewer rows than columns would be left" : "";
      case UpdateMethod::trailing:
        if (change != Change::insert_columns && change != Change::delete_columns) return "it is for columns";
        if (none && change == Change::insert_columns) return "with QForm::none it cannot insert columns";
        return single ? "" : "it is not for batches";
      default: return "";
    }
  }

  /// What is added to positions that were none: two projections and a QR of m x p for columns, of p rows for rows out.
  void project(Price& price, double q_cols) const {
    const double m = explicit_ || shape_.form == QForm::none ? m_ : 2 * m_;  // reflectors: two products a column
    price.products(8 * m * q_cols * p_, 4 * m * (q_cols + p_), model_.tall_percent);
    small_factor(price, m_, p_, shape_.form == QForm::none ? QForm::none : QForm::thin, 2);
    price.steps(model_.project_steps);
  }

  /// Columns, or p right-hand factors, in the coordinates of Q.
  void enter(Price& price, double q_cols) const {
    if (shape_.form == QForm::none || shape_.form == QForm::thin) return project(price, q_cols);
    const double moved = explicit_ ? model_.full_q_moves * m_ * m_ : 0;
    price.products(2 * m_ * q_ * p_ * (explicit_ ? 1 : 2), m_ * q_ + moved);
    bottom_rows(price, std::max(m_ - n_, 0.0));
  }

  void orthogonal(Price& price) const {
    const double q_rows = rows_of_q(), c = std::min(m_, n_), bottom = std::max(m_ - n_, 0.0);
    const bool implicit = shape_.form == QForm::implicit || shape_.form == QForm::lapack;
    apply_stages(price);
    switch (shape_.change) {
      case Change::insert_rows:
        if (p_ > n_) small_factor(price, p_, n_);  // more rows than columns become a triangle first
        chain(price, true, c, std::min(p_, n_), q_rows, n_);
        break;
      case Change::delete_columns: {
        const double moved = std::min(m_ - k_, n_ - k_ - p_);
        chain(price, true, moved, p_, q_rows, moved);
        price.steps(model_.call_steps);
        break;
      }
      case Change::delete_rows:
        if (shape_.form == QForm::none) {
          price.products(p_ * n_ * n_ + p_ * p_ * n_, n_ * n_);
          price.columns(p_ + n_ / model_.solve_columns);
        } else if (shape_.form == QForm::thin) {
          price.products(8 * m_ * c * p_ + 4 * m_ * p_ * p_, 4 * m_ * c);
          small_factor(price, m_, std::min(p_, n_));
          price.steps(model_.thin_rows_out_steps);
        } else {
          bottom_rows(price, bottom);
          if (implicit) price.products(8 * m_ * c * p_, 2 * m_ * c);
        }
        chain(price, false, c, shape_.form == QForm::none || shape_.form == QForm::thin ? std::min(p_, n_) : p_, q_rows,
              n_);
        break;
      case Change::insert_columns:
        enter(price, c);
        chain(price, false, std::max(c - k_, 0.0), p_, q_rows, std::max(n_ - k_, 0.0) + p_);
        break;
      case Change::rank_k:
        enter(price, c);
        chain(price, false, c, p_, q_rows, n_);
        price.products(2 * p_ * p_ * n_, p_ * n_);
        chain(price, true, c, p_, q_rows, n_);
        break;
    }
  }

  /// The (m - n) x p part below the chain: reflectors, and Q's columns past n by them.
  void bottom_rows(Price& price, double bottom) const {
    small_factor(price, bottom, p_, QForm::implicit);
    if (explicit_) price.products(4 * m_ * bottom * p_, 3 * m_ * bottom);
    price.steps(model_.call_steps);
  }

  void cholesky(Price& price) const {
    price.products(n_ * n_ * p_ + n_ * n_ * n_ * 5 / 3, 8 * n_ * n_, model_.cholesky_percent);
    price.products(2 * (m_ - p_) * n_ * n_, 2 * m_ * n_);
    price.columns(model_.cholesky_columns * n_);
    price.steps(model_.cholesky_steps);
    // I - WWᵀ of a random Q has 1 - (sqrt(a (1 - b)) + sqrt(b (1 - a)))² for its least eigenvalue; near 0 the guard
    // refuses
    const double a = n_ / m_, b = p_ / m_, root = std::sqrt(a * (1 - b)) + std::sqrt(b * (1 - a));
    if (root * root > model_.guard_refuses) orthogonal(price);
  }

  /// Rows that leave and columns that enter pass through Q, and so through all that updates have made of it.
  void apply_stages(Price& price) const {
    const bool passes = shape_.change != Change::insert_rows && shape_.change != Change::delete_columns;
    if (passes) price.steps(static_cast<double>(shape_.q_steps));
  }

  void trailing(Price& price) const {
    apply_stages(price);
    const double c = std::max(std::min(m_, n_) - k_, 0.0);  // positions that are factored anew
    if (shape_.change == Change::delete_columns) {
      const double left = std::max(n_ - k_ - p_, 0.0);
      small_factor(price, c, left);
      price.steps(model_.trailing_steps);
      price.products(2 * rows_of_q() * c * left, rows_of_q() * (c + left));
      return;
    }
    enter(price, n_);
    small_factor(price, c + p_, n_ - k_ + p_);
    price.products(2 * rows_of_q() * (c + p_) * (c + p_), 2 * rows_of_q() * (c + p_));
  }

  void small_factor(Price& price, double rows, double cols, QForm form = QForm::thin, double times = 1) const {
    const QRPrice qr =
        qr_price(device_, static_cast<Index>(rows), static_cast<Index>(cols), form, 1, shape_.scalar_bytes);
    price.refactorization(times * qr.ms, times * qr.flops, times * qr.bytes, times);
  }

  /// A chain over c positions with R's rows of n columns right of where it starts, and Q's m rows; its windows are
  /// those of chain.hpp. Down, a window factors its own columns; up, the p of its strip, and then its diagonal block.
  void chain(Price& price, bool down, double c, double p, double m, double n) const {
    if (c <= 0 || p <= 0) return;
    backend::Limits limits = device_.limits;
    // chains of float are found in double on CUDA, whose tiles are lower then
    if (device_.backend == Backend::cuda)
      limits.max_block_rows = std::min(limits.max_block_rows, model_.double_tile_rows);
    const double cols = static_cast<double>(window_cols(limits, static_cast<Index>(p), shape_.block_cols, down));
    const double b = std::min(cols, c), windows = std::ceil(c / b), order = b + p, reflectors = down ? b : p;
    const double right = std::max(n - c, 0.0) + c / 2;  // columns right of a window, on average
    const auto one_task = [&](double rows, double width) {
      return is_one_task(limits, static_cast<Index>(rows), static_cast<Index>(width));
    };
    if (one_task(order, b) && (down || one_task(order, p))) {
      // diagonal blocks are factored all at once; taller tiles take longer a column
      price.columns((down ? windows * b : windows * p + b) * (1 + p / limits.max_block_rows / 2));
      price.steps((down ? 1 : 2) * windows + model_.call_steps);
    } else {
      small_factor(price, order, reflectors, QForm::implicit, windows);
      if (!down) small_factor(price, b, b, QForm::implicit, windows);
      price.steps((down ? model_.window_steps_down : model_.window_steps_up) * windows + model_.call_steps);
    }
    price.products(4 * reflectors * order * right * windows, 2 * order * right * windows, tuning_.sweep_percent);
    const bool sweep = p <= static_cast<double>(2 * least_window);  // else window by window, in large products
    price.products(2 * m * order * order * windows, sweep ? 2 * m * (c + p) : 4 * m * order * windows,
                   sweep ? tuning_.sweep_percent : model_.tall_percent);
  }

  void refactor(Price& price) const {
    if (shape_.updated) {
      const QRPrice qr =
          qr_price(device_, shape_.rows_after(), shape_.cols_after(), shape_.form, 1, shape_.scalar_bytes);
      price.refactorization(qr.ms, qr.flops, qr.bytes);
      return;
    }
    const double n = static_cast<double>(shape_.cols_after());
    switch (shape_.change) {
      case Change::delete_rows:  // Q's rows that stay are factored, and R multiplied
        small_factor(price, m_ - p_, std::min(m_, n_));
        price.products(n_ * n_ * n_, 3 * n_ * n_);
        break;
      case Change::insert_rows:
        small_factor(price, n_ + p_, n_);
        price.products(2 * m_ * n_ * n_, 2 * m_ * n_);
        break;
      case Change::delete_columns:
        small_factor(price, n_, n);
        price.products(2 * m_ * n_ * n, m_ * (n_ + n));
        break;
      default:
        project(price, n_);
        small_factor(price, n_ + p_, n);
        price.products(2 * m_ * (n_ + p_) * n, m_ * (n_ + p_ + n));
        break;
    }
  }

  const plan::DeviceProfile& device_;
  const UpdateShape& shape_;
  const tuning::UpdateModel model_{};
  double m_, n_, k_, p_;
  bool explicit_;
  double q_ = 0;
  tuning::UpdateTuning tuning_;
};

}  // namespace

std::vector<UpdateCandidate> candidates(const plan::DeviceProfile& device, const UpdateShape& shape) {
  const Prices prices(device, shape);
  std::vector<UpdateCandidate> all;
  for (const UpdateMethod method :
       {UpdateMethod::orthogonal, UpdateMethod::cholesky, UpdateMethod::trailing, UpdateMethod::refactor})
    all.push_back(prices.of(method));
  const auto weight = [&](const UpdateCandidate& c) {
    const bool preferred = c.method == UpdateMethod::refactor && shape.updated;
    return c.predicted_ms * (preferred ? prices.margin() : 1);
  };
  std::stable_sort(all.begin(), all.end(), [&](const UpdateCandidate& a, const UpdateCandidate& b) {
    if (a.excluded.empty() != b.excluded.empty()) return a.excluded.empty();
    return a.excluded.empty() && weight(a) < weight(b);
  });
  return all;
}

UpdateMethod choose(const std::vector<UpdateCandidate>& candidates) {
  const auto orthogonal = std::find_if(candidates.begin(), candidates.end(),
                                       [](const UpdateCandidate& c) { return c.method == UpdateMethod::orthogonal; });
  const auto best =
      std::find_if(candidates.begin(), candidates.end(), [](const UpdateCandidate& c) { return c.excluded.empty(); });
  detail::check(best != candidates.end(), ErrorCode::unavailable, "no method can make this update: ",
                orthogonal == candidates.end() ? "there is none" : orthogonal->excluded);
  return best->method;
}

double predicted_qr_ms(const plan::DeviceProfile& device, Index rows, Index cols, QForm form, Index count,
                       int scalar_bytes) {
  return qr_price(device, rows, cols, form, count, scalar_bytes).ms;
}

}  // namespace qrane::update
