// SPDX-License-Identifier: Apache-2.0
// What a call makes for itself and would make again if it were repeated (svd, least_squares): a context keeps the
// factorizations and the memory of the last few, so that a loop of such calls allocates little but its results, and
// factorizations become recordings as those of one QR object do (repeated.hpp). Bits are the same either way.
//
// Bounded: the `most` things used last, together at most so many bytes of workspace. They go with the context, and as
// soon as an allocation would fail without (vocabulary/reserve.hpp). What a call has taken nobody else can take; what
// it has not put back when it fails goes.
#pragma once

#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include "dense/factorization.hpp"
#include "vocabulary/reserve.hpp"

namespace qrane::dense {

template <class B>
class Kept final : public backend::Reserve {
  struct Key {
    Index rows = 0, cols = 0;
    Algorithm algorithm = Algorithm::automatic;
    QForm q = QForm::none;
    bool operator==(const Key&) const = default;
  };

 public:
  using Queue = typename B::Queue;

  Kept(Queue queue, Index most_bytes) : queue_(std::move(queue)), most_bytes_(most_bytes) { join(); }
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
    void keep() { kept_->put({typeid(Thing), key_, std::move(thing_), bytes_}); }

   private:
    friend Kept;
    Lease(Kept& kept, const auto& key, std::shared_ptr<Thing> thing, Index bytes)
        : kept_(&kept), key_(key), thing_(std::move(thing)), bytes_(bytes) {}
    Kept* kept_;
    Key key_;
    std::shared_ptr<Thing> thing_;
    Index bytes_;
  };

  /// A factorization of the plan for this shape and these wishes, of which algorithm and q count alone.
  template <class T>
  Lease<Factorization<B, T>> factorization(Queue& queue, const plan::DeviceProfile& profile, Index rows, Index cols,
                                           const Options& wishes) {
    const Key key{rows, cols, wishes.algorithm, wishes.q};
    auto f = take<Factorization<B, T>>(key);
    if (!f) {
      Options planned;
      planned.algorithm = wishes.algorithm;
      planned.q = wishes.q;
      f = std::make_shared<Factorization<B, T>>(queue, plan::make_plan(profile, rows, cols, 1, sizeof(T), planned));
    }
    const Index bytes = f->plan().workspace_bytes;
    return {*this, key, std::move(f), bytes};
  }

  /// Device memory of unknown contents.
  Lease<Buffer<B>> memory(Queue& queue, Index bytes) {
    const Key key{bytes};
    auto buffer = take<Buffer<B>>(key);
    if (!buffer) buffer = std::make_shared<Buffer<B>>(queue, bytes);
    return {*this, key, std::move(buffer), bytes};
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
    Key key;
    std::shared_ptr<void> thing;
    Index bytes;
  };

  template <class Thing>
  std::shared_ptr<Thing> take(const Key& key) {
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
    if (item.bytes > most_bytes_) return;
    std::list<Item> going;  // released without the lock
    const Index bytes = item.bytes;
    const std::lock_guard lock(mutex_);
    items_.push_front(std::move(item));
    bytes_ += bytes;
    while (items_.size() > most || bytes_ > most_bytes_) {
      bytes_ -= items_.back().bytes;
      going.splice(going.end(), items_, std::prev(items_.end()));
    }
  }

  const Queue queue_;
  const Index most_bytes_;
  std::mutex mutex_;
  std::list<Item> items_;  // the last used one first
  Index bytes_ = 0;
};

}  // namespace qrane::dense
