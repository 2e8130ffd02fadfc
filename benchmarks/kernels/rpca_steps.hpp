// SPDX-License-Identifier: Apache-2.0
// The elementwise steps of robust PCA by inexact ALM (Lin, Chen, Ma, 2010, algorithm 5), for the peers and the pipeline
// of suites/rpca_pipeline.hpp.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace qrane::bench {

/// X := M - S + Y / mu, `count` elements.
template <class T>
void form_x(const T* m, const T* s, const T* y, double mu, T* x, std::int64_t count, cudaStream_t stream);

/// S := shrink(M - L + Y / mu, lambda / mu), gap := M - L - S, Y := Y + mu gap. L is overwritten by the gap.
template <class T>
void update_parts(const T* m, T* low_rank_then_gap, T* s, T* y, double lambda, double mu, std::int64_t count,
                  cudaStream_t stream);

/// The Euclidean norm of `count` elements, summed in double. Waits for the stream.
template <class T>
double norm(const T* x, std::int64_t count, cudaStream_t stream);

/// values := max(values - threshold, 0).
template <class T>
void shrink_values(T* values, double threshold, int count, cudaStream_t stream);

}  // namespace qrane::bench
