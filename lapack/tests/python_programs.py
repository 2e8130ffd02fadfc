#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NumPy and SciPy return when every LAPACK call is forced through qrane: run by `qrane lapack --min 0 --`.

The results are judged by their own properties.
"""
import numpy
import scipy.linalg

rng = numpy.random.default_rng(7)


def near(a, b, scale=1.0):
    unit = 1e-4 if numpy.asarray(a).dtype == numpy.float32 else 1e-10
    assert numpy.allclose(a, b, rtol=0, atol=scale * unit), (a, b)


def check_qr(a, q, r):
    near(q @ r, a, numpy.abs(a).max() * 10)
    near(q.T @ q, numpy.eye(q.shape[1]))
    near(numpy.tril(r, -1), numpy.zeros_like(r))


def check_least_squares(a, b, x):
    near(a.T @ (a @ x - b), numpy.zeros_like(a.T @ b), numpy.abs(a).max() * numpy.abs(b).max() * len(a))


for dtype in numpy.float32, numpy.float64:
    for m, n in (60, 12), (25, 25), (400, 30):
        a = rng.standard_normal((m, n)).astype(dtype)
        b = rng.standard_normal((m, 3)).astype(dtype)
        for mode in "reduced", "complete":
            check_qr(a, *numpy.linalg.qr(a, mode))
        x, residual, rank, s = numpy.linalg.lstsq(a, b, rcond=None)
        check_least_squares(a, b, x)
        assert rank == n
        if m > n:
            near(residual, ((a @ x - b) ** 2).sum(axis=0), m)
        near(s, numpy.linalg.svd(a, compute_uv=False), m)
        for driver in "gelsd", "gelss", "gelsy":
            check_least_squares(a, b, scipy.linalg.lstsq(a, b, lapack_driver=driver)[0])
        q, r, p = scipy.linalg.qr(a, mode="economic", pivoting=True)
        check_qr(a[:, p], q, r)
        assert (numpy.abs(numpy.diag(r)) <= numpy.abs(r[0, 0]) * 1.001).all()
        q, r = scipy.linalg.qr(a)
        near(q @ r, a, 10)
        q, r = scipy.linalg.qr_insert(q, r, rng.standard_normal(n).astype(dtype), 3)
        near(q.T @ q, numpy.eye(m + 1))
        near(scipy.linalg.qr_multiply(a, b.T, mode="right")[0] @ scipy.linalg.qr(a, mode="economic")[0].T,
             b.T @ (lambda q: q @ q.T)(scipy.linalg.qr(a, mode="economic")[0]), 10)
        r, q = scipy.linalg.rq(a.T)
        near(r @ q, a.T, 10)
t = numpy.linspace(-1, 1, 200)
near(numpy.polyfit(t, 3 * t**2 - t + 2, 2), [3, -1, 2])
print(numpy.__version__, scipy.__version__)
