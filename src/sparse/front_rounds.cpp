// SPDX-License-Identifier: Apache-2.0
#include "sparse/front_rounds.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include <qrane/error.hpp>

#include "sparse/block_planner.hpp"

namespace qrane::sparse {

namespace {

using backend::FrontShape;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }
Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
Index round_up(Index a, Index multiple) { return ceil_div(a, multiple) * multiple; }

/// Tasks of one class share launches. Of fronts: to 256 rows, 1024, 4096, ...; updates: by blocks, 1, 2, 4, ...
constexpr int classes = 6;
static_assert(backend::front_update_blocks < 1 << classes);
int height_class(Index rows) {
  const int width = std::bit_width(static_cast<std::uint64_t>(std::max<Index>(rows - 1, 0) >> 8));
  return std::min((width + 1) / 2, classes - 1);
}

/// Class of each of `strips` updates of so many rows. One or two strips are over soonest in many blocks; few sizes, for
/// each is a launch that the next panel waits for. Where there are more, a block has as many rows as make its fixed costs
/// small, and fewer where that keeps a device busy.
int update_class(Index rows, Index strips, int most_blocks) {
  const Index most_rows = strips <= 2 ? (rows <= 128 ? 128 : rows <= 512 ? rows / 4 : rows / 16)
                                      : std::clamp<Index>(rows * strips / 64, 128, 512);
  int k = 0;
  while (1 << k < most_blocks && rows >> k > most_rows) ++k;
  return k;
}

/// Of fronts done whole: sizes that a device treats differently.
int size_class(Index rows, Index elements) {
  if (rows > 128 || elements > 8192) return 3;
  return rows <= 32 && elements <= 768 ? 0 : elements <= 3072 ? 1 : 2;
}

enum class TaskList { fronts, shares, panels, updates, pieces };
TaskList list_of(FrontStep step) {
  switch (step) {
    case FrontStep::lay_out:
    case FrontStep::whole: return TaskList::fronts;
    case FrontStep::assemble:
    case FrontStep::finish: return TaskList::shares;
    case FrontStep::panel:
    case FrontStep::tail: return TaskList::panels;
    case FrontStep::pack:
    case FrontStep::unpack: return TaskList::pieces;
    default: return TaskList::updates;
  }
}

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
      for (std::size_t f = 0; f < courses_.size(); ++f)
        if (!courses_[f].whole) out_.start[f] += assembly_rounds();
      place_fronts();
    }
    if (!r_behind()) place_r();
    list_tasks();
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
  /// A front's way through the rounds.
  struct Course {
    int size = 0;  // class
    bool whole = false;
    std::int32_t live = 1;     // panels that rows may reach
    std::int32_t paired = 0;   // the first of them, that update in pairs: even
    std::int32_t rounds = 1;
    bool closes_late = false;  // in a round after the last panel's
  };

  Index columns(const FrontShape& f) const { return f.cols + o_.rhs_cols; }
  Index panels(const FrontShape& f) const { return ceil_div(f.cols, o_.panel); }
  /// Columns right of the last panel that rows reach begin here.
  Index live_end(Index f) const { return std::min<Index>(out_.shapes[at(f)].cols, courses_[at(f)].live * o_.panel); }

  static std::int32_t narrow(Index value, Index front, const char* what) {
    detail::check(value <= std::numeric_limits<std::int32_t>::max() / 2, ErrorCode::invalid_argument, "front ", front,
                  " has ", value, " ", what, ", too many for a device");
    return static_cast<std::int32_t>(value);
  }

  void shape_fronts() {
    const Index count = s_.front_count();
    narrow(count, 0, "fronts beside it");
    out_.shapes.resize(at(count));
    courses_.resize(at(count));
    for (Index k = 0; k < count; ++k) {
      const Front& front = s_.fronts[at(k)];
      FrontShape& f = out_.shapes[at(k)];
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

      Course& course = courses_[at(k)];
      const Index elements = f.rows_bound * columns(f);
      course.whole = elements <= o_.whole_elements;
      course.size = course.whole ? size_class(f.rows_bound, elements) : height_class(f.rows_bound);
      largest_[course.whole][course.size].include({f.rows_bound, static_cast<std::int32_t>(columns(f)), elements});
      if (course.whole) continue;
      // each column beyond the pivotal ones takes a row; of these any may be dropped
      const Index reached = std::min<Index>(f.cols, rows + (o_.detect_rank ? f.pivots : 0));
      course.live = static_cast<std::int32_t>(std::max<Index>(ceil_div(reached, o_.panel), 1));
      course.closes_late = columns(f) - live_end(k) > o_.update_cols;
      course.rounds = assembly_rounds() + course.live + course.closes_late;
      constexpr std::int32_t worth_pairing = 6;
      if (o_.pair_cols > 0 && f.full_rows >= o_.pair_rows && course.live >= worth_pairing)
        course.paired = (course.live - 2) / 2 * 2;  // the last updates are by single panels
    }
  }

  /// Those under a limit begin together.
  std::int32_t assembly_rounds() const { return o_.storage_limit < 0 ? 1 : 0; }

  void set_rounds() {
    const Index count = s_.front_count();
    out_.begin.assign(at(count), 0);
    out_.end.assign(at(count), 0);
    std::int32_t total = 0;
    for (Index f = 0; f < count; ++f) {  // children come before
      out_.end[at(f)] = out_.begin[at(f)] + courses_[at(f)].rounds - 1;
      total = std::max(total, out_.end[at(f)] + 1);
      if (const Index parent = s_.fronts[at(f)].parent; parent >= 0)
        out_.begin[at(parent)] = std::max(out_.begin[at(parent)], out_.end[at(f)] + 1);
    }
    if (o_.late || o_.storage_limit >= 0)  // under a limit these are priorities
      for (Index f = count - 1; f >= 0; --f) {
        const Index parent = s_.fronts[at(f)].parent;
        out_.end[at(f)] = (parent >= 0 ? out_.begin[at(parent)] : total) - 1;
        out_.begin[at(f)] = out_.end[at(f)] - courses_[at(f)].rounds + 1;
      }
    count_rounds(total);
  }
  void count_rounds(std::int32_t total) {
    out_.round_begin.assign(at(total) + 1, 0);
    out_.r_final.assign(at(total), 0);
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
      f.rounds = courses_[k].rounds;
      f.late = out_.begin.empty() ? 0 : out_.begin[k];
      f.whole = courses_[k].whole;
    }
    return fronts;
  }

  /// Not so small that copies are nothing but their beginnings.
  Index smallest_piece(const std::vector<StagedFront>& fronts, Index largest) const {
    return std::max(least_piece(fronts, o_.alignment), round_up(largest / 512, o_.alignment));
  }

  /// Where and when, by staging.hpp.
  void stage() {
    const std::vector<StagedFront> fronts = staged_fronts();
    Index largest = 0;
    for (const StagedFront& f : fronts) largest = std::max(largest, f.size);
    const Index left = (o_.storage_limit - largest) / staging_buffers / o_.alignment * o_.alignment;
    const Index piece = smallest_piece(fronts, largest);
    detail::check(piece <= left, ErrorCode::invalid_argument, "storage_limit is ", o_.storage_limit, ", and the least is ",
                  largest + staging_buffers * piece);
    // no more for buffers than a sixteenth
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
    packs_ = std::move(staging.packs);
    unpacks_ = std::move(staging.unpacks);
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
    by.first.assign(at(out_.rounds()) + 1, 0);
    by.order.resize(round.size());
    for (const std::int32_t r : round) ++by.first[at(r) + 1];
    std::partial_sum(by.first.begin(), by.first.end(), by.first.begin());
    std::vector<Index> next = by.first;
    for (std::size_t f = 0; f < round.size(); ++f) by.order[at(next[at(round[f])]++)] = static_cast<Index>(f);
    return by;
  }

  /// In the order in which fronts end, so that what a round leaves of R is in one piece.
  void place_r() {
    const ByRound by = sorted(out_.end);
    for (Index r = 0; r < out_.rounds(); ++r) {
      for (Index p = by.first[at(r)]; p < by.first[at(r + 1)]; ++p) {
        FrontShape& f = out_.shapes[at(by.order[at(p)])];
        f.r = out_.r_size;
        out_.r_size += r_elements(f);
      }
      out_.r_final[at(r)] = out_.r_size;
    }
  }

  void place_fronts() {
    const Index count = s_.front_count();
    const ByRound by = sorted(out_.begin);
    std::vector<Index> handle(at(count)), size(at(count));
    // released after the round in which the parent is assembled
    std::vector<std::int32_t> last(at(count));
    for (Index f = 0; f < count; ++f) {
      const Index parent = s_.fronts[at(f)].parent;
      last[at(f)] = parent >= 0 ? out_.begin[at(parent)] : out_.end[at(f)];
    }
    const ByRound leaving = sorted(last);
    BlockPlanner memory;
    std::vector<Index> beginning;
    for (Index r = 0; r < out_.rounds(); ++r) {
      if (r > 0 && !o_.keep_q)
        for (Index p = leaving.first[at(r - 1)]; p < leaving.first[at(r)]; ++p)
          memory.give_back(handle[at(leaving.order[at(p)])]);
      beginning.assign(by.order.begin() + by.first[at(r)], by.order.begin() + by.first[at(r + 1)]);
      for (const Index k : beginning) size[at(k)] = place(k, 0);
      std::stable_sort(beginning.begin(), beginning.end(), [&](Index a, Index b) { return size[at(a)] > size[at(b)]; });
      for (const Index k : beginning) {
        handle[at(k)] = memory.take(size[at(k)] / o_.alignment);
        place(k, memory.address(handle[at(k)]) * o_.alignment);
      }
    }
    out_.storage_size = memory.extent() * o_.alignment;
  }

  /// The front's parts, from that element of storage on; returns their size.
  Index place(Index k, Index first) {
    FrontShape& f = out_.shapes[at(k)];
    const Index narrow_size = round_up(o_.panel * f.cols, o_.alignment);
    f.matrix = first;
    f.corner = f.matrix + round_up(f.ld * columns(f), o_.alignment);
    f.t = f.corner + narrow_size;
    const Index end = f.t + narrow_size;
    if (!r_behind()) return end - first;
    f.r = end;
    return end + round_up(r_elements(f), o_.alignment) - first;
  }

  /// Rows that panel p has with full rank.
  Index full_height(Index k, Index p) const {
    const FrontShape& f = out_.shapes[at(k)];
    const Index first = std::min<Index>(p * o_.panel, f.full_rows), last = std::min<Index>((p + 1) * o_.panel, f.cols);
    return std::min<Index>(f.full_rows, std::max(s_.stair[at(f.columns + last - 1)], last)) - first;
  }

  /// visit(round, step, class, task) for every task, fronts ascending.
  template <class Visit>
  void for_tasks(Index k, Visit visit) const {
    const FrontShape& f = out_.shapes[at(k)];
    const Course& course = courses_[at(k)];
    const auto front = static_cast<std::int32_t>(k);
    const std::int32_t begin = out_.begin[at(k)], start = out_.start[at(k)];
    if (course.whole) {
      visit(begin, FrontStep::whole, course.size, front);
      return;
    }
    const auto share = [&](std::int32_t round, FrontStep step) {
      // each share looks through all children
      const Index elements = o_.share_elements * std::clamp<Index>(f.child_count / 64, 1, 8);
      const Index parts = std::clamp<Index>(ceil_div(f.rows_bound * columns(f), elements), 1, columns(f));
      for (Index p = 0; p < parts; ++p)
        visit(round, step, course.size,
              backend::FrontShare{front, static_cast<std::int32_t>(p), static_cast<std::int32_t>(parts), 0});
    };
    const auto update = [&](std::int32_t round, FrontStep step, std::int32_t panel, Index first, Index last) {
      const Index cols = step == FrontStep::pair ? o_.pair_cols : o_.update_cols;
      const int share = update_class(full_height(k, panel), ceil_div(last - first, cols), o_.update_blocks);
      for (; first < last; first += cols)
        visit(round, step, share,
              backend::FrontUpdateTask{front, panel, static_cast<std::int32_t>(first),
                                       static_cast<std::int32_t>(std::min(cols, last - first))});
    };
    visit(begin, FrontStep::lay_out, course.size, front);
    share(begin, FrontStep::assemble);
    for (std::int32_t p = 0; p < course.live; ++p) {
      const std::int32_t round = start + p;
      const auto panel_begin = [&](std::int32_t panel) { return std::min<Index>(panel * o_.panel, f.cols); };
      if (p > 0 && p <= course.paired) {
        const bool second = p % 2 == 1;
        update(round, FrontStep::narrow, p - 1, panel_begin(p), panel_begin(second ? p + 2 : p + 1));
        if (p > 1) {
          const std::int32_t k = p - 2 - second;
          const Index first = panel_begin(k + 3), strips = ceil_div(columns(f) - first, o_.pair_cols);
          const Index half = p < course.paired ? std::min(first + (strips + 1) / 2 * o_.pair_cols, columns(f)) : columns(f);
          update(round, FrontStep::pair, k, second ? half : first, second ? columns(f) : half);
        }
      } else if (p > 0) {
        const bool all = p == course.live - 1 && !course.closes_late;
        const Index first = p * o_.panel, last = all ? columns(f) : std::min<Index>(first + o_.panel, f.cols);
        update(round, FrontStep::narrow, p - 1, first, last);
        update(round, FrontStep::wide, p - 1, last, columns(f));
      }
      visit(round, FrontStep::panel, course.size, backend::FrontPanelTask{front, p});
    }
    const std::int32_t end = out_.end[at(k)];
    update(end, FrontStep::closing, course.live - 1, live_end(k), columns(f));
    for (std::int32_t p = course.live; p < panels(f); ++p)
      visit(end, FrontStep::tail, course.size, backend::FrontPanelTask{front, p});
    share(end, FrontStep::finish);
  }

  /// The same for pieces of contribution blocks.
  template <class Visit>
  void for_pieces(Visit visit) const {
    const auto shares = [&](const std::vector<StagedPiece>& pieces, FrontStep step) {
      for (const StagedPiece& piece : pieces) {
        const Index rows = out_.shapes[at(piece.front)].cb_bound;
        const Index before = packed_front_block(piece.first, rows), last = piece.first + piece.cols;
        for (Index first = piece.first, next = first; first < last; first = next) {
          const Index begin = packed_front_block(first, rows);
          for (++next; next < last && packed_front_block(next + 1, rows) - begin <= o_.share_elements;) ++next;
          visit(piece.round, step, piece.front,
                backend::FrontPieceTask{static_cast<std::int32_t>(piece.front),
                                        static_cast<std::int32_t>(s_.fronts[at(piece.front)].parent),
                                        static_cast<std::int32_t>(first), static_cast<std::int32_t>(next - first),
                                        piece.place + begin - before});
        }
      }
    };
    shares(packs_, FrontStep::pack);
    shares(unpacks_, FrontStep::unpack);
  }

  /// What begins a front is one launch for all classes.
  static bool is_common(FrontStep step) { return step == FrontStep::lay_out || step == FrontStep::assemble; }
  static Index bucket(std::int32_t round, FrontStep step, int its_class) {
    return (static_cast<Index>(round) * front_steps + static_cast<Index>(step)) * classes + classes - 1 -
           (is_common(step) ? 0 : its_class);
  }

  /// Sorted by round, step, and class, the highest first.
  void list_tasks() {
    std::vector<Index> next(at(out_.rounds() * front_steps * classes), 0);
    std::vector<FrontLaunch> launches(next.size());
    for (Index f = 0; f < s_.front_count(); ++f)
      for_tasks(f, [&](std::int32_t round, FrontStep step, int its_class, const auto&) {
        ++launches[at(bucket(round, step, its_class))].count;
      });
    for_pieces([&](std::int32_t round, FrontStep step, Index front, const auto&) {
      ++launches[at(bucket(round, step, courses_[at(front)].size))].count;
    });
    Largest largest_of_all;
    for (const Largest& of_class : largest_[false]) largest_of_all.include(of_class);
    Index size[5] = {};
    for (Index r = 0; r < out_.rounds(); ++r) {
      for (int step = 0; step < front_steps; ++step)
        for (int its_class = is_common(static_cast<FrontStep>(step)) ? 0 : classes - 1; its_class >= 0; --its_class) {
          const Index b = bucket(static_cast<std::int32_t>(r), static_cast<FrontStep>(step), its_class);
          FrontLaunch& launch = launches[at(b)];
          if (launch.count == 0) continue;
          launch.step = static_cast<FrontStep>(step);
          const TaskList list = list_of(launch.step);
          if (list == TaskList::updates) launch.blocks = 1 << its_class;
          Largest largest = list == TaskList::updates || is_common(launch.step)
                                ? largest_of_all
                                : largest_[launch.step == FrontStep::whole][its_class];
          if (list == TaskList::pieces) largest.include(largest_[true][its_class]);
          launch.max_rows = largest.rows;
          launch.max_cols = largest.cols;
          launch.max_elements = largest.elements;
          Index& end = size[static_cast<int>(list)];
          next[at(b)] = launch.first = end;
          end += launch.count;
          out_.launches.push_back(launch);
        }
      out_.round_begin[at(r) + 1] = static_cast<Index>(out_.launches.size());
    }
    out_.lists.resize(at(size[static_cast<int>(TaskList::fronts)]));
    out_.shares.resize(at(size[static_cast<int>(TaskList::shares)]));
    out_.panels.resize(at(size[static_cast<int>(TaskList::panels)]));
    out_.updates.resize(at(size[static_cast<int>(TaskList::updates)]));
    out_.pieces.resize(at(size[static_cast<int>(TaskList::pieces)]));
    for (Index f = 0; f < s_.front_count(); ++f)
      for_tasks(f, [&](std::int32_t round, FrontStep step, int its_class, const auto& task) {
        target(task)[at(next[at(bucket(round, step, its_class))]++)] = task;
      });
    for_pieces([&](std::int32_t round, FrontStep step, Index front, const backend::FrontPieceTask& task) {
      out_.pieces[at(next[at(bucket(round, step, courses_[at(front)].size))]++)] = task;
    });
  }
  std::vector<std::int32_t>& target(std::int32_t) { return out_.lists; }
  std::vector<backend::FrontShare>& target(const backend::FrontShare&) { return out_.shares; }
  std::vector<backend::FrontPanelTask>& target(const backend::FrontPanelTask&) { return out_.panels; }
  std::vector<backend::FrontUpdateTask>& target(const backend::FrontUpdateTask&) { return out_.updates; }

  const Symbolic& s_;
  const FrontRoundsOptions& o_;
  FrontRounds out_;
  std::vector<StagedPiece> packs_, unpacks_;
  std::vector<Course> courses_;
  struct Largest {
    std::int32_t rows = 0, cols = 0;
    Index elements = 0;
    void include(const Largest& other) {
      elements = std::max(elements, other.elements);
      rows = std::max(rows, other.rows);
      cols = std::max(cols, other.cols);
    }
  } largest_[2][classes];  // of fronts by steps, of whole ones
};

}  // namespace

LeastStorage least_storage(const Symbolic& symbolic, const FrontRoundsOptions& options) {
  FrontRoundsOptions limited = options;
  limited.storage_limit = std::max<Index>(options.storage_limit, 0);  // what is placed differs
  return Planner(symbolic, limited).least();
}

FrontRounds plan_rounds(const Symbolic& symbolic, const FrontRoundsOptions& options) {
  return Planner(symbolic, options).plan();
}

}  // namespace qrane::sparse
