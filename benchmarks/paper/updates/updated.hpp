// SPDX-License-Identifier: Apache-2.0
// make_updates on one backend.
#pragma once

#include <utility>

#include "api/engine.hpp"
#include "api/updated_engine.hpp"
#include "paper/updates/by_rotations.hpp"
#include "paper/updates/updates.hpp"

namespace qrane::paper {

using Wanted = std::shared_ptr<std::optional<Method>>;

template <class B, class T>
struct Start {
  dense::Factorization<B, T>& factors;
  Wanted method;
};

/// Why a method cannot make a change; empty where it can.
inline const char* why_not(Method method, QForm form, Change change) {
  if (change == Change::rank_k) return "it is not one of the paper's four updates";
  if (form == QForm::none && (change == Change::delete_rows || change == Change::insert_columns))
    return "it takes rows out and columns in by means of Q";
  if (method == Method::paper_dense && change != Change::insert_rows && change != Change::insert_columns)
    return "it is for rows or columns that come in";
  return "";
}

/// The product's updatable factorization, whose changes go the paper's way where one is wanted.
template <class B, class T>
class Updated : public update::Updated<B, T> {
  using Base = update::Updated<B, T>;

 public:
  Updated(const Start<B, T>& start, const plan::DeviceProfile& profile)
      : Base(start.factors, profile), wanted_(start.method) {}

  UpdateReport update(const update::UpdateRequest<T>& r) {
    if (!*wanted_) return Base::update(r);
    const Method method = **wanted_;
    const std::string excluded = why_not(method, this->plan().q, r.change);
    detail::check(excluded.empty(), ErrorCode::unavailable, to_string(r.change), " by method ", to_string(method), ": ",
                  excluded);
    this->settle_refusals();
    update::check_request(r, this->subject());
    UpdateReport report;
    report.change = r.change;
    report.rows = this->plan().rows;
    report.cols = this->plan().cols;
    report.k = r.k;
    report.p = r.p;
    if (r.p == 0) return report;
    auto& tools = this->tools();
    tools.trim();
    tools.scratch.reset();
    tools.begin_stages();
    try {
      const dense::OnDevice<B, T> u(this->queue(), r.u), e(this->queue(), r.e);
      update::update_by_paper(tools, this->store(), r, u.matrix, e.matrix, method == Method::paper_dense);
    } catch (...) {
      tools.release();
      throw;
    }
    report.stages = tools.stages();
    this->settle();
    return report;
  }

 private:
  Wanted wanted_;
};

template <class B, class T>
Updates<T> make_updates(typename B::Queue queue, const Context& context, MatrixView<const T> a, QForm form) {
  plan::DeviceProfile profile;
  profile.backend = context.backend();
  profile.limits = queue.limits(T{});
  profile.tuning = context.engine()->tuning();
  Options options;
  options.q = form;
  context.synchronize();  // A may be what the context's queue works on
  dense::Factorization<B, T> f(queue, plan::make_plan(profile, a.rows, a.cols, 1, sizeof(T), options));
  f.run(dense::OnDevice<B, T>(queue, a).matrix);
  const auto wanted = std::make_shared<std::optional<Method>>();
  auto state = std::make_unique<detail::UpdatedStateOf<B, T, Updated<B, T>>>(Start<B, T>{f, wanted}, profile, a.memory);
  queue.synchronize();
  return {UpdatableQR<T>(std::move(state)), wanted, [queue](const std::function<void()>& work) mutable {
            const auto begin = queue.record();
            work();
            const auto end = queue.record();
            return queue.elapsed_ms(begin, end);
          }};
}

}  // namespace qrane::paper
