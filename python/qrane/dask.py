# SPDX-License-Identifier: Apache-2.0
"""TSQR, SVD, least squares and robust PCA of tall dask arrays, of NumPy or CuPy blocks.

The functions have the signatures of `dask.array.linalg` where that has them. Arrays have one column of blocks; blocks
of rows may have any sizes. Results do not depend on the sizes of blocks, the number of workers or their threads, bit
for bit.

>>> import dask.array as da, numpy as np, qrane.dask
>>> A = da.random.default_rng(0).standard_normal((10000, 8), chunks=(3000, 8))
>>> R = qrane.dask.tsqr(A, mode="r").compute()
>>> bool(np.allclose(R.T @ R, (A.T @ A).compute()))
True
"""

from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

import qrane

from . import _tree
from ._robust_pca import RobustPCAResult

__all__ = ["lstsq", "robust_pca", "svd", "tsqr"]


class LstsqResult(NamedTuple):
    """x, sums of squared residuals, rank and singular values, as of `dask.array.linalg.lstsq`."""

    x: Any
    residuals: Any
    rank: Any
    s: Any


def tsqr(data, compute_svd=False, *, mode="reduced", check_finite=None):
    """QR factorization of a tall dask array, or its SVD.

    Parameters
    ----------
    data : dask array, (m, n)
        With one column of blocks.
    compute_svd : bool
        Return U, S and Vh instead.
    mode : {'reduced', 'r'}
        'r' returns R alone, reads the array once and keeps nothing of it.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default blocks in host memory are checked.

    Returns
    -------
    (Q, R), R, or (U, S, Vh) : dask arrays
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f"mode: must be 'reduced' or 'r', got {mode!r}")
    if compute_svd:
        return svd(data, coerce_signs=False)
    data = _aligned("data", data)
    if mode == "r":
        return _array(_triangle(data, check_finite), _k_by_n(data), data)
    q, r = _factors(data, check_finite)
    return q(_identity(r)), _array(r, _k_by_n(data), data)


def svd(a, coerce_signs=True):
    """Thin SVD of a tall dask array.

    Parameters
    ----------
    a : dask array, (m, n)
        With one column of blocks.
    coerce_signs : bool
        Signs of the singular vectors by the rule of `dask.array.linalg.svd`: sums of the rows of Vh are not negative.

    Returns
    -------
    u, s, vh : dask arrays
    """
    a = _aligned("a", a)
    q, r = _factors(a, None)
    small = dask.delayed(_small_svd)(r, coerce_signs)
    m, n = a.shape
    k = min(m, n)
    return q(small[0]), _array(small[1], (k,), a), _array(small[2], (k, n), a)


def lstsq(a, b):
    """Least-squares solution of a x = b for a tall dask array, from R of [a, b] alone.

    Parameters
    ----------
    a : dask array, (m, n)
    b : dask array, (m,) or (m, k)

    Returns
    -------
    LstsqResult
        x, residuals, rank and singular values, as `dask.array.linalg.lstsq` returns them.

    Examples
    --------
    >>> import dask.array as da, numpy as np, qrane.dask
    >>> t = da.linspace(0, 1, 5000, chunks=1000)
    >>> A = da.stack([da.ones(5000, chunks=1000), t], axis=1).rechunk({1: -1})
    >>> x, *_ = qrane.dask.lstsq(A, 2 - 3 * t)
    >>> x.compute().round(6).tolist()
    [2.0, -3.0]
    """
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"b: of shape {b.shape} does not fit a of shape {a.shape}")
    _check("a", a)
    _check("b", b[:, None] if b.ndim == 1 else b)
    columns = b[:, None] if b.ndim == 1 else b
    both = da.concatenate([a, columns.rechunk({0: a.chunks[0], 1: -1})], axis=1).rechunk({1: -1})
    both = _aligned("a", both)
    n, k = a.shape[1], columns.shape[1]
    parts = dask.delayed(_small_lstsq, nout=4)(_triangle(both, None), n, b.ndim == 1, a.shape[0])
    kind = both.dtype
    x = da.from_delayed(parts[0], (n,) if b.ndim == 1 else (n, k), kind, meta=_meta(both, b.ndim))
    residuals = da.from_delayed(parts[1], (np.nan,), kind)
    return LstsqResult(x, residuals, da.from_delayed(parts[2], (), int), da.from_delayed(parts[3], (n,), kind))


def robust_pca(a, *, tol=1e-4, max_iter=1000, lambda_multiplier=1.0, rho=1.5):
    """Splits a tall dask array into one of low rank and a sparse one: a = L + S.

    Each iteration reads the array once for an R, whose small SVD thresholds the singular values, and once to apply
    that (Lin, Chen, Ma, 2010, inexact augmented Lagrange multipliers). Computed at once; L and S stay with the workers.

    Parameters
    ----------
    a : dask array, (m, n), m >= n
        With one column of blocks.
    tol : float
        Of ``norm(a - L - S) / norm(a)``.
    max_iter : int
    lambda_multiplier : float
        Weight of the sparse part: lambda is this over sqrt(m).
    rho : float
        Growth of the penalty.

    Returns
    -------
    RobustPCAResult
        L and S are dask arrays.
    """
    a = _aligned("a", a).persist()
    weight = lambda_multiplier / np.sqrt(max(a.shape))
    norm = float(np.linalg.norm(_triangle(a, None).compute()))
    if norm == 0:
        return RobustPCAResult(a, a, 0, 0, 0.0, True)
    largest = float(qrane.svd(_triangle(a, False).compute(), compute_uv=False)[0])
    mu = 1.25 / largest
    y = a / max(largest, float(abs(a).max().compute()) / weight)
    sparse = da.zeros_like(a)
    for iteration in range(1, max_iter + 1):
        x = (a - sparse + y / mu).persist()
        projector, rank = _thresholding(_triangle(x, False).compute(), 1 / mu)
        low = x.map_blocks(np.matmul, projector, dtype=a.dtype)
        rest = a - low + y / mu
        sparse = da.sign(rest) * da.maximum(abs(rest) - weight / mu, 0)
        gap = a - low - sparse
        low, sparse, y, square = dask.persist(low, sparse, y + mu * gap, (gap**2).sum())
        residual = float(np.sqrt(square.compute())) / norm
        mu *= rho
        if residual <= tol:
            break
    return RobustPCAResult(low, sparse, rank, iteration, residual, residual <= tol)


def _thresholding(r, threshold):
    """V diag(max(s - t, 0) / s) Vᵀ of R = U diag(s) Vᵀ, which thresholds the singular values of Q R, and the rank."""
    _, s, vh = qrane.svd(r, full_matrices=False)
    keep = s > threshold
    return (vh[keep].T * ((s[keep] - threshold) / s[keep])) @ vh[keep], int(keep.sum())


def _check(name, a):
    if not isinstance(a, da.Array):
        raise TypeError(f"{name}: must be a dask array, got {type(a).__name__}")
    if a.ndim != 2:
        raise ValueError(f"{name}: must have two axes, got {a.ndim}")
    if any(np.isnan(size) for sizes in a.chunks for size in sizes):
        raise ValueError(f"{name}: has chunks of unknown sizes; call {name}.compute_chunk_sizes() first")
    if len(a.chunks[1]) > 1:
        raise ValueError(f"{name}: must have one column of blocks, got chunks {a.chunks[1]}; "
                         f"call {name}.rechunk({{1: -1}}) first")


def _aligned(name, a):
    """The array in blocks that are whole subtrees of about the present sizes."""
    _check(name, a)
    if a.dtype.kind in "biu":
        a = a.astype(np.float64)
    leaf = _tree.leaf_rows(a.shape[1])
    count = max(1, max(a.chunks[0], default=1) // leaf)
    rows = leaf << (count.bit_length() - 1)
    return a.rechunk({0: rows})


def _threads():
    """Threads for one task: the cores of a machine over the tasks that run on it at a time."""
    import os
    cores = len(os.sched_getaffinity(0))
    try:
        from distributed import default_client
        workers = default_client().scheduler_info(n_workers=-1)["workers"].values()
    except (ImportError, ValueError):
        return 1  # Dask's own threads are as many as there are cores
    per_host = {}
    for worker in workers:
        per_host[worker["host"]] = per_host.get(worker["host"], 0) + worker["nthreads"]
    return max(1, cores // max(per_host.values(), default=1))


def _on(threads, function, *args):
    with qrane.use(threads=threads):
        return function(*args)


def _blocks(a):
    return a.to_delayed()[:, 0]


def _k_by_n(a):
    return (min(a.shape), a.shape[1])


def _array(value, shape, like):
    return da.from_delayed(value, shape, like.dtype, meta=_meta(like, len(shape)))


def _meta(like, axes):
    """An empty array of the library of like's blocks."""
    return like._meta.reshape((0,) * axes)


def _triangle(a, check_finite):
    """R, delayed."""
    run, threads = dask.delayed(_on), _threads()
    below = [run(threads, _tree.triangle, block, check_finite) for block in _blocks(a)]
    return _tree.pairs(below, lambda *two: run(threads, _tree.merge, *two))[-1][0]


def _factors(a, check_finite):
    """(w -> Q w, R), delayed."""
    run, threads = dask.delayed(_on), _threads()
    below = [run(threads, _tree.Subtree, block, check_finite) for block in _blocks(a)]
    levels = _tree.pairs(below, lambda *two: run(threads, _tree.Node, *two))

    def q(w):
        shares = _tree.descend(levels, w, lambda node, i, w: dask.delayed(_tree.Node.share)(node, i, w))
        k = min(a.shape)
        parts = [_array(dask.delayed(_tree.Subtree.form)(tree, share), (rows, k), a)
                 for tree, share, rows in zip(below, shares, a.chunks[0])]
        return da.concatenate(parts)

    return q, levels[-1][0].r


def _identity(r):
    return dask.delayed(lambda r: np.eye(r.shape[0], dtype=r.dtype, like=r))(r)


def _small_svd(r, coerce_signs):
    u, s, vh = qrane.svd(r, full_matrices=False)
    if coerce_signs:
        signs = np.where(vh.sum(axis=1) >= 0, 1, -1).astype(r.dtype)
        u, vh = u * signs, vh * signs[:, None]
    return u, s, vh


def _small_lstsq(r, n, vector, m):
    """From R of [A, B] = Q [[R, D], [0, E]]: x = R⁻¹ D, and the norms of E's columns."""
    top, rest = r[:n, :n], r[n:, n:]
    x, _, rank, _ = qrane.lstsq(top, r[:n, n:], check_finite=False)
    residuals = (rest**2).sum(axis=0) if rank == n and m > n else rest[:0, 0]
    return x[:, 0] if vector else x, residuals, rank, qrane.svd(top, compute_uv=False)
