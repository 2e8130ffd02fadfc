// SPDX-License-Identifier: Apache-2.0
// Plans in words: the names of algorithms and forms, and Plan::explain.
#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "plan/cost.hpp"
#include "plan/names.hpp"
#include "plan/plan.hpp"

namespace qrane {

namespace {

constexpr std::array<std::pair<Algorithm, const char*>, 6> algorithm_names{{{Algorithm::automatic, "automatic"},
                                                                            {Algorithm::tsqr, "tsqr"},
                                                                            {Algorithm::caqr, "caqr"},
                                                                            {Algorithm::blocked, "blocked"},
                                                                            {Algorithm::cholesky_qr, "cholesky_qr"},
                                                                            {Algorithm::householder, "householder"}}};
constexpr std::array<std::pair<QForm, const char*>, 5> form_names{{{QForm::implicit, "implicit"},
                                                                   {QForm::thin, "thin"},
                                                                   {QForm::lapack, "lapack"},
                                                                   {QForm::none, "none"},
                                                                   {QForm::full, "full"}}};

constexpr std::array<std::pair<Stage, const char*>, 5> stage_names{{{Stage::planned, "planned"},
                                                                    {Stage::one_pass, "one pass"},
                                                                    {Stage::two_passes, "two passes"},
                                                                    {Stage::sketch, "sketch"},
                                                                    {Stage::tree, "tree"}}};

}  // namespace

const char* to_string(Algorithm algorithm) { return detail::name_of(algorithm_names, algorithm); }
const char* to_string(QForm form) { return detail::name_of(form_names, form); }
const char* to_string(Stage stage) { return detail::name_of(stage_names, stage); }
Algorithm algorithm_from_string(const std::string& name) {
  return detail::value_of(algorithm_names, name, "algorithm");
}
QForm q_form_from_string(const std::string& name) { return detail::value_of(form_names, name, "form of Q"); }

std::string Plan::explain() const {
  std::ostringstream out;
  out << "QR of " << (count > 1 ? detail::concat(count, " matrices of ") : "") << rows << " x " << cols << ", "
      << (scalar_bytes == 4 ? "float" : "double") << ", Q " << to_string(q) << "\n";
  out << "algorithm: " << to_string(algorithm);
  switch (algorithm) {
    case Algorithm::tsqr:
      out << ": one panel of all columns, rows reduced by a tree";
      if (expert.absorbing_units > 0)
        out << " over flat trees, one for every warp of " << expert.absorbing_units << " multiprocessors";
      break;
    case Algorithm::caqr: out << ": panels by TSQR, each applied to the trailing matrix through its tree"; break;
    case Algorithm::blocked:
      out << ": panels by " << (expert.passes > 0 ? "guarded Cholesky QR" : "TSQR")
          << ", Householder vectors rebuilt, trailing matrix by two products";
      break;
    case Algorithm::cholesky_qr:
      out << ": one pass over a Gram matrix in double; on the device, a condition bound above " << expert.guard_limit
          << " calls for a second pass";
      if (expert.sketch_rows > 0) out << ", a hopeless one for a sketch of " << expert.sketch_rows << " rows before it";
      out << ", and what that leaves far from orthonormal goes to caqr";
      break;
    case Algorithm::householder:
      out << (expert.small ? ": each matrix whole, in one launch"
                           : ": panels by one block each, no tree, trailing matrix by products");
      break;
    case Algorithm::automatic: break;
  }
  if (!reason.empty()) out << "\nwhy: " << reason;
  if (!tuning.empty()) out << "\ntuned: " << tuning;
  if (algorithm != Algorithm::householder) {
    const Index height = std::max<Index>(rows, 1);
    Index heads = std::max<Index>(1, (height + expert.block_rows - 1) / std::max<Index>(expert.block_rows, 1));
    out << "\ntree: leaves of " << expert.block_rows << " rows, " << expert.arity << " triangles a node";
    out << "; " << heads;
    while (heads > 1) {
      heads = (heads + expert.arity - 1) / std::max(expert.arity, 2);
      out << " -> " << heads;
    }
    out << " blocks in the first panel";
  }
  out << "\npanels: " << expert.panel_cols << " columns, compact WY groups of " << expert.inner;
  if (algorithm == Algorithm::blocked || (algorithm == Algorithm::householder && !expert.small))
    out << ", trailing matrix updated by " << expert.block_cols << " columns at a time";
  out << "\n";
  out << "workspace: " << workspace_bytes << " bytes\n";
  const plan::Cost cost = plan::predict(*this);
  out << "flops: " << flops << " canonical, " << cost.flops << " done\n";
  out << "traffic: " << cost.bytes << " bytes of device memory read and written\n";
  return out.str();
}

}  // namespace qrane
