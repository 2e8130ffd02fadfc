# SPDX-License-Identifier: Apache-2.0
"""The factor object: one factorization, many uses."""

import numpy as np

from . import _core
from ._arrays import checked, flat, prepare, shaped

_FORMS = {"implicit": "implicit", "reduced": "thin", "r": "none", "raw": "lapack"}


def factor(a, keep="implicit", *, check_finite=None):
    """Factors a matrix, or a batch of matrices, and keeps the factorization.

    Parameters
    ----------
    a : (..., m, n) array
        Of NumPy, PyTorch, CuPy or JAX.
    keep : {'implicit', 'reduced', 'r', 'raw'}
        What is kept of Q: reflectors that can be applied, the thin Q, nothing, or reflectors as LAPACK's.
    check_finite : bool, optional
        Refuse NaN and Inf with ValueError. By default arrays in host memory are checked.

    Returns
    -------
    Factor or BatchFactor

    Examples
    --------
    >>> import numpy as np, qrane
    >>> A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> F = qrane.factor(A)
    >>> F.rank(), F.solve(np.array([1.0, 3.0, 5.0])).round(6).tolist()
    (2, [1.0, 2.0])
    """
    if keep not in _FORMS:
        raise ValueError(f"keep: must be one of {', '.join(_FORMS)}, got {keep!r}")
    library, place, (x,) = prepare(("a", a))
    lead = None
    if x.ndim > 2:
        x, lead = flat(library, x)
    made = _core.factor(place, x, _FORMS[keep], checked(library, x, check_finite))
    return Factor(made, library, x) if lead is None else BatchFactor(made, library, x, lead)


class Factor:
    """A = Q R of one matrix; made by `factor`.

    An object is used by one thread at a time; a second one waits.
    """

    def __init__(self, made, library, like):
        self._made, self._library, self._where = made, library, library.where(like)
        self.dtype = like.dtype

    def _ready(self, name, x):
        """An argument, of the library, device and type of A."""
        library, _, (x,) = prepare((name, x), least_axes=1, most_axes=2)
        if library is not self._library:
            raise TypeError(f"{name}: is of {library.name}, but the factors are of {self._library.name}")
        if library.where(x) != self._where:
            raise ValueError(f"{name}: is on {library.where(x)}, but the factors are on {self._where}")
        if x.dtype != self.dtype:
            x = library.strided(library.cast(x, self.dtype))
        return x

    def _tall(self, name, x, rows):
        """An argument with so many rows; a vector is one column."""
        x = self._ready(name, x)
        if x.shape[0] != rows:
            raise ValueError(f"{name}: of shape {tuple(x.shape)} must have {rows} rows")
        return x

    @property
    def shape(self):
        """(m, n)"""
        return self._made.shape

    @property
    def r(self):
        """R, (min(m, n), n), zero below the diagonal."""
        return self._made.r(False)

    def q(self, mode="reduced"):
        """Q, (m, min(m, n)), or (m, m) with mode 'complete'."""
        if mode not in ("reduced", "economic", "complete", "full"):
            raise ValueError(f"mode: must be 'reduced' or 'complete', got {mode!r}")
        return self._made.q(mode in ("complete", "full"))

    def solve(self, b, rcond=None, *, least_norm=True, deficient="solve"):
        """Least-squares solution of A x = b, of least norm where there are many; arguments as in `lstsq`."""
        y = self._tall("b", b, self.shape[0])
        x = self._made.solve(y, -1.0 if rcond is None else float(rcond), least_norm, deficient == "raise")[0]
        return x[:, 0] if y.ndim == 1 else x

    def apply_q(self, c, side="left"):
        """Q c with the (m, m) Q, or c Q with side 'right'; Q is not formed."""
        return self._apply(c, side, False)

    def apply_qt(self, c, side="left"):
        """Qᵀ c, or c Qᵀ with side 'right'."""
        return self._apply(c, side, True)

    def _apply(self, c, side, transpose):
        if side not in ("left", "right"):
            raise ValueError(f"side: must be 'left' or 'right', got {side!r}")
        if side == "left":
            c = self._tall("c", c, self.shape[0])
        else:
            c = self._ready("c", c)
            if c.ndim == 1:
                return self._apply(c[None, :], side, transpose)[0]
            if c.shape[1] != self.shape[0]:
                raise ValueError(f"c: of shape {tuple(c.shape)} must have {self.shape[0]} columns")
        out = self._made.apply(c, transpose, side == "right")
        return out[:, 0] if c.ndim == 1 else out

    def rank(self, rcond=None):
        """Rank by column pivoting of R: diagonal elements above ``rcond`` times the largest."""
        return self._made.rank(-1.0 if rcond is None else float(rcond))

    def condition(self):
        """Estimate of R's 1-norm condition number."""
        return self._made.condition()

    def slogdet(self):
        """(sign, logarithm of the magnitude) of a square A's determinant, as `numpy.linalg.slogdet`."""
        return self._made.determinant()

    def range_basis(self, rcond=None):
        """Orthonormal basis of A's range, (m, rank)."""
        return self._made.range_basis(-1.0 if rcond is None else float(rcond))

    def null_space_basis(self, rcond=None):
        """Orthonormal basis of A's null space, (n, n - rank)."""
        return self._made.null_space_basis(-1.0 if rcond is None else float(rcond))

    def refactor(self, a):
        """Factors another matrix of the same shape in the same memory."""
        x = self._ready("a", a)
        if tuple(x.shape) != tuple(self.shape):
            raise ValueError(f"a: must be of shape {tuple(self.shape)}, got {tuple(x.shape)}")
        self._made.refactor(x)

    def explain(self):
        """How it was factored and why, in words."""
        return self._made.explain()


class BatchFactor:
    """A = Q R of every matrix of a batch; made by `factor`."""

    def __init__(self, made, library, like, lead):
        self._made, self._library, self._lead = made, library, lead
        self.shape, self.dtype = lead + tuple(like.shape[1:]), like.dtype

    def _ready(self, name, x, rows):
        _, _, (x,) = prepare((name, x), least_axes=2)
        if tuple(x.shape[:-2]) != self._lead or x.shape[-2] != rows:
            raise ValueError(f"{name}: must be of shape {(*self._lead, rows)} and columns, got {tuple(x.shape)}")
        if x.dtype != self.dtype:
            raise TypeError(f"{name}: is of {x.dtype}, but the factors are of {self.dtype}")
        return flat(self._library, x)[0]

    @property
    def r(self):
        """R of every matrix, (..., min(m, n), n)."""
        return shaped(self._made.r(), self._lead)

    def q(self):
        """Thin Q of every matrix, (..., m, min(m, n))."""
        return shaped(self._made.q(), self._lead)

    def solve(self, b, rcond=None, *, least_norm=True, deficient="solve"):
        """Least-squares solutions, (..., n, k) for right-hand sides b of (..., m, k)."""
        y = self._ready("b", b, self.shape[-2])
        x = self._made.solve(y, -1.0 if rcond is None else float(rcond), least_norm, deficient == "raise")[0]
        return shaped(x, self._lead)

    def apply_q(self, c):
        """Q c for every matrix, with the (m, m) Q."""
        return shaped(self._made.apply(self._ready("c", c, self.shape[-2]), False), self._lead)

    def apply_qt(self, c):
        """Qᵀ c for every matrix."""
        return shaped(self._made.apply(self._ready("c", c, self.shape[-2]), True), self._lead)

    def refactor(self, a):
        """Factors another batch of the same shape in the same memory."""
        x = self._ready("a", a, self.shape[-2])
        if x.shape[-1] != self.shape[-1]:
            raise ValueError(f"a: must be of shape {self.shape}, got {np.shape(a)}")
        self._made.refactor(x)
