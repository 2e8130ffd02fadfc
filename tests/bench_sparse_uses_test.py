#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite `smoke-sparse-uses` as a user runs it: bench_sparse_uses_test.py QRANE PLOT."""

import re
import tempfile

import bench_support
from bench_support import REPORT, run, run_plot

PEER = "qrane-peers-spqr, SuiteSparseQR"
RANKS = {"nug-5": 148, "grid2d-12": 144}
WITH_Q = ("solve", "apply QT", "apply Q", "least norm")
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53}


class SparseUsesSuite(bench_support.Suite):
    suite = "smoke-sparse-uses"
    options = ("--max-seconds", "100")

    @property
    def cases(self):
        return self.results["sparse_uses"]

    def for_each(self, check):
        for case in self.cases:
            with self.subTest(matrix=case["name"], precision=case["precision"]):
                check(case)

    def test_every_matrix_is_measured(self):
        self.assertCountEqual([(case["name"], case["precision"]) for case in self.cases],
                              [(name, precision) for name in RANKS for precision in UNIT])
        def check(case):
            self.assertEqual(case["outcome"], "measured", case["reason"])
            self.assertEqual(case["rank"], RANKS[case["name"]])
            self.assertEqual(case["median_ms"], case["limits"][0]["median_ms"])
            self.assertGreater(min(case[key]["median_ms"] for key in ("refactor", "keep_q", "host")), 0)
            self.assertGreaterEqual(case["keep_q"]["peak_bytes"], case["limits"][0]["peak_bytes"])
            self.assertEqual("single" in case, case["precision"] == "f64")

        self.for_each(check)

    def test_limits_are_kept_with_the_same_bits(self):
        def check(case):
            free, *limited = case["limits"]
            self.assertEqual((free["limit_bytes"], free["stages"]), (0, 1))
            self.assertEqual([limit["share"] for limit in limited[:2]], [0.5, 0.25])
            kept = [limit for limit in limited if "median_ms" in limit]
            self.assertTrue(kept)
            for limit in kept:
                self.assertTrue(limit["same_bits"])
                self.assertLessEqual(limit["peak_bytes"], limit["limit_bytes"])
                self.assertGreater(limit["stages"], 1)
                self.assertGreater(limit["moved_bytes"], free["moved_bytes"])
            for limit in limited:
                if "median_ms" not in limit:  # then the least that is possible comes last
                    self.assertIn("bytes of device memory", limit["reason"])
                    self.assertLess(limit["share"], limited[-1]["share"])
                    self.assertIn("median_ms", limited[-1])

        self.for_each(check)

    def test_uses(self):
        def check(case):
            uses = {(use["use"], use["rhs"]): use for use in case["uses"]}
            ways = WITH_Q + ("solve without Q",)
            expected = [(way, count) for way in ways for count in (1, 100)] + [("solve what rode along", 1)]
            self.assertCountEqual(uses, expected + [("refine", 1)] * (case["precision"] == "f64"))
            unit = (min(case["rows"], case["cols"]) + 10) * UNIT[case["precision"]]
            for (way, count), use in uses.items():
                timed = ["from_host"] + ["device"] * (way in ways) + ["host"] * (way in WITH_Q)
                timed += ["peer"] * (way in WITH_Q and self.has_peer(PEER))
                self.assertCountEqual([key for key in use if isinstance(use[key], dict)], timed)
                self.assertGreater(min(use[key]["median_ms"] for key in timed), 0)
                self.assertLess(use["error"], 60 * unit)
            if case["precision"] == "f64":
                self.assertTrue(uses["refine", 1]["converged"])
                self.assertGreater(uses["refine", 1]["iterations"], 0)

        self.for_each(check)

    def test_plot_and_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(REPORT, self.file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = done.stdout
            for words in ("**Within a memory limit, Q discarded**", "| nug-5 | 0.5 |",
                          "**Uses**", "| grid2d-12 | Qᵀ applied | 100 |"):
                self.assertIn(words, text)
            done = run_plot(self.file, "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(re.search(r"-(\w+)\.png$", name).group(1) for name in done.stdout.split()),
                             ["limits", "uses"])


if __name__ == "__main__":
    bench_support.main()
