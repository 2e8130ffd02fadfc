// SPDX-License-Identifier: Apache-2.0
// Column-pivoted QR of one matrix that is worked on whole: A P = Q R, packed as LAPACK's geqp3 packs it.
//
// exact        pivoted_factor (Businger, Golub 1965)
// randomized   blocks of b columns (Duersch, Gu, "Randomized QR with column pivoting", SISC 2017; Martinsson,
//              Quintana-Ortí, Heavner, van de Geijn, "Householder QR factorization with randomization for column
//              pivoting", SISC 2017): a seeded sketch Y = G A22 of b + 8 rows is factored with pivoting, its first b
//              pivots make the next panel, the panel is factored with pivoting among its own columns, and the rest is
//              updated by products. The sketch is taken anew for every block, so that it owes nothing to the size that
//              A had before: 2 m n (b + 8) flops a block beside the update's 4 m n b.
//
// Q = H_0 H_1 ..., H_j = I - tau_j v_j v_jᵀ. Blocks of reflectors are applied as I - V M^-1 Vᵀ with M the upper
// triangle of VᵀV whose diagonal is 1 / tau (Joffrain, Low, Quintana-Ortí, van de Geijn, Van Zee, TOMS 2006): M comes
// from one product, and no T is formed.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "dense/transfer.hpp"

namespace qrane::dense {

/// Beyond this the columns of a matrix leave the multiprocessors' memory, and the exact method waits for the device's.
constexpr Index widest_exact_pivoting = 2304;

/// The next of a sequence that is the same on every machine: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t random_bits(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

/// The memory and the steps of one pivoted factorization.
template <class B, class T>
class PivotedMatrix {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  /// Allocates for rows x cols, of which `steps` columns will be factored.
  PivotedMatrix(Queue queue, Index rows, Index cols, Index steps, bool randomized)
      : queue_(std::move(queue)), steps_(steps), randomized_(randomized) {
    Carver<B> sizes;
    carve(sizes, rows, cols);
    memory_ = Buffer<B>(queue_, sizes.used());
    Carver<B> carver(memory_.template as<std::byte>());
    carve(carver, rows, cols);
  }

  /// The matrix to be factored: to be filled before run, destroyed by it.
  const Mat& a() const { return a_; }
  /// R above and on the diagonal, reflectors below.
  const Mat& packed() const { return packed_; }

  /// tolerance is relative to |r_00|; with `truncate` the factorization ends where the diagonal falls to it.
  void run(double tolerance, bool truncate) {
    columns_.resize(static_cast<std::size_t>(a_.cols));
    std::iota(columns_.begin(), columns_.end(), std::int32_t{0});
    diagonal_.rows = -1;  // not known
    rank_ = 0;
    kept_ = 0;
    if (steps_ == 0) return;
    if (randomized_) return run_randomized(tolerance, truncate);
    factor(a_, packed_, device_columns_, inverse_tau_, steps_, tolerance, truncate);
    pending_ = true;
    truncated_ = truncate;
  }

  /// Column j of A P is column columns()[j] of A.
  const std::vector<std::int32_t>& columns() {
    fetch();
    return columns_;
  }
  Index rank() {
    fetch();
    return rank_;
  }
  /// Columns that have been factored: `steps`, or the rank of a truncated factorization.
  Index kept() {
    fetch();
    return kept_;
  }

  /// |r_00|, 0 where nothing was factored.
  double first_diagonal() { return kept() > 0 ? std::abs(diagonal()(0, 0)) : 0; }
  /// Leading diagonal elements above tolerance * |r_00|; NaN counts as above.
  Index rank_at(double tolerance) {
    const HostMatrix& d = diagonal();
    Index rank = 0;
    while (rank < d.rows && !(std::abs(d(rank, 0)) <= tolerance * std::abs(d(0, 0)))) ++rank;
    return rank;
  }

  /// C := Qᵀ C or Q C; C has A's rows.
  void apply(backend::Op op, const Mat& c) { apply_range(op, 0, kept(), c); }

 private:
  static constexpr Index block_cols = 128;   // reflectors applied together
  static constexpr Index sketch_cols = 128;  // columns of a randomized block
  static constexpr Index sketch_rows = sketch_cols + 8;

  void carve(Carver<B>& carver, Index rows, Index cols) {
    a_ = carver.template matrix<T>(rows, cols);
    packed_ = randomized_ ? a_ : carver.template matrix<T>(rows, cols);
    inverse_tau_ = carver.template take<T>(std::max<Index>(steps_, 1));
    device_columns_ = carver.template take<std::int32_t>(std::max<Index>(cols, 1));
    device_rank_ = carver.template take<std::int32_t>(1);
    v_ = carver.template matrix<T>(rows, std::min(block_cols, steps_));
    gram_ = carver.template matrix<T>(std::min(block_cols, steps_), std::min(block_cols, steps_));
    Index scratch_bytes = 0;
    const auto want = [&](Index m, Index n) {
      scratch_bytes = std::max(scratch_bytes, pivoted_factor_scratch_bytes(queue_, m, n, T{}));
    };
    if (randomized_) {
      panel_ = carver.template matrix<T>(rows, sketch_cols);
      spare_ = carver.template matrix<T>(rows, sketch_cols);
      sketch_ = carver.template matrix<T>(sketch_rows, cols);
      sketch_packed_ = carver.template matrix<T>(sketch_rows, cols);
      sketch_tau_ = carver.template take<T>(sketch_rows);
      panel_columns_ = carver.template take<std::int32_t>(sketch_cols);
      gaussian_ = carver.template matrix<T>(sketch_rows, rows);
      for (Index col = 0; col < steps_; col += sketch_cols) {  // the shape decides how columns are dealt out
        want(std::min(sketch_rows, rows - col), cols - col);
        want(rows - col, std::min(sketch_cols, steps_ - col));
      }
    } else {
      want(rows, cols);
    }
    scratch_.bytes = scratch_bytes;
    scratch_.data = carver.template take<std::byte>(scratch_bytes);
  }

  /// What run left on the device, once; waits for it.
  void fetch() {
    if (!pending_) return;
    pending_ = false;
    queue_.download(device_columns_, columns_.data(), a_.cols);
    queue_.download(device_rank_, &rank_, 1);
    kept_ = truncated_ ? Index{rank_} : steps_;
  }

  /// R's diagonal, kept x 1, on the host.
  const HostMatrix& diagonal() {
    if (diagonal_.rows == kept()) return diagonal_;
    const Temporary<B, T> row(queue_, 1, kept_);
    copy(queue_, Mat{packed_.data, 1, kept_, packed_.ld + 1, 0, 1}, row.matrix, backend::Part::all);
    diagonal_ = to_host_matrix<B, T>(queue_, Mat{row.matrix.data, kept_, 1, std::max<Index>(kept_, 1), 0, 1});
    return diagonal_;
  }

  void factor(const Mat& a, const Mat& packed, typename B::template Pointer<std::int32_t> columns,
              typename B::template Pointer<T> inverse_tau, Index steps, double tolerance, bool truncate) {
    backend::PivotedFactor<B, T> task;
    task.a = a;
    task.packed = packed;
    task.columns = columns;
    task.inverse_tau = inverse_tau;
    task.rank = device_rank_;
    task.steps = steps;
    task.tolerance = tolerance;
    task.truncate = truncate;
    pivoted_factor(queue_, task, scratch_);
  }

  /// C := op(H_first ... H_end-1) C.
  void apply_range(backend::Op op, Index first, Index end, const Mat& c) {
    using namespace backend;
    if (c.cols == 0 || end <= first) return;
    const Index blocks = (end - first + block_cols - 1) / block_cols, rows = packed_.rows;
    const Temporary<B, T> w(queue_, std::min(block_cols, end - first), c.cols);
    for (Index i = 0; i < blocks; ++i) {
      const Index col = first + (op == Op::transpose ? i : blocks - 1 - i) * block_cols,
                  n = std::min(block_cols, end - col);
      const Mat v = v_.block(0, 0, rows - col, n), m = gram_.block(0, 0, n, n),
                product = w.matrix.block(0, 0, n, c.cols);
      const Mat target = c.block(col, 0, rows - col, c.cols);
      copy(queue_, packed_.block(col, col, rows - col, n), v, Part::unit_lower);
      gemm(queue_, Op::transpose, Op::none, T(1), v, v, T(0), m);
      copy(queue_, Mat{inverse_tau_ + col, 1, n, 1, 0, 1}, Mat{m.data, 1, n, m.ld + 1, 0, 1}, Part::all);
      gemm(queue_, Op::transpose, Op::none, T(1), v, target, T(0), product);
      trsm(queue_, backend::Side::left, Triangle::upper, op, Diagonal::non_unit, T(1), m, product);
      gemm(queue_, Op::none, Op::none, T(-1), v, product, T(1), target);
    }
    queue_.synchronize();  // w goes
  }

  /// Sketch coefficients: sums of 64 random signs, near enough to normal, and small, so that no sum of theirs overflows
  /// where a norm does not; the same on every machine.
  void fill_gaussian() {
    Matrix<T> g = Matrix<T>::host(gaussian_.rows, gaussian_.cols);
    std::uint64_t state = 0;
    for (Index k = 0; k < gaussian_.rows * gaussian_.cols; ++k) {
      const std::uint64_t bits = random_bits(state);
      g.data()[k] = static_cast<T>(std::popcount(bits) - 32) / T(64);
    }
    load<B, T>(queue_, std::as_const(g).view(), gaussian_);
  }

  void run_randomized(double tolerance, bool truncate);

  /// Brings the columns that the sketch chose to the front of [col, cols), and factors them with pivoting.
  void take_panel(Index col, Index n);

  Queue queue_;
  Index steps_;
  bool randomized_;
  Buffer<B> memory_;
  Mat a_, packed_, v_, gram_, panel_, spare_, sketch_, sketch_packed_, gaussian_;
  typename B::template Pointer<T> inverse_tau_{}, sketch_tau_{};
  typename B::template Pointer<std::int32_t> device_columns_{}, device_rank_{}, panel_columns_{};
  backend::Scratch<B> scratch_;
  std::vector<std::int32_t> columns_;
  HostMatrix diagonal_;
  std::int32_t rank_ = 0;
  Index kept_ = 0;
  bool pending_ = false, truncated_ = false;
};

template <class B, class T>
void PivotedMatrix<B, T>::take_panel(Index col, Index n) {
  using namespace backend;
  const Index rows = a_.rows, left = a_.cols - col;
  const Mat whole = a_.columns(col, left), front = a_.columns(col, n), moved = panel_.columns(0, n),
            saved = spare_.columns(0, n);
  copy(queue_, front, saved, Part::all);
  gather_columns(queue_, whole, device_columns_, moved);                              // the chosen ones
  gather_columns(queue_, saved, device_columns_ + n, a_.columns(col + n, left - n));  // and those that made room
  // pivoted among themselves below row `col`; the rows above follow
  const Mat below = saved.block(0, 0, rows - col, n);
  copy(queue_, moved.block(col, 0, rows - col, n), below, Part::all);
  factor(below, front.block(col, 0, rows - col, n), panel_columns_, inverse_tau_ + col, n, 0.0, false);
  gather_columns(queue_, moved.block(0, 0, col, n), panel_columns_, front.block(0, 0, col, n));
}

template <class B, class T>
void PivotedMatrix<B, T>::run_randomized(double tolerance, bool truncate) {
  using namespace backend;
  const Index rows = a_.rows, cols = a_.cols;
  fill_gaussian();
  std::vector<T> diagonal(static_cast<std::size_t>(steps_));
  const Temporary<B, T> gathered(queue_, 1, sketch_cols);
  bool found = false;
  for (Index col = 0; col < steps_ && !(found && truncate); col += sketch_cols) {
    const Index n = std::min(sketch_cols, steps_ - col), left = cols - col, height = rows - col;
    const Index sketched = std::min(sketch_rows, height);
    const Mat y = sketch_.block(0, 0, sketched, left);
    gemm(queue_, Op::none, Op::none, T(1), gaussian_.block(0, col, sketched, height), a_.block(col, col, height, left),
         T(0), y);
    factor(y, sketch_packed_.block(0, 0, sketched, left), device_columns_, sketch_tau_, n, 0.0, false);
    take_panel(col, n);
    apply_range(Op::transpose, col, col + n, a_.columns(col + n, left - n));
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(left)), within(static_cast<std::size_t>(n));
    queue_.download(device_columns_, chosen.data(), left);
    queue_.download(panel_columns_, within.data(), n);
    const std::vector<std::int32_t> before(columns_.begin() + col, columns_.end());
    for (Index j = 0; j < left; ++j) {
      const auto from = static_cast<std::size_t>(j < n ? within[static_cast<std::size_t>(j)] : j);
      columns_[static_cast<std::size_t>(col + j)] = before[static_cast<std::size_t>(chosen[from])];
    }
    copy(queue_, Mat{a_.data + col * (a_.ld + 1), 1, n, a_.ld + 1, 0, 1}, gathered.matrix.columns(0, n), Part::all);
    queue_.download(gathered.matrix.data, diagonal.data() + col, n);
    while (!found && rank_ < col + n) {
      found = std::abs(static_cast<double>(diagonal[static_cast<std::size_t>(rank_)])) <=
              tolerance * std::abs(static_cast<double>(diagonal[0]));
      if (!found) ++rank_;
    }
  }
  kept_ = truncate ? Index{rank_} : steps_;
}

}  // namespace qrane::dense
