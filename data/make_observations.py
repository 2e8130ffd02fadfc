#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes ash219_b.mtx, the right-hand side that goes with ash219.mtx.

The collection holds the network alone (which two unknowns each of the 219 observations joins). Here the 85 unknowns
are given smooth values in metres, and each observation is the sum of its two unknowns plus an error of standard
deviation 10 mm, rounded to 0.1 mm. Plain integer arithmetic makes the errors, so every machine writes the same file.

    data/make_observations.py data/ash219.mtx > data/ash219_b.mtx
"""
import math
import sys


def errors(seed):
    """Normal to a good likeness: twelve uniforms from a 64-bit linear congruential generator, less six."""
    state = seed
    while True:
        total = 0.0
        for _ in range(12):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            total += (state >> 11) / 2**53
        yield total - 6.0


def main(path):
    with open(path) as file:
        lines = [line.split() for line in file if not line.startswith("%") and line.strip()]
    rows, cols = int(lines[0][0]), int(lines[0][1])
    unknowns = [20 + 8 * math.sin(0.31 * j) + 3 * math.cos(1.7 * j) for j in range(cols)]
    observed = [0.0] * rows
    for row, col in lines[1:]:
        observed[int(row) - 1] += unknowns[int(col) - 1]
    print("%%MatrixMarket matrix array real general")
    print("% observations for ash219.mtx: sums of two unknowns (metres) with errors of 10 mm; made, not measured")
    print(rows, 1)
    for value, error in zip(observed, errors(1974)):
        print(f"{value + 0.010 * error:.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
