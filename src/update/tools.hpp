// SPDX-License-Identifier: Apache-2.0
// What every update works with: scratch memory that is kept from one update to the next, lists of tasks on the device,
// and factorizations of blocks too large for one task.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/update.hpp>

#include "dense/factorization.hpp"

namespace qrane::update {

using backend::cast_pointer;
using backend::DeviceMatrix;
using backend::Op;
using backend::Part;
using dense::Buffer, dense::bytes_of;

/// Scratch memory, handed out piece by piece and taken back all at once. Pieces of one update are valid until the next.
template <class B>
class Scratch {
 public:
  explicit Scratch(const typename B::Queue& queue) : queue_(queue) {}

  /// Every piece is free again; what was in several buffers becomes one.
  void reset() {
    if (buffers_.size() > 1) {
      buffers_.clear();
      grow(std::exchange(total_, 0));
    }
    used_ = 0;
  }
  void release() {
    buffers_.clear();
    total_ = used_ = 0;
  }
  template <class U>
  typename B::template Pointer<U> take(Index count) {
    const Index bytes = (bytes_of(std::max<Index>(count, 1), 1, 1, sizeof(U)) + 255) / 256 * 256;
    if (buffers_.empty() || used_ + bytes > buffers_.back().bytes()) {
      grow(std::max(bytes, total_ / 2));
      used_ = 0;
    }
    const Index offset = used_;
    used_ += bytes;
    return buffers_.back().template as<U>(offset);
  }
  template <class U>
  DeviceMatrix<B, U> matrix(Index rows, Index cols, Index count = 1) {
    const Index ld = std::max<Index>(rows, 1);
    return {take<U>(backend::elements_of<U>(ld, cols, count)), rows, cols, ld, ld * cols, count};
  }

 private:
  void grow(Index bytes) {
    buffers_.emplace_back(queue_, bytes);
    total_ += bytes;
  }

  typename B::Queue queue_;
  std::vector<Buffer<B>> buffers_;
  Index total_ = 0, used_ = 0;
};

/// Where sums of float lean to one side, one update adding to the errors of the last, transforms are found in double.
template <class B, class T>
constexpr bool in_double = !std::is_same_v<T, double> && B::float_sums_lean;
template <class B, class T>
using TransformScalar = std::conditional_t<in_double<B, T>, double, T>;

template <class B, class T>
class Tools {
  std::shared_ptr<Scratch<B>> memory_;

 public:
  using Mat = DeviceMatrix<B, T>;
  typename B::Queue queue;
  plan::DeviceProfile profile;
  Scratch<B>& scratch;

  Tools(const typename B::Queue& queue_, const plan::DeviceProfile& profile_)
      : Tools(queue_, profile_, std::make_shared<Scratch<B>>(queue_)) {}
  Tools(const typename B::Queue& queue_, const plan::DeviceProfile& profile_, std::shared_ptr<Scratch<B>> memory)
      : memory_(std::move(memory)), queue(queue_), profile(profile_), scratch(*memory_) {}

  /// The same for what is found in double; pieces of its scratch memory are pieces of this one's.
  Tools<B, double>& wide() {
    if (!wide_) {
      plan::DeviceProfile profile_of_double = profile;
      profile_of_double.limits = queue.limits(double{});
      wide_ = std::make_unique<Tools<B, double>>(queue, profile_of_double, memory_);
    }
    return *wide_;
  }

  /// With `timed` parts of an update are marked as they end, and `stages` sums their times by name, which waits.
  bool timed = false;
  void begin_stages() {
    marks_.clear();
    end_stage("");
  }
  void end_stage(const char* name) {
    if (timed) marks_.emplace_back(name, queue.record());
  }
  std::vector<UpdateStage> stages() {
    std::vector<UpdateStage> out;
    for (std::size_t i = 1; i < marks_.size(); ++i) {
      const auto name = marks_[i].first;  // clang 14 captures no structured bindings
      const auto known = std::find_if(out.begin(), out.end(), [&](const UpdateStage& s) { return s.name == name; });
      UpdateStage& stage = known == out.end() ? out.emplace_back(UpdateStage{name, 0}) : *known;
      stage.ms += queue.elapsed_ms(marks_[i - 1].second, marks_[i].second);
    }
    return out;
  }

  /// Columns of one compact-WY group of a task that has `cols`.
  int inner(Index cols) const {
    constexpr Index widest = 32;  // the CPU's panels may be wider than one group; the others' are not
    return static_cast<int>(std::min(std::max<Index>(cols, 1), widest));
  }
  /// Elements of T that a task of `cols` columns has.
  Index t_elements(Index cols) const {
    const Index b = inner(cols);
    return (cols + b - 1) / b * b * b;
  }

  /// Tasks for the matrices 0 .. count-1 of a batch of rows x cols blocks, their T factors one after another.
  typename B::template Pointer<backend::BlockTask> tasks(Index rows, Index cols, Index count) {
    TaskList& list = lists_[{rows, cols}];
    if (list.count < count) {
      const Index longer = std::max(count, 2 * list.count);
      std::vector<backend::BlockTask> host;
      for (Index i = 0; i < longer; ++i)
        host.push_back({0, i * t_elements(cols), static_cast<std::int32_t>(i), static_cast<std::int32_t>(rows), 0, 0,
                        static_cast<std::int32_t>(cols)});
      Buffer<B> memory(queue, longer * static_cast<Index>(sizeof(backend::BlockTask)));
      queue.upload(host.data(), memory.template as<backend::BlockTask>(), longer);
      list = {std::move(memory), longer};
    }
    return list.memory.template as<backend::BlockTask>();
  }
  /// The blocks a, all of one shape, as one launch of the tile kernels; t: t_elements(a.cols) each.
  backend::Panel<B, T> panel(const Mat& a, typename B::template Pointer<T> t) {
    backend::Panel<B, T> p;
    p.a = a;
    p.t = t;
    p.tasks = tasks(a.rows, a.cols, a.count);
    p.task_count = a.count;
    p.max_rows = static_cast<std::int32_t>(a.rows);
    p.max_cols = static_cast<std::int32_t>(a.cols);
    p.inner = inner(a.cols);
    return p;
  }

  /// AᵀA in double: its upper triangle, zeros below.
  DeviceMatrix<B, double> gram_of(const Mat& a) {
    constexpr Index most_scratch = Index{64} << 20;
    const Index n = a.cols, bytes = std::max(std::min(most_scratch, 16 * a.rows * n), 32 * n * 8) + 65536;
    const DeviceMatrix<B, double> w = scratch.template matrix<double>(n, n);
    fill(queue, w, 0.0, 0.0);
    if (a.rows > 0) gram(queue, a, w, backend::Scratch<B>{scratch.template take<std::byte>(bytes), bytes});
    return w;
  }

  /// A factorization of that shape, kept for the next time.
  dense::Factorization<B, T>& factorization(Index rows, Index cols, QForm form,
                                            dense::Results results = dense::Results::kept) {
    const auto key = std::make_tuple(rows, cols, form, results);
    auto& found = kept_[key];
    if (!found) {
      Options options;
      options.q = form;
      try {
        found = std::make_unique<dense::Factorization<B, T>>(
            queue, plan::make_plan(profile, rows, cols, 1, sizeof(T), options), std::nullopt, results);
      } catch (...) {
        kept_.erase(key);
        throw;
      }
    }
    return *found;
  }
  /// Gives all memory back: an update that ran out of it leaves none behind.
  void release() {
    scratch.release();
    kept_.clear();
    lists_.clear();
    wide_.reset();
  }
  /// Forgets them, when there are many; not while one is in use.
  void trim() {
    constexpr std::size_t most_kept = 6, most_lists = 256;
    if (kept_.size() > most_kept) kept_.clear();
    if (lists_.size() > most_lists) lists_.clear();
    if (wide_) wide_->trim();
  }

 private:
  std::unique_ptr<Tools<B, double>> wide_;
  struct TaskList {
    Buffer<B> memory;
    Index count = 0;
  };
  std::vector<std::pair<std::string, decltype(std::declval<typename B::Queue&>().record())>> marks_;
  std::map<std::pair<Index, Index>, TaskList> lists_;
  std::map<std::tuple<Index, Index, QForm, dense::Results>, std::unique_ptr<dense::Factorization<B, T>>> kept_;
};

/// A copy in double, in scratch memory.
template <class B, class T>
DeviceMatrix<B, double> widened(Tools<B, T>& tools, const DeviceMatrix<B, T>& a) {
  const DeviceMatrix<B, double> wide = tools.scratch.template matrix<double>(a.rows, a.cols);
  if (a.rows > 0 && a.cols > 0) widen(tools.queue, a, wide);
  return wide;
}
template <class B, class T>
void narrow(Tools<B, T>& tools, const DeviceMatrix<B, double>& wide, const DeviceMatrix<B, T>& a) {
  if (a.rows > 0 && a.cols > 0) narrow(tools.queue, wide, a, Part::all);
}

/// target := factor * source.
template <class B, class T>
void scaled_copy(Tools<B, T>& tools, T factor, const DeviceMatrix<B, T>& source, const DeviceMatrix<B, T>& target) {
  const DeviceMatrix<B, T> identity = tools.scratch.template matrix<T>(source.cols, source.cols);
  fill(tools.queue, identity, T(0), T(1));
  gemm(tools.queue, Op::none, Op::none, factor, source, identity, T(0), target);
}

}  // namespace qrane::update
