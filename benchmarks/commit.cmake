# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT with the commit of SOURCE, touching it only when that changes.
cmake_minimum_required(VERSION 3.24)
execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "unknown")
  if(EXISTS ${SOURCE}/.deps/commit)  # sources that travelled without their history: tools/gpu-deps wrote it down
    file(STRINGS ${SOURCE}/.deps/commit commit LIMIT_COUNT 1)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
  "// SPDX-License-Identifier: Apache-2.0\n#define QRANE_BENCH_COMMIT \"@commit@\"\n" @ONLY)
