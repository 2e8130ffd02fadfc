// SPDX-License-Identifier: Apache-2.0
// From the sparse part of a frame to its foreground mask, and from numbers to gray levels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qrane::cli {

/// mask[i] = 255 where |s_i| > threshold, else 0.
template <class T>
void threshold_mask(const T* s, std::int64_t pixels, double threshold, std::uint8_t* mask) {
  for (std::int64_t i = 0; i < pixels; ++i) mask[i] = std::abs(static_cast<double>(s[i])) > threshold ? 255 : 0;
}

/// The 5 x 5 median of a mask of 0 and 255: the majority of 25, pixels beyond the border being the border's.
/// mask and median: height x width, row-major, not the same memory.
void median_5x5(const std::uint8_t* mask, int width, int height, std::uint8_t* median);

/// Rounded and clamped to 0..255.
template <class T>
std::uint8_t gray_level(T value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(static_cast<double>(value), 0.0, 255.0)));
}

}  // namespace qrane::cli
