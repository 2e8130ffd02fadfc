# SPDX-License-Identifier: Apache-2.0
"""Bad input: the exception that SciPy raises for the like, naming the argument."""
import numpy as np
import pytest

import qrane

GOOD = np.eye(4, 3)


@pytest.mark.parametrize("call", [qrane.qr, qrane.svd, qrane.pivoted_qr, qrane.factor, qrane.updatable,
                                  qrane.robust_pca, lambda a: qrane.lstsq(a, np.ones(4))])
@pytest.mark.parametrize("bad, error, words", [
    (np.float64(3), ValueError, "at least 2 axes, got 0"),
    (np.ones(4), ValueError, "at least 2 axes, got 1"),
    (GOOD.astype(complex), TypeError, "complex.*not supported yet"),
    (GOOD.astype(np.float16), TypeError, "float16.*float32"),
    (GOOD.astype(np.longdouble), TypeError, "float128|longdouble"),
    (np.full((4, 3), "x"), TypeError, "<U1"),
    (GOOD.astype(object), TypeError, "object"),
])
def test_types_and_axes(call, bad, error, words):
    with pytest.raises(error, match=f"^a: .*{words}"):
        call(bad)


@pytest.mark.parametrize("call", [qrane.qr, qrane.svd, qrane.pivoted_qr, qrane.factor, qrane.updatable,
                                  qrane.robust_pca, lambda a, **k: qrane.lstsq(a, np.ones(4), **k)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf(call, bad):
    a = GOOD.copy()
    a[2, 1] = bad
    with pytest.raises(ValueError, match="row 2, column 1"):
        call(a)
    if call not in (qrane.robust_pca,):
        call(a, check_finite=False)  # ends


def test_nan_stays_in_its_matrix(rng):
    a = rng.standard_normal((3, 5, 2))
    a[1, 0, 0] = np.nan
    with pytest.raises(ValueError):
        qrane.qr(a)
    r = qrane.qr(a, "r", check_finite=False)
    assert np.isnan(r[1]).any() and np.allclose(r[[0, 2]], qrane.qr(a[[0, 2]], "r"))


@pytest.mark.parametrize("call, name", [
    (lambda: qrane.qr(GOOD, "thin"), "mode"),
    (lambda: qrane.qr(GOOD, "raw", pivoting=True), "mode"),
    (lambda: qrane.pivoted_qr(GOOD, mode="full"), "mode"),
    (lambda: qrane.pivoted_qr(GOOD[None], truncate=True), "truncate"),
    (lambda: qrane.lstsq(GOOD, np.ones(3)), "b"),
    (lambda: qrane.lstsq(GOOD, np.ones((1, 4))), "b"),
    (lambda: qrane.lstsq(GOOD[None], np.ones((2, 4, 1))), "b"),
    (lambda: qrane.lstsq(GOOD, np.ones(4), deficient="ignore"), "deficient"),
    (lambda: qrane.factor(GOOD, "all"), "keep"),
    (lambda: qrane.factor(GOOD).solve(np.ones(3)), "b"),
    (lambda: qrane.factor(GOOD).apply_q(np.ones((3, 3))), "c"),
    (lambda: qrane.factor(GOOD).apply_q(np.ones((3, 3)), "right"), "c"),
    (lambda: qrane.factor(GOOD).apply_q(np.ones(4), "up"), "side"),
    (lambda: qrane.factor(GOOD).q("raw"), "mode"),
    (lambda: qrane.factor(GOOD).refactor(GOOD.T), "a"),
    (lambda: qrane.factor(GOOD[None]).solve(np.ones((1, 3, 1))), "b"),
    (lambda: qrane.qr_multiply(GOOD, np.ones(5)), "c"),
    (lambda: qrane.qr_multiply(GOOD, np.ones(4), "middle"), "mode"),
    (lambda: qrane.robust_pca(GOOD, method="fast"), "method"),
])
def test_arguments_are_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        call()


def test_what_is_not_kept_is_refused():
    with pytest.raises(ValueError, match="Q was not kept"):
        qrane.factor(GOOD, "r").solve(np.ones(4))
    with pytest.raises(ValueError, match="thin"):
        qrane.factor(GOOD, "reduced").q("complete")


def test_memory_error_leaves_everything_usable():
    column = np.ones((10_000_000, 1))
    with pytest.raises(MemoryError, match="bytes"):
        qrane.svd(column)  # the full U would take 800 TB
    assert qrane.svd(column, full_matrices=False).S.size == 1


def test_absent_backends_say_so():
    for entry in qrane.backends():
        if not entry["available"]:
            with qrane.use(backend=entry["backend"]), pytest.raises(ValueError, match=f"(?i){entry['backend']}"):
                qrane.qr(GOOD)
    with qrane.use(backend="tpu"), pytest.raises(ValueError, match="tpu"):
        qrane.qr(GOOD)
    with pytest.raises(ValueError, match="^threads"), qrane.use(threads=-1):
        pass


def test_attributes():
    assert set(qrane.__all__) <= set(dir(qrane))
    with pytest.raises(AttributeError, match="cholesky"):
        qrane.cholesky
