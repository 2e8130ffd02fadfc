# SPDX-License-Identifier: Apache-2.0
# The C interface, called from C99, once per backend; an absent backend is a skip that says so.
foreach(name c_interface_test c_interface_device_test c_interface_batch_test c_interface_update_test c_interface_sparse_test
    c_interface_svd_test)
  add_executable(${name} ${name}.c)
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(${name} PRIVATE qrane m)
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

foreach(backend cpu opencl cuda)
  add_test(NAME c_interface.${backend} COMMAND c_interface_test ${backend})
  add_test(NAME c_interface_batch.${backend} COMMAND c_interface_batch_test ${backend})
  add_test(NAME c_interface_update.${backend} COMMAND c_interface_update_test ${backend})
  add_test(NAME c_interface_sparse.${backend} COMMAND c_interface_sparse_test ${backend})
  add_test(NAME c_interface_svd.${backend} COMMAND c_interface_svd_test ${backend})
  set_tests_properties(c_interface.${backend} c_interface_batch.${backend} c_interface_update.${backend}
    c_interface_sparse.${backend} c_interface_svd.${backend} PROPERTIES
    LABELS ${backend} TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
foreach(backend opencl cuda)
  add_test(NAME c_interface_device.${backend} COMMAND c_interface_device_test ${backend})
  set_tests_properties(c_interface_device.${backend} PROPERTIES LABELS ${backend} TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
