// SPDX-License-Identifier: Apache-2.0
// `qrane background VIDEO`: separates what stands still from what moves, by robust PCA.
#include <memory>

#include <cli/background/separate.hpp>
#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>

namespace qrane::cli {
namespace {

int run(const BackgroundOptions& options) {
  check_background_options(options);
  parse_method(options.method);
  parse_video_options(options);
  // Eight bits a pixel fit into float with room to spare, whatever the file.
  const Precision precision = pick_precision(options.common, Precision::f32);
  detail::check(io::have_ffmpeg(), ErrorCode::unavailable,
                "background: the ffmpeg program, which writes the videos, is not installed");
  check_outputs({{"--json", options.common.json, false}});
  const InterruptGuard guard;
  const Context context = make_context(options.common, precision);
  BackgroundRun(options, context, precision).run();
  return exit_success;
}

void add_method_options(CLI::App& app, BackgroundOptions& options) {
  const std::string group = "Method";
  app.add_option("--window", options.window, "frames in one robust PCA (default 200); a rest of at most half joins")
      ->type_name("N")
      ->group(group);
  app.add_option("--overlap", options.overlap,
                 "frames that each window shares with the one before (default 0): more background to learn from, masks "
                 "sooner in live input")
      ->type_name("N")
      ->group(group);
  app.add_option("--threshold", options.threshold, "|S| above this many of 255 gray levels moves (default 15)")
      ->type_name("LEVEL")
      ->group(group);
  app.add_option("--lambda", options.lambda, "weight of S, times 1 / sqrt(max(pixels, frames)) (default 1)")
      ->type_name("X")
      ->group(group);
  app.add_option("--tolerance", options.tolerance, "stop at this |M - L - S| / |M| (default 1e-4)")
      ->type_name("X")
      ->group(group);
  app.add_option("--max-iterations", options.max_iterations, "stop after so many (default 1000)")
      ->type_name("N")
      ->group(group);
  app.add_option("--method", options.method, "inexact-alm (tens of iterations) or alternating (hundreds)")
      ->type_name("NAME")
      ->group(group);
}

}  // namespace

Command add_background_command(CLI::App& parent) {
  auto options = std::make_shared<BackgroundOptions>();
  CLI::App* app = parent.add_subcommand("background", "separate a video into background and what moves");
  app->add_option("VIDEO", options->video,
                  "a video file, a directory of images (PNG, JPEG, PGM, PPM), a pattern (in%06d.png), .npy (frames x "
                  "height x width), or live: - (standard input), /dev/video0, a URL with --protocol")
      ->required();
  app->add_option("--out", options->out, "directory for the results (default qrane-background)")->type_name("DIR");
  app->add_option("--frames", options->frames, "at most so many frames")->type_name("N");
  app->add_option("--start", options->start, "skip so many frames first")->type_name("N");
  app->add_option("--protocol", options->protocol, "the network protocol that VIDEO may name: rtsp, http, https, ...")
      ->type_name("NAME");
  app->add_option("--size", options->size, "scale the frames to this size")->type_name("WxH");
  app->add_option("--truth", options->truth,
                  "directory of masks (255 moves; 0 and 50 do not; others left out), matched by number or order: "
                  "prints precision, recall and F-measure")
      ->type_name("DIR");
  add_method_options(*app, *options);
  add_common_options(*app, options->common);
  app->footer(
      "Works in f32 unless told otherwise. Ctrl-C stops at the next iteration and keeps the finished windows;\n"
      "a second one, half a second later or more, ends at once.");
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
