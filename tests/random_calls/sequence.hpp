// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls on one factorization: what they are, how they are drawn, and what makes one simpler.
// A call's numbers are taken modulo what the matrix allows when its turn comes, so that any subset of calls is legal.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <qrane/qrane.hpp>

#include "random_calls/shrink.hpp"

namespace qrane::test {

/// few_rows: half of the columns live in a few of the last rows alone, and the rank goes with these.
enum class Fill { normal, zero, low_rank, few_rows, huge, tiny, mixed, nan };
inline constexpr std::array fill_names{"normal", "zero", "low_rank", "few_rows", "huge", "tiny", "mixed", "nan"};

enum class Kind { insert_rows, delete_rows, insert_columns, delete_columns, rank_k, refactor, solve, rank };
inline constexpr std::array kind_names{"insert_rows", "delete_rows", "insert_columns", "delete_columns",
                                       "rank_k",      "refactor",    "solve",          "rank"};

struct Call {
  Kind kind = Kind::refactor;
  std::uint32_t k = 0, p = 0;  // place and size, before the remainder is taken
  Fill fill = Fill::normal;
  UpdateMethod method = UpdateMethod::automatic;
  bool lends = false;  // the updated matrix
};

struct Sequence {
  std::uint32_t seed = 0;  // of the numbers in the matrices
  QForm form = QForm::implicit;
  Index rows = 0, cols = 0;
  Fill fill = Fill::normal;
  bool attached = false;  // right-hand sides
  std::vector<Call> calls;

  std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ", form " << to_string(form) << ", " << rows << " x " << cols << " "
        << fill_names[static_cast<std::size_t>(fill)] << (attached ? ", attached" : "") << "\n";
    for (const Call& c : calls)
      out << "  " << kind_names[static_cast<std::size_t>(c.kind)] << " k " << c.k << " p " << c.p << " "
          << fill_names[static_cast<std::size_t>(c.fill)] << " " << to_string(c.method) << (c.lends ? " lends" : "")
          << "\n";
    return out.str();
  }
};

inline Sequence draw(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::array<Index, 22> sizes{0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 30, 31, 32, 33, 63, 64, 65, 130};
  const auto size = [&] { return sizes[below(sizes.size())]; };
  // most matrices are plain: what goes wrong with them counts most
  const auto fill = [&] { return below(3) > 0 ? Fill::normal : static_cast<Fill>(below(fill_names.size())); };
  constexpr std::array forms{QForm::implicit, QForm::thin, QForm::full, QForm::none};
  constexpr std::array methods{UpdateMethod::orthogonal, UpdateMethod::cholesky, UpdateMethod::trailing,
                               UpdateMethod::refactor};
  Sequence s;
  s.seed = seed;
  s.form = forms[below(forms.size())];
  s.rows = size();
  s.cols = std::min<Index>(size(), 65);
  s.fill = fill();
  s.attached = below(3) == 0;
  const std::uint32_t length = 1 + below(8);
  for (std::uint32_t i = 0; i < length; ++i) {
    Call c;
    c.kind = static_cast<Kind>(below(kind_names.size()));
    c.k = below(1000);
    c.p = below(4) == 0 ? 1000 : below(40);  // 1000: all that there is
    c.fill = fill();
    if (below(2) == 0) c.method = methods[below(methods.size())];
    c.lends = below(3) == 0;
    s.calls.push_back(c);
  }
  return s;
}

/// What makes a sequence simpler, for shrunk().
inline constexpr auto simpler_steps = [](const Sequence& s, const auto& simplify) {
  simplify([](Sequence& t) { return set_simpler(t.attached, false); });
  simplify([](Sequence& t) { return set_simpler(t.fill, Fill::normal); });
  for (const auto member : {&Sequence::rows, &Sequence::cols}) {
    for (const Index less : {s.*member / 2, s.*member - 1})
      simplify([&](Sequence& t) { return less >= 0 && less < t.*member && set_simpler(t.*member, less); });
  }
  for (std::size_t i = 0; i < s.calls.size(); ++i) {
    simplify([&](Sequence& t) { return set_simpler(t.calls[i].fill, Fill::normal); });
    simplify([&](Sequence& t) { return set_simpler(t.calls[i].method, UpdateMethod::automatic); });
    simplify([&](Sequence& t) { return set_simpler(t.calls[i].lends, false); });
    simplify([&](Sequence& t) { return set_simpler(t.calls[i].k, 0); });
    for (const auto member : {&Call::k, &Call::p})
      simplify([&](Sequence& t) { return set_simpler(t.calls[i].*member, t.calls[i].*member / 2); });
  }
};

}  // namespace qrane::test
