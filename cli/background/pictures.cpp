// SPDX-License-Identifier: Apache-2.0
#include <cli/background/pictures.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include <io/images/image.hpp>
#include <io/partial_file.hpp>

namespace qrane::cli {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> result_names = {"background.mp4", "foreground.mp4", "mask.mp4", "summary.json"};
const std::vector<std::string> window_kinds = {"background", "foreground", "mask"};
const std::vector<std::string> still_kinds = {"background", "foreground", "frame", "mask"};

std::string numbered(const char* format, std::int64_t a, std::int64_t b = 0) {
  char text[64];
  std::snprintf(text, sizeof(text), format, static_cast<long long>(a), static_cast<long long>(b));
  return text;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code reason;
  for (const auto& entry : fs::directory_iterator(directory, reason)) names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

std::string picture_suffix(const std::string& name) {
  const std::size_t at = name.find('_');
  const std::size_t dot = name.rfind('.');
  if (at == std::string::npos || dot == std::string::npos || dot < at) return "";
  const std::string kind = name.substr(0, at), number = name.substr(at + 1, dot - at - 1), ending = name.substr(dot);
  const auto digits = [](const std::string& text) {
    return text.size() >= 6 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::size_t dash = number.find('-');
  const bool window = ending == ".mp4" && dash != std::string::npos && digits(number.substr(0, dash)) &&
                      digits(number.substr(dash + 1));
  const bool still = ending == ".png" && digits(number);
  const std::vector<std::string>& kinds = window ? window_kinds : still_kinds;
  const bool known = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  return known && (window || still) ? name.substr(at) : "";
}

Pictures::Pictures(const std::string& directory, const io::VideoInfo& info, const std::vector<Input>& inputs)
    : directory_(directory),
      info_(info),
      inputs_(inputs),
      kinds_{Kind{"background", nullptr, {}}, Kind{"foreground", nullptr, {}}, Kind{"mask", nullptr, {}}} {
  io::make_directories(directory);
  std::vector<Output> outputs;
  for (const std::string& name : result_names) outputs.push_back({"--out", path(name), false});
  // What may be written or removed depends on the frames: whatever bears such a name must not be an input.
  for (const std::string& name : names_in(directory)) {
    if (!picture_suffix(name).empty()) outputs.push_back({"--out", path(name), false});
  }
  check_outputs(outputs, inputs);
  io::remove_abandoned(directory, [](const std::string& name) {
    const auto is_list = [&](const std::string& result) { return name == result + ".list"; };
    return !picture_suffix(name).empty() || std::any_of(result_names.begin(), result_names.end(), is_list);
  });
}

void Pictures::begin_window(std::int64_t first, std::int64_t frames) {
  window_suffix_ = numbered("_%06lld-%06lld.mp4", first, first + frames - 1);
}

void Pictures::add(const FramePictures& pictures) {
  const std::vector<std::uint8_t>* const frames[] = {&pictures.background, &pictures.foreground, &pictures.mask};
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    Kind& kind = kinds_[k];
    if (!kind.writer) {
      const int channels = frames[k]->size() == info_.pixels() ? 1 : 3;
      kind.writer = std::make_unique<io::VideoWriter>(path(kind.name + window_suffix_), info_.width, info_.height,
                                                      info_.frame_rate, channels);
    }
    kind.writer->write(frames[k]->data());
  }
}

void Pictures::write_stills(std::int64_t frame, const FramePictures& pictures) {
  const std::string number = numbered("_%06lld.png", frame);
  const auto write = [&](const char* name, const std::vector<std::uint8_t>& pixels) {
    const int channels = pixels.size() == info_.pixels() ? 1 : 3;
    io::write_png(path(name + number), info_.width, info_.height, channels, pixels.data());
    written_.insert(name + number);
  };
  write("frame", pictures.frame);
  write("background", pictures.background);
  write("foreground", pictures.foreground);
  write("mask", pictures.mask);
  ++stills_;
}

void Pictures::end_window() {
  for (Kind& kind : kinds_) {
    kind.writer->finish();
    kind.writer.reset();
    kind.windows.push_back(kind.name + window_suffix_);
    written_.insert(kind.windows.back());
  }
}

void Pictures::finish() {
  for (Kind& kind : kinds_) kind.writer.reset();
  if (kinds_[0].windows.empty()) return;
  for (const Kind& kind : kinds_) io::join_videos(kind.windows, path(std::string(kind.name) + ".mp4"));
  for (const Kind& kind : kinds_) {
    for (const std::string& name : kind.windows) fs::remove(path(name));
  }
  remove_older();
}

/// Pictures come in fours and windows in threes: what is not complete was not written by this command.
void Pictures::remove_older() const {
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::string& name : names_in(directory_)) {
    const std::string suffix = picture_suffix(name);
    if (!suffix.empty() && !written_.contains(name)) groups[suffix].push_back(name);
  }
  for (const auto& [suffix, names] : groups) {
    const std::size_t whole = suffix.ends_with(".mp4") ? window_kinds.size() : still_kinds.size();
    if (names.size() != whole) continue;
    for (const std::string& name : names) fs::remove(path(name));
  }
}

}  // namespace qrane::cli
