// SPDX-License-Identifier: Apache-2.0
// Names of changes and methods, and an update's report in words.
#include <qrane/update.hpp>

#include <array>
#include <iomanip>
#include <sstream>
#include <utility>

#include "plan/names.hpp"

namespace qrane {

namespace {

constexpr std::array change_names{"insert rows", "delete rows", "insert columns", "delete columns", "rank-k update"};
constexpr std::array<std::pair<UpdateMethod, const char*>, 5> method_names{{{UpdateMethod::automatic, "automatic"},
                                                                            {UpdateMethod::orthogonal, "orthogonal"},
                                                                            {UpdateMethod::cholesky, "cholesky"},
                                                                            {UpdateMethod::trailing, "trailing"},
                                                                            {UpdateMethod::refactor, "refactor"}}};

}  // namespace

const char* to_string(Change change) { return change_names.at(static_cast<std::size_t>(change)); }
const char* to_string(UpdateMethod method) { return detail::name_of(method_names, method); }

UpdateMethod update_method_from_string(const std::string& name) {
  return detail::value_of(method_names, name, "update method");
}

std::string UpdateReport::explain() const {
  std::ostringstream out;
  out << std::setprecision(3);
  out << to_string(change) << ", k = " << k << ", p = " << p << ", on " << rows << " x " << cols << "\n";
  for (const UpdateCandidate& c : candidates) {
    out << "  " << std::left << std::setw(12) << to_string(c.method) << std::right;
    if (!c.excluded.empty())
      out << " not here: " << c.excluded << "\n";
    else
      out << std::setw(10) << c.predicted_ms << " ms predicted, " << c.flops << " flops, " << c.bytes << " bytes, "
          << c.launches << " dependent steps\n";
  }
  out << "taken: " << to_string(method);
  if (measured_ms >= 0) out << ", measured " << measured_ms << " ms";
  if (fell_back) out << ", after its guard refused cholesky";
  if (refused) out << "; refused: the removed rows carry the rank, nothing was changed";
  if (drift >= 0) out << "; drift " << drift << (refreshed ? ", factored anew" : "");
  out << "\n";
  return out.str();
}

}  // namespace qrane
