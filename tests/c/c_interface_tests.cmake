# SPDX-License-Identifier: Apache-2.0
# The C interface, called from C99, once per backend; an absent backend is a skip that says so.
foreach(name c_interface_test c_interface_device_test c_interface_batch_test c_interface_update_test
        c_interface_sparse_test c_interface_svd_test)
  add_executable(${name} c/${name}.c)
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE qrane_internal m)
endforeach()
target_compile_definitions(c_interface_batch_test PRIVATE QRANE_TEST_CUDA=$<BOOL:${QRANE_WITH_CUDA}>)
target_compile_definitions(c_interface_device_test PRIVATE
  QRANE_TEST_OPENCL=$<BOOL:${QRANE_WITH_OPENCL}> QRANE_TEST_CUDA=$<BOOL:${QRANE_WITH_CUDA}>)
if(QRANE_WITH_OPENCL)
  target_link_libraries(c_interface_device_test PRIVATE OpenCL::OpenCL)
endif()
if(QRANE_WITH_CUDA)
  target_link_libraries(c_interface_device_test PRIVATE CUDA::cudart_static)
  target_link_libraries(c_interface_batch_test PRIVATE CUDA::cudart_static)
endif()

foreach(name c_interface c_interface_batch c_interface_update c_interface_sparse c_interface_svd c_interface_device)
  foreach(backend cpu opencl cuda)
    if(name STREQUAL "c_interface_device" AND backend STREQUAL "cpu")  # it is about device memory
      continue()
    endif()
    add_test(NAME ${name}.${backend} COMMAND ${name}_test ${backend})
    set_tests_properties(${name}.${backend} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    qrane_set_backend(${name}.${backend} ${backend})
  endforeach()
endforeach()
