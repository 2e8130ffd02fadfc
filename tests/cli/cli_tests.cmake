# SPDX-License-Identifier: Apache-2.0
# The command line: its parts in process, then the program as a user runs it.
if(TARGET qrane_command)
  qrane_add_test(cli_parts_test SOURCES cli/cli_test.cpp LIBRARIES qrane_cli_parts)
  add_library(qrane_test_other_core MODULE support/other_core.c)
  set_target_properties(qrane_test_other_core PROPERTIES C_VISIBILITY_PRESET default)
  # The tests read results with NumPy. Debian's own Python first: it is the one that has the packages of packages.txt.
  foreach(python /usr/bin/python3 python3)
    execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(QRANE_TEST_PYTHON ${python})
      break()
    endif()
  endforeach()
  if(NOT QRANE_TEST_PYTHON)
    message(FATAL_ERROR "The tests need a Python with NumPy: install python3-numpy, or use -DQRANE_TESTS=OFF")
  endif()
  foreach(test cli_test.Matrices cli_bad_input_test.BadInput cli_update_test.Changes cli_update_test.BadInput
      cli_sparse_test.Analyze cli_sparse_test.Long cli_background_test.Background cli_background_test.Interrupt
      cli_files_test.Overwrite cli_files_test.BadFiles cli_files_test.Streams cli_files_test.Failures
      cli_video_test.Names cli_video_test.Live cli_video_test.Results cli_endings_test.Signals cli_endings_test.Output
      cli_endings_test.Disks)
    string(REPLACE "." ";" parts ${test})
    list(GET parts 0 file)
    list(GET parts 1 suite)
    add_test(NAME ${test}
      COMMAND ${QRANE_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/${file}.py $<TARGET_FILE:qrane_command> ${suite})
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
      "QRANE_TEST_OTHER_CORE=$<TARGET_FILE:qrane_test_other_core>;QRANE_TEST_SANITIZED=${QRANE_SANITIZE}")
    set_tests_properties(${test} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS cli)
  endforeach()
  # Failing allocations, some of them; all with QRANE_TEST_FULL=1. Sanitizers have an allocator of their own.
  if(NOT QRANE_SANITIZE)
    add_library(fail_allocations MODULE support/fail_allocations.c)
    set_target_properties(fail_allocations PROPERTIES C_VISIBILITY_PRESET default)  # it stands in for the C library
    target_link_libraries(fail_allocations PRIVATE ${CMAKE_DL_LIBS} qrane_warnings)
    add_test(NAME fail_allocations COMMAND ${QRANE_TEST_PYTHON} -B ${PROJECT_SOURCE_DIR}/tools/fail-allocations
      $<TARGET_FILE:qrane_command> $<TARGET_FILE:fail_allocations> --test)
    set_tests_properties(fail_allocations PROPERTIES TIMEOUT 900 LABELS "cli;full")
  endif()
endif()
