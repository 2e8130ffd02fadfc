// SPDX-License-Identifier: Apache-2.0
// The tasks of the CUDA peer program, a file each.
#pragma once

#include "peers/cuda_support.hpp"
#include "peers/serve.hpp"

namespace qrane::bench {

PeerSamples measure_qr(CudaSession& session, const PeerRequest& request);
/// `blas2` and `hybrid`: the CAQR paper's rivals.
PeerSamples measure_rival(CudaSession& session, const PeerRequest& request);
template <class T>
PeerSamples measure_hybrid(CudaSession& session, const PeerRequest& request);
template <class T>
void factor_by_hybrid(CudaSession& session, std::int64_t rows, std::int64_t cols, T* a);
PeerSamples measure_svd(CudaSession& session, const PeerRequest& request);
PeerSamples measure_batched(CudaSession& session, const PeerRequest& request);
PeerSamples measure_rpca(CudaSession& session, const PeerRequest& request);
PeerSamples measure_gels(CudaSession& session, const PeerRequest& request);

}  // namespace qrane::bench
