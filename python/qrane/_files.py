# SPDX-License-Identifier: Apache-2.0
"""QR of an array on disk that is larger than memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _tree


def tsqr_file(path, *, block_bytes=2**27, check_finite=True):
    """R of the tall matrix in a .npy file, read once, a block of rows at a time.

    While one block is factored the next one is read. Memory is bounded by some blocks, whatever the number of rows.
    The bits are those of `qrane.dask.tsqr` of the same numbers.

    Parameters
    ----------
    path : str or path
        A two-dimensional array of float32 or float64 in C order, as `numpy.save` writes it.
    block_bytes : int
        Size of a block, about; it does not change the result.
    check_finite : bool
        Refuse NaN and Inf with ValueError.

    Returns
    -------
    ndarray, (min(m, n), n)

    Examples
    --------
    >>> import numpy as np, os, tempfile, qrane
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> A = np.random.default_rng(0).standard_normal((10000, 5))
    >>> np.save(path, A)
    >>> R = qrane.tsqr_file(path)
    >>> bool(np.allclose(R.T @ R, A.T @ A))
    True
    """
    a = np.load(path, mmap_mode="r")
    if a.ndim != 2:
        raise ValueError(f"path: {path} must hold two axes, got {a.ndim}")
    m, n = a.shape
    leaf = _tree.leaf_rows(n)
    count = max(1, int(block_bytes) // max(1, leaf * n * a.itemsize))
    rows = leaf << (count.bit_length() - 1)  # a whole subtree

    def read(start):
        return np.array(a[start:start + rows])

    reduction = _tree.Reduction()
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(read, 0)
        for start in range(0, max(m, 1), rows):
            block = ahead.result()
            if start + rows < m:
                ahead = reader.submit(read, start + rows)
            reduction.add(_tree.triangle(block, check_finite))
    return reduction.result()
