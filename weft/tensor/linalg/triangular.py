"""Triangular matrices: the Cholesky factor, and systems with a triangular matrix.

A triangular inverse is made of the inverses of its diagonal blocks, whose size doubles: log2(n)
products of batches, and no loop over rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.ir.dtypes import promote
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import known
from weft.tensor.linalg.checks import batched, identity, product, require_square, transposed
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.linalg.solve import solution, system
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def lower_inverse(matrix: Tensor) -> Tensor:
    """The inverse of (batch, n, n) lower triangular matrices; what is above is not looked at."""
    size = known(matrix.shape[-1])
    whole = 1 << max(size - 1, 0).bit_length()
    margin = whole - size
    # Ones on the diagonal of the margin keep it invertible and apart from the rest.
    corner = identity(matrix, whole)[size:, size:].pad((size, 0, size, 0))
    padded = matrix.pad((0, margin, 0, margin)) + corner
    blocks = 1.0 / padded.diagonal(0, 1, 2).reshape(-1, whole, 1, 1)  # (batch, count, s, s)
    width = 1
    while width < whole:
        count = whole // (2 * width)
        split = padded.reshape(-1, count, 2, width, count, 2, width)
        below = split[:, :, 1, :, :, 0].diagonal(0, 1, 3).permute(0, 3, 1, 2)
        pairs = blocks.reshape(-1, count, 2, width, width)
        top, bottom = pairs[:, :, 0], pairs[:, :, 1]  # (batch, count, s, s)
        corner = -product(bottom, product(below, top))
        upper = top.pad((0, width))
        blocks = upper.cat(corner.cat(bottom, dim=3), dim=2)
        width *= 2
    return blocks.reshape(-1, whole, whole)[:, :size, :size]


def _mirrored(matrix: Tensor) -> Tensor:
    """The symmetric matrix that a lower triangle stands for."""
    return matrix.tril() + transposed(matrix.tril(-1))


def from_lower(x: Tensor) -> Tensor:
    """The symmetric matrix whose lower triangle this is, with a gradient for both halves.

    Values come from the lower triangle, as in LAPACK. A gradient is symmetric, as in PyTorch.
    """
    return with_tangent((_mirrored(x),), (x,), _symmetric_tangent)[0]


def _symmetric_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    (change,) = changes
    return ((change + transposed(change)) * 0.5,)


def _eliminate_first(schur: Tensor, factor: Tensor) -> State:
    """Take the first row and column out of what remains, and append a column to the factor.

    What remains moves up and to the left, and zeros come in; the factor's rows rotate with it.
    """
    column = schur[:, :, :1] / schur[:, :1, :1].sqrt()  # (batch, n, 1)
    rest = column[:, 1:]
    remains = (schur[:, 1:, 1:] - rest * transposed(rest)).pad((0, 1, 0, 1))
    longer = factor[:, :, 1:].cat(column, dim=2)
    return remains, longer[:, 1:].cat(longer[:, :1], dim=1)


def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """Return the lower triangular L with L @ L.T = self, or its transpose.

    Of the matrix (…, n, n), which is symmetric with positive eigenvalues, only the lower triangle
    is read. Where it is not positive the factor has NaN; `torch.linalg.cholesky` and
    `numpy.linalg.cholesky` raise.

    >>> from weft.tensor import Tensor
    >>> Tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    size = require_square("cholesky", self)
    x = batched(self)
    start = _mirrored(x).detach()
    _, factor = repeated(_eliminate_first, size, start, start.zeros_like())
    if size:
        (factor,) = with_tangent((factor.tril(),), (from_lower(x),), _factor_tangent)
    result = transposed(factor) if upper else factor
    return result.reshape(self.shape).cast(as_float(self).dtype)


def _factor_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """dL = L lower(L⁻¹ dA L⁻ᵀ), where lower halves the diagonal"""
    (factor,), (change,) = results, changes
    inverse = lower_inverse(factor)
    inner = product(product(inverse, change), inverse, transpose_b=True)
    return (product(factor, (inner.tril() + inner.tril(-1)) * 0.5),)


def solve_triangular(
    self: Tensor, other: Tensor, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return x with self @ x = other, or x @ self = other, for a triangular matrix (…, n, n).

    Only that triangle is read, and not its diagonal where `unitriangular` says that it is 1.
    Batches broadcast. The name in PyTorch is `torch.linalg.solve_triangular`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 0.0], [1.0, 4.0]]).solve_triangular(Tensor([[2.0], [9.0]]), upper=False)\\
    ...     .tolist()
    [[1.0], [2.0]]
    """
    size = require_square("solve_triangular", self)
    if not left:
        solved = transposed(self).solve_triangular(
            transposed(other), not upper, unitriangular=unitriangular
        )
        return transposed(solved)
    matrix, right, is_vector = system("solve_triangular", self, other)
    matrix = matrix.triu() if upper else matrix.tril()
    if unitriangular:
        one = identity(matrix, size)
        matrix = (one == 1).where(one, matrix)
    fixed = batched(matrix.detach())
    near = transposed(lower_inverse(transposed(fixed))) if upper else lower_inverse(fixed)
    result = solution(matrix, near.reshape(matrix.shape), right)
    return (result.squeeze(-1) if is_vector else result).cast(
        promote(as_float(self).dtype, as_float(other).dtype)
    )
