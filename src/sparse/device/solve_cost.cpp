// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/solve_cost.hpp"

#include <limits>

#include "sparse/device/plan/solve_schedule.hpp"
#include "tuning/defaults.hpp"

namespace qrane::sparse {

UseCost::UseCost(Backend backend, const Symbolic& s, const std::vector<backend::FrontShape>& shapes, Index panel,
                 Index storage, Index r, bool with_q, int scalar_bytes)
    : backend_(backend), with_q_(with_q), scalar_bytes_(scalar_bytes) {
  r_rounds_ = static_cast<double>(r_solve_rounds(s, shapes));
  if (with_q) q_rounds_ = static_cast<double>(q_product_rounds(s, shapes, {.panel = panel}));
  storage_ = static_cast<double>(storage);
  r_ = static_cast<double>(r);
  lines_ = static_cast<double>(s.rows + s.cols);
  lists_ = static_cast<double>(s.entries + 3 * static_cast<Index>(s.front_cols.size()) + 3 * s.rows);
}

UseSeconds UseCost::seconds(FactorUse use, Index cols, bool resident) const {
  if (backend_ == Backend::cpu) return {std::numeric_limits<double>::infinity(), 0};
  const tuning::SolveTuning t = tuning::solve_defaults(backend_);
  const bool through_q =
      use == FactorUse::apply || use == FactorUse::solve_transposed || (use == FactorUse::solve && with_q_);
  const double r_passes = use == FactorUse::apply ? 0 : use == FactorUse::solve && !with_q_ ? 4 : 1;
  const double n = static_cast<double>(cols), q = through_q ? 1 : 0;
  const double numbers = r_passes * r_ + 2 * q * storage_, moved = lines_ * n * scalar_bytes_ / t.copied_bytes;
  UseSeconds s;
  s.device = 2 * t.launch_seconds * (r_passes * r_rounds_ + q * q_rounds_) + numbers * scalar_bytes_ / t.device_bytes +
             2 * n * numbers / t.device_flops + t.list_seconds * lists_ / t.uses + (resident ? 0 : moved);
  s.host = numbers * scalar_bytes_ / t.host_bytes + 2 * n * numbers / t.host_flops + (resident ? moved : 0) +
           q * storage_ * scalar_bytes_ / t.copied_bytes / t.uses;
  return s;
}

}  // namespace qrane::sparse
