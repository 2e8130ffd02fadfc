# SPDX-License-Identifier: Apache-2.0
"""qrane.dask and tsqr_file: against NumPy, and bit for bit against themselves in other blocks and on other workers."""
import os
import signal

import numpy as np
import pytest

import qrane

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402

import qrane.dask  # noqa: E402

SHAPE = (60_000, 24)


@pytest.fixture
def a(rng):
    return rng.standard_normal(SHAPE)


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads"):
        yield


CHUNKS = [60_000, 16_384, 25_001, 3_000, (1, 29_999, 30_000)]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_bits_do_not_depend_on_chunks(a, chunks):
    x = da.from_array(a, (chunks, -1))
    expected = qrane.dask.tsqr(da.from_array(a, (10_000, -1)), mode="r").compute()
    assert np.array_equal(qrane.dask.tsqr(x, mode="r").compute(), expected)
    q, r = qrane.dask.tsqr(x)
    whole = qrane.dask.tsqr(da.from_array(a, (-1, -1)))[0].compute()
    q = q.compute()
    assert np.array_equal(q, whole)
    assert np.allclose(q @ r.compute(), a) and np.allclose(q.T @ q, np.eye(SHAPE[1]))


def test_file_has_the_same_bits(a, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, a)
    expected = qrane.dask.tsqr(da.from_array(a, (10_000, -1)), mode="r").compute()
    for block_bytes in (1, 2**22, 2**40):
        assert np.array_equal(qrane.tsqr_file(path, block_bytes=block_bytes), expected)
    mapped = da.from_array(np.load(path, mmap_mode="r"), (17_000, -1))
    assert np.array_equal(qrane.dask.tsqr(mapped, mode="r").compute(), expected)


@pytest.mark.parametrize("shape", [(10, 3), (3, 10), (0, 3), (20_000, 1), (5000, 600)])
def test_shapes(rng, shape, dtype, tmp_path):
    a = rng.standard_normal(shape).astype(dtype)
    x = da.from_array(a, (max(1, shape[0] // 3), -1))
    q, r = qrane.dask.tsqr(x)
    assert q.shape == (shape[0], min(shape)) and r.shape == (min(shape), shape[1])
    q, r = dask.compute(q, r)
    assert q.dtype == r.dtype == dtype and np.allclose(q @ r, a, atol=1e-3 if dtype == np.float32 else 1e-10)
    np.save(tmp_path / "a.npy", a)
    assert np.allclose(np.abs(qrane.tsqr_file(tmp_path / "a.npy")), np.abs(r), atol=1e-2)


def test_svd(a):
    x = da.from_array(a, (20_000, -1))
    u, s, vh = dask.compute(*qrane.dask.svd(x))
    assert np.allclose(s, np.linalg.svd(a, compute_uv=False))
    assert np.allclose((u * s) @ vh, a) and np.allclose(u.T @ u, np.eye(SHAPE[1]))
    assert np.all(vh.sum(axis=1) >= 0)
    assert len(qrane.dask.tsqr(x, compute_svd=True)) == 3


def test_lstsq(a, rng):
    x = da.from_array(a, (20_000, -1))
    for sides in ((), (3,)):
        b = rng.standard_normal(SHAPE[:1] + sides)
        out = qrane.dask.lstsq(x, da.from_array(b, (23_000,) + (-1,) * len(sides)))
        solution, residuals, rank, s = dask.compute(*out)
        expected, squares, expected_rank, expected_s = np.linalg.lstsq(a, b, rcond=None)
        assert out.x.shape == expected.shape and rank == expected_rank
        assert np.allclose(solution, expected) and np.allclose(residuals, squares) and np.allclose(s, expected_s)
    twice = da.concatenate([x, x], axis=1).rechunk({1: -1})
    solution, residuals, rank, _ = dask.compute(*qrane.dask.lstsq(twice, da.from_array(b[:, 0], 20_000)))
    assert rank == SHAPE[1] and residuals.size == 0 and np.allclose(solution, np.tile(expected[:, 0], 2) / 2)


def test_robust_pca(rng):
    low = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 40))
    spikes = np.where(rng.random(low.shape) < 0.05, 15.0, 0.0)
    result = qrane.dask.robust_pca(da.from_array(low + spikes, (700, -1)), tol=1e-6)
    assert result.converged and result.rank == 2
    assert np.linalg.norm(result.low_rank.compute() - low) <= 1e-3 * np.linalg.norm(low)
    assert np.allclose((result.low_rank + result.sparse).compute(), low + spikes, atol=1e-3)


def test_bad_arguments(a):
    x = da.from_array(a[:100], (50, 12))
    with pytest.raises(ValueError, match="^data: must have one column of blocks"):
        qrane.dask.tsqr(x)
    unknown = x.rechunk({1: -1})[da.from_array(a[:100, 0] > 0, 50)]
    with pytest.raises(ValueError, match="^a: has chunks of unknown sizes"):
        qrane.dask.svd(unknown)
    with pytest.raises(TypeError, match="^data: must be a dask array"):
        qrane.dask.tsqr(a)
    with pytest.raises(ValueError, match="^b: "):
        qrane.dask.lstsq(x.rechunk({1: -1}), da.ones(99))
    with pytest.raises(ValueError, match="^mode"):
        qrane.dask.tsqr(x, mode="q")
    broken = a[:100].copy()
    broken[70, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        qrane.dask.tsqr(da.from_array(broken, (50, -1)), mode="r").compute()


def cluster(workers):
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None,
                                    memory_limit=0)


def test_workers_and_one_that_is_killed(a):
    x = da.from_array(a, (10_000, -1))
    expected = qrane.dask.tsqr(x, mode="r").compute()
    for workers in (1, 2, 4):
        with cluster(workers) as local, distributed.Client(local) as client, dask.config.set(scheduler=client):
            assert np.array_equal(qrane.dask.tsqr(x, mode="r").compute(), expected)
            if workers == 2:
                slow = x.map_blocks(_slowly, dtype=x.dtype)
                result = client.compute(qrane.dask.tsqr(slow, mode="r"))
                os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)
                assert np.array_equal(result.result(timeout=60), expected)


def _slowly(block):
    import time
    time.sleep(0.2)
    return block
