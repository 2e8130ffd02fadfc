// SPDX-License-Identifier: Apache-2.0
// Files made to hurt, most of them found by fuzzers: each is refused with a message that names it, or read right, and
// neither takes much time or memory.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <qrane/error.hpp>

#include <io/images/image.hpp>
#include <io/matrices/matrix_file.hpp>
#include <io/matrices/matrix_market.hpp>
#include <io/matrices/npy.hpp>

#include "support/files.hpp"

namespace {

using namespace qrane::io;
using qrane::ErrorCode;
using qrane::test::expect_error;

std::string bad(const std::string& name) { return QRANE_TEST_DATA "/bad_files/" + name; }

class BadFiles : public qrane::test::InDirectory {
 protected:
  void SetUp() override {
    InDirectory::SetUp();
    start_ = std::chrono::steady_clock::now();
  }
  void TearDown() override {
    EXPECT_LT(std::chrono::steady_clock::now() - start_, std::chrono::seconds(30));
    InDirectory::TearDown();
  }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::chrono::steady_clock::time_point start_;
};

TEST_F(BadFiles, MatricesThatDeclareNothingByVeryMany) {
  for (const char* name : {"array_0_by_many.mtx", "tall_empty.mtx", "tall_empty_small.mtx", "wide_empty.mtx",
                           "wide_empty_small.mtx", "npy_0_by_many.npy", "npy_0_by_2e62.npy", "npy_2e62_by_0.npy",
                           "full_q_overflow.npy", "solve_wide_overflow.npy"}) {
    SCOPED_TRACE(name);
    expect_error(ErrorCode::file, bad(name) + ":", "at most 16777216", [&] { probe_matrix(bad(name)); });
    expect_error(ErrorCode::file, bad(name) + ":", "at most 16777216", [&] { read_dense<double>(bad(name)); });
    expect_error(ErrorCode::file, bad(name) + ":", "at most 16777216", [&] { read_sparse(bad(name)); });
  }
  const auto few = put("few.mtx", "%%MatrixMarket matrix coordinate real general\n16777216 2 1\n7 2 1\n");
  EXPECT_EQ(read_sparse(few).rows, 16777216);
  const Dense<double> empty{0, 16777216, {}};
  write_dense(path("empty.npy"), empty);
  EXPECT_EQ(read_dense<double>(path("empty.npy")).cols, 16777216);
}

TEST_F(BadFiles, ImagesAreKnownByTheirFirstBytes) {
  for (const char* name : {"pic_null.png", "pic_zero.bin", "psd_as.png", "psd_raw_as.png", "tga_18_bytes.tga",
                           "jpeg_huffman_write.jpg", "zero_both.bmp", "zero_height.bmp", "zero_width.bmp"}) {
    expect_error(ErrorCode::file, bad(name) + ": ", "neither PNG nor JPEG", [&] { read_image(bad(name)); });
  }
  expect_error(ErrorCode::file, bad("pnm_as.png") + ": ", "20000 x 20000 pixels is too large",
               [&] { read_image(bad("pnm_as.png")); });
  expect_error(ErrorCode::file, bad("pnm_small_as.png") + ": ", "expected 3072 bytes",
               [&] { read_image(bad("pnm_small_as.png")); });
  expect_error(ErrorCode::file, bad("ppm16_overread.ppm") + ": ", "expected 378 bytes",
               [&] { read_image(bad("ppm16_overread.ppm")); });
  expect_error(ErrorCode::file, bad("png_header.png") + ": ", "23000 x 23000 pixels is too large",
               [&] { read_image(bad("png_header.png")); });
  expect_error(ErrorCode::file, bad("zero_height.pgm") + ": ", "4 x 0", [&] { read_image(bad("zero_height.pgm")); });
  expect_error(ErrorCode::file, bad("zero_width.pgm") + ": ", "0 x 4", [&] { read_image(bad("zero_width.pgm")); });
}

TEST_F(BadFiles, ImagesOfSixteenBits) {
  const Image gray = read_image(bad("pgm16_small.pgm"));
  EXPECT_EQ(gray.width, 32);
  EXPECT_EQ(gray.height, 24);
  EXPECT_EQ(gray.pixels, std::vector<std::uint8_t>(32 * 24, 64));  // 0x4001 of 65535
  const Image color = read_image(bad("ppm16_small.ppm"));
  EXPECT_EQ(color.channels, 3);
  EXPECT_EQ(color.pixels, std::vector<std::uint8_t>(32 * 24 * 3, 64));
  const auto sixteen = read_image(QRANE_TEST_DATA "/seeds/gray16.png");
  EXPECT_EQ(sixteen.channels, 1);
  EXPECT_EQ(sixteen.pixels.size(), 16u * 12);
}

TEST_F(BadFiles, APictureThatUnpacksToMuch) {
  const std::vector<std::uint8_t> zeros(8000 * 8000);
  write_png(path("bomb.png"), 8000, 8000, 1, zeros.data());
  expect_error(ErrorCode::file, path("bomb.png") + ": ", "8000 x 8000 pixels is too large",
               [&] { read_image(path("bomb.png")); });
}

TEST_F(BadFiles, PicturesOfAllKinds) {
  for (const auto& [name, channels] :
       {std::pair("rgb.png", 3), {"palette.png", 3}, {"color.jpg", 3}, {"gray.jpg", 1}}) {
    const Image image = read_image(std::string(QRANE_TEST_DATA "/seeds/") + name);
    EXPECT_EQ(image.width, 16) << name;
    EXPECT_EQ(image.channels, channels) << name;
    EXPECT_EQ(image.pixels.size(), 16u * 12 * static_cast<unsigned>(channels)) << name;
  }
  // the same picture three times; JPEG loses a little
  const GrayImage png = read_gray_image(QRANE_TEST_DATA "/seeds/rgb.png");
  const GrayImage jpeg = read_gray_image(QRANE_TEST_DATA "/seeds/color.jpg");
  double difference = 0;
  for (std::size_t k = 0; k < png.pixels.size(); ++k) difference += std::abs(png.pixels[k] - jpeg.pixels[k]);
  EXPECT_LT(difference / static_cast<double>(png.pixels.size()), 8);
  std::ifstream file(QRANE_TEST_DATA "/seeds/color.jpg", std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  for (const std::size_t size : {whole.size() / 2, whole.size() - 30, std::size_t{20}}) {
    const std::string cut = put("cut.jpg", whole.substr(0, size));
    expect_error(ErrorCode::file, cut + ": ", "not a JPEG image that can be read", [&] { read_image(cut); });
  }
  expect_error(ErrorCode::file, path("above.pgm") + ": ", "above the largest value",
               [&] { read_image(put("above.pgm", "P5 1 1 9 \x0a")); });
}

TEST_F(BadFiles, ACompressedMatrixIsReadPieceByPiece) {
  std::string text = "%%MatrixMarket matrix array real general\n%" + std::string(3000000, 'x') + "\n3 1\n";
  text += std::string(1 << 18, ' ') + "1\n2\n" + std::string(1000000, '\n') + "3";
  EXPECT_EQ(read_dense<double>(put("long.mtx", text)).values, (std::vector<double>{1, 2, 3}));
  const std::string digits = std::string(100000, '7') + 'x';
  expect_error(ErrorCode::file, path("digits.mtx") + ":3: ", "'7777", [&] {
    read_dense<double>(put("digits.mtx", "%%MatrixMarket matrix array real general\n1 1\n" + digits));
  });
}

TEST_F(BadFiles, PipesAreReadLikeFiles) {
  const std::string name = path("pipe");
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(name) << "%%MatrixMarket matrix array real general\n2 1\n5\n6\n"; });
  EXPECT_FALSE(probe_matrix(name).numpy);
  EXPECT_EQ(read_dense<double>(name).values, (std::vector<double>{5, 6}));
  EXPECT_EQ(read_dense<float>(name).values, (std::vector<float>{5, 6}));
  writer.join();
  expect_error(ErrorCode::file, "/dev/zero: ", "neither a .npy nor a Matrix Market file",
               [] { probe_matrix("/dev/zero"); });
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string dictionary = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dictionary.size()) + '\0' + dictionary + data;
}

TEST_F(BadFiles, EveryKindOfNumberInNpy) {
  const auto values = [&](const std::string& descr, const std::string& data) {
    return read_npy<double>(put("v.npy", npy(descr, "(2,)", data))).values;
  };
  using V = std::vector<double>;
  EXPECT_EQ(values("|b1", std::string("\x00\x07", 2)), (V{0, 1}));
  EXPECT_EQ(values("|i1", "\xff\x7f"), (V{-1, 127}));
  EXPECT_EQ(values("<u2", "\xff\xff\x01\x02"), (V{65535, 513}));
  EXPECT_EQ(values(">i2", "\xff\xfe\x01\x02"), (V{-2, 258}));
  EXPECT_EQ(values("<f2", std::string("\x00\x3c\x01\x80", 4)), (V{1, -5.9604644775390625e-8}));
  EXPECT_EQ(values(">f4", std::string("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8)), (V{1, -2}));
  EXPECT_EQ(values(">u8", std::string("\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x05", 16)), (V{256, 5}));
  EXPECT_TRUE(probe_matrix(put("h.npy", npy("<f2", "(1,)", "\x01\x3c"))).single_precision);
  EXPECT_TRUE(std::isinf(values("<f2", std::string("\x00\x7c\x00\x00", 4))[0]));
}

TEST_F(BadFiles, VideosOfOtherNumbersAreScaledAndSayso) {
  const auto levels = [&](const std::string& descr, const std::string& data, std::string& note) {
    NpyFrames frames(put("v.npy", npy(descr, "(1, 1, 2)", data)));
    std::vector<std::uint8_t> frame(2);
    frames.read(0, frame.data());
    note = frames.note();
    return frame;
  };
  using F = std::vector<std::uint8_t>;
  std::string note;
  EXPECT_EQ(levels("<f4", std::string("\0\0\x80\x3f\0\0\0\x3f", 8), note), (F{255, 128}));  // 1, 0.5
  EXPECT_NE(note.find("scaled by 255"), std::string::npos);
  EXPECT_EQ(levels("|b1", std::string("\1\0", 2), note), (F{255, 0}));
  EXPECT_NE(note.find("bool"), std::string::npos);
  EXPECT_EQ(levels("<u2", std::string("\x00\x01\x05\x00", 4), note), (F{255, 5}));
  EXPECT_NE(note.find("clamped"), std::string::npos);
  EXPECT_EQ(levels("<f4", std::string("\0\0\x80\x3f\0\0\0\x40", 8), note), (F{1, 2}));
  EXPECT_EQ(note, "");
}

TEST_F(BadFiles, IndicesAreIntegers) {
  write_indices(path("p.npy"), {2, 0, 1});
  const NpyHeader header = read_npy_header(path("p.npy"));
  EXPECT_EQ(header.type, NpyType::i8);
  EXPECT_EQ(header.shape, (std::vector<std::int64_t>{3}));
  write_indices(path("p.mtx"), {2, 0, 1});
  EXPECT_EQ(read_matrix_market_header(path("p.mtx")).field, MatrixMarketHeader::Field::integer);
  EXPECT_EQ(read_dense<double>(path("p.mtx")).values, (std::vector<double>{2, 0, 1}));
}

}  // namespace
