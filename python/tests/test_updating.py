# SPDX-License-Identifier: Apache-2.0
"""Updates: the object, and SciPy's functions."""
import numpy as np
import pytest
import scipy.linalg
from conftest import unit

import qrane


def both(rng, dtype, shape, mode):
    a = rng.standard_normal(shape).astype(dtype)
    return a, *qrane.qr(a, mode)


def check(a, q, r, expected):
    assert q.shape == expected[0].shape and r.shape == expected[1].shape
    assert np.allclose(q @ r, a, atol=1e3 * unit(a))
    assert np.allclose(q.T @ q, np.eye(q.shape[1]), atol=1e3 * unit(a))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("which", ["row", "col"])
@pytest.mark.parametrize("p", [1, 5])
@pytest.mark.parametrize("k", [0, 3, -1])
def test_insert_and_delete(rng, dtype, mode, which, p, k):
    a, q, r = both(rng, dtype, (30, 8), mode)
    axis = 0 if which == "row" else 1
    u = rng.standard_normal((p, 8) if which == "row" else (30, p)).astype(dtype)
    given = u[0] if p == 1 and which == "row" else u[:, 0] if p == 1 else u
    q1, r1 = qrane.qr_insert(q, r, given, k, which)
    at = k if k >= 0 else a.shape[axis] + k
    before, after = np.split(a, [at], axis)
    check(np.concatenate([before, u, after], axis), q1, r1, scipy.linalg.qr_insert(q, r, given, k, which))
    if k < 0:
        return
    q2, r2 = qrane.qr_delete(q1, r1, k, p, which)
    check(a, q2, r2, (q, r))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(30, 8), (8, 8)])
def test_rank_k(rng, dtype, mode, shape):
    a, q, r = both(rng, dtype, shape, mode)
    u, v = (rng.standard_normal((n, 2)).astype(dtype) for n in shape)
    check(a + u @ v.T, *qrane.qr_update(q, r, u, v), (q, r))
    check(a + np.outer(u[:, 0], v[:, 0]), *qrane.qr_update(q, r, u[:, 0], v[:, 0]), (q, r))


@pytest.mark.parametrize("keep", ["reduced", "complete", "implicit", "r"])
def test_object_follows_its_matrix(rng, keep):
    a, b = rng.standard_normal((50, 6)), rng.standard_normal(50)
    w = qrane.updatable(a[:30], keep, b=b[:30])
    w.insert_rows(30, a[30:], b[30:])
    assert np.allclose(w.solve(), np.linalg.lstsq(a, b, rcond=None)[0])
    if keep == "r":
        w.delete_rows(0, 20, a[:20], b[:20])
    else:
        w.delete_rows(0, 20)
    assert w.shape == (30, 6)
    x = np.linalg.lstsq(a[20:], b[20:], rcond=None)[0]
    assert np.allclose(w.solve(), x)
    assert np.allclose(w.residual_norms(), np.linalg.norm(a[20:] @ x - b[20:]))
    if keep != "r":
        u = rng.standard_normal(30)
        w.insert_columns(2, u)
        grown = np.insert(a[20:], 2, u, axis=1)
        assert np.allclose(w.q() @ w.r, grown)
        w.update(np.ones(30), np.arange(7.0))
        assert np.allclose(w.q() @ w.r, grown + np.outer(np.ones(30), np.arange(7.0)))
        assert w.drift() < 30
    w.delete_columns(0)
    assert w.shape == (30, 6 if keep != "r" else 5)


def test_refused_deletion_leaves_r_alone(rng):
    a = np.vstack([rng.standard_normal((3, 4)) * 1e-12, np.eye(4)])
    w = qrane.updatable(a, "r")
    r = w.r
    with pytest.raises(ValueError, match="carry the rank"):
        w.delete_rows(3, 4, a[3:])
    assert np.array_equal(w.r, r) and w.shape == (7, 4)


def test_bad_arguments(rng):
    q, r = qrane.qr(rng.standard_normal((10, 4)))
    for call, name in ((lambda: qrane.qr_insert(q, r, np.ones(5), 0), "u"),
                       (lambda: qrane.qr_insert(q, r, np.ones(4), 11), "k"),
                       (lambda: qrane.qr_insert(q, r, np.ones(4), 0, "diagonal"), "which"),
                       (lambda: qrane.qr_delete(q, r, 8, 3), "k"),
                       (lambda: qrane.qr_update(q, r, np.ones(9), np.ones(4)), "u, v"),
                       (lambda: qrane.qr_update(q[:, :2], r, np.ones(10), np.ones(4)), "Q, R"),
                       (lambda: qrane.updatable(np.ones((3, 2)), "some"), "keep")):
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
    w = qrane.updatable(np.eye(5, 3))
    with pytest.raises(ValueError, match="NaN"):
        w.insert_rows(0, [1, np.nan, 2])
    assert w.shape == (5, 3)
