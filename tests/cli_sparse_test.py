#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrane analyze` and long sparse factorizations as their users run them.

usage: cli_sparse_test.py PATH-OF-QRANE [Analyze Long ...]
"""
import gzip
import os
import re
import signal
import struct
import subprocess
import xml.etree.ElementTree

import cli_support
from cli_support import CliCase

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
NUG = os.path.join(DATA, "lp_nug08_T.mtx.gz")
CHESS = os.path.join(DATA, "ch6-6-b3.mtx.gz")
SVG = "{http://www.w3.org/2000/svg}"


class Analyze(CliCase):
    def analyzed(self, *args):
        done = self.good("analyze", *args, "--json", "j.json")
        return done.stdout, self.json("j.json")

    def test_counts_hang_together(self):
        said, facts = self.analyzed(NUG)
        self.assertEqual((facts["rows"], facts["cols"], facts["entries"]), (1632, 912, 7296))
        self.assertEqual(facts["flops"], min(trial["flops"] for trial in facts["trials"]))
        self.assertLessEqual(facts["r_entries_exact"], 912 * 913 / 2)
        self.assertLessEqual(facts["structural_rank_bound"], 912)
        self.assertLessEqual(facts["peak_entries"], facts["front_entries"])
        self.assertEqual(sum(width["fronts"] for width in facts["widths"]), facts["fronts"])
        self.assertAlmostEqual(sum(width["flops"] for width in facts["widths"]) / facts["flops"], 1, places=12)
        self.assertAlmostEqual(facts["intensity"] * facts["factor_bytes"] / facts["flops"], 1, places=12)
        for word in ("1632 x 912", "fronts", "levels", "flops", "memory", "seconds"):
            self.assertIn(word, said)
        self.assertEqual(self.good("analyze", NUG, "--quiet").stdout, "")

    def test_every_ordering(self):
        flops = {}
        for name in ("colamd", "amd", "natural", "metis"):
            with self.subTest(ordering=name):
                done = self.qrane("analyze", CHESS, "--ordering", name, "--json", "j.json")
                if name == "metis" and done.returncode == 2:
                    self.assertIn("METIS", done.stderr)
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                facts = self.json("j.json")
                self.assertEqual(facts["ordering"], name)
                self.assertEqual([trial["ordering"] for trial in facts["trials"]], [name])
                flops[name] = facts["flops"]
        self.assertGreater(len(set(flops.values())), 2)
        _, facts = self.analyzed(CHESS, "--ordering", "automatic")
        self.assertEqual(facts["flops"], min(facts["flops"], *flops.values()))

    def test_pictures_show_every_front(self):
        _, facts = self.analyzed(NUG, "--picture", "tree.svg")
        root = xml.etree.ElementTree.parse(self.dir / "tree.svg").getroot()
        discs = root.findall(SVG + "circle")
        self.assertEqual(len(discs), facts["fronts"])
        self.assertEqual(len(root.findall(SVG + "line")), facts["fronts"] - facts["roots"])
        width, height = float(root.get("width")), float(root.get("height"))
        for disc in discs:
            x, y, r = (float(disc.get(key)) for key in ("cx", "cy", "r"))
            self.assertTrue(r <= x <= width - r and r <= y <= height - r, disc.attrib)
        titles = [disc.find(SVG + "title").text for disc in discs]
        rows, cols = facts["largest_front"]
        self.assertTrue(any(f"{rows} x {cols}" in title for title in titles))

        self.analyzed(NUG, "--picture", "tree.png")
        png = (self.dir / "tree.png").read_bytes()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", png[16:24]), (-int(-width // 1), -int(-height // 1)))

    def test_a_memory_limit_makes_stages_and_the_picture_shows_them(self):
        refused = self.qrane("analyze", NUG, "--memory-limit", "1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("front ", refused.stderr)
        least = int(re.search(r"needs (\d+) bytes", refused.stderr).group(1))
        _, free = self.analyzed(NUG, "--picture", "free.svg")
        self.assertEqual(free["stages"], 1)
        said, facts = self.analyzed(NUG, "--memory-limit", str(least), "--picture", "tree.svg")
        self.assertGreater(facts["stages"], 1)
        self.assertIn("stages", said)
        discs = xml.etree.ElementTree.parse(self.dir / "tree.svg").getroot().findall(SVG + "circle")
        stage = lambda disc: int(re.search(r"stage (\d+)", disc.find(SVG + "title").text).group(1))
        self.assertEqual({stage(disc) for disc in discs}, set(range(1, facts["stages"] + 1)))
        colors = {(stage(disc), disc.get("fill")) for disc in discs}
        self.assertEqual(len(colors), facts["stages"])  # one each

        for name, limit in (("free", 0), ("least", least)):
            self.good("qr", NUG, "--sparse", "--processor", "device", "--memory-limit", str(limit), "--r",
                      name + ".mtx",
                      "--json", name + ".json")
        free, staged = self.json("free.json"), self.json("least.json")
        self.assertEqual((self.dir / "free.mtx").read_bytes(), (self.dir / "least.mtx").read_bytes())
        self.assertEqual((free["stages"], staged["stages"]), (1, facts["stages"]))
        self.assertGreater(staged["moved_bytes"], free["moved_bytes"])
        self.assertLessEqual(staged["peak_bytes"], least)

    def test_odd_matrices(self):
        banner = "%%MatrixMarket matrix coordinate real general\n"
        for name, text, fronts, singletons in (
                ("empty", "0 0 0\n", 0, 0), ("no rows", "0 3 0\n", 0, 0), ("no columns", "3 0 0\n", 0, 0),
                ("zero", "4 3 0\n", 0, 0), ("one", "1 1 1\n1 1 2\n", 0, 1),
                ("wide", "1 4 2\n1 2 1\n1 4 1\n", 0, 1),
                ("dense column", "4 1 4\n1 1 1\n2 1 1\n3 1 1\n4 1 1\n", 1, 0),
                ("duplicates", "2 1 3\n1 1 1\n1 1 2\n2 1 1\n", 1, 0)):
            with self.subTest(matrix=name):
                _, facts = self.analyzed(self.write("a.mtx", banner + text), "--picture", "tree.svg")
                self.assertEqual((facts["fronts"], facts["singletons"]), (fronts, singletons))
                self.good("analyze", "a.mtx", "--picture", "tree.png")

    def test_dense_files_are_taken_by_their_nonzeros(self):
        a = self.random.standard_normal((30, 8))
        a[a < 0.5] = 0
        _, facts = self.analyzed(self.save("a.npy", a))
        self.assertEqual(facts["entries"], (a != 0).sum())

    def test_bad_input(self):
        self.bad("analyze", "none.mtx", words=["none.mtx"])
        self.bad("analyze", NUG, "--ordering", "best", words=["best", "colamd"])
        self.bad("analyze", NUG, "--ordering", "given", words=["--ordering given"])
        self.bad("analyze", NUG, "--picture", "tree.jpg", words=["tree.jpg", ".svg"])
        self.bad("analyze", NUG, "--picture", "absent/tree.svg", words=["absent/tree.svg"])
        self.bad("analyze", NUG, "--picture", "x.svg", "--json", "x.svg", words=["x.svg"])
        banner = "%%MatrixMarket matrix coordinate {} general\n"
        complex_file = self.write("c.mtx", banner.format("complex") + "1 1 1\n1 1 1 0\n")
        self.bad("analyze", complex_file, words=["c.mtx:1", "complex", "not yet"])
        beyond = self.write("b.mtx", banner.format("real") + "2 2 1\n3 1 1\n")
        self.bad("analyze", beyond, words=["b.mtx:3", "row index 3"])
        self.bad("analyze", self.write("n.mtx", banner.format("real") + "2 2 1\n2 1 nan\n"), words=["row 1, column 0"])
        with open(NUG, "rb") as whole:
            (self.dir / "cut.mtx.gz").write_bytes(whole.read()[:9000])
        self.bad("analyze", "cut.mtx.gz", words=["cut.mtx.gz", "breaks off"])
        (self.dir / "short.mtx.gz").write_bytes(gzip.compress((banner.format("real") + "2 2 2\n1 1 1\n").encode()))
        self.bad("analyze", "short.mtx.gz", words=["1 of 2 entries"])


class Long(CliCase):
    def test_a_bar_on_the_terminal_and_ctrl_c(self):
        rows, cols = 18000, 9000  # takes many times as long as it runs before the signal
        columns = self.random.integers(0, cols, (rows, 4))
        with open(self.dir / "a.mtx", "w") as file:
            file.write("%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n" % (rows, cols, 4 * rows))
            for i in range(rows):
                file.write("".join("%d %d %d\n" % (i + 1, j + 1, 1 + (i + j) % 7) for j in columns[i]))

        def on_one_core():
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a script in the background has its children ignore it

        terminal, other_end = os.openpty()
        run = subprocess.Popen([cli_support.QRANE, "qr", "a.mtx", "--sparse", "--r", "r.mtx", "--backend", "cpu"],
                               cwd=self.dir, stdout=subprocess.DEVNULL, stderr=other_end, preexec_fn=on_one_core)
        self.addCleanup(run.kill)
        os.close(other_end)
        said = b""
        while b"left" not in said:
            said += os.read(terminal, 4096)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(120), 130)
        try:
            while part := os.read(terminal, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        self.assertRegex(said.decode(), r"\[#* *\] +\d+%  \S+ of \S+ flops, \S+ GFLOP/s, \d+ s left")
        self.assertRegex(said.decode(), r"qrane: .*stopped")
        self.assertEqual([path.name for path in self.dir.iterdir()], ["a.mtx"])


if __name__ == "__main__":
    cli_support.main()
