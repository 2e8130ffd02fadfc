// SPDX-License-Identifier: Apache-2.0
// src/<backend>/whole.hpp lists what a backend does whole: each operation there is the backend's own overload, and no
// other optional operation is. So a renamed kernel or task cannot fall back to the default unseen.
#include <array>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "cpu/whole.hpp"
#if QRANE_WITH_OPENCL
#include "opencl/whole.hpp"
#endif
#if QRANE_WITH_CUDA
#include "cuda/whole.hpp"
#endif
#include "vocabulary/vocabulary.hpp"

namespace qrane::backend {
namespace {

template <class Result>
constexpr bool own = !std::is_same_v<Result, Default>;

/// What a call of each optional operation finds for one backend and scalar.
template <class B, class T>
constexpr auto calls() {
  using Queue = const typename B::Queue&;
  using Wide = const DeviceMatrix<B, double>&;
  using Mat = const DeviceMatrix<B, T>&;
  using Room = const Scratch<B>&;
#define OWN(operation, ...) \
  { #operation, own < decltype(operation(std::declval <Queue>(), __VA_ARGS__))> }
#define TASK(type) std::declval<const type&>()
  using Updates = FrontTasks<B, FrontUpdateTask>;
  using SmallSvdTask = SmallSvd<B>;
  using Verdict = RobustPcaVerdict<B>;
  using FrontsOf = Fronts<B, T>;
  using SweepTask = Sweep<B, T>;
  using WideSweepTask = WideSweep<B, T>;
  using RowTask = RowUpdate<B, T>;
  using BatchTask = BatchUpdate<B, T>;
  using GramTask = GramSolve<B, T>;
  using StepTask = RobustPcaStep<B, T>;
  using FactorTask = FactorSmall<B, T>;
  using ApplyTask = ApplySmall<B, T>;
  using PanelTask = WholePanel<B, T>;
  using TableTask = CopyTable<B, T>;
  using ReflectTask = ReflectPanel<B, T>;
  using HouseholderTask = HouseholderPanel<B, T>;
  using AbsorbTask = Absorb<B, T>;
  using FormTask = FormAbsorbed<B, T>;
  return std::to_array<std::pair<std::string_view, bool>>({
      OWN(solve_wide, std::declval<Wide>(), std::declval<Wide>(), std::declval<Wide>()),
      OWN(multiply_full, std::declval<Mat>(), std::declval<Wide>(), std::declval<Mat>()),
      OWN(factor_small, TASK(FactorTask)),
      OWN(apply_small, TASK(ApplyTask)),
      OWN(factor_whole_panel, TASK(PanelTask)),
      OWN(copy_table, TASK(TableTask)),
      OWN(sweep, TASK(SweepTask)),
      OWN(wide_sweep, TASK(WideSweepTask)),
      OWN(update_rows, TASK(RowTask)),
      OWN(batch_update, TASK(BatchTask)),
      OWN(solve_gram, TASK(GramTask), std::declval<Room>()),
      OWN(residual_squares, std::declval<Mat>(), std::declval<Mat>(), std::declval<Mat>(),
          std::declval<typename B::template Pointer<double>>(), std::declval<Room>()),
      OWN(small_svd, TASK(SmallSvdTask)),
      OWN(reflect_panel, TASK(ReflectTask), std::declval<Room>()),
      OWN(householder_panel, TASK(HouseholderTask)),
      OWN(absorb, TASK(AbsorbTask)),
      OWN(form_absorbed, TASK(FormTask)),
      OWN(robust_pca_step, TASK(StepTask), std::declval<Room>()),
      OWN(robust_pca_verdict, TASK(Verdict)),
      OWN(update_fronts_pair, TASK(FrontsOf), TASK(Updates)),
  });
#undef OWN
#undef TASK
}

/// Functions that a backend's whole.hpp declares.
std::set<std::string> declared(const std::string& backend) {
  const std::string path = std::string(QRANE_TEST_SOURCES) + "/" + backend + "/whole.hpp";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  const std::regex declaration(R"(^(?:inline )?\w+ (\w+)\(.*)");
  std::set<std::string> names;
  std::smatch found;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, found, declaration)) names.insert(found[1]);
  return names;
}

/// What a backend says of an operation beside doing it; these have defaults of the same type.
const std::map<std::string, std::string> about = {{"absorb_chains", "absorb"},
                                                  {"least_squares_scratch_bytes", "solve_gram"},
                                                  {"small_svd_work", "small_svd"},
                                                  {"takes_batch_update", "batch_update"}};

template <class B>
void holds_to_its_list() {
  std::set<std::string> found;
  for (const auto& list : {calls<B, float>(), calls<B, double>()})
    for (const auto& [name, is_own] : list)
      if (is_own) found.emplace(name);
  std::set<std::string> listed;
  for (const std::string& name : declared(B::name)) {
    const auto known = about.find(name);
    if (known == about.end())
      listed.insert(name);
    else
      EXPECT_EQ(found.count(known->second), 1u) << name << " without " << known->second;
  }
  EXPECT_EQ(found, listed) << "own overloads of the " << B::name << " backend, and its whole.hpp";
}

TEST(Whole, CpuHoldsToItsList) { holds_to_its_list<Cpu>(); }
#if QRANE_WITH_OPENCL
TEST(Whole, OpenCLHoldsToItsList) { holds_to_its_list<OpenCL>(); }
#endif
#if QRANE_WITH_CUDA
TEST(Whole, CudaHoldsToItsList) { holds_to_its_list<Cuda>(); }
#endif

}  // namespace
}  // namespace qrane::backend

#if QRANE_WITH_CUDA
namespace qrane::elsewhere {
namespace {

/// As algorithms call it: found by the tag alone. The default would throw. No device is asked.
template <class B, class T>
Index triangles(Index rows, Index cols) {
  return absorb_chains(B{}, T{}, rows, cols, false, 132).triangles;
}

TEST(Whole, ChainsOfCudaAreFoundByItsTag) {
  EXPECT_GT((triangles<backend::Cuda, float>(1000000, 8)), 1);
  EXPECT_GT((triangles<backend::Cuda, double>(1000000, 16)), 1);
  EXPECT_EQ((triangles<backend::Cuda, float>(32, 32)), 1);
}

}  // namespace
}  // namespace qrane::elsewhere
#endif
