// SPDX-License-Identifier: Apache-2.0
// The matrices of an update: A and b as they were, what comes in or goes out, and both as they are after it. All of
// them seeded, in device memory.
#pragma once

#include <qrane/qr.hpp>

#include "session.hpp"

namespace qrane::bench {

/// Rows i .. i+rows-1 and columns j .. j+cols-1.
template <class T>
MatrixView<T> part_of(MatrixView<T> a, Index i, Index j, Index rows, Index cols) {
  if (a.buffer)
    a.offset += i + j * a.ld;
  else if (a.data)
    a.data += i + j * a.ld;
  a.rows = rows, a.cols = cols;
  return a;
}

inline Shape shape_after(const UpdateShape& update) {
  const Shape s = update.shape;
  switch (update.change) {
    case Change::insert_rows: return {s.rows + update.p, s.cols};
    case Change::delete_rows: return {s.rows - update.p, s.cols};
    case Change::insert_columns: return {s.rows, s.cols + update.p};
    default: return {s.rows, s.cols - update.p};
  }
}

/// R alone does not carry right-hand sides through columns that come in, not even on the way back.
inline bool carries_right_hand_side(const UpdateShape& update) {
  return update.form != QForm::none || update.change == Change::insert_rows || update.change == Change::delete_rows;
}

/// A with something in or out, and back again.
template <class T>
class UpdatedMatrix {
 public:
  static constexpr std::uint64_t seed = 2014;

  /// `a` and `b` (m x 1): as they were; they outlive this.
  UpdatedMatrix(const Session& session, const UpdateShape& update, const Matrix<T>& a, const Matrix<T>& b)
      : session_(session), update_(update), a_(a), b_(b) {
    const auto [m, n] = update.shape;
    const Index k = update.k, p = update.p;
    const Shape after = shape_after(update);
    const bool rows = update.change == Change::insert_rows || update.change == Change::delete_rows;
    inserting_ = update.change == Change::insert_rows || update.change == Change::insert_columns;
    if (inserting_) {
      own_block_ = session.seeded<T>(rows ? Shape{p, n} : Shape{m, p}, seed + 2);
      block_ = std::as_const(own_block_).view();
      if (rows) {
        own_entries_ = session.seeded<T>({p, 1}, seed + 3);
        entries_ = std::as_const(own_entries_).view();
      }
    } else {
      block_ = rows ? part_of(a.view(), k, 0, p, n) : part_of(a.view(), 0, k, m, p);
      if (rows) entries_ = part_of(b.view(), k, 0, p, 1);
    }
    updated_ = session.context().allocate<T>(after.rows, after.cols);
    if (rows) {
      updated_b_ = session.context().allocate<T>(after.rows, 1);
      join(a.view(), block_, updated_.view(), m);
      join(b.view(), entries_, updated_b_.view(), m);
    } else {
      join_columns(n);
    }
  }

  MatrixView<const T> after() const { return updated_.view(); }
  MatrixView<const T> b_after() const { return updated_b_.rows() > 0 ? updated_b_.view() : b_.view(); }

  /// f: of A as it was -> as it is after.
  UpdateReport forward(QR<T>& f) const {
    UpdateOptions<T> options = options_for(update_.change, after());
    options.block_cols = update_.block_cols;
    return change(f, update_.change, options);
  }

  /// The way back.
  UpdateReport back(QR<T>& f) const {
    static constexpr Change inverse[] = {Change::delete_rows, Change::insert_rows, Change::delete_columns,
                                         Change::insert_columns};
    const Change change_back = inverse[static_cast<int>(update_.change)];
    return change(f, change_back, options_for(change_back, a_.view()));
  }

 private:
  UpdateOptions<T> options_for(Change change, MatrixView<const T> as_it_will_be) const {
    UpdateOptions<T> options;
    options.updated = as_it_will_be;
    options.refresh = false;  // an update is timed, not a factorization now and then
    if (change == Change::delete_rows) options.removed = block_, options.removed_b = entries_;
    return options;
  }

  UpdateReport change(QR<T>& f, Change what, const UpdateOptions<T>& options) const {
    switch (what) {
      case Change::insert_rows: return f.insert_rows(update_.k, block_, entries_, options);
      case Change::delete_rows: return f.delete_rows(update_.k, update_.p, options);
      case Change::insert_columns: return f.insert_columns(update_.k, block_, options);
      default: return f.delete_columns(update_.k, update_.p, options);
    }
  }

  /// out := the rows of `old`, the block in between or left out.
  void join(MatrixView<const T> old, MatrixView<const T> block, MatrixView<T> out, Index m) const {
    const Index k = update_.k, p = update_.p, n = old.cols;
    copy(part_of(old, 0, 0, k, n), part_of(out, 0, 0, k, n));
    if (inserting_) {
      copy(block, part_of(out, k, 0, p, n));
      copy(part_of(old, k, 0, m - k, n), part_of(out, k + p, 0, m - k, n));
    } else {
      copy(part_of(old, k + p, 0, m - k - p, n), part_of(out, k, 0, m - k - p, n));
    }
  }

  void join_columns(Index n) {
    const Index k = update_.k, p = update_.p, m = a_.rows();
    const MatrixView<const T> old = a_.view();
    const MatrixView<T> out = updated_.view();
    copy(part_of(old, 0, 0, m, k), part_of(out, 0, 0, m, k));
    if (inserting_) {
      copy(block_, part_of(out, 0, k, m, p));
      copy(part_of(old, 0, k, m, n - k), part_of(out, 0, k + p, m, n - k));
    } else {
      copy(part_of(old, 0, k + p, m, n - k - p), part_of(out, 0, k, m, n - k - p));
    }
  }

  void copy(MatrixView<const T> from, MatrixView<T> to) const {
    if (from.rows > 0 && from.cols > 0) session_.context().template copy<T>(from, to);
  }

  const Session& session_;
  const UpdateShape& update_;
  const Matrix<T>& a_;
  const Matrix<T>& b_;
  bool inserting_ = false;
  Matrix<T> own_block_, own_entries_, updated_, updated_b_;
  MatrixView<const T> block_, entries_;
};

}  // namespace qrane::bench
