// SPDX-License-Identifier: Apache-2.0
// Videos: image sequences and arrays read here, encoded files through the ffmpeg program.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include <qrane/error.hpp>

#include <io/images/image.hpp>
#include <io/video/child_process.hpp>
#include <io/video/video.hpp>

#include "support/files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace qrane::io;
using qrane::ErrorCode;
using qrane::test::expect_error;

class Video : public qrane::test::InDirectory {
 protected:
  void TearDown() override {
    InDirectory::TearDown();
    // Whatever happened, no child may be left, dead or alive.
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  void write_video(const std::string& name, int frames, int width = 64, int height = 48) const {
    VideoWriter writer(path(name), width, height, 10);
    for (int k = 0; k < frames; ++k) writer.write(frame(k, width, height).data());
    writer.finish();
  }
  /// A bright square that moves over a slope.
  static std::vector<std::uint8_t> frame(int k, int width, int height) {
    std::vector<std::uint8_t> pixels;
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j) {
        const bool inside = i >= 8 && i < 16 && j >= k && j < k + 8;
        pixels.push_back(static_cast<std::uint8_t>(inside ? 230 : 40 + j));
      }
    }
    return pixels;
  }
};

int count_frames(VideoReader& reader) {
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(reader.info().width * reader.info().height));
  int count = 0;
  while (reader.next(frame.data())) ++count;
  return count;
}

#define NEED_FFMPEG() \
  if (!have_ffmpeg()) GTEST_SKIP() << "the ffmpeg program is not installed"

TEST_F(Video, ImagesByDirectoryPatternAndGlob) {
  for (const int k : {1, 2, 10}) {
    const std::vector<std::uint8_t> pixels(12, static_cast<std::uint8_t>(k));
    write_png(path("in" + std::to_string(k) + ".png"), 4, 3, 1, pixels.data());
  }
  write_png(path("other1.png"), 4, 3, 1, std::vector<std::uint8_t>(12, 99).data());
  std::ofstream(path("notes.txt")) << "not an image";
  const auto levels = [](const std::string& source, const VideoOptions& options = {}) {
    VideoReader reader(source, options);
    std::vector<std::uint8_t> frame(static_cast<std::size_t>(reader.info().width * reader.info().height));
    std::vector<int> result;
    while (reader.next(frame.data())) result.push_back(frame[0]);
    EXPECT_EQ(reader.frames_read(), static_cast<std::int64_t>(result.size()));
    EXPECT_EQ(reader.info().frame_count, static_cast<std::int64_t>(result.size()));
    return result;
  };
  EXPECT_EQ(levels(directory_.string()), (std::vector<int>{1, 2, 10, 99}));
  EXPECT_EQ(levels(path("in%d.png")), (std::vector<int>{1, 2, 10}));
  EXPECT_EQ(levels(path("in%02d.png")), (std::vector<int>{10}));
  EXPECT_EQ(levels(path("in*.png")), (std::vector<int>{1, 2, 10}));
  EXPECT_EQ(levels(path("in2.png")), (std::vector<int>{2}));
  EXPECT_EQ(levels(path("in%d.png"), {2, 2, 2}), (std::vector<int>{1, 2}));

  write_png(path("in3.png"), 5, 3, 1, std::vector<std::uint8_t>(15, 3).data());
  expect_error(ErrorCode::file, path("in3.png") + ": ", "5 x 3", [&] { levels(path("in%d.png")); });
  expect_error(ErrorCode::file, path("x%d.png") + ": ", "no images", [&] { levels(path("x%d.png")); });
  expect_error(ErrorCode::file, path("x*.png") + ": ", "no images", [&] { levels(path("x*.png")); });
  fs::create_directory(path("empty"));
  expect_error(ErrorCode::file, path("empty") + ": ", "no images", [&] { levels(path("empty")); });
}

TEST_F(Video, ArraysInBothOrders) {
  const auto put = [&](const std::string& name, const std::string& dictionary, const std::vector<float>& values) {
    std::string text = std::string("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(dictionary.size());
    text += '\0';
    std::ofstream file(path(name), std::ios::binary);
    file << text << dictionary;
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
  };
  // Two frames of 2 rows x 3 columns: frame 0 is 0..5, frame 1 is 100..105; levels beyond 0..255 are clamped.
  put("c.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 3)}",
      {0, 1, 2, 3, 4, -5, 100, 101.4f, 102, 103, 104, 999});
  put("f.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, 3)}",
      {0, 100, 3, 103, 1, 101.4f, 4, 104, 2, 102, -5, 999});
  for (const char* name : {"c.npy", "f.npy"}) {
    VideoReader reader(path(name));
    EXPECT_EQ(reader.info().width, 3);
    EXPECT_EQ(reader.info().height, 2);
    std::vector<std::uint8_t> frame(6);
    ASSERT_TRUE(reader.next(frame.data()));
    EXPECT_EQ(frame, (std::vector<std::uint8_t>{0, 1, 2, 3, 4, 0}));
    ASSERT_TRUE(reader.next(frame.data()));
    EXPECT_EQ(frame, (std::vector<std::uint8_t>{100, 101, 102, 103, 104, 255}));
    EXPECT_FALSE(reader.next(frame.data()));
  }
  put("n.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2)}",
      {1, std::numeric_limits<float>::quiet_NaN()});
  std::vector<std::uint8_t> frame(2);
  VideoReader reader(path("n.npy"));
  expect_error(ErrorCode::not_finite, path("n.npy") + ": ", "frame 0, row 0, column 1",
               [&] { reader.next(frame.data()); });
  put("m.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", {1, 2});
  expect_error(ErrorCode::file, path("m.npy") + ": ", "2 dimensions", [&] { VideoReader(path("m.npy")); });
  put("z.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2, 2)}", {});
  expect_error(ErrorCode::file, path("z.npy") + ": ", "no frame", [&] { VideoReader(path("z.npy")); });
}

TEST_F(Video, EncodedRoundTrip) {
  NEED_FFMPEG();
  for (const char* name : {"a.mp4", "b.mkv", "c.avi", "odd: name.mp4"}) {
    write_video(name, 12);
    VideoReader reader(path(name));
    EXPECT_EQ(reader.info().width, 64);
    EXPECT_EQ(reader.info().height, 48);
    EXPECT_NEAR(reader.info().frame_rate, 10, 1e-9);
    std::vector<std::uint8_t> got(64 * 48);
    for (int k = 0; k < 12; ++k) {
      ASSERT_TRUE(reader.next(got.data()));
      const auto want = frame(k, 64, 48);
      double sum = 0;
      for (std::size_t p = 0; p < got.size(); ++p) sum += std::abs(got[p] - want[p]);
      EXPECT_LT(sum / static_cast<double>(got.size()), 3) << name << " frame " << k;
    }
    EXPECT_FALSE(reader.next(got.data()));
    EXPECT_FALSE(reader.next(got.data()));
  }
  EXPECT_EQ(files(), 4u);
}

TEST_F(Video, EncodedSizesAndLimits) {
  NEED_FFMPEG();
  write_video("a.mp4", 9, 65, 47);  // odd sizes are padded to even ones
  VideoReader whole(path("a.mp4"));
  EXPECT_EQ(whole.info().width, 66);
  EXPECT_EQ(whole.info().height, 48);
  VideoReader half(path("a.mp4"), {33, 0, 5});
  EXPECT_EQ(half.info().height, 24);
  EXPECT_EQ(half.info().frame_count, 5);
  EXPECT_EQ(count_frames(half), 5);
  VideoReader dropped(path("a.mp4"));  // destroyed before its end: the child is ended too
  std::vector<std::uint8_t> first(66 * 48);
  EXPECT_TRUE(dropped.next(first.data()));
  expect_error(ErrorCode::invalid_argument, "video size: ", "-1", [&] { VideoReader(path("a.mp4"), {-1, 2, 0}); });
  expect_error(ErrorCode::invalid_argument, "video: ", "-3", [&] { VideoReader(path("a.mp4"), {0, 0, -3}); });
}

TEST_F(Video, BadVideos) {
  NEED_FFMPEG();
  expect_error(ErrorCode::file, path("none.mp4") + ": ", "No such file", [&] { VideoReader(path("none.mp4")); });
  std::ofstream(path("text.mp4")) << "these are words, not a video";
  expect_error(ErrorCode::file, path("text.mp4") + ": ", "not a video", [&] { VideoReader(path("text.mp4")); });
  std::ofstream(path("empty.avi")).flush();
  expect_error(ErrorCode::file, path("empty.avi") + ": ", "not a video", [&] { VideoReader(path("empty.avi")); });

  write_video("cut.mp4", 20);
  fs::resize_file(path("cut.mp4"), fs::file_size(path("cut.mp4")) / 2);  // the index stands at the end
  expect_error(ErrorCode::file, path("cut.mp4") + ": ", "not a video", [&] { VideoReader(path("cut.mp4")); });

  // A movie whose index stands at the front announces its frames even when their data is cut off.
  write_video("back.mp4", 200, 160, 120);
  int status = 0;
  std::string words;
  output_of({"ffmpeg", "-nostdin", "-v", "error", "-i", path("back.mp4"), "-c", "copy", "-movflags", "+faststart",
             path("front.mp4")},
            status, words);
  ASSERT_EQ(status, 0) << words;
  fs::resize_file(path("front.mp4"), fs::file_size(path("front.mp4")) * 3 / 4);
  expect_error(ErrorCode::file, path("front.mp4") + ": ", "200 frames announced", [&] {
    VideoReader reader(path("front.mp4"));
    count_frames(reader);
  });
}

TEST_F(Video, WriterLeavesNothingUnfinished) {
  NEED_FFMPEG();
  {
    VideoWriter writer(path("a.mp4"), 64, 48, 10);
    for (int k = 0; k < 5; ++k) writer.write(frame(k, 64, 48).data());
  }
  EXPECT_EQ(files(), 0u);
  const std::string missing = path("no/a.mp4");
  expect_error(ErrorCode::file, missing + ": ", "No such file", [&] { VideoWriter(missing, 64, 48, 10); });
  expect_error(ErrorCode::file, path("a.xyz") + ": ", ".mp4", [&] { VideoWriter(path("a.xyz"), 64, 48, 10); });
  expect_error(ErrorCode::invalid_argument, "VideoWriter: ", "0 x 48", [&] { VideoWriter(path("a.mp4"), 0, 48, 10); });
  expect_error(ErrorCode::invalid_argument, "VideoWriter: ", "rate", [&] { VideoWriter(path("a.mp4"), 64, 48, 0); });
  expect_error(ErrorCode::invalid_argument, "VideoWriter: ", "no frame", [&] {
    VideoWriter writer(path("a.mp4"), 64, 48, 10);
    writer.finish();
  });
  EXPECT_EQ(files(), 0u);

  write_video("b.mp4", 3);
  const auto size = fs::file_size(path("b.mp4"));
  {
    VideoWriter writer(path("b.mp4"), 64, 48, 10);
    writer.write(frame(0, 64, 48).data());
  }
  EXPECT_EQ(fs::file_size(path("b.mp4")), size);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Video, MissingProgramSaysHowToInstallIt) {
  expect_error(ErrorCode::unavailable, "the program 'qrane-has-no-such-program'", "apt-get install ffmpeg",
               [] { ChildProcess({"qrane-has-no-such-program"}, ChildProcess::Direction::read); });
}

TEST_F(Video, ChildThatClosesItsEndRaisesNoSignal) {
  ChildProcess child({"sh", "-c", "exec 0<&-; echo first >&2; echo gone >&2; exit 3"}, ChildProcess::Direction::write);
  const std::vector<char> bytes(1 << 22);
  EXPECT_FALSE(child.write(bytes.data(), bytes.size()));
  EXPECT_EQ(child.wait(), 3);
  EXPECT_EQ(child.last_words(), "gone");
}

}  // namespace
