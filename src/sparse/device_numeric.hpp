// SPDX-License-Identifier: Apache-2.0
// Numeric multifrontal QR on a device, S = Q R of the analyzed pattern: the rounds of front_rounds.hpp carried out by the
// kernels of backend/fronts.hpp. (Algorithm 980, sections 3.1-3.3.)
//
// Everything is queued at once; the host learns of ranks when all is done. R's rows leave for the host beside the next
// rounds, as soon as enough of them are final. With Q kept, fronts stay apart in storage, which goes to the host at the
// end, where its panels are used (factors.hpp).
//
// Under a memory limit fewer fronts are under way at once (front_rounds.hpp). Each front's numbers are the same bits.
//
// Tables, plan and memory stay with the object: a second run with as many right-hand sides allocates nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/error.hpp>

#include "dense/buffer.hpp"
#include "sparse/factors.hpp"
#include "sparse/front_rounds.hpp"
#include "sparse/host_memory.hpp"

namespace qrane::sparse {

/// Where a run's time went, in seconds on the host's clock.
struct DevicePhases {
  double prepare = 0;  ///< values scaled, tolerance
  double send = 0;
  double queue = 0;  ///< until everything was queued; the device works by then
  double wait = 0;
  double fetch = 0;  ///< ranks, right-hand sides, Q
};

template <class B, class T>
class DeviceNumeric final : public Factors<T> {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  /// rhs_cols: of the runs to come; others may be given all the same. Throws Error{out_of_memory}.
  DeviceNumeric(const Queue& queue, std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options,
                Index rhs_cols)
      : Factors<T>(std::move(symbolic), options), queue_(queue), urgent_(queue_.side()), copies_(urgent_.side()) {
    guarded([&] { prepare(rhs_cols); });
  }
  ~DeviceNumeric() override { settle(); }

  bool run(const T* user_values, T* rhs, Index rhs_cols) override {
    forget();
    Stopwatch watch;
    if (!this->prepare_values(user_values)) return false;
    phases_.prepare = watch.lap();
    guarded([&] {
      prepare(rhs ? rhs_cols : 0);
      moved_bytes_ = 0;
      watch.lap();
      send(rhs);
      phases_.send = watch.lap();
      queue_rounds();
      phases_.queue = watch.lap();
      queue_.synchronize();
      phases_.wait = watch.lap();
      fetch(rhs);
      phases_.fetch = watch.lap();
    });
    this->count_rank();
    return true;
  }

  Index memory_bytes() const override { return bytes_; }
  Index peak_bytes() const override { return fronts_bytes_; }  // of the device's, for fronts and what they leave
  int threads() const override { return 1; }
  Backend backend() const override { return backend_from_string(B::name); }
  Index moved_bytes() const override { return moved_bytes_; }
  const FrontRounds& rounds() const { return plan_; }
  const DevicePhases& phases() const { return phases_; }

 private:
  using Factors<T>::symbolic_, Factors<T>::options_, Factors<T>::values_, Factors<T>::exponents_, Factors<T>::stored_,
      Factors<T>::dropped_, Factors<T>::tolerance_;

  static constexpr bool reaches_host = std::is_same_v<Pointer<T>, T*>;  // kernels can write to HostMemory

  class Stopwatch {
   public:
    double lap() {
      const Clock::time_point now = Clock::now();
      return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    }

   private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  /// After an exception nothing is under way, and the next run plans anew.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
      give_up();
      throw Error(ErrorCode::out_of_memory,
                  detail::concat("no memory on the host for a sparse factorization with ", symbolic_->front_count(),
                                 " fronts, ", bytes_, " bytes in use"));
    } catch (...) {
      give_up();
      throw;
    }
  }
  void give_up() {
    settle();
    forget();
    planned_rhs_ = -1;
    release();
  }
  void release() {
    for (dense::Buffer<B>* buffer : {&constants_, &variables_, &storage_, &r_}) *buffer = dense::Buffer<B>();
    for (HostMemory<B, T>* memory : {&host_r_, &host_storage_}) *memory = HostMemory<B, T>();
    bytes_ = 0;
  }
  void settle() noexcept {
    for (Queue* q : {&urgent_, &copies_, &queue_}) try {
        q->synchronize();
      } catch (...) {  // what failed has been reported, or will be at the next call
      }
  }
  void forget() { std::fill(stored_.begin(), stored_.end(), StoredFront<T>{}); }

  // -- plan, tables, memory ---------------------------------------------------------------------------------------

  void prepare(Index rhs_cols) {
    if (planned_rhs_ == rhs_cols) return;
    FrontRoundsOptions rounds;
    rounds.rhs_cols = rhs_cols;
    rounds.whole_elements = queue_.front_whole_elements(T{});
    rounds.update_cols = queue_.front_update_cols(T{});
    rounds.keep_q = options_.keep_q;
    rounds.detect_rank = options_.detect_rank;
    planned_rhs_ = -1;
    plan_within_limit(rounds);
    release();
    fronts_ = {};
    fronts_.panel = static_cast<std::int32_t>(rounds.panel);
    fronts_.rhs_cols = static_cast<std::int32_t>(rhs_cols);
    fronts_.rhs_ld = symbolic_->rows;
    place_constants();
    place_variables();
    const Index scalar = sizeof(T);
    storage_ = dense::Buffer<B>(queue_, plan_.storage_size * scalar);
    fronts_.storage = storage_.template as<T>();
    host_r_ = HostMemory<B, T>(queue_, plan_.r_size);
    if (r_to_host_) {
      if constexpr (reaches_host) fronts_.r = host_r_.data();
    } else {
      r_ = dense::Buffer<B>(queue_, plan_.r_size * scalar);
      fronts_.r = r_.template as<T>();
    }
    if (options_.keep_q) host_storage_ = HostMemory<B, T>(queue_, plan_.storage_size);
    fronts_bytes_ = needed_bytes();
    bytes_ = constants_.bytes() + variables_.bytes() + storage_.bytes() + r_.bytes() +
             (plan_.r_size + (options_.keep_q ? plan_.storage_size : 0)) * scalar;
    planned_rhs_ = rhs_cols;
  }

  /// Fronts as soon as they can begin; where the limit forbids it as late as they may, then in postorder, at last with R
  /// written to the host by the kernels themselves.
  void plan_within_limit(FrontRoundsOptions rounds) {
    r_to_host_ = false;
    plan_ = plan_rounds(*symbolic_, rounds);
    if (fits()) return;
    const Index limit = options_.memory_limit_bytes;
    if (!options_.keep_q) {
      rounds.late = true;
      plan_ = plan_rounds(*symbolic_, rounds);
      if (fits()) return;
      rounds.storage_limit = std::max<Index>(limit / static_cast<Index>(sizeof(T)) - plan_.r_size, 0);
      plan_ = plan_rounds(*symbolic_, rounds);
      if (fits()) return;
      if constexpr (reaches_host) {
        r_to_host_ = true;
        rounds.storage_limit = limit / static_cast<Index>(sizeof(T));
        plan_ = plan_rounds(*symbolic_, rounds);
        if (fits()) return;
      }
    }
    throw Error(ErrorCode::out_of_memory,
                detail::concat("the sparse factorization needs ", needed_bytes(), " bytes of device memory for fronts",
                               options_.keep_q ? ", Q" : "", r_to_host_ ? "" : " and R", ", and the limit is ", limit));
  }
  Index needed_bytes() const {
    return (plan_.storage_size + (r_to_host_ ? 0 : plan_.r_size)) * static_cast<Index>(sizeof(T));
  }
  bool fits() const { return options_.memory_limit_bytes == 0 || needed_bytes() <= options_.memory_limit_bytes; }

  /// Tables that go to the device in one piece.
  class Image {
   public:
    template <class U>
    Index add(const U* source, std::size_t count) {
      const std::size_t offset = (bytes_.size() + 255) / 256 * 256, size = count * sizeof(U);
      bytes_.resize(offset + std::max<std::size_t>(size, 1));
      if (size > 0) std::memcpy(bytes_.data() + offset, source, size);
      return static_cast<Index>(offset);
    }
    template <class U>
    Index add(const std::vector<U>& source) {
      return add(source.data(), source.size());
    }
    Index add_narrow(const std::vector<Index>& source) {
      return add(std::vector<std::int32_t>(source.begin(), source.end()));
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

   private:
    std::vector<std::byte> bytes_;
  };

  void place_constants() {
    const Symbolic& s = *symbolic_;
    std::vector<std::int32_t> own_column(at(s.rows), 0);
    for (const Front& front : s.fronts)
      for (Index r = front.first_row; r < front.first_row + front.own_rows; ++r)
        own_column[at(r)] = s.entry_col[at(s.row_begin[at(r)])];
    Image image;
    const Index shapes = image.add(plan_.shapes), children = image.add_narrow(s.children),
                row_begin = image.add(s.row_begin), entry_col = image.add(s.entry_col), own = image.add(own_column),
                parent_col = image.add(s.parent_col), stair = image.add_narrow(s.stair),
                own_slot = image.add(s.own_slot), cb_slot = image.add(s.cb_slot), lists = image.add(plan_.lists),
                shares = image.add(plan_.shares), panels = image.add(plan_.panels), updates = image.add(plan_.updates);
    const auto size = static_cast<Index>(image.bytes().size());
    constants_ = dense::Buffer<B>(queue_, size);
    queue_.upload(image.bytes().data(), constants_.template as<std::byte>(), size);
    fronts_.shapes = constants_.template as<backend::FrontShape>(shapes);
    fronts_.children = constants_.template as<std::int32_t>(children);
    fronts_.row_begin = constants_.template as<std::int64_t>(row_begin);
    fronts_.entry_col = constants_.template as<std::int32_t>(entry_col);
    fronts_.own_column = constants_.template as<std::int32_t>(own);
    fronts_.parent_col = constants_.template as<std::int32_t>(parent_col);
    fronts_.full_stair = constants_.template as<std::int32_t>(stair);
    fronts_.full_own_slot = constants_.template as<std::int32_t>(own_slot);
    fronts_.full_cb_slot = constants_.template as<std::int32_t>(cb_slot);
    lists_ = constants_.template as<std::int32_t>(lists);
    shares_ = constants_.template as<backend::FrontShare>(shares);
    panels_ = constants_.template as<backend::FrontPanelTask>(panels);
    updates_ = constants_.template as<backend::FrontUpdateTask>(updates);
  }

  void carve(dense::Carver<B>& carver) {
    const Symbolic& s = *symbolic_;
    const auto columns = static_cast<Index>(s.front_cols.size());
    fronts_.values = carver.template take<T>(s.entries);
    exponents_memory_ = carver.template take<std::int32_t>(s.cols);
    fronts_.rhs = carver.template take<T>(s.rows * fronts_.rhs_cols);
    fronts_.states = carver.template take<backend::FrontState>(s.front_count());
    fronts_.panels = carver.template take<backend::FrontPanelState>(plan_.panels_size);
    fronts_.stair = carver.template take<std::int32_t>(columns);
    fronts_.own_slot = carver.template take<std::int32_t>(s.rows);
    fronts_.cb_slot = carver.template take<std::int32_t>(plan_.slots_size);
    fronts_.row_ids = carver.template take<std::int32_t>(plan_.row_ids_size);
    fronts_.pivot = carver.template take<std::int32_t>(columns);
  }
  void place_variables() {
    dense::Carver<B> counting;
    carve(counting);
    variables_ = dense::Buffer<B>(queue_, counting.used());
    dense::Carver<B> carver(variables_.template as<std::byte>());
    carve(carver);
  }

  // -- a run ------------------------------------------------------------------------------------------------------

  template <class U>
  void upload(const U* source, Pointer<U> target, Index count) {
    if (count > 0) queue_.upload(source, target, count);
    moved_bytes_ += count * static_cast<Index>(sizeof(U));
  }
  template <class U>
  void download(Pointer<U> source, U* target, Index count) {
    if (count > 0) queue_.download(source, target, count);
    moved_bytes_ += count * static_cast<Index>(sizeof(U));
  }

  void send(const T* rhs) {
    upload(values_.data(), fronts_.values, static_cast<Index>(values_.size()));
    upload(exponents_.data(), exponents_memory_, static_cast<Index>(exponents_.size()));
    fronts_.exponents = exponents_.empty() ? Pointer<std::int32_t>{} : exponents_memory_;
    upload(rhs, fronts_.rhs, symbolic_->rows * fronts_.rhs_cols);
    fronts_.tolerance = tolerance_;
  }

  void queue_rounds() {
    Index r_sent = r_to_host_ ? plan_.r_size : 0;
    const auto send_r = [&](Index until) {
      copies_.follow(queue_);
      copies_.follow(urgent_);
      download_later(copies_, fronts_.r + r_sent, host_r_.data() + r_sent, until - r_sent);
      moved_bytes_ += (until - r_sent) * static_cast<Index>(sizeof(T));
      r_sent = until;
    };
    Progress progress(options_.on_progress, symbolic_->facts.flops);
    const std::vector<double> flops = options_.on_progress ? flops_by_round() : std::vector<double>();
    bool beside_busy = false;
    urgent_.follow(queue_);
    for (Index r = 0; r < plan_.rounds(); ++r) {
      const Index first = plan_.round_begin[at(r)], last = plan_.round_begin[at(r) + 1];
      const bool beside = !is_urgent(plan_.launches[at(last - 1)].step);  // these come last
      if (beside_busy) urgent_.follow(queue_);
      if (beside) queue_.follow(urgent_);
      for (Index l = first; l < last; ++l) {
        const FrontLaunch& launch = plan_.launches[at(l)];
        start(is_urgent(launch.step) ? urgent_ : queue_, launch);
      }
      beside_busy = beside;
      constexpr Index worth_copying = (Index{1} << 21) / static_cast<Index>(sizeof(T));
      if (plan_.r_final[at(r)] - r_sent >= worth_copying) send_r(plan_.r_final[at(r)]);
      if (options_.on_progress) {  // who looks on wants to see what is done, not what is queued
        constexpr Index steps = 50;
        if ((r + 1) % std::max<Index>(plan_.rounds() / steps, 1) == 0) settle();
        progress.add(flops[at(r)]);
      }
    }
    if (r_sent < plan_.r_size) send_r(plan_.r_size);
    queue_.follow(urgent_);
    queue_.follow(copies_);
    if (options_.on_progress) settle();
    progress.finish();
  }

  /// Of the fronts that end in each.
  std::vector<double> flops_by_round() const {
    std::vector<double> flops(at(plan_.rounds()), 0.0);
    for (std::size_t f = 0; f < plan_.end.size(); ++f) flops[at(plan_.end[f])] += symbolic_->fronts[f].flops;
    return flops;
  }

  void start(Queue& queue, const FrontLaunch& launch) {
    const auto tasks = [&](auto list) {
      using Task = std::remove_cvref_t<decltype(task_of(list))>;
      return backend::FrontTasks<B, Task>{list + launch.first, launch.count, launch.max_rows, launch.max_cols};
    };
    switch (launch.step) {
      case FrontStep::lay_out: return queue.lay_out_fronts(fronts_, tasks(lists_));
      case FrontStep::whole: return queue.factor_whole_fronts(fronts_, tasks(lists_), options_.keep_q);
      case FrontStep::assemble: return queue.assemble_fronts(fronts_, tasks(shares_));
      case FrontStep::finish: return queue.finish_fronts(fronts_, tasks(shares_));
      case FrontStep::panel:
      case FrontStep::tail: return queue.factor_front_panels(fronts_, tasks(panels_));
      case FrontStep::narrow:
      case FrontStep::closing:
      case FrontStep::wide: return queue.update_fronts(fronts_, tasks(updates_));
    }
  }
  // what a list's pointer points to
  static std::int32_t task_of(Pointer<std::int32_t>);
  static backend::FrontShare task_of(Pointer<backend::FrontShare>);
  static backend::FrontPanelTask task_of(Pointer<backend::FrontPanelTask>);
  static backend::FrontUpdateTask task_of(Pointer<backend::FrontUpdateTask>);

  // -- what comes back --------------------------------------------------------------------------------------------

  void fetch(T* rhs) {
    const Symbolic& s = *symbolic_;
    states_.resize(s.fronts.size());
    download(fronts_.states, states_.data(), s.front_count());
    download(fronts_.rhs, rhs, s.rows * fronts_.rhs_cols);
    for (std::size_t f = 0; f < stored_.size(); ++f) {
      const backend::FrontShape& shape = plan_.shapes[f];
      StoredFront<T>& stored = stored_[f];
      stored.rows = states_[f].rows;
      stored.r_rows = states_[f].r_rows;
      stored.cb_rows = states_[f].cb_rows;
      stored.r = host_r_.data() + shape.r;
      stored.r_bound = shape.r_bound;
      dropped_[f] = states_[f].dropped;
    }
    fetch_live_columns();
    if (options_.keep_q || fronts_.rhs_cols > 0) fetch_row_ids();
    if (options_.keep_q) fetch_panels();
  }

  /// Which pivotal columns live, of fronts that have not all of them.
  void fetch_live_columns() {
    Index count = 0;
    for (std::size_t f = 0; f < stored_.size(); ++f)
      if (stored_[f].r_rows < plan_.shapes[f].pivots) count += plan_.shapes[f].pivots;
    if (count == 0) return;
    pivots_.resize(symbolic_->front_cols.size());
    download(fronts_.pivot, pivots_.data(), static_cast<Index>(pivots_.size()));
    live_.resize(at(count));
    std::int32_t* next = live_.data();
    for (std::size_t f = 0; f < stored_.size(); ++f) {
      const backend::FrontShape& shape = plan_.shapes[f];
      if (stored_[f].r_rows == shape.pivots) continue;
      stored_[f].live_count = next;
      std::int32_t live = 0;
      for (Index j = 0; j < shape.pivots; ++j) *next++ = live += pivots_[at(shape.columns + j)] >= 0;
    }
  }

  void fetch_row_ids() {
    std::vector<std::int32_t> narrow(at(plan_.row_ids_size));
    download(fronts_.row_ids, narrow.data(), plan_.row_ids_size);
    row_ids_.assign(narrow.begin(), narrow.end());
    for (std::size_t f = 0; f < stored_.size(); ++f) stored_[f].row_ids = row_ids_.data() + plan_.shapes[f].row_ids;
  }

  void fetch_panels() {
    std::vector<backend::FrontPanelState> states(at(plan_.panels_size));
    download(fronts_.panels, states.data(), plan_.panels_size);
    download(fronts_.storage, host_storage_.data(), plan_.storage_size);
    stored_panels_.resize(states.size());
    const Index width = fronts_.panel;
    for (std::size_t f = 0; f < stored_.size(); ++f) {
      const backend::FrontShape& shape = plan_.shapes[f];
      stored_[f].panels = stored_panels_.data() + shape.panels;
      for (Index first = 0, k = shape.panels; first < shape.cols; first += width, ++k) {
        const backend::FrontPanelState& state = states[at(k)];
        if (state.live == 0) continue;
        T* const v = host_storage_.data() + shape.matrix + first * shape.ld + state.first_row;
        T* const t = host_storage_.data() + shape.t + first * width;
        stored_[f].panels[stored_[f].panel_count++] = {
            state.first_row, state.height, std::min<Index>(width, shape.cols - first), v, shape.ld, t, width};
      }
    }
  }

  Queue queue_, urgent_, copies_;
  FrontRounds plan_;
  Index planned_rhs_ = -1;
  dense::Buffer<B> constants_, variables_, storage_, r_;
  backend::Fronts<B, T> fronts_;
  Pointer<std::int32_t> exponents_memory_{};
  Pointer<std::int32_t> lists_{};
  Pointer<backend::FrontShare> shares_{};
  Pointer<backend::FrontPanelTask> panels_{};
  Pointer<backend::FrontUpdateTask> updates_{};
  HostMemory<B, T> host_r_, host_storage_;
  std::vector<backend::FrontState> states_;
  std::vector<std::int32_t> pivots_, live_;
  std::vector<Index> row_ids_;
  std::vector<StoredPanel<T>> stored_panels_;
  bool r_to_host_ = false;
  Index bytes_ = 0, fronts_bytes_ = 0, moved_bytes_ = 0;
  DevicePhases phases_;
};

}  // namespace qrane::sparse
