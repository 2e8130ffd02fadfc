// SPDX-License-Identifier: Apache-2.0
// Library products: gemm.cl and gemm_core.cl in their three typings, trsm.cl and sketch.cl.
#include <algorithm>

#include "opencl/queue/scalar.hpp"
#include "opencl/whole.hpp"

namespace qrane::backend::opencl {

namespace {

// Types of one typing of gemm.cl: operands, result, and what products and sums are made in.
struct Typing {
  const char* a;
  const char* b;
  const char* c;
  const char* load_b;
  const char* load_c;
  const char* store_c;
  const char* accumulate;
  int accumulate_bytes;
};

template <class T>
Typing plain_typing() {
  return {type_name<T>, type_name<T>, type_name<T>, "(x)", "(x)", "(x)", type_name<T>, sizeof(T)};
}

template <class T>
Typing gram_typing(const Device& device) {
  return {type_name<T>, type_name<T>,   "stored_wide", "(x)",
          "to_wide(x)", "from_wide(x)", "wide",        device.has_double() ? 8 : 4};
}

template <class T>
Typing wide_typing(const Device& device) {
  return {type_name<T>, "stored_wide", type_name<T>, "to_wide(x)", "(x)", "(x)", "wide", device.has_double() ? 8 : 4};
}

struct Product {
  Index m, n, depth, count;
  bool transpose_a, transpose_b, upper;
  double alpha, beta;
};

// A side of a group in work-items: 16 on a GPU, less where the result or the device is small.
int tile_side(const Device& device, Index m, Index n) {
  int side = device.is_gpu() ? 16 : 8;
  if (!device.is_gpu() && device.work_group(64) == 64) return side;  // one program is enough on a CPU
  while (side > 2 && (side * side > device.work_group(256) || (side > 4 && 2 * side >= std::max(m, n)))) side /= 2;
  return side;
}

// A device that is no GPU runs a group on one core; gemm_core.cl is for that.
bool on_one_core(const Device& device, const Product& p) {
  return !device.is_gpu() && !(p.transpose_a && p.transpose_b) && device.has_double();
}

constexpr Index core_cols = 48, core_step = 256;  // TILES_N and STEP of gemm_core.cl; 256 rows of 192 doubles: 384 KiB

// Tiles of the result, each for one group.
Index tile_count(const Device& device, const Product& p) {
  if (on_one_core(device, p)) {
    const Index rows = p.transpose_a ? p.m : core_step;
    return (p.m + rows - 1) / rows * ((p.n + core_cols - 1) / core_cols) * p.count;
  }
  const Index tile = 4 * tile_side(device, p.m, p.n);
  return (p.m + tile - 1) / tile * ((p.n + tile - 1) / tile) * p.count;
}

// Inner chunks that fill the device when the result has few tiles; at least 512 deep.
Index chunk_count(const Device& device, const Product& p) {
  const bool core = on_one_core(device, p);
  if (core && !p.transpose_a) return 1;
  const Index wanted = (core ? 16 : device.is_gpu() ? 4 : 2) * device.compute_units();
  return std::clamp<Index>(wanted / std::max<Index>(1, tile_count(device, p)), 1, std::max<Index>(1, p.depth / 512));
}

Defines typing_defines(const Typing& typing, bool core) {
  // vectors are made of the names of the types
  const auto plain = [&](const char* type) {
    return core && typing.accumulate_bytes == 8 && *type != 'f' ? "double" : type;
  };
  return {{"A_TYPE", plain(typing.a)},    {"B_TYPE", plain(typing.b)},      {"C_TYPE", plain(typing.c)},
          {"LOAD_A(x)", "(x)"},           {"LOAD_B(x)", typing.load_b},     {"LOAD_C(x)", typing.load_c},
          {"STORE_C(x)", typing.store_c}, {"ACC", plain(typing.accumulate)}};
}

template <class T, class TA, class TB, class TC>
void run_product(Device& device, Pointer<std::int32_t> condition, const Typing& typing, const Product& p,
                 const DeviceMatrix<OpenCL, TA>& a, const DeviceMatrix<OpenCL, TB>& b,
                 const DeviceMatrix<OpenCL, TC>& c, Scratch<OpenCL> scratch) {
  if (p.m == 0 || p.n == 0 || p.count == 0) return;
  const bool core = on_one_core(device, p);
  const int side = tile_side(device, p.m, p.n), work_group = core ? 1 : side * side;
  Defines defines = real_defines<T>(work_group);
  for (auto& define : typing_defines(typing, core)) defines.push_back(std::move(define));
  const auto define = [&](const char* name, Index value) { defines.emplace_back(name, std::to_string(value)); };
  if (core) {
    defines.emplace_back("A_SPACE", "__global");
    define("LANES", 32 / typing.accumulate_bytes);
    define("TILES_N", core_cols);
    define("STEP", core_step);
  } else {
    define("G", side);
    define("KC", 16);
  }
  const Index result_bytes = p.m * p.n * p.count * typing.accumulate_bytes;
  const Index chunks = std::max<Index>(1, std::min(chunk_count(device, p), scratch.bytes / result_bytes));
  const Index chunk_depth = ((p.depth + chunks - 1) / chunks + 15) / 16 * 16;
  const Index groups = tile_count(device, p) * chunks;
  const auto launch = [&](auto alpha, auto beta) {
    const int upper = p.upper, transpose_a = p.transpose_a, transpose_b = p.transpose_b;
    if (!core)
      device.launch(device.kernel({"gemm.cl"}, "gemm", defines), groups, work_group, condition, a, b, c, scratch.data,
                    p.m, p.n, p.depth, alpha, beta, transpose_a, transpose_b, chunks, chunk_depth, upper);
    else if (p.transpose_a)
      device.launch(device.kernel({"dots_core.cl", "gemm_core.cl"}, "gemm_dots", defines), groups, work_group,
                    condition, a, b, c, scratch.data, p.m, p.n, p.depth, alpha, beta, chunks, chunk_depth, upper);
    else
      device.launch(device.kernel({"dots_core.cl", "gemm_core.cl"}, "gemm_columns", defines), groups, work_group,
                    condition, a, b, c, p.m, p.n, p.depth, alpha, beta, transpose_b);
    if (chunks == 1) return;
    const int sum_group = device.work_group(64), lanes = strip_lanes(p.m, sum_group);
    Defines sum_defines = real_defines<T>(sum_group);
    for (auto& define : typing_defines(typing, false)) sum_defines.push_back(std::move(define));
    device.launch(device.kernel({"sum_chunks.cl"}, "sum_chunks", sum_defines),
                  strip_groups(strip_count(p.m, p.n, p.count, lanes, sum_group)), sum_group, condition, scratch.data, c,
                  p.m, p.n, p.count, lanes, alpha, beta, chunks, upper);
  };
  if (typing.accumulate_bytes == 8)
    launch(p.alpha, p.beta);
  else
    launch(static_cast<float>(p.alpha), static_cast<float>(p.beta));
}

}  // namespace

template <class T>
void gemm(const Queue& queue, Op op_a, Op op_b, T alpha, const Mat<T>& a, const Mat<T>& b, T beta, const Mat<T>& c) {
  check_scalar<T>(queue.device());
  const Index depth = op_a == Op::none ? a.cols : a.rows;
  const Product product{c.rows,
                        c.cols,
                        alpha == T(0) ? 0 : depth,
                        c.count,
                        op_a == Op::transpose,
                        op_b == Op::transpose,
                        false,
                        static_cast<double>(alpha),
                        static_cast<double>(beta)};
  Scratch<OpenCL> scratch;
  if (chunk_count(queue.device(), product) > 1) {
    const std::int64_t partial_bytes = std::min(std::int64_t{32} << 20, queue.device().limit_bytes() / 16);
    scratch.data = {queue.device().partials(partial_bytes, scratch.bytes), 0};
  }
  run_product<T>(queue.device(), queue.condition(), plain_typing<T>(), product, a, b, c, scratch);
}

template <class T>
void gram(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Scratch<OpenCL>& scratch) {
  check_scalar<T>(queue.device());
  const Product product{a.cols, a.cols, a.rows, 1, true, false, true, 1, 0};
  run_product<T>(queue.device(), queue.condition(), gram_typing<T>(queue.device()), product, a, a, w, scratch);
}

template <class T>
void multiply_wide(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q, const Scratch<OpenCL>&) {
  check_scalar<T>(queue.device());
  const Product product{q.rows, q.cols, a.cols, 1, false, false, false, 1, 0};
  run_product<T>(queue.device(), queue.condition(), wide_typing<T>(queue.device()), product, a, w, q,
                 Scratch<OpenCL>{});
}

template <class T>
void apply_sketch(const Queue& queue, const Mat<T>& a, const Mat<T>& s) {
  check_scalar<T>(queue.device());
  const Index elements = s.rows * s.cols;
  if (elements == 0) return;
  const int work_group = queue.device().work_group(64);
  queue.device().launch(queue.device().kernel({"sketch.cl"}, "sketch", real_defines<T>(work_group)),
                        (elements + work_group - 1) / work_group, work_group, queue.condition(), a, s, a.rows, s.rows,
                        elements);
}

namespace {
constexpr int solve_rows = 32;  // NB of trsm.cl

template <class T>
void solve_block(const Queue& queue, const Mat<T>& triangle, const Mat<T>& b, bool forward, bool transposed,
                 Diagonal diagonal, Side side, T alpha) {
  const int work_group = queue.device().work_group(32);
  Defines defines = real_defines<T>(work_group);
  const int rows_limit =
      sizeof(T) * solve_rows * (solve_rows + work_group + 2) <= std::size_t(queue.device().local_bytes())
          ? solve_rows
          : solve_rows / 2;
  defines.emplace_back("NB", std::to_string(rows_limit));
  const Index columns = side == Side::left ? b.cols : b.rows;
  queue.device().launch(queue.device().kernel({"trsm.cl"}, "solve_block", defines),
                        (columns + work_group - 1) / work_group * b.count, work_group, queue.condition(), triangle, b,
                        static_cast<int>(triangle.rows), columns, static_cast<int>(forward),
                        static_cast<int>(transposed), static_cast<int>(diagonal == Diagonal::unit),
                        static_cast<int>(side == Side::right), alpha);
}

}  // namespace

// Blocks of the triangle in the order of substitution: solve one, take it out of all that follow. From the
// right, X op(A) = B is op(A)^T X^T = B^T: the same with A transposed once more and B read along its rows.
template <class T>
void trsm(const Queue& queue, Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, const Mat<T>& a,
          const Mat<T>& b) {
  check_scalar<T>(queue.device());
  const Index n = a.rows;
  if (n == 0 || b.rows == 0 || b.cols == 0) return;
  const bool left = side == Side::left;
  const bool transposed = (op == Op::transpose) == left;
  const bool forward = (triangle == Triangle::lower) != transposed;
  const int step = sizeof(T) * solve_rows * (solve_rows + queue.device().work_group(32) + 2) <=
                           std::size_t(queue.device().local_bytes())
                       ? solve_rows
                       : solve_rows / 2;
  const Index blocks = (n + step - 1) / step;
  for (Index s = 0; s < blocks; ++s) {
    const Index i0 = (forward ? s : blocks - 1 - s) * step, rows = std::min<Index>(step, n - i0);
    const T scale = s == 0 ? alpha : T(1);
    const Mat<T> solved = left ? b.block(i0, 0, rows, b.cols) : b.block(0, i0, b.rows, rows);
    solve_block(queue, a.block(i0, i0, rows, rows), solved, forward, transposed, diagonal, side, scale);
    const Index rest0 = forward ? i0 + rows : 0, rest = forward ? n - rest0 : i0;
    if (rest == 0) continue;
    // The part of A that couples the solved block with the rest, as it lies.
    const bool below = triangle == Triangle::lower;
    const bool rest_is_rows = forward == below;
    const Mat<T> coupling = rest_is_rows ? a.block(rest0, i0, rest, rows) : a.block(i0, rest0, rows, rest);
    if (left)
      gemm(queue, op, Op::none, T(-1), coupling, solved, scale, b.block(rest0, 0, rest, b.cols));
    else
      gemm(queue, Op::none, op, T(-1), solved, coupling, scale, b.block(0, rest0, b.rows, rest));
  }
}

#define QRANE_INSTANTIATE(T)                                                                                           \
  template void gemm(const Queue&, Op, Op, T, const Mat<T>&, const Mat<T>&, T, const Mat<T>&);                         \
  template void trsm(const Queue&, Side, Triangle, Op, Diagonal, T, const Mat<T>&, const Mat<T>&);                     \
  template void gram(const Queue&, const Mat<T>&, const Mat<double>&, const Scratch<OpenCL>&);                         \
  template void multiply_wide(const Queue&, const Mat<T>&, const Mat<double>&, const Mat<T>&, const Scratch<OpenCL>&); \
  template void apply_sketch(const Queue&, const Mat<T>&, const Mat<T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::opencl
