// SPDX-License-Identifier: Apache-2.0
// What the tile kernels share: the task descriptor, laid out as vocabulary/panels.hpp has it.
typedef struct {
  long row;
  long t;
  int matrix, rows, stride, col, cols;
} BlockTask;

// A block is `heads` groups of rows. Contiguous blocks are one head; in a tree each head is a triangle.
// TREE is 0 or 1, and local row i of head h lies at row h * head_step + i of the matrix, from task.row on.
#if TREE
#define HEADS(task) (task).rows
#define HEAD_ROWS(task) (task).cols
#else
#define HEADS(task) 1
#define HEAD_ROWS(task) (task).rows
#endif
