/* SPDX-License-Identifier: Apache-2.0
   Preloaded by a test: OpenBLAS as if it took every processor for a Prescott, unless it is told which core to use. */
#include <stdlib.h>

__attribute__((visibility("default"))) const char* openblas_get_corename(void) {
  const char* core = getenv("OPENBLAS_CORETYPE");
  return core != NULL ? core : "Prescott";
}
