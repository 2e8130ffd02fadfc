# SPDX-License-Identifier: Apache-2.0
"""Derivatives in JAX, by finite differences in both modes."""
import numpy as np
import pytest
import scipy.sparse

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import qrane.jax  # noqa: E402


def matrix(rng, shape, condition):
    u, _, v = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    return jnp.asarray((u * np.geomspace(1, 1 / condition, min(shape))) @ v)


def along(function, a, condition, rng):
    """The derivative along a direction that is small against every singular value, in both modes."""
    direction = rng.standard_normal(a.shape) / condition
    h = 1e-4
    difference = (function(a + h * direction) - function(a - h * direction)) / (2 * h)
    forward = jax.jvp(function, (a,), (direction,))[1]
    weights = rng.standard_normal(difference.shape)
    gradient = jax.grad(lambda a: (function(a) * weights).sum())(a)
    scale = np.linalg.norm(difference)
    assert np.linalg.norm(forward - difference) <= 1e-3 * scale
    assert abs((gradient * direction).sum() - (forward * weights).sum()) <= 1e-6 * (1 + scale) * np.linalg.norm(weights)


@pytest.mark.parametrize("shape", [(7, 4), (4, 4), (4, 7)])
@pytest.mark.parametrize("condition", [1, 1e4, 1e8])
def test_derivatives(rng, shape, condition):
    a, b = matrix(rng, shape, condition), rng.standard_normal((shape[0], 2))
    along(lambda a: qrane.jax.qr(a, "r"), a, condition, rng)
    along(lambda a: qrane.jax.qr(a).Q, a, condition, rng)
    along(lambda a: qrane.jax.lstsq(a, b), a, condition, rng)


def test_check_grads(rng):
    a, b = matrix(rng, (6, 3), 10), jnp.asarray(rng.standard_normal(6))
    check_grads(qrane.jax.qr, (a,), 1)
    check_grads(qrane.jax.lstsq, (a, b), 1)


def test_jit_and_vmap(rng):
    a, b = jnp.asarray(rng.standard_normal((5, 8, 3))), jnp.asarray(rng.standard_normal((5, 8)))
    q, r = jax.jit(qrane.jax.qr)(a)
    assert np.allclose(q @ r, a)
    assert np.allclose(jax.vmap(qrane.jax.qr)(a).R, r)
    x = jax.jit(jax.vmap(qrane.jax.lstsq))(a, b)
    for i in range(5):
        assert np.allclose(x[i], np.linalg.lstsq(a[i], b[i], rcond=None)[0])


def test_deficient_raises():
    with pytest.raises(Exception, match="rank-deficient"):
        jax.grad(lambda a: qrane.jax.qr(a, "r").sum())(jnp.ones((5, 2)))
    with pytest.raises(Exception, match="rank-deficient"):
        jax.block_until_ready(qrane.jax.lstsq(jnp.ones((5, 2)), jnp.ones(5)))


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse(rng, form):
    a = (scipy.sparse.random_array((12, 5), density=0.2, rng=rng) + scipy.sparse.eye_array(12, 5)).asformat(form)
    solver = qrane.jax.SparseLeastSquares(a)
    b = jnp.asarray(rng.standard_normal(12))
    assert np.allclose(solver(jnp.asarray(a.data), b), np.linalg.lstsq(a.toarray(), b, rcond=None)[0])
    check_grads(solver, (jnp.asarray(a.data), b), 1)
    check_grads(jax.jit(solver), (2 * jnp.asarray(a.data), b), 1)
