// SPDX-License-Identifier: Apache-2.0
// A sparse least-squares problem as qrane's process hands it to a peer: a file of numbers, little more than a copy of
// memory. And what both judge a factorization by, so that both are judged alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/seeded_matrix.hpp"

namespace qrane::bench {

/// Compressed columns in memory of somebody else.
template <class T, class Integer = std::int64_t>
struct Columns {
  std::int64_t rows = 0, cols = 0;
  const Integer* pointers = nullptr;
  const Integer* row_indices = nullptr;
  const T* values = nullptr;
};

struct ExchangedProblem {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int64_t> pointers, row_indices;
  std::vector<double> values, rhs;

  Columns<double> view() const { return {rows, cols, pointers.data(), row_indices.data(), values.data()}; }
};

/// Right-hand side of the suite.
inline std::vector<double> seeded_rhs(std::int64_t rows) {
  std::vector<double> b(static_cast<std::size_t>(rows));
  fill_seeded(b.data(), rows, 11);
  return b;
}

/// Throws std::runtime_error naming the file.
inline void write_problem(const std::string& path, const Columns<double>& a) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  const std::int64_t entries = a.pointers[a.cols], head[3] = {a.rows, a.cols, entries};
  const auto put = [&](const void* from, std::size_t size, std::int64_t count) {
    return std::fwrite(from, size, static_cast<std::size_t>(count), file.get()) == static_cast<std::size_t>(count);
  };
  if (!file || !put(head, 8, 3) || !put(a.pointers, 8, a.cols + 1) || !put(a.row_indices, 8, entries) ||
      !put(a.values, 8, entries) || std::fflush(file.get()) != 0)
    throw std::runtime_error(path + " cannot be written");
}

inline ExchangedProblem read_problem(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  const auto get = [&](auto& to, std::int64_t count) {
    to.resize(static_cast<std::size_t>(count));
    return std::fread(to.data(), 8, to.size(), file.get()) == to.size();
  };
  ExchangedProblem a;
  std::vector<std::int64_t> head;
  if (!file || !get(head, 3) || !get(a.pointers, head[1] + 1) || !get(a.row_indices, head[2]) ||
      !get(a.values, head[2]))
    throw std::runtime_error(path + " cannot be read");
  a.rows = head[0];
  a.cols = head[1];
  a.rhs = seeded_rhs(a.rows);
  return a;
}

/// The process's highest resident memory from here on, where the system tells; the start is what is resident then.
class MemoryPeak {
 public:
  MemoryPeak() {
    if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "w")) {
      std::fputs("5", file);  // the peak is now what is resident
      std::fclose(file);
    }
    start_ = field("VmRSS:");
  }
  std::int64_t bytes() const { return start_ < 0 ? -1 : field("VmHWM:") - start_; }

 private:
  static std::int64_t field(const char* name) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/status", "r"), std::fclose);
    char line[256];
    long long kilobytes = -1;
    while (file && std::fgets(line, sizeof line, file.get()))
      if (std::string(line).rfind(name, 0) == 0) std::sscanf(line + std::string(name).size(), "%lld", &kilobytes);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
  }
  std::int64_t start_ = -1;
};

/// y += a x, or y += aᵀ x, over a column permutation: column k is a's column permutation[k], or k for null.
template <class T, class Integer, class W>
void add_product(const Columns<T, Integer>& a, const Integer* permutation, bool transpose, const W* x, W* y) {
  for (std::int64_t k = 0; k < a.cols; ++k) {
    const std::int64_t j = permutation ? static_cast<std::int64_t>(permutation[k]) : k;
    W sum = 0;
    const W factor = transpose ? W(0) : x[k];
    for (Integer p = a.pointers[j]; p < a.pointers[j + 1]; ++p) {
      const W value = static_cast<W>(a.values[p]);
      if (transpose)
        sum += value * x[a.row_indices[p]];
      else
        y[a.row_indices[p]] += value * factor;
    }
    if (transpose) y[k] += sum;
  }
}

template <class T, class Integer>
double frobenius_norm(const Columns<T, Integer>& a) {
  long double sum = 0;
  for (Integer p = 0; p < a.pointers[a.cols]; ++p)
    sum += static_cast<long double>(a.values[p]) * static_cast<long double>(a.values[p]);
  return static_cast<double>(std::sqrt(sum));
}

/// ||Aᵀ (b - A x)|| / (||A||_F ||b||), the products in wider arithmetic.
template <class Integer>
double normal_error(const Columns<double, Integer>& a, const double* b, const double* x) {
  std::vector<long double> r(static_cast<std::size_t>(a.rows)), g(static_cast<std::size_t>(a.cols), 0.0L);
  const std::vector<long double> wide(x, x + a.cols);
  add_product(a, static_cast<const Integer*>(nullptr), false, wide.data(), r.data());
  long double norm_b = 0, norm_g = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    r[i] = static_cast<long double>(b[i]) - r[i];
    norm_b += static_cast<long double>(b[i]) * static_cast<long double>(b[i]);
  }
  add_product(a, static_cast<const Integer*>(nullptr), true, r.data(), g.data());
  for (const long double v : g) norm_g += v * v;
  const long double scale = static_cast<long double>(frobenius_norm(a)) * std::sqrt(norm_b);
  return scale > 0 ? static_cast<double>(std::sqrt(norm_g) / scale) : 0;
}

/// ||RᵀR - (A P)ᵀ(A P)||_F / ||A||_F², estimated: the expected squared length of a matrix's product with random signs
/// is the square of its Frobenius norm. Column k of A P is a's column permutation[k].
template <class T, class Integer>
double gram_error(const Columns<double, Integer>& a, const Columns<T, Integer>& r, const Integer* permutation) {
  const std::int64_t probes = r.cols > 0 && static_cast<std::int64_t>(r.pointers[r.cols]) > 10'000'000 ? 4 : 16;
  double sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
  for (std::int64_t probe = 0; probe < probes; ++probe) {
    const auto n = static_cast<std::size_t>(a.cols);
    std::vector<double> x(n), by_a(n), by_r(n), rows_of_a(static_cast<std::size_t>(a.rows)),
        rows_of_r(static_cast<std::size_t>(r.rows));
    for (std::size_t k = 0; k < n; ++k) x[k] = uniform_at(13 + static_cast<std::uint64_t>(probe), k) < 0 ? -1 : 1;
    add_product(a, permutation, false, x.data(), rows_of_a.data());
    add_product(a, permutation, true, rows_of_a.data(), by_a.data());
    add_product(r, static_cast<const Integer*>(nullptr), false, x.data(), rows_of_r.data());
    add_product(r, static_cast<const Integer*>(nullptr), true, rows_of_r.data(), by_r.data());
    double square = 0;
    for (std::size_t k = 0; k < n; ++k) square += (by_a[k] - by_r[k]) * (by_a[k] - by_r[k]);
    sum += square;
  }
  const double norm = frobenius_norm(a);
  return norm > 0 ? std::sqrt(sum / static_cast<double>(probes)) / (norm * norm) : 0;
}

}  // namespace qrane::bench
