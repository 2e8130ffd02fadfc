// SPDX-License-Identifier: Apache-2.0
// Which processor OpenBLAS takes this one for, and whether that is what it is. OpenBLAS 0.3.21 takes Intel processors
// of family 6 with an extended model of 11 or more for a Prescott and runs SSE3 kernels there; 0.3.25 no longer does.
// OPENBLAS_CORETYPE names the core to use and is read when the library is loaded.
#pragma once

#include <string>

namespace qrane::backend::cpu {

/// What a processor can run, as far as OpenBLAS's kernels differ by it.
struct CpuFeatures {
  bool avx = false;
  bool avx2 = false;    ///< with FMA
  bool avx512 = false;  ///< F, CD, BW, DQ and VL
  bool amd = false;     ///< OpenBLAS has AVX2 kernels for all of AMD's
};

/// Of this processor; all false where it is no x86-64.
CpuFeatures cpu_features();

/// OpenBLAS's core whose kernels use these features; empty where SSE is all there is.
std::string fitting_core(const CpuFeatures& features);

/// Whether OpenBLAS's core leaves features unused that `fitting_core` uses. False for cores that are not known here.
bool leaves_features_unused(const std::string& core, const CpuFeatures& features);

struct BlasCore {
  std::string used;     ///< as OpenBLAS calls it; empty without OpenBLAS
  std::string fitting;  ///< the one to use instead; empty where `used` is right
};

/// Of the library that is loaded, on this processor.
BlasCore blas_core();

}  // namespace qrane::backend::cpu
