// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/front_tasks.hpp"

#include <algorithm>
#include <bit>

namespace qrane::sparse {

namespace {

using backend::FrontShape;

static_assert(backend::front_update_blocks == 1 << (front_classes - 2));  // one more class, for tall panels

Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

/// Class of each of `strips` updates of so many rows. One or two strips are fastest in many blocks; there are few
/// classes because each is a launch that the next panel waits for. With more strips a block has enough rows to make its
/// fixed costs small, and fewer if the device would otherwise idle.
int update_class(Index rows, Index strips, int most_blocks) {
  const Index most_rows = strips <= 2 ? (rows <= 128   ? 128
                                         : rows <= 512 ? rows / 4
                                                       : rows / 16)
                                      : std::clamp<Index>(rows * strips / 64, 128, 512);
  int k = 0;
  while (1 << k < most_blocks && rows >> k > most_rows) ++k;
  return k;
}

constexpr int tall_class = front_classes - 1;

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

class TaskLister {
 public:
  TaskLister(const Symbolic& s, const FrontRoundsOptions& o, const FrontCourses& courses, FrontRounds& out)
      : s_(s), o_(o), courses_(courses), out_(out) {}

  /// Sorted by round, step, and class, the highest first.
  void list() {
    std::vector<Index> next(out_.rounds() * front_steps * front_classes, 0);
    std::vector<FrontLaunch> launches(next.size());
    for (Index f = 0; f < s_.front_count(); ++f)
      for_tasks(f, [&](std::int32_t round, FrontStep step, int its_class, const auto&) {
        ++launches[bucket(round, step, its_class)].count;
      });
    for_pieces([&](std::int32_t round, FrontStep step, Index front, const auto&) {
      ++launches[bucket(round, step, courses_.of[front].size)].count;
    });
    LargestFront largest_of_all;
    for (const LargestFront& of_class : courses_.largest[false]) largest_of_all.include(of_class);
    Index size[5] = {};
    for (Index r = 0; r < out_.rounds(); ++r) {
      for (int step = 0; step < front_steps; ++step)
        for (int its_class = is_common(static_cast<FrontStep>(step)) ? 0 : front_classes - 1; its_class >= 0;
             --its_class) {
          const Index b = bucket(static_cast<std::int32_t>(r), static_cast<FrontStep>(step), its_class);
          FrontLaunch& launch = launches[b];
          if (launch.count == 0) continue;
          launch.step = static_cast<FrontStep>(step);
          const TaskList list = list_of(launch.step);
          if (list == TaskList::updates) {
            launch.tall = its_class == tall_class;
            launch.blocks = launch.tall ? o_.update_blocks : 1 << its_class;
          }
          LargestFront largest = list == TaskList::updates || is_common(launch.step)
                                     ? largest_of_all
                                     : courses_.largest[launch.step == FrontStep::whole][its_class];
          if (list == TaskList::pieces) largest.include(courses_.largest[true][its_class]);
          launch.max_rows = largest.rows;
          launch.max_cols = largest.cols;
          launch.max_elements = largest.elements;
          Index& end = size[static_cast<int>(list)];
          next[b] = launch.first = end;
          end += launch.count;
          out_.launches.push_back(launch);
        }
      out_.round_begin[r + 1] = static_cast<Index>(out_.launches.size());
    }
    out_.lists.resize(size[static_cast<int>(TaskList::fronts)]);
    out_.shares.resize(size[static_cast<int>(TaskList::shares)]);
    out_.panels.resize(size[static_cast<int>(TaskList::panels)]);
    out_.updates.resize(size[static_cast<int>(TaskList::updates)]);
    out_.pieces.resize(size[static_cast<int>(TaskList::pieces)]);
    for (Index f = 0; f < s_.front_count(); ++f)
      for_tasks(f, [&](std::int32_t round, FrontStep step, int its_class, const auto& task) {
        target(task)[next[bucket(round, step, its_class)]++] = task;
      });
    for_pieces([&](std::int32_t round, FrontStep step, Index front, const backend::FrontPieceTask& task) {
      out_.pieces[next[bucket(round, step, courses_.of[front].size)]++] = task;
    });
  }

 private:
  /// Rows of panel p at full rank.
  Index full_height(Index k, Index p) const {
    const FrontShape& f = out_.shapes[k];
    const Index first = std::min<Index>(p * o_.panel, f.full_rows), last = std::min<Index>((p + 1) * o_.panel, f.cols);
    return std::min<Index>(f.full_rows, std::max(s_.stair[f.columns + last - 1], last)) - first;
  }

  /// visit(round, step, class, task) for every task, fronts ascending.
  template <class Visit>
  void for_tasks(Index k, Visit visit) const {
    const FrontShape& f = out_.shapes[k];
    const FrontCourse& course = courses_.of[k];
    const auto front = static_cast<std::int32_t>(k);
    const std::int32_t begin = out_.begin[k], start = out_.start[k];
    if (course.whole) {
      visit(begin, FrontStep::whole, course.size, front);
      return;
    }
    const auto share = [&](std::int32_t round, FrontStep step) {
      // each share goes through all children
      const Index elements = o_.share_elements * std::clamp<Index>(f.child_count / 64, 1, 8);
      const Index cols = all_columns(f, o_),
                  parts = std::clamp<Index>(ceil_div(f.rows_bound * cols, elements), 1, cols);
      for (Index p = 0; p < parts; ++p)
        visit(round, step, course.size,
              backend::FrontShare{front, static_cast<std::int32_t>(p), static_cast<std::int32_t>(parts), 0});
    };
    const auto update = [&](std::int32_t round, FrontStep step, std::int32_t panel, Index first, Index last) {
      const Index cols = step == FrontStep::pair ? o_.pair_cols : o_.update_cols;
      const Index rows = full_height(k, panel);
      const bool urgent = step == FrontStep::narrow || step == FrontStep::closing;
      const int share =
          urgent && rows > tall_rows ? tall_class : update_class(rows, ceil_div(last - first, cols), o_.update_blocks);
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
          const Index first = panel_begin(k + 3), strips = ceil_div(all_columns(f, o_) - first, o_.pair_cols);
          const Index end = all_columns(f, o_);
          const Index half = p < course.paired ? std::min(first + (strips + 1) / 2 * o_.pair_cols, end) : end;
          update(round, FrontStep::pair, k, second ? half : first, second ? all_columns(f, o_) : half);
        }
      } else if (p > 0) {
        const bool all = p == course.live - 1 && !course.closes_late;
        const Index first = p * o_.panel, last = all ? all_columns(f, o_) : std::min<Index>(first + o_.panel, f.cols);
        update(round, FrontStep::narrow, p - 1, first, last);
        update(round, FrontStep::trailing, p - 1, last, all_columns(f, o_));
      }
      visit(round, FrontStep::panel, course.size, backend::FrontPanelTask{front, p});
    }
    const std::int32_t end = out_.end[k];
    update(end, FrontStep::closing, course.live - 1, course.live_cols, all_columns(f, o_));
    for (std::int32_t p = course.live; p < ceil_div(f.cols, o_.panel); ++p)
      visit(end, FrontStep::tail, course.size, backend::FrontPanelTask{front, p});
    share(end, FrontStep::finish);
  }

  /// The same for pieces of contribution blocks.
  template <class Visit>
  void for_pieces(Visit visit) const {
    const auto shares = [&](const std::vector<StagedPiece>& pieces, FrontStep step) {
      for (const StagedPiece& piece : pieces) {
        const Index rows = out_.shapes[piece.front].cb_bound;
        const Index before = packed_front_block(piece.first, rows), last = piece.first + piece.cols;
        for (Index first = piece.first, next = first; first < last; first = next) {
          const Index begin = packed_front_block(first, rows);
          for (++next; next < last && packed_front_block(next + 1, rows) - begin <= o_.share_elements;) ++next;
          visit(piece.round, step, piece.front,
                backend::FrontPieceTask{static_cast<std::int32_t>(piece.front),
                                        static_cast<std::int32_t>(s_.fronts[piece.front].parent),
                                        static_cast<std::int32_t>(first), static_cast<std::int32_t>(next - first),
                                        piece.place + begin - before});
        }
      }
    };
    shares(courses_.packs, FrontStep::pack);
    shares(courses_.unpacks, FrontStep::unpack);
  }

  /// Layout and assembly are one launch for all classes.
  static bool is_common(FrontStep step) { return step == FrontStep::lay_out || step == FrontStep::assemble; }
  static Index bucket(std::int32_t round, FrontStep step, int its_class) {
    return (static_cast<Index>(round) * front_steps + static_cast<Index>(step)) * front_classes + front_classes - 1 -
           (is_common(step) ? 0 : its_class);
  }

  std::vector<std::int32_t>& target(std::int32_t) { return out_.lists; }
  std::vector<backend::FrontShare>& target(const backend::FrontShare&) { return out_.shares; }
  std::vector<backend::FrontPanelTask>& target(const backend::FrontPanelTask&) { return out_.panels; }
  std::vector<backend::FrontUpdateTask>& target(const backend::FrontUpdateTask&) { return out_.updates; }

  const Symbolic& s_;
  const FrontRoundsOptions& o_;
  const FrontCourses& courses_;
  FrontRounds& out_;
};

}  // namespace

int height_class(Index rows) {
  const int width = std::bit_width(static_cast<std::uint64_t>(std::max<Index>(rows - 1, 0) >> 8));
  return std::min((width + 1) / 2, front_classes - 1);
}

int size_class(Index rows, Index elements) {
  if (rows > 128 || elements > 8192) return 3;
  return rows <= 32 && elements <= 768 ? 0 : elements <= 3072 ? 1 : 2;
}

void list_tasks(const Symbolic& symbolic, const FrontRoundsOptions& options, const FrontCourses& courses,
                FrontRounds& plan) {
  TaskLister(symbolic, options, courses, plan).list();
}

}  // namespace qrane::sparse
