// SPDX-License-Identifier: Apache-2.0
// What the kernels of frontal matrices share: descriptors, laid out as vocabulary/fronts.hpp has them, and the
// arguments that it binds. NB columns of a panel; `whole` >= 0: tasks are a list of fronts, each with all of its
// columns, and `whole` is the panel at hand.
typedef struct {
  long matrix, corner, t, r, columns, first_row, full_slots, slots, row_ids, children, panels, first_col, packed;
  int ld, rows_bound, cols, pivots, own_rows, child_count, full_rows, cb_rows, cb_bound, r_bound;
} FrontShape;

typedef struct {
  stored_wide dropped;
  int rows, position, r_rows, cb_rows;
} FrontState;

typedef struct {
  int first_row, height, live, unused;
} FrontPanelState;

typedef struct {
  int front, panel;
} FrontPanelTask;

typedef struct {
  int front, panel, first, cols;
} FrontUpdateTask;

#define FRONTS                                                                                                         \
  BUFFER(shapes), BUFFER(children), BUFFER(row_begin), BUFFER(entry_col), BUFFER(own_column), BUFFER(parent_col),      \
      BUFFER(values), BUFFER(exponents), BUFFER(rhs), BUFFER(states), BUFFER(panels), BUFFER(stair), BUFFER(own_slot), \
      BUFFER(cb_slot), BUFFER(row_ids), BUFFER(pivot), BUFFER(storage), BUFFER(r), const long rhs_ld,                  \
      const int rhs_cols, const stored_wide tolerance, const int scaled_tolerance
#define SHAPE(front) (AT(const FrontShape, shapes) + (front))
#define STATE(front) (AT(FrontState, states) + (front))
#define PANEL(shape, k) (AT(FrontPanelState, panels) + (shape)->panels + (k))
#define MATRIX_COLUMN(shape, j) (AT(REAL, storage) + (shape)->matrix + (long)(j) * (shape)->ld)
