# SPDX-License-Identifier: Apache-2.0
"""Robust principal component analysis."""

from typing import Any, NamedTuple

from . import _core
from ._arrays import checked, prepare


class RobustPCAResult(NamedTuple):
    """A = low_rank + sparse, and how it was reached."""

    low_rank: Any
    sparse: Any
    rank: int
    iterations: int
    residual: float
    converged: bool


def robust_pca(a, *, tol=1e-4, max_iter=1000, lambda_multiplier=1.0, method="inexact_alm", callback=None,
               check_finite=None):
    """Splits a matrix into one of low rank and a sparse one: A = L + S.

    Parameters
    ----------
    a : (m, n) array
        Of NumPy, PyTorch, CuPy or JAX; m >= n is the fast shape.
    tol : float
        Of ``norm(A - L - S) / norm(A)``.
    max_iter : int
        Reaching it is no error: see `converged`.
    lambda_multiplier : float
        Weight of the sparse part: lambda is this over sqrt(max(m, n)).
    method : {'inexact_alm', 'alternating'}
    callback : callable, optional
        Called as ``callback(iteration, residual, rank)`` after every iteration; returning False stops.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    RobustPCAResult
        low_rank, sparse, rank, iterations, residual, converged.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> rng = np.random.default_rng(0)
    >>> low = np.outer(rng.standard_normal(200), rng.standard_normal(40))
    >>> spikes = np.where(rng.random(low.shape) < 0.05, 10.0, 0.0)
    >>> found = qrane.robust_pca(low + spikes, tol=1e-6)
    >>> found.rank, bool(np.allclose(found.low_rank, low, atol=1e-3))
    (1, True)
    """
    if method not in ("inexact_alm", "alternating"):
        raise ValueError(f"method: must be 'inexact_alm' or 'alternating', got {method!r}")
    library, place, (x,) = prepare(("a", a), most_axes=2)
    return RobustPCAResult(*_core.robust_pca(place, x, method, float(tol), int(max_iter), float(lambda_multiplier),
                                             callback, checked(library, x, check_finite)))
