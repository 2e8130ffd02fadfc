// SPDX-License-Identifier: Apache-2.0
// Peers that factor a batch of equal matrices, LAPACK-shaped:
//   cublas-geqrf-batched  cublas[SD]geqrfBatched
//   cusolver-loop         cusolverDnXgeqrf, one matrix after the other on the stream
#include <algorithm>
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

void geqrf_batched(CudaSession& s, int m, int n, float* const* a, float* const* tau, int count) {
  int info = 0;
  check(cublasSgeqrfBatched(s.blas, m, n, a, m, tau, &info, count), "cublasSgeqrfBatched");
  if (info != 0) throw std::runtime_error("cuBLAS refused an argument");
}
void geqrf_batched(CudaSession& s, int m, int n, double* const* a, double* const* tau, int count) {
  int info = 0;
  check(cublasDgeqrfBatched(s.blas, m, n, a, m, tau, &info, count), "cublasDgeqrfBatched");
  if (info != 0) throw std::runtime_error("cuBLAS refused an argument");
}

template <class T>
class BatchedPeer {
 public:
  BatchedPeer(CudaSession& session, const PeerRequest& request)
      : session_(session),
        request_(request),
        m_(request.rows),
        n_(request.cols),
        k_(std::min(m_, n_)),
        a_(m_ * n_ * request.count),
        work_a_(m_ * n_ * request.count),
        tau_(k_ * request.count) {
    fill_on_device(a_.get(), m_, n_ * request.count, request.seed, 1);
  }

  PeerSamples batched() {
    std::vector<T*> places, taus;
    for (std::int64_t b = 0; b < request_.count; ++b) {
      places.push_back(work_a_.get() + b * m_ * n_);
      taus.push_back(tau_.get() + b * k_);
    }
    DeviceArray<T*> device_places(places.size()), device_taus(taus.size());
    const std::size_t bytes = places.size() * sizeof(T*);
    check(cudaMemcpy(device_places.get(), places.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(device_taus.get(), taus.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return time([&] {
      geqrf_batched(session_, static_cast<int>(m_), static_cast<int>(n_), device_places.get(), device_taus.get(),
                    static_cast<int>(request_.count));
    });
  }

  PeerSamples loop() {
    std::size_t device_bytes = 0, host_bytes = 0;
    check(cusolverDnXgeqrf_bufferSize(session_.solver, session_.params, m_, n_, cuda_type<T>, work_a_.get(), m_,
                                      cuda_type<T>, tau_.get(), cuda_type<T>, &device_bytes, &host_bytes),
          "cusolverDnXgeqrf_bufferSize");
    DeviceArray<char> workspace(device_bytes);
    DeviceArray<int> info(1);
    std::vector<char> host_workspace(host_bytes);
    return time([&] {
      for (std::int64_t b = 0; b < request_.count; ++b)
        check(cusolverDnXgeqrf(session_.solver, session_.params, m_, n_, cuda_type<T>, work_a_.get() + b * m_ * n_, m_,
                               cuda_type<T>, tau_.get() + b * k_, cuda_type<T>, workspace.get(), device_bytes,
                               host_workspace.data(), host_bytes, info.get()),
              "cusolverDnXgeqrf");
    });
  }

 private:
  template <class Function>
  PeerSamples time(Function&& function) {
    PeerSamples samples;
    repeat(request_, [&](bool timed) {
      session_.copy_on_device(work_a_.get(), a_.get(), m_ * n_ * request_.count);
      const double elapsed = session_.milliseconds(function);
      if (timed) samples.total_ms.push_back(elapsed);
    });
    return samples;
  }

  CudaSession& session_;
  const PeerRequest& request_;
  std::int64_t m_, n_, k_;
  DeviceArray<T> a_, work_a_, tau_;
};

template <class T>
PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  if (request.count < 1 || request.count > std::numeric_limits<int>::max())
    throw std::runtime_error("count must be positive and fit 32 bits");
  // as seen on an H200: cuSOLVER's loop takes 0.1 ms a panel of 32 columns, cuBLAS at large sizes a CTA a matrix
  const double loop = 1e-4 * static_cast<double>(request.count * std::max<std::int64_t>(request.cols / 32, 1));
  const double cta = request.cols <= 512 ? 0 : 2.0 * request.rows * request.cols * request.cols / 0.75e9;
  const double seconds = request.peer == "cusolver-loop" ? loop : cta;
  if (seconds > request.max_seconds)
    throw std::runtime_error("one run would take about " + std::to_string(static_cast<int>(seconds) + 1) + " s");
  BatchedPeer<T> peer(session, request);
  if (request.peer == "cublas-geqrf-batched") return peer.batched();
  if (request.peer == "cusolver-loop") return peer.loop();
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace

PeerSamples measure_batched(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
