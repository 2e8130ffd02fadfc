# SPDX-License-Identifier: Apache-2.0
# Tests of what only the suites run (benchmarks/paper); included by tests/CMakeLists.txt.
if(TARGET qrane_paper)
  set(paper_tests ${PROJECT_SOURCE_DIR}/benchmarks/paper/tests)
  qrane_add_test(tile_scheduler_test SOURCES ${paper_tests}/tile_scheduler_test.cpp LIBRARIES qrane_paper)
  set(tile_backends cpu)
  if(QRANE_WITH_CUDA)
    list(APPEND tile_backends cuda)
  endif()
  qrane_add_test(tile_factor_test SOURCES ${paper_tests}/tile_factor_test.cpp LIBRARIES qrane_paper BACKENDS ${tile_backends})
  target_compile_definitions(tile_factor_test PRIVATE QRANE_WITH_CUDA=$<BOOL:${QRANE_WITH_CUDA}>)
endif()
