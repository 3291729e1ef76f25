"""Inverses, determinants and systems of equations; Cholesky factors and triangular systems.

One loop serves them: Gauss-Jordan elimination in place, with the greatest element of a column as
pivot. Solutions are refined by their residual. Nothing is read on the way, so a singular matrix
cannot raise: its inverse is infinite and its determinant 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from weft.ir.dtypes import dtypes, promote
from weft.support.errors import ShapeError
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import broadcast_shape, known, require_one_device
from weft.tensor.linalg.checks import (
    EPSILON,
    batched,
    identity,
    product,
    require_matrix,
    require_square,
    scale_of,
    transposed,
)
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Elimination(NamedTuple):
    """What Gauss-Jordan elimination finds of a batch (batch, n, n), as constants.

    Where a pivot is 0 the inverse is that of a matrix with a pivot that is just not 0, and it is
    `is_singular` that says so: the determinant has a derivative there as well.
    """

    inverse: Tensor  # (batch, n, n)
    pivots: Tensor  # (batch, n), by row
    is_singular: Tensor  # (batch,)
    sign: Tensor  # (batch,): of the permutation of the rows


class SignLogDet(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def _eliminate_column(matrix: Tensor, order: Tensor, pivots: Tensor) -> State:
    """Eliminate the first column and append the column of the inverse instead of it.

    Rows stay where they are. `order` is 0 for a row that was not a pivot yet, and counts the steps
    since it was one otherwise.
    """
    size = known(matrix.shape[-1])
    first = matrix[:, :, :1]  # (batch, n, 1)
    waiting = order == 0  # (batch, n)
    chosen = waiting.where(first.squeeze(2).abs(), -1.0).argmax(1, keepdim=True)  # (batch, 1)
    row = matrix.gather(1, chosen.unsqueeze(2).expand(-1, 1, size))  # (batch, 1, n)
    pivot = row[:, :, :1]
    numbers = matrix.__class__.arange(size, device=matrix.device).reshape(1, size)
    is_pivot = numbers == chosen  # (batch, n)
    divisor = (pivot == 0).where(EPSILON[matrix.dtype], pivot)
    in_row = is_pivot.unsqueeze(2)  # (batch, n, 1)
    factor = in_row.where(pivot - 1.0, first) / divisor
    rest = matrix[:, :, 1:] - factor * row[:, :, 1:]
    entering = in_row.where(1.0, -first) / divisor
    counted = (is_pivot | ~waiting).cast(order.dtype)
    return (
        rest.cat(entering, dim=2),
        order + counted,
        is_pivot.where(pivot.squeeze(2), pivots),
    )


def eliminate(matrix: Tensor) -> Elimination:
    """Run the elimination on (batch, n, n)."""
    count, size = known(matrix.shape[0]), known(matrix.shape[1])
    scale = scale_of(matrix)  # (batch, 1, 1)
    start = matrix.detach() / scale
    zeros = start.zeros_like()[:, :, 0] if size else start.reshape(count, 0)
    order = zeros.real.cast(dtypes.int32)
    found, steps, pivots = repeated(_eliminate_column, size, start, order, zeros)
    column_of = (size - steps).cast(dtypes.int64)  # (batch, n): the column each row was for
    numbers = start.__class__.arange(size, device=start.device).reshape(1, size, 1)
    is_for = numbers == column_of.unsqueeze(1)
    rows = (
        is_for.argmax(2).contiguous() if size else column_of
    )  # (batch, n): its inverse permutation
    whole = (count, size, size)
    inverse = found.gather(1, rows.unsqueeze(2).expand(whole))
    inverse = inverse.gather(2, column_of.unsqueeze(1).expand(whole))
    pivots = pivots * scale.squeeze(2)
    return Elimination(inverse / scale, pivots, (pivots == 0).any(1), _permutation_sign(rows))


def _refined(matrix: Tensor, near: Tensor, start: Tensor, right: Tensor) -> Tensor:
    """The solution of matrix @ x = right, from an inverse and a solution that are nearly right."""
    residual = right - product(matrix, start)
    step = product(near, residual)
    return start + (step + product(near, residual - product(matrix, step)))


def solution(matrix: Tensor, near: Tensor, right: Tensor) -> Tensor:
    """The x with matrix @ x = right, from a constant that is nearly the inverse."""
    start = product(near, right.detach())
    found = _refined(matrix.detach(), near, start, right.detach())
    # Vectors of a batch may share a matrix, and a matrix its right side.
    batch = found.shape[:-2]
    inverse, matrix, right = (
        each.expand((*batch, *each.shape[-2:])) for each in (near, matrix, right)
    )
    return with_tangent((found, inverse), (matrix, right), _solution_tangent)[0]


def _solution_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """dX = A⁻¹ (dB - dA X)"""
    (x, inverse), (of_matrix, of_right) = results, changes
    moved = product(inverse, of_right - product(of_matrix, x))
    return moved, _inverse_change(inverse, of_matrix)


def _inverse_change(inverse: Tensor, change: Tensor) -> Tensor:
    """-A⁻¹ dA A⁻¹"""
    return -product(product(inverse, change), inverse)


def _inverse_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    return (_inverse_change(results[0], changes[0]),)


def inv(self: Tensor) -> Tensor:
    """Return the inverse of a square matrix, or of each in a batch (…, n, n).

    A singular matrix has an inverse of infinities, where `torch.linalg.inv` and `numpy.linalg.inv`
    raise: nothing is computed before somebody reads it. Integers become the default float.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    size = require_square("inv", self)
    x = batched(self, is_complex_too=True)
    found = eliminate(x)
    result = _refined(x.detach(), found.inverse, found.inverse, identity(x, size))
    if size:
        (result,) = with_tangent((result,), (x,), _inverse_tangent)
        result = found.is_singular.reshape(-1, 1, 1).where(math.inf, result)
    return result.reshape(self.shape).cast(as_float(self).dtype)


def solve(self: Tensor, other: Tensor) -> Tensor:
    """Return x with self @ x = other, for a matrix (…, n, n) and columns (…, n, k) or (…, n).

    Batches broadcast. `other` is a vector where it has one axis, or the shape of this tensor
    without its last axis, as in `torch.linalg.solve`. Where the matrix is singular x is infinite.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 1.0], [0.0, 4.0]]).solve(Tensor([4.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    require_square("solve", self)
    matrix, right, is_vector = system("solve", self, other)
    found = eliminate(batched(matrix, is_complex_too=True))
    result = solution(matrix, found.inverse.reshape(matrix.shape), right)
    is_singular = found.is_singular.reshape((*matrix.shape[:-2], 1, 1))
    result = is_singular.where(math.inf, result)
    return (result.squeeze(-1) if is_vector else result).cast(
        promote(as_float(self).dtype, as_float(other).dtype)
    )


def system(name: str, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor, bool]:
    """A matrix and its right sides (…, n, k) in one dtype, and whether they were vectors."""
    require_one_device(name, self, other)
    is_vector = other.ndim == 1 or (self.ndim > 2 and other.shape == self.shape[:-1])
    columns = other.unsqueeze(-1) if is_vector else other
    require_matrix(name, columns)
    if columns.shape[-2] != self.shape[-2]:
        raise ShapeError(
            f"{name}: the matrix has {self.shape[-2]} rows and the right side {columns.shape[-2]}",
            facts=[("matrix", self.shape), ("right side", other.shape)],
            rule="self @ x = other needs as many rows on both sides",
        )
    broadcast_shape(name, self.shape[:-2], columns.shape[:-2])
    dtype = promote(promote(as_float(self).dtype, as_float(other).dtype), dtypes.float32)
    return self.cast(dtype), columns.cast(dtype), is_vector


def _permutation_sign(rows: Tensor) -> Tensor:
    """1 or -1 for each permutation (batch, n): the parity of its inversions, as int64."""
    size = known(rows.shape[1])
    later = rows.ones_like(dtype=dtypes.bool).unsqueeze(1).expand(-1, size, size).triu(1)
    inverted = (rows.unsqueeze(2) > rows.unsqueeze(1)) & later
    return 1 - 2 * (inverted.sum((1, 2)) % 2)


def _trace_of_product(a: Tensor, b: Tensor) -> Tensor:
    return (a * transposed(b)).sum((1, 2))


def _determinant_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """d det A = tr(B dA) and dB = B tr(A⁻¹ dA) - A⁻¹ dA B, where B = det A A⁻¹, the adjugate"""
    (_, adjugate, inverse), (change,) = results, changes
    growth = _trace_of_product(inverse, change).reshape(-1, 1, 1)
    return (
        _trace_of_product(adjugate, change),
        adjugate * growth - product(product(inverse, change), adjugate),
        _inverse_change(inverse, change),
    )


def _logarithm_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """d log |det A| = Re tr(A⁻¹ dA); a complex sign s rotates by i s Im tr(A⁻¹ dA)"""
    (_, inverse, *sign), (change,) = results, changes
    growth = _trace_of_product(inverse, change)
    slopes = (s * growth.imag * 1j for s in sign)
    return growth.real, _inverse_change(inverse, change), *slopes


def det(self: Tensor) -> Tensor:
    """Return the determinant of a square matrix, or of each in a batch; 1 for one of size 0.

    It is 0 for a matrix with a pivot of 0, and its gradient there is the adjugate.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).det().round().item()
    -2.0
    """
    size = require_square("det", self)
    x = batched(self, is_complex_too=True)
    found = eliminate(x)
    sign = found.sign.cast(x.dtype)
    value = found.pivots.prod(1) * sign
    if size:
        least = EPSILON[x.dtype] * scale_of(x).reshape(-1, 1)
        nonzero = (found.pivots == 0).where(least, found.pivots).prod(1) * sign
        adjugate = found.inverse * nonzero.reshape(-1, 1, 1)
        value = with_tangent((value, adjugate, found.inverse), (x,), _determinant_tangent)[0]
    return value.reshape(self.shape[:-2]).cast(as_float(self).dtype)


def slogdet(self: Tensor) -> SignLogDet:
    """Return the sign of the determinant and the logarithm of its absolute value.

    They are 0 and -inf for a singular matrix, which has no gradient. The sign has none at all.

    >>> from weft.tensor import Tensor
    >>> sign, size = Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()
    >>> sign.item(), size.item()
    (-1.0, 0.0)
    """
    n = require_square("slogdet", self)
    x = batched(self, is_complex_too=True)
    found = eliminate(x)
    sign = found.pivots.sgn().prod(1) * found.sign.cast(x.dtype)
    size = found.pivots.abs().log().sum(1)
    if n:
        signs = [sign] if sign.is_complex() else []
        size, _, *signs = with_tangent((size, found.inverse, *signs), (x,), _logarithm_tangent)
        sign = signs[0] if signs else sign
        size = found.is_singular.where(-math.inf, size)
    shape, dtype = self.shape[:-2], as_float(self).dtype
    return SignLogDet(sign.reshape(shape).cast(dtype), size.reshape(shape).cast(dtype.part))


def logdet(self: Tensor) -> Tensor:
    """Return the logarithm of the determinant of (…, n, n): -inf for 0, NaN below 0.

    PyTorch: logdet.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 0.0], [0.0, 0.5]]).logdet().item()
    0.0
    """
    sign, size = self.slogdet()
    if sign.is_complex():
        return sign.log() + size
    return (sign < 0).where(float("nan"), size)
