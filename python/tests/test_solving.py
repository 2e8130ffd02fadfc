# SPDX-License-Identifier: Apache-2.0
"""lstsq, svd, the factor object, and robust PCA."""
import numpy as np
import pytest
from conftest import unit

import qrane


@pytest.mark.parametrize("shape", [(60, 8), (8, 60), (20, 20), (5000, 30)])
@pytest.mark.parametrize("sides", [None, 1, 4])
def test_lstsq(rng, dtype, shape, sides):
    a = rng.standard_normal(shape).astype(dtype)
    b = rng.standard_normal(shape[:1] + (() if sides is None else (sides,))).astype(dtype)
    x, residues, rank, s = qrane.lstsq(a, b)
    expected, squares, expected_rank, _ = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=None)
    assert x.shape == expected.shape and x.dtype == dtype and rank == expected_rank and s is None
    assert np.allclose(x, expected, atol=3e3 * unit(a))
    assert residues.shape == squares.shape and np.allclose(residues, squares, rtol=1e3 * unit(a))


def test_lstsq_says_rank(rng):
    a = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 6))
    b = rng.standard_normal(50)
    x, residues, rank, _ = qrane.lstsq(a, b)
    assert rank == 3 and residues.size == 0
    assert np.allclose(x, np.linalg.lstsq(a, b, rcond=1e-12)[0])
    basic = qrane.lstsq(a, b, least_norm=False).x
    assert np.count_nonzero(basic) == 3 and np.allclose(a @ basic, a @ x)
    with pytest.raises(np.linalg.LinAlgError, match="rank"):
        qrane.lstsq(a, b, deficient="raise")


def test_lstsq_batches(rng):
    a, b = rng.standard_normal((2, 3, 9, 4)), rng.standard_normal((2, 3, 9, 2))
    x, _, ranks, _ = qrane.lstsq(a, b)
    assert ranks.shape == (2, 3) and np.all(ranks == 4)
    assert np.allclose(np.swapaxes(a, -1, -2) @ (a @ x - b), 0)
    assert np.allclose(qrane.lstsq(a, b[..., 0]).x, x[..., 0])


def test_lstsq_promotes_to_common_type(rng):
    a, b = rng.standard_normal((9, 2)).astype(np.float32), rng.standard_normal(9)
    assert qrane.lstsq(a, b).x.dtype == np.float64
    assert qrane.lstsq(a, np.arange(9)).x.dtype == np.float64


@pytest.mark.parametrize("shape", [(60, 8), (8, 60), (20, 20), (2, 3, 12, 5)])
@pytest.mark.parametrize("full", [True, False])
def test_svd(rng, dtype, shape, full):
    a = rng.standard_normal(shape).astype(dtype)
    u, s, vh = qrane.svd(a, full_matrices=full)
    expected = np.linalg.svd(a, full_matrices=full)
    assert [p.shape for p in (u, s, vh)] == [p.shape for p in expected]
    assert np.allclose(s, expected[1], atol=100 * unit(a))
    assert np.allclose(qrane.svd(a, compute_uv=False), s, atol=100 * unit(a))
    k = s.shape[-1]
    assert np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=100 * unit(a))
    for part in (u, np.swapaxes(vh, -1, -2)):
        gram = np.swapaxes(part, -1, -2) @ part
        assert np.allclose(gram, np.eye(gram.shape[-1]), atol=100 * unit(a))


def test_factor(rng, dtype):
    a = rng.standard_normal((40, 6)).astype(dtype)
    f = qrane.factor(a)
    assert f.shape == (40, 6) and f.rank() == 6 and f.condition() >= 1
    assert np.allclose(f.q() @ f.r, a, atol=100 * unit(a))
    q = f.q("complete")
    c = rng.standard_normal((40, 3)).astype(dtype)
    assert np.allclose(f.apply_q(c), q @ c, atol=100 * unit(a))
    assert np.allclose(f.apply_qt(c), q.T @ c, atol=100 * unit(a))
    assert np.allclose(f.apply_q(c.T, "right"), c.T @ q, atol=100 * unit(a))
    assert np.allclose(f.apply_qt(c[:, 0]), q.T @ c[:, 0], atol=100 * unit(a))
    x = f.solve(c)
    assert np.allclose(x, np.linalg.lstsq(a, c, rcond=None)[0], atol=1e3 * unit(a))
    assert f.solve(c[:, 0]).shape == (6,)
    f.refactor(2 * a)
    assert np.allclose(f.solve(c), x / 2, atol=1e3 * unit(a))
    assert "40 x 6" in f.explain()


def test_factor_bases_and_determinant(rng):
    a = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 5))
    f = qrane.factor(a)
    assert f.rank() == 3 and f.range_basis().shape == (20, 3)
    assert np.allclose(a @ f.null_space_basis(), 0)
    square = rng.standard_normal((7, 7))
    assert np.allclose(qrane.factor(square).slogdet(), np.linalg.slogdet(square))


def test_batch_factor(rng):
    a = rng.standard_normal((2, 3, 10, 4))
    f = qrane.factor(a)
    assert np.allclose(f.q() @ f.r, a)
    c = rng.standard_normal((2, 3, 10, 2))
    assert np.allclose(f.apply_q(f.apply_qt(c)), c)
    assert np.allclose(np.swapaxes(a, -1, -2) @ (a @ f.solve(c) - c), 0)
    f.refactor(3 * a)
    assert np.allclose(f.q() @ f.r, 3 * a)


def test_factor_outlives_its_matrix(rng):
    f = qrane.factor(rng.standard_normal((30, 5)))
    r = f.r
    expected = r.copy()
    del f
    rng.standard_normal((1000, 1000))
    assert np.array_equal(r, expected)


def test_robust_pca(rng, dtype):
    low = (rng.standard_normal((600, 2)) @ rng.standard_normal((2, 60))).astype(dtype)
    spikes = np.where(rng.random(low.shape) < 0.05, 20, 0).astype(dtype)
    seen = []
    result = qrane.robust_pca(low + spikes, tol=1e-5, callback=lambda i, residual, rank: seen.append(residual))
    assert result.converged and result.rank == 2 and result.low_rank.dtype == dtype
    assert np.linalg.norm(result.low_rank - low) <= 1e-3 * np.linalg.norm(low)
    assert len(seen) == result.iterations and seen[-1] <= 1e-5
    stopped = qrane.robust_pca(low + spikes, callback=lambda i, *_: i < 3)
    assert stopped.iterations == 3 and not stopped.converged
    with pytest.raises(ZeroDivisionError):
        qrane.robust_pca(low, callback=lambda *_: 1 / 0)
