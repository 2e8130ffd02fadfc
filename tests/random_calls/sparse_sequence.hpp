// SPDX-License-Identifier: Apache-2.0
// Random sequences of factorizations and solves with one sparse pattern: what they are, how they are drawn, and what
// makes one simpler.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <qrane/sparse_qr.hpp>

#include "random_calls/shrink.hpp"
#include "support/sparse.hpp"

namespace qrane::test {

/// duplicates: entries given twice are huge and cancel but for a small rest; low_rank: u vᵀ on the pattern, times a
/// huge number, plus a small rest; largest: sums of squares overflow; spoiled: some are NaN, infinite, zero or the
/// largest number.
enum class Numbers { normal, zero, huge, tiny, mixed, duplicates, low_rank, largest, spoiled };
inline constexpr std::array number_names{"normal",     "zero",     "huge",    "tiny",   "mixed",
                                         "duplicates", "low_rank", "largest", "spoiled"};

enum class SparseKind { refactor, solve, solve_another, solve_transposed };
inline constexpr std::array sparse_kind_names{"refactor", "solve", "solve_another", "solve_transposed"};

struct SparseCall {
  SparseKind kind = SparseKind::refactor;
  Numbers numbers = Numbers::normal;
};

struct SparseSequence {
  std::uint32_t seed = 0;  // of the pattern and the numbers
  Index rows = 0, cols = 0, percent = 0;
  Numbers numbers = Numbers::normal;
  sparse::Ordering ordering = sparse::Ordering::colamd;
  bool twice = false;  // each entry is given twice
  bool keeps_q = true, has_rhs = false, detects_rank = true, refuses = false, checks = false;
  Index rhs_cols = 1;
  int threads = 0;
  std::vector<SparseCall> calls;

  std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ", " << rows << " x " << cols << ", " << percent << "% "
        << number_names[static_cast<std::size_t>(numbers)] << (twice ? " twice" : "") << ", "
        << sparse::to_string(ordering) << (keeps_q ? "" : ", no Q") << (has_rhs ? ", rhs" : "") << " of " << rhs_cols
        << " columns" << (detects_rank ? "" : ", any rank") << (refuses ? ", refuses" : "")
        << (checks ? ", checks" : "") << ", threads " << threads << "\n";
    for (const SparseCall& c : calls)
      out << "  " << sparse_kind_names[static_cast<std::size_t>(c.kind)] << " "
          << number_names[static_cast<std::size_t>(c.numbers)] << "\n";
    return out.str();
  }
};

inline SparseSequence draw_sparse(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::array<Index, 16> sizes{0, 1, 1, 2, 3, 5, 8, 12, 16, 17, 20, 31, 32, 40, 64, 90};
  constexpr std::array orderings{sparse::Ordering::colamd, sparse::Ordering::amd, sparse::Ordering::natural,
                                 sparse::Ordering::automatic};
  const auto numbers = [&] {
    return below(3) == 0 ? Numbers::normal : static_cast<Numbers>(below(number_names.size()));
  };
  SparseSequence s;
  s.seed = seed;
  s.rows = sizes[below(sizes.size())];
  s.cols = sizes[below(sizes.size())];
  s.percent = below(4) == 0 ? 100 : 1 + below(40);
  s.numbers = numbers();
  s.ordering = orderings[below(orderings.size())];
  s.twice = below(3) == 0;
  s.keeps_q = below(3) > 0;
  s.has_rhs = below(2) == 0;
  s.detects_rank = below(4) > 0;
  s.refuses = below(6) == 0;
  s.checks = below(6) == 0;
  s.rhs_cols = below(4);
  s.threads = static_cast<int>(below(3));
  const std::uint32_t length = below(7);
  for (std::uint32_t i = 0; i < length; ++i)
    s.calls.push_back(
        {below(2) == 0 ? SparseKind::refactor : static_cast<SparseKind>(below(sparse_kind_names.size())), numbers()});
  return s;
}

inline constexpr auto simpler_sparse_steps = [](const SparseSequence& s, const auto& simplify) {
  using S = SparseSequence;
  simplify([](S& t) { return set_simpler(t.numbers, Numbers::normal); });
  simplify([](S& t) { return set_simpler(t.ordering, sparse::Ordering::natural); });
  simplify([](S& t) { return set_simpler(t.rhs_cols, 1); });
  simplify([](S& t) { return set_simpler(t.threads, 1); });
  for (const auto member : {&S::twice, &S::has_rhs, &S::refuses, &S::checks})
    simplify([&](S& t) { return set_simpler(t.*member, false); });
  for (const auto member : {&S::keeps_q, &S::detects_rank})
    simplify([&](S& t) { return set_simpler(t.*member, true); });
  for (const auto member : {&S::rows, &S::cols, &S::percent}) {
    for (const Index less : {s.*member / 2, s.*member - 1})
      simplify([&](S& t) { return less >= 0 && less < t.*member && set_simpler(t.*member, less); });
  }
  for (std::size_t i = 0; i < s.calls.size(); ++i)
    simplify([&](S& t) { return set_simpler(t.calls[i].numbers, Numbers::normal); });
};

inline Triplets pattern_of(const SparseSequence& s) {
  Triplets a = random_sparse(s.rows, s.cols, 0.01 * static_cast<double>(s.percent), s.seed);
  const std::size_t entries = s.twice ? a.row.size() : 0;
  for (std::size_t k = 0; k < entries; ++k) a.add(a.row[k], a.col[k], 0);
  return a;
}

/// Numbers for that pattern.
template <class T>
std::vector<T> values_of(const SparseSequence& s, const Triplets& a, Numbers numbers, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  constexpr T most = std::numeric_limits<T>::max();
  const T huge = sizeof(T) == 4 ? T(1e30) : T(1e150), tiny = 1 / huge;
  std::vector<T> out(a.row.size());
  for (T& v : out) v = static_cast<T>(normal(random));
  std::vector<T> u(static_cast<std::size_t>(a.rows)), w(static_cast<std::size_t>(a.cols));
  for (auto* line : {&u, &w})
    for (T& v : *line) v = static_cast<T>(normal(random));
  const auto one_in = 2 + random() % 20;
  const std::size_t first_of_twins = s.twice ? out.size() / 2 : 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    T& v = out[k];
    switch (numbers) {
      case Numbers::normal: break;
      case Numbers::zero: v = 0; break;
      case Numbers::huge: v *= huge; break;
      case Numbers::tiny: v *= tiny; break;
      case Numbers::mixed: v *= std::array{huge, T(1), tiny}[random() % 3]; break;
      case Numbers::duplicates: v += k < first_of_twins ? huge : s.twice ? -huge : T(0); break;
      case Numbers::low_rank:
        v += huge * u[static_cast<std::size_t>(a.row[k])] * w[static_cast<std::size_t>(a.col[k])];
        break;
      case Numbers::largest: v = std::clamp(v, T(-4), T(4)) * (most / static_cast<T>(8 * (1 + a.rows))); break;
      case Numbers::spoiled:
        if (random() % one_in == 0)
          v = std::array{std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), T(0),
                         most}[random() % 4];
        break;
    }
  }
  return out;
}

}  // namespace qrane::test
