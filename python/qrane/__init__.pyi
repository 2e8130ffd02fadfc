# SPDX-License-Identifier: Apache-2.0
from . import dask as dask
from . import jax as jax
from . import sparse as sparse
from . import torch as torch
from ._dense import LstsqResult as LstsqResult
from ._dense import PivotedQRResult as PivotedQRResult
from ._dense import QRResult as QRResult
from ._dense import SVDResult as SVDResult
from ._dense import lstsq as lstsq
from ._dense import pivoted_qr as pivoted_qr
from ._dense import qr as qr
from ._dense import qr_multiply as qr_multiply
from ._dense import svd as svd
from ._factor import BatchFactor as BatchFactor
from ._factor import Factor as Factor
from ._factor import factor as factor
from ._files import tsqr_file as tsqr_file
from ._places import backends as backends
from ._places import use as use
from ._robust_pca import RobustPCAResult as RobustPCAResult
from ._robust_pca import robust_pca as robust_pca
from ._updating import Updatable as Updatable
from ._updating import qr_delete as qr_delete
from ._updating import qr_insert as qr_insert
from ._updating import qr_update as qr_update
from ._updating import updatable as updatable

__version__: str
__all__: list[str]
