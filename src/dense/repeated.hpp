// SPDX-License-Identifier: Apache-2.0
// Launches repeated with the same addresses: from the third time on, where the backend keeps them (Queue::recorded),
// they are one launch of a recording. The first two times are direct, since
// somebody who factors once should not pay for a recording, and since what the launches themselves keep (queues beside
// this one, loaded kernels) is made by then.
//
// A recording takes host memory, and device memory that is the driver's own, not of the context's pool. Where there is
// none to be had the launches stay direct; they do so while the caller captures the queue's stream, too.
#pragma once

#include <qrane/error.hpp>

namespace qrane::dense {

/// `Key`: all that decides about the launches, and is compared.
template <class Queue, class Key>
class Repeated {
 public:
  /// Queues what work(queue) queues on the queue that it is given; `products`: library products, too.
  template <class Work>
  void run(Queue& queue, const Key& key, bool products, Work work) {
    if (!(key == key_)) forget();
    key_ = key;
    if (times_ < direct) {
      ++times_;
    } else if (!refused_ && !queue.captured()) {
      if (!recording_) make(queue, products, work);
      if (recording_) return queue.replay(recording_);
    }
    work(queue);
  }

 private:
  void forget() {
    recording_ = {};
    times_ = 0;
  }

  static constexpr int direct = 2;

  template <class Work>
  void make(Queue& queue, bool products, Work work) {
    try {
      recording_ = queue.recorded(work, products);
      refused_ = !recording_;
    } catch (const Error&) {
      refused_ = true;
    }
  }

  Key key_{};
  int times_ = 0;
  bool refused_ = false;
  typename Queue::Recording recording_{};
};

}  // namespace qrane::dense
