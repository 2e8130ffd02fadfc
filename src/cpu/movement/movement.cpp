// SPDX-License-Identifier: Apache-2.0
// Copies, conversions and reductions on the CPU.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

constexpr Index chunk_elements = 1 << 15;  // one partial sum each: the same partition for any number of threads

/// Combines term(element) over row chunks in parallel, then over the chunks in order.
template <class T, class Term, class Combine>
double reduce(const DeviceMatrix<Cpu, T>& a, ThreadPool& workers, Term term, Combine combine) {
  const Index per_column = std::max<Index>(1, (a.rows + chunk_elements - 1) / chunk_elements);
  std::vector<double> partial(static_cast<std::size_t>(per_column * a.cols), 0.0);
  workers.run(per_column * a.cols, a.rows * a.cols, [&](Index k, int) {
    const T* column = a.data + k / per_column * a.ld;
    const Index first = (k % per_column) * chunk_elements;
    double sum = 0;
    for (Index i = first; i < std::min(a.rows, first + chunk_elements); ++i)
      sum = combine(sum, term(static_cast<double>(column[i])));
    partial[static_cast<std::size_t>(k)] = sum;
  });
  double total = 0;
  for (double p : partial) total = combine(total, p);
  return total;
}

/// body(matrix of the batch, first column, last column): all columns, about chunk_elements at a time.
template <class T>
void for_columns(const DeviceMatrix<Cpu, T>& a, ThreadPool& workers,
                 const std::function<void(Index, Index, Index)>& body) {
  const Index at_once = std::max<Index>(1, chunk_elements / std::max<Index>(a.rows, 1));
  const Index groups = (a.cols + at_once - 1) / at_once;
  workers.run(groups * a.count, a.rows * a.cols * a.count, [&](Index k, int) {
    const Index first = k % groups * at_once;
    body(k / groups, first, std::min(a.cols, first + at_once));
  });
}

double add(double a, double b) { return a + b; }
double larger_or_nan(double a, double b) { return (a != a || a > b) ? a : b; }

}  // namespace

template <class T>
void copy(const Queue& queue, const Mat<T>& a, const Mat<T>& c, Part part) {
  if (queue.skip()) return;
  for_columns(a, queue.workers(), [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      const Index diagonal = std::min(j, a.rows);
      const Index below = std::min(j + 1, a.rows);
      switch (part) {
        case Part::all: std::copy(x, x + a.rows, y); break;
        case Part::upper_only: std::copy(x, x + below, y); break;
        case Part::upper:
          std::copy(x, x + below, y);
          std::fill(y + below, y + a.rows, T(0));
          break;
        case Part::unit_lower:
          std::fill(y, y + diagonal, T(0));
          if (j < a.rows) y[j] = T(1);
          std::copy(x + below, x + a.rows, y + below);
          break;
      }
    }
  });
}

template <class T>
void transpose(const Queue& queue, const Mat<T>& a, const Mat<T>& c) {
  if (queue.skip()) return;
  constexpr Index tile = 32;
  const Index row_tiles = (a.rows + tile - 1) / tile;
  queue.workers().run(a.count * row_tiles, a.count * a.rows * a.cols, [&](Index k, int) {
    const T* x = a.data + k / row_tiles * a.stride;
    T* y = c.data + k / row_tiles * c.stride;
    const Index first = k % row_tiles * tile, last = std::min(a.rows, first + tile);
    for (Index j0 = 0; j0 < a.cols; j0 += tile)
      for (Index i = first; i < last; ++i)
        for (Index j = j0; j < std::min(a.cols, j0 + tile); ++j) y[j + i * c.ld] = x[i + j * a.ld];
  });
}

template <class T>
void copy_rows(const Queue& queue, const Mat<T>& source, std::int64_t* sources, const Mat<T>& c, std::int64_t* targets,
               Index count) {
  if (queue.skip()) return;
  Mat<T> a = source;
  a.rows = count;  // as much work as a copy of that many rows
  for_columns(a, queue.workers(), [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      for (Index i = 0; i < count; ++i) y[targets ? targets[i] : i] = x[sources ? sources[i] : i];
    }
  });
}

template <class T>
void fill(const Queue& queue, const Mat<T>& a, T off_diagonal, T diagonal) {
  if (queue.skip()) return;
  for_columns(a, queue.workers(), [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      T* x = a.data + b * a.stride + j * a.ld;
      std::fill(x, x + a.rows, off_diagonal);
      if (j < a.rows) x[j] = diagonal;
    }
  });
}

void set_flags(const Queue& queue, std::int32_t* flags, Index count, std::int32_t value) {
  if (!queue.skip()) std::fill_n(flags, count, value);
}

template <class T>
void narrow(const Queue& queue, const Mat<double>& a, const Mat<T>& c, Part part) {
  if (queue.skip()) return;
  for (Index b = 0; b < a.count; ++b) {
    for (Index j = 0; j < a.cols; ++j) {
      const double* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      for (Index i = 0; i < a.rows; ++i) {
        const bool take = part == Part::all || (part == Part::unit_lower ? i > j : i <= j);
        if (take) {
          y[i] = static_cast<T>(x[i]);
        } else if (part != Part::upper_only) {
          y[i] = T(part == Part::unit_lower && i == j ? 1 : 0);
        }
      }
    }
  }
}

template <class T>
void widen(const Queue& queue, const Mat<T>& a, const Mat<double>& c) {
  if (queue.skip()) return;
  for_columns(a, queue.workers(), [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      std::copy(x, x + a.rows, c.data + b * c.stride + j * c.ld);
    }
  });
}

template <class T>
void sum_squares(const Queue& queue, const Mat<T>& a, double* result, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  *result = reduce(
      a, queue.workers(), [](double x) { return x * x; }, add);
}
template <class T>
void sum_abs(const Queue& queue, const Mat<T>& a, double* result, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  *result = reduce(
      a, queue.workers(), [](double x) { return std::abs(x); }, add);
}
template <class T>
void max_abs(const Queue& queue, const Mat<T>& a, double* result, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  *result = reduce(
      a, queue.workers(), [](double x) { return std::abs(x); }, larger_or_nan);
}

template <class T>
void first_not_finite(const Queue& queue, const Mat<T>& a, std::int64_t* row_col, const Scratch<Cpu>&) {
  if (queue.skip()) return;
  row_col[0] = row_col[1] = -1;
  for (Index j = 0; j < a.cols; ++j) {
    const T* x = a.data + j * a.ld;
    for (Index i = 0; i < a.rows; ++i) {
      if (std::isfinite(x[i])) continue;
      row_col[0] = i;
      row_col[1] = j;
      return;
    }
  }
}

#define QRANE_INSTANTIATE(T)                                                                                \
  template void copy(const Queue&, const Mat<T>&, const Mat<T>&, Part);                                     \
  template void transpose(const Queue&, const Mat<T>&, const Mat<T>&);                                      \
  template void copy_rows(const Queue&, const Mat<T>&, std::int64_t*, const Mat<T>&, std::int64_t*, Index); \
  template void fill(const Queue&, const Mat<T>&, T, T);                                                    \
  template void narrow(const Queue&, const Mat<double>&, const Mat<T>&, Part);                              \
  template void widen(const Queue&, const Mat<T>&, const Mat<double>&);                                     \
  template void sum_squares(const Queue&, const Mat<T>&, double*, const Scratch<Cpu>&);                     \
  template void sum_abs(const Queue&, const Mat<T>&, double*, const Scratch<Cpu>&);                         \
  template void max_abs(const Queue&, const Mat<T>&, double*, const Scratch<Cpu>&);                         \
  template void first_not_finite(const Queue&, const Mat<T>&, std::int64_t*, const Scratch<Cpu>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
