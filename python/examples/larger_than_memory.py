# SPDX-License-Identifier: Apache-2.0
"""Singular values of an array on disk, a block of rows at a time. (Give a path to a .npy file of your own.)"""
import os
import sys
import tempfile

import numpy as np

import qrane


def write(path, rows, cols):
    """A tall array of known singular values, written in blocks."""
    rng = np.random.default_rng(0)
    a = np.lib.format.open_memmap(path, "w+", np.float64, (rows, cols))
    for start in range(0, rows, 50_000):
        a[start:start + 50_000] = rng.standard_normal((min(50_000, rows - start), cols)) * np.arange(1, cols + 1)
    a.flush()


if len(sys.argv) > 1:
    R = qrane.tsqr_file(sys.argv[1])
    print("singular values:", qrane.svd(R, compute_uv=False))
else:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.npy")
        write(path, 400_000, 16)
        R = qrane.tsqr_file(path, block_bytes=2**22)  # 4 MB of 51 MB at a time
        s = qrane.svd(R, compute_uv=False)
        print("singular values over sqrt(m):", (s / np.sqrt(400_000)).round(2))
        assert np.allclose(s / np.sqrt(400_000), np.arange(16, 0, -1), rtol=0.02)
