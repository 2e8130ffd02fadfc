// SPDX-License-Identifier: Apache-2.0
// The file layer: matrices, images and videos; round trips, what is said of bad files, and that nothing is damaged.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include <qrane/error.hpp>

#include <io/images/image.hpp>
#include <io/matrices/matrix_file.hpp>
#include <io/matrices/matrix_market.hpp>
#include <io/matrices/npy.hpp>
#include <io/partial_file.hpp>

#include "support/files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace qrane::io;
using qrane::ErrorCode;
using qrane::test::expect_error;

class Io : public qrane::test::InDirectory {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string put_gz(const std::string& name, const std::string& text, std::size_t cut = 0) const {
    gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    if (cut > 0) fs::resize_file(path(name), fs::file_size(path(name)) - cut);
    return path(name);
  }
  static std::string get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

const std::string general = "%%MatrixMarket matrix coordinate real general\n";
const std::string array = "%%MatrixMarket matrix array real general\n";

TEST_F(Io, CoordinateSumsDuplicatesAndSortsRows) {
  const auto m =
      read_matrix_market(put("a.mtx", general + "% words\n\n 3 2 4 \r\n3 1 1.5\n\n1 1 -2e1\n3 1 .25\n2 2 +4D0\n"));
  EXPECT_TRUE(m.header.coordinate);
  EXPECT_EQ(m.header.entries, 4);
  EXPECT_EQ(m.sparse.col_ptr, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(m.sparse.row_idx, (std::vector<std::int64_t>{0, 2, 1}));
  EXPECT_EQ(m.sparse.values, (std::vector<double>{-20, 1.75, 4}));
}

TEST_F(Io, SymmetriesFillBothTriangles) {
  const auto s =
      read_matrix_market(put("s.mtx", "%%matrixmarket MATRIX Coordinate INTEGER Symmetric\n2 2 2\n1 1 5\n2 1 7\n"));
  EXPECT_EQ(to_dense(s.sparse).values, (std::vector<double>{5, 7, 7, 0}));
  const auto k =
      read_matrix_market(put("k.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 7\n"));
  EXPECT_EQ(to_dense(k.sparse).values, (std::vector<double>{0, 7, -7, 0}));
  const auto p = read_matrix_market(put("p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n2 3\n"));
  EXPECT_EQ(to_dense(p.sparse).values, (std::vector<double>{0, 0, 0, 0, 0, 1}));
  const auto a = read_matrix_market(put("t.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n"));
  EXPECT_EQ(a.dense.values, (std::vector<double>{1, 2, 2, 3}));
  const auto b = read_matrix_market(put("u.mtx", "%%MatrixMarket matrix array real skew-symmetric\n2 2\n2\n"));
  EXPECT_EQ(b.dense.values, (std::vector<double>{0, 2, -2, 0}));
}

TEST_F(Io, EmptyMatrices) {
  EXPECT_EQ(read_matrix_market(put("a.mtx", array + "0 3\n")).dense.cols, 3);
  EXPECT_EQ(read_matrix_market(put("b.mtx", array + "3 0")).dense.rows, 3);
  EXPECT_EQ(read_matrix_market(put("c.mtx", general + "4 5 0\n")).sparse.col_ptr.size(), 6u);
}

TEST_F(Io, NotFiniteIsReadAndPlaced) {
  const auto m = read_matrix_market(put("a.mtx", array + "2 2\n1\n2\nnan\n-Inf\n"));
  EXPECT_EQ(m.not_finite_line, 5);
  EXPECT_TRUE(std::isnan(m.dense.values[2]));
  EXPECT_EQ(m.dense.values[3], -std::numeric_limits<double>::infinity());
  const auto at = first_not_finite(m.dense);
  ASSERT_TRUE(at);
  EXPECT_EQ(at->row, 0);
  EXPECT_EQ(at->col, 1);
  expect_error(ErrorCode::not_finite, path("a.mtx") + ": ", "row 0, column 1",
               [&] { require_finite(path("a.mtx"), m.dense); });
  const auto s = read_matrix_market(put("s.mtx", general + "3 3 2\n1 1 1\n3 2 inf\n"));
  EXPECT_EQ(s.not_finite_line, 4);
  EXPECT_EQ(first_not_finite(s.sparse)->row, 2);
}

TEST_F(Io, TinyAndHugeNumbers) {
  const auto m = read_matrix_market(put("a.mtx", array + "2 1\n1e-320\n1e-400\n"));
  EXPECT_EQ(m.dense.values, (std::vector<double>{1e-320, 0}));
  put("b.mtx", array + "1 1\n1e400\n");
  expect_error(ErrorCode::file, path("b.mtx") + ":3: ", "'1e400'", [&] { read_matrix_market(path("b.mtx")); });
}

TEST_F(Io, MalformedMatrixMarketNamesPathAndLine) {
  struct Case {
    std::string text;
    int line;
    std::string words;
  };
  const std::vector<Case> cases = {
      {"", 1, "not a Matrix Market file"},
      {"1 2 3\n", 1, "not a Matrix Market file"},
      {"%%MatrixMarket vector array real general\n", 1, "'vector'"},
      {"%%MatrixMarket matrix dense real general\n", 1, "'dense'"},
      {"%%MatrixMarket matrix array complex general\n1 1\n1 2\n", 1, "complex"},
      {"%%MatrixMarket matrix array quaternion general\n", 1, "'quaternion'"},
      {"%%MatrixMarket matrix array real diagonal\n", 1, "'diagonal'"},
      {"%%MatrixMarket matrix array real\n", 1, "symmetry"},
      {"%%MatrixMarket matrix array real general more\n", 1, "'more'"},
      {"%%MatrixMarket matrix array pattern general\n1 1\n", 1, "pattern"},
      {"%%MatrixMarket matrix coordinate complex hermitian\n", 1, "complex"},
      {"%%MatrixMarket matrix array real symmetric\n2 3\n", 2, "2 x 3"},
      {general, 2, "before the size line"},
      {general + "3 3\n1 1 1\n", 2, "number of entries"},
      {general + "3 x 1\n1 1 1\n", 2, "'x'"},
      {general + "-3 3 1\n1 1 1\n", 2, "negative: -3"},
      {general + "3 -4 1\n1 1 1\n", 2, "negative: -4"},
      {general + "3 3 -1\n", 2, "negative: -1"},
      {general + "0 3 1\n1 1 1\n", 2, "empty matrix"},
      {general + "99999999999999999999 3 1\n", 2, "does not fit in 64 bits"},
      {general + "3 3 1 4\n1 1 1\n", 2, "unexpected '4'"},
      {array + "4000000000 4000000000\n", 2, "overflow"},
      {general + "% c\n3 3 2\n1 1 1\n", 5, "after 1 of 2 entries"},
      {general + "3 3 2\n1 1 1\n", 4, "after 1 of 2 entries"},
      {general + "3 3 4000000000000000000\n1 1 1\n", 4, "after 1 of 4000000000000000000 entries"},
      {general + "3 3 1\n4 1 1\n", 3, "row index 4 is outside 1..3"},
      {general + "3 3 1\n0 1 1\n", 3, "row index 0 is outside 1..3"},
      {general + "3 3 1\n1 -1 1\n", 3, "column index -1 is outside 1..3"},
      {general + "3 3 1\n1 1.5 1\n", 3, "'1.5'"},
      {general + "3 3 1\n1 1\n", 3, "end of the line"},
      {general + "3 3 1\n1\n1 1\n", 3, "end of the line"},
      {general + "3 3 1\n1 1 1 1\n", 3, "unexpected '1'"},
      {general + "3 3 1\n1 1 one\n", 3, "'one'"},
      {general + "3 3 1\n1 1 1e\n", 3, "'1e'"},
      {general + "3 3 1\n1 1 1,5\n", 3, "'1,5'"},
      {general + "3 3 1\n1 1 1\n\n2 2 2\n", 5, "more than the 1 entries"},
      {array + "2 1\n1\nabc\n", 4, "'abc'"},
      {array + "2 2\n1\n2\n3\n", 6, "after 3 of 4 entries"},
      {array + "1 1\n1\n2\n", 4, "more than the 1 entries"},
      {"%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n1 2 1\n", 3, "above the diagonal"},
      {"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n", 3, "must be zero"},
  };
  for (const Case& c : cases) {
    const std::string file = put("bad.mtx", c.text);
    SCOPED_TRACE(c.text);
    expect_error(ErrorCode::file, file + ":" + std::to_string(c.line) + ": ", c.words,
                 [&] { read_matrix_market(file); });
  }
}

TEST_F(Io, UnreadableFiles) {
  expect_error(ErrorCode::file, path("none.mtx") + ": ", "No such file", [&] { read_matrix_market(path("none.mtx")); });
  expect_error(ErrorCode::file, path("none.npy") + ": ", "No such file", [&] { probe_matrix(path("none.npy")); });
  fs::create_directory(path("d.mtx"));
  expect_error(ErrorCode::file, path("d.mtx") + ": ", "directory", [&] { read_matrix_market(path("d.mtx")); });
  expect_error(ErrorCode::file, path("a.txt") + ": ", ".npy", [&] { probe_matrix(path("a.txt")); });
}

TEST_F(Io, SizesBeyondMemoryAreAnError) {
  const std::string file = put("a.mtx", general + "3 1000000000000000000 0\n");
  try {
    read_matrix_market(file);
    FAIL();
  } catch (const qrane::Error& error) {
    EXPECT_NE(std::string(error.what()).find("1000000000000000000"), std::string::npos);
  }
}

TEST_F(Io, CompressedFiles) {
  std::string text = array + "2000 1\n";
  for (int k = 0; k < 2000; ++k) text += std::to_string(std::sin(k)) + "\n";
  EXPECT_EQ(read_matrix_market(put_gz("a.mtx.gz", text)).dense.rows, 2000);
  std::string unchecked = get(path("a.mtx.gz"));  // whole but for the checksum
  put("d.mtx.gz", unchecked.substr(0, unchecked.size() - 8));
  expect_error(ErrorCode::file, path("d.mtx.gz") + ":", "breaks off", [&] { read_matrix_market(path("d.mtx.gz")); });
  const std::string cut = put_gz("b.mtx.gz", text, 3000);
  expect_error(ErrorCode::file, cut + ":", "compressed file breaks off", [&] { read_matrix_market(cut); });
  std::string corrupt = get(path("a.mtx.gz"));
  for (std::size_t k = 200; k < 400; ++k) corrupt[k] = static_cast<char>(~corrupt[k]);
  put("c.mtx.gz", corrupt);
  expect_error(ErrorCode::file, path("c.mtx.gz") + ":", "", [&] { read_matrix_market(path("c.mtx.gz")); });
}

TEST_F(Io, ProbeReadsHeaderBehindLongComments) {
  std::string text = general;
  for (int k = 0; k < 5000; ++k) text += "% a long comment before the size line\n";
  const auto info = probe_matrix(put("a.mtx", text + "1234567 7654 1\n1 1 1\n"));
  EXPECT_TRUE(info.sparse);
  EXPECT_EQ(info.rows, 1234567);
  EXPECT_EQ(info.cols, 7654);
  // The size line straddles the first piece that is read.
  const std::string pad(65536 - general.size() - 4, 'x');
  EXPECT_EQ(probe_matrix(put("b.mtx", general + "%" + pad + "\n1234 56 1\n1 1 1\n")).rows, 1234);
}

TEST_F(Io, MatrixMarketRoundTrip) {
  const Dense<double> a{3, 2, {1.0 / 3, -1e-310, 1e308, 0.1, -0.0, 7}};
  for (const char* name : {"a.mtx", "a.mtx.gz"}) {
    write_dense(path(name), a.view());
    const auto back = read_matrix_market(path(name));
    EXPECT_FALSE(back.header.coordinate);
    EXPECT_EQ(back.dense.values, a.values);
  }
  EXPECT_EQ(get(path("a.mtx.gz")).substr(0, 2), "\x1f\x8b");
  const Sparse<double> s{3, 2, {0, 1, 3}, {2, 0, 1}, {0.1, 1.0 / 7, -3}};
  write_matrix_market(path("s.mtx"), s);
  const auto back = read_matrix_market(path("s.mtx")).sparse;
  EXPECT_EQ(back.col_ptr, s.col_ptr);
  EXPECT_EQ(back.row_idx, s.row_idx);
  EXPECT_EQ(back.values, s.values);
  EXPECT_EQ(read_dense<float>(path("s.mtx")).values[2], 0.1f);
  EXPECT_EQ(read_sparse(path("a.mtx")).nonzeros(), 5);
  EXPECT_EQ(files(), 3u);
}

TEST_F(Io, NpyRoundTrip) {
  const Dense<double> a{3, 2, {1, 2, 3, 4, 5, std::numeric_limits<double>::quiet_NaN()}};
  write_dense(path("a.npy"), a.view());
  const auto header = read_npy_header(path("a.npy"));
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.data_offset % 64, 0);
  const auto back = read_dense<double>(path("a.npy"));
  EXPECT_EQ(back.rows, 3);
  EXPECT_EQ(std::vector<double>(back.values.begin(), back.values.end() - 1), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(std::isnan(back.values[5]));
  EXPECT_FALSE(probe_matrix(path("a.npy")).single_precision);

  const std::vector<float> rows = {1, 2, 9, 3, 4, 9};  // row-major 2 x 2 with ld 3
  write_dense(path("f.npy"),
              qrane::MatrixView<const float>(rows.data(), 2, 2, 3, qrane::Memory::host, qrane::Layout::row_major));
  EXPECT_EQ(read_dense<float>(path("f.npy")).values, (std::vector<float>{1, 3, 2, 4}));
  EXPECT_TRUE(probe_matrix(path("f.npy")).single_precision);
  write_dense(path("e.npy"), Dense<float>{0, 5, {}});
  EXPECT_EQ(read_dense<float>(path("e.npy")).cols, 5);
}

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string text = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + dictionary + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(Io, NpyTypesAndOrders) {
  const auto c = put("c.npy", npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
                                  bytes_of<std::int32_t>({1, 2, 3, 4, 5, 6}), 2));
  EXPECT_EQ(read_npy<double>(c).values, (std::vector<double>{1, 4, 2, 5, 3, 6}));
  const auto v = put("v.npy", npy("{\"shape\": (3,), \"fortran_order\": False, \"descr\": \"|u1\"}",
                                  bytes_of<std::uint8_t>({7, 8, 255}), 3));
  EXPECT_EQ(read_npy<float>(v).values, (std::vector<float>{7, 8, 255}));
  EXPECT_EQ(read_npy<float>(v).cols, 1);
  const auto l = put("l.npy", npy("{'descr': '<i8', 'fortran_order': True, 'shape': (1, 2)}",
                                  bytes_of<std::int64_t>({-1, 1LL << 40})));
  EXPECT_EQ(read_npy<double>(l).values, (std::vector<double>{-1, 1099511627776.0}));
}

TEST_F(Io, MalformedNpyNamesPathAndReason) {
  const std::string good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a .npy file"},
      {"hello, world", "not a .npy file"},
      {npy(good, "", 9), "version 9.0"},
      {npy(good, std::string(31, 'x')), "truncated: expected 32 bytes of data, found 31"},
      {npy(good, "").substr(0, 30), "truncated: expected a header"},
      {npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}", ""), "dtype '<c16'"},
      {npy("{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", ""), "dtype '<f16'"},
      {npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", ""), "structured"},
      {npy("{'descr': '<f8', 'shape': (1,)}", ""), "fortran_order"},
      {npy("{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", ""), "fortran_order"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': 1}", ""), "shape"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2)}", ""), "shape (-1, 2)"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000)}", ""), "overflows"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1)}", std::string(8, 'x')), "3 dimensions"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", std::string(8, 'x')), "0 dimensions"},
      {npy("{'descr':", ""), "malformed"},
  };
  for (const auto& [text, words] : cases) {
    SCOPED_TRACE(words);
    const std::string file = put("bad.npy", text);
    expect_error(ErrorCode::file, file + ": ", words, [&] { read_npy<double>(file); });
  }
}

TEST_F(Io, FailedWritesDamageNothing) {
  const Dense<double> a{1, 1, {1}};
  const std::string missing = path("no/such/x.npy");
  expect_error(ErrorCode::file, missing + ": ", "No such file", [&] { write_dense(missing, a.view()); });
  put("file", "kept");
  expect_error(ErrorCode::file, path("file/x.mtx") + ": ", "Not a directory",
               [&] { write_dense(path("file/x.mtx"), a.view()); });
  fs::create_directory(path("d.npy"));
  expect_error(ErrorCode::file, path("d.npy") + ": ", "directory", [&] { write_dense(path("d.npy"), a.view()); });
  expect_error(ErrorCode::file, path("x.txt") + ": ", ".npy", [&] { write_dense(path("x.txt"), a.view()); });
  EXPECT_EQ(files(), 2u);

  put("old.npy", "kept");
  {
    PartialFile file(path("old.npy"));
    file.write("half of the new");
  }
  EXPECT_EQ(get(path("old.npy")), "kept");
  EXPECT_EQ(files(), 3u);
  if (fs::exists("/dev/full")) {
    expect_error(ErrorCode::file, "/dev/full: ", "No space left", [] { write_file("/dev/full", "x"); });
  }
}

TEST_F(Io, PartialFilesThatNobodyWritesAreRemoved) {
  const std::string mine = "x.npy.partial-" + std::to_string(::getpid());
  put(mine, "of a process that had this number before");
  put("x.npy.partial-4194304", "killed");
  for (const char* other : {"y.npy.partial-4194304", "x.npy.partial-", "x.npy.partial-1.npy"}) put(other, "kept");
  PartialFile live(path("x.npy"));
  live.write("new");
  live.flush();
  remove_abandoned(path("x.npy"));
  EXPECT_FALSE(fs::exists(path("x.npy.partial-4194304")));
  EXPECT_EQ(get(path(mine)), "new");
  live.commit();
  EXPECT_EQ(get(path("x.npy")), "new");
  EXPECT_EQ(files(), 4u);
}

TEST_F(Io, WritesFollowLinksKeepModesAndSpareDevices) {
  put("target.txt", "old");
  ::chmod(path("target.txt").c_str(), 0640);
  fs::create_symlink("target.txt", path("link.txt"));
  write_file(path("link.txt"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link.txt")));
  EXPECT_EQ(get(path("target.txt")), "new");
  EXPECT_EQ(static_cast<unsigned>(fs::status(path("target.txt")).permissions()), 0640u);
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 2u);
}

TEST_F(Io, ReadOnlyDirectory) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  fs::create_directory(path("d"));
  ::chmod(path("d").c_str(), 0500);
  expect_error(ErrorCode::file, path("d/x.txt") + ": ", "Permission denied", [&] { write_file(path("d/x.txt"), "x"); });
}

TEST_F(Io, MakeDirectories) {
  make_directories(path("a/b/c"));
  make_directories(path("a/b/c"));
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  put("file", "");
  expect_error(ErrorCode::file, path("file") + ": ", "directory", [&] { make_directories(path("file")); });
  expect_error(ErrorCode::file, path("file/x") + ": ", "directory", [&] { make_directories(path("file/x")); });
}

TEST_F(Io, PngRoundTripAndPgm) {
  GrayImage image{5, 3, {}};
  for (int k = 0; k < 15; ++k) image.pixels.push_back(static_cast<std::uint8_t>(17 * k));
  write_png(path("a.png"), image);
  const GrayImage back = read_gray_image(path("a.png"));
  EXPECT_EQ(back.width, 5);
  EXPECT_EQ(back.height, 3);
  EXPECT_EQ(back.pixels, image.pixels);
  EXPECT_EQ(files(), 1u);
  const GrayImage pgm = read_gray_image(put("a.pgm", std::string("P5\n2 1\n255\n") + '\x01' + '\xff'));
  EXPECT_EQ(pgm.pixels, (std::vector<std::uint8_t>{1, 255}));
}

TEST_F(Io, BadImages) {
  expect_error(ErrorCode::file, path("none.png") + ": ", "No such file", [&] { read_image(path("none.png")); });
  put("bad.png", "not a picture");
  expect_error(ErrorCode::file, path("bad.png") + ": ", "not an image", [&] { read_image(path("bad.png")); });
  const GrayImage image{64, 64, std::vector<std::uint8_t>(4096, 9)};
  write_png(path("cut.png"), image);
  fs::resize_file(path("cut.png"), 45);
  expect_error(ErrorCode::file, path("cut.png") + ": ", "truncated", [&] { read_image(path("cut.png")); });
  expect_error(ErrorCode::file, path("no/a.png") + ": ", "No such file", [&] { write_png(path("no/a.png"), image); });
  expect_error(ErrorCode::invalid_argument, "write_png: ", "0 x 3",
               [&] { write_png(path("z.png"), 0, 3, 1, image.pixels.data()); });
}

TEST_F(Io, ScaleAreaAverages) {
  const std::vector<std::uint8_t> source = {0, 100, 10, 20, 200, 100, 30, 40};  // 4 x 2
  std::vector<std::uint8_t> half(2);
  scale_area(source.data(), 4, 2, half.data(), 2, 1);
  EXPECT_EQ(half, (std::vector<std::uint8_t>{100, 25}));
  std::vector<std::uint8_t> third(1);
  const std::vector<std::uint8_t> three = {30, 60, 90};
  scale_area(three.data(), 3, 1, third.data(), 1, 1);
  EXPECT_EQ(third[0], 60);
  std::vector<std::uint8_t> two(2);
  scale_area(three.data(), 3, 1, two.data(), 2, 1);  // (30 + 60/2)/1.5, (60/2 + 90)/1.5
  EXPECT_EQ(two, (std::vector<std::uint8_t>{40, 80}));
  std::vector<std::uint8_t> larger(6);
  scale_area(three.data(), 3, 1, larger.data(), 6, 1);
  EXPECT_EQ(larger, (std::vector<std::uint8_t>{30, 30, 60, 60, 90, 90}));
}

}  // namespace
