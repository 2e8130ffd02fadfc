# SPDX-License-Identifier: Apache-2.0
# Arrays are typed as Any: NumPy's, PyTorch's, CuPy's and JAX's types have no common base.
from typing import Any, Literal, NamedTuple, overload

class QRResult(NamedTuple):
    Q: Any
    R: Any

class PivotedQRResult(NamedTuple):
    Q: Any
    R: Any
    P: Any
    rank: Any

class LstsqResult(NamedTuple):
    x: Any
    residues: Any
    rank: Any
    s: None

class SVDResult(NamedTuple):
    U: Any
    S: Any
    Vh: Any

_Both = Literal["reduced", "economic", "complete", "full"]

@overload
def qr(a: Any, mode: _Both = ..., *, pivoting: Literal[False] = ..., overwrite_a: bool = ...,
       check_finite: bool | None = ...) -> QRResult: ...
@overload
def qr(a: Any, mode: Literal["r"], *, pivoting: Literal[False] = ..., overwrite_a: bool = ...,
       check_finite: bool | None = ...) -> Any: ...
@overload
def qr(a: Any, mode: Literal["raw"], *, pivoting: Literal[False] = ..., overwrite_a: bool = ...,
       check_finite: bool | None = ...) -> tuple[Any, Any]: ...
@overload
def qr(a: Any, mode: _Both = ..., *, pivoting: Literal[True], overwrite_a: bool = ...,
       check_finite: bool | None = ...) -> tuple[Any, Any, Any]: ...
@overload
def qr(a: Any, mode: Literal["r"], *, pivoting: Literal[True], overwrite_a: bool = ...,
       check_finite: bool | None = ...) -> tuple[Any, Any]: ...
def pivoted_qr(a: Any, *, rtol: float | None = ..., max_rank: int | None = ..., truncate: bool = ...,
               mode: Literal["reduced", "economic", "r"] = ...,
               pivoting: Literal["automatic", "exact", "randomized"] = ...,
               check_finite: bool | None = ...) -> PivotedQRResult: ...
def lstsq(a: Any, b: Any, rcond: float | None = ..., *, least_norm: bool = ...,
          deficient: Literal["solve", "raise"] = ..., check_finite: bool | None = ...) -> LstsqResult: ...
@overload
def svd(a: Any, full_matrices: bool = ..., compute_uv: Literal[True] = ..., *, overwrite_a: bool = ...,
        check_finite: bool | None = ...) -> SVDResult: ...
@overload
def svd(a: Any, full_matrices: bool = ..., *, compute_uv: Literal[False], overwrite_a: bool = ...,
        check_finite: bool | None = ...) -> Any: ...
def qr_multiply(a: Any, c: Any, mode: Literal["left", "right"] = ..., pivoting: bool = ..., conjugate: bool = ...,
                overwrite_a: bool = ..., overwrite_c: bool = ...) -> tuple[Any, ...]: ...
