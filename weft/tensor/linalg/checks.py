"""What the methods of linear algebra ask of their operands, and how they see batches.

A method works on (batch, rows, columns) in float32 or float64; smaller floats and integers are
computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.support.errors import NotSupported, ShapeError
from weft.tensor.checks import known
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

EPSILON = {
    dtypes.float32: 2.0**-23,
    dtypes.float64: 2.0**-52,
    dtypes.complex64: 2.0**-23,
    dtypes.complex128: 2.0**-52,
}


def require_matrix(name: str, self: Tensor) -> tuple[int, int]:
    """The rows and columns of a matrix, or of each in a batch."""
    if self.ndim < 2:
        raise ShapeError(
            f"{name}: expected a matrix, got a tensor with {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule=f"{name} takes (…, rows, columns)",
        )
    return known(self.shape[-2]), known(self.shape[-1])


def require_square(name: str, self: Tensor) -> int:
    """The size of a square matrix, or of each in a batch."""
    rows, columns = require_matrix(name, self)
    if rows != columns:
        raise ShapeError(
            f"{name}: the matrix is not square ({rows} rows and {columns} columns)",
            facts=[("shape", self.shape)],
            rule=f"{name} takes (…, n, n)",
        )
    return rows


def batched(self: Tensor, is_complex_too: bool = False) -> Tensor:
    """A matrix or a batch of them as (batch, rows, columns), in a dtype to compute in."""
    if self.dtype.is_complex and not is_complex_too:
        raise NotSupported(
            f"this decomposition of {self.dtype.name}",
            rule="inv, solve, det, slogdet, matrix_exp, qr, eig and norms take complex matrices",
            fix="write it with their real and imaginary parts: x.real, x.imag",
        )
    x = widened(as_float(self))
    count = math.prod(map(known, x.shape[:-2]))
    return x.reshape((count, *x.shape[-2:]))


def identity(like: Tensor, size: int) -> Tensor:
    """An identity matrix of a tensor's dtype and device."""
    return like.__class__.eye(size, dtype=like.dtype, device=like.device)


def transposed(self: Tensor) -> Tensor:
    return self.transpose(-1, -2)


def adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose; of real matrices the transpose."""
    flipped = transposed(self)
    return flipped.conj() if self.dtype.is_complex else flipped


def product(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The product of matrices, or of their transposes, as a call of its own.

    Formulas are chains of products of small matrices. As calls, forward and backward, they stay
    products; the scheduler would find it cheaper to compute small ones again inside each other.
    """
    left, right = (
        each._new(param(slot, each.dtype, each.shape)) for slot, each in enumerate((a, b))
    )
    left = transposed(left) if transpose_a else left
    right = transposed(right) if transpose_b else right
    return a._new(call(left.dot(right).uop, a.uop, b.uop))


def scale_of(x: Tensor) -> Tensor:
    """For each matrix (batch, rows, columns) a power of 2 near its greatest element, or 1.

    Squares of what is divided by it neither overflow nor all vanish, and no bit is lost.
    """
    if 0 in x.shape[1:]:
        return x.__class__.ones(known(x.shape[0]), 1, 1, dtype=x.dtype.part, device=x.device)
    greatest = x.detach().abs().max((1, 2), keepdim=True)
    exponent = (greatest == 0).where(1.0, greatest).log2().floor()
    limit = 126.0 if x.dtype.part is dtypes.float32 else 1022.0
    # Kept in memory: every element of a batch is divided by it.
    return exponent.isfinite().where(exponent, 0.0).clamp(-limit, limit).exp2().contiguous()
