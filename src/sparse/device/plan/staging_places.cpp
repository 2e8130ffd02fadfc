// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/staging_places.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sparse/block_planner.hpp"

namespace qrane::sparse {

namespace {

/// Sorts by rounds and merges copies that are adjacent on both sides.
void join(std::vector<StagedCopy>& copies) {
  std::sort(copies.begin(), copies.end(), [](const StagedCopy& a, const StagedCopy& b) {
    return std::tuple(a.round, a.device) < std::tuple(b.round, b.device);
  });
  std::vector<StagedCopy> joined;
  for (const StagedCopy& copy : copies) {
    StagedCopy* const last = joined.empty() ? nullptr : &joined.back();
    if (last && last->round == copy.round && last->device + last->count == copy.device &&
        last->host + last->count == copy.host)
      last->count += copy.count;
    else
      joined.push_back(copy);
  }
  copies = std::move(joined);
}

}  // namespace

void place_in_host_memory(const std::vector<StagedFront>& fronts, const StagingOptions& options,
                          const StagingBuffers& outs, const std::vector<std::int32_t>& left_in, Staging& plan) {
  // data copied out in one round stay together until the last of them is copied back
  std::vector<std::int32_t> last(outs.rounds(), 0);
  for (std::size_t k = 0; k < plan.ins.size(); ++k) last[left_in[k]] = std::max(last[left_in[k]], plan.ins[k].round);
  BlockPlanner host;
  std::vector<Index> address(last.size(), 0);
  std::map<std::int32_t, std::vector<Index>> back;  // by rounds
  for (std::int32_t round = 0; round < outs.rounds(); ++round) {
    if (outs.used(round) == 0) continue;
    for (; !back.empty() && back.begin()->first <= round; back.erase(back.begin()))
      for (const Index handle : back.begin()->second) host.give_back(handle);
    const Index count = (outs.used(round) + options.alignment - 1) / options.alignment * options.alignment;
    const Index handle = host.take(count / options.alignment);
    back[last[round]].push_back(handle);
    address[round] = host.address(handle) * options.alignment;
    plan.outs.push_back({round, outs.begin(round), address[round], outs.used(round)});
  }
  plan.blocks_size = host.extent() * options.alignment;
  for (std::size_t k = 0; k < plan.ins.size(); ++k) plan.ins[k].host += address[left_in[k]];
  join(plan.ins);
  const auto earlier = [](const StagedPiece& a, const StagedPiece& b) { return a.round < b.round; };
  std::stable_sort(plan.packs.begin(), plan.packs.end(), earlier);
  std::stable_sort(plan.unpacks.begin(), plan.unpacks.end(), earlier);

  std::vector<Index> by_end(fronts.size());
  std::iota(by_end.begin(), by_end.end(), Index{0});
  std::sort(by_end.begin(), by_end.end(), [&](Index a, Index b) {
    return std::tuple(plan.end[a], plan.address[a]) < std::tuple(plan.end[b], plan.address[b]);
  });
  for (const Index f : by_end) {
    const StagedFront& front = fronts[f];
    if (front.image_size == 0) continue;
    plan.image[f] = plan.images_size;
    plan.images.push_back({plan.end[f], plan.address[f] + front.image_begin, plan.images_size, front.image_size});
    plan.images_size += front.image_size;
  }
  join(plan.images);
}

}  // namespace qrane::sparse
