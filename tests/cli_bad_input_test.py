#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad input to the matrix commands of `qrane`, as their users would give it.

usage: cli_bad_input_test.py PATH-OF-QRANE [BadInput ...]
"""
import gzip
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np

import cli_support
from cli_support import CliCase


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
        # flags that only others look at
        for flags in (["--truncate"], ["--pivoting", "exact"], ["--tolerance", "1e-3"], ["--perm", "p.npy"]):
            self.bad("qr", "a.npy", *flags, words=[flags[0], "--pivot"])
        for tolerance in ("nan", "-0.5"):
            self.bad("qr", "a.npy", "--pivot", "--tolerance", tolerance, words=["--tolerance " + tolerance])

    def test_tuned_tables(self):
        environment = {**os.environ, "QRANE_TUNING_FILE": str(self.dir / "tuning.json")}
        self.bad("qr", "a.npy", words=["tuning.json", "QRANE_TUNING_FILE"], env=environment)
        table = '{"qrane_tuning": 1, "tables": [{"backend": "cpu", "device": "*", "entries": [\n%s]}]}'
        for entry, words in (('{"operation": "qr", "parameters": {"arity": 1}}',
                              ["entries[0].parameters.arity", "from 2"]),
                             ('{"operation": "qr", "parameters": {"airty": 4}}', ["entries[0].parameters.airty"]),
                             ('{"operation": "qr" "parameters": {}}', ["line 2"])):
            self.write("tuning.json", table % entry)
            for command in (("qr", "a.npy"), ("tune", "--seconds", "1")):
                self.bad(*command, words=["tuning.json", *words], env=environment)
        self.bad("tune", "--seconds", "0", words=["--seconds", "0"])
        self.bad("tune", "--out", "nowhere.json/t.json", "--json", "t.json", "--precision", "f16", words=["f16"])

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
        self.save("complex.npy", np.ones((3, 2), complex))
        self.bad("qr", "complex.npy", words=["complex.npy", "complex matrices are not yet"])

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

    def test_damaged_gzip(self):
        text = "%%MatrixMarket matrix coordinate real general\n40 2 40\n"
        text += "".join("%d 1 %.17g\n" % (i + 1, value) for i, value in enumerate(self.random.standard_normal(40)))
        whole = gzip.compress(text.encode())
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 255
        # the data is all there without the last eight bytes, a checksum, but nobody has checked it
        for name, data, word in (("half", whole[:len(whole) // 2], "breaks off"), ("last", whole[:-1], "breaks off"),
                                 ("sum", whole[:-8], "breaks off"), ("changed", changed, "changed.mtx.gz")):
            (self.dir / (name + ".mtx.gz")).write_bytes(data)
            for flags in ([], ["--sparse"]):
                with self.subTest(file=name, flags=flags):
                    self.bad("qr", name + ".mtx.gz", *flags, words=[name + ".mtx.gz", word])
        (self.dir / "whole.mtx.gz").write_bytes(whole)
        self.good("qr", "whole.mtx.gz", "--sparse")

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

    def test_ctrl_c_while_a_file_is_written_leaves_the_old_one_and_no_other(self):
        self.save("a.npy", self.random.standard_normal((900, 900)))
        self.write("q.mtx.gz", "precious")  # takes long to compress
        command = [cli_support.QRANE, "qr", "a.npy", "--q", "q.mtx.gz", "--backend", "cpu"]
        # a script that runs in the background has its children ignore SIGINT
        run = subprocess.Popen(command, cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(run.kill)
        written = lambda: sum(path.stat().st_size for path in self.dir.glob("*.partial-*"))
        while run.poll() is None and not written():
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), -signal.SIGINT)
        self.assertEqual((self.dir / "q.mtx.gz").read_text(), "precious")
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["a.npy", "q.mtx.gz"])

    def test_background_without_ffmpeg_says_so(self):
        self.save("v.npy", np.zeros((6, 8, 8), np.uint8))
        self.bad("background", "v.npy", "--out", "out", words=["ffmpeg", "not installed"],
                 env={**os.environ, "PATH": str(self.dir)})
        self.assertFalse((self.dir / "out").exists())

    def test_background_refuses(self):
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")
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


if __name__ == "__main__":
    cli_support.main()
