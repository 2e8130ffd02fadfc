# SPDX-License-Identifier: Apache-2.0
"""QR factorization of NumPy, PyTorch, CuPy and JAX arrays, and what follows from it.

Functions of one call: `qr`, `lstsq`, `svd`, `pivoted_qr`, `qr_multiply`, `qr_insert`, `qr_delete`, `qr_update`,
`robust_pca`. Objects: `factor` (a factorization to solve with), `updatable` (one whose matrix changes). Modules:
`qrane.sparse`, `qrane.torch` and `qrane.jax` (with derivatives), `qrane.dask`. `tsqr_file` factors an array on disk.

Results are arrays of the caller's library, on the caller's device.

>>> import numpy as np, qrane
>>> A = np.vander(np.linspace(0, 1, 50), 3)
>>> Q, R = qrane.qr(A)
>>> bool(np.allclose(Q @ R, A))
True
"""

import importlib

# Where names come from. They are imported when they are first used: NumPy takes longer to import than all of qrane.
_HOMES = {
    "_dense": ("LstsqResult", "PivotedQRResult", "QRResult", "SVDResult", "lstsq", "pivoted_qr", "qr", "qr_multiply",
               "svd"),
    "_factor": ("BatchFactor", "Factor", "factor"),
    "_updating": ("Updatable", "qr_delete", "qr_insert", "qr_update", "updatable"),
    "_robust_pca": ("RobustPCAResult", "robust_pca"),
    "_files": ("tsqr_file",),
    "_places": ("backends", "use"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("dask", "jax", "sparse", "torch")

__version__ = "0.1.0"
__all__ = [*sorted(_HOME_OF), *_MODULES]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
