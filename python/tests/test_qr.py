# SPDX-License-Identifier: Apache-2.0
"""qrane.qr, pivoted_qr and qr_multiply on NumPy arrays, against their definition and NumPy and SciPy."""
import numpy as np
import pytest
import scipy.linalg
from conftest import unit

import qrane

SHAPES = [(1, 1), (5, 1), (1, 5), (40, 7), (7, 40), (33, 33), (2000, 9)]


def check_factors(a, q, r):
    a = np.asarray(a, np.float64)
    assert np.linalg.norm(q.T.astype(float) @ q - np.eye(q.shape[1])) <= unit(q)
    assert np.all(np.linalg.norm(q.astype(float) @ r - a, axis=0) <= unit(q) * np.linalg.norm(a, axis=0))
    assert np.all(np.tril(r, -1) == 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_modes(rng, dtype, shape):
    a = rng.standard_normal(shape).astype(dtype)
    for mode in ("reduced", "economic", "complete", "full"):
        q, r = qrane.qr(a, mode)
        expected = np.linalg.qr(a, "reduced" if mode in ("reduced", "economic") else "complete")
        assert (q.shape, r.shape) == (expected[0].shape, expected[1].shape)
        assert q.dtype == r.dtype == dtype
        check_factors(a, q, r)
    alone = qrane.qr(a, "r")
    assert np.allclose(np.abs(alone), np.abs(np.linalg.qr(a, "r")), atol=100 * unit(a))
    result = qrane.qr(a)
    assert result.Q is result[0] and result.R is result[1]


def test_raw_is_lapack_shaped(rng, dtype):
    a = rng.standard_normal((50, 8)).astype(dtype)
    h, tau = qrane.qr(a, "raw")
    assert h.shape == (8, 50) and tau.shape == (8,)
    q, r = np.eye(50), np.triu(h.T[:8])
    for j in reversed(range(8)):
        v = np.concatenate([np.zeros(j), [1], h.T[j + 1:, j]])
        q -= tau[j] * np.outer(v, v @ q)
    assert np.allclose(q[:, :8] @ r, a, atol=100 * unit(a))


@pytest.mark.parametrize("lead", [(3,), (2, 3), (0,), (2, 1, 2)])
@pytest.mark.parametrize("shape", [(8, 8), (20, 4), (4, 20)])
def test_batches(rng, dtype, lead, shape):
    a = rng.standard_normal(lead + shape).astype(dtype)
    q, r = qrane.qr(a)
    assert q.shape == lead + (shape[0], min(shape)) and r.shape == lead + (min(shape), shape[1])
    assert np.allclose(q @ r, a, atol=100 * unit(a))
    assert np.allclose(np.abs(qrane.qr(a, "r")), np.abs(r), atol=100 * unit(a))
    if 0 not in lead:
        full, tall = qrane.qr(a, "complete")
        assert full.shape == lead + (shape[0],) * 2 and np.allclose(full @ tall, a, atol=100 * unit(a))
        assert qrane.qr(a, "raw")[0].shape == lead + shape[::-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_empty_sides(shape):
    for a in (np.zeros((0, shape[1])), np.zeros((shape[0], 0)), np.zeros((0, 0))):
        q, r = qrane.qr(a)
        expected = np.linalg.qr(a)
        assert (q.shape, r.shape) == (expected[0].shape, expected[1].shape)


def layouts(a):
    wide = np.zeros((2 * a.shape[0], 3 * a.shape[1]), a.dtype)
    wide[::2, ::3] = a
    slack = np.zeros((a.shape[0], a.shape[1] + 3), a.dtype)
    slack[:, :-3] = a
    read_only = a.copy()
    read_only.flags.writeable = False
    records = np.zeros(a.shape, [("value", a.dtype), ("other", "i1")])
    records["value"] = a
    yield from (np.ascontiguousarray(a), np.asfortranarray(a), wide[::2, ::3], slack[:, :-3], slack.T[:-3].T,
                a[::-1].copy()[::-1], a[:, ::-1].copy()[:, ::-1], read_only, a.astype(a.dtype.newbyteorder(">")),
                records["value"], np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape))


def test_memory_layouts_give_one_result(rng, dtype):
    a = rng.standard_normal((30, 6)).astype(dtype)
    r = qrane.qr(a, "r")
    for other in layouts(a):
        before = other.copy()
        assert np.allclose(qrane.qr(other, "r"), r, rtol=0, atol=100 * unit(a))
        assert np.array_equal(other, before)


def test_broadcast_array():
    a = np.broadcast_to(np.arange(1.0, 4.0), (5, 3))
    q, r = qrane.qr(a)
    assert np.allclose(q @ r, a)
    batch = np.broadcast_to(np.vander(np.arange(4.0)), (3, 4, 4))
    q, r = qrane.qr(batch)
    assert np.allclose(q @ r, batch)


def test_batch_layouts(rng):
    a = rng.standard_normal((4, 6, 5))
    for other in (a, np.asfortranarray(a), a.transpose(0, 2, 1), a[::-1], a[::2], a[:, ::-1], a.transpose(2, 1, 0)):
        q, r = qrane.qr(other)
        assert np.allclose(q @ r, other)


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "i8", "?"])
def test_integers_are_promoted(kind):
    a = (np.arange(12).reshape(4, 3) % 5).astype(kind)
    q, r = qrane.qr(a)
    assert q.dtype == np.float64 and np.allclose(q @ r, a)


def test_lists():
    q, r = qrane.qr([[1, 2], [3, 4.5], [5, 6]])
    assert np.allclose(q @ r, [[1, 2], [3, 4.5], [5, 6]])


def test_repeats_bit_for_bit(rng):
    a = rng.standard_normal((5000, 40))
    assert np.array_equal(qrane.qr(a, "r"), qrane.qr(a, "r"))


@pytest.mark.parametrize("shape", [(50, 10), (10, 50), (12, 12)])
def test_pivoting(rng, dtype, shape):
    a = (rng.standard_normal(shape) * 10.0 ** -np.arange(shape[1])[::-1].clip(0, 6)).astype(dtype)
    q, r, p = qrane.qr(a, pivoting=True)
    check_factors(a[:, p], q, r)
    diagonal = np.abs(np.diag(r))
    assert np.all(diagonal[1:] <= diagonal[:-1] * (1 + unit(a)))
    r_only, p_only = qrane.qr(a, "r", pivoting=True)
    assert np.array_equal(p_only, p) and np.allclose(r_only, r)
    full = qrane.qr(a, "full", pivoting=True)
    assert full[0].shape == (shape[0],) * 2 and full[1].shape == shape
    check_factors(a[:, full[2]], full[0], full[1])


def test_pivoted_rank(rng):
    a = rng.standard_normal((80, 6)) @ rng.standard_normal((6, 20))
    result = qrane.pivoted_qr(a)
    assert result.rank == 6 and result.Q.shape == (80, 20)
    short = qrane.pivoted_qr(a, truncate=True)
    assert short.Q.shape == (80, 6) and np.allclose(short.Q @ short.R, a[:, short.P])
    assert qrane.pivoted_qr(a, max_rank=3).R.shape == (3, 20)
    batch = qrane.pivoted_qr(np.stack([a, rng.standard_normal((80, 20))]))
    assert batch.rank.tolist() == [6, 20]
    assert qrane.pivoted_qr(a, mode="r").Q is None


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("pivoting", [False, True])
def test_multiply(rng, shape, pivoting):
    a, k = rng.standard_normal(shape), min(shape)
    for mode, c in (("left", rng.standard_normal((k, 3))), ("right", rng.standard_normal((3, shape[0]))),
                    ("left", rng.standard_normal(k)), ("right", rng.standard_normal(shape[0]))):
        out = qrane.qr_multiply(a, c, mode, pivoting)
        expected = scipy.linalg.qr_multiply(a, c, mode, pivoting)
        assert out[0].shape == expected[0].shape and out[1].shape == expected[1].shape
        signs = np.sign(np.diag(out[1][:k, :k])) * np.sign(np.diag(expected[1][:k, :k]))
        assert np.allclose(signs[:, None] * out[1][:k], expected[1][:k])
        scaled = c * signs[:, None] if mode == "left" and c.ndim == 2 else c * signs if mode == "left" else c
        product = qrane.qr_multiply(a, scaled, mode, pivoting)[0] if mode == "left" else out[0] * signs
        assert np.allclose(product, expected[0])
