// SPDX-License-Identifier: Apache-2.0
// The sparse paper's rounds of tile tasks carried out on a device: R^T R = S^T S for matrices of every odd kind.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "paper/cpu.hpp"
#if QRANE_WITH_CUDA
#include <cuda_runtime_api.h>

#include "paper/cuda.hpp"
#endif
#include "paper/tiles/tile_factor.hpp"
#include "support/sparse.hpp"

namespace qrane::sparse {
namespace {

std::optional<backend::cpu::Queue> queue_for(backend::Cpu*) { return backend::cpu::Queue(2); }
#if QRANE_WITH_CUDA
std::optional<backend::cuda::Queue> queue_for(backend::Cuda*) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return {};
  return backend::cuda::Queue(0);
}
using Types = testing::Types<std::pair<backend::Cpu, float>, std::pair<backend::Cpu, double>,
                             std::pair<backend::Cuda, float>, std::pair<backend::Cuda, double>>;
#else
using Types = testing::Types<std::pair<backend::Cpu, float>, std::pair<backend::Cpu, double>>;
#endif

struct Names {
  template <class P>
  static std::string GetName(int) {
    return std::string(P::first_type::name) + (sizeof(typename P::second_type) == 4 ? "_float" : "_double");
  }
};

template <class P>
class TileFactors : public testing::Test {
 protected:
  using B = typename P::first_type;
  using T = typename P::second_type;

  void SetUp() override {
    queue = queue_for(static_cast<B*>(nullptr));
    if (!queue) GTEST_SKIP() << "no device";
  }

  /// S of the fronts' rows and columns; values as the factorization takes them.
  std::shared_ptr<const Symbolic> analyzed(const test::Triplets& a) {
    AnalyzeOptions options;
    options.ordering = Ordering::colamd;
    options.singletons = false;
    auto symbolic = std::make_shared<const Symbolic>(analyze_pattern(a.view(), options, {}, false));
    const std::vector<T> user(a.value.begin(), a.value.end());
    values.resize(static_cast<std::size_t>(symbolic->entries) + 1);
    gather_values(*symbolic, user.data(), values.data());
    return symbolic;
  }

  /// Columns of R^T R - S^T S over those of S^T S, in units of roundoff, the worst.
  double gap(const Symbolic& s, const std::vector<T>& r, const TileFactor<B, T>& factor) const {
    std::vector<std::vector<long double>> rows;  // of R, dense
    for (Index f = 0; f < s.front_count(); ++f) {
      const Front& front = s.fronts[static_cast<std::size_t>(f)];
      for (Index i = 0; i < front.r_rows; ++i) {
        std::vector<long double> row(static_cast<std::size_t>(s.cols), 0);
        for (Index j = i; j < front.cols; ++j)
          row[static_cast<std::size_t>(s.front_cols[static_cast<std::size_t>(front.cols_begin + j)])] =
              r[static_cast<std::size_t>(factor.r_offset(f) + packed_column(j, front.pivots, front.r_rows) + i)];
        rows.push_back(std::move(row));
      }
    }
    std::vector<std::vector<long double>> lines;  // of S
    s.for_each_row([&](Index, Index first, Index last, auto column) {
      std::vector<long double> line(static_cast<std::size_t>(s.cols), 0);
      for (Index p = first; p < last; ++p)
        line[static_cast<std::size_t>(column(p))] = values[static_cast<std::size_t>(p)];
      lines.push_back(std::move(line));
    });
    const auto gram = [](const auto& list, std::size_t i, std::size_t j) {
      long double sum = 0;
      for (const auto& row : list) sum += row[i] * row[j];
      return sum;
    };
    double worst = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(s.cols); ++j)
      for (std::size_t i = 0; i <= j; ++i) {
        const long double scale = std::sqrt(gram(lines, i, i) * gram(lines, j, j));
        const long double error = std::abs(gram(rows, i, j) - gram(lines, i, j));
        if (error > 0) worst = std::max(worst, static_cast<double>(error / scale));
        if (std::isnan(static_cast<double>(error))) return std::numeric_limits<double>::infinity();
      }
    return worst / (std::numeric_limits<T>::epsilon() / 2);
  }

  std::optional<typename B::Queue> queue;
  std::vector<T> values;
};
TYPED_TEST_SUITE(TileFactors, Types, Names);

TYPED_TEST(TileFactors, GiveRForOddMatrices) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  for (const auto& [name, a] : test::odd_matrices()) {
    SCOPED_TRACE(name);
    const auto s = this->analyzed(a);
    TileFactor<B, T> factor(*this->queue, s);
    factor.run(this->values.data());
    EXPECT_LE(this->gap(*s, factor.r(), factor), 60.0 * static_cast<double>(s->cols + 10));
  }
}

TYPED_TEST(TileFactors, GiveRWhateverTheSchedule) {
  using T = typename TestFixture::T;
  using B = typename TestFixture::B;
  const auto s = this->analyzed(test::random_sparse(500, 160, 0.03, 5));
  for (const bool pipelined : {false, true})
    for (const std::int32_t bundle : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << bundle << " tiles, " << (pipelined ? "pipelined" : "plain"));
      ScheduleOptions options;
      options.bundle = bundle;
      options.pipelined = pipelined;
      options.apply_columns = bundle;
      options.s_entries = 100;
      options.pack_side = 32;
      TileFactor<B, T> factor(*this->queue, s, options);
      factor.run(this->values.data());
      const std::vector<T> r = factor.r();
      EXPECT_LE(this->gap(*s, r, factor), 60.0 * static_cast<double>(s->cols + 10));
      factor.run(this->values.data());
      EXPECT_EQ(factor.r(), r) << "the same bits again";
    }
}

TYPED_TEST(TileFactors, RefuseBundlesTooWide) {
  ScheduleOptions options;
  options.bundle = backend::widest_bundle + 1;
  const auto s = this->analyzed(test::random_sparse(20, 10, 0.3, 5));
  EXPECT_THROW((TileFactor<typename TestFixture::B, typename TestFixture::T>(*this->queue, s, options)), Error);
}

}  // namespace
}  // namespace qrane::sparse
