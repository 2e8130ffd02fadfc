// SPDX-License-Identifier: Apache-2.0
// Masks that people drew, as the CDnet benchmark stores them (Wang et al., "CDnet 2014", CVPRW 2014), and how well
// masks agree with them. Gray levels: 255 moving, 0 still, 50 shadow (counted as still); all others (85 outside the
// region of interest, 170 unknown) are left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace qrane::cli {

/// Pixels counted over all frames added.
struct Score {
  std::int64_t frames = 0;
  std::int64_t true_positives = 0, false_positives = 0, false_negatives = 0, true_negatives = 0;

  /// mask: not 0 is foreground.
  void add(const std::uint8_t* mask, const std::uint8_t* truth, std::int64_t pixels);
  double precision() const;  ///< of the pixels found, the part that moves; 0 when none was found
  double recall() const;     ///< of the pixels that move, the part found; 0 when none moves
  double f_measure() const;  ///< harmonic mean of both
};

/// Which mask of a directory belongs to which frame of a video.
///
/// When the video is a directory of numbered images (in000851.jpg) and the masks carry the same numbers
/// (gt000851.png), numbers are matched; else order is: mask k is of frame k, both from 0.
class Truth {
 public:
  /// Throws Error{file} for a directory that cannot be read or holds no images, Error{invalid_argument} when no
  /// mask belongs to any of the frames first .. first + count - 1 (count < 0: not known).
  Truth(const std::string& directory, const std::string& video, std::int64_t first, std::int64_t count);

  /// The mask of a frame at width x height, nearest pixels when the masks have the video's own size (source_*).
  /// Nothing when the frame has no mask. Throws Error{file} for an unreadable mask or one of another size.
  std::optional<std::vector<std::uint8_t>> mask(std::int64_t frame, int width, int height, int source_width,
                                                int source_height) const;

  bool by_number() const { return by_number_; }
  /// The masks' paths.
  std::vector<std::string> files() const;

 private:
  std::map<std::int64_t, std::string> paths_;  ///< by number of the frame
  bool by_number_ = false;
};

/// The number at the end of a file's name without its ending ("in000851.jpg": 851).
std::optional<std::int64_t> trailing_number(const std::string& path);

}  // namespace qrane::cli
