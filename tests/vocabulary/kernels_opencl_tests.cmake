# SPDX-License-Identifier: Apache-2.0
# The vocabulary's tests on OpenCL. The first run builds the device's programs (a minute or two on PoCL on a
# busy machine); later runs find them in the user's cache.
if(QRANE_WITH_OPENCL)
  qrane_add_test(kernels_opencl_test TIMEOUT 600 LIBRARIES OpenCL::OpenCL)
  qrane_set_backend(kernels_opencl_test opencl)
  set_tests_properties(kernels_opencl_test PROPERTIES COST 1000)  # first: the others wait for it
  target_compile_definitions(kernels_opencl_test PRIVATE QRANE_WITH_OPENCL=1)
  qrane_add_test(opencl_structs_test TIMEOUT 300 LABELS opencl LIBRARIES OpenCL::OpenCL)
  target_compile_definitions(opencl_structs_test PRIVATE QRANE_WITH_OPENCL=1)
  qrane_add_test(opencl_errors_test TIMEOUT 300 LABELS opencl LIBRARIES OpenCL::OpenCL ${CMAKE_DL_LIBS})

  # The tests once more on devices that are made small, and with a GPU's block shapes.
  function(qrane_add_limited_tests suffix limits)
    foreach(test ${ARGN})
      add_test(NAME ${test}.opencl_${suffix} COMMAND ${test} --gtest_brief=1 --gtest_filter=*opencl_*)
      qrane_set_backend(${test}.opencl_${suffix} opencl)
      set_tests_properties(${test}.opencl_${suffix} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
        ENVIRONMENT "OMP_WAIT_POLICY=passive;QRANE_OPENCL_LIMITS=${limits}")
    endforeach()
  endfunction()
  qrane_add_limited_tests(small gpu,work_group=64,local_bytes=16384
    qr_test qr_apply_test qr_reflectors_test qr_rank_test
    qr_guard_test batch_qr_test pivoted_qr_test least_squares_test svd_test robust_pca_test update_test sparse_qr_test)
  qrane_add_limited_tests(float no_double least_squares_test)
  qrane_add_limited_tests(gpu gpu,local_bytes=49152,work_group=1024 qr_test batch_qr_test least_squares_test
    sparse_qr_test)
endif()
