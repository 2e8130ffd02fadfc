#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrane background` as its users run it: windows, pictures, masks and scores against brute force, Ctrl-C.

usage: cli_background_test.py PATH-OF-QRANE [Background|Interrupt ...]
"""
import json
import shutil
import signal
import subprocess
import time

import numpy as np

import cli_support
from cli_support import QRANE, CliCase


def ffmpeg_frames(path, width, height):
    """All frames of a video or image, gray."""
    raw = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "gray", "-"],
                         capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width)


def median_5x5(mask):
    padded = np.pad(mask, 2, mode="edge")
    height, width = mask.shape
    shifted = [padded[i:i + height, j:j + width] for i in range(5) for j in range(5)]
    return np.median(np.stack(shifted), axis=0).astype(mask.dtype)


def moving_square(frames, height=48, width=64, seed=3):
    """A textured still scene with a bright square crossing it, and the square's mask."""
    random = np.random.default_rng(seed)
    scene = random.integers(40, 160, (height, width))
    video = np.clip(scene + random.integers(-3, 4, (frames, height, width)), 0, 255).astype(np.uint8)
    truth = np.zeros_like(video)
    for k in range(frames):
        x = (2 * k) % (width - 12)
        video[k, 10:24, x:x + 12] = 240
        truth[k, 10:24, x:x + 12] = 255
    return video, truth


class Background(CliCase):
    def setUp(self):
        super().setUp()
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")

    def save_images(self, directory, name, frames, first=1):
        (self.dir / directory).mkdir()
        for k, frame in enumerate(frames):
            header = b"P5 %d %d 255\n" % (frame.shape[1], frame.shape[0])
            (self.dir / directory / f"{name}{first + k:06d}.pgm").write_bytes(header + frame.tobytes())

    def test_windows_videos_pictures_summary(self):
        video, _ = moving_square(52)
        self.save("v.npy", video)
        for precision in ("f32", "f64"):
            done = self.good("background", "v.npy", "--out", precision, "--window", "20", "--precision", precision,
                             "--json", "copy.json")
            out = self.dir / precision
            summary = json.loads((out / "summary.json").read_text())
            self.assertEqual(summary, self.json("copy.json"))
            self.assertEqual(summary["precision"], precision)
            self.assertEqual([(w["first_frame"], w["frames"]) for w in summary["windows"]],
                             [(0, 20), (20, 20), (40, 12)])
            for window in summary["windows"]:
                self.assertTrue(window["converged"])
                self.assertLess(window["residual"], 1e-4)
                trace = window["convergence"]
                self.assertEqual([s["iteration"] for s in trace], list(range(1, window["iterations"] + 1)))
                self.assertEqual(trace[-1]["residual"], window["residual"])
                self.assertGreater(trace[0]["residual"], trace[-1]["residual"])
            self.assertEqual(summary["total"]["frames"], 52)
            self.assertEqual(summary["total"]["iterations"], sum(w["iterations"] for w in summary["windows"]))
            for name in ("background", "foreground", "mask"):
                self.assertEqual(len(ffmpeg_frames(out / f"{name}.mp4", 64, 48)), 52)
                self.assertEqual(len(list(out.glob(f"{name}_*.png"))), 5)
            for word in ("iterations in", "residual", "rank", "frames 20-39"):
                self.assertIn(word, done.stdout)

    def test_the_background_is_the_still_scene_and_the_mask_the_square(self):
        video, truth = moving_square(40)
        self.save("v.npy", video)
        self.good("background", "v.npy", "--out", "out", "--quiet")
        still = np.median(video, axis=0)
        for k in (6, 20, 33):
            background = ffmpeg_frames(self.dir / f"out/background_{k:06d}.png", 64, 48)[0]
            self.assertLess(np.abs(background - still).mean(), 4)
            mask = ffmpeg_frames(self.dir / f"out/mask_{k:06d}.png", 64, 48)[0]
            self.assertGreater(((mask > 0) == (truth[k] > 0)).mean(), 0.97)

    def test_mask_and_scores_equal_brute_force(self):
        # Three frames, all of which are kept as PNGs: the mask and the scores can be made again from those.
        video, truth = moving_square(3)
        truth[:, 30:40, :20] = 85
        truth[:, 30:40, 20:40] = 170
        truth[:, 40:, :] = 50
        truth[0, 5:12, 30:50] = 255
        self.save_images("frames", "in", video, first=851)
        self.save_images("masks", "gt", truth[1:], first=852)
        done = self.good("background", "frames", "--truth", "masks", "--out", "out", "--threshold", "15.5")
        masks = []
        for k in range(3):
            foreground = ffmpeg_frames(self.dir / f"out/foreground_{k:06d}.png", 64, 48)[0]
            mask = ffmpeg_frames(self.dir / f"out/mask_{k:06d}.png", 64, 48)[0]
            np.testing.assert_array_equal(mask, median_5x5(np.where(foreground > 15, 255, 0).astype(np.uint8)))
            masks.append(mask > 0)
        found, moves = np.stack(masks[1:]), truth[1:] == 255
        still = (truth[1:] == 0) | (truth[1:] == 50)
        tp, fp, fn = (found & moves).sum(), (found & still).sum(), (~found & moves).sum()
        said = self.json("out/summary.json")["truth"]
        self.assertEqual((said["true_positives"], said["false_positives"], said["false_negatives"]), (tp, fp, fn))
        self.assertEqual((said["frames"], said["matched_by"]), (2, "number"))
        self.assertAlmostEqual(said["f_measure"], 2 * tp / (2 * tp + fp + fn) if tp else 0)
        self.assertIn("F-measure", done.stdout)

    def test_truth_in_order_of_a_video_with_a_start(self):
        video, truth = moving_square(30)
        self.save("v.npy", video)
        self.save_images("masks", "gt", truth)
        self.good("background", "v.npy", "--truth", "masks", "--out", "out", "--start", "5", "--frames", "20")
        summary = self.json("out/summary.json")
        self.assertEqual(summary["windows"][0]["first_frame"], 5)
        self.assertEqual((summary["truth"]["frames"], summary["truth"]["matched_by"]), (20, "order"))
        self.assertGreater(summary["truth"]["f_measure"], 0.8)

    def test_encoded_video_frames_and_size(self):
        video, _ = moving_square(24)
        raw = subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "64x48", "-i", "-",
                              "-c:v", "mpeg4", "-q:v", "2", str(self.dir / "v.avi")], input=video.tobytes())
        self.assertEqual(raw.returncode, 0)
        self.good("background", "v.avi", "--out", "out", "--frames", "10", "--size", "32x24")
        summary = self.json("out/summary.json")
        self.assertEqual((summary["width"], summary["height"], summary["total"]["frames"]), (32, 24, 10))
        self.assertEqual(ffmpeg_frames(self.dir / "out/mask.mp4", 32, 24).shape, (10, 24, 32))

    def test_alternating_and_an_iteration_limit(self):
        video, _ = moving_square(20)
        self.save("v.npy", video)
        self.good("background", "v.npy", "--out", "alm")
        self.good("background", "v.npy", "--out", "alternating", "--method", "alternating", "--tolerance", "1e-3")
        alm, other = self.json("alm/summary.json"), self.json("alternating/summary.json")
        self.assertEqual((alm["method"], other["method"]), ("inexact-alm", "alternating"))
        self.assertTrue(other["windows"][0]["converged"])
        self.assertGreater(other["windows"][0]["iterations"], alm["windows"][0]["iterations"])
        done = self.good("background", "v.npy", "--out", "short", "--max-iterations", "3")
        self.assertIn("above --tolerance", done.stderr)
        self.assertFalse(self.json("short/summary.json")["windows"][0]["converged"])

    def test_a_broken_video_keeps_the_windows_before_the_break(self):
        video, _ = moving_square(40)
        self.save_images("frames", "in", video)
        (self.dir / "frames" / "in000039.pgm").write_bytes(b"P5 64 48 255\nshort")
        self.bad_but_kept("background", "frames", "--out", "out", "--window", "10")
        frames = sum(w["frames"] for w in self.json("out/summary.json")["windows"])
        self.assertEqual(self.json("out/summary.json")["status"], "failed")
        self.assertGreater(frames, 0)
        self.assertEqual(len(ffmpeg_frames(self.dir / "out/mask.mp4", 64, 48)), frames)

    def bad_but_kept(self, *args):
        done = self.qrane(*args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("in000039.pgm", done.stderr)


class Interrupt(CliCase):
    def start_long_run(self, out):
        """More windows than a computer finishes in seconds; returns after the second was finished."""
        video, _ = moving_square(4000)
        self.save("v.npy", video)
        command = [QRANE, "background", "v.npy", "--out", out, "--window", "20", "--tolerance", "1e-30",
                   "--max-iterations", "60", "--method", "alternating", "--backend", "cpu"]
        self.run_errors = open(self.dir / "errors.txt", "w+")
        self.addCleanup(self.run_errors.close)
        run = subprocess.Popen(command, cwd=self.dir, stdout=subprocess.PIPE, stderr=self.run_errors, text=True)
        self.addCleanup(run.kill)
        self.addCleanup(run.stdout.close)
        for line in run.stdout:
            if line.startswith("frames 20-39"):
                return run
        self.fail("the run ended early: " + (self.dir / "errors.txt").read_text())

    def check_stop(self, number):
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")
        run = self.start_long_run("out")
        asked = time.monotonic()
        run.send_signal(number)
        rest = run.stdout.read()
        self.assertEqual(run.wait(timeout=60), 130, rest)
        self.assertLess(time.monotonic() - asked, 30)
        self.assertIn("stopped by a signal", (self.dir / "errors.txt").read_text())
        summary = self.json("out/summary.json")
        self.assertEqual(summary["status"], "interrupted")
        frames = summary["total"]["frames"]
        self.assertGreaterEqual(frames, 40)
        self.assertLess(frames, 4000)
        self.assertEqual(frames % 20, 0)
        for name in ("background", "foreground", "mask"):
            self.assertEqual(len(ffmpeg_frames(self.dir / f"out/{name}.mp4", 64, 48)), frames)
        self.assertFalse(list((self.dir / "out").glob("*.partial-*")))

    def test_ctrl_c_keeps_finished_windows(self):
        self.check_stop(signal.SIGINT)

    def test_terminate_does_too(self):
        self.check_stop(signal.SIGTERM)

    def test_before_the_first_window_old_results_stay(self):
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")
        video, _ = moving_square(400, 120, 160)
        self.save("v.npy", video)
        (self.dir / "out").mkdir()
        self.write("out/mask.mp4", "precious")
        run = subprocess.Popen([QRANE, "background", "v.npy", "--out", "out", "--tolerance", "1e-30", "--method",
                                "alternating", "--max-iterations", "100000", "--window", "400", "--backend", "cpu"],
                               cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        for line in run.stdout:
            if line.startswith("device"):
                break
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGINT)  # the `timeout` program signals its child, then the group: counts as one
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130)
        self.assertEqual((self.dir / "out/mask.mp4").read_text(), "precious")
        self.assertEqual([p.name for p in (self.dir / "out").iterdir()], ["mask.mp4"])


if __name__ == "__main__":
    cli_support.main()
