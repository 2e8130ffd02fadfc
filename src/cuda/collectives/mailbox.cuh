// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals (mbarrier), and stores into another block of a cluster that are counted
// by a barrier there, so that a reader waits for its data and nothing else. Before compute capability 9.0, where a
// cluster is one block, those are plain stores and a wait is the block's barrier.
#pragma once

#include <cstdint>

namespace qrane::backend::cuda {

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Its phases end when `count` threads have arrived.
struct Barrier {
  std::uint64_t state;

  __device__ void init(int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&state)), "r"(count) : "memory");
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
  }
  /// Until the phase of this parity has ended; the first one's is 0.
  __device__ void wait(int parity) const {
    int done = 0;
    while (done == 0) {
#if __CUDA_ARCH__ >= 900
      asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(shared_address(&state)), "r"(parity)
                   : "memory");
#else
      asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(shared_address(&state)), "r"(parity)
                   : "memory");
#endif
    }
  }
};

/// A barrier for data that other threads, also of other blocks, put into this block's shared memory.
struct Mailbox {
  Barrier barrier;

  __device__ void init() { barrier.init(1); }
  /// By one thread, once in a phase.
  __device__ void expect(int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b64 phase;\nmbarrier.arrive.expect_tx.shared.b64 phase, [%0], %1;\n}" ::"r"(
                     shared_address(&barrier.state)),
                 "r"(bytes)
                 : "memory");
#else
    (void)bytes;
#endif
  }
  /// Until all of it is there.
  __device__ void wait(int parity) const {
#if __CUDA_ARCH__ >= 900
    barrier.wait(parity);
#else
    (void)parity;
    __syncthreads();
#endif
  }
};

/// Where to put data: shared memory of a block of the cluster, and the mailbox there.
struct Address {
#if __CUDA_ARCH__ >= 900
  std::uint32_t data, box;

  __device__ Address(const double* p, const Mailbox* mailbox, int rank)
      : data(in_block(shared_address(p), rank)), box(in_block(shared_address(mailbox), rank)) {}
  /// index: in doubles from p; number: in mailboxes.
  __device__ void put(int index, int number, double value) const {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f64 [%0], %1, [%2];" ::"r"(data + 8 * index),
        "d"(value), "r"(box + static_cast<int>(sizeof(Mailbox)) * number)
        : "memory");
  }

 private:
  __device__ static std::uint32_t in_block(std::uint32_t address, int rank) {
    std::uint32_t out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
    return out;
  }
#else
  double* data;

  __device__ Address(double* p, const Mailbox*, int) : data(p) {}
  __device__ void put(int index, int, double value) const { data[index] = value; }
#endif
};

}  // namespace qrane::backend::cuda
