// SPDX-License-Identifier: Apache-2.0
// The suites: shapes of Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs"
// (IPDPS 2011), table I, figure 9 and section VI, and narrower ones where only the memory's rate can limit.
#include "suites.hpp"

namespace qrane::bench {
namespace {

const std::vector<QForm> usual_modes = {QForm::none, QForm::thin, QForm::implicit};
const std::vector<QForm> all_modes = {QForm::none, QForm::thin, QForm::implicit, QForm::lapack};

}  // namespace

std::vector<SuiteInfo> suites() {
  return {
      {"paper-table1",
       "tall matrices of 192 columns, 1,000 to 1,000,000 rows",
       {{1000, 192}, {10'000, 192}, {50'000, 192}, {100'000, 192}, {500'000, 192}, {1'000'000, 192}},
       usual_modes,
       {}},
      {"paper-width",
       "8192 rows, 64 to 8192 columns: from tall and skinny to square",
       {{8192, 64}, {8192, 128}, {8192, 256}, {8192, 512}, {8192, 1024}, {8192, 2048}, {8192, 4096}, {8192, 8192}},
       all_modes,
       {}},
      {"skinny",
       "very tall, 8 to 100 columns, the papers' video matrix among them",
       {{110'592, 100}, {1'000'000, 32}, {1'000'000, 64}, {4'000'000, 16}, {10'000'000, 8}},
       usual_modes,
       {}},
      {"background", "robust PCA iterations per second on 100 frames of 384 x 288", {}, {}, {{110'592, 100}}},
      {"smoke",
       "a few small cases, for the tests",
       {{300, 20}, {1000, 32}, {64, 64}, {400, 200}},
       all_modes,
       {{600, 20}},
       true},
  };
}

}  // namespace qrane::bench
