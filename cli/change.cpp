// SPDX-License-Identifier: Apache-2.0
#include <cli/change.hpp>

#include <charconv>

namespace qrane::cli {
namespace {

/// A whole number from 0 on, or nothing.
bool to_index(const std::string& text, Index& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value >= 0;
}

}  // namespace

ChangeWish parse_change(const char* flag, const std::string& text, Change change) {
  using detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  const bool in = change == Change::insert_rows || change == Change::insert_columns;
  const std::size_t colon = text.find(':');
  check(colon != std::string::npos && colon + 1 < text.size(), bad, flag, ": '", text, "' is not K:", in ? "U" : "P",
        in ? ", a position and a file" : ", a position and a count");
  ChangeWish wish;
  wish.flag = flag;
  wish.change = change;
  const std::string k = text.substr(0, colon), rest = text.substr(colon + 1);
  check(to_index(k, wish.k), bad, flag, ": K = '", k, "' is not a whole number from 0 on");
  if (in)
    wish.file = rest;
  else
    check(to_index(rest, wish.p), bad, flag, ": P = '", rest, "' is not a whole number from 0 on");
  return wish;
}

void check_change(const ChangeWish& wish, const std::string& name, Index rows, Index cols, Index u_rows, Index u_cols) {
  using detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  const bool by_rows = wish.change == Change::insert_rows || wish.change == Change::delete_rows;
  const bool in = wish.change == Change::insert_rows || wish.change == Change::insert_columns;
  const Index size = by_rows ? rows : cols;
  const char* what = by_rows ? " rows" : " columns";
  check(wish.k <= size, bad, wish.flag, ": K = ", wish.k, ", but ", name, " has ", size, what);
  check(in || wish.p <= size - wish.k, bad, wish.flag, ": K = ", wish.k, " and P = ", wish.p, ", but ", name, " has ",
        size, what);
  check(!in || (by_rows ? u_cols == cols : u_rows == rows), bad, wish.flag, ": ", wish.file, " is ",
        shape(u_rows, u_cols), ", but ", name, " is ", shape(rows, cols));
}

}  // namespace qrane::cli
