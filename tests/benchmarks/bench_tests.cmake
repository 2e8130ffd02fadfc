# SPDX-License-Identifier: Apache-2.0
# The error measures of the benchmarks, then `qrane bench` as a user runs it, on a suite of small cases, and
# benchmarks/plot on what it wrote.
if(TARGET qrane_bench)
  qrane_add_test(bench_check_test LIBRARIES qrane_bench OpenMP::OpenMP_CXX LABELS bench)
  target_include_directories(bench_check_test PRIVATE ${PROJECT_SOURCE_DIR})
endif()
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND)  # what documents say, against the results and the sources
  add_test(NAME docs_figures COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/benchmarks/report --verify)
  add_test(NAME docs_paths
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/build/docs_test.py ${PROJECT_SOURCE_DIR})
  add_test(NAME report_test
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/report_test.py
      ${PROJECT_SOURCE_DIR}/benchmarks/report)
  set_tests_properties(docs_figures docs_paths report_test PROPERTIES TIMEOUT 180 LABELS docs)
endif()
if(TARGET qrane_command AND TARGET qrane_bench)
  if(Python3_Interpreter_FOUND)
    add_test(NAME bench_test
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/bench_test.py $<TARGET_FILE:qrane_command>
        ${PROJECT_SOURCE_DIR}/benchmarks/plot)
    add_test(NAME bench_sparse_test
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/bench_sparse_test.py
        $<TARGET_FILE:qrane_command>
        ${PROJECT_SOURCE_DIR}/benchmarks/plot ${PROJECT_SOURCE_DIR}/data)
    add_test(NAME bench_sparse_uses_test
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/bench_sparse_uses_test.py
        $<TARGET_FILE:qrane_command> ${PROJECT_SOURCE_DIR}/benchmarks/plot)
    set_tests_properties(bench_test bench_sparse_test bench_sparse_uses_test PROPERTIES TIMEOUT 600 LABELS bench)
  endif()
endif()
