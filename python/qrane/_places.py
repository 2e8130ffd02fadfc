# SPDX-License-Identifier: Apache-2.0
"""Where calls run: backend, device, stream and threads."""

import contextlib
import contextvars
import os
import threading

from . import _core

_settings = contextvars.ContextVar("qrane", default=("cpu", 0, 0))
_places = {}
_lock = threading.Lock()


@contextlib.contextmanager
def use(backend=None, device=None, threads=None):
    """Where arrays in host memory are factored, within a ``with`` block.

    Arrays in a GPU's memory are always factored on that GPU.

    Parameters
    ----------
    backend : {'cpu', 'opencl', 'cuda', 'automatic'}, optional
        'cpu' unless said otherwise; 'automatic' takes CUDA, else OpenCL on a GPU, else the CPU.
    device : int, optional
        Index among the backend's devices.
    threads : int, optional
        Threads of the CPU backend; 0 takes all cores.

    Examples
    --------
    >>> import numpy as np, qrane
    >>> with qrane.use(threads=1):
    ...     R = qrane.qr(np.ones((4, 2)), mode="r")
    """
    now = _settings.get()
    if threads is not None and threads < 0:
        raise ValueError(f"threads: must not be negative, got {threads}")
    wanted = tuple(old if new is None else new for old, new in zip(now, (backend, device, threads)))
    token = _settings.set(wanted)
    try:
        yield
    finally:
        _settings.reset(token)


def host_place(library):
    """For arrays in host memory."""
    backend, device, threads = _settings.get()
    return _place(library, backend, device, 0, threads)


def cuda_place(library, device, stream):
    """For arrays on a CUDA device, with the address of the caller's stream."""
    legacy = 1  # cudaStreamLegacy: null would mean a stream of qrane's own
    return _place(library, "cuda", device, stream if stream != 0 else legacy, 0)


def own_stream_place(library, device):
    """The same, on a stream of qrane's own."""
    return _place(library, "cuda", device, 0, 0)


def _place(*key):
    place = _places.get(key)
    if place is None:
        library, backend, device, stream, threads = key
        with _lock:
            place = _places.setdefault(key, _core.Place(backend, device, stream, threads,
                                                        getattr(_core.Library, library)))
    return place


def backends():
    """What this machine and this build offer.

    Returns
    -------
    list of dict
        For each backend its name, whether it is available, the reason if it is not, and its devices' names.

    Examples
    --------
    >>> [entry["backend"] for entry in qrane.backends()]
    ['cpu', 'opencl', 'cuda']
    """
    return _core.backends()


def _forget():
    for place in _places.values():
        place.forget()


os.register_at_fork(after_in_child=_forget)
