# SPDX-License-Identifier: Apache-2.0
"""QR and least squares of PyTorch tensors with derivatives, forward and reverse.

Derivatives exist where the matrix has full rank min(m, n), for `qr` of a wide matrix where its first m columns are
independent. Elsewhere differentiation raises `numpy.linalg.LinAlgError`. A matrix counts as deficient where
``min(abs(diag(R))) <= (min(m, n) + 10) * eps * max(abs(diag(R)))``.

>>> import torch, qrane.torch
>>> A = torch.eye(4, 2, dtype=torch.float64).requires_grad_()
>>> b = torch.arange(4.0, dtype=torch.float64)
>>> qrane.torch.lstsq(A, b).sum().backward()
>>> A.grad.tolist()
[[0.0, -1.0], [0.0, -1.0], [2.0, 2.0], [3.0, 3.0]]
"""

import numpy as np
import torch
from torch.autograd.function import once_differentiable

import qrane
import qrane.sparse

__all__ = ["SparseLeastSquares", "lstsq", "qr"]


def qr(a, mode="reduced"):
    """Thin QR factorization with derivatives.

    Parameters
    ----------
    a : (..., m, n) tensor
    mode : {'reduced', 'r'}
        'r' returns R alone.

    Returns
    -------
    QRResult or tensor

    Examples
    --------
    >>> import torch, qrane.torch
    >>> A = torch.tensor([[3.0, 1.0], [4.0, 2.0]], dtype=torch.float64, requires_grad=True)
    >>> R = qrane.torch.qr(A, mode="r")
    >>> R.diagonal().abs().log().sum().backward()  # log |det A|
    >>> bool(torch.allclose(A.grad, torch.linalg.inv(A.detach()).T))
    True
    """
    if mode not in ("reduced", "r"):
        raise ValueError(f"mode: must be 'reduced' or 'r', got {mode!r}")
    if a.ndim > 3:  # a custom function must not return views
        parts = qr(a.flatten(0, -3), mode)
        lead = a.shape[:-2]
        return parts.unflatten(0, lead) if mode == "r" else qrane.QRResult(*(x.unflatten(0, lead) for x in parts))
    return _R.apply(a) if mode == "r" else qrane.QRResult(*_QR.apply(a))


def lstsq(a, b):
    """Least-squares solution of A x = b with derivatives; of least norm where m < n.

    Parameters
    ----------
    a : (..., m, n) tensor
    b : (m,), (..., m) or (..., m, k) tensor

    Returns
    -------
    tensor
        x, (..., n) or (..., n, k). A rank-deficient matrix raises `numpy.linalg.LinAlgError`.
    """
    if a.ndim > 3:
        return lstsq(a.flatten(0, -3), b.flatten(0, a.ndim - 3)).unflatten(0, a.shape[:-2])
    vector = b.ndim == a.ndim - 1
    x, _ = _Lstsq.apply(a, b[..., None] if vector else b)
    return x[..., 0] if vector else x


def _check_rank(r):
    k = min(r.shape[-2:])
    diagonal = r.detach().diagonal(dim1=-2, dim2=-1).abs()
    if k > 0 and bool((diagonal.amin(-1) <= (k + 10) * torch.finfo(r.dtype).eps * diagonal.amax(-1)).any()):
        raise np.linalg.LinAlgError("a: is rank-deficient, and has no derivatives there")


def _over_r(x, r):
    """x R⁻¹ for square R."""
    return torch.linalg.solve_triangular(r, x, upper=True, left=False)


def _over_rt(x, r):
    """x R⁻ᵀ"""
    return torch.linalg.solve_triangular(r.mT, x, upper=False, left=False)


def _half_upper(x):
    """The upper triangle with half the diagonal: U with U + Uᵀ = x for symmetric x."""
    return x.triu(1) + torch.diag_embed(x.diagonal(dim1=-2, dim2=-1)) / 2


def _tall_tangents(q, r, da):
    """dQ and dR of a tall matrix: with M = Qᵀ dA R⁻¹, dR = U R for U + Uᵀ = M + Mᵀ, and dQ = dA R⁻¹ - Q U."""
    c = _over_r(da, r)
    m = q.mT @ c
    u = _half_upper(m + m.mT)
    return c - q @ u, u @ r


def _tall_gradient(q, r, gq, gr):
    """The adjoint: (gQ + Q S) R⁻ᵀ, S symmetric with the lower triangle of R gRᵀ - gQᵀ Q."""
    m = r @ gr.mT - (0 if gq is None else gq.mT @ q)
    s = m.tril() + m.tril(-1).mT
    return _over_rt(q @ s if gq is None else gq + q @ s, r)


def _tangents(q, r, da):
    m, n = da.shape[-2:]
    if m >= n:
        return _tall_tangents(q, r, da)
    dq, dr = _tall_tangents(q, r[..., :m], da[..., :m])  # A = [A1, A2], R2 = Qᵀ A2, A2 = Q R2
    return dq, torch.cat([dr, q.mT @ da[..., m:] + dq.mT @ (q @ r[..., m:])], -1)


def _gradient(q, r, gq, gr):
    m, n = q.shape[-2], r.shape[-1]
    if m >= n:
        return _tall_gradient(q, r, gq, gr)
    more = q @ r[..., m:] @ gr[..., m:].mT
    first = _tall_gradient(q, r[..., :m], more if gq is None else gq + more, gr[..., :m])
    return torch.cat([first, q @ gr[..., m:]], -1)


class _QR(torch.autograd.Function):
    @staticmethod
    def forward(a):
        return tuple(qrane.qr(a.detach()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output)

    @staticmethod
    def backward(ctx, gq, gr):
        q, r = ctx.saved_tensors
        _check_rank(r)
        return _gradient(q, r, gq, gr)

    @staticmethod
    def jvp(ctx, da):
        q, r = ctx.saved_tensors
        _check_rank(r)
        return _tangents(q, r, da)


class _R(torch.autograd.Function):
    """R alone. The derivatives need Q = A R⁻¹ for the first k columns of A."""

    @staticmethod
    def forward(a):
        return qrane.qr(a.detach(), mode="r")

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx, gr):
        a, r = ctx.saved_tensors
        _check_rank(r)
        k = r.shape[-2]
        return _gradient(_over_r(a[..., :k], r[..., :k]), r, None, gr)

    @staticmethod
    def jvp(ctx, da):
        a, r = ctx.saved_tensors
        _check_rank(r)
        k = r.shape[-2]
        return _tangents(_over_r(a[..., :k], r[..., :k]), r, da)[1]


class _Lstsq(torch.autograd.Function):
    """x = A⁺ b. With r = b - A x and A of full column rank: dx = A⁺ (db - dA x) + (AᵀA)⁻¹ dAᵀ r. Of full row rank,
    with w = A⁺ᵀ x: dx = A⁺ (db - dA x) + (I - A⁺A) dAᵀ w. Both from one factorization, of A or of Aᵀ."""

    @staticmethod
    def forward(a, b):
        a, b = a.detach(), b.detach()
        tall = a.shape[-2] >= a.shape[-1]
        f = qrane.factor(a if tall else a.mT)
        r = f.r
        _check_rank(r)
        return f.solve(b) if tall else _transposed_solve(f, r, b), f

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b = inputs
        x, ctx.factor = output
        ctx.tall, ctx.r = a.shape[-2] >= a.shape[-1], ctx.factor.r
        ctx.save_for_backward(a, b, x)
        ctx.save_for_forward(a, b, x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g, _):
        a, b, x = ctx.saved_tensors
        f, r = ctx.factor, ctx.r
        if ctx.tall:
            gb = _transposed_solve(f, r, g)
            return (b - a @ x) @ f.solve(gb).mT - gb @ x.mT, gb
        gb, w = f.solve(g), f.solve(x)
        return w @ (g - a.mT @ gb).mT - gb @ x.mT, gb

    @staticmethod
    def jvp(ctx, da, db):
        a, b, x = ctx.saved_tensors
        f, r = ctx.factor, ctx.r
        e = -(da @ x) if da is not None else torch.zeros_like(b)
        if db is not None:
            e = e + db
        if ctx.tall:
            dx = f.solve(e)
            if da is not None:
                dx = dx + f.solve(_transposed_solve(f, r, da.mT @ (b - a @ x)))
            return dx, None
        dx = _transposed_solve(f, r, e)
        if da is not None:
            t = da.mT @ f.solve(x)
            dx = dx + t - a.mT @ f.solve(t)
        return dx, None


def _transposed_solve(f, r, g):
    """A⁺ᵀ g = Q [R⁻ᵀ g; 0] for tall A = Q R."""
    y = torch.linalg.solve_triangular(r.mT, g, upper=False)
    rows = f.shape[-2] - y.shape[-2]
    return f.apply_q(torch.cat([y, y.new_zeros((*y.shape[:-2], rows, y.shape[-1]))], -2))


class SparseLeastSquares:
    """Sparse least squares with derivatives by A's values and b: analyzed once, factored again in every step.

    Parameters
    ----------
    A : sparse array or matrix of scipy.sparse, (m, n), m >= n
        Its pattern counts; its values are the first ones.
    **options
        As in `qrane.sparse.qr`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, torch, qrane.torch
    >>> A = scipy.sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> solver = qrane.torch.SparseLeastSquares(A)
    >>> values = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> x = solver(values, torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64))
    >>> x.sum().backward()
    >>> x.tolist(), values.grad.tolist()
    ([3.0, 2.0], [-3.0, -1.0])
    """

    def __init__(self, A, **options):
        if A.shape[0] < A.shape[1]:
            raise ValueError(f"A: must have as many rows as columns or more, got {A.shape[0]} x {A.shape[1]}")
        if A.format not in ("csr", "csc"):
            A = A.tocsr()
        self.factor = qrane.sparse.qr(A, deficient="raise", **options)
        self._matrix = type(A)(A)  # another header over the same pattern
        lines = np.repeat(np.arange(len(A.indptr) - 1), np.diff(A.indptr))
        pair = (lines, A.indices) if A.format == "csr" else (A.indices, lines)
        self._rows, self._cols = (torch.from_numpy(i.astype(np.int64)) for i in pair)
        self._present = None

    def __call__(self, values, b):
        """x for A with these values, in the order of A.data, and right-hand sides b, (m,) or (m, k)."""
        vector = b.ndim == 1
        x = _SparseLstsq.apply(values, b[:, None] if vector else b, self)
        return x[:, 0] if vector else x

    def _with(self, values):
        """The factorization and matrix for these values."""
        numbers = values.detach().numpy()
        if self._present is None or not np.array_equal(self._present, numbers):
            self._present = None  # a failure leaves no factorization
            self.factor.refactor(numbers)
            self._present = numbers.copy()
        self._matrix.data = self._present
        return self.factor, self._matrix

    def _per_entry(self, u, v):
        """Entries of u vᵀ at the pattern's places."""
        return (u[self._rows] * v[self._cols]).sum(-1)


class _SparseLstsq(torch.autograd.Function):
    """As _Lstsq for a tall matrix; the adjoint by A is only formed at the pattern's entries."""

    @staticmethod
    def forward(values, b, solver):
        f, _ = solver._with(values)
        return torch.from_numpy(np.ascontiguousarray(f.solve(b.detach().numpy())))

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.solver = inputs
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        values, b, x = ctx.saved_tensors
        f, a = ctx.solver._with(values)
        gb = f.solve_transposed(g.numpy())
        y = torch.from_numpy(np.ascontiguousarray(f.solve(gb)))
        gb = torch.from_numpy(np.ascontiguousarray(gb))
        residual = b - torch.from_numpy(a @ x.numpy())
        return ctx.solver._per_entry(residual, y) - ctx.solver._per_entry(gb, x), gb, None

    @staticmethod
    def jvp(ctx, dvalues, db, _):
        values, b, x = ctx.saved_tensors
        f, a = ctx.solver._with(values)
        e = np.zeros(b.shape) if db is None else db.numpy()
        if dvalues is None:
            return torch.from_numpy(np.ascontiguousarray(f.solve(e)))
        da = a.copy()
        da.data = dvalues.detach().numpy()
        residual = b.numpy() - a @ x.numpy()
        dx = f.solve(e - da @ x.numpy()) + f.solve(f.solve_transposed(da.T @ residual))
        return torch.from_numpy(np.ascontiguousarray(dx))
