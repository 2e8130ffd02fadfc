#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The matrix commands of `qrane` as their users run them: results against NumPy.

usage: cli_test.py PATH-OF-QRANE [Matrices ...]
"""
import gzip
import json
import os

import numpy as np

import cli_support
from cli_support import CliCase


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

    def test_pivoted_qr_and_its_rank(self):
        a = self.random.standard_normal((60, 12))
        a[:, 7] = a[:, 2] + a[:, 3]
        self.save("a.npy", a)
        self.good("qr", "a.npy", "--pivot", "--q", "q.npy", "--r", "r.npy", "--perm", "p.npy", "--json", "j.json")
        columns = self.load("p.npy").ravel().astype(int)
        self.assertEqual(sorted(columns), list(range(12)))
        r = self.load("r.npy")
        self.check_qr(a[:, columns], self.load("q.npy"), r, 1e-13)
        diagonal = abs(np.diag(r))
        self.assertTrue((diagonal[1:] <= diagonal[:-1] * (1 + 1e-12)).all())
        self.assertEqual(self.json("j.json")["rank"], 11)
        self.good("qr", "a.npy", "--pivot", "--truncate", "--tolerance", "1e-10", "--q", "q.npy", "--r", "r.npy")
        self.assertEqual(self.load("r.npy").shape, (11, 12))
        self.assertEqual(self.load("q.npy").shape, (60, 11))
        self.bad("qr", "a.npy", "--perm", "p.npy", words=["--perm", "--pivot"])
        self.bad("qr", "a.npy", "--pivot", "--mode", "full", words=["--mode full"])
        self.bad("qr", "a.npy", "--pivot", "--pivoting", "magic", words=["magic", "exact"])

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

    def sparse(self, name, rows, cols, density):
        """A random sparse matrix in a coordinate file, and dense."""
        a = self.random.standard_normal((rows, cols)) * (self.random.random((rows, cols)) < density)
        a[np.arange(min(rows, cols)), np.arange(min(rows, cols))] = 3
        entries = np.argwhere(a)
        lines = [f"{i + 1} {j + 1} {a[i, j]!r}" for i, j in entries.tolist()]
        lines = [line.replace("np.float64(", "").replace(")", "") for line in lines]
        self.write(name, "%%MatrixMarket matrix coordinate real general\n"
                   f"{rows} {cols} {len(lines)}\n" + "\n".join(lines) + "\n")
        return a

    def test_sparse_solve(self):
        a = self.sparse("a.mtx", 90, 30, 0.1)
        b = self.random.standard_normal((90, 3))
        self.save("b.npy", b)
        for flags in ([], ["--sparse"], ["--sparse", "--processor", "device"], ["--dense"]):
            self.good("solve", "a.mtx", "b.npy", "--x", "x.npy", "--json", "j.json", *flags)
            expected = np.linalg.lstsq(a, b, rcond=None)[0]
            np.testing.assert_allclose(self.load("x.npy"), expected, atol=1e-11)
            said = self.json("j.json")
            np.testing.assert_allclose(said["residual_norms"], np.linalg.norm(b - a @ expected, axis=0), rtol=1e-10)
            self.assertEqual((said["rank"], said["full_rank"], said["rank_deficient"]), (30, 30, False))
            self.assertEqual(said.get("sparse", False), flags != ["--dense"])
            self.assertEqual(said.get("on_device", False), "--processor" in flags)
            self.assertEqual(said.get("moved_bytes", 0) > 0, "--processor" in flags)
        single = self.good("solve", "a.mtx", "b.npy", "--x", "x.npy", "--precision", "f32")
        np.testing.assert_allclose(self.load("x.npy"), expected, atol=1e-3)
        self.assertIn("f32", single.stdout)
        self.bad("solve", "a.mtx", "b.npy", "--sparse", "--dense", words=["--sparse", "--dense"])
        self.bad("solve", "a.mtx", "b.npy", "--processor", "abacus", words=["abacus", "device"])
        self.bad("solve", "a.mtx", "b.npy", "--dense", "--processor", "cpu", words=["--processor"])
        for flags in (["--memory-limit", "-5"], ["--ordering", "given"], ["--ordering", "best"]):
            self.bad("solve", "a.mtx", "b.npy", *flags, words=flags[-1:])
            self.bad("qr", "a.mtx", "--sparse", *flags, words=flags[-1:])
            self.bad("analyze", "a.mtx", *flags, words=flags[-1:])
        self.good("solve", "a.mtx", "b.npy", "--ordering", "natural", "--x", "x.npy", "--json", "j.json")
        np.testing.assert_allclose(self.load("x.npy"), expected, atol=1e-11)
        self.assertEqual(self.json("j.json")["ordering"], "natural")
        self.bad("solve", "a.mtx", "b.npy", "--dense", "--ordering", "amd", words=["--ordering", "sparse"])
        done = self.qrane("solve", "a.mtx", "b.npy", "--processor", "device", "--memory-limit", "1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1000", done.stderr)

    def test_sparse_solve_of_wide_and_deficient_matrices(self):
        a = self.sparse("wide.mtx", 12, 40, 0.15)
        b = self.random.standard_normal((12, 1))
        self.save("b.npy", b)
        self.good("solve", "wide.mtx", "b.npy", "--x", "x.npy")
        np.testing.assert_allclose(self.load("x.npy"), np.linalg.pinv(a) @ b, atol=1e-11)
        self.write("zero.mtx", "%%MatrixMarket matrix coordinate real general\n12 4 2\n1 1 2\n3 4 1\n")
        done = self.good("solve", "zero.mtx", "b.npy", "--x", "x.npy", "--json", "j.json")
        self.assertIn("rank 2 of 4", done.stderr)
        self.assertEqual(self.json("j.json")["rank"], 2)
        np.testing.assert_allclose(self.load("x.npy").ravel(), [b[0, 0] / 2, 0, 0, b[2, 0]], atol=1e-14)

    def test_sparse_qr(self):
        a = self.sparse("a.mtx", 70, 25, 0.12)
        for ordering in ("automatic", "colamd", "amd", "natural"):
            self.good("qr", "a.mtx", "--sparse", "--ordering", ordering, "--r", "r.mtx", "--perm", "p.npy", "--json",
                      "j.json")
            lines = (self.dir / "r.mtx").read_text().split("\n")
            lines = [line for line in lines if line and not line.startswith("%")]
            rows, cols, count = map(int, lines[0].split())
            self.assertEqual((rows, cols, count), (25, 25, len(lines) - 1))
            r = np.zeros((rows, cols))
            for line in lines[1:]:
                i, j, value = line.split()
                r[int(i) - 1, int(j) - 1] = float(value)
            np.testing.assert_array_equal(np.tril(r, -1), 0)
            p = self.load("p.npy").ravel().astype(int)
            np.testing.assert_allclose(r.T @ r, (a.T @ a)[np.ix_(p, p)], atol=1e-11)
            said = self.json("j.json")
            self.assertEqual((said["rank"], said["entries"]), (25, np.count_nonzero(a)))
            self.assertEqual(said["ordering"] if ordering != "automatic" else ordering, ordering)
            self.assertLessEqual(count, said["r_entries"])
            self.assertLessEqual(said["r_entries_exact"], said["r_entries"])
            for name in ("flops", "peak_bytes", "fronts", "levels", "intensity", "order_seconds", "tree_seconds",
                         "layout_seconds", "factor_seconds", "gflops", "threads"):
                self.assertGreater(said[name], 0, name)
            self.assertEqual((said["moved_bytes"], said["stages"], said["on_device"]), (0, 1, False))
        for flags, word in ((["--q", "q.npy"], "Q"), (["--pivot"], "--pivot"), (["--r", "r.npy"], ".mtx"),
                            (["--ordering", "best"], "best"), (["--explain"], "analyze"), (["--mode", "full"], "Q"),
                            (["--dense"], "--dense"), (["--algorithm", "tsqr"], "--ordering"),
                            (["--truncate"], "--truncate"), (["--pivoting", "exact"], "--pivoting"),
                            (["--tolerance", "nan"], "--tolerance")):
            self.bad("qr", "a.mtx", "--sparse", *flags, words=[word])
        self.bad("qr", "a.mtx", "--ordering", "amd", words=["--ordering", "sparse"])
        self.save("single.npy", a.astype(np.float32))
        for flags, precision in (([], "f32"), (["--precision", "f64"], "f64")):
            self.good("qr", "single.npy", "--sparse", "--json", "j.json", *flags)
            self.assertEqual(self.json("j.json")["precision"], precision)

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
        for command in ((), ("info",), ("qr",), ("solve",), ("svd",), ("background",), ("bench",), ("tune",)):
            text = self.good(*command, "--help", backend=None).stdout
            self.assertIn("--backend" if command else "Exit status", text)

    def test_tune_writes_a_table_that_plans_are_made_from(self):
        environment = {**os.environ, "QRANE_TUNING_FILE": str(self.dir / "tuning.json")}
        other = {"backend": "cuda", "device": "Other", "entries": []}
        self.write("tuning.json", json.dumps({"qrane_tuning": 1, "tables": [other]}))
        done = self.good("tune", "--seconds", "2", "--precision", "f32", "--json", "t.json", env=environment)
        self.assertIn("tuning.json", done.stdout)
        tables = self.json("tuning.json")["tables"]
        self.assertEqual(tables[0], other)
        self.assertEqual(tables[1], self.json("t.json"))
        for key in ("device", "architecture", "measured_on", "qrane", "entries"):
            self.assertIn(key, tables[1])
        entry = {"operation": "qr", "parameters": {"arity": 5}}
        self.write("tuning.json", json.dumps({"qrane_tuning": 1, "tables": [{**tables[1], "entries": [entry]}]}))
        self.save("a.npy", self.random.standard_normal((4000, 8)))
        said = self.good("qr", "a.npy", "--explain", env=environment).stdout
        for word in ("why: ", "tuned: ", "tuning.json", "5 triangles a node", "canonical", "read and written"):
            self.assertIn(word, said)
        self.assertIn("tuning.json", self.good("info", env=environment).stdout)
        self.assertIn('"qrane_tuning": 1', self.good("tune", "--seconds", "0.1", "--dry-run", env=environment).stdout)

    def test_bench_lists_its_suites(self):
        done = self.qrane("bench", "--list", backend=None)
        if "built without" in done.stderr:
            self.skipTest("built without benchmarks")
        for suite in ("paper-table1", "paper-width", "skinny", "background"):
            self.assertIn(suite, done.stdout)
        self.bad("bench", "no-such-suite", words=["no-such-suite"])
        self.bad("bench", words=["SUITE"])


if __name__ == "__main__":
    cli_support.main()
