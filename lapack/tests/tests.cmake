# SPDX-License-Identifier: Apache-2.0
# The drop-in: its routines one by one, then programs that were not written for it.
foreach(test lapack_factor_test lapack_least_squares_test lapack_calls_test)
  qrane_add_test(${test} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${test}.cpp LIBRARIES ${CMAKE_DL_LIBS} LABELS cpu)
  target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${test} PRIVATE QRANE_LAPACK_LIBRARY="$<TARGET_FILE:qrane_lapack>")
  set_target_properties(${test} PROPERTIES ENABLE_EXPORTS ON)
  set_property(TEST ${test} PROPERTY ENVIRONMENT "QRANE_LAPACK_MIN=0;QRANE_LAPACK_DEVICE=cpu")
  add_dependencies(${test} qrane_lapack)
endforeach()

# LAPACK's own test programs, of the package liblapack-test; NumPy and SciPy.
if(QRANE_CLI AND NOT QRANE_SANITIZE)
  foreach(case lapack_programs lapack_command_test)
    add_test(NAME ${case} COMMAND ${QRANE_TEST_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/${case}.py
      $<TARGET_FILE:qrane_lapack> $<TARGET_FILE:qrane_command>)
    set_tests_properties(${case} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS cpu)
  endforeach()
endif()
