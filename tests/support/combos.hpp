// SPDX-License-Identifier: Apache-2.0
// What can be asked of qr: every algorithm with every form of Q that it gives, and trees of several depths.
#pragma once

#include <string>
#include <vector>

#include <qrane/qr.hpp>

#include "support/hostile.hpp"

namespace qrane::test {

struct Combo {
  Algorithm algorithm;
  QForm q;
};

inline std::string to_string(Combo c) {
  return std::string(qrane::to_string(c.algorithm)) + "/" + qrane::to_string(c.q);
}

/// Every legal pair of algorithm and form.
inline const std::vector<Combo>& legal_combos() {
  static const std::vector<Combo> combos = [] {
    std::vector<Combo> list;
    for (Algorithm a : {Algorithm::automatic, Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked})
      for (QForm q : {QForm::implicit, QForm::thin, QForm::none}) list.push_back({a, q});
    for (Algorithm a : {Algorithm::automatic, Algorithm::blocked}) list.push_back({a, QForm::lapack});
    for (QForm q : {QForm::thin, QForm::none}) list.push_back({Algorithm::cholesky_qr, q});
    return list;
  }();
  return combos;
}

/// What a test goes through.
inline std::vector<Combo> all_combos() { return thirds_in_turn(legal_combos()); }

/// Cholesky QR takes tall matrices, TSQR one panel: 32 columns are legal on every device.
inline bool legal(Combo c, Shape s) {
  if (c.algorithm == Algorithm::cholesky_qr) return s.rows >= s.cols;
  return c.algorithm != Algorithm::tsqr || std::min(s.rows, s.cols) <= 32;
}

/// Block rows, arity and panel columns; zeros are the tuned values.
struct Tree {
  std::int64_t block_rows = 0;
  int arity = 0;
  int panel_cols = 0;
};

inline Options options_for(Combo c, Tree t = {}) {
  Options o;
  o.algorithm = c.algorithm;
  o.q = c.q;
  o.expert.block_rows = t.block_rows;
  o.expert.arity = t.arity;
  o.expert.panel_cols = t.panel_cols;
  return o;
}

inline std::string label(const char* input, Shape s, Combo c, Tree t) {
  return std::string(input) + ", " + to_string(s) + ", " + to_string(c) + ", tree " + std::to_string(t.block_rows) +
         "/" + std::to_string(t.arity) + "/" + std::to_string(t.panel_cols);
}

inline bool keeps_reflectors(QForm q) { return q == QForm::implicit || q == QForm::lapack; }

/// Every legal pair that gives the m x m Q; not for tall matrices.
inline std::vector<Combo> combos_of_full_q() {
  std::vector<Combo> combos;
  for (const Combo c : legal_combos())
    if (keeps_reflectors(c.q)) combos.push_back(c);
  for (Algorithm a : {Algorithm::automatic, Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked})
    combos.push_back({a, QForm::full});
  return thirds_in_turn(combos);
}

}  // namespace qrane::test
