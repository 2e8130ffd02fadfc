// SPDX-License-Identifier: Apache-2.0
#include "cpu/queue/blas_core.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

extern "C" __attribute__((weak)) char* openblas_get_corename(void);

namespace qrane::backend::cpu {
namespace {

enum Level { sse, avx, avx2, avx512 };

struct Core {
  std::string_view name;
  Level level;
};
constexpr Core cores[] = {
    {"Prescott", sse},    {"Core2", sse},     {"Penryn", sse},      {"Dunnington", sse},    {"Nehalem", sse},
    {"Atom", sse},        {"Athlon", sse},    {"Opteron", sse},     {"Barcelona", sse},     {"Bobcat", sse},
    {"Sandybridge", avx}, {"Bulldozer", avx}, {"Piledriver", avx},  {"Steamroller", avx},   {"Excavator", avx2},
    {"Haswell", avx2},    {"Zen", avx2},      {"SkylakeX", avx512}, {"Cooperlake", avx512}, {"SapphireRapids", avx512}};

Level level_of(const CpuFeatures& features) {
  if (features.avx512 && !features.amd) return avx512;
  return features.avx2 ? avx2 : features.avx ? avx : sse;
}

}  // namespace

CpuFeatures cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  features.avx = __builtin_cpu_supports("avx");
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  features.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  features.amd = __builtin_cpu_is("amd");
#endif
  return features;
}

std::string fitting_core(const CpuFeatures& features) {
  switch (level_of(features)) {
    case avx512: return "SkylakeX";
    case avx2: return features.amd ? "Zen" : "Haswell";
    case avx: return "Sandybridge";
    default: return "";
  }
}

bool leaves_features_unused(const std::string& core, const CpuFeatures& features) {
  const auto known = std::find_if(std::begin(cores), std::end(cores), [&](const Core& c) { return c.name == core; });
  return known != std::end(cores) && known->level < level_of(features);
}

BlasCore blas_core() {
  BlasCore core;
  if (openblas_get_corename == nullptr) return core;
  core.used = openblas_get_corename();
  const CpuFeatures features = cpu_features();
  if (leaves_features_unused(core.used, features)) core.fitting = fitting_core(features);
  return core;
}

}  // namespace qrane::backend::cpu
