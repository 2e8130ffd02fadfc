// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <sstream>

#include <io/file_error.hpp>
#include <io/images/image.hpp>
#include <io/images/picture.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

std::string css(const Rgb& c) { return detail::concat("rgb(", int{c[0]}, ",", int{c[1]}, ",", int{c[2]}, ")"); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default: result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return result;
}

std::string to_svg(const Picture& picture) {
  std::ostringstream out;
  out.precision(6);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << picture.width << ' ' << picture.height
      << "\" width=\"" << picture.width << "\" height=\"" << picture.height << "\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (const Picture::Line& l : picture.lines) {
    out << "<line x1=\"" << l.x1 << "\" y1=\"" << l.y1 << "\" x2=\"" << l.x2 << "\" y2=\"" << l.y2 << "\" stroke=\""
        << css(l.color) << "\" stroke-width=\"" << l.width << "\"/>\n";
  }
  for (const Picture::Disc& d : picture.discs) {
    out << "<circle cx=\"" << d.x << "\" cy=\"" << d.y << "\" r=\"" << d.radius << "\" fill=\"" << css(d.color)
        << "\"><title>" << escaped(d.title) << "</title></circle>\n";
  }
  for (const Picture::Words& w : picture.words) {
    out << "<text x=\"" << w.x << "\" y=\"" << w.y << "\" font-family=\"sans-serif\" font-size=\"" << w.size << "\">"
        << escaped(w.text) << "</text>\n";
  }
  out << "</svg>\n";
  return out.str();
}

/// Pixels of a scaled picture. Each shape covers a pixel by how far the pixel's centre lies inside its edge.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), pixels_(3 * std::size_t(width) * std::size_t(height), 255) {}

  void line(double x1, double y1, double x2, double y2, double width, const Rgb& color) {
    const double dx = x2 - x1, dy = y2 - y1;
    const double square = dx * dx + dy * dy;
    const double half = std::max(width, 0.5) / 2;
    const auto distance = [&](double x, double y) {
      const double along = square > 0 ? std::clamp(((x - x1) * dx + (y - y1) * dy) / square, 0.0, 1.0) : 0;
      return std::hypot(x - x1 - along * dx, y - y1 - along * dy);
    };
    // Row by row, since the box around a slanting line is mostly empty.
    const int top = row(std::min(y1, y2) - half - 1), bottom = row(std::max(y1, y2) + half + 1);
    for (int y = top; y <= bottom; ++y) {
      double left = std::min(x1, x2), right = std::max(x1, x2);
      if (std::abs(dy) > 1e-9) {
        const double reach = half + 1.5;
        const double a = x1 + (y + 0.5 - reach - y1) / dy * dx, b = x1 + (y + 0.5 + reach - y1) / dy * dx;
        left = std::max(left, std::min(a, b));
        right = std::min(right, std::max(a, b));
      }
      cover(y, left - half - 1, right + half + 1, color, [&](double px, double py) { return half - distance(px, py); });
    }
  }

  void disc(double x, double y, double radius, const Rgb& color) {
    for (int r = row(y - radius - 1); r <= row(y + radius + 1); ++r) {
      cover(r, x - radius - 1, x + radius + 1, color,
            [&](double px, double py) { return radius - std::hypot(px - x, py - y); });
    }
  }

  const std::uint8_t* pixels() const { return pixels_.data(); }

 private:
  int row(double y) const { return static_cast<int>(std::clamp(std::floor(y), 0.0, height_ - 1.0)); }

  template <class Depth>
  void cover(int y, double left, double right, const Rgb& color, Depth&& depth) {
    const int first = static_cast<int>(std::clamp(std::floor(left), 0.0, width_ - 1.0));
    const int last = static_cast<int>(std::clamp(std::floor(right), 0.0, width_ - 1.0));
    for (int x = first; x <= last; ++x) {
      const double share = std::clamp(depth(x + 0.5, y + 0.5) + 0.5, 0.0, 1.0);
      std::uint8_t* const pixel = pixels_.data() + 3 * (std::size_t(y) * std::size_t(width_) + std::size_t(x));
      for (std::size_t c = 0; c < 3; ++c) {
        pixel[c] = static_cast<std::uint8_t>(std::lround(pixel[c] + share * (double{0} + color[c] - pixel[c])));
      }
    }
  }

  int width_, height_;
  std::vector<std::uint8_t> pixels_;
};

void write_as_png(const std::string& path, const Picture& picture) {
  constexpr double most = 4000;
  const double scale = std::min(1.0, most / std::max({picture.width, picture.height, 1.0}));
  const auto size = [&](double length) { return std::max(1, static_cast<int>(std::ceil(length * scale))); };
  Canvas canvas(size(picture.width), size(picture.height));
  for (const Picture::Line& l : picture.lines) {
    canvas.line(l.x1 * scale, l.y1 * scale, l.x2 * scale, l.y2 * scale, l.width * scale, l.color);
  }
  for (const Picture::Disc& d : picture.discs) {
    canvas.disc(d.x * scale, d.y * scale, std::max(d.radius * scale, 0.5), d.color);
  }
  write_png(path, size(picture.width), size(picture.height), 3, canvas.pixels());
}

}  // namespace

void check_picture_path(const std::string& path) {
  detail::check(has_ending(path, ".svg") || has_ending(path, ".png"), ErrorCode::invalid_argument, path,
                ": a picture's name must end in .svg or .png");
}

void write_picture(const std::string& path, const Picture& picture) {
  check_picture_path(path);
  if (has_ending(path, ".svg")) return write_file(path, to_svg(picture));
  write_as_png(path, picture);
}

}  // namespace qrane::io
