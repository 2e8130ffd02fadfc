# SPDX-License-Identifier: Apache-2.0
# The vocabulary's tests on CUDA, and factorizations as CUDA graphs; skipped where there is no device.
if(QRANE_WITH_CUDA)
  qrane_add_test(kernels_cuda_test TIMEOUT 600 LIBRARIES CUDA::cudart_static)
  target_compile_definitions(kernels_cuda_test PRIVATE QRANE_WITH_CUDA=1)
  qrane_add_test(qr_capture_test TIMEOUT 300 LIBRARIES CUDA::cudart_static)
  qrane_add_test(recording_test TIMEOUT 300 LIBRARIES CUDA::cudart_static)
  foreach(test kernels_cuda_test qr_capture_test recording_test)
    qrane_set_backend(${test} cuda)
  endforeach()
endif()
