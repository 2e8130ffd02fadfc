// SPDX-License-Identifier: Apache-2.0
// The basic operations on CUDA.
#pragma once

#include "cuda/queue/queue.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::backend::cuda {

using Self = Cuda;
template <class T>
using Mat = DeviceMatrix<Self, T>;

#include "vocabulary/basic.hpp"

}  // namespace qrane::backend::cuda
