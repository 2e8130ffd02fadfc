#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/report --write` and `--verify` on a small tree of pages and results: report_test.py REPORT."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPORT = sys.argv.pop(1)


def case(rows, ms, **more):
    return {"rows": rows, "cols": 192, "precision": "f32", "mode": "r", "outcome": "measured", "reason": "",
            "flops": 1e9, "floor": {"ms": 0.1}, "algorithm": "cholesky_qr", "median_ms": ms, "gflops": 1.0,
            "tflops": 1e-3,
            "peers": [{"peer": "cusolver", "median_ms": 2 * ms, "ratio": 2.0}], "errors": {"residual": 0.1}, **more}


def background(data):
    return {"rows": 110_592, "cols": 100, "precision": "f32", "method": "inexact_alm", "data": data,
            "outcome": "measured",
            "reason": "", "floor": {"ms": 0.1}, "median_ms": 0.5, "iterations_per_second": 2000, "convergence": [{}],
            "tolerance": 1e-4, "converged": True, "rank": 5, "peers": []}


def results(suite, **kinds):
    return {"format": "qrane-bench", "version": 1, "suite": suite, "date": "2026-01-02T03:04:05Z", "commit": "abc",
            "device": {"name": "a device", "backend": "cpu"}, "cases": [], "background": [], **kinds}


class Report(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.root = Path(self.holder.name)
        self.folder = self.root / "benchmarks" / "results"
        self.folder.mkdir(parents=True)
        (self.root / "docs").mkdir()
        self.put("box-tall", results("tall", cases=[case(1000, 1.25), case(2000, 2.5), case(2000, 9, asked="caqr")]))
        self.put("box-video", results("background", background=[background("synthetic, rank 5 and 5% sparse")]))

    def tearDown(self):
        self.holder.cleanup()

    def put(self, name, content):
        (self.folder / f"{name}.json").write_text(json.dumps(content))

    def page(self, text):
        (self.root / "README.md").write_text(text + "\n")

    def text(self):
        return (self.root / "README.md").read_text()

    def report(self, how):
        return subprocess.run([sys.executable, REPORT, how, "--root", self.root],
                              capture_output=True, text=True, timeout=60)

    def faults(self, text):
        """What --verify finds in a page whose figures are filled in."""
        self.page(text)
        self.report("--write")
        done = self.report("--verify")
        self.assertEqual(done.returncode, 1 if done.stderr else 0)
        return done.stderr

    def test_figures_tables_and_pages_are_written(self):
        self.page("R in <!--= box-tall 1000x192 r : ms, x cusolver --><!--/--> here, CAQR in\n"
                  "<!--= box-tall 2000x192 asked=caqr : ms -->1 ms<!--/-->.\n\n"
                  "<!-- figures\nrows | time\n2000 | box-tall 2000x192 f32 : ms\n--><!-- end -->")
        self.assertEqual(self.report("--write").stderr, "")
        self.assertIn("-->1.25 ms, 2x<!--/--> here", self.text())
        self.assertIn("-->9 ms<!--/-->", self.text())
        self.assertIn("| rows | time |\n| --- | --- |\n| 2000 | 2.5 ms |\n<!-- end -->", self.text())
        self.assertIn("| 1,000 x 192 | f32 | R only |", (self.folder / "box-tall.md").read_text())
        self.assertEqual(self.report("--verify").stderr, "")

    def test_a_changed_figure_or_result_is_found(self):
        self.page("In <!--= box-tall 1000x192 : ms --><!--/-->.")
        self.report("--write")
        self.page(self.text().replace("1.25", "1.15").rstrip())
        self.assertIn("README.md:1: is not what the results say", self.report("--verify").stderr)
        self.report("--write")
        self.put("box-tall", results("tall", cases=[case(1000, 1.5)]))
        done = self.report("--verify")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md:1:", done.stderr)
        self.assertIn("box-tall.md", done.stderr)

    def test_plain_numbers_are_found(self):
        for text in ("It takes 3 ms.", "26.3x faster.", "at 50.8 TFLOP/s",
                     "2,018 iterations/s", "12 times as fast", "40% of it"):
            self.assertIn("is in no result", self.faults(text), text)
        for text in ("A 3 x 3 matrix.", "`sleep 3 s`",
                     "<!--from the paper, table 2-->3 ms<!--/-->", "by 32 columns", "C++20"):
            self.assertEqual(self.faults(text), "", text)

    def test_claims_are_held_against_all_rows(self):
        self.assertEqual(self.faults("<!--? box-tall : min x cusolver >= 1 -->None is slower."), "")
        self.assertIn("this is not so", self.faults("<!--? box-tall : min x cusolver >= 3 -->None is slower."))
        self.assertIn("is a claim", self.faults("None of them is slower."))
        self.assertEqual(self.faults("<!--? box-tall : result device.name == a_device -->On a device."), "")
        self.assertIn("2 of 2", self.faults("<!--? box-tall : count ms > 1 == 1 -->One takes long."))

    def test_data_are_called_what_they_are(self):
        figure = "<!--= box-video : rate --><!--/-->"
        self.assertIn("must say 'made-up'", self.faults(f"On the video {figure}."))
        self.assertEqual(self.faults(f"On a made-up matrix {figure}."), "")
        self.assertIn("must not say 'video'", self.faults(f"On a made-up matrix of the video's size {figure}."))
        self.assertIn("not == vtest", self.faults("<!--? box-video : all data == vtest -->On the video and made-up."))

    def test_wrong_queries_are_named(self):
        for query, words in (("absent : ms", "no result absent.json"),
                             ("box-tall 7x7 : ms", "no case of box-tall is '7x7'"),
                             ("box-tall : ms", "fits 2 cases"), ("box-tall 1000x192 : x nobody", "no such value")):
            self.assertIn(words, self.faults(f"<!--= {query} --><!--/-->"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
