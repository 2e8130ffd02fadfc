// SPDX-License-Identifier: Apache-2.0
// Structs that the host writes and OpenCL kernels read are declared twice, in C++ and in .cl files: their sizes and the
// offsets of all members agree, with and without double precision. A kernel after each file writes what its compiler
// says.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#if QRANE_WITH_OPENCL
#include "opencl/queue/scalar.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/panels.hpp"

namespace qrane::backend::test {
namespace {

using Members = std::vector<std::pair<std::string, std::size_t>>;

struct Layout {
  std::string name;
  std::vector<std::string> files;  // the last one declares it
  std::size_t size;
  Members members;
};

#define MEMBER(type, member) \
  { #member, offsetof(type, member) }

std::vector<Layout> layouts() {
  return {
      {"BlockTask",
       {"task.cl"},
       sizeof(BlockTask),
       {MEMBER(BlockTask, row), MEMBER(BlockTask, t), MEMBER(BlockTask, matrix), MEMBER(BlockTask, rows),
        MEMBER(BlockTask, stride), MEMBER(BlockTask, col), MEMBER(BlockTask, cols)}},
      {"FrontShape",
       {"fronts.cl"},
       sizeof(FrontShape),
       {MEMBER(FrontShape, matrix),      MEMBER(FrontShape, corner),    MEMBER(FrontShape, t),
        MEMBER(FrontShape, r),           MEMBER(FrontShape, columns),   MEMBER(FrontShape, first_row),
        MEMBER(FrontShape, full_slots),  MEMBER(FrontShape, slots),     MEMBER(FrontShape, row_ids),
        MEMBER(FrontShape, children),    MEMBER(FrontShape, panels),    MEMBER(FrontShape, first_col),
        MEMBER(FrontShape, packed),      MEMBER(FrontShape, ld),        MEMBER(FrontShape, rows_bound),
        MEMBER(FrontShape, cols),        MEMBER(FrontShape, pivots),    MEMBER(FrontShape, own_rows),
        MEMBER(FrontShape, child_count), MEMBER(FrontShape, full_rows), MEMBER(FrontShape, cb_rows),
        MEMBER(FrontShape, cb_bound),    MEMBER(FrontShape, r_bound)}},
      {"FrontState",
       {"fronts.cl"},
       sizeof(FrontState),
       {MEMBER(FrontState, dropped), MEMBER(FrontState, rows), MEMBER(FrontState, position), MEMBER(FrontState, r_rows),
        MEMBER(FrontState, cb_rows)}},
      {"FrontPanelState",
       {"fronts.cl"},
       sizeof(FrontPanelState),
       {MEMBER(FrontPanelState, first_row), MEMBER(FrontPanelState, height), MEMBER(FrontPanelState, live),
        MEMBER(FrontPanelState, unused)}},
      {"FrontPanelTask",
       {"fronts.cl"},
       sizeof(FrontPanelTask),
       {MEMBER(FrontPanelTask, front), MEMBER(FrontPanelTask, panel)}},
      {"FrontUpdateTask",
       {"fronts.cl"},
       sizeof(FrontUpdateTask),
       {MEMBER(FrontUpdateTask, front), MEMBER(FrontUpdateTask, panel), MEMBER(FrontUpdateTask, first),
        MEMBER(FrontUpdateTask, cols)}},
      {"FrontShare",
       {"fronts.cl", "fronts_layout.cl"},
       sizeof(FrontShare),
       {MEMBER(FrontShare, front), MEMBER(FrontShare, part), MEMBER(FrontShare, parts), MEMBER(FrontShare, unused)}},
      {"FrontPieceTask",
       {"fronts.cl", "fronts_layout.cl"},
       sizeof(FrontPieceTask),
       {MEMBER(FrontPieceTask, front), MEMBER(FrontPieceTask, parent), MEMBER(FrontPieceTask, first),
        MEMBER(FrontPieceTask, cols), MEMBER(FrontPieceTask, place)}},
      {"FrontBlock",
       {"fronts.cl", "front_solve.cl"},
       sizeof(FrontBlock),
       {MEMBER(FrontBlock, front), MEMBER(FrontBlock, row), MEMBER(FrontBlock, rows), MEMBER(FrontBlock, first),
        MEMBER(FrontBlock, cols), MEMBER(FrontBlock, unused)}},
      {"FrontPanelPart",
       {"fronts.cl", "front_reflect.cl"},
       sizeof(FrontPanelPart),
       {MEMBER(FrontPanelPart, front), MEMBER(FrontPanelPart, panel), MEMBER(FrontPanelPart, part),
        MEMBER(FrontPanelPart, parts)}},
  };
}

/// Size and offsets as the device's compiler has them.
std::vector<std::int32_t> on_device(opencl::Queue& queue, const Layout& layout) {
  std::string text = "KERNEL layout_of_" + layout.name + "(BUFFER(out)) {\n  if (get_global_id(0) != 0) return;\n  " +
                     layout.name + " s;\n  AT(int, out)[0] = (int)sizeof(s);\n";
  for (std::size_t k = 0; k < layout.members.size(); ++k)
    text += "  AT(int, out)[" + std::to_string(k + 1) + "] = (int)((char*)&s." + layout.members[k].first +
            " - (char*)&s);\n";
  opencl::Device& device = queue.device();
  const int work_group = device.work_group(64);
  opencl::Defines defines = opencl::real_defines<float>(work_group);
  defines.emplace_back("TREE", "0");
  defines.emplace_back("NB", "32");
  std::vector<std::int32_t> said(layout.members.size() + 1, -1);
  const auto out = cast_pointer<std::int32_t>(queue.allocate(static_cast<Index>(4 * said.size())));
  device.launch(device.kernel(layout.files, "layout_of_" + layout.name, defines, text + "}\n"), 1, work_group, out);
  queue.download(out, said.data(), static_cast<Index>(said.size()));
  queue.release(cast_pointer<std::byte>(out));
  return said;
}

TEST(OpenCLStructs, LieAsOnTheHost) {
  std::string reason;
  if (opencl::device_infos(&reason).empty()) GTEST_SKIP() << "no device for backend opencl: " << reason;
  for (const bool use_double : {true, false}) {
    opencl::QueueOptions options;
    options.use_double = use_double;
    opencl::Queue queue(0, nullptr, 0, options);
    for (const Layout& layout : layouts()) {
      const std::vector<std::int32_t> said = on_device(queue, layout);
      EXPECT_EQ(said[0], static_cast<std::int32_t>(layout.size)) << "sizeof(" << layout.name << ")";
      for (std::size_t k = 0; k < layout.members.size(); ++k)
        EXPECT_EQ(said[k + 1], static_cast<std::int32_t>(layout.members[k].second))
            << layout.name << "::" << layout.members[k].first;
    }
  }
}

}  // namespace
}  // namespace qrane::backend::test
#else
TEST(OpenCLStructs, LieAsOnTheHost) { GTEST_SKIP() << "built without OpenCL"; }
#endif
