# SPDX-License-Identifier: Apache-2.0
# The command line: its parts in process, then the program as a user runs it.
if(TARGET qrane_command)
  qrane_add_test(cli_parts_test SOURCES cli_test.cpp LIBRARIES qrane_cli_parts)
  add_library(qrane_test_other_core MODULE support/other_core.c)
  # The tests read results with NumPy. Debian's own Python first: it is the one that has the packages of packages.txt.
  function(qrane_python_has_numpy result python)
    execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE status ERROR_QUIET)
    if(NOT status EQUAL 0)
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endfunction()
  find_program(QRANE_TEST_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH VALIDATOR qrane_python_has_numpy)
  find_program(QRANE_TEST_PYTHON python3 VALIDATOR qrane_python_has_numpy REQUIRED)
  foreach(test cli_test.Matrices cli_bad_input_test.BadInput cli_update_test.Changes cli_update_test.BadInput
      cli_sparse_test.Analyze cli_sparse_test.Long cli_background_test.Background cli_background_test.Interrupt
      cli_files_test.Overwrite cli_files_test.BadFiles cli_files_test.Streams cli_files_test.Failures
      cli_video_test.Names cli_video_test.Live cli_video_test.Results)
    string(REPLACE "." ";" parts ${test})
    list(GET parts 0 file)
    list(GET parts 1 suite)
    add_test(NAME ${test}
      COMMAND ${QRANE_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file}.py $<TARGET_FILE:qrane_command> ${suite})
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
      "QRANE_TEST_OTHER_CORE=$<TARGET_FILE:qrane_test_other_core>")
    set_tests_properties(${test} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS cli)
  endforeach()
endif()
