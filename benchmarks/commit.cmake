# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT with the commit of SOURCE, touching it only when that changes.
cmake_minimum_required(VERSION 3.22)
set(commit "$ENV{QRANE_COMMIT}")  # of sources that travelled without their history (tools/gpu-check)
if(commit STREQUAL "")
  execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(commit "unknown")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
  "// SPDX-License-Identifier: Apache-2.0\n#define QRANE_BENCH_COMMIT \"@commit@\"\n" @ONLY)
