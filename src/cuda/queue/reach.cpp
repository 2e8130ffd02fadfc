// SPDX-License-Identifier: Apache-2.0
#include "cuda/queue/queue.hpp"
#include "cuda/queue/status.hpp"

namespace qrane::backend {

bool reaches(Cuda, const void* address, Index) {
  cudaPointerAttributes attributes{};
  if (address == nullptr) return false;
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    (void)cudaGetLastError();  // the address is at fault, not what comes next
    return false;
  }
  if (attributes.type != cudaMemoryTypeUnregistered) return true;
  int device = 0, any = 0;  // some GPUs reach all of the host's memory
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&any, cudaDevAttrPageableMemoryAccess, device) == cudaSuccess && any != 0;
}

}  // namespace qrane::backend
