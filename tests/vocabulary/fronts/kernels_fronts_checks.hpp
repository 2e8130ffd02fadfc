// SPDX-License-Identifier: Apache-2.0
// Frontal matrices by their definition, in long double: what is assembled, panels as products, the form of V and T.
#pragma once

#include "kernels_fronts.hpp"

namespace qrane::backend::test {

/// V of panel k from its first row on, rows as many as its height.
template <class T>
Reference panel_v(const HostFronts<T>& h, Index f, Index k) {
  const FrontPanelState& panel = h.panel_state(f, k);
  const Index begin = k * h.panel, n = std::min<Index>(h.panel, h.shape(f).cols - begin);
  Reference v(panel.height, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < panel.height; ++i) v(i, j) = h.matrix(f, panel.first_row + i, begin + j);
  return v;
}
template <class T>
Reference panel_t(const HostFronts<T>& h, Index f, Index k) {
  const Index begin = k * h.panel, n = std::min<Index>(h.panel, h.shape(f).cols - begin);
  Reference t(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) t(i, j) = h.t(f, i, begin + j);
  return t;
}
/// C - V Tᵀ Vᵀ C.
inline Reference reflected(const Reference& v, const Reference& t, Reference c) {
  const Reference y = multiply(v, false, multiply(t, true, multiply(v, true, c, false), false), false);
  for (std::size_t e = 0; e < c.data.size(); ++e) c.data[e] -= y.data[e];
  return c;
}

template <class T>
Wide front_rounding(Index n) {
  return 30 * Wide(n + 10) * unit_roundoff<T>;
}

/// Q = I - V T Vᵀ: QᵀQ - I = V E Vᵀ with E = TᵀGT - T - Tᵀ, G = VᵀV; its norm² is tr(E G Eᵀ G).
template <class T>
void expect_orthonormal(const Reference& v, const Reference& t) {
  const Reference g = multiply(v, true, v, false);
  Reference e = multiply(t, true, multiply(g, false, t, false), false);
  for (Index j = 0; j < t.cols; ++j)
    for (Index i = 0; i < t.cols; ++i) e(i, j) -= t(i, j) + t(j, i);
  const Reference ege = multiply(multiply(e, false, g, false), false, e, true);
  Wide trace = 0;
  for (Index i = 0; i < t.cols; ++i)
    for (Index j = 0; j < t.cols; ++j) trace += ege(i, j) * g(j, i);
  EXPECT_LE(std::sqrt(std::fabs(trace)), front_rounding<T>(t.cols)) << "Q is not orthonormal";
}

/// V's and T's forms and the books of the rows, panel k of front f. `position`: where the panel had to begin.
template <class T>
void expect_panel_form(const HostFronts<T>& h, Index f, Index k, Index position) {
  const FrontShape& shape = h.shape(f);
  const FrontPanelState& panel = h.panel_state(f, k);
  const Index rows = h.state(f).rows, begin = k * h.panel, n = std::min<Index>(h.panel, shape.cols - begin);
  ASSERT_EQ(panel.first_row, position);
  ASSERT_GE(panel.height, 0);
  ASSERT_LE(panel.first_row + panel.height, rows);
  if (panel.first_row == rows) {
    EXPECT_EQ(panel.height, 0);
  }
  Index row = position;
  for (Index j = begin; j < begin + n; ++j) {
    SCOPED_TRACE(testing::Message() << "column " << j);
    const Index pivot = h.pivot_of(f, j);
    if (pivot < 0) {
      ASSERT_EQ(pivot, -1);
      ASSERT_TRUE(row == rows || (h.tolerance >= 0 && j < shape.pivots)) << "has no reflector";
    } else {
      ASSERT_EQ(pivot, row);
      ++row;
    }
    const Index height = std::min<Index>(rows, std::max<Index>(h.stair[std::size_t(shape.columns + j)], row));
    if (pivot >= 0) {
      ASSERT_GE(panel.first_row + panel.height, height);
    }
    for (Index i = position; i < position + panel.height; ++i) {
      const T v = h.matrix(f, i, j);
      if (pivot < 0 || i < pivot || i >= height) {
        ASSERT_EQ(v, T(0)) << "row " << i;
      } else if (i == pivot) {
        ASSERT_EQ(v, T(1));
      }
    }
    const T tau = h.t(f, j - begin, j);
    for (Index i = 0; i < n; ++i)
      if (pivot < 0 || i > j - begin) {
        ASSERT_EQ(h.t(f, i, j), T(0)) << "T, row " << i;
      }
    if (tau != T(0)) {
      ASSERT_NEAR(double(tau), 1.5, 0.5 + 4 * std::numeric_limits<T>::epsilon()) << "tau";
    }
  }
  EXPECT_EQ(panel.live, row - position);
}

/// The front's matrix as it stood when it was assembled from children that still stand, by the definition; without
/// right-hand sides.
template <class T>
Reference assembled(const HostFronts<T>& h, Index f) {
  const FrontShape& shape = h.shape(f);
  Reference a(h.state(f).rows, shape.cols);
  for (Index r = shape.first_row; r < shape.first_row + shape.own_rows; ++r)
    for (Index p = h.row_begin[std::size_t(r)]; p < h.row_begin[std::size_t(r + 1)]; ++p)
      a(h.own_slot[std::size_t(r)], h.entry_col[std::size_t(p)]) = h.values[std::size_t(p)];
  for (Index k = 0; k < shape.child_count; ++k) {
    const Index number = h.children[std::size_t(shape.children + k)];
    const FrontShape& child = h.shape(number);
    for (Index i = 0; i < h.state(number).cb_rows; ++i)
      for (Index j = child.pivots + i; j < child.cols; ++j)
        a(h.cb_slot[std::size_t(child.slots + i)], h.parent_col[std::size_t(child.columns + j)]) =
            h.r_of(number, h.state(number).r_rows + i, j);
  }
  return a;
}

}  // namespace qrane::backend::test
