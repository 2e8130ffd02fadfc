# SPDX-License-Identifier: Apache-2.0
"""qrane.sparse on SciPy's matrices."""
import numpy as np
import pytest
import scipy.sparse

import qrane.sparse


@pytest.fixture
def a(rng):
    noise = scipy.sparse.random_array((200, 60), density=0.05, rng=rng)
    return (noise + scipy.sparse.eye_array(200, 60)).tocsr()


def test_lstsq(rng, a, dtype):
    b = rng.standard_normal((200, 3)).astype(dtype)
    x, residues, rank = qrane.sparse.lstsq(a.astype(dtype), b)
    expected, squares, *_ = np.linalg.lstsq(a.toarray(), b, rcond=None)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    assert rank == 60 and x.dtype == dtype and np.allclose(x, expected, atol=tolerance)
    assert np.allclose(residues, squares, rtol=tolerance)
    assert qrane.sparse.lstsq(a, b[:, 0]).x.shape == (60,)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_formats_and_indices(rng, a, form, kind):
    b = rng.standard_normal(200)
    expected = np.linalg.lstsq(a.toarray(), b, rcond=None)[0]
    other = kind(a).asformat(form)
    assert np.allclose(qrane.sparse.lstsq(other, b).x, expected)
    if form in ("csr", "csc"):
        other.indices, other.indptr = other.indices.astype(np.int64), other.indptr.astype(np.int64)
        assert np.allclose(qrane.sparse.lstsq(other, b).x, expected)


def test_factor_object(rng, a):
    f = qrane.sparse.qr(a)
    assert f.shape == (200, 60) and f.rank == 60
    b = rng.standard_normal((200, 2))
    assert np.allclose(f.apply_q(f.apply_qt(b)), b)
    ap = a[:, f.permutation]
    r = f.r.toarray()
    assert np.all(np.tril(r, -1) == 0) and np.allclose(r.T @ r, (ap.T @ ap).toarray())
    assert np.allclose(f.apply_qt(ap.toarray()), np.vstack([r, np.zeros((140, 60))]))
    y = f.solve_transposed(np.ones(60))
    assert np.allclose(a.T @ y, 1) and np.allclose(f.apply_qt(y)[60:], 0)


def test_refactor(rng, a):
    f = qrane.sparse.qr(a)
    b = rng.standard_normal(200)
    x = f.solve(b)
    f.refactor(4 * a)
    assert np.allclose(4 * f.solve(b), x)
    f.refactor(a.data)
    assert np.array_equal(f.solve(b), x)
    with pytest.raises(ValueError, match="pattern"):
        f.refactor(a[:, ::-1].tocsr())
    with pytest.raises(ValueError, match="pattern"):
        f.refactor(a.data[1:])


def test_rank_and_wide(rng, a):
    deficient = scipy.sparse.hstack([a, a[:, :5] * 2]).tocsc()
    assert qrane.sparse.qr(deficient).rank == 60
    with pytest.raises(np.linalg.LinAlgError):
        qrane.sparse.qr(deficient, deficient="raise")
    b = rng.standard_normal(60)
    x = qrane.sparse.lstsq(a.T, b).x
    assert np.allclose(x, np.linalg.lstsq(a.T.toarray(), b, rcond=None)[0])


def test_without_q(rng, a):
    f = qrane.sparse.qr(a, keep_q=False)
    b = rng.standard_normal(200)
    assert np.allclose(f.solve(b), np.linalg.lstsq(a.toarray(), b, rcond=None)[0])
    with pytest.raises(ValueError):
        f.apply_q(b)


def test_bad_input(a):
    with pytest.raises(TypeError, match="^A"):
        qrane.sparse.qr(np.eye(3))
    with pytest.raises(TypeError, match="complex"):
        qrane.sparse.qr(a.astype(complex))
    with pytest.raises(ValueError, match="^b"):
        qrane.sparse.lstsq(a, np.ones(7))
    with pytest.raises(ValueError, match="some"):
        qrane.sparse.qr(a, ordering="some")
    broken = a.copy()
    broken.data[3] = np.nan
    with pytest.raises(ValueError, match="nan"):
        qrane.sparse.qr(broken)
    broken = a.copy()
    broken.indices[3] = 1000
    with pytest.raises(ValueError, match="1000"):
        qrane.sparse.qr(broken)
