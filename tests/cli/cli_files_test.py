#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files as `qrane` treats them: outputs never over inputs, files made to hurt, standard streams, disks that are full.

usage: cli_files_test.py PATH-OF-QRANE [Overwrite|BadFiles|Streams|Failures ...]
"""
import io
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

import cli_support
from cli_support import QRANE, SANITIZED, CliCase

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


class Overwrite(CliCase):
    """No output may be an input, or another output, whatever the names."""

    def setUp(self):
        super().setUp()
        self.a = self.random.standard_normal((8, 3))
        self.save("A.npy", self.a)
        self.save("b.npy", self.random.standard_normal((8, 1)))
        self.save("U.npy", self.random.standard_normal((2, 3)))
        self.save("e.npy", self.random.standard_normal((2, 1)))

    def contents(self):
        return {p.name: p.read_bytes() for p in self.dir.iterdir() if p.is_file()}

    def refuse(self, *args, words=()):
        before = self.contents()
        self.bad(*args, words=["would overwrite an input", *words])
        self.assertEqual(self.contents(), before)

    def test_every_output_of_every_matrix_command(self):
        self.refuse("qr", "A.npy", "--r", "A.npy", words=["--r", "A is A.npy"])
        self.refuse("qr", "A.npy", "--q", "./A.npy")
        self.refuse("qr", "A.npy", "--json", "A.npy")
        self.refuse("qr", "A.npy", "--pivot", "--perm", "A.npy")
        self.refuse("solve", "A.npy", "b.npy", "--x", "A.npy")
        self.refuse("solve", "A.npy", "b.npy", "--x", str(self.dir / "b.npy"), words=["b is b.npy"])
        self.refuse("svd", "A.npy", "--u", "A.npy")
        self.refuse("svd", "A.npy", "--vt", "A.npy")
        for flag, name in (("--r", "A.npy"), ("--q", "U.npy"), ("--x", "b.npy"), ("--json", "e.npy")):
            self.refuse("update", "A.npy", "--insert-rows", "0:U.npy", "--b", "b.npy", "--e", "e.npy", "--form", "thin",
                        flag, name)
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n2 1 2\n1 1 1\n2 1 3\n")
        self.refuse("qr", "A.mtx", "--sparse", "--r", "A.mtx")
        self.refuse("analyze", "A.mtx", "--json", "A.mtx")
        self.save("two.npy", np.ones(2))
        self.refuse("solve", "A.mtx", "two.npy", "--x", "two.npy")

    def test_through_links_of_both_kinds(self):
        os.symlink("A.npy", self.dir / "soft.npy")
        os.link(self.dir / "A.npy", self.dir / "hard.npy")
        os.symlink(".", self.dir / "here")
        for name in ("soft.npy", "hard.npy", "here/A.npy", "here/soft.npy"):
            self.refuse("qr", "A.npy", "--r", name)
            self.refuse("qr", name, "--r", "A.npy")

    def test_outputs_among_each_other(self):
        self.save("old.npy", np.ones(1))
        os.link(self.dir / "old.npy", self.dir / "same.npy")
        os.symlink("old.npy", self.dir / "link.npy")
        for first, second in (("old.npy", "same.npy"), ("old.npy", "link.npy"), ("new.npy", "./new.npy"), ("-", "-")):
            self.bad("qr", "A.npy", "--r", first, "--q", second, words=["--r and --q name the same file"])
        self.good("qr", "A.npy", "--r", "/dev/null", "--json", "/dev/null")

    def test_the_tuning_table_is_an_input(self):
        shutil.copy(DATA / "seeds" / "table.json", self.dir / "table.json")
        env = {**os.environ, "QRANE_TUNING_FILE": str(self.dir / "table.json")}
        self.bad("qr", "A.npy", "--json", "table.json", words=["would overwrite", "tuning table"], env=env)


class BadFiles(CliCase):
    """What fuzzers found. Nothing takes long, nothing takes much memory."""

    def limited(self, *args, env=None):
        limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
        env = {**(env or os.environ), "ASAN_OPTIONS": "hard_rss_limit_mb=6144"}
        start = time.monotonic()
        done = subprocess.run([QRANE, *map(str, args), "--backend", "cpu"], cwd=self.dir, capture_output=True,
                              text=True,
                              timeout=60, preexec_fn=limit, env=env)
        self.assertLess(time.monotonic() - start, 30, args)
        return done

    def refused(self, *args, word="", env=None):
        done = self.limited(*args, env=env)
        self.assertEqual(done.returncode, 2, f"{args}: {done.stderr}{done.stdout}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(word, done.stderr)

    def test_matrices(self):
        self.save("b.npy", np.ones(3))
        names = [p for p in (DATA / "bad_files").iterdir() if p.suffix in (".mtx", ".npy") and "diag" not in p.name]
        self.assertGreater(len(names), 8)
        for name in names:
            for command in (["qr"], ["qr", "--sparse"], ["qr", "--mode", "full"], ["svd"], ["analyze"]):
                self.refused(command[0], name, *command[1:], word="at most 16777216")
            self.refused("solve", name, "b.npy", word="at most 16777216")
            self.refused("solve", "b.npy", name, word="at most 16777216")

    def test_a_diagonal_is_solved(self):
        done = self.limited("solve", DATA / "bad_files/diag3.mtx", DATA / "bad_files/diag3_b.mtx", "--x", "x.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_allclose(self.load("x.npy").ravel(), 1)

    def test_tuning_tables(self):
        deep = "[" * 200000
        self.write("deep.json", deep)
        self.write("deep2.json", '{"qrane_tuning": 1, "tables": ' + deep + "]" * 200000 + "}")
        self.write("deep3.json", '{"qrane_tuning": ' + deep + "]" * 200000 + ', "tables": []}')
        self.save("a.npy", np.eye(3))
        names = [*(DATA / "bad_files").glob("tuning_*.json"), *self.dir.glob("deep*.json")]
        self.assertEqual(len(names), 5)
        for name in names:
            done = self.limited("qr", "a.npy", env={**os.environ, "QRANE_TUNING_FILE": str(name)})
            self.assertIn(done.returncode, (0, 2), f"{name}: {done.returncode} {done.stderr[:300]}")
            self.assertLess(len(done.stderr), 1000)

    def test_images_and_playlists(self):
        if shutil.which("ffmpeg") is None:
            self.skipTest("no ffmpeg program")
        for name in (DATA / "bad_files").iterdir():
            if name.suffix in (".png", ".bmp", ".tga", ".bin", ".jpg", ".mp4") or name.name in (
                    "zero_height.pgm", "zero_width.pgm", "ppm16_overread.ppm"):
                self.refused("background", name, "--out", "out", word=name.name)
        self.assertFalse(list(self.dir.glob("out/*")))


class Streams(CliCase):
    def setUp(self):
        super().setUp()
        self.a = self.random.standard_normal((40, 4))
        self.save("a.npy", self.a)
        self.save("b.npy", self.a @ np.arange(1.0, 5))

    def run_with(self, data, *args):
        return subprocess.run([QRANE, *args, "--backend", "cpu"], cwd=self.dir, input=data, capture_output=True,
                              timeout=60)

    def test_standard_input_and_output(self):
        for name in ("a.npy", "a.mtx", "a.mtx.gz"):
            self.good("qr", "a.npy", "--q", "q.npy")
            if name != "a.npy":
                import gzip
                text = "%%MatrixMarket matrix array real general\n40 4\n" + "\n".join(map(repr,
                    self.a.T.ravel().tolist()))
                data = text.encode() if name == "a.mtx" else gzip.compress(text.encode())
            else:
                data = (self.dir / name).read_bytes()
            done = self.run_with(data, "solve", "-", "b.npy", "--x", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            np.testing.assert_allclose(np.load(io.BytesIO(done.stdout)).ravel(), np.arange(1.0, 5))
            self.assertIn(b"residual norm", done.stderr)  # words make room for the result
        done = self.run_with(b"nonsense", "qr", "-")
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (2, 1))
        self.assertIn(b"standard input: neither", done.stderr)
        done = self.run_with((self.dir / "a.npy").read_bytes(), "solve", "-", "-")
        self.assertIn(b"both standard input", done.stderr)
        done = self.run_with(None, "qr", "a.npy", "--json", "-", "--quiet")
        self.assertIn(b'"gram_residual"', done.stdout)

    def test_process_substitution(self):
        script = f'"{QRANE}" solve <(cat a.npy) <(cat b.npy) --x >(cat > x.npy) --quiet --backend cpu; sleep 0.3'
        done = subprocess.run(["bash", "-c", script], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_allclose(self.load("x.npy").ravel(), np.arange(1.0, 5))

    def test_closed_standard_streams(self):
        r = np.abs(np.linalg.qr(self.a)[1])
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            (self.dir / "r.npy").unlink(missing_ok=True)
            done = subprocess.run(["bash", "-c", f'exec {closed}; "{QRANE}" qr a.npy --r r.npy --backend cpu'],
                                  cwd=self.dir, timeout=60, stderr=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, closed)
            np.testing.assert_allclose(np.abs(self.load("r.npy")), r, rtol=1e-10)
        done = subprocess.run(["bash", "-c", f'"{QRANE}" qr a.npy --r - --backend cpu >&-'], cwd=self.dir,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: cannot write", done.stderr)

    def test_a_reader_that_goes_away(self):
        done = subprocess.run(["bash", "-c",
                               f'"{QRANE}" qr a.npy --r r.npy --backend cpu | true; echo ${{PIPESTATUS[0]}}'],
                              cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "0\n", done.stderr)
        self.assertEqual(self.load("r.npy").shape, (4, 4))
        self.save("large.npy", self.random.standard_normal((900, 900)))
        done = subprocess.run(["bash", "-c",
                               f'"{QRANE}" qr large.npy --r - --backend cpu | true; echo ${{PIPESTATUS[0]}}'],
                              cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "1\n")
        self.assertIn("standard output: cannot write: Broken pipe", done.stderr)


class Failures(CliCase):
    def setUp(self):
        super().setUp()
        self.save("a.npy", self.random.standard_normal((400, 400)))

    def test_a_full_disk(self):
        for flags in (["--r", "/dev/full"], ["--json", "/dev/full"]):
            self.bad("qr", "a.npy", "--quiet", *flags, words=["/dev/full: cannot write: No space left"], status=1)
        with open("/dev/full", "w") as full:
            done = subprocess.run([QRANE, "qr", "a.npy", "--r", "r.npy", "--backend", "cpu"], cwd=self.dir, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("standard output: cannot write", done.stderr)
        self.assertEqual(self.load("r.npy").shape, (400, 400))

    def test_a_limit_on_the_size_of_files_leaves_old_outputs(self):
        for name in ("r.npy", "r.mtx", "r.mtx.gz"):
            self.write(name, "precious")
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
            done = subprocess.run([QRANE, "qr", "a.npy", "--r", name, "--quiet", "--backend", "cpu"], cwd=self.dir,
                                  stderr=subprocess.PIPE, text=True, preexec_fn=limit, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertEqual((self.dir / name).read_text(), "precious")
            self.assertFalse(list(self.dir.glob("*.partial-*")))

    def test_killed_while_writing_no_half_file_has_the_name(self):
        self.save("a.npy", self.random.standard_normal((900, 900)))
        run = subprocess.Popen([QRANE, "qr", "a.npy", "--q", "q.mtx.gz", "--backend", "cpu"], cwd=self.dir,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        while run.poll() is None and not any(p.stat().st_size for p in self.dir.glob("*.partial-*")):
            time.sleep(0.005)
        run.send_signal(signal.SIGKILL)
        run.wait(60)
        self.assertFalse((self.dir / "q.mtx.gz").exists())

    def test_typos_get_a_suggestion(self):
        for args, word in ((["svdd", "a.npy"], "did you mean 'svd'"), (["qr", "a.npy", "--sprase"], "--sparse"),
                           (["solve", "a.npy", "a.npy", "--memory-limt", "3"], "--memory-limit"),
                           (["qr", "a.npy", "--algoritm=tsqr"], "--algorithm"),
                           (["qr", "a.npy", "--algorithm", "tsqrr"], "did you mean tsqr?"),
                           (["qr", "a.npy", "--mode", "thinn"], "did you mean thin?"),
                           (["bench", "skiny"], "did you mean skinny?")):
            self.bad(*args, words=[word], backend=None)

    def test_threads(self):
        for flags, env in ((["--threads", "1"], {}), ([], {"OMP_NUM_THREADS": "1"}), (["--threads", "3"], {})):
            self.good("solve", "a.npy", "a.npy", *flags, env={**os.environ, **env})
        self.bad("qr", "a.npy", "--threads", "-2", words=["--threads", "-2"])

    @unittest.skipIf(SANITIZED, "sanitizers need all of the address space")
    def test_an_address_space_limit_ends_with_words(self):
        for kib in (150000, 200000, 300000, 500000, 1000000):
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))
            for name in ("a.npy", "large.npy"):
                if not (self.dir / name).exists():
                    self.save(name, self.random.standard_normal((4000, 3000)))
                done = subprocess.run([QRANE, "qr", name, "--r", "r.npy", "--quiet", "--backend", "cpu"], cwd=self.dir,
                                      stderr=subprocess.PIPE, text=True, preexec_fn=limit, timeout=60)
                if done.returncode == 127 and "while loading shared libraries" in done.stderr:
                    continue  # the program did not begin
                self.assertIn(done.returncode, (0, 1), f"{kib}: {done.stderr}")
                if done.returncode == 1:
                    self.assertTrue(done.stderr.startswith("qrane: "), done.stderr)
                    self.assertIn("memory", done.stderr)

    @unittest.skipIf(SANITIZED, "sanitizers must be loaded first")
    def test_openblas_on_the_wrong_core(self):
        library = os.environ.get("QRANE_TEST_OTHER_CORE")
        said = self.json_of("info", {})
        if not library or said["blas_core"] == "":
            self.skipTest("no OpenBLAS")
        fitting = self.json_of("info", {"OPENBLAS_CORETYPE": "Prescott"})["blas_core_fitting"]
        if fitting == "Prescott":
            self.skipTest("this processor has no AVX")
        wrong = {"LD_PRELOAD": library}
        self.assertEqual(self.json_of("info", wrong)["blas_core"], fitting)  # it ran itself again
        self.assertEqual(self.json_of("qr a.npy", wrong)["blas_core"], fitting)
        users = self.json_of("info", {**wrong, "OPENBLAS_CORETYPE": "Prescott"})  # what the user sets stays
        self.assertEqual((users["blas_core"], users["blas_core_fitting"]), ("Prescott", fitting))
        self.assertIn("OPENBLAS_CORETYPE=" + fitting, users["in_use"]["driver"])

    def json_of(self, command, env):
        self.good(*command.split(), "--json", "j.json", "--quiet", env={**os.environ, **env})
        return self.json("j.json")

    def test_short_solutions_are_shown(self):
        self.save("d.npy", np.diag([1.0, 2, 4]))
        self.save("b.npy", np.array([1.0, 1, 1]))
        self.assertIn("x              1  0.5  0.25\n", self.good("solve", "d.npy", "b.npy").stdout)
        self.assertIn("400 x 400, not shown; --x", self.good("solve", "a.npy", "a.npy").stdout)

    def test_too_large_when_dense_suggests_sparse(self):
        self.write("w.mtx", "%%MatrixMarket matrix coordinate real general\n9000000 9000000 2\n1 1 1\n9 9 1\n")
        for command in (["qr"], ["svd"], ["update", "--delete-rows", "0:1"]):
            self.bad(*command, "w.mtx", words=["w.mtx", "--sparse"], status=1)

    def test_permutations_index_as_they_are(self):
        a = self.random.standard_normal((30, 6))
        self.save("p.npy", a)
        self.good("qr", "p.npy", "--pivot", "--q", "q.npy", "--r", "r.npy", "--perm", "perm.npy")
        perm = self.load("perm.npy")
        self.assertEqual((perm.dtype, perm.shape), (np.int64, (6,)))
        np.testing.assert_allclose(a[:, perm], self.load("q.npy") @ self.load("r.npy"), atol=1e-12)
        self.good("qr", "p.npy", "--sparse", "--perm", "perm.npy", "--r", "r.mtx")
        self.assertEqual(sorted(a[0, self.load("perm.npy")]), sorted(a[0]))

    def test_memory_limits_with_units(self):
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1\n2 2 1\n3 1 2\n")
        for limit in ("1G", "500m", "4000000000", "1gib"):
            self.good("qr", "a.mtx", "--sparse", "--memory-limit", limit)
        for limit in ("4X", "-5", "G", "1.5G"):
            self.bad("qr", "a.mtx", "--sparse", "--memory-limit=" + limit, words=["--memory-limit", limit])


if __name__ == "__main__":
    cli_support.main()
