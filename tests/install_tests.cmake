# SPDX-License-Identifier: Apache-2.0
# Installs what was built and builds the examples against it. Needs the whole tree built.
add_test(NAME install.examples
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install_test.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(install.examples PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
