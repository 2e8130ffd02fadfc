// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace qrane {

namespace plan {

Index widest_whole_panel(const backend::Limits& limits, Index rows) {
  if (limits.whole_panel_elements == 0) return rows <= limits.max_block_rows ? limits.max_panel_cols : 0;
  if (rows > limits.whole_panel_rows) return 0;
  const auto height = static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Index>(rows, 1))));
  return std::min<Index>(limits.max_panel_cols, limits.whole_panel_elements / height);
}

double qr_flops(double m, double n) {
  if (m < n) std::swap(m, n);
  return 2 * m * n * n - 2 * n * n * n / 3;
}

namespace {

void check_shape(Index rows, Index cols, Index count, int scalar_bytes) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(rows >= 0, code, "rows must not be negative, got ", rows);
  check(cols >= 0, code, "cols must not be negative, got ", cols);
  check(count >= 0, code, "the batch's count must not be negative, got ", count);
  check(rows <= std::numeric_limits<std::int32_t>::max(), code, "rows must be below 2^31, got ", rows);
  check(count <= std::numeric_limits<std::int32_t>::max(), code, "the batch's count must be below 2^31, got ", count);
  check(backend::addressable(std::max<Index>(rows, 1), std::max<Index>(cols, 1), std::max<Index>(count, 1),
                             static_cast<std::size_t>(scalar_bytes)),
        code, "rows x cols x count overflows: ", rows, " x ", cols, " x ", count);
}

struct Choice {
  Algorithm algorithm;
  std::string reason;
};

/// The algorithm for what is asked, when the user names none: the first rule that holds. The crossovers are tuned for
/// the class of the shape and the form of Q (tuning/key.hpp).
Choice choose(const DeviceProfile& device, const tuning::QRTuning& t, const Plan& p, Index max_panel) {
  using detail::concat;
  const Index m = p.rows, n = p.cols, k = std::min(m, n);
  if (p.count > 1 && widest_whole_panel(device.limits, m) > 0 &&
      (p.q == QForm::lapack || device.limits.whole_panel_elements > 0))
    return {Algorithm::householder, "a batch whose matrices are low enough to need no tree"};
  if (p.q == QForm::lapack) return {Algorithm::blocked, "LAPACK-shaped reflectors come from blocked"};
  const bool explicit_form = p.q == QForm::none || p.q == QForm::thin;
  if (t.prefers_cholesky && explicit_form && p.count == 1 && m >= t.cholesky_rows_per_col * n &&
      n >= t.narrowest_cholesky && n <= device.limits.max_cholesky)
    return {Algorithm::cholesky_qr, concat("R or thin Q of at least ", t.cholesky_rows_per_col, " rows a column and ",
                                           t.narrowest_cholesky, " to ", device.limits.max_cholesky, " columns")};
  if (k <= max_panel && (m >= t.tsqr_rows_per_col * n || k <= t.panel_cols))
    return {Algorithm::tsqr, concat("one panel: at most ", max_panel, " columns, and ", t.tsqr_rows_per_col,
                                    " rows a column or at most ", t.panel_cols, " columns")};
  if (p.count > 1) return {Algorithm::caqr, "a batch: the tree's kernels take all matrices at once"};
  // They read the trailing matrix once for every panel, and each of many panels adds its rounding: past a width
  // products in full precision are the better choice.
  if (m >= t.caqr_rows_per_col * n && k <= t.widest_caqr)
    return {Algorithm::caqr,
            concat("at least ", t.caqr_rows_per_col, " rows a column, at most ", t.widest_caqr, " columns")};
  if (m < t.caqr_rows_per_col * n && k <= t.widest_square_caqr)
    return {Algorithm::caqr,
            concat("fewer than ", t.caqr_rows_per_col, " rows a column, at most ", t.widest_square_caqr, " columns")};
  return {Algorithm::blocked, m >= t.caqr_rows_per_col * n
                                  ? concat("more than ", t.widest_caqr, " columns")
                                  : concat("fewer than ", t.caqr_rows_per_col, " rows a column, more than ",
                                           t.widest_square_caqr, " columns")};
}

void check_options(const Plan& p, const Options& o, const DeviceProfile& device) {
  using detail::check;
  constexpr auto code = ErrorCode::invalid_argument;
  check(o.block_rows >= 0, code, "Options::block_rows must not be negative, got ", o.block_rows);
  check(o.arity == 0 || o.arity >= 2, code, "Options::arity must be at least 2, got ", o.arity);
  check(o.panel_cols >= 0, code, "Options::panel_cols must not be negative, got ", o.panel_cols);
  check(o.panel_cols <= device.limits.max_panel_cols, code, "Options::panel_cols is at most ",
        device.limits.max_panel_cols, " on this device, got ", o.panel_cols);
  check(o.block_rows <= device.limits.max_block_rows, code, "Options::block_rows is at most ",
        device.limits.max_block_rows, " on this device, got ", o.block_rows);
  if (p.algorithm == Algorithm::cholesky_qr) {
    check(p.q == QForm::none || p.q == QForm::thin, code, "cholesky_qr gives R or thin Q, not QForm::", to_string(p.q));
    check(p.rows >= p.cols, code, "cholesky_qr needs rows >= cols, got ", p.rows, " x ", p.cols);
    check(p.count == 1, code, "cholesky_qr takes one matrix, not a batch of ", p.count);
    check(device.limits.has_double, ErrorCode::unavailable, "cholesky_qr needs a device with double precision");
    check(p.cols <= device.limits.max_cholesky, code, "cholesky_qr takes at most ", device.limits.max_cholesky,
          " columns on this device, got ", p.cols);
  }
  check(p.q != QForm::lapack || p.algorithm == Algorithm::blocked || p.algorithm == Algorithm::householder, code,
        "QForm::lapack comes from the algorithms blocked and householder, not ", to_string(p.algorithm));
  check(p.algorithm != Algorithm::householder || widest_whole_panel(device.limits, p.rows) > 0, code,
        "householder takes matrices of at most ",
        device.limits.whole_panel_elements > 0 ? device.limits.whole_panel_rows : device.limits.max_block_rows,
        " rows on this device, got ", p.rows, "; use blocked");
  check(o.panel_kind != PanelKind::cholesky || (p.algorithm == Algorithm::blocked && p.count == 1), code,
        "PanelKind::cholesky is for blocked and one matrix, not ", to_string(p.algorithm), " and a batch of ", p.count);
  check(o.panel_kind != PanelKind::cholesky || device.limits.has_double, ErrorCode::unavailable,
        "PanelKind::cholesky needs a device with double precision");
  if (p.algorithm == Algorithm::tsqr) {
    const Index k = std::min(p.rows, p.cols);
    check(k <= device.limits.max_panel_cols, code, "tsqr takes one panel of at most ", device.limits.max_panel_cols,
          " columns on this device, got ", k, "; use caqr");
  }
}

/// How far one pass of Cholesky QR is trusted (docs/numerics.md), and what comes after it.
void plan_guard(Plan& p, bool panels) {
  const Index n = panels ? p.panel_cols : p.cols;
  if (p.scalar_bytes == 4) {
    // Double Gram: R alone to 1e7 (Yamazaki, Tomov, Dongarra 2015). An explicit Q from one pass loses kappa^2 * 2^-53:
    // 2e5 keeps that near float's own rounding, and 5e4 near that of one panel among many, which has no second pass.
    p.guard_limit = panels ? 5e4 : p.q == QForm::thin ? 2e5 : 1e7;
    p.passes = panels ? 1 : 2;
  } else {
    // Nearly orthonormal columns, whose bound is n at least: ‖R̂^-1‖_2^2 <= bound^2 / n - (n - 1)^2 / n <= n + 12, and
    // that times the Gram matrix's relative rounding is what Q loses of its orthogonality.
    const auto cols = static_cast<double>(n);
    p.guard_limit = std::sqrt(cols * (2 * cols + 10));
    p.passes = 2;
    // 4 n rows embed many columns well enough, 8 n rows few; more of them keep a wide device busy, at no cost beside
    // reading A
    constexpr Index busy = 1 << 18, many = 512;
    const Index enough = std::clamp(many, 4 * n, 8 * n);
    const Index rows = std::max({enough, std::min(busy / std::max<Index>(n, 1), p.rows / 16), Index{1}});
    if (!panels && p.rows >= 32 * n) p.sketch_rows = (rows + 31) / 32 * 32;
    if (p.sketch_rows > p.rows) p.sketch_rows = 0;
  }
}

/// Whether factor_small takes the matrices whole.
bool fits_small(const backend::Limits& limits, Index rows, Index cols) {
  const Index padded = cols <= 8 ? 8 : cols <= 16 ? 16 : 32;
  return cols <= 32 && rows <= limits.small_rows && rows * padded <= limits.small_elements;
}

/// Block sizes of Algorithm::householder. Products with a block's columns run near full rate from 128 on; half of it
/// where the whole matrix is little wider, since the block's own panels are the slower part.
void plan_householder(Plan& p, const DeviceProfile& device, const tuning::QRTuning& tuned, const Options& options) {
  const Index k = std::min(p.rows, p.cols);
  p.small = options.panel_cols == 0 && fits_small(device.limits, p.rows, p.cols);
  const Index wished = p.small                  ? std::max<Index>(k, 1)
                       : options.panel_cols > 0 ? options.panel_cols
                                                : std::min<Index>(tuned.inner, device.limits.max_panel_cols);
  p.panel_cols = static_cast<int>(std::clamp<Index>(wished, 1, std::max<Index>(k, 1)));
  p.inner = p.panel_cols;
  const Index block = std::max<Index>(tuned.batch_block_cols / p.panel_cols, 1) * p.panel_cols;
  p.block_cols = static_cast<int>(std::clamp<Index>(block, p.panel_cols, std::max<Index>(k, p.panel_cols)));
  p.block_rows = std::max<Index>(p.rows, 1);
  p.arity = 2;
}

}  // namespace

Plan make_plan(const DeviceProfile& device, Index rows, Index cols, Index count, int scalar_bytes,
               const Options& options) {
  check_shape(rows, cols, count, scalar_bytes);
  const Index k = std::min(rows, cols);
  Plan p;
  p.rows = rows;
  p.cols = cols;
  p.count = count;
  p.scalar_bytes = scalar_bytes;
  p.q = options.q;
  const tuning::Key key{scalar_bytes, tuning::shape_class(rows, cols, count), options.q};
  const tuning::QRTuning tuned =
      (device.tuning ? *device.tuning : tuning::Tables{device.backend, {}}).look_up(key, &p.tuning);
  p.flops = static_cast<double>(count) * qr_flops(static_cast<double>(rows), static_cast<double>(cols));
  const Index max_panel = std::min<Index>(tuned.widest_single_panel, device.limits.max_panel_cols);
  Choice choice{options.algorithm, "named by the caller"};
  if (options.algorithm == Algorithm::automatic) choice = choose(device, tuned, p, max_panel);
  p.algorithm = choice.algorithm;
  p.reason = std::move(choice.reason);
  check_options(p, options, device);

  if (p.algorithm == Algorithm::householder) {
    plan_householder(p, device, tuned, options);
    return p;
  }
  const bool cholesky_panels = p.algorithm == Algorithm::blocked && options.panel_kind != PanelKind::tree &&
                               (options.panel_kind == PanelKind::cholesky || (tuned.cholesky_panels && p.count == 1)) &&
                               device.limits.has_double;
  const bool blocked = p.algorithm == Algorithm::blocked;
  const bool cached = tuned.block_bytes > 0;  // leaves are sized for a cache, and panels as wide as the matrix allowed
  const Index widest = p.algorithm == Algorithm::tsqr ? k
                       : blocked ? (cholesky_panels ? tuned.cholesky_panel_cols : tuned.blocked_panel_cols)
                       : cached && k <= max_panel ? k
                                                  : tuned.panel_cols;
  const Index wished = options.panel_cols > 0 && p.algorithm != Algorithm::tsqr ? options.panel_cols : widest;
  p.panel_cols = static_cast<int>(std::clamp<Index>(wished, 1, std::max<Index>(k, 1)));
  p.block_cols = static_cast<int>(std::min<Index>(tuned.block_cols, std::max<Index>(k, 1)) + p.panel_cols - 1) /
                 p.panel_cols * p.panel_cols;
  // the kernels of a device with narrow panels take one compact-WY group per panel
  const int narrow = std::min(p.panel_cols, device.limits.max_panel_cols);
  p.inner = cached ? std::min(tuned.inner, narrow) : narrow;
  if (!blocked && !cached) p.panel_cols = narrow;
  const Index tree_cols = blocked ? p.inner : p.panel_cols;  // of the trees; a wider panel of blocked has several
  Index leaf = cached ? tuned.block_bytes / (tree_cols * scalar_bytes) : tuned.min_block_rows;
  leaf = std::max({leaf, tuned.min_block_rows, tuned.min_rows_per_col * tree_cols});
  p.block_rows = options.block_rows > 0 ? options.block_rows : std::min<Index>(leaf, device.limits.max_block_rows);
  p.block_rows = std::max<Index>(p.block_rows, 2 * tree_cols);  // a leaf must shrink what it is given
  const Index most_heads = device.limits.max_block_rows / tree_cols;
  const Index arity = options.arity > 0 ? options.arity
                      : cached          ? tuned.arity
                                        : std::max<Index>(tuned.arity, tuned.min_block_rows / tree_cols);
  p.arity = static_cast<int>(std::clamp<Index>(arity, 2, std::max<Index>(2, most_heads)));
  const bool own_tree = options.block_rows == 0 && options.arity == 0;  // none that the user asked for
  if (p.algorithm == Algorithm::tsqr && (p.q == QForm::none || p.q == QForm::thin) && own_tree && count == 1 &&
      rows >= cols && cols > 0 && cols <= (p.q == QForm::thin ? device.limits.max_formed : device.limits.max_absorbed))
    p.absorbing_units = device.limits.units;
  if (p.algorithm == Algorithm::cholesky_qr || cholesky_panels) plan_guard(p, cholesky_panels);
  return p;
}

}  // namespace plan
}  // namespace qrane
