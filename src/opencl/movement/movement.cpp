// SPDX-License-Identifier: Apache-2.0
// Copies, conversions and reductions on OpenCL devices.
#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

template <class S, class T>
void convert(const Queue& queue, const Mat<S>& source, const Mat<T>& target, Part part) {
  using Real = std::conditional_t<std::is_same_v<S, T>, T, float>;
  const int work_group = queue.device().work_group(64);
  const auto stored = [&](bool wide) { return wide ? "stored_wide" : type_name<Real>; };
  constexpr bool widens = !std::is_same_v<S, T> && std::is_same_v<T, double>;
  constexpr bool narrows = !std::is_same_v<S, T> && std::is_same_v<S, double>;
  Defines defines = real_defines<Real>(work_group);
  defines.emplace_back("SOURCE", stored(narrows));
  defines.emplace_back("TARGET", stored(widens));
  defines.emplace_back("CONVERT(x)", widens ? "from_wide(x)" : narrows ? "to_wide(x)" : "(x)");
  if (!narrows && !widens) check_scalar<T>(queue.device());
  const int lanes = strip_lanes(target.rows, work_group);
  queue.device().launch(queue.device().kernel({"copy.cl"}, "copy", defines),
                        strip_groups(strip_count(target.rows, target.cols, target.count, lanes, work_group)),
                        work_group, queue.condition(), source, target, target.rows, target.cols, target.count, lanes,
                        static_cast<int>(part));
}

template <class T>
void copy(const Queue& queue, const Mat<T>& source, const Mat<T>& target, Part part) {
  convert(queue, source, target, part);
}

template <class T>
void narrow(const Queue& queue, const Mat<double>& source, const Mat<T>& target, Part part) {
  convert(queue, source, target, part);
}

template <class T>
void widen(const Queue& queue, const Mat<T>& source, const Mat<double>& target) {
  convert(queue, source, target, Part::all);
}

template <class T>
void transpose(const Queue& queue, const Mat<T>& source, const Mat<T>& target) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(256);
  const Index tiles = (source.rows + 15) / 16 * ((source.cols + 15) / 16) * source.count;
  queue.device().launch(queue.device().kernel({"transpose.cl"}, "transpose", real_defines<T>(work_group)),
                        strip_groups(tiles), work_group, queue.condition(), source, target, source.rows, source.cols,
                        source.count);
}

namespace {

// What copy.cl needs for kernels that leave the scalar as it is.
template <class T>
Defines same_scalar_defines(int work_group) {
  Defines defines = real_defines<T>(work_group);
  defines.emplace_back("SOURCE", type_name<T>);
  defines.emplace_back("TARGET", type_name<T>);
  defines.emplace_back("CONVERT(x)", "(x)");
  return defines;
}

}  // namespace

template <class T>
void copy_rows(const Queue& queue, const Mat<T>& source, Pointer<std::int64_t> sources, const Mat<T>& target,
               Pointer<std::int64_t> targets, Index count) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(64);
  const int lanes = strip_lanes(count, work_group);
  queue.device().launch(queue.device().kernel({"copy.cl"}, "copy_rows", same_scalar_defines<T>(work_group)),
                        strip_groups(strip_count(count, source.cols, source.count, lanes, work_group)), work_group,
                        queue.condition(), source, sources, target, targets, count, source.cols, source.count, lanes);
}

template <class T>
void gather_columns(const Queue& queue, const Mat<T>& source, Pointer<std::int32_t> columns, const Mat<T>& target) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(64);
  const int lanes = strip_lanes(target.rows, work_group);
  queue.device().launch(queue.device().kernel({"copy.cl"}, "gather_columns", same_scalar_defines<T>(work_group)),
                        strip_groups(strip_count(target.rows, target.cols, 1, lanes, work_group)), work_group,
                        queue.condition(), source, columns, target, target.rows, target.cols, source.cols, lanes);
}

template <class T>
void fill(const Queue& queue, const Mat<T>& a, T off_diagonal, T diagonal) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(64);
  const int lanes = strip_lanes(a.rows, work_group);
  queue.device().launch(queue.device().kernel({"copy.cl"}, "fill", same_scalar_defines<T>(work_group)),
                        strip_groups(strip_count(a.rows, a.cols, a.count, lanes, work_group)), work_group,
                        queue.condition(), a, a.rows, a.cols, a.count, lanes, off_diagonal, diagonal);
}

void set_flags(const Queue& queue, Pointer<std::int32_t> flags, Index count, std::int32_t value) {
  const int work_group = queue.device().work_group(64);
  queue.device().launch(queue.device().kernel({"copy.cl"}, "set_flags", same_scalar_defines<float>(work_group)),
                        count > 0, work_group, queue.condition(), flags, count, value);
}

namespace {

// Partial results of a reduction: as many as keep the device busy, and fit the scratch.
Index partial_count(const Device& device, Index strips, Scratch<OpenCL> scratch) {
  const Index wanted = std::min<Index>(strips, 16 * static_cast<Index>(device.compute_units()));
  return std::max<Index>(1, std::min<Index>({wanted, 4096, scratch.bytes / 8}));
}

}  // namespace

template <class T>
void reduce(const Queue& queue, Reduction kind, const Mat<T>& a, Pointer<double> result,
            const Scratch<OpenCL>& scratch) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(queue.device().is_gpu() ? 256 : 64);
  const Defines defines = real_defines<T>(work_group);
  const int lanes = strip_lanes(a.rows, work_group);
  const Index partials = partial_count(queue.device(), strip_count(a.rows, a.cols, 1, lanes, work_group), scratch);
  const Pointer<double> partial = partials > 1 ? cast_pointer<double>(scratch.data) : result;
  queue.device().launch(queue.device().kernel({"reduce.cl"}, "reduce", defines), partials, work_group,
                        queue.condition(), a, partial, a.rows, a.cols, lanes, static_cast<int>(kind));
  if (partials > 1)
    queue.device().launch(queue.device().kernel({"reduce.cl"}, "reduce_partials", defines), 1, work_group,
                          queue.condition(), partial, result, partials, static_cast<int>(kind));
}

template <class T>
void sum_squares(const Queue& queue, const Mat<T>& a, Pointer<double> result, const Scratch<OpenCL>& scratch) {
  reduce(queue, Reduction::sum_squares, a, result, scratch);
}

template <class T>
void sum_abs(const Queue& queue, const Mat<T>& a, Pointer<double> result, const Scratch<OpenCL>& scratch) {
  reduce(queue, Reduction::sum_abs, a, result, scratch);
}

template <class T>
void max_abs(const Queue& queue, const Mat<T>& a, Pointer<double> result, const Scratch<OpenCL>& scratch) {
  reduce(queue, Reduction::max_abs, a, result, scratch);
}

template <class T>
void first_not_finite(const Queue& queue, const Mat<T>& a, Pointer<std::int64_t> row_col,
                      const Scratch<OpenCL>& scratch) {
  check_scalar<T>(queue.device());
  const int work_group = queue.device().work_group(queue.device().is_gpu() ? 256 : 64);
  const Defines defines = real_defines<T>(work_group);
  const int lanes = strip_lanes(a.rows, work_group);
  const Index partials = partial_count(queue.device(), strip_count(a.rows, a.cols, 1, lanes, work_group), scratch);
  const Pointer<std::int64_t> partial = partials > 1 ? cast_pointer<std::int64_t>(scratch.data) : row_col;
  queue.device().launch(queue.device().kernel({"reduce.cl"}, "find_not_finite", defines), partials, work_group,
                        queue.condition(), a, partial, a.rows, a.cols, lanes);
  queue.device().launch(queue.device().kernel({"reduce.cl"}, "first_not_finite", defines), 1, work_group,
                        queue.condition(), partial, row_col, partials, a.rows);
}

template void copy(const Queue&, const Mat<float>&, const Mat<float>&, Part);
template void copy(const Queue&, const Mat<double>&, const Mat<double>&, Part);
template void narrow(const Queue&, const Mat<double>&, const Mat<float>&, Part);
template void narrow(const Queue&, const Mat<double>&, const Mat<double>&, Part);
template void widen(const Queue&, const Mat<float>&, const Mat<double>&);
template void widen(const Queue&, const Mat<double>&, const Mat<double>&);
template void transpose(const Queue&, const Mat<float>&, const Mat<float>&);
template void transpose(const Queue&, const Mat<double>&, const Mat<double>&);
template void copy_rows(const Queue&, const Mat<float>&, Pointer<std::int64_t>, const Mat<float>&,
                        Pointer<std::int64_t>, Index);
template void copy_rows(const Queue&, const Mat<double>&, Pointer<std::int64_t>, const Mat<double>&,
                        Pointer<std::int64_t>, Index);
template void gather_columns(const Queue&, const Mat<float>&, Pointer<std::int32_t>, const Mat<float>&);
template void gather_columns(const Queue&, const Mat<double>&, Pointer<std::int32_t>, const Mat<double>&);
template void fill(const Queue&, const Mat<float>&, float, float);
template void fill(const Queue&, const Mat<double>&, double, double);
template void sum_squares(const Queue&, const Mat<float>&, Pointer<double>, const Scratch<OpenCL>&);
template void sum_squares(const Queue&, const Mat<double>&, Pointer<double>, const Scratch<OpenCL>&);
template void sum_abs(const Queue&, const Mat<float>&, Pointer<double>, const Scratch<OpenCL>&);
template void sum_abs(const Queue&, const Mat<double>&, Pointer<double>, const Scratch<OpenCL>&);
template void max_abs(const Queue&, const Mat<float>&, Pointer<double>, const Scratch<OpenCL>&);
template void max_abs(const Queue&, const Mat<double>&, Pointer<double>, const Scratch<OpenCL>&);
template void first_not_finite(const Queue&, const Mat<float>&, Pointer<std::int64_t>, const Scratch<OpenCL>&);
template void first_not_finite(const Queue&, const Mat<double>&, Pointer<std::int64_t>, const Scratch<OpenCL>&);

}  // namespace qrane::backend::opencl
