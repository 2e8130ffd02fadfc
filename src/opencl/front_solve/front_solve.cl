// SPDX-License-Identifier: Apache-2.0
// solve_front_rows, update_front_rows (vocabulary/front_solve.hpp): a group per task, a work-item per number of a line.
typedef struct {
  int front, row, rows, first, cols, unused;
} FrontBlock;

#define SOLVE                                                                                                         \
  BUFFER(shapes), BUFFER(states), BUFFER(r_begin), BUFFER(live), BUFFER(front_cols), BUFFER(r), BUFFER(x), BUFFER(y), \
      BUFFER(w), BUFFER(tasks), const int n, const int transpose

// A front as a solve sees it.
typedef struct {
  __global const FrontShape* shape;
  __global const int *live, *front_cols;  // of the front's rows of R; of its columns
  __global const REAL* r;
  int r_rows;
} SolveFront;

int has_column(const SolveFront* f, int q) { return q < f->r_rows || q >= f->shape->r_bound; }
int local_column(const SolveFront* f, int q) {
  return q < f->shape->r_bound ? f->live[q] : f->shape->pivots + q - f->shape->r_bound;
}
__global const REAL* column_of(const SolveFront* f, int q) {
  const long j = local_column(f, q), m = f->shape->r_bound, whole = min(min(j, (long)f->shape->pivots), m);
  return f->r + whole * (whole + 1) / 2 + (j - whole) * m;
}

// sum of R(row, q) x(q)[c] for columns first .. last - 1
REAL product_with_row(const SolveFront* f, int row, int first, int last, __global const REAL* x, int n, int c) {
  REAL sum = 0;
  for (int q = first; q < last; ++q)
    if (has_column(f, q)) sum = FMA(column_of(f, q)[row], x[(long)f->front_cols[local_column(f, q)] * n + c], sum);
  return sum;
}
// sum of R(i, q) y(i)[c] for rows first .. last - 1
REAL product_with_column(const SolveFront* f, int q, int first, int last, __global const REAL* y, int n, int c) {
  __global const REAL* r = column_of(f, q);
  REAL sum = 0;
  for (int i = first; i < last; ++i) sum = FMA(r[i], y[(long)i * n + c], sum);
  return sum;
}

// Lines `row` .. `row` + `rows` - 1 of y minus R's rows there times x, by columns first .. last - 1
void subtract_from_rows(const SolveFront* f, int row, int rows, int first, int last, __global const REAL* x,
                        __global REAL* y, int n) {
  FOR_EACH(e, (long)rows * n) {
    const int i = row + (int)(e / n), c = (int)(e % n);
    y[(long)i * n + c] -= product_with_row(f, i, first, last, x, n, c);
  }
}
// Lines of w of columns first .. last - 1 minus R's columns there times y, by rows `row` .. `row` + `rows` - 1
void subtract_from_columns(const SolveFront* f, int row, int rows, int first, int last, __global const REAL* y,
                           __global REAL* w, int n) {
  FOR_EACH(e, (long)(last - first) * n) {
    const int q = first + (int)(e / n), c = (int)(e % n);
    if (has_column(f, q)) w[(long)local_column(f, q) * n + c] -= product_with_column(f, q, row, row + rows, y, n, c);
  }
}

#define BOUND_FRONT                                                              \
  const FrontBlock task = AT(const FrontBlock, tasks)[get_group_id(0)];          \
  SolveFront front;                                                              \
  front.shape = SHAPE(task.front);                                               \
  front.live = AT(const int, live) + AT(const long, r_begin)[task.front];        \
  front.front_cols = AT(const int, front_cols) + front.shape->columns;           \
  front.r = AT(const REAL, r) + front.shape->r;                                  \
  front.r_rows = STATE(task.front)->r_rows;                                      \
  const int rows = WANTED ? max(min(task.rows, front.r_rows - task.row), 0) : 0; \
  const int cols = rows > 0 ? task.cols : 0;                                     \
  __global REAL* y = AT(REAL, y) + AT(const long, r_begin)[task.front] * n;      \
  __global REAL* x = AT(REAL, x);                                                \
  __global REAL* w = AT(REAL, w) + front.shape->columns * n

KERNEL update_front_rows(CONDITION, SOLVE) {
  BOUND_FRONT;
  if (transpose)
    subtract_from_columns(&front, task.row, rows, task.first, task.first + cols, y, w, n);
  else
    subtract_from_rows(&front, task.row, rows, task.first, task.first + cols, x, y, n);
}

KERNEL solve_front_rows(CONDITION, SOLVE) {
  BOUND_FRONT;
  if (transpose) {
    FOR_EACH(e, (long)rows * n) {
      const int row = task.row + (int)(e / n), c = (int)(e % n);
      y[(long)row * n + c] = w[(long)local_column(&front, row) * n + c];
    }
  } else {
    subtract_from_rows(&front, task.row, rows, task.first, task.first + cols, x, y, n);
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int step = 0; step < rows; ++step) {
    const int k = task.row + (transpose ? step : rows - 1 - step);
    const REAL diagonal = column_of(&front, k)[k];
    FOR_EACH(c, n) y[(long)k * n + c] /= diagonal;
    barrier(CLK_GLOBAL_MEM_FENCE);
    FOR_EACH(e, (long)(rows - 1 - step) * n) {
      const int i = transpose ? k + 1 + (int)(e / n) : task.row + (int)(e / n), c = (int)(e % n);
      const REAL r = transpose ? column_of(&front, i)[k] : column_of(&front, k)[i];
      y[(long)i * n + c] -= r * y[(long)k * n + c];
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (transpose) {
    subtract_from_columns(&front, task.row, rows, task.first, task.first + cols, y, w, n);
  } else {
    FOR_EACH(e, (long)rows * n) {
      const int row = task.row + (int)(e / n), c = (int)(e % n);
      x[(long)front.front_cols[local_column(&front, row)] * n + c] = y[(long)row * n + c];
    }
  }
}
