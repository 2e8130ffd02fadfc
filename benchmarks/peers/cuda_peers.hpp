// SPDX-License-Identifier: Apache-2.0
// The tasks of the CUDA peer program, a file each.
#pragma once

#include "peers/cuda_support.hpp"
#include "peers/serve.hpp"

namespace qrane::bench {

PeerSamples measure_qr(CudaSession& session, const PeerRequest& request);
PeerSamples measure_svd(CudaSession& session, const PeerRequest& request);
PeerSamples measure_gels(CudaSession& session, const PeerRequest& request);

}  // namespace qrane::bench
