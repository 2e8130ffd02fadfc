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
endif()
