// SPDX-License-Identifier: Apache-2.0
// What tuned parameters depend on besides the device: the scalar, the class of the shape, and what is kept of Q.
#pragma once

#include <qrane/qr.hpp>

namespace qrane::tuning {

/// Shapes that want the same parameters. Tall is at least four rows a column.
enum class Shape {
  narrow,  ///< tall, up to 32 columns: one panel
  skinny,  ///< tall, up to 256 columns
  tall,    ///< tall and wider
  square,  ///< fewer than four rows a column, at least one
  wide,    ///< more columns than rows
  large,   ///< square or wide, more than 8192 rows and columns
  batch    ///< several matrices, of any shape
};

struct Key {
  int scalar_bytes = 8;
  Shape shape = Shape::square;
  QForm q = QForm::implicit;
};

constexpr Shape shape_class(Index rows, Index cols, Index count) {
  if (count > 1) return Shape::batch;
  if (rows < 4 * cols && rows > 8192 && cols > 8192) return Shape::large;
  if (rows < cols) return Shape::wide;
  if (rows < 4 * cols) return Shape::square;
  return cols <= 32 ? Shape::narrow : cols <= 256 ? Shape::skinny : Shape::tall;
}

}  // namespace qrane::tuning
