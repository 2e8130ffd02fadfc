// SPDX-License-Identifier: Apache-2.0
// reflect_front_lines, multiply_front_panels, update_front_lines (vocabulary/front_solve.hpp): a group per task;
// right-hand sides TC at a time, their products with V in local memory.
#define TC 16
typedef struct {
  int front, panel, part, parts;
} FrontPanelPart;

#define REFLECT                                                                                                     \
  BUFFER(shapes), BUFFER(panels), BUFFER(row_ids), BUFFER(storage), BUFFER(lines), BUFFER(products), BUFFER(tasks), \
      const int n, const int transpose

// A panel and the lines of its rows first .. last - 1.
typedef struct {
  __global const REAL *v, *t;
  __global const int* ids;
  long ld;
  int cols, height;
} ReflectPanel;

ReflectPanel panel_of(__global const FrontShape* shape, __global const FrontPanelState* panels,
                      __global const int* row_ids, __global const REAL* storage, int k, int wanted) {
  __global const FrontPanelState* state = panels + shape->panels + k;
  const int begin = k * NB, there = wanted && state->live > 0;
  ReflectPanel panel;
  panel.ld = shape->ld;
  panel.cols = there ? min(NB, shape->cols - begin) : 0;
  panel.height = there ? state->height : 0;
  panel.v = storage + shape->matrix + begin * panel.ld + state->first_row;
  panel.t = storage + shape->t + (long)begin * NB;
  panel.ids = row_ids + shape->row_ids + state->first_row;
  return panel;
}

// sum of V(i, j) C(i, c) for rows first .. last - 1
REAL product_of(const ReflectPanel* panel, int j, int first, int last, __global const REAL* lines, int n, int c) {
  __global const REAL* v = panel->v + j * panel->ld;
  REAL sum = 0;
  for (int i = first; i < last; ++i) sum = FMA(v[i], lines[(long)panel->ids[i] * n + c], sum);
  return sum;
}

// C of the rows -= V op(T) s_p, for columns c0 ..; between barriers
void subtract_product(const ReflectPanel* panel, int first, int last, int transpose, __global REAL* lines, int n,
                      int c0, __local const REAL* s_p, __local REAL* s_w) {
  FOR_EACH(e, panel->cols * TC) {
    const int i = (int)e / TC, c = (int)e % TC;
    REAL sum = 0;
    for (int j = transpose ? 0 : i; j < (transpose ? i + 1 : panel->cols); ++j)
      sum = FMA(transpose ? panel->t[j + i * NB] : panel->t[i + j * NB], s_p[j * TC + c], sum);
    s_w[e] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  FOR_EACH(e, (long)(last - first) * TC) {
    const int i = first + (int)(e / TC), c = (int)(e % TC);
    if (c0 + c < n) {
      REAL sum = 0;
      for (int j = 0; j < panel->cols; ++j) sum = FMA(panel->v[i + j * panel->ld], s_w[j * TC + c], sum);
      lines[(long)panel->ids[i] * n + c0 + c] -= sum;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

KERNEL reflect_front_lines(CONDITION, REFLECT) {
  __local REAL s_p[NB * TC], s_w[NB * TC];
  __global const FrontShape* shape = SHAPE(AT(const int, tasks)[get_group_id(0)]);
  __global REAL* lines = AT(REAL, lines);
  const int count = (shape->cols + NB - 1) / NB, wanted = WANTED;
  for (int p = 0; p < count; ++p) {
    const ReflectPanel panel = panel_of(shape, AT(const FrontPanelState, panels), AT(const int, row_ids),
                                        AT(const REAL, storage), transpose ? p : count - 1 - p, wanted);
    for (int c0 = 0; c0 < n; c0 += TC) {
      FOR_EACH(e, panel.cols * TC) {
        const int c = (int)e % TC;
        s_p[e] = c0 + c < n ? product_of(&panel, (int)e / TC, 0, panel.height, lines, n, c0 + c) : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      subtract_product(&panel, 0, panel.height, transpose, lines, n, c0, s_p, s_w);
    }
  }
}

#define PART                                                                                                        \
  const FrontPanelPart task = AT(const FrontPanelPart, tasks)[get_group_id(0)];                                     \
  const int wanted = WANTED;                                                                                        \
  const ReflectPanel panel = panel_of(SHAPE(task.front), AT(const FrontPanelState, panels), AT(const int, row_ids), \
                                      AT(const REAL, storage), task.panel, wanted);                                 \
  const int first = (int)((long)panel.height * task.part / task.parts);                                             \
  const int last = (int)((long)panel.height * (task.part + 1) / task.parts)

KERNEL multiply_front_panels(CONDITION, REFLECT) {
  PART;
  __global REAL* out = AT(REAL, products) + (long)get_group_id(0) * NB * n;
  FOR_EACH(e, (long)panel.cols * n)
  out[e] = product_of(&panel, (int)(e / n), first, last, AT(const REAL, lines), n, (int)(e % n));
}

KERNEL update_front_lines(CONDITION, REFLECT) {
  __local REAL s_p[NB * TC], s_w[NB * TC];
  PART;
  __global const REAL* parts = AT(const REAL, products) + ((long)get_group_id(0) - task.part) * NB * n;
  for (int c0 = 0; c0 < n; c0 += TC) {
    FOR_EACH(e, panel.cols * TC) {
      const int j = (int)e / TC, c = c0 + (int)e % TC;
      REAL sum = 0;
      if (c < n)
        for (int p = 0; p < task.parts; ++p) sum += parts[((long)p * NB + j) * n + c];
      s_p[e] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    subtract_product(&panel, first, last, transpose, AT(REAL, lines), n, c0, s_p, s_w);
  }
}
