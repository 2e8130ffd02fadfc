# SPDX-License-Identifier: Apache-2.0
"""QR and least squares in JAX, under jit, vmap and grad, forward and reverse.

Calls go to the host by `jax.pure_callback`: arrays on a GPU are copied there and back. (Outside jit, `qrane.qr` and its
like take JAX arrays where they are, without derivatives.) Derivatives exist where the matrix has full rank min(m, n),
for `qr` of a wide matrix where its first m columns are independent. Elsewhere they raise an error that says so. A
matrix counts as deficient where ``min(abs(diag(R))) <= (min(m, n) + 10) * eps * max(abs(diag(R)))``.

>>> import jax, jax.numpy as jnp, qrane.jax
>>> volume = lambda A: jnp.prod(jnp.abs(jnp.diag(qrane.jax.qr(A, "r"))))
>>> jax.jit(jax.grad(volume))(jnp.array([[2.0, 0.0], [0.0, 3.0]])).round(4).tolist()
[[3.0, 0.0], [0.0, 2.0]]
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import linear_call
from jax.scipy.linalg import solve_triangular

import qrane
import qrane.sparse

__all__ = ["SparseLeastSquares", "lstsq", "qr"]


def qr(a, mode="reduced"):
    """Thin QR factorization with derivatives.

    Parameters
    ----------
    a : (..., m, n) array
    mode : {'reduced', 'r'}
        'r' returns R alone; its derivatives need Q and form it.

    Returns
    -------
    QRResult or array
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f"mode: must be 'reduced' or 'r', got {mode!r}")
    return _r(a) if mode == "r" else qrane.QRResult(*_qr(a))


def lstsq(a, b):
    """Least-squares solution of A x = b with derivatives; of least norm where m < n.

    Parameters
    ----------
    a : (m, n) array; jax.vmap batches.
    b : (m,) or (m, k) array

    Returns
    -------
    array
        x, (n,) or (n, k). A rank-deficient matrix raises an error.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, qrane.jax
    >>> A, b = jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), jnp.array([3.0, 4.0, 5.0])
    >>> jax.jacobian(qrane.jax.lstsq, 1)(A, b).round(4).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]]
    """
    return _lstsq(a, b[:, None])[:, 0] if b.ndim == 1 else _lstsq(a, b)


def _call(function, shapes, *arrays):
    """A function of NumPy arrays of one type; shapes of its results are without leading axes."""
    kind = arrays[0].dtype
    lead = arrays[0].shape[:-2]
    one = isinstance(shapes, tuple)
    results = [jax.ShapeDtypeStruct(lead + shape, kind) for shape in ([shapes] if one else shapes)]

    def run(*xs):
        out = function(*(np.asarray(x) for x in xs))
        return [np.ascontiguousarray(x) for x in ([out] if one else out)]

    out = jax.pure_callback(run, results, *arrays, vmap_method="broadcast_all")
    return out[0] if one else tuple(out)


def _factors(a):
    m, n = a.shape[-2:]
    k = min(m, n)
    return _call(lambda x: qrane.qr(x, check_finite=False), [(m, k), (k, n)], a)


def _full_rank(r):
    """R, or an error where it has no derivatives."""
    def check(x):
        k = min(x.shape[-2:])
        diagonal = np.abs(np.diagonal(x, axis1=-2, axis2=-1))
        if k > 0 and np.any(diagonal.min(-1) <= (k + 10) * np.finfo(x.dtype).eps * diagonal.max(-1)):
            raise np.linalg.LinAlgError("a: is rank-deficient, and has no derivatives there")
        return x

    return _call(check, tuple(r.shape[-2:]), r)


def _t(x):
    return jnp.swapaxes(x, -1, -2)


def _over_r(x, r):
    """x R⁻¹ for square R."""
    return jax.lax.linalg.triangular_solve(r, x, left_side=False, lower=False)


def _tall_tangents(q, r, da):
    """With M = Qᵀ dA R⁻¹: dR = U R for upper U with U + Uᵀ = M + Mᵀ, and dQ = dA R⁻¹ - Q U."""
    c = _over_r(da, r)
    m = _t(q) @ c
    s = m + _t(m)
    u = jnp.triu(s) - s * (jnp.eye(s.shape[-1], dtype=s.dtype) / 2)
    return c - q @ u, u @ r


def _tangents(q, r, da):
    r = _full_rank(r)
    m, n = da.shape[-2:]
    if m >= n:
        return _tall_tangents(q, r, da)
    dq, dr = _tall_tangents(q, r[..., :m], da[..., :m])  # A = [A1, A2], R2 = Qᵀ A2, A2 = Q R2
    return dq, jnp.concatenate([dr, _t(q) @ da[..., m:] + _t(dq) @ (q @ r[..., m:])], -1)


@jax.custom_jvp
def _qr(a):
    return _factors(a)


@_qr.defjvp
def _(primals, tangents):
    factors = _factors(*primals)
    return factors, _tangents(*factors, *tangents)


@jax.custom_jvp
def _r(a):
    return _call(lambda x: qrane.qr(x, "r", check_finite=False), (min(a.shape[-2:]), a.shape[-1]), a)


@_r.defjvp
def _(primals, tangents):
    q, r = _factors(*primals)
    return r, _tangents(q, r, *tangents)[1]


def _pseudo_inverse(a):
    """(A⁺, A⁺ᵀ) as functions, from one factorization, of A or of Aᵀ."""
    tall = a.shape[0] >= a.shape[1]
    q, r = _factors(a if tall else a.T)
    r = _full_rank(r)
    forward = lambda e: solve_triangular(r, q.T @ e)
    adjoint = lambda e: q @ solve_triangular(r, e, trans=1)
    return (forward, adjoint) if tall else (adjoint, forward)


@jax.custom_jvp
def _lstsq(a, b):
    return _pseudo_inverse(a)[0](b)


@_lstsq.defjvp
def _(primals, tangents):
    """As qrane.torch._Lstsq."""
    (a, b), (da, db) = primals, tangents
    plus, plus_t = _pseudo_inverse(a)
    x = plus(b)
    dx = plus(db - da @ x)
    if a.shape[0] >= a.shape[1]:
        return x, dx + plus(plus_t(da.T @ (b - a @ x)))
    t = da.T @ plus_t(x)
    return x, dx + t - plus(a @ t)


class SparseLeastSquares:
    """Sparse least squares with derivatives by A's values and b: analyzed once, factored again in every step.

    Parameters
    ----------
    A : sparse array or matrix of scipy.sparse, (m, n), m >= n
        Its pattern counts; its values are the first ones.
    **options
        As in `qrane.sparse.qr`.
    """

    def __init__(self, A, **options):
        if A.shape[0] < A.shape[1]:
            raise ValueError(f"A: must have as many rows as columns or more, got {A.shape[0]} x {A.shape[1]}")
        if A.format not in ("csr", "csc"):
            A = A.tocsr()
        self.shape, self._factor = A.shape, qrane.sparse.qr(A, deficient="raise", **options)
        lines = np.repeat(np.arange(len(A.indptr) - 1), np.diff(A.indptr))
        self._rows, self._cols = (lines, A.indices) if A.format == "csr" else (A.indices, lines)
        self._present = None
        self._solve = jax.custom_jvp(lambda values, b: self._plus(values, b))
        self._solve.defjvp(self._derivative)

    def __call__(self, values, b):
        """x for A with these values, in the order of A.data, and right-hand sides b, (m,) or (m, k)."""
        return self._solve(values, b[:, None])[:, 0] if b.ndim == 1 else self._solve(values, b)

    def _host(self, name, values, b):
        if self._present is None or not np.array_equal(self._present, values):
            self._present = None  # a failure leaves no factorization
            self._factor.refactor(np.asarray(values))
            self._present = np.array(values)
        return np.ascontiguousarray(getattr(self._factor, name)(np.asarray(b)))

    def _apply(self, name, rows, values, b):
        return jax.pure_callback(functools.partial(self._host, name),
                                 jax.ShapeDtypeStruct((rows, b.shape[1]), b.dtype), values, b,
                                 vmap_method="sequential")

    def _plus(self, values, b):
        """A⁺ b, linear in b."""
        return linear_call(functools.partial(self._apply, "solve", self.shape[1]),
                           functools.partial(self._apply, "solve_transposed", self.shape[0]), values, b)

    def _plus_t(self, values, b):
        return linear_call(functools.partial(self._apply, "solve_transposed", self.shape[0]),
                           functools.partial(self._apply, "solve", self.shape[1]), values, b)

    def _times(self, values, x):
        return jnp.zeros((self.shape[0], x.shape[1]), x.dtype).at[self._rows].add(values[:, None] * x[self._cols])

    def _times_t(self, values, y):
        return jnp.zeros((self.shape[1], y.shape[1]), y.dtype).at[self._cols].add(values[:, None] * y[self._rows])

    def _derivative(self, primals, tangents):
        (values, b), (dvalues, db) = primals, tangents
        x = self._plus(values, b)
        residual = b - self._times(values, x)
        dx = self._plus(values, db - self._times(dvalues, x))
        return x, dx + self._plus(values, self._plus_t(values, self._times_t(dvalues, residual)))
