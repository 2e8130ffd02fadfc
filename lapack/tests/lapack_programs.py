#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs LAPACK's own test programs with the drop-in preloaded and every call forced through qrane.

    lapack_programs.py libqrane_lapack.so

The programs are those of Debian's liblapack-test. Each runs with and without the drop-in on the same input: tests of QR
and LQ factorizations, pivoting, least squares, and of the eigenvalue and singular value routines that call them. A line
of the output that tells of a failure and is not in the output of LAPACK alone is a failure here. Exit status 77 where
the programs are not installed. Both precisions with QRANE_TEST_FULL=1, else double alone.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

FAILURE = re.compile(r"fail|illegal value|was called with|did not|\*\*\*|error|RESULT|test\(", re.IGNORECASE)
# Error exits are reported by the words "error exits" whether they passed or not.
PASSED = re.compile(r"passed the (tests of the error exits|threshold)", re.IGNORECASE)
LINEAR = "QR LQ QP TZ LS QT QX XQ TQ TS HH".split()
EIGEN = "svd.in glm.in gqr.in lse.in gsv.in".split()


def run(program, text, library=None, report=None):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    if library:
        environment.update(LD_PRELOAD=library, QRANE_LAPACK_MIN="0", QRANE_LAPACK_DEVICE="cpu",
                           QRANE_LAPACK_REPORT=report)
    done = subprocess.run([program], input=text, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


def failures(output):
    return {line.strip() for line in output.splitlines() if FAILURE.search(line) and not PASSED.search(line)}


def inputs(folder):
    for precision in "sd" if os.environ.get("QRANE_TEST_FULL", "0") != "0" else "d":
        with open(f"{folder}/{precision}test.in") as file:
            lines = file.read().splitlines()
        # The sizes, then one line for each group of tests.
        paths = [line for line in lines[17:] if line[:1] == precision.upper() and line[1:3] in LINEAR]
        yield f"{folder}/xlintst{precision}", "linear", "\n".join(lines[:17] + paths) + "\n"
        for name in EIGEN:
            with open(f"{folder}/{name}") as file:
                yield f"{folder}/xeigtst{precision}", name, file.read()


def calls(report):
    """Calls that qrane took and that went on to LAPACK, and the routines taken."""
    taken, forwarded, routines = 0, 0, set()
    with open(report) as file:
        for line in file:
            routine, where, count, _ = line.split()
            if where == "lapack":
                forwarded += int(count)
            else:
                taken += int(count)
                routines.add(routine)
    return taken, forwarded, routines


def main(library):
    programs = glob.glob("/usr/lib/*/lapack/xlintstd")
    if not programs:
        print("liblapack-test is not installed")
        return 77
    bad = 0
    report = tempfile.mktemp()
    for program, name, text in inputs(os.path.dirname(programs[0])):
        alone = run(program, text)
        ours = run(program, text, library, report)
        new = failures(ours) - failures(alone)
        finished = "End of tests" in ours
        print(f"{os.path.basename(program)} {name}: {len(new)} new failures{'' if finished else '; it did not finish'}")
        for line in sorted(new)[:20]:
            print("   ", line)
        bad += len(new) + (not finished)
    taken, forwarded, routines = calls(report)
    os.unlink(report)
    print(f"{taken} calls by qrane, {forwarded} by LAPACK; by qrane: {' '.join(sorted(routines))}")
    return 1 if bad or not taken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
