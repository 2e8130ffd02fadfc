// SPDX-License-Identifier: Apache-2.0
// OpenBLAS as the command needs it: on the right core, and never waiting for memory that will not come.
#pragma once

namespace qrane::cli {

/// Where OpenBLAS took the processor for a lesser one and the user set no OPENBLAS_CORETYPE, runs the program again, in
/// place of this one, with the right one; else returns.
void restart_on_fitting_core(char** argv);

}  // namespace qrane::cli
