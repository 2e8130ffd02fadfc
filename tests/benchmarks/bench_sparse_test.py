#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite `smoke-sparse` as a user runs it: bench_sparse_test.py QRANE PLOT DATA."""

import re
import sys
import tempfile

import bench_support
from bench_support import QRANE, REPORT, run, run_plot

DATA = sys.argv[3] if len(sys.argv) > 3 else sys.exit(
    "usage: bench_sparse_test.py QRANE PLOT DATA [unittest arguments]")
PEER = "qrane-peers-spqr, SuiteSparseQR"
# ranks as SuiteSparseQR finds them
RANKS = {"lp_nug08": 742, "ch6-6-b3": 1985, "ash219": 85, "nug-5": 148, "chessboard-5x5x2": 176, "grid2d-20": 400,
         "dense-20x320": 20, "dense-320x20": 20}


class SparseSuite(bench_support.Suite):
    suite = "smoke-sparse"
    options = ("--matrices", DATA, "--max-seconds", "100")

    @property
    def cases(self):
        return self.results["sparse"]

    def test_every_matrix_is_measured(self):
        self.assertCountEqual([case["name"] for case in self.cases], RANKS)
        for case in self.cases:
            with self.subTest(matrix=case["name"]):
                self.assertEqual(case["outcome"], "measured", case["reason"])
                analysis = case["analysis"]
                self.assertGreater(min(analysis[key]
                                   for key in ("fronts", "r_entries", "flops", "intensity", "median_ms")), 0)
                self.assertCountEqual([r["precision"] for r in case["runs"]], ["f32", "f64"])
                for each in case["runs"]:
                    self.assertEqual(each["backend"], "cpu")
                    for phase in ("numeric", "refactor", "solve"):
                        self.assertGreater(each[phase]["median_ms"], 0)
                        self.assertGreaterEqual(len(each[phase]["samples_ms"]), 5)
                    self.assertGreater(each["peak_bytes"], 0)
                double = next(r for r in case["runs"] if r["precision"] == "f64")
                self.assertEqual(case["median_ms"], double["numeric"]["median_ms"])
                self.assertEqual(double["rank"], RANKS[case["name"]])
                self.assertEqual("without_rank_detection" in double, case["source"] == "file" or case["paper"] != "")
                self.assertLess(double["gram_error"], 1e-15)
                self.assertLess(double["normal_error"], 1e-14)

    def test_the_peer_factors_the_same_matrix(self):
        if not self.has_peer(PEER):
            self.assertTrue(all(case["peers"] == [] for case in self.cases))
            return
        for case in self.cases:
            with self.subTest(matrix=case["name"]):
                self.assertEqual([peer["ordering"] for peer in case["peers"]], ["metis", "default"])
                for peer in case["peers"]:
                    self.assertEqual(peer["rank"], RANKS[case["name"]])
                    self.assertLess(peer["normal_error"], 1e-14)
                times = {peer["ordering"]: peer["numeric"]["median_ms"] for peer in case["peers"]}
                best = case["best_peer"]
                self.assertEqual(best["median_ms"], min(times.values()))
                self.assertAlmostEqual(case["speed_up"], best["median_ms"] / case["median_ms"], delta=1e-9)
                looked = next(peer for peer in case["peers"] if peer["ordering"] == best["ordering"])
                self.assertLess(looked["gram_error"], 1e-15)
                for entry in case["orderings"]:
                    self.assertGreater(min(entry["median_ms"], entry["peer"]["median_ms"]), 0)

    def test_plot_and_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_plot(self.file, "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(re.search(r"-(\w+)\.png$", name).group(1) for name in done.stdout.split()),
                             ["figure_15", "rates"] if self.has_peer(PEER) else ["rates"])
            done = run(REPORT, self.file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = done.stdout
            self.assertNotIn("GEMM ;", text)  # a suite without rates
            for words in ("**Table V**", "**Tables I and II**", "| Table I | 20 | 320 |", "| lp_nug08 | 1,632 x 912 |"):
                self.assertIn(words, text)

    def test_a_folder_that_is_not_there(self):
        done = run(QRANE, "bench", "smoke-sparse", "--backend", "cpu", "--matrices", "/nowhere/at/all")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/at/all", done.stderr)


if __name__ == "__main__":
    bench_support.main(own_arguments=1)
