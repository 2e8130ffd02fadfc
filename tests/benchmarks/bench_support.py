# SPDX-License-Identifier: Apache-2.0
"""Runs a suite of `qrane bench` once, as a user does, and holds what it printed and wrote against the test's ideas."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

if len(sys.argv) < 3:
    sys.exit("usage: TEST.py QRANE PLOT [what the test says] [unittest arguments]")
QRANE, PLOT = sys.argv[1:3]
REPORT = pathlib.Path(PLOT).parent / "report"


def run(*arguments, **keywords):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=240, **keywords)


def run_plot(*arguments):
    done = run(PLOT, *arguments)
    if "matplotlib is not installed" in done.stderr:
        raise unittest.SkipTest(done.stderr.strip())
    return done


class Suite(unittest.TestCase):
    """One run of `suite` on the CPU backend, looked at from all sides; `results` is its JSON."""

    suite = ""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.folder.name) / "results.json"
        cls.done = run(QRANE, "bench", cls.suite, "--backend", "cpu", *cls.options, "--json", cls.file)
        cls.results = json.loads(cls.file.read_text()) if cls.file.exists() else {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def has_peer(self, name):
        return name in self.done.stdout


def main(own_arguments=0):
    """Runs the tests of the program, which has read so many arguments after PLOT itself."""
    unittest.main(argv=sys.argv[:1] + sys.argv[3 + own_arguments:], verbosity=2)
