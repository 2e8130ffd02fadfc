// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <cli/tree_picture.hpp>
#include <qrane/error.hpp>

namespace qrane::cli {
namespace {

using sparse::FrontFacts;

constexpr double largest_radius = 60, smallest_radius = 2, gap = 3, margin = 24, caption_height = 40;

/// Light blue over yellow to dark red.
io::Rgb color_of(double share) {
  static constexpr std::array<std::array<double, 3>, 4> stops{
      {{160, 205, 240}, {250, 220, 110}, {235, 120, 60}, {140, 20, 40}}};
  const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(at), stops.size() - 2);
  const double rest = at - static_cast<double>(below);
  io::Rgb color{};
  for (std::size_t c = 0; c < 3; ++c) {
    color[c] = static_cast<std::uint8_t>(std::lround(stops[below][c] + rest * (stops[below + 1][c] - stops[below][c])));
  }
  return color;
}

struct Layout {
  std::vector<double> radius, x, y;
  double width = 0, height = 0;
};

/// Every subtree has a strip as wide as its front's disc or its children's strips together; every depth a row as high
/// as its largest disc.
Layout lay_out(const std::vector<FrontFacts>& fronts) {
  const std::size_t count = fronts.size();
  Layout layout;
  layout.radius.resize(count);
  layout.x.resize(count);
  layout.y.resize(count);
  double largest = 1;
  const auto size = [](const FrontFacts& f) { return static_cast<double>(f.rows) * static_cast<double>(f.cols); };
  for (const FrontFacts& front : fronts) largest = std::max(largest, size(front));
  std::vector<double> children(count, 0), strip(count);  // widths
  std::vector<std::size_t> depth(count, 0);
  for (std::size_t f = 0; f < count; ++f) {
    layout.radius[f] = std::max(smallest_radius, largest_radius * std::sqrt(size(fronts[f]) / largest));
    strip[f] = std::max(children[f], 2 * layout.radius[f] + gap);
    if (fronts[f].parent >= 0) children[static_cast<std::size_t>(fronts[f].parent)] += strip[f];
  }
  // From the roots down: postorder backwards. next[f]: where the strip of f's next child ends.
  std::vector<double> next(count), row_radius(1, 0);
  double right = margin;
  for (std::size_t f = 0; f < count; ++f) right += fronts[f].parent < 0 ? strip[f] : 0;
  layout.width = std::max(right + margin, 400.0);
  for (std::size_t f = count; f-- > 0;) {
    const bool is_root = fronts[f].parent < 0;
    const auto parent = static_cast<std::size_t>(fronts[f].parent);
    double& end = is_root ? right : next[parent];
    layout.x[f] = end - strip[f] / 2;
    next[f] = layout.x[f] + children[f] / 2;
    end -= strip[f];
    depth[f] = is_root ? 0 : depth[parent] + 1;
    if (depth[f] >= row_radius.size()) row_radius.push_back(0);
    row_radius[depth[f]] = std::max(row_radius[depth[f]], layout.radius[f]);
  }
  std::vector<double> row_y;
  double y = margin + caption_height;
  for (const double r : row_radius) {
    row_y.push_back(y + r);
    y += 2 * r + 24;
  }
  layout.height = y + margin;
  for (std::size_t f = 0; f < count; ++f) layout.y[f] = row_y[depth[f]];
  return layout;
}

}  // namespace

io::Picture draw_tree(const std::vector<FrontFacts>& fronts, const std::vector<std::int32_t>& stages,
                      const std::string& caption) {
  const Layout layout = lay_out(fronts);
  io::Picture picture;
  picture.width = layout.width;
  picture.height = layout.height;
  Index top = 1;
  for (const FrontFacts& front : fronts) top = std::max(top, front.level);
  const std::int32_t last = stages.empty() ? 0 : *std::max_element(stages.begin(), stages.end());
  for (std::size_t f = 0; f < fronts.size(); ++f) {
    const FrontFacts& front = fronts[f];
    if (front.parent >= 0) {
      const auto parent = static_cast<std::size_t>(front.parent);
      picture.lines.push_back({layout.x[f], layout.y[f], layout.x[parent], layout.y[parent], 0.8, {150, 150, 150}});
    }
    const double share =
        last > 0 ? static_cast<double>(stages[f]) / last : static_cast<double>(front.level) / static_cast<double>(top);
    picture.discs.push_back({layout.x[f], layout.y[f], layout.radius[f], color_of(share),
                             detail::concat("front ", f, ": ", front.rows, " x ", front.cols, ", ", front.pivots,
                                            " pivotal columns, level ", front.level, ", stage ", stages[f] + 1, ", ",
                                            front.flops, " flops")});
  }
  picture.words.push_back({margin, margin, 14, caption});
  picture.words.push_back(
      {margin, margin + 18, 12,
       detail::concat("area: rows x columns of a front; colour: its ",
                      last > 0 ? detail::concat("stage, of ", last + 1) : "level above the leaves")});
  return picture;
}

}  // namespace qrane::cli
