// SPDX-License-Identifier: Apache-2.0
// Right-hand sides on a device as lines, their numbers for one row side by side, so that index lists pick whole lines
// (vocabulary/front_solve.hpp): between users' matrices and a group's, and what needs no factors. For device/solve.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <qrane/sparse_qr.hpp>

#include "dense/buffer.hpp"
#include "dense/transfer.hpp"
#include "sparse/solve.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceLines {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  explicit DeviceLines(const Queue& queue) : queue_(queue) {}

  /// A user's matrix as lines: where it is, if that is device memory, else a copy.
  class User {
   public:
    User(DeviceLines& lines, MatrixView<const T> view) : lines_(lines) {
      backend::DeviceMatrix<B, T> m;
      if (dense::is_resident<B>(view)) {
        m = dense::as_device<B>(view);
      } else {
        copy_.emplace(lines.queue_, view.rows, view.cols);
        m = copy_->matrix;
        dense::load<B, T>(lines.queue_, view, m);
      }
      const bool row_major = !copy_ && view.layout == Layout::row_major;
      data = m.data;
      line = row_major ? m.ld : 1;
      step = row_major ? 1 : m.ld;
    }
    void store(MatrixView<T> view) const {
      if (copy_) dense::store<B, T>(lines_.queue_, copy_->matrix, view);
    }
    Pointer<T> data{};
    Index line = 0, step = 0;

   private:
    DeviceLines& lines_;
    std::optional<dense::Temporary<B, T>> copy_;
  };

  /// A result: in device memory, and then where the right-hand side is.
  class Output {
   public:
    Output(DeviceLines& lines, Index rows, Index cols, Memory where)
        : lines_(lines), where_(where), matrix_(dense::device_matrix<B, T>(lines.queue_, rows, cols)) {}
    User columns(Index first, Index cols) { return User(lines_, columns_of(matrix_.view(), first, cols)); }
    Matrix<T> finish() {
      if (where_ == Memory::device) return std::move(matrix_);
      return dense::export_matrix<B, T>(lines_.queue_, dense::as_device<B>(matrix_.view()), where_);
    }

   private:
    DeviceLines& lines_;
    Memory where_;
    Matrix<T> matrix_;
  };

  /// Lines of a group of right-hand sides.
  struct GroupLines {
    Index rows = 0, x = 0, y = 0, z = 0, w = 0, total = 0, products = 0;
  };
  struct Group {
    Group(DeviceLines& lines, Index columns, const GroupLines& count) : cols(columns) {
      dense::Carver<B> counting;
      carve(counting, count);
      memory = dense::Buffer<B>(lines.queue_, counting.used());
      dense::Carver<B> carver(memory.template as<std::byte>());
      carve(carver, count);
    }
    void carve(dense::Carver<B>& carver, const GroupLines& count) {
      rows = carver.template take<T>(backend::elements_of<T>(count.rows, cols));
      partials = carver.template take<double>(backend::elements_of<double>(2 * norm_parts, cols));
      x = carver.template take<T>(backend::elements_of<T>(count.x, cols));
      y = carver.template take<T>(backend::elements_of<T>(count.y, cols));
      z = carver.template take<T>(backend::elements_of<T>(count.z, cols));
      w = carver.template take<T>(backend::elements_of<T>(count.w, cols));
      total = carver.template take<T>(backend::elements_of<T>(count.total, cols));
      products = carver.template take<T>(backend::elements_of<T>(count.products, cols));
    }
    Index cols;
    dense::Buffer<B> memory;
    Pointer<T> rows{}, x{}, y{}, z{}, w{}, total{}, products{};
    Pointer<double> partials{};
  };

  /// target line k := the user's line list[k] or, `identity`: the other way round, target line list[k] := line k.
  void take(const User& user, const Pointer<std::int32_t>& list, const Pointer<T>& target, Index count,
            const Group& group, bool scattered = false, const Pointer<std::int32_t>& exponents = {}) {
    copy_lines(queue_, backend::CopyLines<B, T>{.source = user.data,
                                                .target = target,
                                                .source_index = scattered ? Pointer<std::int32_t>{} : list,
                                                .target_index = scattered ? list : Pointer<std::int32_t>{},
                                                .exponents = exponents,
                                                .source_line = user.line,
                                                .source_step = user.step,
                                                .target_line = group.cols,
                                                .count = count,
                                                .cols = static_cast<std::int32_t>(group.cols)});
  }
  /// The user's line list[k] := line k or, `gathered`, line k := line list[k].
  void give(const Pointer<T>& source, Index count, const Group& group, const User& user,
            const Pointer<std::int32_t>& list, bool gathered, const Pointer<std::int32_t>& exponents = {}) {
    copy_lines(queue_, backend::CopyLines<B, T>{.source = source,
                                                .target = user.data,
                                                .source_index = gathered ? list : Pointer<std::int32_t>{},
                                                .target_index = gathered ? Pointer<std::int32_t>{} : list,
                                                .exponents = exponents,
                                                .source_line = group.cols,
                                                .target_line = user.line,
                                                .target_step = user.step,
                                                .count = count,
                                                .cols = static_cast<std::int32_t>(group.cols)});
  }
  void copy_by(const Pointer<T>& source, const Pointer<std::int32_t>& source_index, const Pointer<T>& target,
               const Pointer<std::int32_t>& target_index, Index count, const Group& group, bool add = false) {
    copy_lines(queue_, backend::CopyLines<B, T>{.source = source,
                                                .target = target,
                                                .source_index = source_index,
                                                .target_index = target_index,
                                                .source_line = group.cols,
                                                .target_line = group.cols,
                                                .count = count,
                                                .cols = static_cast<std::int32_t>(group.cols),
                                                .add = add});
  }
  void zero(const Pointer<T>& lines, Index count, const Group& group) {
    const Index size = count * group.cols;
    if (size > 0) fill(queue_, backend::DeviceMatrix<B, T>{lines, size, 1, size, 0, 1}, T(0), T(0));
  }

  void sum(backend::SumLines<B, T> task, const Group& group) {
    task.cols = static_cast<std::int32_t>(group.cols);
    if (task.count > 0) sum_lines(queue_, task);
  }

  void add_norms(const Pointer<T>& lines, Index count, const Pointer<std::int32_t>& exponents, const Group& group,
                 Solution<T>& solution) {
    backend::NormLines<B, T> task{.lines = lines,
                                  .exponents = exponents,
                                  .partials = group.partials,
                                  .count = count,
                                  .cols = static_cast<std::int32_t>(group.cols),
                                  .sign = -1,
                                  .parts = static_cast<std::int32_t>(norm_parts)};
    norm_lines(queue_, task);
    std::vector<double> partials(2 * norm_parts * group.cols);
    queue_.download(group.partials, partials.data(), static_cast<Index>(partials.size()));
    for (Index c = 0; c < group.cols; ++c) {
      long double squares = 0;
      for (Index p = 0; p < norm_parts; ++p) {
        const double* const pair = partials.data() + 2 * (p * group.cols + c);
        squares += static_cast<long double>(pair[0]) * pair[0] * pair[1];
      }
      solution.residual_norms.push_back(static_cast<double>(std::sqrt(squares)));
    }
  }

 protected:
  Queue queue_;

 private:
  static constexpr Index norm_parts = 128;  // of the lines whose norms are taken
};

}  // namespace qrane::sparse
