# SPDX-License-Identifier: Apache-2.0
"""What qrane needs of an array library, and arguments made ready for qrane._core.

An array is ready when it holds native float32 or float64 and each of its matrices is column-major or row-major; what
is not is copied. Errors name the argument.
"""

import functools

import numpy as np

from . import _places


def _refuse_type(name, dtype):
    if "complex" in dtype:
        raise TypeError(f"{name}: complex matrices are not supported yet, got {dtype}")
    if "float16" in dtype:
        raise TypeError(f"{name}: {dtype} is too short for a QR factorization; convert it to float32")
    raise TypeError(f"{name}: must hold float32, float64 or integers, got {dtype}")


def _has_view(shape, strides):
    """Whether every matrix is column-major or row-major; strides in elements."""
    if 0 in shape:
        return True
    if len(shape) == 1:
        return strides[0] > 0 or shape[0] == 1
    (m, n), (down, across) = shape[-2:], strides[-2:]
    by_columns = (down == 1 or m == 1) and (across >= m or n == 1)
    by_rows = (across == 1 or n == 1) and (down >= n or m == 1)
    return (by_columns or by_rows) and (len(shape) == 2 or shape[0] == 1 or
                                        strides[0] >= (m - 1) * max(down, 0) + (n - 1) * max(across, 0) + 1)


class Numpy:
    """NumPy's arrays, and whatever numpy.asarray takes."""

    name = "numpy"

    def on_host(self, x):
        return True

    def ready(self, x, name):
        x = np.asarray(x)
        kind, size = x.dtype.kind, x.dtype.itemsize
        if kind in "biu":
            x = x.astype(np.float64)
        elif kind != "f" or size not in (4, 8):
            _refuse_type(name, str(x.dtype))
        elif not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        return x

    def strided(self, x):
        if x.flags.forc and x.ndim <= 2 and x.flags.aligned:
            return x
        size = x.itemsize
        whole = x.flags.aligned and not any(s % size for s in x.strides)
        return x if whole and _has_view(x.shape, [s // size for s in x.strides]) else np.array(x, order="C", copy=True)

    def place(self, x):
        return _places.host_place(self.name)

    def where(self, x):
        return "the CPU"

    def common(self, arrays):
        wanted = np.result_type(*arrays)
        return [x.astype(wanted, copy=False) for x in arrays]

    def cast(self, x, dtype):
        return x.astype(dtype)

    def from_host(self, x, like):
        return x

    def stack(self, arrays, like):
        return np.stack(arrays)

    def zeros(self, shape, like):
        return np.zeros(shape, like.dtype)

    def eye(self, n, like):
        return np.eye(n, dtype=like.dtype)

    def concatenate(self, arrays, axis):
        return np.concatenate(arrays, axis)


class Torch:
    name = "torch"

    def __init__(self):
        import torch
        self.lib = torch

    def ready(self, x, name):
        torch = self.lib
        if x.requires_grad and torch.is_grad_enabled():
            raise TypeError(f"{name}: requires gradients; qrane.torch has functions with derivatives, "
                            f"or pass {name}.detach()")
        if x.dtype not in (torch.float32, torch.float64):
            if x.dtype.is_floating_point or x.dtype.is_complex:
                _refuse_type(name, str(x.dtype))
            x = x.to(torch.get_default_dtype())
        if x.device.type not in ("cpu", "cuda"):
            raise TypeError(f"{name}: is on {x.device}, but qrane takes tensors on the CPU or a CUDA device")
        if x.layout != torch.strided:
            raise TypeError(f"{name}: must be a dense tensor, got {x.layout}")
        return x.resolve_neg() if x.is_neg() else x

    def strided(self, x):
        return x if _has_view(x.shape, x.stride()) else x.clone(memory_format=self.lib.contiguous_format)

    def on_host(self, x):
        return x.device.type == "cpu"

    def place(self, x):
        if self.on_host(x):
            return _places.host_place(self.name)
        return _places.cuda_place(self.name, x.device.index, self.lib.cuda.current_stream(x.device).cuda_stream)

    def where(self, x):
        return str(x.device)

    def common(self, arrays):
        wanted = functools.reduce(self.lib.promote_types, [x.dtype for x in arrays])
        return [x.to(wanted) for x in arrays]

    def cast(self, x, dtype):
        return x.to(dtype)

    def from_host(self, x, like):
        return self.lib.from_numpy(x).to(like.device)

    def stack(self, arrays, like):
        return self.lib.stack(arrays)

    def zeros(self, shape, like):
        return self.lib.zeros(shape, dtype=like.dtype, device=like.device)

    def eye(self, n, like):
        return self.lib.eye(n, dtype=like.dtype, device=like.device)

    def concatenate(self, arrays, axis):
        return self.lib.cat(arrays, axis)


class Cupy(Numpy):
    name = "cupy"

    def __init__(self):
        import cupy
        self.lib = cupy

    def ready(self, x, name):
        if x.dtype.kind in "biu":
            return x.astype(np.float64)
        if x.dtype not in (np.float32, np.float64):
            _refuse_type(name, str(x.dtype))
        return x

    def strided(self, x):
        whole = _has_view(x.shape, [s // x.itemsize for s in x.strides])
        return x if whole else self.lib.array(x, order="C", copy=True)

    def on_host(self, x):
        return False

    def place(self, x):
        device = x.device.id
        with x.device:
            stream = self.lib.cuda.get_current_stream().ptr
        return _places.cuda_place(self.name, device, stream)

    def where(self, x):
        return f"CUDA device {x.device.id}"

    def from_host(self, x, like):
        with like.device:
            return self.lib.asarray(x)

    def stack(self, arrays, like):
        return self.lib.stack(arrays)

    def zeros(self, shape, like):
        with like.device:
            return self.lib.zeros(shape, like.dtype)

    def eye(self, n, like):
        with like.device:
            return self.lib.eye(n, dtype=like.dtype)

    def concatenate(self, arrays, axis):
        return self.lib.concatenate(arrays, axis)


class Jax(Numpy):
    name = "jax"

    def __init__(self):
        import jax
        self.lib = jax

    def ready(self, x, name):
        if isinstance(x, self.lib.core.Tracer):
            raise TypeError(f"{name}: is traced by jax.jit, grad or vmap; qrane.jax has functions for that")
        if x.dtype.kind in "biu":
            x = x.astype(float)
        elif x.dtype not in (np.float32, np.float64):
            _refuse_type(name, str(x.dtype))
        if len(x.devices()) != 1:
            raise TypeError(f"{name}: is spread over {len(x.devices())} devices; qrane takes arrays on one device")
        return x.block_until_ready()

    def strided(self, x):
        return x  # always row-major

    def on_host(self, x):
        (device,) = x.devices()
        return device.platform == "cpu"

    def place(self, x):
        if self.on_host(x):
            return _places.host_place(self.name)
        (device,) = x.devices()
        return _places.own_stream_place(self.name, device.local_hardware_id)

    def where(self, x):
        (device,) = x.devices()
        return str(device)

    def common(self, arrays):
        wanted = self.lib.numpy.result_type(*arrays)
        return [x.astype(wanted) for x in arrays]

    def from_host(self, x, like):
        (device,) = like.devices()
        return self.lib.device_put(x, device)

    def stack(self, arrays, like):
        return self.lib.numpy.stack(arrays)

    def zeros(self, shape, like):
        (device,) = like.devices()
        return self.lib.numpy.zeros(shape, like.dtype, device=device)

    def eye(self, n, like):
        (device,) = like.devices()
        return self.lib.numpy.eye(n, dtype=like.dtype, device=device)

    def concatenate(self, arrays, axis):
        return self.lib.numpy.concatenate(arrays, axis)


_numpy = Numpy()
_KINDS = {"torch": Torch, "cupy": Cupy, "jax": Jax, "jaxlib": Jax}


@functools.lru_cache(maxsize=None)
def _library_of_type(kind):
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root in _KINDS:
            return _library(_KINDS[root])
    return _numpy


@functools.lru_cache(maxsize=None)
def _library(cls):
    return cls()


def prepare(*named, least_axes=2, most_axes=None):
    """(library, place, arrays) for pairs of a name and an array; the first array decides where.

    All are of one library, device and type afterwards, with strides that qrane has views for.
    """
    (first_name, first), *rest = named
    if type(first) is np.ndarray and not rest:  # the usual call, quickly
        library = _numpy
        arrays = [library.ready(first, first_name)]
    else:
        library = _library_of_type(type(first))
        for name, x in rest:
            other = _library_of_type(type(x))
            if other is not library:
                raise TypeError(f"{name}: is of {other.name}, but {first_name} is of {library.name}; "
                                "all arrays must be of one library")
        arrays = [library.ready(x, name) for name, x in named]
        for (name, _), x in zip(named[1:], arrays[1:]):
            if library.where(x) != library.where(arrays[0]):
                raise ValueError(f"{name}: is on {library.where(x)}, but {first_name} is on "
                                 f"{library.where(arrays[0])}")
        if len({x.dtype for x in arrays}) > 1:
            arrays = library.common(arrays)
    axes = arrays[0].ndim
    if axes < least_axes:
        raise ValueError(f"{first_name}: must have at least {least_axes} axes, got {axes}")
    if most_axes is not None and axes > most_axes:
        raise ValueError(f"{first_name}: must have {most_axes} axes, got {axes}")
    return library, library.place(arrays[0]), [library.strided(x) for x in arrays]


def flat(library, x):
    """A batch with one leading axis, ready, and the leading shape."""
    lead = tuple(x.shape[:-2])
    if len(lead) != 1:
        count = 1
        for size in lead:
            count *= size
        x = x.reshape((count, *x.shape[-2:]))
    return library.strided(x), lead


def shaped(x, lead):
    """The inverse, for results."""
    return x if len(lead) == 1 else x.reshape(lead + tuple(x.shape[1:]))


def checked(library, x, check_finite):
    """Host arrays are checked unless the caller says otherwise; on a device that would wait for it."""
    return library.on_host(x) if check_finite is None else bool(check_finite)
