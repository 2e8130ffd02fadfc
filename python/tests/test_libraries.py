# SPDX-License-Identifier: Apache-2.0
"""PyTorch and JAX arrays go in and come back. CUDA devices are used where there are some."""
import numpy as np
import pytest

import qrane


class Torch:
    def __init__(self, device):
        self.lib = pytest.importorskip("torch")
        if device == "cuda" and not (self.lib.cuda.is_available() and _has_cuda()):
            pytest.skip("no CUDA device, or qrane was built without CUDA")
        self.device = device

    def array(self, x):
        return self.lib.from_numpy(np.ascontiguousarray(x)).to(self.device)

    def is_mine(self, x):
        return isinstance(x, self.lib.Tensor) and x.device.type == self.device

    def host(self, x):
        return x.cpu().numpy()


class Jax:
    def __init__(self, device):
        self.lib = pytest.importorskip("jax")
        self.lib.config.update("jax_enable_x64", True)
        if device == "cuda" and (self.lib.default_backend() != "gpu" or not _has_cuda()):
            pytest.skip("no CUDA device, or qrane was built without CUDA")
        self.device = self.lib.devices("cpu" if device == "cpu" else "gpu")[0]

    def array(self, x):
        return self.lib.device_put(np.ascontiguousarray(x), self.device)

    def is_mine(self, x):
        return isinstance(x, self.lib.Array) and x.devices() == {self.device}

    def host(self, x):
        return np.asarray(x)


class Cupy:
    def __init__(self, device):
        self.lib = pytest.importorskip("cupy")
        if device == "cpu" or not _has_cuda():
            pytest.skip("CuPy's arrays are on CUDA devices")

    def array(self, x):
        return self.lib.asarray(x)

    def is_mine(self, x):
        return isinstance(x, self.lib.ndarray)

    def host(self, x):
        return self.lib.asnumpy(x)


def _has_cuda():
    return any(entry["backend"] == "cuda" and entry["available"] for entry in qrane.backends())


@pytest.fixture(params=[(kind, device) for kind in (Torch, Jax, Cupy) for device in ("cpu", "cuda")],
                ids=lambda p: f"{p[0].__name__.lower()}-{p[1]}")
def library(request):
    kind, device = request.param
    return kind(device)


def test_every_function(rng, library, dtype):
    a, b = rng.standard_normal((40, 6)).astype(dtype), rng.standard_normal((40, 2)).astype(dtype)
    x, y = library.array(a), library.array(b)
    f, w = qrane.factor(x), qrane.updatable(x, b=y)
    w.insert_rows(0, x[:3], y[:3])
    q, r = qrane.qr(x)
    calls = {
        "qr": (q, r), "r": (qrane.qr(x, "r"),), "raw": qrane.qr(x, "raw"), "full": qrane.qr(x, "full"),
        "pivoting": qrane.qr(x, pivoting=True), "lstsq": qrane.lstsq(x, y)[:2], "svd": qrane.svd(x),
        "factor": (f.r, f.q(), f.solve(y), f.apply_q(y), f.range_basis()), "updatable": (w.r, w.q(), w.solve()),
        "robust_pca": qrane.robust_pca(x)[:2], "multiply": qrane.qr_multiply(x, y.T),
        "insert": qrane.qr_insert(q, r, x[:2], 1), "delete": qrane.qr_delete(q, r, 1),
        "batch": qrane.qr(library.array(np.stack([a, a]))),
        "batch raw": qrane.qr(library.array(np.stack([a, a])), "raw"),
    }
    numpy_calls = {
        "qr": qrane.qr(a), "lstsq": qrane.lstsq(a, b)[:2], "svd": qrane.svd(a), "raw": qrane.qr(a, "raw"),
        "pivoting": qrane.qr(a, pivoting=True)}
    for name, parts in calls.items():
        assert all(library.is_mine(part) for part in parts), name
    for name, parts in numpy_calls.items():
        for mine, expected in zip(calls[name], parts):
            assert np.allclose(library.host(mine), expected, atol=1e-3 if dtype == np.float32 else 1e-10), name
    assert str(library.host(r).dtype) == np.dtype(dtype).name


def test_types_are_refused_in_words(library):
    for kind, words in (("complex64", "complex"), ("float16", "float32")):
        with pytest.raises(TypeError, match=f"^a: .*{words}"):
            qrane.qr(library.array(np.eye(3).astype(kind)))
    q, r = qrane.qr(library.array(np.arange(6).reshape(3, 2)))
    assert library.is_mine(q) and np.allclose(library.host(q) @ library.host(r), np.arange(6).reshape(3, 2), atol=1e-5)


def test_mixed_libraries(library):
    with pytest.raises(TypeError, match="^b: is of numpy"):
        qrane.lstsq(library.array(np.eye(3)), np.ones(3))
    with pytest.raises(TypeError, match="^b: "):
        qrane.factor(np.eye(3)).solve(library.array(np.ones(3)))


def test_torch_strides_and_gradients(rng):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(rng.standard_normal((6, 5)))
    for x in (a, a.T, a.T.contiguous().T, a[::2, 1:], torch.from_numpy(np.zeros((0, 3))), a.expand(3, 6, 5)):
        q, r = qrane.qr(x)
        assert torch.allclose(q @ r, x)
    with pytest.raises(TypeError, match="requires gradients"):
        qrane.qr(a.clone().requires_grad_())
    with torch.no_grad():
        qrane.qr(a.clone().requires_grad_())
    with pytest.raises(TypeError, match="^a: must be a dense"):
        qrane.qr(a.to_sparse())


def test_results_share_memory_with_nobody_else(rng):
    torch = pytest.importorskip("torch")
    r = qrane.qr(torch.from_numpy(rng.standard_normal((6, 5))), "r")
    expected = r.clone()
    qrane.qr(torch.from_numpy(rng.standard_normal((6, 5))), "r")
    assert torch.equal(r, expected)


def test_traced_arrays_are_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="qrane.jax"):
        jax.jit(lambda a: qrane.qr(a)[0])(jax.numpy.eye(3))
