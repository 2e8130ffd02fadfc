// SPDX-License-Identifier: Apache-2.0
// Figure 8 of the CAQR paper: a grid of sizes, R alone, every algorithm by name beside the automatic choice and the
// peers, and the crossover lines between algorithms: for each number of rows the width from which another one wins.
//
// The matrices are made and stay on the device. Results are compared with one another: columns of R, signs aside,
// against those of the first algorithm that ran, in units of (min(m, n) + 10) u. That is a check of tall matrices
// (rows >= 4 cols, where R is as well conditioned as uniform numbers make it) against a limit of 300.
#include <algorithm>
#include <cmath>
#include <limits>

#include "session.hpp"

namespace qrane::bench {
namespace {

constexpr std::uint64_t matrix_seed = 2011;
constexpr double difference_limit = 300;
constexpr double flops_limit = 3e12;  // of one factorization: some 100 ms on an H200

template <class T>
class GridCases {
 public:
  GridCases(Session& session, Shape shape, const std::string& precision)
      : session_(session), shape_(shape), precision_(precision) {}

  void run(const std::function<void(const GridCase&)>& report) {
    GridCase result = new_case();
    result.reason = reason_to_leave_out(result);
    if (!result.reason.empty()) {
      result.outcome = Outcome::left_out;
    } else {
      measure_peers(result);
      a_ = session_.seeded<T>(shape_, matrix_seed);
      for (const Algorithm algorithm : algorithms()) {
        if (session_.interrupted()) return;
        result.times.push_back(measure(algorithm));
      }
      judge(result);
    }
    if (!session_.interrupted()) report(result);
  }

 private:
  std::vector<Algorithm> algorithms() const {
    std::vector<Algorithm> list = {Algorithm::automatic, Algorithm::caqr, Algorithm::cholesky_qr, Algorithm::blocked};
    if (shape_.cols <= 256) list.push_back(Algorithm::tsqr);
    return list;
  }

  GridCase new_case() {
    const double m = static_cast<double>(shape_.rows), n = static_cast<double>(shape_.cols);
    GridCase result;
    result.shape = shape_;
    result.precision = precision_;
    result.flops = 2 * m * n * n - 2 * n * n * n / 3;
    result.floor = session_.floor_for(precision_, result.flops, m * n * sizeof(T));
    return result;
  }

  std::string reason_to_leave_out(const GridCase& result) {
    const std::int64_t matrix = shape_.rows * shape_.cols * static_cast<std::int64_t>(sizeof(T));
    std::string reason = session_.too_large(session_.on_gpu() ? matrix / 4 : 5 * matrix, 6 * matrix);
    if (reason.empty()) reason = session_.out_of_time();
    if (reason.empty()) reason = session_.too_long(precision_, result.flops, result.floor.bytes);
    if (reason.empty() && result.flops > flops_limit) reason = "more than 3e12 flops: too long for a grid";
    return reason;
  }

  void measure_peers(GridCase& result) {
    const PeerTask task{.task = "qr", .shape = shape_, .precision = precision_, .seed = matrix_seed};
    for (const std::string& peer : session_.peers("qr")) {
      if (peer == "cublas-cholqr2" || (session_.on_gpu() && peer == "lapack")) continue;
      note(peer);
      PeerTime time{peer, {}, 0, ""};
      try {
        time.samples_ms = session_.measure_peer(peer, task).numbers("factor_ms");
      } catch (const std::exception& fault) {
        time.reason = fault.what();
      }
      result.peers.push_back(time);
    }
  }

  AlgorithmTime measure(Algorithm algorithm) {
    note(to_string(algorithm));
    AlgorithmTime time{to_string(algorithm), "", {}, -1, ""};
    try {
      Options options;
      options.algorithm = algorithm;
      options.q = QForm::none;
      QR<T> f = qr<T>(session_.context(), std::as_const(a_).view(), options);
      time.ran = to_string(f.plan().algorithm);
      for (int run = -1; run < 5 && !session_.interrupted(); ++run) {
        const double elapsed = session_.time_ms([&] { f.refactor(std::as_const(a_).view()); });
        if (run >= 0) time.samples_ms.push_back(elapsed);
      }
      if (shape_.cols <= 1024) time.difference = difference(session_.context().to_host(f.r()));
    } catch (const Error& fault) {
      if (fault.code() == ErrorCode::device) throw;
      time.reason = fault.what();
    }
    return time;
  }

  /// Against the R that came first.
  double difference(Matrix<T> r) {
    if (first_r_.rows() == 0) {
      first_r_ = std::move(r);
      return 0;
    }
    double worst = 0;
    for (Index j = 0; j < r.cols(); ++j) {
      double gap = 0, norm = 0;
      for (Index i = 0; i <= std::min(j, r.rows() - 1); ++i) {
        const double x = std::abs(static_cast<double>(r(i, j))), y = std::abs(static_cast<double>(first_r_(i, j)));
        gap += (x - y) * (x - y);
        norm += y * y;
      }
      worst = worse(worst, std::sqrt(gap / norm));
    }
    return worst /
           (static_cast<double>(std::min(shape_.rows, shape_.cols) + 10) * std::numeric_limits<T>::epsilon() / 2);
  }

  void judge(GridCase& result) const {
    const AlgorithmTime& automatic = result.times.front();
    for (PeerTime& peer : result.peers)
      if (!peer.samples_ms.empty() && !automatic.samples_ms.empty())
        peer.ratio = median(peer.samples_ms) / median(automatic.samples_ms);
    if (automatic.samples_ms.empty()) {
      result.outcome = Outcome::failed;
      result.reason = automatic.reason;
    }
    for (const AlgorithmTime& time : result.times)
      if (shape_.rows >= 4 * shape_.cols && !(time.difference <= difference_limit)) {
        result.outcome = Outcome::failed;
        result.reason = "R by " + time.algorithm + " differs from R by " + automatic.ran;
      }
  }

  void note(const std::string& what) const {
    session_.progress(detail::concat(shape_.rows, " x ", shape_.cols, " ", precision_, ": ", what));
  }

  Session& session_;
  Shape shape_;
  std::string precision_;
  Matrix<T> a_, first_r_;
};

/// Median time of an algorithm, or of the fastest for tall matrices for "tall"; 0 where it was not measured.
double time_of(const GridCase& result, const std::string& algorithm) {
  double best = 0;
  for (const AlgorithmTime& time : result.times) {
    const bool tall = time.algorithm != "automatic" && time.algorithm != "blocked";
    if (time.samples_ms.empty() || (algorithm == "tall" ? !tall : time.algorithm != algorithm)) continue;
    const double ms = median(time.samples_ms);
    if (best == 0 || ms < best) best = ms;
  }
  return best;
}

/// Time of `narrow` over that of `wide`: above 1, the wide one wins. 0 where one was not measured.
double ratio_of(const GridCase& result, const std::string& narrow, const std::string& wide) {
  const double a = time_of(result, narrow), b = time_of(result, wide);
  return a > 0 && b > 0 ? a / b : 0;
}

void find_crossovers(const std::vector<GridCase>& grid, const std::string& narrow, const std::string& wide,
                     std::vector<Crossover>& found) {
  for (std::size_t i = 0; i + 1 < grid.size(); ++i) {
    // cases of one number of rows and one precision lie in order of columns
    for (std::size_t k = i + 1; k < grid.size(); ++k) {
      const GridCase &here = grid[i], &next = grid[k];
      if (next.shape.rows != here.shape.rows || next.precision != here.precision) continue;
      const double before = ratio_of(here, narrow, wide), after = ratio_of(next, narrow, wide);
      if (before > 0 && before < 1 && after >= 1) {
        const double share = std::log(1 / before) / std::log(after / before);
        const double cols =
            static_cast<double>(here.shape.cols) *
            std::pow(static_cast<double>(next.shape.cols) / static_cast<double>(here.shape.cols), share);
        found.push_back({here.precision, here.shape.rows, narrow, wide, cols});
      }
      break;
    }
  }
}

}  // namespace

void run_grid_case(Session& session, Shape shape, const std::string& precision,
                   const std::function<void(const GridCase&)>& report) {
  if (precision == "f32")
    GridCases<float>(session, shape, precision).run(report);
  else
    GridCases<double>(session, shape, precision).run(report);
}

std::vector<Crossover> crossovers(const std::vector<GridCase>& grid) {
  std::vector<Crossover> found;
  find_crossovers(grid, "tall", "blocked", found);
  find_crossovers(grid, "caqr", "blocked", found);
  find_crossovers(grid, "cholesky_qr", "blocked", found);
  find_crossovers(grid, "cholesky_qr", "caqr", found);
  find_crossovers(grid, "tsqr", "cholesky_qr", found);
  return found;
}

}  // namespace qrane::bench
