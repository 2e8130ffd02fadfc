// SPDX-License-Identifier: Apache-2.0
// How `qrane bench` talks to a peer program: one request line in, one reply line out, words separated by blanks.
//
//   hello                       -> ok version=OpenBLAS_0.3.21 qr=lapack svd=lapack-gesdd gels=lapack-gels
//   rates precision=f32         -> ok gemm_gflops=50100 copy_gbytes=4050
//   measure task=qr peer=cusolver rows=1000 cols=192 precision=f32 seed=1 condition=1 repeats=5 form_q=1 max_seconds=4
//                               -> ok factor_ms=0.7,0.8 form_q_ms=0.2,0.2
//   anything that fails         -> error in words up to the end of the line
//
// Values hold no blanks (blanks in names become underscores). `hello` names the peers of each task. Tasks:
//   qr       `factor_ms`, R and reflectors, and where form_q=1 `form_q_ms`, the thin Q from them, one sample a repeat;
//            a peer that makes Q in one go sends `thin_q_ms` alone; form_q=2: the full m x m Q
//   rivals   as qr: benchmark-only methods (kernels/, peers/cuda_hybrid.cpp)
//   batched  V, tau and R of count= matrices: `total_ms`
//   svd      U, S and V^T of A, thin: `total_ms`
//   gels     min ||A x - b||, rhs= right-hand sides: `total_ms`
//   rpca     one iteration of robust PCA (inexact ALM) of the matrix in path=, with the peer's way to the singular
//            values: `total_ms`
//   update   an update of a factorization of rows= x cols=: change=insert_rows, delete_rows, insert_columns or
//            delete_columns, k= and p=, with form_q=1 the thin or 2 the full Q: `total_ms`
//   window   one row in and one row out of a rows= x cols= factorization: `total_ms`, a step
//   sparse   QR of the matrix in path=, with ordering=metis or default, Q discarded, and a least-squares solution:
//            `factor_ms`, numbers to R; `analyze_ms`; `total_ms`, all with the solution; rank=, fronts=, flops=,
//            tolerance=, r_entries=, peak_bytes=, resident_bytes=, normal_error=, and with check=1 gram_error=; with
//            repeats=0 that one run alone
//   sparse-analysis  its analysis with ordering=: `analyze_ms`
//   sparse-uses  its factors, Q kept, with rhs= right-hand sides: `factor_ms`, once for a path= and ordering=;
//   `solve_ms`,
//            `apply_qt_ms`, `apply_q_ms`, `least_norm_ms` (min ||x||, A'x = b)
// A measurement that would take longer than `max_seconds` is refused, or repeated fewer times.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace qrane::bench {

/// A line taken apart: its first word, and the key=value words after it.
struct Message {
  std::string verb;
  std::string text;  ///< everything after the verb
  std::map<std::string, std::string> values;

  explicit Message(const std::string& line) {
    std::istringstream words(line);
    words >> verb;
    std::getline(words >> std::ws, text);
    std::istringstream rest(text);
    for (std::string word; rest >> word;) {
      const auto equals = word.find('=');
      if (equals != std::string::npos) values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  bool has(const std::string& key) const { return values.count(key) != 0; }

  const std::string& get(const std::string& key) const {
    const auto found = values.find(key);
    if (found == values.end()) throw std::runtime_error("'" + verb + "' without " + key + "=");
    return found->second;
  }

  std::int64_t integer(const std::string& key) const {
    const std::string& word = get(key);
    char* end = nullptr;
    const long long value = std::strtoll(word.c_str(), &end, 10);
    if (word.empty() || *end != '\0') throw std::runtime_error(key + " must be an integer, got '" + word + "'");
    return value;
  }

  double number(const std::string& key) const {
    const std::vector<double> values_of_key = numbers(key);
    if (values_of_key.size() != 1) throw std::runtime_error(key + " must be one number");
    return values_of_key[0];
  }

  /// Numbers separated by commas; a single number is a list of one.
  std::vector<double> numbers(const std::string& key) const {
    std::vector<double> result;
    std::istringstream items(get(key));
    for (std::string item; std::getline(items, item, ',');) {
      char* end = nullptr;
      result.push_back(std::strtod(item.c_str(), &end));
      if (item.empty() || *end != '\0') throw std::runtime_error(key + " must be numbers, got '" + item + "'");
    }
    return result;
  }
};

inline std::string join_numbers(const std::vector<double>& numbers) {
  std::ostringstream out;
  out.precision(9);
  for (std::size_t i = 0; i < numbers.size(); ++i) out << (i ? "," : "") << numbers[i];
  return out.str();
}

/// One word of a reply.
inline std::string without_blanks(std::string text) {
  for (char& c : text)
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') c = '_';
  return text;
}

}  // namespace qrane::bench
