#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `qrane` program as its users run it: results against NumPy, every kind of bad input, Ctrl-C.

usage: cli_test.py PATH-OF-QRANE [SUITE ...]
"""
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

QRANE = ""


class CliCase(unittest.TestCase):
    """Each test works in an empty directory of its own."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="qrane-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.random = np.random.default_rng(5)

    def qrane(self, *args, backend="cpu", timeout=120, env=None):
        command = [QRANE, *[str(a) for a in args]]
        if backend:
            command += ["--backend", backend]
        return subprocess.run(command, cwd=self.dir, capture_output=True, text=True, timeout=timeout,
                              env=env)

    def good(self, *args, **named):
        done = self.qrane(*args, **named)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stderr}{done.stdout}")
        return done

    def bad(self, *args, words, status=2, **named):
        """Fails with the status, one line on standard error that holds all the words, nothing on standard output."""
        done = self.qrane(*args, **named)
        self.assertEqual(done.returncode, status, f"{args}: {done.stderr}{done.stdout}")
        self.assertTrue(done.stderr.startswith("qrane: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(list(self.dir.glob("*.partial-*")), "a partial file was left behind")

    def save(self, name, array):
        np.save(self.dir / name, array)
        return name

    def load(self, name):
        return np.load(self.dir / name)

    def json(self, name):
        return json.loads((self.dir / name).read_text())

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return name

    def limits(self, precision):
        return {"f32": (np.float32, 2e-5), "f64": (np.float64, 1e-13)}[precision]


class Matrices(CliCase):
    def test_info(self):
        done = self.good("info", "--json", "info.json")
        for word in ("cpu", "opencl", "cuda", "in use", "tuned tables"):
            self.assertIn(word, done.stdout)
        info = self.json("info.json")
        self.assertEqual([b["backend"] for b in info["backends"]], ["cpu", "opencl", "cuda"])
        for backend in info["backends"]:
            self.assertTrue(backend["available"] or backend["reason"])
            self.assertEqual(backend["available"], bool(backend["devices"]))
        self.assertEqual(info["in_use"]["backend"], "cpu")
        self.assertEqual(self.good("info", "--quiet").stdout, "")

    def check_qr(self, a, q, r, tolerance):
        self.assertLess(np.linalg.norm(a.astype(np.float64) - q.astype(np.float64) @ r), tolerance * np.linalg.norm(a))
        self.assertLess(np.linalg.norm(q.T.astype(np.float64) @ q - np.eye(q.shape[1])), 10 * tolerance)
        np.testing.assert_array_equal(r, np.triu(r))

    def test_qr_of_all_shapes_in_both_precisions(self):
        for precision in ("f32", "f64"):
            scalar, tolerance = self.limits(precision)
            for m, n in ((300, 20), (7, 7), (9, 23), (50, 1), (1, 1)):
                a = self.random.standard_normal((m, n)).astype(scalar)
                self.save("a.npy", a)
                k = min(m, n)
                for mode, rows in (("thin", k), ("full", m)):
                    with self.subTest(precision=precision, shape=(m, n), mode=mode):
                        self.good("qr", "a.npy", "--mode", mode, "--q", "q.npy", "--r", "r.npy", "--json", "j.json")
                        q, r = self.load("q.npy"), self.load("r.npy")
                        self.assertEqual((q.shape, r.shape), ((m, rows), (rows, n)))
                        self.assertEqual((q.dtype, r.dtype), (scalar, scalar))
                        self.check_qr(a, q, r, tolerance)
                        said = self.json("j.json")
                        self.assertEqual((said["precision"], said["rows"], said["cols"]), (precision, m, n))
                        self.assertLess(said["orthogonality"], 30)
                        self.assertLess(said["residual"], 30)

    def test_r_alone_is_the_default_and_matches_numpy_but_for_signs(self):
        a = self.random.standard_normal((400, 15))
        self.save("a.npy", a)
        done = self.good("qr", "a.npy", "--r", "r.npy", "--json", "j.json")
        np.testing.assert_allclose(abs(self.load("r.npy")), abs(np.linalg.qr(a, mode="r")), rtol=1e-10, atol=1e-12)
        self.assertEqual(self.json("j.json")["mode"], "r")
        self.assertLess(self.json("j.json")["gram_residual"], 1e-14)
        self.assertIn("GFLOP/s", done.stdout)

    def test_every_algorithm_and_its_plan(self):
        a = self.random.standard_normal((200, 12))
        self.save("a.npy", a)
        for name in ("tsqr", "caqr", "blocked", "cholesky_qr"):
            with self.subTest(algorithm=name):
                done = self.good("qr", "a.npy", "--algorithm", name, "--q", "q.npy", "--r", "r.npy", "--explain",
                                 "--json", "j.json")
                self.check_qr(a, self.load("q.npy"), self.load("r.npy"), 1e-13)
                self.assertEqual(self.json("j.json")["algorithm"], name)
                self.assertIn("workspace", done.stdout)

    def test_precision_is_the_files_unless_named(self):
        a = self.random.standard_normal((20, 4))
        self.save("single.npy", a.astype(np.float32))
        self.save("double.npy", a)
        self.write("a.mtx", "%%MatrixMarket matrix array real general\n2 1\n3\n4\n")
        for file, flags, expected in (("single.npy", (), np.float32), ("double.npy", (), np.float64),
                                      ("a.mtx", (), np.float64), ("single.npy", ("--precision", "f64"), np.float64),
                                      ("double.npy", ("--precision", "f32"), np.float32)):
            self.good("qr", file, "--r", "r.npy", *flags)
            self.assertEqual(self.load("r.npy").dtype, expected)

    def test_matrix_market_in_all_its_dresses(self):
        text = "%%MatrixMarket matrix coordinate real general\n% a comment\n3 2 3\n1 1 3\n2 1 4\n3 2 -2\n"
        self.write("a.mtx", text)
        with gzip.open(self.dir / "b.mtx.gz", "wt") as file:
            file.write(text)
        for name in ("a.mtx", "b.mtx.gz"):
            self.good("qr", name, "--r", "r.npy")
            np.testing.assert_allclose(abs(self.load("r.npy")), [[5, 0], [0, 2]], atol=1e-14)

    def test_empty_matrices(self):
        for shape in ((0, 3), (3, 0), (0, 0)):
            with self.subTest(shape=shape):
                self.save("a.npy", np.zeros(shape))
                self.good("qr", "a.npy", "--q", "q.npy", "--r", "r.npy")
                k = min(shape)
                self.assertEqual((self.load("q.npy").shape, self.load("r.npy").shape), ((shape[0], k), (k, shape[1])))
                self.good("svd", "a.npy", "--s", "s.npy")
                self.save("b.npy", np.ones((shape[0], 2)))
                self.good("solve", "a.npy", "b.npy", "--x", "x.npy")
                np.testing.assert_array_equal(self.load("x.npy"), np.zeros((shape[1], 2)))
        self.save("a.npy", np.eye(3))
        self.save("b.npy", np.zeros((3, 0)))
        self.good("solve", "a.npy", "b.npy", "--x", "x.npy")
        self.assertEqual(self.load("x.npy").shape, (3, 0))

    def test_scales_at_the_ends_of_the_range(self):
        for scale in (1e-300, 1e300):
            a = self.random.standard_normal((50, 6)) * scale
            self.save("a.npy", a)
            self.good("qr", "a.npy", "--q", "q.npy", "--r", "r.npy", "--json", "j.json")
            self.check_qr(a / scale, self.load("q.npy"), self.load("r.npy") / scale, 1e-13)
            self.assertLess(self.json("j.json")["residual"], 30)

    def test_same_bits_again(self):
        self.save("a.npy", self.random.standard_normal((5000, 30)).astype(np.float32))
        for name in ("r1.npy", "r2.npy"):
            self.good("qr", "a.npy", "--r", name)
        self.assertEqual((self.dir / "r1.npy").read_bytes(), (self.dir / "r2.npy").read_bytes())

    def test_solve_many_right_hand_sides(self):
        for precision in ("f32", "f64"):
            scalar, tolerance = self.limits(precision)
            a = self.random.standard_normal((120, 9)).astype(scalar)
            b = self.random.standard_normal((120, 3)).astype(scalar)
            self.save("a.npy", a)
            self.save("b.npy", b)
            self.good("solve", "a.npy", "b.npy", "--x", "x.npy", "--json", "j.json")
            x, said = self.load("x.npy"), self.json("j.json")
            expected = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=None)[0]
            np.testing.assert_allclose(x, expected, atol=10 * tolerance)
            np.testing.assert_allclose(said["residual_norms"], np.linalg.norm(b - a @ expected, axis=0), rtol=1e-4)
            self.assertEqual((said["rank"], said["full_rank"], said["rank_deficient"]), (9, 9, False))
            self.assertTrue(1 <= said["condition"] < 100)

    def test_solve_wide_gives_the_least_norm(self):
        a, b = self.random.standard_normal((6, 20)), self.random.standard_normal(6)
        self.save("a.npy", a)
        self.save("b.npy", b)
        self.good("solve", "a.npy", "b.npy", "--x", "x.npy")
        np.testing.assert_allclose(self.load("x.npy").ravel(), np.linalg.pinv(a) @ b, atol=1e-12)

    def test_solve_says_rank_deficiency_loudly_even_when_quiet(self):
        left, right = self.random.standard_normal((80, 4)), self.random.standard_normal((4, 7))
        a, b = left @ right, self.random.standard_normal((80, 1))
        self.save("a.npy", a)
        self.save("b.npy", b)
        done = self.good("solve", "a.npy", "b.npy", "--x", "x.npy", "--json", "j.json")
        self.assertIn("RANK-DEFICIENT", done.stdout)
        self.assertIn("rank 4 of 7", done.stderr)
        self.assertEqual(self.json("j.json")["rank"], 4)
        self.assertTrue(self.json("j.json")["rank_deficient"])
        np.testing.assert_allclose(self.load("x.npy"), np.linalg.pinv(a, rcond=1e-10) @ b, atol=1e-10)
        quiet = self.good("solve", "a.npy", "b.npy", "--quiet")
        self.assertEqual(quiet.stdout, "")
        self.assertIn("rank-deficient", quiet.stderr)

    def test_svd(self):
        for precision in ("f32", "f64"):
            scalar, tolerance = self.limits(precision)
            for m, n in ((200, 8), (6, 30), (5, 5)):
                a = self.random.standard_normal((m, n)).astype(scalar)
                self.save("a.npy", a)
                self.good("svd", "a.npy", "--u", "u.npy", "--s", "s.npy", "--vt", "vt.npy", "--json", "j.json")
                u, s, vt = self.load("u.npy"), self.load("s.npy").ravel(), self.load("vt.npy")
                k = min(m, n)
                self.assertEqual((u.shape, s.shape, vt.shape), ((m, k), (k,), (k, n)))
                np.testing.assert_allclose(s, np.linalg.svd(a.astype(np.float64), compute_uv=False),
                                           atol=10 * tolerance * s[0])
                np.testing.assert_allclose(u * s @ vt, a, atol=10 * tolerance * s[0])
                np.testing.assert_allclose(self.json("j.json")["singular_values"], s, rtol=1e-6)
                self.assertEqual(self.json("j.json")["rank"], k)

    def test_quiet_says_nothing(self):
        self.save("a.npy", self.random.standard_normal((20, 3)))
        for command in (("qr", "a.npy"), ("solve", "a.npy", "a.npy"), ("svd", "a.npy")):
            done = self.good(*command, "--quiet")
            self.assertEqual(done.stdout + done.stderr, "")

    def test_help_and_version(self):
        self.assertIn("qrane ", self.good("--version", backend=None).stdout)
        for command in ((), ("info",), ("qr",), ("solve",), ("svd",), ("background",), ("bench",)):
            self.assertIn("Exit status" if not command else "--backend", self.good(*command, "--help", backend=None).stdout)

    def test_bench_lists_its_suites(self):
        done = self.qrane("bench", "--list", backend=None)
        if "built without" in done.stderr:
            self.skipTest("built without benchmarks")
        for suite in ("paper-table1", "paper-width", "skinny", "background"):
            self.assertIn(suite, done.stdout)
        self.bad("bench", "no-such-suite", words=["no-such-suite"])
        self.bad("bench", words=["SUITE"])


class BadInput(CliCase):
    def setUp(self):
        super().setUp()
        self.a = self.random.standard_normal((12, 3))
        self.save("a.npy", self.a)

    def test_arguments(self):
        self.bad(words=["no command"], backend=None)
        self.bad("frobnicate", words=["frobnicate", "qr"], backend=None)
        self.bad("qr", words=["A is required"])
        self.bad("solve", "a.npy", words=["b is required"])
        self.bad("qr", "a.npy", "--frobnicate", words=["--frobnicate"])
        self.bad("qr", "a.npy", "--mode", "fat", words=["--mode", "fat"])
        self.bad("qr", "a.npy", "--mode", "r", "--q", "q.npy", words=["--q", "q.npy"])
        self.bad("qr", "a.npy", "--algorithm", "magic", words=["magic"])
        self.bad("qr", "a.npy", "--precision", "f16", words=["--precision", "f16"])

    def test_backends_and_devices(self):
        self.bad("qr", "a.npy", backend="abacus", words=["abacus"])
        self.bad("qr", "a.npy", "--device", "99", words=["99"])
        self.bad("qr", "a.npy", "--device", "-1", words=["-1"])
        self.bad("qr", "a.npy", "--device", "one", words=["--device", "one"])
        for backend in json.loads(self.good("info", "--json", "/dev/stdout", "--quiet").stdout)["backends"]:
            if not backend["available"]:
                self.bad("qr", "a.npy", backend=backend["backend"], words=[backend["reason"][:20]])

    def test_missing_and_foreign_files(self):
        self.bad("qr", "none.npy", words=["none.npy", "No such file"])
        self.bad("qr", "none.mtx", words=["none.mtx", "No such file"])
        self.bad("solve", "a.npy", "none.npy", words=["none.npy"])
        self.bad("svd", ".", words=["."])
        self.bad("qr", self.write("a.txt", "1 2\n"), words=["a.txt", ".npy"])
        self.bad("qr", self.write("b.npy", "this is no array"), words=["b.npy"])

    def test_truncated_and_malformed_npy(self):
        whole = (self.dir / "a.npy").read_bytes()
        for length in (0, 5, 20, len(whole) - 1):
            (self.dir / "cut.npy").write_bytes(whole[:length])
            self.bad("qr", "cut.npy", words=["cut.npy"])
        self.save("cube.npy", np.zeros((2, 2, 2)))
        self.bad("qr", "cube.npy", words=["cube.npy", "3 dim"])
        self.save("text.npy", np.array([["a", "b"]]))
        self.bad("qr", "text.npy", words=["text.npy"])

    def test_matrix_market_faults_name_their_line(self):
        banner = "%%MatrixMarket matrix coordinate real general\n"
        for text, line in (("hello\n", 1),
                           ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", 1),
                           (banner + "2 2\n", 2), (banner + "-2 2 1\n1 1 1\n", 2),
                           (banner + "99999999999999999999 2 1\n1 1 1\n", 2),
                           (banner + "2 2 2\n1 1 1\n3 1 5\n", 4), (banner + "2 2 2\n1 1 1\n1 2 x\n", 4),
                           (banner + "2 2 2\n1 1 1\n", 4)):
            with self.subTest(text=text):
                self.bad("qr", self.write("bad.mtx", text), words=["bad.mtx:%d: " % line])

    def test_sizes_beyond_memory_or_64_bits(self):
        for rows in ("4000000000", "400000", "9000000000000000000"):
            self.write("big.mtx", "%%MatrixMarket matrix coordinate real general\n" + rows + " 9000000 1\n1 1 1\n")
            done = self.qrane("qr", "big.mtx")
            self.assertIn(done.returncode, (1, 2))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(rows, done.stderr)

    def test_nan_and_inf_name_their_position(self):
        for value in (np.nan, np.inf, -np.inf):
            a = self.a.copy()
            a[7, 2] = value
            self.save("nan.npy", a)
            for command in (("qr", "nan.npy"), ("svd", "nan.npy"), ("solve", "nan.npy", "a.npy"),
                            ("solve", "a.npy", "nan.npy")):
                self.bad(*command, words=["nan.npy", "row 7", "column 2"])

    def test_mismatched_right_hand_side(self):
        self.save("b.npy", np.ones(11))
        self.bad("solve", "a.npy", "b.npy", words=["11", "12 x 3"])

    def test_unwritable_outputs_are_refused_and_nothing_is_damaged(self):
        self.bad("qr", "a.npy", "--r", "missing/r.npy", words=["missing/r.npy", "cannot write"])
        self.bad("qr", "a.npy", "--r", ".", words=["--r"])
        self.bad("qr", "a.npy", "--r", "r.txt", words=["--r", "r.txt"])
        self.bad("qr", "a.npy", "--r", "same.npy", "--q", "./same.npy", words=["--r", "--q", "same"])
        self.bad("qr", "a.npy", "--json", "missing/j.json", words=["missing/j.json"])
        (self.dir / "directory.npy").mkdir()
        self.bad("qr", "a.npy", "--r", "directory.npy", words=["directory.npy", "directory"])

    def test_a_failing_run_leaves_old_outputs_alone(self):
        self.write("r.npy", "precious")
        a = self.a.copy()
        a[0, 0] = np.nan
        self.save("nan.npy", a)
        self.bad("qr", "nan.npy", "--r", "r.npy", words=["nan.npy"])
        self.bad("qr", "a.npy", "--r", "r.npy", "--q", "missing/q.npy", words=["missing"])
        self.assertEqual((self.dir / "r.npy").read_text(), "precious")
        self.good("qr", "a.npy", "--r", "r.npy")
        self.assertEqual(self.load("r.npy").shape, (3, 3))

    def test_background_without_ffmpeg_says_so(self):
        self.save("v.npy", np.zeros((6, 8, 8), np.uint8))
        self.bad("background", "v.npy", "--out", "out", words=["ffmpeg", "not installed"],
                 env={**os.environ, "PATH": str(self.dir)})
        self.assertFalse((self.dir / "out").exists())

    def test_background_refuses(self):
        self.save("v.npy", np.zeros((6, 8, 8), np.uint8))
        for flags, words in ((("--size", "8"), ["--size", "8"]), (("--size", "0x4"), ["--size", "0x4"]),
                             (("--frames", "-1"), ["--frames", "-1"]), (("--window", "1"), ["--window", "1"]),
                             (("--start", "6"), ["--start", "6 frames"]), (("--threshold", "-3"), ["--threshold"]),
                             (("--tolerance", "0"), ["--tolerance"]), (("--lambda", "nan"), ["--lambda"]),
                             (("--method", "magic"), ["--method", "magic"]), (("--truth", "nowhere"), ["nowhere"]),
                             (("--frames", "1"), ["frame"])):
            with self.subTest(flags=flags):
                self.bad("background", "v.npy", "--out", "out", *flags, words=words)
        self.bad("background", "nothing.avi", "--out", "out", words=["nothing.avi"])
        self.bad("background", self.write("noise.mp4", "no video"), "--out", "out", words=["noise.mp4"])
        self.bad("background", "a.npy", "--out", "out", words=["a.npy"])
        self.write("file", "x")
        self.bad("background", "v.npy", "--out", "file", words=["file"])
        self.assertEqual((self.dir / "file").read_text(), "x")
        self.assertFalse(list(self.dir.glob("out/*")))


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
            for word in ("iteration ", "residual", "rank", "frames 20-39"):
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
        (self.dir / "frames" / "in000039.pgm").write_bytes(b"no image")
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
            if "iteration" in line:
                break
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130)
        self.assertEqual((self.dir / "out/mask.mp4").read_text(), "precious")
        self.assertEqual([p.name for p in (self.dir / "out").iterdir()], ["mask.mp4"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    QRANE = os.path.abspath(sys.argv[1])
    # Threads that spin while they wait are slow where tests share the processors.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
