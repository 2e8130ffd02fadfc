# SPDX-License-Identifier: Apache-2.0
# Tests of what only the suites run (benchmarks/paper); included by tests/CMakeLists.txt.
if(TARGET qrane_paper)
  set(paper_tests ${PROJECT_SOURCE_DIR}/benchmarks/paper/tests)
  qrane_add_test(tile_scheduler_test SOURCES ${paper_tests}/tile_scheduler_test.cpp LIBRARIES qrane_paper)
  set(built cpu)
  if(QRANE_WITH_OPENCL)
    list(APPEND built opencl)
  endif()
  if(QRANE_WITH_CUDA)
    list(APPEND built cuda)
  endif()
  foreach(backend IN LISTS built)
    qrane_add_test(paper_rotations_${backend}_test SOURCES ${paper_tests}/rotations_test.cpp LIBRARIES qrane_paper
      LABELS ${backend})
    string(TOUPPER ${backend} name)
    target_compile_definitions(paper_rotations_${backend}_test PRIVATE QRANE_TEST_${name})
  endforeach()
  list(REMOVE_ITEM built opencl)
  qrane_add_test(tile_factor_test SOURCES ${paper_tests}/tile_factor_test.cpp LIBRARIES qrane_paper BACKENDS ${built})
  target_compile_definitions(tile_factor_test PRIVATE QRANE_WITH_CUDA=$<BOOL:${QRANE_WITH_CUDA}>)
  qrane_add_test(paper_updates_test SOURCES ${paper_tests}/updates_test.cpp LIBRARIES qrane_paper TIMEOUT 600
    BACKENDS cpu opencl cuda)
endif()
