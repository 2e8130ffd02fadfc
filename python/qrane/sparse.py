# SPDX-License-Identifier: Apache-2.0
"""Sparse QR and least squares, for the matrices of scipy.sparse and cupyx.scipy.sparse.

>>> import numpy as np, scipy.sparse, qrane.sparse
>>> A = scipy.sparse.diags_array([[1.0] * 5, [2.0] * 5], offsets=[0, -1], shape=(6, 5)).tocsr()
>>> F = qrane.sparse.qr(A)
>>> F.rank, bool(np.allclose(F.solve(A @ np.ones(5)), 1))
(5, True)
"""

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import prepare
from ._dense import _residues

__all__ = ["LstsqResult", "SparseFactor", "lstsq", "qr"]


class LstsqResult(NamedTuple):
    """The solution x, sums of squared residuals, and the rank."""

    x: Any
    residues: Any
    rank: int


def qr(A, *, ordering="automatic", rank_tolerance=None, detect_rank=True, deficient="solve", keep_q=True,
       processor="automatic", check_finite=True):
    """Sparse QR factorization A P = Q R.

    Parameters
    ----------
    A : sparse array or matrix, (m, n)
        Of scipy.sparse or cupyx.scipy.sparse, in any format; CSR and CSC are read where they lie, with 32- or 64-bit
        indices. Entries that are there more than once are summed.
    ordering : {'automatic', 'colamd', 'amd', 'metis', 'natural'}
        Which columns are eliminated first.
    rank_tolerance : float, optional
        A column whose remaining norm is at most this is dependent. By default as SuiteSparseQR's.
    detect_rank : bool
        False: no column is taken for dependent.
    deficient : {'solve', 'raise'}
        'raise' raises `numpy.linalg.LinAlgError` for a matrix without full rank.
    keep_q : bool
        False saves memory: solves then use R and A (corrected semi-normal equations).
    processor : {'automatic', 'cpu', 'device'}
        Where the numbers are factored.
    check_finite : bool
        Refuse NaN and Inf with ValueError.

    Returns
    -------
    SparseFactor
    """
    matrix = _Matrix(A)
    place = matrix.place()
    wishes = _wishes(ordering, processor, rank_tolerance, detect_rank, deficient, keep_q, check_finite)
    return SparseFactor(_core.sparse_factor(place, matrix.compressed(), wishes), matrix, check_finite)


def lstsq(A, b, *, ordering="automatic", rank_tolerance=None, deficient="solve", processor="automatic",
          check_finite=True):
    """Least-squares solution of A x = b with sparse A; of least norm where m < n.

    Parameters
    ----------
    A : sparse array or matrix, (m, n)
    b : (m,) or (m, k) array
        Of NumPy, or of CuPy with a CuPy matrix.
    ordering, rank_tolerance, deficient, processor, check_finite
        As in `qr`.

    Returns
    -------
    LstsqResult
        x of (n,) or (n, k), sums of squared residuals, and the rank.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, qrane.sparse
    >>> A = scipy.sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> x, residues, rank = qrane.sparse.lstsq(A, np.array([3.0, 4.0, 5.0]))
    >>> x.tolist(), residues.tolist(), rank
    ([3.0, 2.0], [25.0], 2)
    """
    matrix = _Matrix(A)
    library, place, (y,) = prepare(("b", b), least_axes=1, most_axes=2)
    if y.dtype.itemsize == 8:
        matrix.values = matrix.values.astype(np.float64, copy=False)
    y = _fitting(library, y, matrix, "b", matrix.shape[0])
    wishes = _wishes(ordering, processor, rank_tolerance, True, deficient, True, check_finite)
    x, rank, _, norms = _core.sparse_least_squares(place, matrix.compressed(), y, wishes)
    return LstsqResult(x[:, 0] if y.ndim == 1 else x, _residues(library, norms, y), rank)


class SparseFactor:
    """A P = Q R of a sparse matrix; made by `qr`."""

    def __init__(self, made, matrix, check_finite):
        self._made, self._matrix, self._check_finite = made, matrix, check_finite

    @property
    def shape(self):
        """(m, n)"""
        return self._made.shape

    @property
    def rank(self):
        """Columns that are independent."""
        return self._made.rank()

    @property
    def permutation(self):
        """Column k of A P is column permutation[k] of A."""
        return self._made.permutation()

    @property
    def r(self):
        """R, (rank, n), as a scipy.sparse.csc_array; its columns are those of A P."""
        import scipy.sparse
        pointers, indices, values, rows = self._made.r()
        return scipy.sparse.csc_array((values, indices, pointers), shape=(rows, self.shape[1]))

    @property
    def facts(self):
        """Figures of the last factorization: seconds, flops, bytes, whether it ran on the device."""
        return self._made.facts()

    def solve(self, b):
        """Least-squares solution of A x = b for b, (m,) or (m, k)."""
        return self._solve(b, False)

    def solve_transposed(self, b):
        """The solution of Aᵀ x = b of least norm, for b, (n,) or (n, k)."""
        return self._solve(b, True)

    def _solve(self, b, transposed):
        library, _, (y,) = prepare(("b", b), least_axes=1, most_axes=2)
        y = _fitting(library, y, self._matrix, "b", self.shape[1 if transposed else 0])
        x = self._made.solve(y, transposed)[0]
        return x[:, 0] if y.ndim == 1 else x

    def apply_q(self, c):
        """Q c for c, (m,) or (m, k), with the (m, m) Q."""
        return self._apply(c, False)

    def apply_qt(self, c):
        """Qᵀ c."""
        return self._apply(c, True)

    def _apply(self, c, transpose):
        library, _, (y,) = prepare(("c", c), least_axes=1, most_axes=2)
        y = _fitting(library, y, self._matrix, "c", self.shape[0])
        out = self._made.apply(y, transpose)
        return out[:, 0] if y.ndim == 1 else out

    def refactor(self, A):
        """Factors other values in the same pattern: a sparse matrix of that pattern, or its values alone in order."""
        if hasattr(A, "indptr"):
            matrix = _Matrix(A)
            if not self._matrix.same_pattern(matrix):
                raise ValueError("A: has another pattern than the matrix that was factored")
            values = matrix.values
        else:
            _, _, (values,) = prepare(("A", A), least_axes=1, most_axes=1)
        wanted = self._matrix.values
        if values.shape != wanted.shape:
            raise ValueError(f"A: {values.shape[0]} values, but the pattern has {wanted.shape[0]}")
        if values.dtype != wanted.dtype:
            values = values.astype(wanted.dtype)
        self._made.refactor(np.ascontiguousarray(values))


class _Matrix:
    """A compressed sparse matrix with its pattern in host memory."""

    def __init__(self, A):
        if not (hasattr(A, "tocsr") and hasattr(A, "shape") and len(A.shape) == 2):
            raise TypeError(f"A: must be a sparse matrix of scipy.sparse or cupyx.scipy.sparse, got {type(A).__name__}")
        if A.format not in ("csr", "csc"):
            A = A.tocsr()
        self.shape, self.by_columns = A.shape, A.format == "csc"
        data = A.data
        self.like = data  # its library and device are those of solutions
        parts = (A.indptr, A.indices, data)
        if type(A).__module__.startswith("cupyx"):
            parts = tuple(part.get() for part in parts)
        self.pointers, self.indices = (self._index(part) for part in parts[:2])
        _, _, (values,) = prepare(("A", parts[2]), least_axes=1)
        self.values = np.ascontiguousarray(values)

    @staticmethod
    def _index(x):
        return np.ascontiguousarray(x if x.dtype in (np.int32, np.int64) else x.astype(np.int64))

    def compressed(self):
        return _core.Compressed(*self.shape, self.by_columns, self.pointers, self.indices, self.values)

    def place(self):
        return prepare(("A", self.like), least_axes=1)[1]

    def same_pattern(self, other):
        return (self.shape == other.shape and self.by_columns == other.by_columns and
                np.array_equal(self.pointers, other.pointers) and np.array_equal(self.indices, other.indices))


def _fitting(library, x, matrix, name, rows):
    """Right-hand sides in the matrix's type."""
    if library.name not in ("numpy", "cupy"):
        raise TypeError(f"{name}: must be a NumPy or CuPy array, got one of {library.name}")
    if x.shape[0] != rows:
        raise ValueError(f"{name}: of shape {tuple(x.shape)} must have {rows} rows")
    return library.strided(x.astype(matrix.values.dtype, copy=False))


def _wishes(ordering, processor, tolerance, detect_rank, deficient, keep_q, check_finite):
    if deficient not in ("solve", "raise"):
        raise ValueError(f"deficient: must be 'solve' or 'raise', got {deficient!r}")
    return _core.Wishes(ordering, processor, -1.0 if tolerance is None else float(tolerance), bool(detect_rank),
                        deficient == "raise", bool(keep_q), bool(check_finite))
