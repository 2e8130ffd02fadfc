// SPDX-License-Identifier: Apache-2.0
// lay_out_fronts, assemble_fronts, finish_fronts (vocabulary/fronts.hpp): a group per front, or per share of its
// columns.

typedef struct {
  int front, part, parts, unused;
} FrontShare;

FrontShare share_of(__global const char* tasks, int whole) {
  FrontShare share;
  if (whole < 0) {
    share = ((__global const FrontShare*)tasks)[get_group_id(0)];
  } else {
    share.front = ((__global const int*)tasks)[get_group_id(0)];
    share.part = 0;
    share.parts = 1;
  }
  return share;
}

// A column's elements of R: above its panel's first row in the matrix, from there on in the corner.
typedef struct {
  __global const REAL *above, *below;
  int border;
} RColumn;
#define R_AT(column, i) ((i) < (column).border ? (column).above[i] : (column).below[i])

RColumn r_column(__global const REAL* storage, __global const FrontPanelState* panels, __global const FrontShape* shape,
                 int j) {
  RColumn column;
  column.border = panels[shape->panels + j / NB].first_row;
  column.above = storage + shape->matrix + (long)j * shape->ld;
  column.below = storage + shape->corner + (long)j * NB - column.border;
  return column;
}

// Elements of packed columns before column j: column k has min(k + 1, bound).
long packed_before(long j, long bound) {
  const long full = min(j, bound);
  return full * (full + 1) / 2 + (j - full) * bound;
}

// First of rows r .. end - 1 whose column is not r's; columns ascend.
int end_of_run(__global const int* own_column, int r, int end) {
  const int column = own_column[r];
  int low = r + 1, high = end;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (own_column[middle] == column)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
int begin_of_run(__global const int* own_column, int r) {
  const int column = own_column[r];
  int low = 0, high = r;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (own_column[middle] == column)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// A counting sort of the rows by leftmost column. Of one child no two rows begin in the same column: children come one
// after the other, and their rows at once.
KERNEL lay_out_fronts(CONDITION, FRONTS, BUFFER(list)) {
  __local int s_sum[WG], s_rows;
  const int id = (int)get_local_id(0), front = AT(const int, list)[get_group_id(0)];
  __global const FrontShape* shape = SHAPE(front);
  const bool wanted = WANTED;
  const int cols = wanted ? shape->cols : 0, own_rows = wanted ? shape->own_rows : 0;
  const int child_count = wanted ? shape->child_count : 0;
  __global int* stair = AT(int, stair) + shape->columns;
  __global const int* own_column = AT(const int, own_column) + shape->first_row;
  __global int* ids = AT(int, row_ids) + shape->row_ids;

  FOR_EACH(j, cols) stair[j] = 0;
  barrier(CLK_GLOBAL_MEM_FENCE);
  FOR_EACH(r, own_rows)
  if (r == 0 || own_column[r - 1] != own_column[r])
    stair[own_column[r]] = end_of_run(own_column, (int)r, own_rows) - (int)r;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int c = 0; c < child_count; ++c) {
    const int number = AT(const int, children)[shape->children + c];
    __global const int* first = AT(const int, parent_col) + SHAPE(number)->columns + SHAPE(number)->pivots;
    FOR_EACH(i, STATE(number)->cb_rows) stair[first[i]] += 1;
    barrier(CLK_GLOBAL_MEM_FENCE);
  }

  // stair[j]: where the rows that begin in column j begin
  const int chunk = (cols + WG - 1) / WG, from = min(cols, id * chunk), to = min(cols, from + chunk);
  int sum = 0;
  for (int j = from; j < to; ++j) sum += stair[j];
  s_sum[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id == 0) {
    int before = 0;
    for (int k = 0; k < WG; ++k) {
      const int count = s_sum[k];
      s_sum[k] = before;
      before += count;
    }
    s_rows = before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int next = s_sum[id];
  for (int j = from; j < to; ++j) {
    const int count = stair[j];
    stair[j] = next;
    next += count;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);

  // and, once they are placed, where they end
  FOR_EACH(r, own_rows) {
    const int slot = stair[own_column[r]] + (int)r - begin_of_run(own_column, (int)r);
    AT(int, own_slot)[shape->first_row + r] = slot;
    ids[slot] = (int)(shape->first_row + r);
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  FOR_EACH(r, own_rows)
  if (r == 0 || own_column[r - 1] != own_column[r])
    stair[own_column[r]] += end_of_run(own_column, (int)r, own_rows) - (int)r;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int c = 0; c < child_count; ++c) {
    const int number = AT(const int, children)[shape->children + c];
    __global const FrontShape* child = SHAPE(number);
    __global const int* first = AT(const int, parent_col) + child->columns + child->pivots;
    __global const int* child_ids = AT(const int, row_ids) + child->row_ids + STATE(number)->r_rows;
    FOR_EACH(i, STATE(number)->cb_rows) {
      const int slot = stair[first[i]];
      stair[first[i]] = slot + 1;
      AT(int, cb_slot)[child->slots + i] = slot;
      ids[slot] = child_ids[i];
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (id == 0 && wanted) {
    FrontState state;
    state.dropped = from_wide(0);
    state.rows = s_rows;
    state.position = state.r_rows = state.cb_rows = 0;
    *STATE(front) = state;
  }
}

KERNEL assemble_fronts(CONDITION, FRONTS, BUFFER(tasks), const int whole) {
  const FrontShare share = share_of(AT(const char, tasks), whole);
  __global const FrontShape* shape = SHAPE(share.front);
  const bool wanted = WANTED;
  const int cols = shape->cols, all = wanted ? cols + rhs_cols : 0, rows = STATE(share.front)->rows;
  const int first = (int)((long)all * share.part / share.parts),
            last = (int)((long)all * (share.part + 1) / share.parts);
  __global const int* ids = AT(const int, row_ids) + shape->row_ids;

  for (int j = first; j < last; ++j) {
    __global REAL* column = MATRIX_COLUMN(shape, j);
    FOR_EACH(i, rows) {
      REAL value = 0;
      if (j >= cols) value = AT(const REAL, rhs)[ids[i] + (long)(j - cols) * rhs_ld];
      column[i] = value;
    }
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  FOR_EACH(k, wanted ? shape->own_rows : 0) {
    const long row = shape->first_row + k, end = AT(const long, row_begin)[row + 1];
    const int slot = AT(const int, own_slot)[row];
    for (long p = AT(const long, row_begin)[row]; p < end; ++p) {
      const int j = AT(const int, entry_col)[p];
      if (j >= first && j < last) MATRIX_COLUMN(shape, j)[slot] = AT(const REAL, values)[p];
    }
  }
  for (int c = 0; c < (wanted ? shape->child_count : 0); ++c) {
    const int number = AT(const int, children)[shape->children + c];
    __global const FrontShape* child = SHAPE(number);
    __global const int* parent = AT(const int, parent_col) + child->columns;
    __global const int* slots = AT(const int, cb_slot) + child->slots;
    const long packed = child->packed;
    const int r_rows = packed > 0 ? 0 : STATE(number)->r_rows, cb_rows = packed < 0 ? 0 : STATE(number)->cb_rows;
    for (int j = child->pivots; j < child->cols; ++j) {
      const int target = parent[j], count = target >= first && target < last ? min(j - child->pivots + 1, cb_rows) : 0;
      RColumn column = r_column(AT(const REAL, storage), AT(const FrontPanelState, panels), child, j);
      if (packed > 0) {
        column.above = AT(const REAL, storage) + packed + packed_before(j - child->pivots, child->cb_bound);
        column.border = cb_rows;
      }
      FOR_EACH(i, count) MATRIX_COLUMN(shape, target)[slots[i]] = R_AT(column, r_rows + i);
    }
  }
}

KERNEL finish_fronts(CONDITION, FRONTS, BUFFER(tasks), const int whole) {
  const FrontShare share = share_of(AT(const char, tasks), whole);
  __global const FrontShape* shape = SHAPE(share.front);
  __global FrontState* state = STATE(share.front);
  const bool wanted = WANTED;
  const int cols = shape->cols, pivots = shape->pivots, rows = state->rows, r_rows = state->r_rows;
  const int all = wanted ? cols + rhs_cols : 0;
  const int first = (int)((long)all * share.part / share.parts),
            last = (int)((long)all * (share.part + 1) / share.parts);
  __global const int* pivot = AT(const int, pivot) + shape->columns;
  __global const int* ids = AT(const int, row_ids) + shape->row_ids;
  __global REAL* packed = AT(REAL, r) + shape->r;
  for (int j = first; j < last; ++j) {
    if (j < cols) {
      const RColumn column = r_column(AT(const REAL, storage), AT(const FrontPanelState, panels), shape, j);
      int live = r_rows;
      if (j < pivots) {  // above the panel's first row all rows are those of live pivotal columns
        live = column.border;
        for (int k = j / NB * NB; k <= j; ++k) live += pivot[k] >= 0;
      }
      const long at = packed_before(min(j, pivots), shape->r_bound) + (long)max(j - pivots, 0) * shape->r_bound;
      FOR_EACH(i, live) packed[at + i] = R_AT(column, i);
    } else {
      FOR_EACH(i, rows) AT(REAL, rhs)[ids[i] + (long)(j - cols) * rhs_ld] = MATRIX_COLUMN(shape, j)[i];
    }
  }
  if (get_local_id(0) == 0 && share.part == 0 && wanted) state->cb_rows = min(rows - r_rows, cols - pivots);
}

typedef struct {
  int front, parent, first, cols;
  long place;
} FrontPieceTask;

KERNEL pack_fronts(CONDITION, FRONTS, BUFFER(tasks)) {
  const FrontPieceTask piece = AT(const FrontPieceTask, tasks)[get_group_id(0)];
  __global const FrontShape* shape = SHAPE(piece.front);
  const bool wanted = WANTED;
  const int r_rows = STATE(piece.front)->r_rows, cb_rows = wanted ? STATE(piece.front)->cb_rows : 0;
  const long before = packed_before(piece.first, shape->cb_bound);
  for (int j = piece.first; j < piece.first + piece.cols; ++j) {
    const RColumn column =
        r_column(AT(const REAL, storage), AT(const FrontPanelState, panels), shape, shape->pivots + j);
    __global REAL* target = AT(REAL, storage) + piece.place + packed_before(j, shape->cb_bound) - before;
    FOR_EACH(i, min(j + 1, cb_rows)) target[i] = R_AT(column, r_rows + i);
  }
}

KERNEL unpack_fronts(CONDITION, FRONTS, BUFFER(tasks)) {
  const FrontPieceTask piece = AT(const FrontPieceTask, tasks)[get_group_id(0)];
  __global const FrontShape* shape = SHAPE(piece.front);
  __global const FrontShape* parent = SHAPE(piece.parent);
  __global const int* slots = AT(const int, cb_slot) + shape->slots;
  const bool wanted = WANTED;
  const int cb_rows = wanted ? STATE(piece.front)->cb_rows : 0;
  const long before = packed_before(piece.first, shape->cb_bound);
  for (int j = piece.first; j < piece.first + piece.cols; ++j) {
    const int target = AT(const int, parent_col)[shape->columns + shape->pivots + j];
    __global const REAL* source = AT(const REAL, storage) + piece.place + packed_before(j, shape->cb_bound) - before;
    FOR_EACH(i, min(j + 1, cb_rows)) MATRIX_COLUMN(parent, target)[slots[i]] = source[i];
  }
}
