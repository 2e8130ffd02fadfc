// SPDX-License-Identifier: Apache-2.0
// The cost model of updates, on plain values: what is legal, what grows with what, and the choices where one is clear.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <qrane/qrane.hpp>

#include "support/backends.hpp"
#include "update/choice/cost.hpp"

namespace qrane::test {
namespace {

using update::UpdateShape;

plan::DeviceProfile profile(Backend backend) {
  plan::DeviceProfile device;
  device.backend = backend;
  device.limits.max_allocation_bytes = std::int64_t{1} << 40;
  if (backend == Backend::cuda) device.limits.max_cholesky = 192;
  return device;
}

UpdateShape shape(Change change, QForm form, Index m, Index n, Index k, Index p, bool updated = false) {
  UpdateShape s;
  s.change = change;
  s.form = form;
  s.rows = m;
  s.cols = n;
  s.k = k;
  s.p = p;
  s.updated = updated;
  return s;
}

const UpdateCandidate& of(const std::vector<UpdateCandidate>& all, UpdateMethod method) {
  return *std::find_if(all.begin(), all.end(), [&](const UpdateCandidate& c) { return c.method == method; });
}

UpdateMethod chosen(const UpdateShape& s, Backend backend = Backend::cuda) {
  return update::choose(update::candidates(profile(backend), s));
}

/// What refactoring is worth where the matrix is lent.
double share(Backend backend) { return 1 - tuning::update_defaults(backend, 8).margin_percent / 100.0; }

constexpr Change all_changes[] = {Change::insert_rows, Change::delete_rows, Change::insert_columns,
                                  Change::delete_columns, Change::rank_k};
constexpr QForm all_forms[] = {QForm::thin, QForm::full, QForm::implicit, QForm::lapack, QForm::none};

TEST(UpdateCost, EveryMethodIsPricedOrSaysWhyNot) {
  for (const Backend backend : {Backend::cpu, Backend::opencl, Backend::cuda})
    for (const Change change : all_changes)
      for (const QForm form : all_forms)
        for (const Index n : {0, 1, 40, 700})
          for (const Index m : {0, 3, 40, 5000})
            for (const Index p : {0, 1, 30})
              for (const bool lent : {false, true}) {
                const bool out = change == Change::delete_rows || change == Change::delete_columns;
                if (out && p > (change == Change::delete_rows ? m : n)) continue;
                const auto all = update::candidates(profile(backend), shape(change, form, m, n, 0, p, lent));
                ASSERT_EQ(all.size(), 4u);
                bool legal = true;
                double last = 0;
                for (const UpdateCandidate& c : all) {
                  EXPECT_NE(c.method, UpdateMethod::automatic);
                  EXPECT_TRUE(legal || !c.excluded.empty()) << "a method that can be taken after one that cannot";
                  legal = c.excluded.empty();
                  if (!legal) continue;
                  EXPECT_TRUE(std::isfinite(c.predicted_ms) && c.predicted_ms >= 0);
                  EXPECT_TRUE(c.flops >= 0 && c.bytes >= 0 && c.launches >= 0);
                  const double price =
                      c.predicted_ms * (lent && c.method == UpdateMethod::refactor ? share(backend) : 1);
                  EXPECT_GE(price, last * (1 - 1e-12));
                  last = price;
                }
              }
}

TEST(UpdateCost, WhatAFormCannotDoIsExcludedForAReason) {
  const auto cost = [](const UpdateShape& s) { return update::candidates(profile(Backend::cuda), s); };
  const auto none = cost(shape(Change::insert_columns, QForm::none, 500, 40, 0, 4));
  for (const UpdateCandidate& c : none) EXPECT_FALSE(c.excluded.empty()) << to_string(c.method);
  EXPECT_TRUE(refuses([&] { update::choose(none); }, ErrorCode::unavailable, {"the updated matrix"}));
  EXPECT_NE(of(cost(shape(Change::insert_rows, QForm::thin, 500, 40, 0, 4)), UpdateMethod::cholesky).excluded, "");
  EXPECT_NE(of(cost(shape(Change::insert_rows, QForm::thin, 500, 40, 0, 4)), UpdateMethod::trailing).excluded, "");
  EXPECT_NE(of(cost(shape(Change::insert_rows, QForm::full, 500, 40, 0, 4)), UpdateMethod::refactor).excluded, "");
  EXPECT_EQ(of(cost(shape(Change::insert_rows, QForm::full, 500, 40, 0, 4, true)), UpdateMethod::refactor).excluded,
            "");
  EXPECT_EQ(of(cost(shape(Change::delete_rows, QForm::thin, 500, 40, 0, 4)), UpdateMethod::cholesky).excluded, "");
  EXPECT_NE(of(cost(shape(Change::delete_rows, QForm::thin, 42, 40, 0, 4)), UpdateMethod::cholesky).excluded, "");
  EXPECT_EQ(of(cost(shape(Change::rank_k, QForm::none, 500, 40, 0, 4, true)), UpdateMethod::refactor).excluded, "");
  EXPECT_NE(of(cost(shape(Change::rank_k, QForm::none, 500, 40, 0, 4, true)), UpdateMethod::orthogonal).excluded, "");
}

/// More rows, columns and p never make a method cheaper; a change further right never makes one dearer.
TEST(UpdateCost, GrowsWithTheProblem) {
  for (const Backend backend : {Backend::cpu, Backend::cuda})
    for (const Change change : all_changes)
      for (const QForm form : {QForm::thin, QForm::full, QForm::implicit}) {
        const auto ms = [&](Index m, Index n, Index k, Index p) {
          return of(update::candidates(profile(backend), shape(change, form, m, n, k, p)), UpdateMethod::orthogonal)
              .predicted_ms;
        };
        SCOPED_TRACE(std::string(to_string(change)) + " " + qrane::to_string(form));
        EXPECT_LE(ms(2000, 500, 0, 8), ms(20000, 500, 0, 8));
        EXPECT_LT(ms(20000, 500, 0, 8), ms(20000, 2000, 0, 8));
        if (change != Change::delete_columns) {  // which leaves the less to turn
          EXPECT_LT(ms(20000, 2000, 0, 1), ms(20000, 2000, 0, 64));
        }
        EXPECT_EQ(ms(20000, 2000, 0, 0), 0);
        if (change == Change::insert_columns || change == Change::delete_columns) {
          EXPECT_LT(ms(20000, 2000, 1900, 8), ms(20000, 2000, 100, 8));
        } else {
          EXPECT_EQ(ms(20000, 2000, 1900, 8), ms(20000, 2000, 100, 8));
        }
      }
}

TEST(UpdateCost, ABatchSharesTheSteps) {
  // a batch takes as many operations each, and shares the steps
  UpdateShape batch = shape(Change::insert_rows, QForm::thin, 200, 20, 0, 2);
  const UpdateCandidate one = of(update::candidates(profile(Backend::cuda), batch), UpdateMethod::orthogonal);
  batch.count = 1000;
  const UpdateCandidate many = of(update::candidates(profile(Backend::cuda), batch), UpdateMethod::orthogonal);
  EXPECT_DOUBLE_EQ(many.flops, 1000 * one.flops);
  EXPECT_EQ(many.launches, one.launches);
  EXPECT_LT(many.predicted_ms, 1000 * one.predicted_ms / 3);
}

/// Where the answer is plain: few rows or columns of a large matrix are updated, a change of nearly everything is not.
TEST(UpdateCost, ChoicesAtTheExtremes) {
  for (const Backend backend : {Backend::cpu, Backend::cuda})
    for (const bool lent : {false, true}) {
      for (const Change change : all_changes) {
        SCOPED_TRACE(std::string(to_string(change)) + (lent ? ", lent" : ""));
        const UpdateMethod few = chosen(shape(change, QForm::thin, 100000, 4000, 3900, 1, lent), backend);
        EXPECT_NE(few, UpdateMethod::refactor) << to_string(few);
      }
      if (!lent) continue;
      EXPECT_EQ(chosen(shape(Change::insert_rows, QForm::thin, 1000, 300, 0, 100000, lent), backend),
                UpdateMethod::refactor);
      EXPECT_EQ(chosen(shape(Change::delete_rows, QForm::full, 10000, 50, 0, 9900, lent), backend),
                UpdateMethod::refactor);
      EXPECT_EQ(chosen(shape(Change::insert_columns, QForm::implicit, 20000, 10, 0, 2000, lent), backend),
                UpdateMethod::refactor);
    }
}

/// What is lent to be refactored is refactored unless updating is predicted faster by the margin.
TEST(UpdateCost, CloseRacesGoToRefactoring) {
  for (const Change change : all_changes)
    for (const Index n : {64, 300, 1000, 3000})
      for (const Index p : {1, 10, 100, 1000}) {
        if (change == Change::delete_columns && p > n) continue;
        const auto all = update::candidates(profile(Backend::cuda), shape(change, QForm::thin, 12000, n, 0, p, true));
        const double worth = all.front().method == UpdateMethod::refactor ? 1 : share(Backend::cuda);
        EXPECT_LE(all.front().predicted_ms, worth * of(all, UpdateMethod::refactor).predicted_ms * (1 + 1e-12));
      }
}

/// The prediction of a fresh factorization: of the right size against measurements of an H200 (docs/performance.md).
TEST(UpdateCost, AnImplicitQThatUpdatesHaveLengthenedIsMadeAnewInTheEnd) {
  const auto predicted = [](const UpdateShape& s) {
    return of(update::candidates(profile(Backend::cuda), s), UpdateMethod::orthogonal).predicted_ms;
  };
  for (const Change change : all_changes) {
    UpdateShape s = shape(change, QForm::implicit, 4000, 1000, 0, 1, true), longer = s;
    longer.q_steps = 64;
    const bool passes_through_q = change != Change::insert_rows && change != Change::delete_columns;
    if (passes_through_q)
      EXPECT_GT(predicted(longer), predicted(s)) << to_string(change);
    else
      EXPECT_EQ(predicted(longer), predicted(s)) << to_string(change);
  }
  UpdateShape s = shape(Change::delete_rows, QForm::implicit, 4000, 1000, 0, 1, true);
  EXPECT_EQ(chosen(s), UpdateMethod::orthogonal);
  s.q_steps = 1000;
  EXPECT_EQ(chosen(s), UpdateMethod::refactor);
}

TEST(UpdateCost, PredictsFreshFactorizationsOfAnH200) {
  plan::DeviceProfile h200 = profile(Backend::cuda);
  auto tables = std::make_shared<tuning::Tables>();
  tables->backend = Backend::cuda;
  DeviceInfo device;
  device.backend = Backend::cuda;
  device.name = "NVIDIA H200";
  device.architecture = "sm_90";
  if (const tuning::Table* table = tuning::best_match(tuning::shipped(Backend::cuda), device))
    tables->layers.push_back(*table);
  h200.tuning = tables;
  struct Measured {
    Index m, n;
    QForm form;
    int bytes;
    double ms;
  };
  for (const Measured& c :
       {Measured{8192, 8192, QForm::lapack, 8, 23}, Measured{8192, 8192, QForm::lapack, 4, 27.1},
        Measured{8192, 2048, QForm::lapack, 8, 4.11}, Measured{8192, 512, QForm::lapack, 8, 0.809},
        Measured{32768, 32768, QForm::lapack, 8, 1096}, Measured{1000000, 192, QForm::thin, 8, 3.5},
        Measured{100000, 192, QForm::thin, 8, 0.743}, Measured{110592, 100, QForm::none, 4, 0.196}}) {
    const double ms = update::predicted_qr_ms(h200, c.m, c.n, c.form, 1, c.bytes);
    EXPECT_LT(ms, 1.8 * c.ms) << c.m << " x " << c.n;
    EXPECT_GT(ms, c.ms / 1.8) << c.m << " x " << c.n;
  }
}

}  // namespace
}  // namespace qrane::test
