# SPDX-License-Identifier: Apache-2.0
"""Runs a part of the tests; ctest runs the parts side by side.

    python run.py arrays|objects|derivatives|dask|others [pytest options]
"""
import pathlib
import sys

import pytest

PARTS = {
    "arrays": ("test_qr.py", "test_solving.py", "test_arguments.py"),
    "objects": ("test_updating.py", "test_sparse.py", "test_process.py"),
    "derivatives": ("test_torch.py", "test_jax.py"),
    "dask": ("test_dask.py",),
}


def main():
    here = pathlib.Path(__file__).resolve().parent
    others = sorted({p.name for p in here.glob("test_*.py")} - {name for part in PARTS.values() for name in part})
    names = PARTS.get(sys.argv[1], others)
    return pytest.main(["-q", "-rs", "-p", "no:cacheprovider", *(str(here / name) for name in names), *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
