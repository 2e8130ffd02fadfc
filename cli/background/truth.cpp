// SPDX-License-Identifier: Apache-2.0
#include <cli/background/truth.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <io/file_error.hpp>
#include <io/images/image.hpp>

namespace qrane::cli {
namespace fs = std::filesystem;
namespace {

struct NumberedImages {
  std::vector<std::string> paths;
  std::vector<std::int64_t> numbers;  ///< of each path; empty unless all have one, under one common name
};

/// A directory's images in the order of their names, numbers by value.
NumberedImages list_images(const std::string& directory) {
  std::error_code reason;
  std::vector<std::pair<std::int64_t, std::string>> found;
  bool numbered = true;
  std::string common;
  for (const auto& entry : fs::directory_iterator(directory, reason)) {
    const std::string path = entry.path().string();
    if (!io::is_image_path(path)) continue;
    const std::optional<std::int64_t> number = trailing_number(path);
    const std::string stem = entry.path().stem().string();
    const std::string name = stem.substr(0, stem.find_last_not_of("0123456789") + 1);
    if (found.empty()) common = name;
    numbered = numbered && number && name == common;
    found.emplace_back(number.value_or(0), path);
  }
  if (reason) io::fail(directory, "cannot read: ", reason.message());
  if (!numbered) {
    for (auto& image : found) image.first = 0;
  }
  std::sort(found.begin(), found.end());
  NumberedImages images;
  for (const auto& [number, path] : found) {
    images.paths.push_back(path);
    if (numbered) images.numbers.push_back(number);
  }
  return images;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

void Score::add(const std::uint8_t* mask, const std::uint8_t* truth, std::int64_t pixels) {
  ++frames;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const bool moves = truth[i] == 255, still = truth[i] == 0 || truth[i] == 50, found = mask[i] != 0;
    true_positives += moves && found;
    false_negatives += moves && !found;
    false_positives += still && found;
    true_negatives += still && !found;
  }
}

double Score::precision() const { return ratio(true_positives, true_positives + false_positives); }
double Score::recall() const { return ratio(true_positives, true_positives + false_negatives); }
double Score::f_measure() const {
  return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

std::optional<std::int64_t> trailing_number(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  const std::size_t begin = stem.find_last_not_of("0123456789") + 1;  // npos + 1 is 0: digits alone
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(stem.data() + begin, stem.data() + stem.size(), number);
  if (code != std::errc() || end != stem.data() + stem.size()) return std::nullopt;
  return number;
}

Truth::Truth(const std::string& directory, const std::string& video, std::int64_t first, std::int64_t count) {
  const NumberedImages masks = list_images(directory);
  if (masks.paths.empty()) io::fail(directory, "no images (masks) in it");
  const auto wanted = [&](std::int64_t frame) { return frame >= first && (count < 0 || frame < first + count); };

  if (fs::is_directory(video) && !masks.numbers.empty()) {
    std::map<std::int64_t, std::string> by_number;
    for (std::size_t k = 0; k < masks.paths.size(); ++k) by_number[masks.numbers[k]] = masks.paths[k];
    const NumberedImages frames = list_images(video);
    for (std::size_t k = 0; k < frames.numbers.size(); ++k) {
      const auto at = by_number.find(frames.numbers[k]);
      const auto frame = static_cast<std::int64_t>(k);
      if (at != by_number.end() && wanted(frame)) paths_[frame] = at->second;
    }
    by_number_ = !paths_.empty();
  }
  if (by_number_) return;
  for (std::size_t k = 0; k < masks.paths.size(); ++k) {
    const auto frame = static_cast<std::int64_t>(k);
    if (wanted(frame)) paths_[frame] = masks.paths[k];
  }
  detail::check(!paths_.empty(), ErrorCode::invalid_argument, "--truth: none of the ", masks.paths.size(), " masks in ",
                directory, " belongs to a frame from number ", first, " on");
}

std::vector<std::string> Truth::files() const {
  std::vector<std::string> paths;
  for (const auto& [frame, path] : paths_) paths.push_back(path);
  return paths;
}

std::optional<std::vector<std::uint8_t>> Truth::mask(std::int64_t frame, int width, int height, int source_width,
                                                     int source_height) const {
  const auto at = paths_.find(frame);
  if (at == paths_.end()) return std::nullopt;
  io::GrayImage image = io::read_gray_image(at->second);
  if (image.width == width && image.height == height) return std::move(image.pixels);
  if (image.width != source_width || image.height != source_height) {
    io::fail(at->second, "the mask is ", image.width, " x ", image.height, ", the frames are ", width, " x ", height);
  }
  std::vector<std::uint8_t> scaled(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    const std::int64_t from_y = (2 * std::int64_t{y} + 1) * source_height / (2 * std::int64_t{height});
    for (int x = 0; x < width; ++x) {
      const std::int64_t from_x = (2 * std::int64_t{x} + 1) * source_width / (2 * std::int64_t{width});
      scaled[static_cast<std::size_t>(y) * width + x] = image.pixels[from_y * source_width + from_x];
    }
  }
  return scaled;
}

}  // namespace qrane::cli
