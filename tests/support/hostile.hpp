// SPDX-License-Identifier: Apache-2.0
// The one set of hostile inputs, by name, shape and seed; and the ways a matrix may be stored.
// Every generator gives the same bits on every machine whose libm rounds alike; none depends on a device.
#pragma once

#include <functional>
#include <numbers>
#include <random>
#include <string>

#include <qrane/context.hpp>

#include "support/dense.hpp"
#include "support/small_run.hpp"

namespace qrane::test {

struct Shape {
  Index rows, cols;
};

inline std::string to_string(Shape s) { return std::to_string(s.rows) + " x " + std::to_string(s.cols); }

/// Uniform and normal numbers that do not depend on the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  Index below(Index n) { return static_cast<Index>(uniform() * static_cast<double>(n)); }

 private:
  std::mt19937_64 engine_;
};

template <class T>
Dense<T> random_normal(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  Dense<T> a(m, n);
  for (T& x : a.values) x = static_cast<T>(random.normal());
  return a;
}

/// m x k with orthonormal columns, k <= m.
inline Dense<double> random_orthonormal(Index m, Index k, std::uint64_t seed) {
  return householder_qr(random_normal<double>(m, k, seed)).q(k);
}

/// U diag(s) Vᵀ with random U and V and k = min(m, n) given singular values.
template <class T>
Dense<T> with_singular_values(Index m, Index n, const std::function<double(Index, Index)>& s, std::uint64_t seed) {
  const Index k = std::min(m, n);
  Dense<double> u = random_orthonormal(m, k, seed);
  const Dense<double> v = random_orthonormal(n, k, seed + 1000);
  for (Index j = 0; j < k; ++j)
    for (Index i = 0; i < m; ++i) u(i, j) *= s(j, k);
  return convert<T>(multiply(u, transposed(v)));
}

/// Singular values from 1 down to 1 / condition in equal ratios.
template <class T>
Dense<T> geometric_spectrum(Index m, Index n, double condition, std::uint64_t seed) {
  return with_singular_values<T>(
      m, n, [=](Index j, Index k) { return k > 1 ? std::pow(condition, -double(j) / double(k - 1)) : 1.0; }, seed);
}

namespace hostile {

template <class T>
constexpr double widest_exponent = sizeof(T) == 4 ? 30 : 300;  // decimal
template <class T>
constexpr double inverse_eps = 1.0 / std::numeric_limits<T>::epsilon();

/// 10^-w .. 10^w in equal ratios.
template <class T>
double grade(Index i, Index n) {
  return n > 1 ? std::pow(10.0, widest_exponent<T> * (2.0 * double(i) / double(n - 1) - 1)) : 1.0;
}

template <class T>
Dense<T> graded(Index m, Index n, std::uint64_t seed, bool rows) {
  Dense<double> a = random_normal<double>(m, n, seed);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) a(i, j) *= rows ? grade<T>(m - 1 - i, m) : grade<T>(j, n);
  return convert<T>(a);
}

/// Every column is the first plus noise of relative size eps.
template <class T>
Dense<T> near_dependent(Index m, Index n, std::uint64_t seed) {
  const Dense<double> noise = random_normal<double>(m, n, seed), base = random_normal<double>(m, 1, seed + 1);
  Dense<T> a(m, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) a(i, j) = static_cast<T>(base(i, 0) + noise(i, j) / inverse_eps<T>);
  return a;
}

/// The second half of the columns repeats the first, exactly.
template <class T>
Dense<T> duplicate_columns(Index m, Index n, std::uint64_t seed) {
  Dense<T> a = random_normal<T>(m, n, seed);
  for (Index j = (n + 1) / 2; j < n; ++j)
    std::copy(a.column(j - (n + 1) / 2), a.column(j - (n + 1) / 2) + m, a.column(j));
  return a;
}

/// A product of small integers: rank max(1, min(m, n) / 3), exact in T.
inline Index product_rank(Index m, Index n) { return std::max<Index>(1, std::min(m, n) / 3); }
template <class T>
Dense<T> product(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  const Index k = product_rank(m, n);
  Dense<T> left(m, k), right(k, n);
  for (T& x : left.values) x = static_cast<T>(random.below(15) - 7);
  for (T& x : right.values) x = static_cast<T>(random.below(15) - 7);
  return multiply(left, right);
}

/// Zero columns first, last and around every multiple of 4: where panels of any width begin and end.
template <class T>
Dense<T> zero_columns(Index m, Index n, std::uint64_t seed) {
  Dense<T> a = random_normal<T>(m, n, seed);
  for (Index j = 0; j < n; ++j)
    if (j % 4 == 0 || j % 16 == 15 || j + 1 == n) std::fill(a.column(j), a.column(j) + m, T(0));
  return a;
}

template <class T>
Dense<T> positive_triangular(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  Dense<T> a(m, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < std::min(m, j + 1); ++i) a(i, j) = static_cast<T>(random.uniform(0.5, 1.5));
  return a;
}

/// Half of the singular values within rounding of 1, the rest within rounding of 1e-3.
template <class T>
Dense<T> clustered(Index m, Index n, std::uint64_t seed) {
  return with_singular_values<T>(
      m, n, [](Index j, Index k) { return (2 * j < k ? 1.0 : 1e-3) * (1 + double(j) / inverse_eps<T>); }, seed);
}

template <class T>
Dense<T> times(Dense<T> a, T factor) {
  for (T& x : a.values) x *= factor;
  return a;
}

/// Column norms stay below max / 4, squares do not.
template <class T>
Dense<T> near_overflow(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  Dense<T> a(m, n);
  const double largest = static_cast<double>(std::numeric_limits<T>::max()) / (4 * std::sqrt(double(m) + 1));
  for (T& x : a.values) x = static_cast<T>(random.uniform(-largest, largest));
  return a;
}

/// Some hundred units of the smallest positive number.
template <class T>
Dense<T> denormal(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  Dense<T> a(m, n);
  for (T& x : a.values) x = static_cast<T>(random.below(2001) - 1000) * std::numeric_limits<T>::denorm_min();
  return a;
}

/// Magnitudes from 10^-30 to 10^30 (10^-300 to 10^300) with no order at all.
template <class T>
Dense<T> huge_and_tiny(Index m, Index n, std::uint64_t seed) {
  Random random(seed);
  Dense<T> a(m, n);
  for (T& x : a.values) {
    const double sign = random.uniform() < 0.5 ? -1 : 1;
    x = static_cast<T>(sign * std::pow(10.0, random.uniform(-widest_exponent<T>, widest_exponent<T>)));
  }
  return a;
}

template <class T>
struct Input {
  const char* name;
  std::function<Dense<T>(Index, Index, std::uint64_t)> make;
};

/// Every finite hostile input.
template <class T>
const std::vector<Input<T>>& inputs() {
  using U = std::uint64_t;
  static const std::vector<Input<T>> all = {
      {"random normal", random_normal<T>},
      {"graded columns", [](Index m, Index n, U s) { return graded<T>(m, n, s, false); }},
      {"graded rows", [](Index m, Index n, U s) { return graded<T>(m, n, s, true); }},
      {"near-dependent columns", near_dependent<T>},
      {"geometric spectrum to 1e3", [](Index m, Index n, U s) { return geometric_spectrum<T>(m, n, 1e3, s); }},
      {"geometric spectrum to 1/eps",
       [](Index m, Index n, U s) { return geometric_spectrum<T>(m, n, inverse_eps<T>, s); }},
      {"duplicate columns", duplicate_columns<T>},
      {"product of low rank", product<T>},
      {"clustered singular values", clustered<T>},
      {"zero", [](Index m, Index n, U) { return Dense<T>(m, n); }},
      {"zero columns", zero_columns<T>},
      {"ones", [](Index m, Index n, U) { return Dense<T>(m, n, T(1)); }},
      {"identity",
       [](Index m, Index n, U) {
         Dense<T> a(m, n);
         for (Index j = 0; j < std::min(m, n); ++j) a(j, j) = 1;
         return a;
       }},
      {"positive triangular", positive_triangular<T>},
      {"denormal", denormal<T>},
      {"near overflow", near_overflow<T>},
      {"huge and tiny", huge_and_tiny<T>},
  };
  return all;
}

/// What tests put every input into that ask the same of each. What memory a kernel touches depends on shapes and on the
/// way that is taken, hardly on numbers: a small run takes one of three, in turn, which the guards send different ways.
template <class T>
std::vector<Input<T>> sweep() {
  if (!small_run()) return inputs<T>();
  std::vector<Input<T>> some;
  for (const Input<T>& input : inputs<T>())
    for (const char* name : {"random normal", "geometric spectrum to 1/eps", "duplicate columns"})
      if (std::string(input.name) == name) some.push_back(input);
  return in_turn(some);
}

}  // namespace hostile

// -- storage ------------------------------------------------------------------------------------------------------

enum class Storage {
  contiguous,
  slack,
  row_major,
  row_major_slack,
  misaligned,
  device,
  device_slack,
  device_misaligned
};

inline const char* to_string(Storage s) {
  constexpr const char* names[] = {
      "contiguous", "slack leading dimension", "row-major",        "row-major with slack", "misaligned",
      "device",     "device with slack",       "device misaligned"};
  return names[static_cast<int>(s)];
}

inline constexpr Storage all_storages[] = {
    Storage::contiguous, Storage::slack,  Storage::row_major,    Storage::row_major_slack,
    Storage::misaligned, Storage::device, Storage::device_slack, Storage::device_misaligned};

/// Rows [i, i + r), columns [j, j + c) of a view, in any memory.
template <class T>
MatrixView<T> block(MatrixView<T> a, Index i, Index j, Index r, Index c) {
  const Index shift = a.layout == Layout::column_major ? i + j * a.ld : i * a.ld + j;
  if (a.data)
    a.data += shift;
  else
    a.offset += shift;
  a.rows = r;
  a.cols = c;
  return a;
}

/// A matrix laid out as asked, owning its memory, between canaries where it has slack.
template <class T>
class Stored {
 public:
  Stored(const Context& context, const Dense<T>& a, Storage storage) : storage_(storage) {
    const Index m = a.rows, n = a.cols;
    const bool rows_first = storage == Storage::row_major || storage == Storage::row_major_slack;
    const bool odd = storage == Storage::misaligned || storage == Storage::device_misaligned;
    const Index slack =
        storage == Storage::slack || storage == Storage::row_major_slack || storage == Storage::device_slack ? 3 : 0;
    const Index ld = std::max<Index>(1, (rows_first ? n : m) + slack);
    const Index shift = odd ? 1 : 0;
    host_.assign(static_cast<std::size_t>(ld * (rows_first ? m : n) + shift + 1), canary());
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < m; ++i)
        host_[static_cast<std::size_t>(shift + (rows_first ? i * ld + j : i + j * ld))] = a(i, j);
    original_ = host_;
    if (storage < Storage::device) {
      view_ = MatrixView<T>(host_.data() + shift, m, n, ld, Memory::host,
                            rows_first ? Layout::row_major : Layout::column_major);
      return;
    }
    // on the device: one long column, seen as a matrix of leading dimension ld
    const Index length = static_cast<Index>(host_.size());
    device_ = context.to_device<T>(MatrixView<const T>(host_.data(), length, 1));
    view_ = block(device_.view(), shift, 0, m, n);
    view_.ld = ld;
  }

  MatrixView<T> mutable_view() { return view_; }
  MatrixView<const T> view() const { return view_; }

  /// No element, nor anything between and around them, has changed since construction.
  bool untouched(const Context& context) const {
    std::vector<T> now = host_;
    if (storage_ >= Storage::device)
      context.copy<T>(device_.view(), MatrixView<T>(now.data(), static_cast<Index>(now.size()), 1));
    return now == original_;
  }

 private:
  static T canary() { return T(12345.5); }

  Storage storage_;
  std::vector<T> host_, original_;
  Matrix<T> device_;
  MatrixView<T> view_;
};

}  // namespace qrane::test
