// SPDX-License-Identifier: Apache-2.0
// Householder reflections on columns padded to whole vectors: the innermost loops of small fronts and narrow panels,
// where the overhead of a BLAS call exceeds the work.
//
// Pointers are aligned to `vector_bytes`, row counts and leading dimensions are multiples of lanes<T>. A reflector is
// zero above its 1 and below its end, so that loops run over whole vectors; finite values in rows where v is zero keep
// their bits.
#pragma once

#include <qrane/matrix.hpp>

namespace qrane::sparse {

constexpr Index vector_bytes = 64;
template <class T>
constexpr Index lanes = vector_bytes / static_cast<Index>(sizeof(T));

template <class T>
constexpr Index round_up_to_lanes(Index n) {
  return (n + lanes<T> - 1) / lanes<T> * lanes<T>;
}

/// Sum of squares. The order of the sum depends on n alone.
float sum_squares(Index n, const float* x);
double sum_squares(Index n, const double* x);

/// A := A - tau v (vᵀ A), A n x cols.
void reflect(Index n, const float* v, float tau, float* a, Index ld, Index cols);
void reflect(Index n, const double* v, double tau, double* a, Index ld, Index cols);

/// out := Aᵀ v, A n x cols.
void dots(Index n, const float* v, const float* a, Index ld, Index cols, float* out);
void dots(Index n, const double* v, const double* a, Index ld, Index cols, double* out);

}  // namespace qrane::sparse
