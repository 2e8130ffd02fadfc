// SPDX-License-Identifier: Apache-2.0
// Robust PCA as background subtraction: iterations per second, and how the residual falls (the CAQR paper's section
// VI).
//
// One iteration's floor: flops 4 m n^2 - 2 n^3 / 3 (R of X, and X times an n x n matrix); bytes 9 passes of m n (R
// reads X; the product reads X and writes L; the elementwise pass reads M, L, Y and writes Y, S, X).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include <qrane/robust_pca.hpp>

#include "common/frames_file.hpp"
#include "common/seeded_matrix.hpp"
#include "io/video/video.hpp"
#include "suites/rpca_pipeline.hpp"
#include "temporary_file.hpp"

namespace qrane::bench {
namespace {

constexpr int frame_width = 384, frame_height = 288;
constexpr double tolerance = 1e-4;
constexpr const char* excerpt = "data/vtest_384x288_100.mp4";

/// The excerpt that the sources ship, looked for from the working directory and the program's; empty when absent.
/// tools/gpu-deps decodes its frames into .deps/ for machines without ffmpeg.
std::string find_excerpt(const std::string& cli_directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path cli(cli_directory.empty() ? "." : cli_directory);
  const fs::path decoded = fs::path(".deps") / "data" / "vtest_384x288_100.npy";
  if (fs::exists(decoded, ignored)) return decoded.string();
  for (const fs::path& base : {fs::path("."), cli / "..", cli / ".." / "..", cli / ".." / "share" / "qrane"}) {
    const fs::path file = base / excerpt;
    if (fs::exists(file, ignored)) return file.string();
  }
  return "";
}

/// Frames as columns, in [0, 1]; the name of the data.
template <class T>
std::string fill_from_video(const std::string& path, Matrix<T>& m) {
  io::VideoReader reader(path, {frame_width, frame_height, m.cols()});
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(m.rows()));
  for (Index j = 0; j < m.cols(); ++j) {
    detail::check(reader.next(frame.data()), ErrorCode::file, path, ": ", j, " frames, ", m.cols(), " are needed");
    for (Index i = 0; i < m.rows(); ++i) m(i, j) = static_cast<T>(frame[static_cast<std::size_t>(i)]) / T(255);
  }
  return std::filesystem::path(path).stem().string();
}

template <class T>
class BackgroundCases {
 public:
  BackgroundCases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision)
      : session_(session), suite_(suite), shape_(shape), precision_(precision) {}

  void run(const std::function<void(const BackgroundCase&)>& report) {
    std::string absent = session_.out_of_time();
    if (absent.empty()) absent = fill();
    if (!absent.empty()) {
      BackgroundCase result = new_case("inexact_alm");
      result.outcome = Outcome::left_out;
      result.reason = absent;
      return report(result);
    }
    if (suite_.pipelines) measure_peers();
    const auto each = [&](const std::string& method, const auto& measure) {
      if (session_.interrupted()) return;
      BackgroundCase result = new_case(method);
      guarded(result, measure);
      if (session_.interrupted()) return;
      result.peers = peers_;
      for (PeerTime& peer : result.peers)
        if (!peer.samples_ms.empty() && !result.samples_ms.empty())
          peer.ratio = median(peer.samples_ms) / median(result.samples_ms);
      report(result);
    };
    const auto with = [this](RobustPcaMethod method) {
      return [this, method](BackgroundCase& result) { measure(method, result); };
    };
    each("inexact_alm", with(RobustPcaMethod::inexact_alm));
    if (!suite_.pipelines) return each("alternating", with(RobustPcaMethod::alternating));
    each("caqr pipeline", [this](BackgroundCase& result) { measure_pipeline(PipelineQr::caqr, result); });
    each("blas2 pipeline", [this](BackgroundCase& result) { measure_pipeline(PipelineQr::blas2, result); });
  }

 private:
  /// The matrix, or why there is none.
  std::string fill() {
    m_ = Matrix<T>::host(shape_.rows, shape_.cols);
    if (suite_.frames == Frames::synthetic) {
      fill_synthetic_frames(m_.data(), m_.rows(), m_.cols());
      source_ = "synthetic, rank 5 and 5% sparse";
    } else {
      const std::string path = find_excerpt(session_.options().cli_directory);
      if (path.empty())
        return detail::concat("the video ", excerpt, " was not found; the suite background-synthetic needs none");
      try {
        source_ = fill_from_video(path, m_);
      } catch (const Error& fault) {
        return fault.what();
      }
    }
    device_m_ = session_.context().to_device(m_);
    return "";
  }

  /// Milliseconds an iteration: the same steps with other ways to the singular values, on the same matrix.
  void measure_peers() {
    const std::vector<std::string> names = session_.peers("rpca");
    if (names.empty()) return;
    const TemporaryFile file("frames");
    write_frames(file.path(), m_.data(), m_.rows() * m_.cols());
    const PeerTask task{
        .task = "rpca", .shape = shape_, .precision = precision_, .seed = 1, .more = " path=" + file.path()};
    for (const std::string& peer : names) {
      PeerTime time{peer, {}, 0, ""};
      note(peer);
      try {
        time.samples_ms = session_.measure_peer(peer, task).numbers("total_ms");
      } catch (const std::exception& fault) {
        time.reason = fault.what();
      }
      peers_.push_back(time);
    }
  }

  BackgroundCase new_case(const std::string& method) {
    const double m = static_cast<double>(shape_.rows), n = static_cast<double>(shape_.cols);
    BackgroundCase result;
    result.shape = shape_;
    result.precision = precision_;
    result.method = method;
    result.data = source_;
    result.flops = 4 * m * n * n - 2 * n * n * n / 3;
    result.floor = session_.floor_for(precision_, result.flops, 9 * m * n * sizeof(T));
    result.tolerance = tolerance;
    return result;
  }

  /// Runs `measure`; its errors become the outcome of the case.
  template <class Measure>
  void guarded(BackgroundCase& result, const Measure& measure) {
    try {
      measure(result);
    } catch (const Error& fault) {
      if (fault.code() == ErrorCode::interrupted) return;
      const bool lacking = fault.code() == ErrorCode::out_of_memory || fault.code() == ErrorCode::unavailable;
      result.outcome = lacking ? Outcome::left_out : Outcome::failed;
      result.reason = fault.what();
      if (fault.code() == ErrorCode::device) throw;
    }
  }

  /// Five samples of as many iterations as half a second has; nothing where one iteration takes too long.
  template <class Iterations>
  bool sample(BackgroundCase& result, const Iterations& ms_per_iteration) {
    note(result.method + ", speed");
    const double guess = ms_per_iteration(3);
    const double limit = session_.on_gpu() ? INFINITY : 2e3;
    if (guess > std::max(limit, 1e3 * session_.options().max_seconds)) {
      result.outcome = Outcome::left_out;
      result.reason = detail::concat("one iteration takes ", std::round(guess / 100) / 10, " s");
      return false;
    }
    result.iterations_per_sample = std::clamp(static_cast<int>(500 / std::max(guess, 1e-3)), 5, 50);
    for (int run = 0; run < 5 && !session_.interrupted(); ++run)
      result.samples_ms.push_back(ms_per_iteration(result.iterations_per_sample));
    note(result.method + ", convergence");
    return !session_.interrupted();
  }

  void measure(RobustPcaMethod method, BackgroundCase& result) {
    if (sample(result, [&](int iterations) { return ms_per_iteration(method, iterations); })) converge(method, result);
  }

  void measure_pipeline(PipelineQr qr, BackgroundCase& result) {
    const auto pipeline = make_pipeline<T>(session_, std::as_const(m_).view(), qr);
    const auto ms_per_iteration = [&](int iterations) {
      return pipeline->time_ms([&] { pipeline->run(iterations, 0, {}); }) / iterations;
    };
    if (!sample(result, ms_per_iteration)) return;
    const auto start = std::chrono::steady_clock::now();
    const auto on_iteration = [&](const PipelineState& now) {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      result.convergence.push_back({now.iterations, now.residual, now.rank, seconds.count()});
      return !session_.interrupted();
    };
    const PipelineState last = pipeline->run(1000, tolerance, on_iteration);
    result.converged = last.residual <= tolerance;
    result.rank = last.rank;
    result.residual = last.residual;
    if (!result.converged && !session_.interrupted()) {
      result.outcome = Outcome::failed;
      result.reason = "the iteration did not converge";
    }
  }

  /// A fixed number of iterations, without a callback between them.
  double ms_per_iteration(RobustPcaMethod method, int iterations) {
    RobustPcaOptions options;
    options.method = method;
    options.relative_tolerance = 1e-300;  // never reached
    options.max_iterations = iterations;
    const RobustPca<T> result = robust_pca<T>(session_.context(), device_m_.view(), options);
    return 1e3 * result.seconds / std::max(result.iterations, 1);
  }

  void converge(RobustPcaMethod method, BackgroundCase& result) {
    RobustPcaOptions options;
    options.method = method;
    options.relative_tolerance = tolerance;
    // seconds of patience: the alternating directions need hundreds of iterations
    const double patience_ms = session_.on_gpu() ? 60e3 : 40e3;
    options.max_iterations =
        std::clamp(static_cast<int>(patience_ms / std::max(median(result.samples_ms), 1e-3)), 30, 1000);
    options.on_iteration = [&](const RobustPcaProgress& now) {
      result.convergence.push_back({now.iteration, now.residual, now.rank, now.seconds});
      return !session_.interrupted();
    };
    const RobustPca<T> parts = robust_pca<T>(session_.context(), device_m_.view(), options);
    result.converged = parts.converged;
    result.rank = parts.rank;
    result.residual = host_residual(parts);
    const double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
    if (!(result.residual <= (parts.converged ? 1.01 * tolerance : 1.01 * parts.residual) + 4 * unit_roundoff)) {
      result.outcome = Outcome::failed;
      result.reason = "the residual that was reported is not that of L and S";
    }
  }

  /// ‖M - L - S‖_F / ‖M‖_F in double.
  double host_residual(const RobustPca<T>& parts) const {
    const Matrix<T> low_rank = session_.context().to_host(parts.low_rank);
    const Matrix<T> sparse = session_.context().to_host(parts.sparse);
    double gap = 0, norm = 0;
    for (Index j = 0; j < m_.cols(); ++j)
      for (Index i = 0; i < m_.rows(); ++i) {
        const double whole = static_cast<double>(m_(i, j));
        const double z = whole - static_cast<double>(low_rank(i, j)) - static_cast<double>(sparse(i, j));
        gap += z * z;
        norm += whole * whole;
      }
    return std::sqrt(gap / norm);
  }

  void note(const std::string& what) const {
    session_.progress(detail::concat("robust PCA ", shape_.rows, " x ", shape_.cols, " ", precision_, ": ", what));
  }

  Session& session_;
  const SuiteInfo& suite_;
  Shape shape_;
  std::string precision_;
  Matrix<T> m_, device_m_;
  std::string source_;
  std::vector<PeerTime> peers_;
};

}  // namespace

void run_background_cases(Session& session, const SuiteInfo& suite, Shape shape, const std::string& precision,
                          const std::function<void(const BackgroundCase&)>& report) {
  if (precision == "f32")
    BackgroundCases<float>(session, suite, shape, precision).run(report);
  else
    BackgroundCases<double>(session, suite, shape, precision).run(report);
}

}  // namespace qrane::bench
