"""Products and the linear algebra extension of the standard."""

from __future__ import annotations

import math
from typing import Any

import weft.linalg as torch_names
from weft.array_api.manipulation import axis_of, matrix_transpose
from weft.array_api.promotion import promoted
from weft.array_api.reductions import sum as total
from weft.ir.dtypes import DType
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, in batches."""
    a, b = promoted("matmul", x1, x2)
    result: Tensor = a.matmul(b)
    return result


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes."""
    a, b = promoted("tensordot", x1, x2)
    result: Tensor = a.tensordot(b, axes)
    return result


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of vectors along an axis, counted from the end; the first is conjugated."""
    a, b = promoted("vecdot", x1, x2)
    a = a.conj() if a.dtype.is_complex else a
    product: Tensor = a.movedim(axis, -1) * b.movedim(axis, -1)
    if a.shape[axis] != b.shape[axis]:
        raise ShapeError(f"vecdot: vectors of {a.shape[axis]} and {b.shape[axis]} elements")
    return product.sum(-1, dtype=product.dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    a, b = promoted("outer", x1, x2)
    result: Tensor = a.reshape((-1, 1)) * b.reshape((1, -1))
    return result


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    a, b = promoted("cross", x1, x2)
    result: Tensor = torch_names.cross(a, b, dim=axis)
    return result


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return x.diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of diagonals."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices."""
    return torch_names.det(x)


def slogdet(x: Tensor, /) -> Any:
    """The signs and logarithms of determinants."""
    return torch_names.slogdet(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices."""
    return torch_names.inv(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What x1 multiplies to give x2: a vector if that has one axis, else matrices."""
    a, b = promoted("solve", x1, x2)
    if b.ndim == 1:
        return torch_names.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = Tensor.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return torch_names.solve(a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:])))


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factors of positive matrices."""
    return torch_names.cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """Orthogonal and triangular factors."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: unknown mode {mode!r}", rule="reduced or complete")
    return torch_names.qr(x, mode)


def eigh(x: Tensor, /) -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return torch_names.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return torch_names.eigvalsh(x)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """Singular values between orthogonal factors."""
    return torch_names.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values."""
    return torch_names.svdvals(x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverses of matrices."""
    return torch_names.pinv(x, rtol=_relative(x, rtol))


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above a share of the greatest."""
    return torch_names.matrix_rank(x, rtol=_relative(x, rtol))


def _relative(x: Tensor, rtol: Any) -> Any:
    """The share below which singular values count as zero."""
    if rtol is not None or not x.dtype.is_float:
        return rtol
    eps = 2.0**-23 if x.dtype.bits == 32 else 2.0**-52
    return max(map(int, x.shape[-2:])) * eps


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of a matrix with itself, `n` times."""
    return torch_names.matrix_power(x, n)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices."""
    return torch_names.matrix_norm(x, ord, (-2, -1), keepdims)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
    ord: float = 2,
) -> Tensor:  # fmt: skip
    """A norm of the vectors along axes; of all elements where there are none."""
    listed = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(axis_of("vector_norm", each, x.ndim) for each in listed)
    sizes = x.abs()
    if math.isinf(ord):
        found = (
            sizes.max(axis=axes, keepdim=keepdims)
            if ord > 0
            else sizes.min(axis=axes, keepdim=keepdims)
        )
        return found
    if ord == 0:
        return (sizes != 0).cast(x.dtype).sum(axes, keepdims)
    return (sizes**ord).sum(axes, keepdims) ** (1 / ord)
