# SPDX-License-Identifier: Apache-2.0
"""Factorizations of matrices whose rows and columns come and go: an object, and SciPy's three functions."""

from . import _core
from ._arrays import checked, prepare
from ._factor import Factor

_FORMS = {"implicit": "implicit", "reduced": "thin", "r": "none", "complete": "full"}


def updatable(a, keep="reduced", *, b=None, check_finite=None):
    """Factors a matrix whose rows and columns will change.

    Parameters
    ----------
    a : (m, n) array
        Of NumPy, PyTorch, CuPy or JAX.
    keep : {'reduced', 'complete', 'r', 'implicit'}
        What is kept of Q and brought up to date: the thin Q, the (m, m) Q, nothing, or reflectors.
    b : (m,) or (m, k) array, optional
        Right-hand sides whose least-squares solution follows all changes.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    Updatable

    Examples
    --------
    A line through a window of points that slides:

    >>> import numpy as np, qrane
    >>> t = np.arange(100.0)
    >>> A, b = np.stack([np.ones(100), t], axis=1), 2 + 0.5 * t
    >>> W = qrane.updatable(A[:50], b=b[:50])
    >>> W.insert_rows(50, A[50:60], b[50:60])
    >>> W.delete_rows(0, 10)
    >>> W.shape, W.solve().round(6).tolist()
    ((50, 2), [2.0, 0.5])
    """
    if keep not in _FORMS:
        raise ValueError(f"keep: must be one of {', '.join(_FORMS)}, got {keep!r}")
    library, place, (x,) = prepare(("a", a), most_axes=2)
    made = Updatable(_core.updatable(place, x, _FORMS[keep], checked(library, x, check_finite)), library, x)
    made._keeps_q = keep != "r"
    if b is not None:
        made.attach(b, None if made._keeps_q else a)
    return made


class Updatable(Factor):
    """A = Q R of a matrix that changes; made by `updatable`. What `Factor` has is here, too.

    `k` counts rows or columns from 0. After every change it is the factorization of the changed matrix; after an
    exception it is as it was.
    """

    _vectors = False  # right-hand sides that were given as vectors

    def _block(self, name, x, rows=None, cols=None):
        """A block of rows or columns; a vector is one of them."""
        x = self._ready(name, x)
        if x.ndim == 1:
            x = x[None, :] if rows is None else x[:, None]
        for axis, wanted in enumerate((rows, cols)):
            if wanted is not None and x.shape[axis] != wanted:
                raise ValueError(f"{name}: of shape {tuple(x.shape)} must have {wanted} {('rows', 'columns')[axis]}")
        return self._library.strided(x)

    def attach(self, b, a=None):
        """From now on the solution for right-hand sides b, (m,) or (m, k), is brought up to date, too.

        Without Q (keep 'r') `a`, the matrix as it is, is needed.
        """
        y = self._tall("b", b, self.shape[0])
        self._made.attach(y, None if a is None else self._block("a", a, *self.shape))
        self._vectors = y.ndim == 1

    def insert_rows(self, k, u, b=None, *, check_finite=True):
        """Inserts the rows u, (p, n) or (n,), before row k; b are their right-hand sides where some are attached."""
        rows = self._block("u", u, cols=self.shape[1])
        sides = None if b is None else self._ready("b", b)
        if sides is not None and sides.ndim == 1:
            sides = sides[:, None] if self._vectors else sides[None, :]
        self._made.insert_rows(k, rows, None if sides is None else self._library.strided(sides), check_finite)

    def delete_rows(self, k, p=1, removed=None, removed_b=None):
        """Deletes the rows k .. k+p-1. Without Q (keep 'r') they are needed, and their right-hand sides.

        Raises ValueError where R alone cannot lose them: they carry the rank.
        """
        rows = None if removed is None else self._block("removed", removed, p, self.shape[1])
        sides = None if removed_b is None else self._block("removed_b", removed_b, p)
        if self._made.delete_rows(k, p, rows, sides)["refused"]:
            raise ValueError(f"k: rows {k} .. {k + p - 1} carry the rank of R; keep Q, or refactor")

    def insert_columns(self, k, u, updated=None, *, check_finite=True):
        """Inserts the columns u, (m, p) or (m,), before column k. Without Q the changed matrix is needed."""
        columns = self._block("u", u, rows=self.shape[0])
        whole = None if updated is None else self._ready("updated", updated)
        self._made.insert_columns(k, columns, whole, check_finite)

    def delete_columns(self, k, p=1):
        """Deletes the columns k .. k+p-1."""
        self._made.delete_columns(k, p)

    def update(self, u, v, updated=None, *, check_finite=True):
        """A := A + u vᵀ, u (m, p) and v (n, p), or vectors. Without Q the changed matrix is needed."""
        left, right = self._block("u", u, rows=self.shape[0]), self._block("v", v, rows=self.shape[1])
        whole = None if updated is None else self._ready("updated", updated)
        self._made.rank_k_update(left, right, whole, check_finite)

    def solve(self, b=None, rcond=None, *, least_norm=True, deficient="solve"):
        """Least-squares solution for b, or for the attached right-hand sides."""
        if b is not None:
            return super().solve(b, rcond, least_norm=least_norm, deficient=deficient)
        x = self._made.solve_attached(-1.0 if rcond is None else float(rcond), least_norm, deficient == "raise")[0]
        return x[:, 0] if self._vectors else x

    def residual_norms(self):
        """Norm of A x - b for each attached right-hand side."""
        return self._made.residual_norms()

    def drift(self, a=None):
        """How far rounding has carried the factors, in units of (min(m, n) + 10) times the unit roundoff."""
        return self._made.drift(None if a is None else self._block("a", a, *self.shape))


def _from_factors(Q, R, others, check_finite):
    """(updatable factors, library, whether Q is thin, the other arguments)"""
    library, place, (q, r, *rest) = prepare(("Q", Q), ("R", R), *others, most_axes=2)
    m, n = q.shape[0], r.shape[1]
    k = min(m, n)
    thin = q.shape[1] != m
    if q.shape[1] not in (m, k) or r.shape[0] != q.shape[1]:
        raise ValueError(f"Q, R: of shapes {tuple(q.shape)} and {tuple(r.shape)} are no factors: Q is (m, m) and "
                         "R (m, n), or Q (m, n) and R (n, n)")
    made = _core.updatable_from_factors(place, q, r, "thin" if thin else "full")
    return made, library, thin, rest, checked(library, q, check_finite)


def _factors(made, thin):
    return made.q(not thin), made.r(not thin)


def _which(which):
    if which not in ("row", "col"):
        raise ValueError(f"which: must be 'row' or 'col', got {which!r}")
    return which == "row"


def qr_insert(Q, R, u, k, which="row", rcond=None, overwrite_qru=False, check_finite=None):
    """Q and R of A with rows or columns inserted, from Q and R of A; as `scipy.linalg.qr_insert`.

    Parameters
    ----------
    Q : (m, m) or (m, n) array
    R : (m, n) or (n, n) array
    u : (n,), (p, n), (m,) or (m, p) array
        Rows or columns.
    k : int
        Before which row or column; negative counts from the end.
    which : {'row', 'col'}
    rcond, overwrite_qru
        Accepted because SciPy has them.
    check_finite : bool, optional
        Refuse NaN and Inf in u with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    Q1, R1 : arrays
        Factors of the changed matrix, complete or reduced as those given.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.arange(6.0).reshape(3, 2)
    >>> Q, R = qrane.qr(A)
    >>> Q1, R1 = qrane.qr_insert(Q, R, np.array([7.0, 8.0]), 1)
    >>> bool(np.allclose(Q1 @ R1, np.insert(A, 1, [7.0, 8.0], axis=0)))
    True
    """
    rows = _which(which)
    made, library, thin, (x,), check = _from_factors(Q, R, [("u", u)], check_finite)
    m, n = made.shape
    if x.ndim == 1:
        x = library.strided(x[None, :] if rows else x[:, None])
    if x.shape[1 if rows else 0] != (n if rows else m):
        raise ValueError(f"u: of shape {tuple(u.shape)} does not fit a matrix of {m} x {n}")
    k = _place(k, m if rows else n, 0)
    if rows:
        made.insert_rows(k, x, None, check)
    else:
        made.insert_columns(k, x, None, check)
    return _factors(made, thin)


def qr_delete(Q, R, k, p=1, which="row", overwrite_qr=False, check_finite=None):
    """Q and R of A without p rows or columns from k on; as `scipy.linalg.qr_delete`.

    Parameters
    ----------
    Q : (m, m) or (m, n) array
    R : (m, n) or (n, n) array
    k : int
        The first one; negative counts from the end.
    p : int
    which : {'row', 'col'}
    overwrite_qr, check_finite
        Accepted because SciPy has them.

    Returns
    -------
    Q1, R1 : arrays

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.arange(8.0).reshape(4, 2)
    >>> Q1, R1 = qrane.qr_delete(*qrane.qr(A), 1, 2)
    >>> bool(np.allclose(Q1 @ R1, A[[0, 3]]))
    True
    """
    rows = _which(which)
    made, _, thin, _, _ = _from_factors(Q, R, [], check_finite)
    k = _place(k, made.shape[0 if rows else 1], p)
    if rows:
        made.delete_rows(k, p, None, None)
    else:
        made.delete_columns(k, p)
    return _factors(made, thin)


def qr_update(Q, R, u, v, overwrite_qruv=False, check_finite=None):
    """Q and R of A + u vᵀ; as `scipy.linalg.qr_update`.

    Parameters
    ----------
    Q : (m, m) or (m, n) array
    R : (m, n) or (n, n) array
    u : (m,) or (m, p) array
    v : (n,) or (n, p) array
    overwrite_qruv
        Accepted because SciPy has it.
    check_finite : bool, optional
        Refuse NaN and Inf in u and v with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    Q1, R1 : arrays

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A, u, v = np.eye(3, 2), np.ones(3), np.array([1.0, 2.0])
    >>> Q1, R1 = qrane.qr_update(*qrane.qr(A), u, v)
    >>> bool(np.allclose(Q1 @ R1, A + np.outer(u, v)))
    True
    """
    made, library, thin, (x, y), check = _from_factors(Q, R, [("u", u), ("v", v)], check_finite)
    if x.ndim == 1 and y.ndim == 1:
        x, y = library.strided(x[:, None]), library.strided(y[:, None])
    m, n = made.shape
    if x.ndim != 2 or y.ndim != 2 or x.shape[0] != m or y.shape[0] != n or x.shape[1] != y.shape[1]:
        raise ValueError(f"u, v: of shapes {tuple(u.shape)} and {tuple(v.shape)} do not fit a matrix of {m} x {n}")
    made.rank_k_update(x, y, None, check)
    return _factors(made, thin)


def _place(k, count, p):
    start = k + count if k < 0 else k
    if not 0 <= start <= count - p:
        raise ValueError(f"k: {k} with p = {p} is not within the {count} there are")
    return start
