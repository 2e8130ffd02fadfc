// SPDX-License-Identifier: Apache-2.0
// Launches of clusters of thread blocks, from compute capability 9.0 on; of single blocks before.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/queue/status.hpp"

namespace qrane::backend::cuda {

/// Clusters of up to so many blocks run on every device that has clusters.
constexpr int portable_cluster = 8;

inline bool has_clusters() { return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9; }

struct ClusterShape {
  dim3 grid;         // blocks; grid.x is a multiple of `blocks`
  unsigned threads;  // of a block
  int blocks;        // of a cluster
  int shared_bytes;  // dynamic, of a block
};

/// The launch configuration of a kernel, whose attributes are set by it.
class ClusterConfig {
 public:
  template <class Kernel>
  ClusterConfig(Kernel* kernel, const char* name, const ClusterShape& shape, cudaStream_t stream) {
    if (shape.shared_bytes > 0)
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes), name);
    if (shape.blocks > portable_cluster)
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), name);
    attribute_.id = cudaLaunchAttributeClusterDimension;
    attribute_.val.clusterDim.x = static_cast<unsigned>(shape.blocks);
    attribute_.val.clusterDim.y = attribute_.val.clusterDim.z = 1;
    config_.gridDim = shape.grid;
    config_.blockDim = dim3(shape.threads);
    config_.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = shape.blocks > 1 ? 1 : 0;
  }
  ClusterConfig(const ClusterConfig&) = delete;
  ClusterConfig& operator=(const ClusterConfig&) = delete;
  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
};

template <class... Parameters, class... Arguments>
void launch_cluster(void (*kernel)(Parameters...), const char* name, const ClusterShape& shape, cudaStream_t stream,
                    Arguments... arguments) {
  const ClusterConfig config(kernel, name, shape, stream);
  check_cuda(cudaLaunchKernelEx(config.get(), kernel, static_cast<Parameters>(arguments)...), name);
}

/// Whether the current device runs clusters of that shape.
template <class Kernel>
bool runs_clusters(Kernel* kernel, const char* name, const ClusterShape& shape) {
  const ClusterConfig config(kernel, name, shape, nullptr);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, config.get()) == cudaSuccess && clusters > 0) return true;
  (void)cudaGetLastError();
  return false;
}

}  // namespace qrane::backend::cuda
