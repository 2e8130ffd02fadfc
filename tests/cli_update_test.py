#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrane update` as its users run it: every change and form against NumPy, and every kind of bad input.

usage: cli_update_test.py PATH-OF-QRANE [Changes|BadInput ...]
"""
import numpy as np

import cli_support
from cli_support import CliCase

CHANGES = ("insert-rows", "delete-rows", "insert-columns", "delete-columns")


def changed(change, a, k, what):
    axis = 0 if change.endswith("rows") else 1
    if change.startswith("insert"):
        return np.insert(a, [k], what, axis=axis) if what.shape[axis] == 1 else np.concatenate(
            np.split(a, [k], axis=axis)[:1] + [what] + np.split(a, [k], axis=axis)[1:], axis=axis)
    return np.delete(a, range(k, k + what), axis=axis)


class UpdateCase(CliCase):
    def start(self, m=40, n=7, p=3, scalar=np.float64, rhs=2):
        self.a = self.random.standard_normal((m, n)).astype(scalar)
        self.b = self.random.standard_normal((m, rhs)).astype(scalar)
        self.rows = self.random.standard_normal((p, n)).astype(scalar)
        self.columns = self.random.standard_normal((m, p)).astype(scalar)
        self.e = self.random.standard_normal((p, rhs)).astype(scalar)
        for name in ("a", "b", "rows", "columns", "e"):
            self.save(name + ".npy", getattr(self, name))

    def wish(self, change, k, p=3):
        """The flags for a change, the matrix after it, the right-hand sides after it."""
        what = {"insert-rows": self.rows, "insert-columns": self.columns}.get(change, p)
        file = {"insert-rows": "rows.npy", "insert-columns": "columns.npy"}.get(change, str(p))
        b = self.b
        if change == "insert-rows":
            b = changed(change, b, k, self.e)
        elif change == "delete-rows":
            b = changed(change, b, k, p)
        flags = ["--" + change, f"{k}:{file}"]
        return flags, changed(change, self.a, k, what), b


class Changes(UpdateCase):
    def check_factors(self, a, q, r, tolerance):
        wide = np.float64
        self.assertLess(np.linalg.norm(a.astype(wide) - q.astype(wide) @ r.astype(wide)), tolerance * np.linalg.norm(a))
        self.assertLess(np.linalg.norm(q.T.astype(wide) @ q.astype(wide) - np.eye(q.shape[1])), 10 * tolerance)
        np.testing.assert_array_equal(r, np.triu(r))

    def test_every_change_and_form_in_both_precisions(self):
        for precision in ("f32", "f64"):
            scalar, tolerance = self.limits(precision)
            self.start(scalar=scalar)
            for change in CHANGES:
                for k in (0, 4):
                    flags, after, _ = self.wish(change, k)
                    for form in ("thin", "full"):
                        with self.subTest(precision=precision, change=change, k=k, form=form):
                            self.good("update", "a.npy", *flags, "--form", form, "--q", "q.npy", "--r", "r.npy",
                                      "--json", "j.json")
                            q, r, said = self.load("q.npy"), self.load("r.npy"), self.json("j.json")
                            self.assertEqual(q.dtype, scalar)
                            self.check_factors(after, q, r, tolerance)
                            self.assertEqual(q.shape[1], after.shape[0] if form == "full" else min(after.shape))
                            self.assertEqual((said["rows"], said["cols"]), after.shape)
                            self.assertLess(said["orthogonality"], 30)
                            self.assertLess(said["residual"], 30)
                    with self.subTest(precision=precision, change=change, k=k, form="r"):
                        self.good("update", "a.npy", *flags, "--r", "r.npy")
                        np.testing.assert_allclose(abs(self.load("r.npy")), abs(np.linalg.qr(after, mode="r")),
                                                   atol=100 * tolerance)

    def test_right_hand_sides_are_carried_along(self):
        for form in ("r", "thin", "full"):
            self.start()
            for change in CHANGES:
                flags, after, b = self.wish(change, 2)
                more = ["--e", "e.npy"] if change == "insert-rows" else []
                with self.subTest(form=form, change=change):
                    self.good("update", "a.npy", *flags, "--form", form, "--b", "b.npy", *more, "--x", "x.npy",
                              "--json",
                              "j.json")
                    expected = np.linalg.lstsq(after, b, rcond=None)[0]
                    np.testing.assert_allclose(self.load("x.npy"), expected, atol=1e-11)
                    norms = np.linalg.norm(b - after @ expected, axis=0)
                    np.testing.assert_allclose(self.json("j.json")["residual_norms"], norms, rtol=1e-9)

    def test_more_rows_than_columns_go_and_a_matrix_becomes_wide(self):
        self.start(m=12, n=7)
        flags, after, b = self.wish("delete-rows", 1, 8)
        self.good("update", "a.npy", *flags, "--q", "q.npy", "--r", "r.npy", "--b", "b.npy", "--x", "x.npy")
        self.check_factors(after, self.load("q.npy"), self.load("r.npy"), 1e-13)
        np.testing.assert_allclose(self.load("x.npy"), np.linalg.pinv(after) @ b, atol=1e-11)

    def test_explain_names_the_candidates_and_the_choice(self):
        self.start()
        flags, after, _ = self.wish("delete-columns", 2)
        done = self.good("update", "a.npy", *flags, "--form", "thin", "--explain", "--json", "j.json")
        for word in ("orthogonal", "refactor", "predicted", "taken", "measured"):
            self.assertIn(word, done.stdout)
        said = self.json("j.json")
        self.assertIn(said["method"], [c["method"] for c in said["candidates"]])
        self.assertGreater(said["measured_ms"], 0)
        self.assertEqual(self.good("update", "a.npy", *flags, "--quiet").stdout, "")

    def test_named_methods(self):
        self.start()
        for change, method in (("insert-rows", "orthogonal"), ("delete-rows", "cholesky"),
                               ("insert-columns", "trailing"),
                               ("delete-columns", "refactor"), ("delete-rows", "orthogonal")):
            flags, after, _ = self.wish(change, 3)
            with self.subTest(change=change, method=method):
                self.good("update", "a.npy", *flags, "--method", method, "--q", "q.npy", "--r", "r.npy", "--json",
                          "j.json")
                self.check_factors(after, self.load("q.npy"), self.load("r.npy"), 1e-13)
                self.assertEqual(self.json("j.json")["method"], method)


class BadInput(UpdateCase):
    def setUp(self):
        super().setUp()
        self.start()

    def refuse(self, *args, words, status=2):
        self.bad("update", "a.npy", *args, "--r", "r.npy", words=words, status=status)
        self.assertFalse((self.dir / "r.npy").exists())

    def test_changes_that_are_none(self):
        self.refuse(words=["--insert-rows", "--delete-columns"])
        self.refuse("--delete-rows", "1:2", "--delete-columns", "1:2", words=["--delete-rows", "--delete-columns"])
        for text in ("3", ":2", "x:2", "-1:2", "1.5:2", "1:"):
            self.refuse("--delete-rows=" + text, words=["--delete-rows"])
        self.refuse("--delete-rows", "1:x", words=["--delete-rows", "'x'"])

    def test_out_of_range(self):
        self.refuse("--delete-rows", "39:2", words=["--delete-rows", "39", "40 rows"])
        self.refuse("--delete-columns", "7:1", words=["--delete-columns", "7 columns"])
        self.refuse("--insert-rows", "41:rows.npy", words=["--insert-rows", "41", "40 rows"])
        self.refuse("--insert-columns", "8:columns.npy", words=["--insert-columns", "8", "7 columns"])

    def test_blocks_that_do_not_fit(self):
        self.refuse("--insert-rows", "0:columns.npy", words=["columns.npy", "40 x 3", "40 x 7"])
        self.refuse("--insert-columns", "0:rows.npy", words=["rows.npy", "3 x 7"])
        self.refuse("--insert-rows", "0:missing.npy", words=["missing.npy"])

    def test_not_finite_is_named(self):
        self.rows[1, 5] = np.nan
        self.save("nan.npy", self.rows)
        self.refuse("--insert-rows", "0:nan.npy", words=["nan.npy", "row 1", "column 5"])

    def test_right_hand_sides_that_do_not_fit(self):
        self.refuse("--delete-rows", "0:1", "--x", "x.npy", words=["--x", "--b"])
        self.refuse("--delete-rows", "0:1", "--b", "b.npy", "--e", "e.npy", words=["--e", "--insert-rows"])
        self.refuse("--insert-rows", "0:rows.npy", "--b", "b.npy", words=["--e"])
        self.refuse("--insert-rows", "0:rows.npy", "--b", "rows.npy", "--e", "e.npy", words=["rows.npy", "3 rows"])
        self.save("short.npy", self.e[:2])
        self.refuse("--insert-rows", "0:rows.npy", "--b", "b.npy", "--e", "short.npy", words=["short.npy", "2 x 2"])

    def test_words_that_are_unknown(self):
        self.refuse("--delete-rows", "0:1", "--form", "half", words=["--form", "half"])
        self.refuse("--delete-rows", "0:1", "--form", "r", "--q", "q.npy", words=["--form r", "q.npy"])
        self.refuse("--delete-rows", "0:1", "--method", "magic", words=["magic", "orthogonal"])

    def test_a_refused_deletion_is_a_failure_and_writes_nothing(self):
        a = np.eye(6, 4)
        a[4:] = 0
        self.save("a.npy", a)
        self.refuse("--delete-rows", "0:1", words=["--delete-rows", "rank", "--form thin"], status=1)
        self.good("update", "a.npy", "--delete-rows", "0:1", "--q", "q.npy", "--r", "r.npy")
        q = self.load("q.npy")
        self.assertLess(np.linalg.norm(q.T @ q - np.eye(4)), 1e-13)
        np.testing.assert_allclose(q @ self.load("r.npy"), a[1:], atol=1e-13)


if __name__ == "__main__":
    cli_support.main()
