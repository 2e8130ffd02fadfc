# SPDX-License-Identifier: Apache-2.0
# The library as other projects use it: installed, included, linked, shared; and how its files are hardened. Needs the
# whole tree built.
add_test(NAME install.examples
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install_test.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
if(TARGET qrane_shared)
  set(objects "")
  foreach(test qr_test qr_errors_test batch_qr_test pivoted_qr_test least_squares_test svd_test robust_pca_test
          sparse_qr_test sparse_refine_test update_test update_batch_test c_interface_test c_interface_batch_test
          c_interface_update_test c_interface_sparse_test)
    list(APPEND objects ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${test}.dir)
  endforeach()
  add_test(NAME shared.exports
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/exports_test.sh $<TARGET_FILE:qrane_shared> $<TARGET_FILE:qrane> ${objects})
  add_executable(shared_c_test ${PROJECT_SOURCE_DIR}/examples/c_solve/main.c)
  target_link_libraries(shared_c_test PRIVATE qrane_shared m)
  add_test(NAME shared.c COMMAND shared_c_test)
  set_tests_properties(shared.exports shared.c PROPERTIES LABELS package)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT QRANE_SANITIZE)
  qrane_add_test(hardening_test LABELS package)
  if(TARGET qrane_shared AND TARGET qrane_command)
    add_test(NAME hardening.files COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/hardening_test.sh
      $<TARGET_FILE:qrane_command> $<TARGET_FILE:qrane_shared>)
    set_tests_properties(hardening.files PROPERTIES LABELS package SKIP_RETURN_CODE 77)
  endif()
endif()
set_tests_properties(install.examples PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS package)
