// SPDX-License-Identifier: Apache-2.0
// Work under a guard's flag. Optional in the vocabulary: queue.guarded(flag, work) of backends whose recordings leave
// out all of it at once; elsewhere every kernel looks at the flag for itself.
#pragma once

namespace qrane::backend {

/// work(q) queues what is done only where *flag != 0 at this place in the queue's work; the flag stays as it is until
/// then.
template <class Queue, class Flag, class Work>
void guarded(Queue& queue, Flag flag, Work work) {
  if constexpr (requires { queue.guarded(flag, work); }) {
    queue.guarded(flag, work);
  } else {
    Queue conditional = queue.when(flag);
    work(conditional);
  }
}

}  // namespace qrane::backend
