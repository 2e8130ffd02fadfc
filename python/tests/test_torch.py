# SPDX-License-Identifier: Apache-2.0
"""Derivatives in PyTorch, by finite differences."""
import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402

import qrane.torch  # noqa: E402


def matrix(rng, shape, condition, lead=()):
    """Random with given condition number."""
    u, _, v = np.linalg.svd(rng.standard_normal((*lead, *shape)), full_matrices=False)
    s = np.geomspace(1, 1 / condition, min(shape))
    return torch.from_numpy((u * s) @ v).requires_grad_()


def check(function, inputs, condition, power=1):
    """gradcheck in both modes, with steps and tolerances that fit the condition number."""
    step = 1e-6 / condition
    return torch.autograd.gradcheck(function, inputs, eps=step, atol=1e-5 * condition**power, rtol=1e-3,
                                    check_forward_ad=True, nondet_tol=0.0)


@pytest.mark.parametrize("condition", [1, 1e4])
@pytest.mark.parametrize("shape", [(7, 4), (4, 4), (4, 7)])
@pytest.mark.parametrize("mode", ["reduced", "r"])
def test_qr(rng, shape, condition, mode):
    a = matrix(rng, shape, condition)
    assert check(lambda a: qrane.torch.qr(a, mode), (a,), condition)


def directional(function, a, condition, rng):
    """Derivative along a random direction that is small against every singular value: by differences and by both
    modes, relative to its norm. For condition numbers where elementwise steps drown in rounding."""
    direction = torch.from_numpy(rng.standard_normal(a.shape)) / condition
    h = 1e-4
    ahead, behind = function(a.detach() + h * direction), function(a.detach() - h * direction)
    difference = (ahead - behind) / (2 * h)
    with forward_ad.dual_level():
        forward = forward_ad.unpack_dual(function(forward_ad.make_dual(a.detach(), direction))).tangent
    weights = torch.from_numpy(rng.standard_normal(tuple(difference.shape)))
    (gradient,) = torch.autograd.grad((function(a) * weights).sum(), a)
    scale = torch.linalg.norm(difference)
    assert torch.linalg.norm(forward - difference) <= 1e-3 * scale
    assert abs((gradient * direction).sum() - (forward * weights).sum()) <= 1e-6 * (1 + scale) * weights.norm()


@pytest.mark.parametrize("condition", [1e6, 1e8])
def test_condition_to_1e8(rng, condition):
    a = matrix(rng, (9, 4), condition)
    b = torch.from_numpy(rng.standard_normal(9))
    directional(lambda a: qrane.torch.qr(a, "r"), a, condition, rng)
    directional(lambda a: qrane.torch.qr(a).Q, a, condition, rng)
    directional(lambda a: qrane.torch.lstsq(a, b), a, condition, rng)


def test_qr_twice(rng):
    a = matrix(rng, (5, 3), 10)
    assert torch.autograd.gradgradcheck(lambda a: qrane.torch.qr(a), (a,))


@pytest.mark.parametrize("shape", [(7, 4), (4, 4), (4, 7)])
@pytest.mark.parametrize("condition", [1, 1e3])
def test_lstsq(rng, shape, condition):
    a = matrix(rng, shape, condition)
    for sides in ((), (2,)):
        b = torch.from_numpy(rng.standard_normal((shape[0], *sides))).requires_grad_()
        assert check(qrane.torch.lstsq, (a, b), condition, power=2)


def test_batches(rng):
    a, b = matrix(rng, (6, 3), 10, (2, 2)), torch.from_numpy(rng.standard_normal((2, 2, 6, 1))).requires_grad_()
    assert check(qrane.torch.qr, (a,), 10)
    assert check(qrane.torch.lstsq, (a, b), 10)


def test_agrees_with_torch(rng):
    a, b = matrix(rng, (50, 8), 100), torch.from_numpy(rng.standard_normal((50, 2)))
    ours, = torch.autograd.grad(qrane.torch.lstsq(a, b).square().sum(), a)
    theirs, = torch.autograd.grad(torch.linalg.lstsq(a, b, driver="gels").solution.square().sum(), a)
    assert torch.allclose(ours, theirs, rtol=1e-8, atol=1e-8 * theirs.abs().max())


def test_deficient_raises(rng):
    a = torch.ones((5, 2), dtype=torch.float64, requires_grad=True)
    with pytest.raises(np.linalg.LinAlgError, match="rank-deficient"):
        qrane.torch.qr(a, "r").sum().backward()
    with pytest.raises(np.linalg.LinAlgError, match="rank-deficient"):
        qrane.torch.qr(a).Q.sum().backward()
    with pytest.raises(np.linalg.LinAlgError, match="rank-deficient"):
        qrane.torch.lstsq(a, torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse(rng, form):
    a = (scipy.sparse.random_array((12, 5), density=0.2, rng=rng) + scipy.sparse.eye_array(12, 5)).asformat(form)
    solver = qrane.torch.SparseLeastSquares(a)
    values = torch.from_numpy(a.data.copy()).requires_grad_()
    for sides in ((), (2,)):
        b = torch.from_numpy(rng.standard_normal((12, *sides))).requires_grad_()
        assert torch.autograd.gradcheck(solver, (values, b), check_forward_ad=True)
    x = solver(values, b)
    solver(2 * values.detach(), b)  # other values in between
    x.sum().backward()
    again = torch.from_numpy(a.data.copy()).requires_grad_()
    qrane.torch.SparseLeastSquares(a)(again, b.detach()).sum().backward()
    assert torch.allclose(values.grad, again.grad)
    with pytest.raises(np.linalg.LinAlgError):
        solver(0 * values, b)
