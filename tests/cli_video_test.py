#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `qrane background` takes as a video, and what it must not: names, playlists, protocols, live input.

usage: cli_video_test.py PATH-OF-QRANE [Names|Live|Results ...]
"""
import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import numpy as np

import cli_support
from cli_background_test import ffmpeg_frames, moving_square
from cli_support import QRANE, CliCase

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


class VideoCase(CliCase):
    def setUp(self):
        super().setUp()
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")

    def encode(self, name, frames, *flags, size="64x48", format="gray"):
        done = subprocess.run(["ffmpeg", "-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", format, "-s", size, "-r",
                               "10",
                               "-i", "-", "-c:v", "mpeg4", "-q:v", "2", *flags, "file:" + str(self.dir / name)],
                              input=frames.tobytes(), capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return name

    def summary(self, directory="out"):
        return json.loads((self.dir / directory / "summary.json").read_text())

    def colored(self, frames):
        """A gray scene with a red square."""
        video, truth = moving_square(frames)
        rgb = np.repeat(video[..., None], 3, axis=3)
        rgb[truth > 0] = (255, 60, 60)
        return rgb


class Names(VideoCase):
    def test_names_are_neither_options_nor_protocols_nor_filters(self):
        video, _ = moving_square(12)
        for name in ("-x.mp4", "concat:a|b.mp4", "a|b.mp4", "http:x.mp4", "two\nlines.mp4", "it's \"quoted\".mp4",
                     "pipe:0.mp4", "%d.mp4", "file:x.mp4", "x,scale=2:2.mp4", "[in].mp4"):
            with self.subTest(name=name):
                self.encode(name, video)
                self.good("background", "./" + name, "--out", "out")
                self.assertEqual(self.summary()["total"]["frames"], 12)
        self.bad("background", "-x.mp4", "--out", "out", words=["./-x.mp4"])

    def test_addresses_need_their_protocol_by_name(self):
        self.encode("v.mp4", moving_square(12)[0])
        for name in ("http://127.0.0.1:1/v.mp4", "file://" + str(self.dir / "v.mp4"), "rtsp://127.0.0.1:1/v",
                     "concat://v.mp4"):
            self.bad("background", name, "--out", "out", words=[name, "only local files", "--protocol"])
        self.bad("background", "concat:v.mp4|v.mp4", "--out", "out", words=["No such file"])
        self.bad("background", "http:v.mp4", "--out", "out", words=["No such file"])
        self.bad("background", "http://127.0.0.1:1/v", "--protocol", "rtsp", "--out", "out", words=["rtsp://"])
        self.bad("background", "file:///v.mp4", "--protocol", "file", "--out", "out", words=["only local files"])

    def test_a_protocol_that_is_named_is_used(self):
        self.encode("v.mp4", moving_square(12)[0])
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(self.dir))
        handler.func.log_message = lambda *args: None
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.good("background", f"http://127.0.0.1:{server.server_port}/v.mp4", "--protocol", "http", "--out", "out")
        self.assertEqual(self.summary()["total"]["frames"], 12)

    def test_playlists_lead_nowhere(self):
        self.encode("secret.mp4", moving_square(12)[0])
        shutil.copy(os.path.join(DATA, "bad_files", "hls_reads_local_file.mp4"), self.dir / "list.mp4")
        self.write("concat.mp4", "ffconcat version 1.0\nfile secret.mp4\n")
        self.write("session.mp4",
                   "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n")
        for name in ("list.mp4", "concat.mp4", "session.mp4"):
            self.bad("background", name, "--out", "out", words=[name, "not a video that ffmpeg can read"])
        with open(self.dir / "list.mp4") as stream:
            piped = subprocess.run([QRANE, "background", "-", "--out", "out", "--backend", "cpu"], cwd=self.dir,
                                   timeout=60, stdin=stream, capture_output=True, text=True)
        self.assertEqual(piped.returncode, 2, piped.stdout)
        self.assertIn("standard input: no frame could be decoded", piped.stderr)

    def test_odd_videos(self):
        self.encode("small.ts", moving_square(12)[0], "-f", "mpegts")
        self.encode("large.ts", moving_square(12, 80, 96)[0], "-f", "mpegts", size="96x80")
        (self.dir / "both.ts").write_bytes((self.dir / "small.ts").read_bytes() + (self.dir / "large.ts").read_bytes())
        done = self.qrane("background", "both.ts", "--out", "out", "--window", "4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the size of its frames changes after frame", done.stderr)
        self.assertEqual(self.summary()["status"], "failed")  # what could be read was
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", self.dir / "sound.mp4"],
                       check=True)
        self.bad("background", "sound.mp4", "--out", "none", words=["sound.mp4: no video in it"])
        whole = (self.dir / "large.ts").read_bytes()
        (self.dir / "cut.ts").write_bytes(whole[:len(whole) * 2 // 3])
        done = self.qrane("background", "cut.ts", "--out", "cut")
        self.assertIn(done.returncode, (0, 2))
        self.assertGreater(self.summary("cut")["total"]["frames"], 2)
        self.encode("whole.mp4", moving_square(200)[0], "-movflags", "+faststart")
        data = (self.dir / "whole.mp4").read_bytes()
        (self.dir / "half.mp4").write_bytes(data[:len(data) * 2 // 3])
        done = self.qrane("background", "half.mp4", "--out", "half", "--window", "20")
        self.assertEqual(done.returncode, 2)
        self.assertIn("truncated: 200 frames announced", done.stderr)
        self.assertGreater(self.summary("half")["total"]["frames"], 20)


class Live(VideoCase):
    def test_a_pipe_in_windows_that_overlap(self):
        video, truth = moving_square(50)
        self.encode("v.avi", video)
        with open(self.dir / "v.avi") as stream:
            done = subprocess.run([QRANE, "background", "-", "--out", "out", "--window", "20", "--overlap", "8",
                                   "--backend", "cpu"], cwd=self.dir, stdin=stream, capture_output=True, text=True,
                                  timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        windows = self.summary()["windows"]
        self.assertEqual([(w["first_frame"], w["frames"], w["shared_frames"]) for w in windows],
                         [(0, 20, 0), (20, 12, 8), (32, 12, 8), (44, 6, 8)])
        masks = ffmpeg_frames(self.dir / "out/mask.mp4", 64, 48)
        self.assertEqual(len(masks), 50)
        self.assertGreater(np.mean((masks > 127) == (truth > 0)), 0.95)

    def test_masks_appear_as_the_stream_goes(self):
        video, _ = moving_square(60)
        run = subprocess.Popen([QRANE, "background", "-", "--out", "out", "--window", "15", "--backend", "cpu"],
                               cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        header = b"YUV4MPEG2 W64 H48 F10:1 Ip A1:1 Cmono\n"
        run.stdin.write(header + b"".join(b"FRAME\n" + f.tobytes() for f in video[:40]))
        run.stdin.flush()
        deadline = time.monotonic() + 60
        first = self.dir / "out/mask_000000-000014.mp4"
        while not first.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(len(ffmpeg_frames(first, 64, 48)), 15)  # while the stream is still open
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130, errors)
        self.assertEqual(self.summary()["status"], "interrupted")
        self.assertEqual(len(ffmpeg_frames(self.dir / "out/mask.mp4", 64, 48)), self.summary()["total"]["frames"])
        self.assertFalse(list(self.dir.glob("out/mask_*-*.mp4")))

    def test_a_named_pipe(self):
        self.encode("v.ts", moving_square(20)[0], "-f", "mpegts")
        done = subprocess.run(["bash", "-c", f'"{QRANE}" background <(cat v.ts) --out out --backend cpu'], cwd=self.dir,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.summary()["total"]["frames"], 20)

    def test_killed_at_any_moment_finished_windows_are_readable(self):
        video, _ = moving_square(400)
        self.save("v.npy", video)
        run = subprocess.Popen([QRANE, "background", "v.npy", "--out", "out", "--window", "20", "--backend", "cpu",
                                "--tolerance", "1e-7"], cwd=self.dir, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        self.addCleanup(run.stdout.close)
        for line in run.stdout:
            if line.startswith("frames 40-59"):
                break
        run.kill()
        run.wait()
        for first in (0, 20, 40):
            for name in ("background", "foreground", "mask"):
                frames = ffmpeg_frames(self.dir / f"out/{name}_{first:06d}-{first + 19:06d}.mp4", 64, 48)
                self.assertEqual(len(frames), 20)
        for path in (self.dir / "out").iterdir():
            if ".partial-" not in path.name and path.suffix == ".mp4":
                self.assertGreater(len(ffmpeg_frames(path, 64, 48)), 0, path)
        self.good("background", "v.npy", "--out", "out", "--frames", "40", "--window", "20")  # clears what was left
        self.assertFalse(list(self.dir.glob("out/mask_*-*.mp4")))


class Results(VideoCase):
    def test_the_video_inside_the_output_directory_is_kept(self):
        (self.dir / "out").mkdir()
        video, _ = moving_square(12)
        for name in ("background.mp4", "mask.mp4"):
            self.encode("out/" + name, video)
            before = (self.dir / "out" / name).read_bytes()
            for args in (["out/" + name, "--out", "out"], ["out/" + name, "--out", "./out/"]):
                self.bad("background", *args, words=["--out", "would overwrite an input", name])
            self.assertEqual((self.dir / "out" / name).read_bytes(), before)
            (self.dir / "out" / name).unlink()
        self.encode("v.mp4", video)
        os.symlink("../v.mp4", self.dir / "out/mask.mp4")
        self.bad("background", "v.mp4", "--out", "out", words=["would overwrite an input"])
        (self.dir / "out/mask.mp4").unlink()
        os.link(self.dir / "v.mp4", self.dir / "out/foreground.mp4")
        self.bad("background", "v.mp4", "--out", "out", words=["would overwrite an input"])
        self.bad("background", "v.mp4", "--out", "other", "--json", "v.mp4", words=["would overwrite an input"])
        (self.dir / "out/foreground.mp4").unlink()
        self.encode("out/clip.mp4", video)
        self.good("background", "out/clip.mp4", "--out", "out")  # another name is in nobody's way
        self.assertTrue((self.dir / "out/clip.mp4").exists())

    def test_images_and_masks_inside_the_output_directory_are_kept(self):
        video, truth = moving_square(12)
        (self.dir / "out").mkdir()
        for k in range(12):
            (self.dir / f"out/frame_{k:06d}.png").write_bytes(self.png(video[k]))
        self.bad("background", "out", "--out", "out", words=["would overwrite an input"])
        self.save("v.npy", video)
        (self.dir / "masks").mkdir()
        for k in range(12):
            (self.dir / f"masks/mask_{k:06d}.png").write_bytes(self.png(truth[k]))
        self.bad("background", "v.npy", "--truth", "masks", "--out", "masks", words=["would overwrite an input"])
        self.assertEqual(len(list(self.dir.glob("masks/*"))), 12)

    def png(self, frame):
        return subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "64x48", "-i", "-",
                               "-c:v", "png", "-f", "image2pipe", "-"], input=frame.tobytes(), capture_output=True,
                              check=True).stdout

    def test_directories_of_odd_names(self):
        self.save("v.npy", moving_square(50)[0])
        for name in ("it's\na: 'dir' %d", "-out", "a|b", "concat:x"):
            self.good("background", "v.npy", "--out=" + name, "--window", "20")
            self.assertEqual(len(ffmpeg_frames("file:" + str(self.dir / name / "mask.mp4"), 64, 48)), 50)

    def test_a_second_run_leaves_no_pictures_of_the_first(self):
        self.save("v.npy", moving_square(60)[0])
        self.good("background", "v.npy", "--out", "out", "--window", "20")
        self.write("out/mask_000001.png", "mine")  # one of four: not a picture of ours
        self.write("out/notes.txt", "mine")
        first = set(p.name for p in (self.dir / "out").iterdir())
        self.good("background", "v.npy", "--out", "out", "--frames", "10", "--window", "20")
        second = set(p.name for p in (self.dir / "out").iterdir())
        self.assertEqual(len([n for n in second if n.startswith("frame_")]), 3)
        self.assertIn("notes.txt", second)
        self.assertIn("mask_000001.png", second)
        self.assertLess(len(second), len(first))

    def test_colours_stay_in_the_foreground(self):
        rgb = self.colored(20)
        self.encode("v.mp4", rgb, format="rgb24")
        self.good("background", "v.mp4", "--out", "out")
        self.assertTrue(self.summary()["color"])
        raw = subprocess.run(["ffmpeg", "-v", "error", "-i", self.dir / "out/foreground.mp4", "-f", "rawvideo",
                              "-pix_fmt",
                              "rgb24", "-"], capture_output=True, check=True).stdout
        frame = np.frombuffer(raw, np.uint8).reshape(-1, 48, 64, 3)[10].astype(int)
        inside = frame[14:20, 24:28].reshape(-1, 3).mean(axis=0)
        self.assertGreater(inside[0], inside[1] + 80)
        self.assertLess(frame[40:].mean(), 20)

    def test_a_float_video_in_0_1_is_scaled(self):
        video, _ = moving_square(12)
        self.save("v.npy", video)
        self.save("f.npy", (video / 255).astype(np.float32))
        self.good("background", "v.npy", "--out", "u")
        self.assertIn("scaled by 255", self.good("background", "f.npy", "--out", "f").stdout)
        self.assertEqual((self.dir / "u/frame_000006.png").read_bytes(), (self.dir / "f/frame_000006.png").read_bytes())

    def test_no_progress_in_pipes_and_one_line_on_a_narrow_terminal(self):
        import pty
        self.save("v.npy", moving_square(40)[0])
        self.assertNotIn("iteration 1", self.good("background", "v.npy", "--out", "out").stdout)
        parent, child = pty.openpty()
        import fcntl, struct, termios
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        run = subprocess.Popen([QRANE, "background", "v.npy", "--out", "out", "--backend", "cpu"], cwd=self.dir,
                               stdout=child, stderr=subprocess.DEVNULL)
        os.close(child)
        seen = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(parent)
        self.assertEqual(run.wait(60), 0)
        drawn = [piece.split(b"\r")[0] for piece in seen.split(b"\r\x1b[K")[1:]]
        lines = [line for line in drawn if line.startswith(b"window 1")]
        self.assertTrue(lines)
        self.assertTrue(all(len(line) < 40 for line in lines), lines)


if __name__ == "__main__":
    cli_support.main()
