// SPDX-License-Identifier: Apache-2.0
// What tests of kernels on one backend share. A test file defines
//     using KernelTypes = testing::Types<std::tuple<B, float>, std::tuple<B, double>>;
//     std::unique_ptr<Queue> make_queue(std::string& reason);   // null, and why, where there is no device
// and then includes this file. References are plain loops in long double; factorizations are judged by
// residual per column and by orthogonality (30 p eps with p = min(m, n) + 10), copies by equality, and what
// lies around an output by canaries.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <qrane/error.hpp>

#include "support/small_run.hpp"
#include "vocabulary/sketch.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::backend::test {

using Wide = long double;

using qrane::test::in_turn, qrane::test::numbers, qrane::test::small_run, qrane::test::some_of;

template <class T>
constexpr T canary = static_cast<T>(-7777.25);

template <class T>
constexpr Wide unit_roundoff = std::numeric_limits<T>::epsilon() / Wide(2);

/// A batch of matrices in host memory, laid out as on the device, with canaries before, between and after.
template <class T>
struct HostMatrix {
  static constexpr Index pad = 32;
  Index rows, cols, ld, stride, count;
  std::vector<T> data;

  HostMatrix(Index rows_, Index cols_, Index slack = 0, Index count_ = 1, Index stride_slack = 0)
      : rows(rows_),
        cols(cols_),
        ld(std::max<Index>(1, rows_) + slack),
        stride(ld * cols_ + stride_slack),
        count(count_),
        data(static_cast<std::size_t>(2 * pad + stride * count_), canary<T>) {}

  T& operator()(Index i, Index j, Index b = 0) { return data[static_cast<std::size_t>(pad + i + j * ld + b * stride)]; }
  const T& operator()(Index i, Index j, Index b = 0) const {
    return data[static_cast<std::size_t>(pad + i + j * ld + b * stride)];
  }
  template <class F>
  HostMatrix& set(F f) {  // f(i, j, b)
    for (Index b = 0; b < count; ++b)
      for (Index j = 0; j < cols; ++j)
        for (Index i = 0; i < rows; ++i) (*this)(i, j, b) = static_cast<T>(f(i, j, b));
    return *this;
  }
  HostMatrix& random(unsigned seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    return set([&](Index, Index, Index) { return normal(engine); });
  }
};

/// Columns of numbers that references compute in.
struct Reference {
  Index rows, cols;
  std::vector<Wide> data;
  Reference(Index r, Index c) : rows(r), cols(c), data(static_cast<std::size_t>(r * c), 0) {}
  Wide& operator()(Index i, Index j) { return data[static_cast<std::size_t>(i + j * rows)]; }
  const Wide& operator()(Index i, Index j) const { return data[static_cast<std::size_t>(i + j * rows)]; }
};

template <class T>
Reference to_reference(const HostMatrix<T>& a, Index b = 0) {
  Reference r(a.rows, a.cols);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) r(i, j) = a(i, j, b);
  return r;
}

inline Reference multiply(const Reference& a, bool transpose_a, const Reference& b, bool transpose_b) {
  const Index m = transpose_a ? a.cols : a.rows, k = transpose_a ? a.rows : a.cols;
  Reference c(m, transpose_b ? b.rows : b.cols);
  for (Index j = 0; j < c.cols; ++j)
    for (Index l = 0; l < k; ++l)
      for (Index i = 0; i < m; ++i) c(i, j) += (transpose_a ? a(l, i) : a(i, l)) * (transpose_b ? b(j, l) : b(l, j));
  return c;
}

inline Wide column_norm(const Reference& a, Index j) {
  Wide largest = 0, sum = 0;
  for (Index i = 0; i < a.rows; ++i) largest = std::max(largest, std::fabs(a(i, j)));
  if (largest == 0) return 0;
  for (Index i = 0; i < a.rows; ++i) sum += (a(i, j) / largest) * (a(i, j) / largest);
  return largest * std::sqrt(sum);
}

/// |I - Q^T Q|_F.
inline Wide orthogonality(const Reference& q) {
  const Reference g = multiply(q, true, q, false);
  Wide sum = 0;
  for (Index j = 0; j < g.cols; ++j)
    for (Index i = 0; i < g.rows; ++i) sum += (g(i, j) - (i == j)) * (g(i, j) - (i == j));
  return std::sqrt(sum);
}

/// Same bits, NaN included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::equal(reinterpret_cast<const char*>(a.data()), reinterpret_cast<const char*>(a.data() + a.size()),
                    reinterpret_cast<const char*>(b.data()));
}

template <class Case>
class Kernels : public testing::Test {
 public:
  using B = std::tuple_element_t<0, Case>;
  using T = std::tuple_element_t<1, Case>;
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  template <class U>
  using Device = DeviceMatrix<B, U>;

 protected:
  void SetUp() override {
    std::string reason;
    queue_ = make_queue(reason);
    if (!queue_) GTEST_SKIP() << "no device for backend " << B::name << ": " << reason;
    if (!queue_->limits(T{}).has_double && sizeof(T) == 8)
      GTEST_SKIP() << B::name << " device without double precision";
  }
  void TearDown() override {
    if (!queue_) return;
    queue_->synchronize();
    for (const auto& p : owned_) queue_->release(p);
  }
  Queue& q() { return *queue_; }

  template <class U>
  Pointer<U> allocate(Index count) {
    owned_.push_back(queue_->allocate(count * static_cast<Index>(sizeof(U))));
    return cast_pointer<U>(owned_.back());
  }
  template <class U>
  Pointer<U> upload(const std::vector<U>& values) {
    const Pointer<U> p = allocate<U>(std::max<Index>(1, static_cast<Index>(values.size())));
    queue_->upload(values.data(), p, static_cast<Index>(values.size()));
    return p;
  }
  template <class U>
  std::vector<U> download(Pointer<U> p, Index count) {
    std::vector<U> values(static_cast<std::size_t>(count));
    queue_->download(p, values.data(), count);
    return values;
  }
  template <class U>
  Device<U> upload(const HostMatrix<U>& a) {
    const Pointer<U> p = upload(a.data);
    return {p + HostMatrix<U>::pad, a.rows, a.cols, a.ld, a.stride, a.count};
  }
  /// The device's matrix, canaries and all, in the shape of `like`.
  template <class U>
  HostMatrix<U> download(const Device<U>& a, const HostMatrix<U>& like) {
    HostMatrix<U> result = like;
    queue_->download(a.data + (-HostMatrix<U>::pad), result.data.data(), static_cast<Index>(result.data.size()));
    return result;
  }
  Scratch<B> scratch(std::int64_t bytes = 1 << 20) { return {allocate<std::byte>(bytes), bytes}; }
  Pointer<std::int32_t> flag(std::int32_t value) { return upload(std::vector<std::int32_t>{value}); }

  /// The same under other names, public for the free functions of the panel tests.
 public:
  template <class U>
  auto device(const U& values) {
    return upload(values);
  }
  template <class U>
  HostMatrix<U> host(const Device<U>& a, const HostMatrix<U>& like) {
    return download(a, like);
  }
  template <class U>
  void host(Pointer<U> p, std::vector<U>& values) {
    values = download(p, static_cast<Index>(values.size()));
  }

 protected:
  /// Everything outside the matrices of the batch is as it was.
  template <class U>
  static void expect_canaries(const HostMatrix<U>& a) {
    HostMatrix<U> blank(a.rows, a.cols, a.ld - std::max<Index>(1, a.rows), a.count, a.stride - a.ld * a.cols);
    for (Index b = 0; b < a.count; ++b)
      for (Index j = 0; j < a.cols; ++j)
        for (Index i = 0; i < a.rows; ++i) blank(i, j, b) = a(i, j, b);
    EXPECT_TRUE(same_bits(a.data, blank.data)) << "memory around a " << a.rows << " x " << a.cols << " matrix changed";
  }

  /// |x - y| <= tolerance, NaN failing.
  static void expect_close(Wide x, Wide y, Wide tolerance, const std::string& what) {
    EXPECT_TRUE(std::fabs(x - y) <= tolerance)
        << what << ": " << double(x) << " against " << double(y) << ", tolerance " << double(tolerance);
  }

 private:
  std::unique_ptr<Queue> queue_;
  std::vector<Pointer<std::byte>> owned_;
};

TYPED_TEST_SUITE(Kernels, KernelTypes);

}  // namespace qrane::backend::test
