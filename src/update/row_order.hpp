// SPDX-License-Identifier: Apache-2.0
// Where the rows of A are while rows come and go: rows of Q never move, so logical row i, as the user counts, is some
// physical row of memory. Kept as runs of consecutive physical rows in logical order; rows that are free again
// ("holes") are zero in Q and are the first to be used again.
//
//     runs  [5..9] [0..2] [3..3]          logical 0 1 2 3 4 5 6 7 8  is physical 5 6 7 8 9 0 1 2 3
//     holes [4..4]                        extent 10
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::update {

/// Consecutive physical rows.
struct Run {
  Index first = 0, count = 0;
  bool operator==(const Run&) const = default;
};

class RowOrder {
 public:
  RowOrder() = default;
  /// reuse: holes are used again, and those at the end given up.
  explicit RowOrder(Index rows, bool reuse = true) : rows_(rows), extent_(rows), reuse_(reuse) {
    if (rows > 0) runs_.push_back({0, rows});
  }

  bool operator==(const RowOrder&) const = default;

  Index rows() const { return rows_; }
  /// Physical rows in use are below it.
  Index extent() const { return extent_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Run>& holes() const { return holes_; }

  /// The runs of logical rows k .. k+p-1.
  std::vector<Run> runs(Index k, Index p) const {
    std::vector<Run> out;
    Index at = 0;
    for (const Run& run : runs_) {
      const Index first = std::max(k, at), last = std::min(k + p, at + run.count);
      if (first < last) out.push_back({run.first + first - at, last - first});
      at += run.count;
    }
    return out;
  }

  /// Physical row of every logical one.
  std::vector<std::int64_t> map() const {
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(rows_));
    for (const Run& run : runs_)
      for (Index i = 0; i < run.count; ++i) out.push_back(run.first + i);
    return out;
  }

  /// p rows before logical row k, in holes first, then after all others.
  void insert(Index k, Index p) {
    std::vector<Run> fresh;
    while (reuse_ && p > 0 && !holes_.empty()) {
      Run& hole = holes_.front();
      const Index taken = std::min(p, hole.count);
      fresh.push_back({hole.first, taken});
      rows_ += taken;
      p -= taken;
      hole.first += taken;
      hole.count -= taken;
      if (hole.count == 0) holes_.erase(holes_.begin());
    }
    if (p > 0) {
      fresh.push_back({extent_, p});
      extent_ += p;
      rows_ += p;
    }
    const std::size_t at = split(k);
    runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at), fresh.begin(), fresh.end());
    merge(runs_);
  }

  /// Logical rows k .. k+p-1 become holes.
  void erase(Index k, Index p) {
    if (p == 0) return;
    const std::size_t first = split(k), last = split(k + p);
    holes_.insert(holes_.end(), runs_.begin() + static_cast<std::ptrdiff_t>(first),
                  runs_.begin() + static_cast<std::ptrdiff_t>(last));
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(first), runs_.begin() + static_cast<std::ptrdiff_t>(last));
    rows_ -= p;
    merge(runs_);
    std::sort(holes_.begin(), holes_.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    merge(holes_);
    if (reuse_ && !holes_.empty() && holes_.back().first + holes_.back().count == extent_) {
      extent_ = holes_.back().first;
      holes_.pop_back();
    }
  }

 private:
  /// The index in runs_ of the run that begins with logical row k, after cutting one in two if need be.
  std::size_t split(Index k) {
    Index at = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (at == k) return i;
      if (k < at + runs_[i].count) {
        const Run rest{runs_[i].first + k - at, runs_[i].count - (k - at)};
        runs_[i].count = k - at;
        runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
        return i + 1;
      }
      at += runs_[i].count;
    }
    return runs_.size();
  }
  static void merge(std::vector<Run>& runs) {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (runs[kept].first + runs[kept].count == runs[i].first)
        runs[kept].count += runs[i].count;
      else
        runs[++kept] = runs[i];
    }
    if (!runs.empty()) runs.resize(kept + 1);
  }

  Index rows_ = 0, extent_ = 0;
  bool reuse_ = true;
  std::vector<Run> runs_, holes_;
};

}  // namespace qrane::update
