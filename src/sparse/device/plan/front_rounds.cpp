// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/front_rounds.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <qrane/error.hpp>

#include "sparse/block_planner.hpp"
#include "sparse/device/plan/front_tasks.hpp"

namespace qrane::sparse {

namespace {

using backend::FrontShape;

Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
Index round_up(Index a, Index multiple) { return ceil_div(a, multiple) * multiple; }

class Planner {
 public:
  Planner(const Symbolic& s, const FrontRoundsOptions& o) : s_(s), o_(o) {}

  FrontRounds plan() {
    shape_fronts();
    set_rounds();
    if (o_.storage_limit >= 0) {
      stage();
    } else {
      out_.start = out_.begin;
      for (std::size_t f = 0; f < courses_.of.size(); ++f)
        if (!courses_.of[f].whole) out_.start[f] += assembly_rounds();
      place_fronts();
    }
    if (!r_behind()) place_r();
    list_tasks(s_, o_, courses_, out_);
    return std::move(out_);
  }

  LeastStorage least() {
    shape_fronts();
    const std::vector<StagedFront> fronts = staged_fronts();
    LeastStorage least;
    for (std::size_t f = 0; f < fronts.size(); ++f)
      if (fronts[f].size > least.elements) least = {fronts[f].size, static_cast<Index>(f)};
    least.elements += staging_buffers * smallest_piece(fronts, least.elements);
    return least;
  }

 private:
  Index panels(const FrontShape& f) const { return ceil_div(f.cols, o_.panel); }
  static std::int32_t narrow(Index value, Index front, const char* what) {
    detail::check(value <= std::numeric_limits<std::int32_t>::max() / 2, ErrorCode::invalid_argument, "front ", front,
                  " has ", value, " ", what, ", too many for a device");
    return static_cast<std::int32_t>(value);
  }

  void shape_fronts() {
    const Index count = s_.front_count();
    narrow(count, 0, "fronts beside it");
    out_.shapes.resize(count);
    courses_.of.resize(count);
    for (Index k = 0; k < count; ++k) {
      const Front& front = s_.fronts[k];
      FrontShape& f = out_.shapes[k];
      const Index rows = o_.detect_rank ? front.rows_bound : front.rows;
      f.rows_bound = narrow(rows, k, "rows");
      f.cols = narrow(front.cols + o_.rhs_cols, k, "columns") - static_cast<std::int32_t>(o_.rhs_cols);
      f.pivots = static_cast<std::int32_t>(front.pivots);
      f.ld = narrow(round_up(std::max<Index>(rows, 1), o_.alignment), k, "rows");
      f.own_rows = static_cast<std::int32_t>(front.own_rows);
      f.child_count = static_cast<std::int32_t>(front.child_count);
      f.full_rows = static_cast<std::int32_t>(front.rows);
      f.cb_rows = static_cast<std::int32_t>(front.cb_rows);
      f.cb_bound = std::min(f.rows_bound, f.cols - f.pivots);
      f.r_bound = std::min(f.rows_bound, f.pivots);
      f.columns = front.cols_begin;
      f.first_row = front.first_row;
      f.full_slots = front.cb_begin;
      f.slots = out_.slots_size;
      f.row_ids = out_.row_ids_size;
      f.children = front.child_begin;
      f.panels = out_.panels_size;
      f.first_col = front.first_col;
      f.packed = block_in_front;
      out_.slots_size += f.cb_bound;
      out_.row_ids_size += f.rows_bound;
      out_.panels_size += panels(f);

      FrontCourse& course = courses_.of[k];
      const Index elements = f.rows_bound * all_columns(f, o_);
      course.whole = elements <= o_.whole_elements && rows <= o_.whole_rows;
      course.size = course.whole ? size_class(f.rows_bound, elements) : height_class(f.rows_bound);
      courses_.largest[course.whole][course.size].include(
          {f.rows_bound, static_cast<std::int32_t>(all_columns(f, o_)), elements});
      if (course.whole) continue;
      // each non-pivotal column takes a row, and any pivotal column may be dropped
      const Index reached = std::min<Index>(f.cols, rows + (o_.detect_rank ? f.pivots : 0));
      course.live = static_cast<std::int32_t>(std::max<Index>(ceil_div(reached, o_.panel), 1));
      course.live_cols = static_cast<std::int32_t>(std::min<Index>(f.cols, course.live * o_.panel));
      course.closes_late = all_columns(f, o_) - course.live_cols > o_.update_cols;
      course.rounds = assembly_rounds() + course.live + course.closes_late;
      constexpr std::int32_t worth_pairing = 6;
      if (o_.pair_cols > 0 && f.full_rows >= o_.pair_rows && course.live >= worth_pairing)
        course.paired = (course.live - 2) / 2 * 2;  // the last updates are by single panels
    }
  }

  /// Rounds of assembly before the first panel; under a memory limit staging plans them.
  std::int32_t assembly_rounds() const { return o_.storage_limit < 0 ? 1 : 0; }

  void set_rounds() {
    const Index count = s_.front_count();
    out_.begin.assign(count, 0);
    out_.end.assign(count, 0);
    std::int32_t total = 0;
    for (Index f = 0; f < count; ++f) {  // children come first
      out_.end[f] = out_.begin[f] + courses_.of[f].rounds - 1;
      total = std::max(total, out_.end[f] + 1);
      if (const Index parent = s_.fronts[f].parent; parent >= 0)
        out_.begin[parent] = std::max(out_.begin[parent], out_.end[f] + 1);
    }
    if (o_.late || o_.storage_limit >= 0)  // under a limit these are priorities
      for (Index f = count - 1; f >= 0; --f) {
        const Index parent = s_.fronts[f].parent;
        out_.end[f] = (parent >= 0 ? out_.begin[parent] : total) - 1;
        out_.begin[f] = out_.end[f] - courses_.of[f].rounds + 1;
      }
    count_rounds(total);
  }
  void count_rounds(std::int32_t total) {
    out_.round_begin.assign(total + 1, 0);
    out_.r_final.assign(total, 0);
  }

  bool r_behind() const { return o_.r_in_storage && o_.storage_limit >= 0; }
  static Index r_elements(const FrontShape& f) {
    const Index m = f.r_bound;
    return m * (m + 1) / 2 + m * (f.cols - m);
  }

  std::vector<StagedFront> staged_fronts() {
    std::vector<StagedFront> fronts(out_.shapes.size());
    for (std::size_t k = 0; k < fronts.size(); ++k) {
      StagedFront& f = fronts[k];
      FrontShape& shape = out_.shapes[k];
      f.parent = s_.fronts[k].parent;
      f.size = place(static_cast<Index>(k), 0);
      f.image_begin = o_.keep_q ? 0 : r_behind() ? shape.r : f.size;
      f.image_size = f.size - f.image_begin;
      f.block_rows = shape.cb_bound;
      f.block_cols = shape.cb_bound > 0 ? shape.cols - shape.pivots : 0;
      f.rounds = courses_.of[k].rounds;
      f.late = out_.begin.empty() ? 0 : out_.begin[k];
      f.whole = courses_.of[k].whole;
    }
    return fronts;
  }

  /// Large enough that the latency of copies does not dominate.
  Index smallest_piece(const std::vector<StagedFront>& fronts, Index largest) const {
    return std::max(least_piece(fronts, o_.alignment), round_up(largest / 512, o_.alignment));
  }

  /// Rounds and addresses from staging.hpp.
  void stage() {
    const std::vector<StagedFront> fronts = staged_fronts();
    Index largest = 0;
    for (const StagedFront& f : fronts) largest = std::max(largest, f.size);
    const Index left = (o_.storage_limit - largest) / staging_buffers / o_.alignment * o_.alignment;
    const Index piece = smallest_piece(fronts, largest);
    detail::check(piece <= left, ErrorCode::invalid_argument, "storage_limit is ", o_.storage_limit,
                  ", and the least is ", largest + staging_buffers * piece);
    // at most a sixteenth of storage for buffers
    const Index wanted = round_up(std::min(o_.piece, o_.storage_limit / (16 * staging_buffers)), o_.alignment);
    Staging staging = plan_staging(
        fronts, {.limit = o_.storage_limit, .piece = std::clamp(wanted, piece, left), .alignment = o_.alignment});
    out_.begin = std::move(staging.begin);
    out_.start = std::move(staging.start);
    out_.end = std::move(staging.end);
    out_.host_shift.assign(fronts.size(), 0);
    for (std::size_t f = 0; f < fronts.size(); ++f) {
      place(static_cast<Index>(f), staging.address[f]);
      out_.shapes[f].packed = staging.block[f];
      out_.host_shift[f] = staging.image[f] - staging.address[f] - fronts[f].image_begin;
    }
    courses_.packs = std::move(staging.packs);
    courses_.unpacks = std::move(staging.unpacks);
    out_.outs = std::move(staging.outs);
    out_.ins = std::move(staging.ins);
    out_.images = std::move(staging.images);
    out_.stage = std::move(staging.stage);
    out_.storage_size = staging.storage_size;
    out_.blocks_size = staging.blocks_size;
    out_.images_size = staging.images_size;
    count_rounds(staging.rounds);
  }

  /// fronts by that round: order[first[r] .. first[r + 1] - 1], ascending
  struct ByRound {
    std::vector<Index> first, order;
  };
  ByRound sorted(const std::vector<std::int32_t>& round) const {
    ByRound by;
    by.first.assign(out_.rounds() + 1, 0);
    by.order.resize(round.size());
    for (const std::int32_t r : round) ++by.first[r + 1];
    std::partial_sum(by.first.begin(), by.first.end(), by.first.begin());
    std::vector<Index> next = by.first;
    for (std::size_t f = 0; f < round.size(); ++f) by.order[next[round[f]]++] = static_cast<Index>(f);
    return by;
  }

  /// In the order in which fronts end, so that the R of one round is contiguous.
  void place_r() {
    const ByRound by = sorted(out_.end);
    for (Index r = 0; r < out_.rounds(); ++r) {
      for (Index p = by.first[r]; p < by.first[r + 1]; ++p) {
        FrontShape& f = out_.shapes[by.order[p]];
        f.r = out_.r_size;
        out_.r_size += r_elements(f);
      }
      out_.r_final[r] = out_.r_size;
    }
  }

  void place_fronts() {
    const Index count = s_.front_count();
    const ByRound by = sorted(out_.begin);
    std::vector<Index> handle(count), size(count);
    // released after the round in which the parent is assembled
    std::vector<std::int32_t> last(count);
    for (Index f = 0; f < count; ++f) {
      const Index parent = s_.fronts[f].parent;
      last[f] = parent >= 0 ? out_.begin[parent] : out_.end[f];
    }
    const ByRound leaving = sorted(last);
    BlockPlanner memory;
    std::vector<Index> beginning;
    for (Index r = 0; r < out_.rounds(); ++r) {
      if (r > 0 && !o_.keep_q)
        for (Index p = leaving.first[r - 1]; p < leaving.first[r]; ++p) memory.give_back(handle[leaving.order[p]]);
      beginning.assign(by.order.begin() + by.first[r], by.order.begin() + by.first[r + 1]);
      for (const Index k : beginning) size[k] = place(k, 0);
      std::stable_sort(beginning.begin(), beginning.end(), [&](Index a, Index b) { return size[a] > size[b]; });
      for (const Index k : beginning) {
        handle[k] = memory.take(size[k] / o_.alignment);
        place(k, memory.address(handle[k]) * o_.alignment);
      }
    }
    out_.storage_size = memory.extent() * o_.alignment;
  }

  /// Places the front's parts from that element of storage on; returns their size.
  Index place(Index k, Index first) {
    FrontShape& f = out_.shapes[k];
    const Index narrow_size = round_up(o_.panel * f.cols, o_.alignment);
    f.matrix = first;
    f.corner = f.matrix + round_up(f.ld * all_columns(f, o_), o_.alignment);
    f.t = f.corner + narrow_size;
    const Index end = f.t + narrow_size;
    if (!r_behind()) return end - first;
    f.r = end;
    return end + round_up(r_elements(f), o_.alignment) - first;
  }

  const Symbolic& s_;
  const FrontRoundsOptions& o_;
  FrontRounds out_;
  FrontCourses courses_;
};

}  // namespace

LeastStorage least_storage(const Symbolic& symbolic, const FrontRoundsOptions& options) {
  FrontRoundsOptions limited = options;
  limited.storage_limit = std::max<Index>(options.storage_limit, 0);  // the layout depends on it
  return Planner(symbolic, limited).least();
}

FrontRounds plan_rounds(const Symbolic& symbolic, const FrontRoundsOptions& options) {
  return Planner(symbolic, options).plan();
}

}  // namespace qrane::sparse
