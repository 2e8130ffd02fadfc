// SPDX-License-Identifier: Apache-2.0
// Numeric multifrontal QR on a device, S = Q R of the analyzed pattern: the rounds of front_rounds.hpp carried out by
// the kernels of vocabulary/fronts.hpp. (Algorithm 980, sections 3.1-3.3.)
//
// All launches are queued at once; the host reads ranks at the end. Final rows of R are copied to the host while later
// rounds run, and also stay on the device for solves (solve.hpp). With Q kept, fronts do not overlap in storage; Q is
// copied to the host when it is used there (factors.hpp).
//
// If that does not fit, contribution blocks and finished fronts are spilled to the host (memory.hpp, plan/staging.hpp).
// The numbers of each front are the same bits.
//
// Tables, plan and memory are kept: a second run with as many right-hand sides allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <qrane/error.hpp>

#include "sparse/device/memory.hpp"
#include "sparse/device/results.hpp"
#include "sparse/device/rounds.hpp"
#include "sparse/device/solve.hpp"
#include "sparse/device/tables.hpp"
#include "sparse/factors.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceNumeric final : public Factors<T> {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  /// rhs_cols: of the runs to come; others may be given all the same. Throws Error{out_of_memory}.
  DeviceNumeric(const Queue& queue, std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options,
                Index rhs_cols)
      : Factors<T>(std::move(symbolic), options), queue_(queue), rounds_(queue) {
    guarded([&] { prepare(rhs_cols); });
  }
  ~DeviceNumeric() override { rounds_.settle(); }

  bool run(const T* user_values, T* rhs, Index rhs_cols) override {
    forget();
    if (!this->prepare_values(user_values)) return false;
    guarded([&] {
      prepare(rhs_cols);
      moved_bytes_ = 0;
      send(rhs);
      queue_rounds();
      if (!options_.on_progress) rounds_.record(tables_, memory_, options_.keep_q);
      queue_.synchronize();
      moved_bytes_ +=
          results_.fetch(queue_, *symbolic_, tables_.fronts, memory_, options_.keep_q, rhs, stored_, dropped_);
    });
    this->count_rank();
    return true;
  }

  Index memory_bytes() const override { return bytes_; }
  Index peak_bytes() const override { return tables_.bytes() + memory_.device_bytes(); }  // of the device's
  int threads() const override { return 1; }
  Backend backend() const override { return backend_from_string(B::name); }
  Index moved_bytes() const override { return moved_bytes_; }
  int stages() const override { return memory_.plan.stages(); }
  FactorUses<T>* device_uses() override {
    if (planned_rhs_ < 0 || !memory_.reaches_r() || !fits_solve_lists(*symbolic_)) return nullptr;
    if (!uses_) {
      const Index limit = options_.memory_limit_bytes;
      uses_.emplace(queue_, *this, memory_.plan, tables_.fronts, options_.keep_q && !memory_.plan.staged(),
                    limit > 0 ? std::max<Index>(limit - peak_bytes(), 0) : -1);
    }
    return &*uses_;
  }

 private:
  using Factors<T>::symbolic_, Factors<T>::options_, Factors<T>::values_, Factors<T>::exponents_, Factors<T>::stored_,
      Factors<T>::dropped_, Factors<T>::tolerance_;

  /// After an exception no work is queued, and the next run plans again.
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
    rounds_.settle();
    forget();
    planned_rhs_ = -1;
    release();
  }
  void release() {
    uses_.reset();
    tables_ = {};
    memory_.release();
    bytes_ = 0;
  }
  void forget() {
    std::fill(stored_.begin(), stored_.end(), StoredFront<T>{});
    q_on_host_ = false;
    if (uses_) uses_->forget_run();
  }

  void fetch_q() override {
    if (!options_.keep_q || q_on_host_) return;
    if (!memory_.plan.staged()) {
      bytes_ += memory_.make_room_for_q(queue_);
      queue_.download_later(memory_.storage(), memory_.host_images(), memory_.plan.storage_size);
      queue_.synchronize();
    }
    results_.fetch_panels(queue_, tables_.fronts, memory_, stored_);
    q_on_host_ = true;
  }

  void prepare(Index rhs_cols) {
    if (planned_rhs_ == rhs_cols) return;
    planned_rhs_ = -1;
    release();
    memory_.make_plan(queue_, *symbolic_, options_, rhs_cols);
    tables_ = DeviceTables<B, T>(queue_, *symbolic_, memory_.plan, memory_.panel, rhs_cols);
    memory_.allocate(queue_);
    tables_.fronts.storage = memory_.storage();
    tables_.fronts.r = memory_.r();
    rounds_.plan(*symbolic_, memory_, options_.keep_q);
    bytes_ = tables_.bytes() + memory_.device_bytes() + memory_.host_bytes();
    planned_rhs_ = rhs_cols;
  }

  // -- a run ------------------------------------------------------------------------------------------------------

  template <class U>
  void upload(const U* source, Pointer<U> target, Index count) {
    if (count > 0) queue_.upload(source, target, count);
    moved_bytes_ += count * static_cast<Index>(sizeof(U));
  }
  void send(const T* rhs) {
    backend::Fronts<B, T>& fronts = tables_.fronts;
    upload(values_.data(), fronts.values, static_cast<Index>(values_.size()));
    upload(exponents_.data(), tables_.exponents, static_cast<Index>(exponents_.size()));
    fronts.exponents = exponents_.empty() ? Pointer<std::int32_t>{} : tables_.exponents;
    upload(rhs, fronts.rhs, symbolic_->rows * fronts.rhs_cols);
    fronts.tolerance = tolerance_;
    fronts.scaled_tolerance = this->scaled_tolerance();
    if (B::records) {
      upload(&tolerance_, tables_.tolerance, 1);
      fronts.device_tolerance = tables_.tolerance;
    }
  }

  void queue_rounds() {
    if (!options_.on_progress) {
      moved_bytes_ += rounds_.run_recorded(tables_, memory_, options_.keep_q);
      return;
    }
    Progress progress(options_.on_progress, symbolic_->facts.flops);
    progress.begin();
    const std::vector<double> flops = flops_by_round();
    const Index rounds = memory_.plan.rounds();
    moved_bytes_ += rounds_.run(tables_, memory_, options_.keep_q, [&](Index r) {
      constexpr Index steps = 50;  // who looks on wants to see what is done, not what is queued
      if ((r + 1) % std::max<Index>(rounds / steps, 1) == 0) rounds_.settle();
      progress.add(flops[r]);
    });
    rounds_.settle();
    progress.finish();
  }

  /// Of the fronts that end in each.
  std::vector<double> flops_by_round() const {
    const FrontRounds& plan = memory_.plan;
    std::vector<double> flops(plan.rounds(), 0.0);
    for (std::size_t f = 0; f < plan.end.size(); ++f) flops[plan.end[f]] += symbolic_->fronts[f].flops;
    return flops;
  }

  Queue queue_;
  DeviceRounds<B, T> rounds_;
  DeviceMemory<B, T> memory_;
  DeviceTables<B, T> tables_;
  DeviceResults<B, T> results_;
  std::optional<DeviceSolve<B, T>> uses_;
  bool q_on_host_ = false;
  Index planned_rhs_ = -1;
  Index bytes_ = 0, moved_bytes_ = 0;
};

}  // namespace qrane::sparse
