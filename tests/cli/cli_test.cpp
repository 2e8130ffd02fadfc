// SPDX-License-Identifier: Apache-2.0
// Parts of the command line that can be asked without starting it: windows, masks, scores, error measures.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include <cli/background/mask.hpp>
#include <cli/background/pictures.hpp>
#include <cli/background/results.hpp>
#include <cli/background/truth.hpp>
#include <cli/background/windows.hpp>
#include <cli/common.hpp>
#include <cli/flops_bar.hpp>
#include <cli/measures.hpp>
#include <cli/suggest.hpp>
#include <io/images/image.hpp>

#include "cpu/queue/blas_core.hpp"

namespace qrane::cli {
namespace {

/// A stream of one-byte frames 0, 1, 2, ...
WindowReader stream(std::int64_t frames, const WindowShape& shape, std::int64_t first = 0) {
  auto at = std::make_shared<std::int64_t>(0);
  const auto next = [at, frames](std::uint8_t* frame) {
    if (*at == frames) return false;
    *frame = static_cast<std::uint8_t>((*at)++);
    return true;
  };
  return WindowReader(next, 1, shape, first);
}

TEST(Windows, ThatOverlapShareTheirFirstFrames) {
  for (const bool live : {false, true}) {
    for (const std::int64_t overlap : {0, 1, 3, 4}) {
      if (!live && overlap == 0) continue;
      for (std::int64_t frames = 0; frames <= 23; ++frames) {
        const WindowShape shape{5, overlap, live};
        WindowReader reader = stream(frames, shape, 7);
        std::int64_t at = 0, count = 0;
        while (const auto w = reader.next()) {
          SCOPED_TRACE(::testing::Message() << frames << " frames, window " << count << ", overlap " << overlap);
          EXPECT_EQ(w->first + w->shared, 7 + at);
          ASSERT_EQ(static_cast<std::int64_t>(w->frames.size()), w->count);
          for (std::int64_t k = 0; k < w->count; ++k)
            EXPECT_EQ(w->frames[static_cast<std::size_t>(k)], w->first - 7 + k);
          EXPECT_LE(w->count, 5);
          EXPECT_GT(w->count, w->shared);
          at += w->count - w->shared;
          EXPECT_TRUE(w->count == 5 || at == frames);
          EXPECT_TRUE(w->count >= 2 || frames == 1);
          const bool alone = w->count == 2 && w->shared == 1 && overlap == 0;
          if (count++ > 0 && !alone) {
            EXPECT_EQ(w->shared, overlap);
          }
        }
        EXPECT_EQ(at, frames);
        EXPECT_EQ(count, count_windows(frames, shape));
      }
    }
  }
}

TEST(Words, NearestOfThoseKnown) {
  EXPECT_EQ(qrane::detail::nearest("--sprase", {"--sparse", "--dense"}), "--sparse");
  EXPECT_EQ(qrane::detail::nearest("--prec", {"--pivot", "--precision"}), "--precision");
  EXPECT_EQ(qrane::detail::nearest("--zebra", {"--sparse", "--dense"}), "");
  EXPECT_EQ(qrane::detail::nearest("svdd", {"qr", "svd", "solve"}), "svd");
}

TEST(Words, BytesWithTheirUnits) {
  EXPECT_EQ(parse_bytes("--memory-limit", "0"), 0);
  EXPECT_EQ(parse_bytes("--memory-limit", "123"), 123);
  EXPECT_EQ(parse_bytes("--memory-limit", "2K"), 2048);
  EXPECT_EQ(parse_bytes("--memory-limit", "4G"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_bytes("--memory-limit", "4GiB"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_bytes("--memory-limit", "1TB"), std::int64_t{1} << 40);
  for (const char* text : {"", "-5", "4X", "G", "4GG", "1.5G", "99999999999999999999", "99999999T", "4 G", "iB"}) {
    EXPECT_THROW(parse_bytes("--memory-limit", text), Error) << text;
  }
}

TEST(BlasCore, IsComparedWithWhatTheProcessorHas) {
  using backend::cpu::fitting_core;
  using backend::cpu::leaves_features_unused;
  const backend::cpu::CpuFeatures skylake{true, true, true, false}, haswell{true, true, false, false},
      zen{true, true, true, true}, old{};
  EXPECT_EQ(fitting_core(skylake), "SkylakeX");
  EXPECT_EQ(fitting_core(haswell), "Haswell");
  EXPECT_EQ(fitting_core(zen), "Zen");
  EXPECT_EQ(fitting_core(old), "");
  EXPECT_TRUE(leaves_features_unused("Prescott", skylake));
  EXPECT_TRUE(leaves_features_unused("Haswell", skylake));
  EXPECT_FALSE(leaves_features_unused("Cooperlake", skylake));
  EXPECT_FALSE(leaves_features_unused("Haswell", zen));
  EXPECT_FALSE(leaves_features_unused("Prescott", old));
  EXPECT_FALSE(leaves_features_unused("Somethingnew", skylake));
}

TEST(Words, NamesOfPictures) {
  EXPECT_EQ(picture_suffix("mask_000100.png"), "_000100.png");
  EXPECT_EQ(picture_suffix("mask_000100-000199.mp4"), "_000100-000199.mp4");
  for (const char* name :
       {"mask.mp4", "mask_1.png", "frame_000100-000199.mp4", "other_000100.png", "mask_00010x.png"}) {
    EXPECT_EQ(picture_suffix(name), "") << name;
  }
}

TEST(Windows, CoverTheStreamInOrderWithNoFrameAlone) {
  for (std::int64_t window : {2, 3, 4, 5, 10}) {
    for (std::int64_t frames = 0; frames <= 45; ++frames) {
      WindowReader reader = stream(frames, {window}, 7);
      std::int64_t at = 0, count = 0;
      while (const auto w = reader.next()) {
        ++count;
        EXPECT_EQ(w->first, 7 + at);
        ASSERT_EQ(static_cast<std::int64_t>(w->frames.size()), w->count);
        for (const std::uint8_t frame : w->frames) EXPECT_EQ(frame, at++);
        EXPECT_LE(w->count, window + window / 2);
        if (frames >= 2) {
          EXPECT_GE(w->count, 2);
        }
        // only the last window may be shorter, and then by less than half
        if (w->count < window) {
          EXPECT_EQ(at, frames);
        }
        if (w->count < window && count > 1) {
          EXPECT_GT(w->count, window / 2);
        }
      }
      EXPECT_EQ(at, frames) << "window " << window;
      EXPECT_EQ(count, count_windows(frames, {window})) << frames << " frames, window " << window;
    }
  }
}

TEST(Windows, RefuseFewerThanTwoFrames) { EXPECT_THROW(stream(5, {1}), Error); }

TEST(Mask, ThresholdIsStrictAndTakesTheMagnitude) {
  const float s[] = {15.0f, 15.001f, -15.001f, -15.0f, 0.0f};
  std::uint8_t mask[5];
  threshold_mask(s, 5, 15, mask);
  EXPECT_EQ(std::vector<int>(mask, mask + 5), (std::vector<int>{0, 255, 255, 0, 0}));
}

TEST(Mask, MedianEqualsSortingTheTwentyFive) {
  std::mt19937 random(1);
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 9}, {2, 3}, {4, 4}, {5, 5}, {17, 11}, {32, 7}}) {
    for (double density : {0.0, 0.3, 0.5, 0.7, 1.0}) {
      std::bernoulli_distribution set(density);
      std::vector<std::uint8_t> mask(static_cast<std::size_t>(width * height)), median(mask.size());
      for (auto& pixel : mask) pixel = set(random) ? 255 : 0;
      median_5x5(mask.data(), width, height, median.data());
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          std::vector<std::uint8_t> around;
          for (int dy = -2; dy <= 2; ++dy) {
            for (int dx = -2; dx <= 2; ++dx) {
              around.push_back(mask[std::clamp(y + dy, 0, height - 1) * width + std::clamp(x + dx, 0, width - 1)]);
            }
          }
          std::sort(around.begin(), around.end());
          ASSERT_EQ(median[y * width + x], around[12]) << width << " x " << height << " at " << x << ", " << y;
        }
      }
    }
  }
}

TEST(Mask, GrayLevelsAreRoundedAndClamped) {
  EXPECT_EQ(gray_level(-3.0), 0);
  EXPECT_EQ(gray_level(0.49f), 0);
  EXPECT_EQ(gray_level(127.5), 128);
  EXPECT_EQ(gray_level(300.0f), 255);
}

TEST(Truth, ScoreEqualsCountingByHand) {
  std::mt19937 random(2);
  const std::uint8_t levels[] = {0, 50, 85, 170, 255};
  std::vector<std::uint8_t> mask(1000), truth(1000);
  Score score;
  double tp = 0, fp = 0, fn = 0, tn = 0;
  for (int frame = 0; frame < 3; ++frame) {
    for (std::size_t i = 0; i < mask.size(); ++i) {
      mask[i] = random() % 3 == 0 ? 255 : 0;
      truth[i] = levels[random() % 5];
      if (truth[i] == 85 || truth[i] == 170) continue;
      (truth[i] == 255 ? (mask[i] ? tp : fn) : (mask[i] ? fp : tn)) += 1;
    }
    score.add(mask.data(), truth.data(), 1000);
  }
  EXPECT_EQ(score.frames, 3);
  EXPECT_EQ(score.true_negatives, tn);
  EXPECT_DOUBLE_EQ(score.precision(), tp / (tp + fp));
  EXPECT_DOUBLE_EQ(score.recall(), tp / (tp + fn));
  EXPECT_DOUBLE_EQ(score.f_measure(), 2 * score.precision() * score.recall() / (score.precision() + score.recall()));
}

TEST(Truth, AnEmptyScoreIsZeroNotNan) {
  EXPECT_EQ(Score().precision(), 0);
  EXPECT_EQ(Score().recall(), 0);
  EXPECT_EQ(Score().f_measure(), 0);
}

/// A directory of 1 x 1 images named PREFIX + number, gone at the end.
class TruthFiles : public testing::Test {
 protected:
  TruthFiles() : root_(std::filesystem::temp_directory_path() / ("qrane-truth-" + std::to_string(::getpid()))) {}
  ~TruthFiles() override { std::filesystem::remove_all(root_); }
  std::string images(const std::string& name, const std::string& prefix, int first, int last) {
    const auto directory = root_ / name;
    std::filesystem::create_directories(directory);
    for (int k = first; k <= last; ++k) {
      const auto level = static_cast<std::uint8_t>(k);
      char number[16];
      std::snprintf(number, sizeof(number), "%06d.png", k);
      io::write_png((directory / (prefix + number)).string(), 1, 1, 1, &level);
    }
    return directory.string();
  }
  int level(const Truth& truth, std::int64_t frame) {
    const auto mask = truth.mask(frame, 1, 1, 1, 1);
    return mask ? (*mask)[0] : -1;
  }
  std::filesystem::path root_;
};

TEST_F(TruthFiles, NumbersMatchWhereBothHaveThem) {
  const std::string frames = images("frames", "in", 10, 20), masks = images("masks", "gt", 13, 15);
  const Truth truth(masks, frames, 0, 11);
  EXPECT_TRUE(truth.by_number());
  EXPECT_EQ(level(truth, 2), -1);
  EXPECT_EQ(level(truth, 3), 13);
  EXPECT_EQ(level(truth, 5), 15);
  EXPECT_EQ(level(truth, 6), -1);
}

TEST_F(TruthFiles, OrderMatchesWhereNumbersDoNot) {
  const std::string masks = images("masks", "gt", 100, 102), frames = images("frames", "in", 0, 2);
  for (const std::string& video : {std::string("clip.mp4"), frames}) {
    const Truth truth(masks, video, 0, 3);
    EXPECT_FALSE(truth.by_number());
    EXPECT_EQ(level(truth, 0), 100);
    EXPECT_EQ(level(truth, 2), 102);
    EXPECT_EQ(level(truth, 3), -1);
  }
}

TEST_F(TruthFiles, WhatCannotMatchIsRefused) {
  const std::string masks = images("masks", "gt", 1, 3);
  EXPECT_THROW(Truth(masks, "clip.mp4", 3, 10), Error);
  EXPECT_THROW(Truth((root_ / "missing").string(), "clip.mp4", 0, 10), Error);
  EXPECT_THROW(Truth(masks, "clip.mp4", 0, 3).mask(0, 2, 2, 2, 2), Error);
}

TEST_F(TruthFiles, ScalesByNearestPixels) {
  std::filesystem::create_directories(root_);
  const std::uint8_t levels[] = {0, 50, 85, 255};
  io::write_png((root_ / "gt1.png").string(), 2, 2, 1, levels);
  const Truth truth(root_.string(), "clip.mp4", 0, 1);
  const auto mask = truth.mask(0, 4, 4, 2, 2);
  ASSERT_TRUE(mask);
  EXPECT_EQ((*mask)[0], 0);
  EXPECT_EQ((*mask)[3], 50);
  EXPECT_EQ((*mask)[1 * 4 + 1], 0);
  EXPECT_EQ((*mask)[15], 255);
}

TEST(Truth, TrailingNumbers) {
  EXPECT_EQ(trailing_number("a/in000851.jpg"), 851);
  EXPECT_EQ(trailing_number("12.png"), 12);
  EXPECT_EQ(trailing_number("shot.png"), std::nullopt);
}

TEST(Stills, ThreeOfTheFirstWindowThenOneEachAndTwelveAtMost) {
  std::int64_t stills = 0;
  std::set<std::int64_t> frames;
  for (std::int64_t w = 0; w < 20; ++w) {
    WindowReport window;
    window.first = 10 * w;
    window.frames = 10;
    for (std::int64_t k = window.first; k < window.first + 10; ++k) {
      if (!wants_stills(window, k, stills)) continue;
      ++stills;
      frames.insert(k);
    }
  }
  EXPECT_EQ(stills, 12);
  EXPECT_TRUE(frames.count(1) && frames.count(5) && frames.count(8) && frames.count(15));
}

TEST(Measures, KnownFactorizations) {
  // A = [3 0; 4 5], Q = [0.6 -0.8; 0.8 0.6], R = [5 4; 0 3]
  const double a[] = {3, 4, 0, 5}, q[] = {0.6, 0.8, -0.8, 0.6}, r[] = {5, 0, 4, 3};
  const MatrixView<const double> av(a, 2, 2), qv(q, 2, 2), rv(r, 2, 2);
  const QrErrors good = cheap_errors<double>(av, &qv, rv);
  EXPECT_LT(*good.orthogonality, 1);
  EXPECT_LT(*good.residual, 1);
  EXPECT_LT(*cheap_errors<double>(av, nullptr, rv).gram_residual, 1e-15);

  const double wrong[] = {5, 0, 4, 3.001};
  const MatrixView<const double> wv(wrong, 2, 2);
  const double unit = error_unit<double>(2, 2);
  EXPECT_NEAR(*cheap_errors<double>(av, &qv, wv).residual, 0.001 / 5 / unit, 1e-6 / unit);
  EXPECT_NEAR(*cheap_errors<double>(av, nullptr, wv).gram_residual, (3.001 * 3.001 - 9) / 50, 1e-9);
  const double half[] = {0.3, 0.4, -0.4, 0.3};
  const MatrixView<const double> hv(half, 2, 2);
  EXPECT_NEAR(*cheap_errors<double>(av, &hv, rv).orthogonality, 0.75 * std::sqrt(2.0) / unit, 1e-6 / unit);
}

TEST(FlopsBar, SaysHowFarAndHowLong) {
  EXPECT_EQ(flops_line(0, 2e12, 0), "[                              ]   0%  0 of 2e+12 flops, 0 GFLOP/s");
  EXPECT_EQ(flops_line(5e11, 2e12, 10),
            "[#######                       ]  25%  5e+11 of 2e+12 flops, 50 GFLOP/s, 30 s left");
  EXPECT_EQ(flops_line(2e12, 2e12, 40), "[##############################] 100%  2e+12 of 2e+12 flops, 50 GFLOP/s");
  EXPECT_EQ(flops_line(3, 2, 1).find("100%"), 33u);  // more than was counted
  EXPECT_NE(flops_line(0, 0, 0).find("100%"), std::string::npos);
  for (const int columns : {50, 60, 80}) {
    const std::string line = flops_line(5e11, 2e12, 10, columns);
    EXPECT_LT(static_cast<int>(line.size()), columns);
    EXPECT_NE(line.find("30 s left"), std::string::npos);
  }
}

}  // namespace
}  // namespace qrane::cli
