// SPDX-License-Identifier: Apache-2.0
// What a call makes for itself and would make again if it were repeated (svd, least_squares): a context keeps the
// workspaces of the last few, so that a loop of such calls allocates little but its results, and factorizations become
// recordings as those of one QR object do (repeated.hpp). Bits are the same either way.
//
// Bounded: the `most` things used last, together at most `limit_bytes`. They are freed with the context, on demand, and
// when an allocation would otherwise fail (vocabulary/reserve.hpp). A call takes a thing out and puts it back when it
// has succeeded; after a failure the thing is freed.
#pragma once

#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include <qrane/qr.hpp>

#include "vocabulary/reserve.hpp"

namespace qrane::dense {

/// What tells apart two things of one type.
struct KeptKey {
  Index rows = 0, cols = 0, rhs_cols = 0;
  Algorithm algorithm = Algorithm::automatic;
  bool operator==(const KeptKey&) const = default;
};

template <class B>
class Kept final : public backend::Reserve {
 public:
  using Queue = typename B::Queue;

  Kept(Queue queue, Index limit_bytes) : queue_(std::move(queue)), limit_bytes_(limit_bytes) { join(); }
  ~Kept() {
    leave();
    (void)give_back();
  }

  /// What a call has taken or made.
  template <class Thing>
  class Lease {
   public:
    Thing& operator*() const { return *thing_; }
    Thing* operator->() const { return thing_.get(); }
    /// At the end of a call that went well; queued work may still be using the thing.
    void keep() {
      const Index bytes = thing_->bytes();
      kept_->put({typeid(Thing), key_, std::move(thing_), bytes});
    }

   private:
    friend Kept;
    Lease(Kept& kept, const KeptKey& key, std::shared_ptr<Thing> thing)
        : kept_(&kept), key_(key), thing_(std::move(thing)) {}
    Kept* kept_;
    KeptKey key_;
    std::shared_ptr<Thing> thing_;
  };

  /// The kept Thing of that key, or make(). A Thing says how much device memory it holds: bytes().
  template <class Thing, class Make>
  Lease<Thing> lease(const KeptKey& key, Make make) {
    auto thing = take<Thing>(key);
    if (!thing) thing = std::make_shared<Thing>(make());
    return {*this, key, std::move(thing)};
  }

  Index bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  Index limit_bytes() const { return limit_bytes_; }
  void set_limit(Index bytes) {
    std::list<Item> going;  // released without the lock
    const std::lock_guard lock(mutex_);
    limit_bytes_ = bytes;
    trim(going);
  }

  /// Also from another thread than the context's. Nothing while the queue's stream is captured: what is in use by work
  /// before the graph cannot be released within.
  bool give_back() noexcept override {
    if (queue_.captured()) return false;
    std::list<Item> going;
    const std::lock_guard lock(mutex_);
    going.swap(items_);
    bytes_ = 0;
    return !going.empty();
  }

 private:
  static constexpr std::size_t most = 8;

  struct Item {
    std::type_index type;
    KeptKey key;
    std::shared_ptr<void> thing;
    Index bytes;
  };

  template <class Thing>
  std::shared_ptr<Thing> take(const KeptKey& key) {
    const std::lock_guard lock(mutex_);
    for (auto item = items_.begin(); item != items_.end(); ++item)
      if (item->type == typeid(Thing) && item->key == key) {
        auto thing = std::static_pointer_cast<Thing>(std::move(item->thing));
        bytes_ -= item->bytes;
        items_.erase(item);
        return thing;
      }
    return nullptr;
  }

  void put(Item item) {
    std::list<Item> going;  // released without the lock
    const Index bytes = item.bytes;
    const std::lock_guard lock(mutex_);
    if (bytes > limit_bytes_) return;
    items_.push_front(std::move(item));
    bytes_ += bytes;
    trim(going);
  }

  void trim(std::list<Item>& going) {
    while (items_.size() > most || bytes_ > limit_bytes_) {
      bytes_ -= items_.back().bytes;
      going.splice(going.end(), items_, std::prev(items_.end()));
    }
  }

  const Queue queue_;
  mutable std::mutex mutex_;
  std::list<Item> items_;  // the last used one first
  Index limit_bytes_;
  Index bytes_ = 0;
};

}  // namespace qrane::dense
