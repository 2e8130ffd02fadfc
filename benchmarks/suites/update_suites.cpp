// SPDX-License-Identifier: Apache-2.0
// The grid of `paper-updates`: figures 6 to 14 and tables 1 to 5 of Andrew, Dingle, "Implementing QR factorization
// updating algorithms on GPUs" (Parallel Computing 40, 2014), filled in where the captions name no numbers, and the
// goals for an H200. k is 0-based. Cases of one matrix and one form stand together: they share its factorization.
//
// The paper keeps the full Q where it updates Q (rows out, columns in), and R alone where it needs no Q (rows in,
// columns out). Here every point has a thin Q, too; full and implicit Q at some points of every figure.

#include "suites/suites.hpp"

namespace qrane::bench {
namespace {

const std::vector<UpdateWay> and_paper = {UpdateWay::automatic, UpdateWay::paper};
const std::vector<UpdateWay> both_papers = {UpdateWay::automatic, UpdateWay::paper, UpdateWay::paper_dense};

class Grid {
 public:
  /// One point; the paper's protocol at every thin (columns in, rows out) or R-only one (rows in, columns out).
  UpdateShape& add(const std::string& figure, Change change, Shape shape, Index k, Index p, QForm form = QForm::thin) {
    const bool needs_q = change == Change::delete_rows || change == Change::insert_columns;
    UpdateShape point{.figure = figure, .change = change, .shape = shape, .k = k, .p = p, .form = form};
    point.paper_protocol = figure.starts_with("figure") && form == (needs_q ? QForm::thin : QForm::none);
    points_.push_back(point);
    return points_.back();
  }

  std::vector<UpdateShape> points() && { return std::move(points_); }

 private:
  std::vector<UpdateShape> points_;
};

void add_goals(Grid& grid) {
  const auto five = [&](Shape shape, QForm form) {
    const Index n = shape.cols, p = 32;
    grid.add("goal", Change::insert_rows, shape, 0, p, form);
    grid.add("goal", Change::delete_rows, shape, shape.rows / 2, p, form);
    grid.add("goal", Change::insert_columns, shape, n, p, form);
    grid.add("goal", Change::insert_columns, shape, n / 2, p, form);
    grid.add("goal", Change::delete_columns, shape, n / 2, p, form);
  };
  five({100'000, 1000}, QForm::thin);
  grid.add("goal", Change::delete_rows, {100'000, 1000}, 0, 12'500);
  five({100'000, 1000}, QForm::none);
  five({100'000, 4000}, QForm::thin);
  for (const QForm form : {QForm::none, QForm::thin}) {
    UpdateShape& window = grid.add("sliding window", Change::insert_rows, {4096, 64}, 0, 1, form);
    window.kind = UpdateKind::window;
  }
}

/// Rows in at the end and out at the front, columns out at the front, of 1,000 small matrices in one call.
void add_batches(Grid& grid, Index count, const std::vector<Shape>& shapes) {
  for (const Shape shape : shapes)
    for (const QForm form : {QForm::none, QForm::thin})
      for (const Change change : {Change::insert_rows, Change::delete_rows, Change::delete_columns}) {
        UpdateShape& point =
            grid.add("batches", change, shape, change == Change::insert_rows ? shape.rows : 0, 4, form);
        point.kind = UpdateKind::batch;
        point.count = count;
      }
}

void add_columns_in(Grid& grid) {
  for (const Index m : {4000, 8000, 12'000, 16'000})
    for (const Index k : {0, 1000, 2000, 2900, 3000}) {
      UpdateShape& point = grid.add("figure 6", Change::insert_columns, {m, 3000}, k, 200);
      if (m == 8000 && k % 1000 == 0) point.ways = both_papers;
    }
  for (const Index m : {8000, 12'000, 16'000})
    for (const Index k : {0, 2000, 4000, 6000}) grid.add("figure 7", Change::insert_columns, {m, 6000}, k, 200);
  for (const Index m : {8000, 16'000})
    for (const Index p : {20, 100, 200, 500, 1000, 2000}) {
      UpdateShape& point = grid.add("figure 8", Change::insert_columns, {m, 3000}, 2980, p);
      if (m == 8000) point.ways = and_paper;
    }
  for (const QForm form : {QForm::full, QForm::implicit}) {
    for (const Index k : {0, 1500, 3000}) grid.add("figure 6", Change::insert_columns, {8000, 3000}, k, 200, form);
    for (const Index k : {0, 6000}) grid.add("figure 7", Change::insert_columns, {8000, 6000}, k, 200, form);
  }
  for (const Index k : {500, 5500}) {
    UpdateShape& point = grid.add("table 2", Change::insert_columns, {16'000, 6000}, k, 200);
    point.ways = {UpdateWay::paper};
    point.stages = true;
    point.paper_protocol = true;
    point.precision = "f32";
  }
}

void add_columns_out(Grid& grid) {
  for (const QForm form : {QForm::none, QForm::thin}) {
    for (const Index m : {4000, 8000, 12'000, 16'000})
      for (const Index k : {0, 1500, 2800}) {
        UpdateShape& point = grid.add("figure 9", Change::delete_columns, {m, 3000}, k, 200, form);
        if (m == 8000) point.ways = and_paper;
      }
    for (const Index p : {200, 1000, 2000})
      for (const Index k : {0, 2000, 4000}) grid.add("figure 10", Change::delete_columns, {8000, 6000}, k, p, form);
  }
  for (const QForm form : {QForm::full, QForm::implicit})
    for (const Index k : {0, 1500, 2800}) grid.add("figure 9", Change::delete_columns, {8000, 3000}, k, 200, form);
}

void add_rows_in(Grid& grid) {
  for (const QForm form : {QForm::none, QForm::thin}) {
    for (const Index m : {1000, 2000, 4000, 8000, 16'000}) {
      UpdateShape& point = grid.add("figure 11", Change::insert_rows, {m, 1000}, 0, 200, form);
      if (m == 8000) point.ways = both_papers;
    }
    for (const Index m : {3000, 4000, 8000, 12'000, 16'000})
      grid.add("figure 11", Change::insert_rows, {m, 3000}, 0, 200, form);
    for (Index n = 1000; n <= 7000; n += form == QForm::none ? 1000 : 2000)
      for (const Index p : {200, 1500}) grid.add("figure 12", Change::insert_rows, {8000, n}, 0, p, form);
  }
  for (const QForm form : {QForm::full, QForm::implicit})
    for (const Index n : {1000, 3000}) grid.add("figure 11", Change::insert_rows, {8000, n}, 0, 200, form);
}

void add_rows_out(Grid& grid) {
  for (const Index n : {500, 1000, 2000, 4000}) {
    // almost square: as many rows left as there are columns
    for (const Index p : {1, 100, 1000}) grid.add("figure 13", Change::delete_rows, {n + p, n}, 0, p);
    for (const Index times : {2, 4})
      for (const Index p : {1, 100, 1000}) {
        if (times * n - p < n) continue;
        UpdateShape& point = grid.add("figure 14", Change::delete_rows, {times * n, n}, 0, p);
        if (n <= 2000 && times == 4) point.ways = and_paper;
      }
  }
  for (const QForm form : {QForm::full, QForm::implicit})
    for (const Index p : {1, 100}) {
      grid.add("figure 13", Change::delete_rows, {1000 + p, 1000}, 0, p, form);
      grid.add("figure 14", Change::delete_rows, {4000, 1000}, 0, p, form);
    }
}

void add_tables(Grid& grid) {
  // 1000 reflectors in blocks of nb; the paper's caption has m and n the other way round. Up to 32 columns a block is
  // one task of the tile kernels on a GPU, beyond a factorization of its own (suite paper-windows).
  const auto sweep = [&](Change change, Shape shape, Index k, Index p) {
    for (const int nb : {10, 32, 50, 100, 200, 500}) {
      UpdateShape& point = grid.add("table 1", change, shape, k, p, QForm::none);
      point.block_cols = nb;
      point.ways = {UpdateWay::paper};
      point.precision = "f32";
    }
  };
  sweep(Change::insert_rows, {4000, 1000}, 250, 200);
  sweep(Change::delete_columns, {4000, 1200}, 0, 200);
  // Columns in: the reflectors are those of one QR of U's part beyond Q, whose blocks the library chooses: once, by
  // stages.
  UpdateShape& in = grid.add("table 1, columns in", Change::insert_columns, {4000, 1000}, 250, 1000);
  in.ways = {UpdateWay::paper};
  in.stages = true;
  in.precision = "f32";
  for (const Change change : {Change::insert_rows, Change::delete_columns, Change::delete_rows, Change::insert_columns})
    for (const Index p : {100, 300, 500, 700, 900}) {
      UpdateShape& point = grid.add("tables 3 to 5", change, {4000, 2000}, 0, p);
      point.kind = UpdateKind::accuracy;
      point.precision = "f32";
      point.ways = and_paper;
    }
}

}  // namespace

const char* to_string(UpdateWay way) {
  return way == UpdateWay::automatic ? "automatic" : way == UpdateWay::paper ? "paper" : "paper_dense";
}

std::vector<UpdateShape> paper_updates() {
  Grid grid;
  add_goals(grid);  // first what must not fall to the limit of time
  add_batches(grid, 1000, {{64, 16}, {256, 32}, {512, 64}});
  add_tables(grid);
  add_rows_out(grid);
  add_rows_in(grid);
  add_columns_out(grid);
  add_columns_in(grid);
  return std::move(grid).points();
}

std::vector<UpdateShape> smoke_updates() {
  Grid grid;
  const Shape shape{300, 40};
  for (const QForm form : {QForm::none, QForm::thin}) {
    grid.add("figure 11", Change::insert_rows, shape, 0, 5, form);
    grid.add("figure 14", Change::delete_rows, shape, 10, 5, form);
    grid.add("figure 6", Change::insert_columns, shape, 20, 5, form);
    grid.add("figure 6", Change::insert_columns, shape, 40, 5, form);
    grid.add("figure 9", Change::delete_columns, shape, 20, 5, form);
    UpdateShape& window = grid.add("sliding window", Change::insert_rows, {100, 10}, 0, 1, form);
    window.kind = UpdateKind::window;
  }
  add_batches(grid, 20, {{40, 8}});
  UpdateShape& staged = grid.add("table 2", Change::insert_columns, shape, 10, 5);
  staged.ways = {UpdateWay::paper};
  staged.stages = staged.paper_protocol = true;
  staged.precision = "f32";
  for (const Change change :
       {Change::insert_rows, Change::delete_rows, Change::insert_columns, Change::delete_columns}) {
    UpdateShape& point = grid.add("tables 3 to 5", change, shape, 0, 7);
    point.kind = UpdateKind::accuracy;
    point.precision = "f32";
  }
  return std::move(grid).points();
}

}  // namespace qrane::bench
