# SPDX-License-Identifier: Apache-2.0
"""QR, least squares, SVD and column-pivoted QR in one call."""

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import checked, flat, prepare, shaped


class QRResult(NamedTuple):
    """Q and R of A = Q R."""

    Q: Any
    R: Any


class PivotedQRResult(NamedTuple):
    """Q, R and the permutation P of A[:, P] = Q R, and the rank."""

    Q: Any
    R: Any
    P: Any
    rank: Any


class LstsqResult(NamedTuple):
    """The solution x, sums of squared residuals, the rank, and None in place of singular values."""

    x: Any
    residues: Any
    rank: Any
    s: None


class SVDResult(NamedTuple):
    """U, S and Vh of A = U diag(S) Vh."""

    U: Any
    S: Any
    Vh: Any


_FORMS = {"reduced": "thin", "economic": "thin", "complete": "full", "full": "full", "r": "none", "raw": "lapack"}


def qr(a, mode="reduced", *, pivoting=False, overwrite_a=False, check_finite=None):
    """QR factorization of a matrix, or of a batch of matrices.

    Parameters
    ----------
    a : (..., m, n) array
        Of NumPy, PyTorch, CuPy or JAX. Integers are promoted to the library's default floating-point type.
    mode : {'reduced', 'economic', 'complete', 'full', 'r', 'raw'}
        With k = min(m, n):

        - 'reduced' or 'economic': Q is (..., m, k), R (..., k, n);
        - 'complete' or 'full': Q is (..., m, m), R (..., m, n);
        - 'r': R alone, (..., k, n). Q is not formed, which is much faster for tall matrices;
        - 'raw': (h, tau) as LAPACK's geqrf returns them, h transposed as NumPy does: (..., n, m) and (..., k).
    pivoting : bool
        Column-pivoted QR: P is returned, too, and A[:, P] = Q R.
    overwrite_a : bool
        Accepted because SciPy has it. `a` is never changed.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    QRResult, array or tuple
        (Q, R); R alone with mode 'r'; (h, tau) with 'raw'; (Q, R, P) or (R, P) with pivoting.

    Raises
    ------
    ValueError
        For shapes and modes that make no sense, NaN and Inf.
    TypeError
        For complex and float16 arrays.
    MemoryError
        If there is not enough memory.

    See Also
    --------
    factor : Keeps Q as reflectors, to solve with or to apply.
    pivoted_qr : Rank and more options.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> Q, R = qrane.qr(A)
    >>> bool(np.allclose(Q @ R, A)), Q.shape, R.shape
    (True, (3, 2), (2, 2))
    >>> qrane.qr(np.ones((10, 5, 2)), mode="r").shape
    (10, 2, 2)
    """
    form = _FORMS.get(mode)
    if form is None:
        raise ValueError(f"mode: must be one of {', '.join(_FORMS)}, got {mode!r}")
    if pivoting:
        return _pivoted(a, mode, form, check_finite)
    library, place, (x,) = prepare(("a", a))
    check = checked(library, x, check_finite)
    if x.ndim == 2:
        parts = _core.qr(place, x, form, check)
        if form == "lapack":
            return parts[0].T, parts[1][:, 0]
    else:
        x, lead = flat(library, x)
        if form in ("thin", "none"):
            parts = _core.batch_qr(place, x, form, check)
        else:
            each = [_core.qr(place, one, form, check) for one in x]
            if form == "lapack":
                each = [(h.T, tau[:, 0]) for h, tau in each]
            parts = _stacked(library, each, x)
        parts = [shaped(part, lead) for part in parts]
        if form == "lapack":
            return tuple(parts)
    return parts[0] if form == "none" else QRResult(*parts)


def _stacked(library, each, like):
    if not each:
        raise ValueError("a: an empty batch has no factors of this mode; take 'reduced' or 'r'")
    return [library.stack(parts, like) for parts in zip(*each)]


def _pivoted(a, mode, form, check_finite):
    if form == "lapack":
        raise ValueError("mode: 'raw' is not there with pivoting; take pivoted_qr")
    if form == "full":
        return _pivoted_full(a, check_finite)
    result = pivoted_qr(a, mode="r" if form == "none" else "reduced", check_finite=check_finite)
    return (result.R, result.P) if form == "none" else (result.Q, result.R, result.P)


def _pivoted_full(a, check_finite):
    """The permutation by pivoted QR, then full factors of A[:, P]."""
    library, place, (x,) = prepare(("a", a), most_axes=2)
    permutation = _core.pivoted_qr(place, x, "none", -1.0, -1, False, "exact", checked(library, x, check_finite))[2]
    columns = library.from_host(permutation, x)
    return (*_core.qr(place, library.strided(x[:, columns]), "full", False), columns)


def pivoted_qr(a, *, rtol=None, max_rank=None, truncate=False, mode="reduced", pivoting="automatic",
               check_finite=None):
    """Rank-revealing QR with column pivoting, A[:, P] = Q R, with a falling diagonal of R.

    Parameters
    ----------
    a : (..., m, n) array
        Of NumPy, PyTorch, CuPy or JAX.
    rtol : float, optional
        Diagonal elements of R above ``rtol * abs(R[0, 0])`` count for the rank. By default
        ``(min(m, n) + 10) * eps``.
    max_rank : int, optional
        Columns to factor at most.
    truncate : bool
        End at the rank: Q is (m, rank) and R (rank, n).
    mode : {'reduced', 'r'}
        'r' leaves Q out; it is None then.
    pivoting : {'automatic', 'exact', 'randomized'}
        How pivots are chosen. 'exact' takes the longest column at every step, as LAPACK's geqp3.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    PivotedQRResult
        Q, R, P and rank.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.outer(np.arange(1.0, 6.0), [1.0, 2.0, 3.0])
    >>> qrane.pivoted_qr(A).rank
    1
    """
    if mode not in ("reduced", "economic", "r"):
        raise ValueError(f"mode: must be 'reduced' or 'r', got {mode!r}")
    library, place, (x,) = prepare(("a", a))
    form = "none" if mode == "r" else "thin"
    wishes = (form, -1.0 if rtol is None else float(rtol), -1 if max_rank is None else int(max_rank), bool(truncate),
              pivoting, checked(library, x, check_finite))
    if x.ndim == 2:
        q, r, p, rank = _core.pivoted_qr(place, x, *wishes)
        return PivotedQRResult(q, r, library.from_host(p, x), rank)
    if truncate:
        raise ValueError("truncate: the ranks of a batch may differ; factor its matrices one by one")
    x, lead = flat(library, x)
    each = [_core.pivoted_qr(place, one, *wishes) for one in x]
    if not each:
        raise ValueError("a: is an empty batch")
    qs, rs, ps, ranks = zip(*each)
    q = None if form == "none" else shaped(library.stack(qs, x), lead)
    return PivotedQRResult(q, shaped(library.stack(rs, x), lead), shaped(library.from_host(np.stack(ps), x), lead),
                           np.array(ranks).reshape(lead))


def lstsq(a, b, rcond=None, *, least_norm=True, deficient="solve", check_finite=None):
    """Least-squares solution of A x = b, of least norm where there are many.

    Parameters
    ----------
    a : (..., m, n) array
        Of NumPy, PyTorch, CuPy or JAX.
    b : (m,), (..., m) or (..., m, k) array
        Right-hand sides.
    rcond : float, optional
        Diagonal elements of the pivoted R above ``rcond`` times the largest count for the rank. By default
        ``(min(m, n) + 10) * eps``.
    least_norm : bool
        For a rank-deficient matrix: the solution of least norm, else a basic one with n - rank zeros.
    deficient : {'solve', 'raise'}
        What to do about a rank-deficient matrix. 'raise' raises `numpy.linalg.LinAlgError`.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    LstsqResult
        - x : (..., n) or (..., n, k)
        - residues : sums of squared residuals for each column of b; empty where the rank is below n, where m <= n,
          and for batches
        - rank : int, or an array of ranks for a batch
        - s : None; there are no singular values, as with SciPy's 'gelsy'

    Examples
    --------
    >>> import numpy as np, qrane
    >>> t = np.arange(5.0)
    >>> A = np.stack([np.ones(5), t, 2 * t], axis=1)  # the last two columns are dependent
    >>> x, _, rank, _ = qrane.lstsq(A, 3 + 10 * t)
    >>> rank, [float(c) for c in x.round(6)]
    (2, [3.0, 2.0, 4.0])
    """
    if deficient not in ("solve", "raise"):
        raise ValueError(f"deficient: must be 'solve' or 'raise', got {deficient!r}")
    library, place, (x, y) = prepare(("a", a), ("b", b))
    wishes = (-1.0 if rcond is None else float(rcond), bool(least_norm), deficient == "raise",
              checked(library, x, check_finite))
    vector = y.ndim == x.ndim - 1
    if y.ndim not in (x.ndim, x.ndim - 1) or y.shape[-1 if vector else -2] != x.shape[-2]:
        raise ValueError(f"b: of shape {tuple(y.shape)} does not fit a of shape {tuple(x.shape)}")
    if x.ndim == 2:
        solution, rank, full, norms = _core.least_squares(place, x, y, *wishes)
        empty = rank < x.shape[1] or x.shape[0] <= x.shape[1]
        residues = _residues(library, norms[:0] if empty else norms, x)
        return LstsqResult(solution[:, 0] if vector else solution, residues, rank, None)
    if tuple(y.shape[:x.ndim - 2]) != tuple(x.shape[:-2]):
        raise ValueError(f"b: of shape {tuple(y.shape)} has other leading axes than a, of shape {tuple(x.shape)}")
    if vector:
        y = y[..., None]
    x, lead = flat(library, x)
    y, _ = flat(library, y)
    solution, ranks, _ = _core.batch_least_squares(place, x, y, *wishes)
    solution = shaped(solution, lead)
    residues = _residues(library, np.empty(0), x)
    return LstsqResult(solution[..., 0] if vector else solution, residues, ranks.reshape(lead), None)


def _residues(library, norms, like):
    """Squared norms in the type and library of `like`."""
    return library.from_host((norms**2).astype(np.float32 if like.dtype.itemsize == 4 else np.float64), like)


def svd(a, full_matrices=True, compute_uv=True, *, overwrite_a=False, check_finite=None):
    """Singular value decomposition A = U diag(S) Vh through QR: fast where one side is much longer.

    Parameters
    ----------
    a : (..., m, n) array
        Of NumPy, PyTorch, CuPy or JAX.
    full_matrices : bool
        U is (m, m) and Vh (n, n), else (m, k) and (k, n) with k = min(m, n). The default is the array API
        standard's; for a tall matrix pass False.
    compute_uv : bool
        False returns S alone.
    overwrite_a : bool
        Accepted because SciPy has it. `a` is never changed.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    SVDResult or array
        U, S and Vh; S alone with ``compute_uv=False``. S is not increasing.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.diag([3.0, 2.0])[[0, 1, 0]]
    >>> qrane.svd(A, compute_uv=False).round(4).tolist()
    [4.2426, 2.0]
    """
    library, place, (x,) = prepare(("a", a))
    check = checked(library, x, check_finite)
    if x.ndim == 2:
        return _svd(library, place, x, full_matrices, compute_uv, check)
    x, lead = flat(library, x)
    each = [_svd(library, place, one, full_matrices, compute_uv, check) for one in x]
    if not each:
        raise ValueError("a: is an empty batch")
    if not compute_uv:
        return shaped(library.stack(each, x), lead)
    return SVDResult(*(shaped(library.stack(parts, x), lead) for parts in zip(*each)))


def _svd(library, place, x, full_matrices, compute_uv, check):
    m, n = x.shape
    if not compute_uv:
        return _core.svd(place, x, False, check)[0][:, 0]
    u, s, vh = _core.svd(place, x, True, check)
    if full_matrices and m > n:
        u = _completed(library, place, u)
    elif full_matrices and m < n:
        vh = _completed(library, place, vh.T).T
    return SVDResult(u, s[:, 0], vh)


def _completed(library, place, u):
    """u with orthonormal columns added until it is square: those of the full Q of u."""
    q, _ = _core.qr(place, library.strided(u), "full", False)
    return library.concatenate([u, q[:, u.shape[1]:]], 1)


def qr_multiply(a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False):
    """QR factorization of `a`, and the product of Q with `c`, without forming Q.

    Parameters
    ----------
    a : (m, n) array
    c : array
        With k = min(m, n): (k, p) for mode 'left', (p, m) for 'right'; a vector, too.
    mode : {'left', 'right'}
        Q c, or c Q, with the thin Q, (m, k).
    pivoting : bool
        A[:, P] = Q R; P is returned, too.
    conjugate, overwrite_a, overwrite_c : bool
        Accepted because SciPy has them; of no effect for real matrices.

    Returns
    -------
    tuple
        (product, R), or (product, R, P) with pivoting.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A, b = np.eye(4, 2), np.arange(4.0)
    >>> bQ, R = qrane.qr_multiply(A, b)
    >>> np.abs(bQ).tolist()
    [0.0, 1.0]
    """
    if mode not in ("left", "right"):
        raise ValueError(f"mode: must be 'left' or 'right', got {mode!r}")
    library, place, (x, y) = prepare(("a", a), ("c", c), most_axes=2)
    m, k = x.shape[0], min(x.shape)
    vector = y.ndim == 1
    if vector:
        y = y[:, None] if mode == "left" else y[None, :]
    if y.ndim != 2 or (y.shape[0] != k if mode == "left" else y.shape[1] != m):
        needed = f"({k}, p)" if mode == "left" else f"(p, {m})"
        raise ValueError(f"c: must be of shape {needed} for mode {mode!r}, got {tuple(c.shape)}")
    permutation = ()
    if pivoting:
        found = _core.pivoted_qr(place, x, "none", -1.0, -1, False, "exact", False)[2]
        permutation = (library.from_host(found, x),)
        x = library.strided(x[:, permutation[0]])
    f = _core.factor(place, x, "implicit", checked(library, x, None))
    if mode == "left":
        padded = library.concatenate([y, library.zeros((m - k, y.shape[1]), y)], 0)
        product = f.apply(library.strided(padded), False, False)
    else:
        product = f.apply(library.strided(y), False, True)[:, :k]
    if vector:
        product = product[:, 0] if mode == "left" else product[0]
    return (product, f.r(False), *permutation)
