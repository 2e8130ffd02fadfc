#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrane bench` and benchmarks/plot as a user runs them: bench_test.py QRANE PLOT.

The suite `smoke` is small; what is checked is that every number is there and can be true, not how fast it is.
"""

import copy
import json
import os
import re
import tempfile
import unittest
from pathlib import Path

import bench_support
from bench_support import QRANE, REPORT, run, run_plot

SHAPES = [(300, 20), (1000, 32), (64, 64), (400, 200)]
MODES = ["r", "thin", "implicit", "lapack"]
PRECISIONS = ["f32", "f64"]


def median(samples):
    ordered = sorted(samples)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def canonical_flops(rows, cols, mode):
    return (2 * rows * cols**2 - 2 * cols**3 / 3) * (2 if mode == "thin" else 1)


class SmokeSuite(bench_support.Suite):
    suite = "smoke"

    def cases(self):
        return [case for case in self.results["cases"] if "median_ms" in case]

    def test_head(self):
        r = self.results
        self.assertEqual((r["format"], r["version"], r["suite"]), ("qrane-bench", 1, "smoke"))
        self.assertRegex(r["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(r["commit"])
        self.assertFalse(r["interrupted"])
        self.assertEqual(r["device"]["backend"], "cpu")
        self.assertTrue(r["device"]["name"])
        self.assertGreater(r["machine"]["threads"], 0)
        for precision in PRECISIONS:
            self.assertGreater(r["rates"][precision]["gemm_gflops"], 0)
            self.assertGreater(r["rates"][precision]["copy_gbytes"], 0)

    def test_every_case_is_there_and_measured(self):
        found = [(c["rows"], c["cols"], c["precision"], c["mode"], c["asked"]) for c in self.cases()]
        wanted = [(m, n, p, mode, asked) for m, n in SHAPES for p in PRECISIONS for mode in MODES
                  for asked in ("automatic", "caqr") if (mode, asked) != ("lapack", "caqr")]
        self.assertCountEqual(found, wanted)
        for case in self.cases():
            if case["asked"] == "caqr":
                self.assertEqual(case["algorithm"], "caqr")
            self.assertEqual(len(case["call"]["samples_ms"]), 5)
            self.assertGreater(case["call"]["median_ms"], 0)

    def test_times_and_speeds(self):
        for case in self.cases():
            with self.subTest(case=(case["rows"], case["cols"], case["precision"], case["mode"])):
                self.assertGreaterEqual(len(case["samples_ms"]), 5)
                self.assertTrue(all(ms > 0 for ms in case["samples_ms"]))
                self.assertAlmostEqual(case["median_ms"], median(case["samples_ms"]), delta=1e-9)
                flops = canonical_flops(case["rows"], case["cols"], case["mode"])
                self.assertAlmostEqual(case["flops"], flops, delta=1e-9 * flops)
                self.assertAlmostEqual(case["gflops"], flops / case["median_ms"] * 1e-6, delta=1e-6 * case["gflops"])
                self.assertNotEqual(case["algorithm"], "automatic")

    def test_errors_are_within_the_limit_and_not_by_accident(self):
        for case in self.cases():
            with self.subTest(case=(case["rows"], case["cols"], case["precision"], case["mode"])):
                self.assertEqual(case["outcome"], "measured")
                errors = case["errors"]
                self.assertLessEqual(errors["residual"], 30)
                self.assertGreater(errors["residual"], 1e-6)  # no rounding at all would be no factorization
                if case["mode"] == "r":
                    self.assertIsNone(errors["orthogonality"])
                else:
                    self.assertLessEqual(errors["orthogonality"], 30)
                    self.assertGreater(errors["orthogonality"], 1e-6)

    def test_floors(self):
        rates = self.results["rates"]
        for case in self.cases():
            size = 4 if case["precision"] == "f32" else 8
            passes = {"r": 1, "thin": 3}.get(case["mode"], 2)
            floor = case["floor"]
            self.assertEqual(floor["bytes"], passes * size * case["rows"] * case["cols"])
            by_flops = floor["flops"] / rates[case["precision"]]["gemm_gflops"] * 1e-6
            by_bytes = floor["bytes"] / rates[case["precision"]]["copy_gbytes"] * 1e-6
            self.assertAlmostEqual(floor["ms"], max(by_flops, by_bytes), delta=1e-9)

    def test_peer_ratios(self):
        available = any(program["available"] for program in self.results["peer_programs"])
        if not (Path(QRANE).parent / "qrane-peers-lapack").exists():
            self.assertFalse(available)
            self.assertIn("peers: none", self.done.stdout)
            return
        self.assertTrue(available)
        for case in self.cases():
            [peer] = case["peers"]
            self.assertEqual(peer["peer"], "lapack")
            self.assertGreaterEqual(len(peer["samples_ms"]), 5)
            self.assertAlmostEqual(peer["ratio"], peer["median_ms"] / case["median_ms"], delta=1e-6 * peer["ratio"])

    def test_operations(self):
        operations = self.results["operations"]
        self.assertCountEqual([(c["operation"], c["precision"]) for c in operations],
                              [(kind, p) for p in PRECISIONS for kind in ("svd", "gels", "batched")])
        lapack = (Path(QRANE).parent / "qrane-peers-lapack").exists()
        for case in operations:
            with self.subTest(case=(case["operation"], case["precision"])):
                self.assertEqual(case["outcome"], "measured", case["reason"])
                self.assertGreaterEqual(len(case["samples_ms"]), 5)
                self.assertEqual(case["median_ms"], median(case["samples_ms"]))
                self.assertGreater(case["floor"]["ms"], 0)
                names = {"gels": {"optimality"}}.get(case["operation"], {"orthogonality", "residual"})
                self.assertEqual(set(case["errors"]), names | {"limit"})
                for name in names:
                    self.assertLessEqual(case["errors"][name], 30)
                    self.assertGreater(case["errors"][name], 1e-6)
                peers = {"svd": ["lapack-gesdd"], "gels": ["lapack-gels"], "batched": []}[case["operation"]]
                self.assertEqual([peer["peer"] for peer in case["peers"]], peers if lapack else [])
                if case["operation"] == "batched":
                    self.assertEqual((case["count"], case["mode"]), (50, "thin"))
                    self.assertEqual(case["flops"], 50 * canonical_flops(40, 8, "thin"))
                for peer in case["peers"]:
                    self.assertAlmostEqual(peer["ratio"], peer["median_ms"] / case["median_ms"],
                                           delta=1e-6 * peer["ratio"])

    def test_grid(self):
        found = [(c["rows"], c["cols"], c["precision"]) for c in self.results["grid"]]
        self.assertCountEqual(found, [(300, n, p) for n in (20, 150) for p in PRECISIONS])
        for case in self.results["grid"]:
            with self.subTest(case=(case["cols"], case["precision"])):
                self.assertEqual(case["outcome"], "measured", case["reason"])
                self.assertEqual(set(case["times"]) - {"tsqr"}, {"automatic", "caqr", "cholesky_qr", "blocked"})
                self.assertIn(case["times"]["automatic"]["ran"], case["times"])
                for name, time in case["times"].items():
                    if "reason" in time:  # refused by a documented condition, in words
                        self.assertTrue(time["reason"], name)
                        continue
                    self.assertEqual(len(time["samples_ms"]), 5)
                    self.assertEqual(time["median_ms"], median(time["samples_ms"]))
                    self.assertLessEqual(time["difference_of_r"], 300)

    def test_crossovers_lie_between_sizes_where_one_wins_and_the_other(self):
        def best(case, name):
            names = [n for n in case["times"] if n not in ("automatic", "blocked")] if name == "tall" else [name]
            return min(case["times"][n]["median_ms"] for n in names if "median_ms" in case["times"][n])

        for line in self.results["crossovers"]:
            narrow, wide = sorted((c for c in self.results["grid"] if c["precision"] == line["precision"]),
                                  key=lambda case: case["cols"])
            self.assertTrue(20 <= line["cols"] <= 150)
            self.assertLess(best(narrow, line["narrow"]), best(narrow, line["wide"]))
            self.assertGreaterEqual(best(wide, line["narrow"]), best(wide, line["wide"]))

    def test_background(self):
        found = [(b["precision"], b["method"]) for b in self.results["background"]]
        methods = ("inexact_alm", "caqr pipeline", "blas2 pipeline")
        self.assertCountEqual(found, [(p, m) for p in PRECISIONS for m in methods])
        for case in self.results["background"]:
            with self.subTest(case=(case["precision"], case["method"])):
                self.assertEqual(case["outcome"], "measured")
                self.assertGreaterEqual(len(case["samples_ms"]), 5)
                self.assertAlmostEqual(case["iterations_per_second"], 1e3 / case["median_ms"], delta=1e-3)
                iterations = [point["iteration"] for point in case["convergence"]]
                self.assertEqual(iterations, list(range(1, len(iterations) + 1)))
                self.assertEqual(case["data"], "synthetic, rank 5 and 5% sparse")
                self.assertTrue(case["converged"])
                self.assertLessEqual(case["residual"], 1.01 * case["tolerance"])
                self.assertIn(case["rank"], (5, 6))

    def test_table_has_speed_and_error_in_one_row(self):
        pattern = r"\s*\d+\s+\d+\s+f(32|64)\s+(r|thin)\s"
        rows = [line for line in self.done.stdout.splitlines() if re.match(pattern, line)]
        self.assertEqual(len(rows), len(SHAPES) * len(PRECISIONS) * 4)
        for row in rows:
            self.assertGreaterEqual(len(row.split()), 11, row)

    def test_plot_makes_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_plot(self.file, "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            written = done.stdout.split()
            self.assertEqual(sorted(re.search(r"-(\w+)\.png$", name).group(1) for name in written),
                             ["background", "batched", "floor", "gels", "grid_f32", "grid_f64", "svd"])
            for name in written:
                self.assertEqual(Path(name).read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            # the shapes of the papers' suites, made from the same numbers
            for along, fixed in (("rows", "cols"), ("cols", "rows")):
                line = copy.deepcopy(self.results)
                for case in line["cases"]:
                    case[fixed] = 192
                path = Path(folder) / f"{along}.json"
                path.write_text(json.dumps(line))
                done = run_plot(path, "--out", Path(folder) / along)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("-speed.png", done.stdout)

    def test_report_prints_tables(self):
        done = run(REPORT, self.file)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("| 1,000 x 32 | f32 | thin Q |"), 2)
        self.assertIn("caqr, by name", done.stdout)
        self.assertIn("| 50 of 40 x 8 | f64 | thin Q |", done.stdout)
        self.assertIn("| synthetic, rank 5 and 5% sparse | caqr pipeline |", done.stdout)
        done = run(REPORT, Path(self.folder.name) / "absent.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("absent.json", done.stderr)

    def test_plot_refuses_what_is_no_result(self):
        lacking = copy.deepcopy(self.results)
        del lacking["cases"][0]["floor"]
        wrong = copy.deepcopy(self.results)
        wrong["cases"][0]["median_ms"] = "fast"
        texts = {"{": "no JSON", "[]": "not written by", json.dumps({**self.results, "version": 99}): "version 99",
                 json.dumps(lacking): "'floor' is missing", json.dumps(wrong): "'median_ms' has the wrong type"}
        with tempfile.TemporaryDirectory() as folder:
            for text, words in texts.items():
                path = Path(folder) / "bad.json"
                path.write_text(text)
                done = run_plot(path, "--out", folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
            done = run_plot(Path(folder) / "absent.json")
            self.assertEqual(done.returncode, 2)
            self.assertIn("absent.json", done.stderr)
            self.assertEqual(list(Path(folder).glob("*.png")), [])


class Updates(bench_support.Suite):
    suite = "smoke-updates"

    @property
    def updates(self):
        return self.results["updates"]

    def of_kind(self, kind):
        return [case for case in self.updates if case["kind"] == kind]

    def test_every_case_is_measured(self):
        found = [(c["change"], c["k"], c["mode"], c["precision"]) for c in self.of_kind("time")
                 if c["figure"] != "table 2"]
        changes = [("insert rows", 0), ("delete rows", 10), ("insert columns", 20), ("insert columns", 40),
                   ("delete columns", 20)]
        self.assertCountEqual(found, [(*change, mode, p) for change in changes for mode in ("r", "thin")
                                      for p in PRECISIONS])
        for case in self.updates:
            self.assertEqual(case["outcome"], "measured", case)

    def test_times_and_ratios(self):
        for case in self.of_kind("time"):
            with self.subTest(case=(case["change"], case["k"], case["mode"], case["precision"])):
                first = case["times"][0]
                self.assertEqual(first["method"], "paper" if case["figure"] == "table 2" else "automatic")
                self.assertNotEqual(first["ran"], "automatic")
                self.assertGreaterEqual(len(first["samples_ms"]), 5)
                self.assertEqual(case["median_ms"], median(first["samples_ms"]))
                self.assertAlmostEqual(case["speed_up"], case["refactor"]["median_ms"] / case["median_ms"], delta=1e-9)
                self.assertGreater(case["floor"]["ms"], 0)
                for name in ("residual", "orthogonality"):
                    if first["errors"][name] is not None:
                        self.assertLessEqual(first["errors"][name], 30)
                        self.assertGreater(first["errors"][name], 1e-6)
                for peer in case["peers"]:
                    if "ratio" in peer:
                        self.assertAlmostEqual(peer["ratio"], peer["median_ms"] / case["median_ms"], delta=1e-6)

    def test_scipy_updates_the_same_factors_where_it_is_installed(self):
        asked = [peer for case in self.of_kind("time") if case["mode"] == "thin" for peer in case["peers"]
                 if peer["peer"] == "scipy"]
        if "qrane-peers-scipy, SciPy" in self.done.stdout:
            self.assertEqual(len(asked), 11)
            for peer in asked:
                self.assertNotIn("reason", peer)
        else:
            self.assertEqual(asked, [])
            self.assertIn("qrane-peers-scipy", self.done.stdout)

    def test_paper_protocol(self):
        wanted = {("insert rows", "r"), ("delete columns", "r"), ("insert columns", "thin"), ("delete rows", "thin")}
        found = {(c["change"], c["mode"]) for c in self.of_kind("time") if "paper_protocol" in c}
        self.assertEqual(found, wanted)
        for case in self.of_kind("time"):
            if "paper_protocol" in case:
                self.assertEqual(case["precision"], "f32")
                protocol = case["paper_protocol"]
                self.assertAlmostEqual(protocol["speed_up"],
                                       protocol["full"]["median_ms"] / protocol["update"]["median_ms"],
                                       delta=1e-9)

    def test_stages_of_the_papers_table_2(self):
        [case] = [case for case in self.of_kind("time") if case["figure"] == "table 2"]
        stages = case["times"][0]["stages"]
        self.assertEqual(list(stages), ["projection", "Householder", "transposes", "rotations"])
        self.assertGreater(min(stages.values()), 0)
        self.assertGreater(case["paper_protocol"]["transfer"]["median_ms"], 0)

    def test_windows_slide(self):
        windows = self.of_kind("window")
        self.assertCountEqual([(w["mode"], w["precision"]) for w in windows],
                              [(mode, p) for mode in ("r", "thin") for p in PRECISIONS])
        for window in windows:
            self.assertAlmostEqual(window["steps_per_second"], 1e3 / window["median_ms"], delta=1e-3)

    def test_batches_in_one_call(self):
        batches = self.of_kind("batch")
        changes = ("insert rows", "delete rows", "delete columns")
        self.assertCountEqual([(b["change"], b["mode"], b["precision"]) for b in batches],
                              [(change, mode, p) for change in changes for mode in ("r", "thin") for p in PRECISIONS])
        for batch in batches:
            self.assertEqual(batch["count"], 20)
            self.assertAlmostEqual(batch["speed_up"], batch["refactor"]["median_ms"] / batch["median_ms"], delta=1e-9)
            self.assertLessEqual(batch["times"][0]["errors"]["residual"], 30)

    def test_accuracy_is_single_precisions(self):
        self.assertEqual({case["change"] for case in self.of_kind("accuracy")},
                         {"insert rows", "delete rows", "insert columns", "delete columns"})
        for case in self.of_kind("accuracy"):
            measures = case["times"][0]["accuracy"]
            self.assertLess(measures["orthogonality"], 1e-5)
            self.assertLess(measures["backward"], 1e-5)
            self.assertLess(measures["forward"], 1e-4)
            self.assertGreater(min(measures["orthogonality"], measures["backward"]), 1e-9)

    def test_plot_and_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_plot(self.file, "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(re.search(r"-(\w+)\.png$", name).group(1) for name in done.stdout.split()),
                             ["figure_11", "figure_14", "figure_6", "figure_9"])
            done = run(REPORT, self.file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = done.stdout
            for words in ("**Figure 6**", "| rotations |", "**Sliding window**", "**Batches**",
                          "**Tables 3 to 5**", "| insert columns | 300 x 40 | 20 | 5 |"):
                self.assertIn(words, text)


class Command(unittest.TestCase):
    def test_list_names_the_suites(self):
        done = run(QRANE, "bench", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for suite in ("paper-table1", "paper-width", "paper-speedup", "paper-blas2", "paper-tuning", "paper-rpca",
                      "paper-updates", "paper-sparse", "sparse-uses", "skinny", "square", "ill-conditioned", "svd",
                      "gels", "batched", "background",
                      "background-synthetic", "paper-windows"):
            self.assertIn(suite, done.stdout)
        self.assertNotIn("smoke", done.stdout)

    def test_unknown_suite_is_bad_input(self):
        done = run(QRANE, "bench", "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown suite 'nothing'", done.stderr)
        self.assertIn("paper-table1", done.stderr)

    def test_a_suite_without_its_data_is_left_out_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "background.json"  # no ffmpeg on this PATH: the video cannot be read
            done = run(QRANE, "bench", "background", "--backend", "cpu", "--precision", "f32", "--json", file,
                       env={**os.environ, "PATH": folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            [case] = json.loads(file.read_text())["background"]
            self.assertEqual((case["outcome"], "median_ms" in case), ("left out", False))
            self.assertIn("ffmpeg", case["reason"])
            self.assertIn("left out", done.stdout)

    def test_quiet_prints_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "quiet.json"
            done = run(QRANE, "bench", "smoke", "--backend", "cpu", "--precision", "f32", "--quiet", "--json", file)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            results = json.loads(file.read_text())
            self.assertEqual({case["precision"] for case in results["cases"]}, {"f32"})
            self.assertEqual(os.listdir(folder), ["quiet.json"])

    def test_ill_conditioned_matrices_are_what_they_say(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "ill.json"
            done = run(QRANE, "bench", "smoke-ill-conditioned", "--backend", "cpu", "--quiet", "--json", file)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cases = json.loads(file.read_text())["cases"]
            self.assertEqual([(c["precision"], c["mode"]) for c in cases],
                             [(p, mode) for p in PRECISIONS for mode in ("r", "thin")])
            for case in cases:
                wanted = {"f32": 2.0**24, "f64": 2.0**53}[case["precision"]]
                self.assertEqual(case["condition"], wanted)
                self.assertGreater(case["condition_of_r"], wanted / 10)
                self.assertLess(case["condition_of_r"], wanted * 10)
                self.assertLessEqual(case["errors"]["residual"], 30)

    def test_kernels_for_one_backend_say_so_on_another(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tuning.json"
            done = run(QRANE, "bench", "paper-tuning", "--backend", "cpu", "--quiet", "--json", file)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            [case] = json.loads(file.read_text())["kernels"]
            self.assertEqual(case["outcome"], "left out")
            self.assertIn("cuda", case["reason"])

    def test_plot_draws_what_only_a_gpu_measures(self):
        head = {"format": "qrane-bench", "version": 1, "suite": "paper-tuning", "date": "2026-11-21T10:00:00Z",
                "commit": "none", "device": {"name": "made up", "backend": "cuda"}, "cases": [], "background": []}
        kernels = [{"layout": layout, "rows": 4 * n if layout == "tree" else m, "cols": n, "outcome": "measured",
                    "floor": {"ms": 0.1}, "median_ms": 1.0, "gflops": float(m * n)}
                   for layout in ("shared-serial", "registers-transposed", "tree") for m in (32, 64) for n in (8, 16)]
        shares = [{"rows": m, "cols": n, "share": 0.3} for m in (32, 64) for n in (8, 16)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tuning.json"
            path.write_text(json.dumps({**head, "kernels": kernels, "tree_shares": shares}))
            done = run_plot(path, "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("-kernels.png", done.stdout)

    def test_long_cases_are_left_out_with_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "short.json"
            done = run(QRANE, "bench", "paper-width", "--backend", "cpu", "--precision", "f32", "--max-seconds", "1e-9",
                       "--json", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("left out", done.stdout)
            for case in json.loads(file.read_text())["cases"]:
                self.assertEqual(case["outcome"], "left out")
                self.assertIn("--max-seconds", case["reason"])


if __name__ == "__main__":
    bench_support.main()
