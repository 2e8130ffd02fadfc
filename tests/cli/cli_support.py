# SPDX-License-Identifier: Apache-2.0
"""Runs the `qrane` program in an empty directory and reads what it left there."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

QRANE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit("usage: TEST.py PATH-OF-QRANE [SUITE ...]")


# The program was built with sanitizers, which need all of the address space and must be loaded first.
SANITIZED = bool(os.environ.get("QRANE_TEST_SANITIZED"))


class CliCase(unittest.TestCase):
    """Each test works in an empty directory of its own."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="qrane-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.random = np.random.default_rng(5)

    def qrane(self, *args, backend="cpu", timeout=120, env=None):
        command = [QRANE, *[str(a) for a in args]]
        if backend:
            command += ["--backend", backend]
        return subprocess.run(command, cwd=self.dir, capture_output=True, text=True, timeout=timeout,
                              env=env)

    def good(self, *args, **named):
        done = self.qrane(*args, **named)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stderr}{done.stdout}")
        return done

    def bad(self, *args, words, status=2, **named):
        """Fails with the status, one line on standard error that holds all the words, nothing on standard output."""
        done = self.qrane(*args, **named)
        self.assertEqual(done.returncode, status, f"{args}: {done.stderr}{done.stdout}")
        self.assertTrue(done.stderr.startswith("qrane: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(list(self.dir.glob("*.partial-*")), "a partial file was left behind")

    def save(self, name, array):
        np.save(self.dir / name, array)
        return name

    def load(self, name):
        return np.load(self.dir / name)

    def json(self, name):
        return json.loads((self.dir / name).read_text())

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return name

    def limits(self, precision):
        return {"f32": (np.float32, 2e-5), "f64": (np.float64, 1e-13)}[precision]


def main():
    result = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == len(result.skipped) else 0)
