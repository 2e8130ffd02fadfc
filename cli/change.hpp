// SPDX-License-Identifier: Apache-2.0
// One change of a matrix as the command line names it (K:U or K:P), and what it makes of a host matrix.
#pragma once

#include <algorithm>
#include <string>

#include <cli/common.hpp>
#include <qrane/update.hpp>

namespace qrane::cli {

struct ChangeWish {
  const char* flag = "";  ///< for messages
  Change change = Change::insert_rows;
  Index k = 0;
  Index p = 0;       ///< rows or columns that go; of those that come the file says how many
  std::string file;  ///< what comes in
};

/// Throws Error{invalid_argument} naming the flag.
ChangeWish parse_change(const char* flag, const std::string& text, Change change);

/// Throws Error{invalid_argument} unless the change fits a rows x cols matrix; u is what comes in.
void check_change(const ChangeWish& wish, const std::string& name, Index rows, Index cols, Index u_rows, Index u_cols);

/// Rows k .. k+p-1.
template <class T>
io::Dense<T> row_block(const io::Dense<T>& a, Index k, Index p) {
  io::Dense<T> out{p, a.cols, {}};
  for (Index j = 0; j < a.cols; ++j)
    out.values.insert(out.values.end(), a.values.begin() + j * a.rows + k, a.values.begin() + j * a.rows + k + p);
  return out;
}

/// The matrix after the change.
template <class T>
io::Dense<T> changed_matrix(const ChangeWish& wish, const io::Dense<T>& a, const io::Dense<T>& u) {
  const bool rows = wish.change == Change::insert_rows || wish.change == Change::delete_rows;
  const bool in = wish.change == Change::insert_rows || wish.change == Change::insert_columns;
  const Index gone = in ? 0 : wish.p;
  io::Dense<T> out;
  if (!rows) {
    out = {a.rows, a.cols - gone + (in ? u.cols : 0), {}};
    out.values.assign(a.values.begin(), a.values.begin() + wish.k * a.rows);
    if (in) out.values.insert(out.values.end(), u.values.begin(), u.values.end());
    out.values.insert(out.values.end(), a.values.begin() + (wish.k + gone) * a.rows, a.values.end());
    return out;
  }
  out = {a.rows - gone + (in ? u.rows : 0), a.cols, {}};
  for (Index j = 0; j < a.cols; ++j) {
    const auto column = a.values.begin() + j * a.rows;
    out.values.insert(out.values.end(), column, column + wish.k);
    if (in) out.values.insert(out.values.end(), u.values.begin() + j * u.rows, u.values.begin() + (j + 1) * u.rows);
    out.values.insert(out.values.end(), column + wish.k + gone, column + a.rows);
  }
  return out;
}

}  // namespace qrane::cli
