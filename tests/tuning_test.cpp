// SPDX-License-Identifier: Apache-2.0
// Tuned parameters change no result beyond rounding, and the tuner finds legal ones.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/engine.hpp"
#include "support/backends.hpp"
#include "support/measures.hpp"
#include "tuner/tuner.hpp"

namespace qrane::test {
namespace {

template <class Where>
class Tuning : public BackendTest<Where> {};
TYPED_TEST_SUITE(Tuning, Everywhere, Names);

/// Parameters as far apart as they may be: still a factorization within the limits of decision 9.
TYPED_TEST(Tuning, ChangesNoResultBeyondRounding) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto engine = context.engine();
  const auto before = engine->tuning();
  const Dense<T> a = random_normal<T>(410, 70, 5);
  const std::vector<std::pair<std::string, std::int64_t>> extremes[] = {
      {{"panel_cols", 1}, {"min_block_rows", 16}, {"arity", 2}, {"widest_single_panel", 0}},
      {{"panel_cols", 4096}, {"min_block_rows", 1 << 20}, {"arity", 1024}, {"inner", 7}},
      {{"prefers_cholesky", 1}, {"narrowest_cholesky", 1}, {"cholesky_rows_per_col", 1}},
      {{"prefers_cholesky", 0},
       {"widest_caqr", 0},
       {"cholesky_panels", 0},
       {"blocked_panel_cols", 5},
       {"block_cols", 13}},
      {{"prefers_cholesky", 0}, {"widest_caqr", 0}, {"cholesky_panels", 1}, {"cholesky_panel_cols", 24}}};
  for (const auto& parameters : extremes) {
    tuning::Tables tables{context.backend(), {}};
    tables.layers.push_back({context.backend(), "*", "", "test", {{{}, {}, {}, parameters, ""}}});
    engine->set_tuning(std::make_shared<tuning::Tables>(tables));
    for (const QForm q : {QForm::thin, QForm::implicit, QForm::lapack}) {
      Options options;
      options.q = q;
      const QR<T> f = qr<T>(context, a.view(), options);
      SCOPED_TRACE(f.plan().explain());
      EXPECT_TRUE(is_qr_of(a, this->host_of(context, f.q()), this->host_of(context, f.r())));
    }
  }
  engine->set_tuning(before);
}

TYPED_TEST(Tuning, FindsLegalParametersInLittleTimeAndLeavesTheContextAsItWas) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto before = context.engine()->tuning();
  tuning::TunerOptions options;
  options.seconds = 1;
  options.scalars = {sizeof(T)};
  std::size_t kept = 0;
  options.keep = [&](const std::vector<tuning::Finding>& findings) { kept = findings.size(); };
  const auto findings = tuning::tune(context, options);
  EXPECT_EQ(kept, findings.size());
  EXPECT_EQ(context.engine()->tuning(), before);
  for (const tuning::Finding& finding : findings) {
    EXPECT_EQ(finding.entry.scalar_bytes, static_cast<int>(sizeof(T)));
    EXPECT_FALSE(finding.evidence.empty());
    tuning::QRTuning qr_tuning{};
    tuning::UpdateTuning update_tuning{};
    for (const auto& [name, value] : finding.entry.parameters)
      EXPECT_TRUE(finding.entry.operation == tuning::Operation::qr ? tuning::set_parameter(qr_tuning, name, value)
                                                                   : tuning::set_parameter(update_tuning, name, value))
          << name;
  }
}

TYPED_TEST(Tuning, StopsWhenAsked) {
  using T = typename TypeParam::Scalar;
  tuning::TunerOptions options;
  options.scalars = {sizeof(T)};
  options.interrupted = [] { return true; };
  EXPECT_TRUE(tuning::tune(this->context(), options).empty());
}

}  // namespace
}  // namespace qrane::test
