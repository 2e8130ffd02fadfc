// SPDX-License-Identifier: Apache-2.0
// Views of matrices a user owns, and matrices that qrane owns.
#pragma once

#include <qrane/version.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace qrane {

using Index = std::int64_t;

/// The scalar types that matrices are factored in.
template <class T>
inline constexpr bool is_scalar = std::is_same_v<T, float> || std::is_same_v<T, double>;

namespace detail {
/// Ends the compilation, with the reason, for a scalar that qrane does not have.
template <class T>
struct CheckedScalar {
  static_assert(is_scalar<T>,
                "qrane factors matrices of float and double. Convert integers and shorter floating-point types to one "
                "of these; complex matrices are not supported yet.");
  using type = T;
};
}  // namespace detail

/// How a type that is not a MatrixView becomes one. A specialization has a static function `view(x)` that returns a
/// MatrixView<T>, or MatrixView<const T> for a constant x. Below: Matrix, std::span, std::vector and std::array;
/// Eigen's types are in eigen.hpp.
template <class X>
struct ViewOf {};

/// Where a matrix lives. `device` is the memory of the Context that it is used with: CUDA global
/// memory, an OpenCL buffer, and for the CPU backend the same as `host`.
enum class Memory { host, device };

enum class Layout { column_major, row_major };

template <class T>
struct MatrixView;
namespace detail {
template <class X>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<MatrixView<T>> = true;
}  // namespace detail

/// A rows x cols matrix in memory that the caller owns. Functions that take one accept whatever ViewOf knows.
///
/// Element (i, j) is data[i + j * ld] (column-major, ld >= rows) or data[i * ld + j] (row-major,
/// ld >= cols); a row-major view costs at most one transpose. An OpenCL device matrix has no
/// pointer: `buffer` is its cl_mem and `offset` its first element, and `data` is null.
template <class T>
struct MatrixView {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index ld = 0;
  Layout layout = Layout::column_major;
  Memory memory = Memory::host;
  void* buffer = nullptr;  ///< OpenCL: the cl_mem
  Index offset = 0;        ///< OpenCL: elements from the start of the buffer to element (0, 0)

  MatrixView() = default;
  MatrixView(T* data_, Index rows_, Index cols_, Index ld_, Memory memory_ = Memory::host,
             Layout layout_ = Layout::column_major)
      : data(data_), rows(rows_), cols(cols_), ld(ld_), layout(layout_), memory(memory_) {}
  /// Contiguous column-major matrix.
  MatrixView(T* data_, Index rows_, Index cols_) : MatrixView(data_, rows_, cols_, rows_) {}
  /// Contiguous row-major matrix in host memory, as C arrays and NumPy store it.
  static MatrixView row_major(T* data, Index rows, Index cols) {
    return MatrixView(data, rows, cols, cols, Memory::host, Layout::row_major);
  }
  /// A view of a Matrix, std::span, std::vector or std::array (one column), or of what else ViewOf knows.
  template <class X>
  requires(!detail::is_view<std::remove_cvref_t<X>>) && requires(X& x) {
    { ViewOf<std::remove_cvref_t<X>>::view(x).data } -> std::convertible_to<T*>;
  }
  MatrixView(X&& x) : MatrixView(ViewOf<std::remove_cvref_t<X>>::view(x)) {}

  /// A view of mutable data is a view of constant data.
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    MatrixView<const T> v(data, rows, cols, ld, memory, layout);
    v.buffer = buffer;
    v.offset = offset;
    return v;
  }
};

/// `count` matrices of one shape, `stride` elements apart (from element (0, 0) to element (0, 0)): one after the other,
/// or side by side within one leading dimension. They must not overlap. With `pointers` the matrices may lie anywhere:
/// the table has the address of each matrix's element (0, 0) and lies in the memory that `first` names (CUDA: a device
/// array of device addresses, column-major; not OpenCL device memory). Then `first` gives shape, ld and layout alone.
template <class T>
struct BatchView {
  MatrixView<T> first;
  Index stride = 0;
  Index count = 0;
  T* const* pointers = nullptr;

  operator BatchView<const T>() const requires(!std::is_const_v<T>) { return {first, stride, count, pointers}; }
};

/// A column-major matrix that owns its memory. Move-only; freed with the last reference to it.
template <class T>
class Matrix {
  using Scalar = typename detail::CheckedScalar<T>::type;

 public:
  Matrix() = default;
  Matrix(Matrix&&) noexcept = default;
  Matrix& operator=(Matrix&&) noexcept = default;

  /// Uninitialized host matrix with ld = max(rows, 1). Throws Error{invalid_argument} for negative
  /// or overflowing sizes, Error{out_of_memory} when there is no room.
  QRANE_API static Matrix host(Index rows, Index cols);

  /// Used by Context: adopts `storage` as the owner of what `view` shows.
  Matrix(MatrixView<T> view, std::shared_ptr<void> storage) : view_(view), storage_(std::move(storage)) {}

  Index rows() const { return view_.rows; }
  Index cols() const { return view_.cols; }
  Index ld() const { return view_.ld; }
  Memory memory() const { return view_.memory; }
  T* data() { return view_.data; }
  const T* data() const { return view_.data; }
  MatrixView<T> view() { return view_; }
  MatrixView<const T> view() const { return view_; }

  /// Element (i, j) of a host matrix; not checked.
  T& operator()(Index i, Index j) { return view_.data[i + j * view_.ld]; }
  const T& operator()(Index i, Index j) const { return view_.data[i + j * view_.ld]; }

 private:
  MatrixView<T> view_;
  std::shared_ptr<void> storage_;
};

template <class T>
struct ViewOf<MatrixView<T>> {
  static MatrixView<T> view(const MatrixView<T>& x) { return x; }
};
template <class T>
struct ViewOf<Matrix<T>> {
  static MatrixView<T> view(Matrix<T>& x) { return x.view(); }
  static MatrixView<const T> view(const Matrix<T>& x) { return x.view(); }
};
template <class T, std::size_t N>
struct ViewOf<std::span<T, N>> {
  static MatrixView<T> view(const std::span<T, N>& x) { return {x.data(), static_cast<Index>(x.size()), 1}; }
};
template <class T>
struct ViewOf<std::vector<T>> {
  static MatrixView<T> view(std::vector<T>& x) { return {x.data(), static_cast<Index>(x.size()), 1}; }
  static MatrixView<const T> view(const std::vector<T>& x) { return {x.data(), static_cast<Index>(x.size()), 1}; }
};
template <class T, std::size_t N>
struct ViewOf<std::array<T, N>> {
  static MatrixView<T> view(std::array<T, N>& x) { return {x.data(), static_cast<Index>(N), 1}; }
  static MatrixView<const T> view(const std::array<T, N>& x) { return {x.data(), static_cast<Index>(N), 1}; }
};

/// Whatever functions take as a matrix: a MatrixView, or a type that ViewOf knows.
template <class X>
concept MatrixLike = requires(X& x) {
  ViewOf<std::remove_cvref_t<X>>::view(x);
};

/// The view that x is, or gives.
template <MatrixLike X>
auto as_view(X&& x) {
  return ViewOf<std::remove_cvref_t<X>>::view(x);
}

/// float or double: what the matrices of type X hold.
template <MatrixLike X>
using ScalarOf = typename detail::CheckedScalar<
    std::remove_cvref_t<decltype(*as_view(std::declval<std::remove_reference_t<X>&>()).data)>>::type;

}  // namespace qrane
