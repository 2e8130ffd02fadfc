# SPDX-License-Identifier: Apache-2.0
# The command line: its parts in process, then the program as a user runs it.
if(TARGET qrane_command)
  qrane_add_test(cli_parts_test SOURCES cli_test.cpp LIBRARIES qrane_cli_parts)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  foreach(suite Matrices BadInput Background Interrupt)
    add_test(NAME cli_test.${suite}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli_test.py $<TARGET_FILE:qrane_command> ${suite})
    set_tests_properties(cli_test.${suite} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS cli)
  endforeach()
endif()
