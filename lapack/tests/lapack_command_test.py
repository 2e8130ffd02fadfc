#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrane lapack`: programs run with the drop-in, and what it reports of them.

    lapack_command_test.py libqrane_lapack.so qrane
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_programs.py")
QRANE = sys.argv[2]
LEAST_SQUARES = "import numpy as n; a = n.ones((%d, 4)) + n.eye(%d, 4); n.linalg.lstsq(a, a[:, 0], rcond=None)"


def lapack(*arguments, **environment):
    return subprocess.run([QRANE, "lapack", *arguments], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, OPENBLAS_NUM_THREADS="1", **environment))


def calls(*arguments, **environment):
    """{(routine, where): calls}"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls.json")
        done = lapack("--json", path, *arguments, **environment)
        assert done.returncode == 0, done.stderr
        with open(path) as file:
            return {(c["routine"], c["where"]): c["calls"] for c in json.load(file)["calls"]}


class Command(unittest.TestCase):
    def test_numpy_and_scipy_give_right_results_with_every_call_by_qrane(self):
        made = calls("--backend", "cpu", "--min", "0", "--", sys.executable, PROGRAMS)
        for routine in "geqrf orgqr ormqr gelsd gelss gelsy geqp3".split():
            for letter in "sd":
                # numpy.linalg works in double; SciPy's qr_multiply calls ormqr
                self.assertGreater(made.get((letter + routine, "cpu"), 0), 0, letter + routine)

    def test_by_default_small_calls_go_to_lapack_and_tall_ones_to_qrane(self):
        for rows, where in (50, "lapack"), (200000, "cpu"):
            made = calls("--backend", "cpu", "--", sys.executable, "-c", LEAST_SQUARES % (rows, rows))
            self.assertGreater(made.get(("dgelsd", where), 0), 0, (rows, made))
            self.assertEqual(("dgelsd", "cpu") in made, where == "cpu", (rows, made))

    def test_words_are_on_standard_error_and_can_be_silenced(self):
        program = [sys.executable, "-c", LEAST_SQUARES % (50, 50) + "; print('mine')"]
        done = lapack("--", *program)
        self.assertEqual(done.stdout, "mine\n")
        self.assertRegex(done.stderr, r"dgelsd +lapack +[1-9]")
        self.assertEqual(lapack("--quiet", "--", *program).stderr, "")
        self.assertIn("no call", lapack("--", "true").stderr)

    def test_exit_status_is_the_programs(self):
        self.assertEqual(lapack("--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(lapack("--", "sh", "-c", "kill -9 $$").returncode, 128 + signal.SIGKILL)

    def test_processes_that_the_program_starts_are_counted(self):
        program = f"'{sys.executable}' -c '{LEAST_SQUARES % (50, 50)}'"
        once, twice = calls("--", "sh", "-c", program), calls("--", "sh", "-c", f"{program}; {program}")
        self.assertEqual(twice, {key: 2 * count for key, count in once.items()})
        self.assertIn(("dgelsd", "lapack"), once)

    def test_a_forked_child_makes_a_context_of_its_own(self):
        program = ("import numpy as n, os\na = n.random.rand(60, 5)\nx = n.linalg.lstsq(a, a[:, 0], rcond=None)[0]\n"
                   "if os.fork() == 0:\n"
                   "    y = n.linalg.lstsq(a, a[:, 0], rcond=None)[0]\n    os._exit(0 if n.allclose(x, y) else 1)\n"
                   "assert os.wait()[1] == 0")
        self.assertEqual(lapack("--min", "0", "--backend", "cpu", "--", sys.executable, "-c", program).returncode, 0)

    def test_bad_input_is_refused(self):
        for arguments, words in ((["--", "no-such-program"], "no-such-program"), ([], "COMMAND"),
                                 (["--min", "-1", "--", "true"], "--min"),
                                 (["--backend", "gpu", "--", "true"], "gpu"),
                                 (["--precision", "f32", "--", "true"], "--precision")):
            done = lapack(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertIn(words, done.stderr)

    def test_settings_that_cannot_be_read_leave_all_calls_to_lapack(self):
        library = os.path.abspath(sys.argv[1])
        for name, value in (("QRANE_LAPACK_MIN", "many"), ("QRANE_LAPACK_DEVICE", "cpu:x"),
                            ("QRANE_LAPACK_DEVICE", "gpu")):
            done = subprocess.run([sys.executable, "-c", LEAST_SQUARES % (50, 50)], capture_output=True, text=True,
                                  env=dict(os.environ, LD_PRELOAD=library, **{name: value}))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(value, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
