"""The LU decomposition with partial pivoting, and systems solved by its factors.

Active rows and columns stay in front: a step works on the first ones, which then go to the end.
So every step is the same body, and LAPACK's order of rows comes out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import broadcast_shape, known
from weft.tensor.linalg.checks import (
    batched,
    identity,
    product,
    require_matrix,
    require_square,
    scale_of,
    transposed,
)
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.linalg.triangular import lower_inverse
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class LU(NamedTuple):
    """Both factors in one matrix, and LAPACK's pivots: row k was swapped with pivots[k] - 1."""

    LU: Tensor
    pivots: Tensor


class PLU(NamedTuple):
    """A permutation, a lower triangle with ones on its diagonal, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


def _eliminate(
    work: Tensor, rows: Tensor, columns: Tensor, pivots: Tensor, order: Tensor
) -> State:
    """One column: swap its greatest row to the front, divide, subtract, move both to the end.

    `rows` (m,) and `columns` (n,) are 1 where active; `order` (batch, m) are the original rows.
    """
    m, n = known(work.shape[1]), known(work.shape[2])
    first = work[:, :, 0]  # (batch, m)
    chosen = (rows > 0).where(first.abs(), -1.0).argmax(1, keepdim=True)  # (batch, 1)
    numbers = work.__class__.arange(m, device=work.device).reshape(1, m)
    source = (numbers == 0).where(chosen, (numbers == chosen).where(0, numbers))  # (batch, m)
    swapped = work.gather(1, source.unsqueeze(2).expand(-1, m, n))
    order = order.gather(1, source)
    pivot = swapped[:, :1, :1]
    divisor = (pivot == 0).where(1.0, pivot)
    below = rows.reshape(1, m, 1) * (numbers > 0).cast(work.dtype).unsqueeze(2)
    factor = swapped[:, :, :1] / divisor * below  # (batch, m, 1)
    later = columns.reshape(1, 1, n) * (work.__class__.arange(n, device=work.device) > 0).cast(
        work.dtype
    )
    rest = swapped - factor * swapped[:, :1] * later
    is_first = (work.__class__.arange(n, device=work.device) == 0).reshape(1, 1, n)
    done = (is_first & (below > 0)).where(factor, rest)
    return (
        done.roll(-1, 1).roll(-1, 2),
        rows[1:].pad((0, 1)),
        columns[1:].pad((0, 1)),
        pivots[:, 1:].cat(chosen.cast(pivots.dtype), dim=1),
        order.roll(-1, 1),
    )


def factorized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of (batch, m, n): both factors in one matrix, the pivots, and the rows in their order."""
    count, m, n = map(known, x.shape)
    steps = min(m, n)
    cls = x.__class__
    order = cls.arange(m, dtype=dtypes.int32, device=x.device).expand(count, m)
    pivots = cls.zeros(count, steps, dtype=dtypes.int32, device=x.device)
    if not steps or not count:
        return x, pivots, order
    scale = scale_of(x)
    ones = [cls.ones(size, dtype=x.dtype, device=x.device) for size in (m, n)]
    work, _, _, pivots, order = repeated(
        _eliminate, steps, x.detach() / scale, *ones, pivots, order + 0
    )
    work = work.roll(steps, 1).roll(steps, 2)
    order = order.roll(steps, 1)
    # The lower triangle has ratios, which no scale changes.
    work = work.tril(-1) + work.triu() * scale
    numbers = cls.arange(1, steps + 1, dtype=dtypes.int32, device=x.device)
    return work, pivots + numbers, order


def _factors(work: Tensor) -> tuple[Tensor, Tensor]:
    m, n = known(work.shape[-2]), known(work.shape[-1])
    least = min(m, n)
    lower = work[..., :least].tril(-1) + work.__class__.eye(
        m, least, dtype=work.dtype, device=work.device
    )
    return lower, work[..., :least, :].triu()


def _tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """F = L⁻¹ dA U⁻¹ of the square part: dL = L lower(F), dU = upper(F) U; then what is beyond."""
    (lower, upper), (change,) = results, changes
    least = known(lower.shape[2])
    l1, u1 = lower[:, :least], upper[:, :, :least]
    l_inverse = lower_inverse(l1)
    u_inverse = transposed(lower_inverse(transposed(u1)))
    inner = product(product(l_inverse, change[:, :least, :least]), u_inverse)
    of_l, of_u = product(l1, inner.tril(-1)), product(inner.triu(), u1)
    if known(lower.shape[1]) > least:
        rest = change[:, least:] - product(lower[:, least:], of_u)
        of_l = of_l.cat(product(rest, u_inverse), dim=1)
    if known(upper.shape[2]) > least:
        rest = change[:, :least, least:] - product(of_l[:, :least], upper[:, :, least:])
        of_u = of_u.cat(product(l_inverse, rest), dim=2)
    return of_l, of_u


def _decomposed(self: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L and U with their derivative, the pivots and the order of rows, of (batch, m, n)."""
    x = batched(self)
    work, pivots, order = factorized(x)
    lower, upper = _factors(work)
    if known(lower.shape[2]):
        index = order.unsqueeze(2).expand((-1, known(x.shape[1]), known(x.shape[2])))
        lower, upper = with_tangent((lower, upper), (x.gather(1, index),), _tangent)
    return lower, upper, pivots, order


def lu_factor(self: Tensor, *, pivot: bool = True) -> LU:
    """Return both factors of (…, m, n) in one matrix, and the pivots.

    PyTorch: linalg.lu_factor.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 1.0], [4.0, 4.0]]).lu_factor().LU.tolist()
    [[4.0, 4.0], [0.5, -1.0]]
    """
    rows, columns = require_matrix("lu_factor", self)
    lower, upper, pivots, _ = _decomposed(self)
    least = min(rows, columns)
    below = lower.tril(-1).pad((0, columns - least))
    packed = below + upper.pad((0, 0, 0, rows - least))
    shape = self.shape[:-2]
    return LU(
        packed.reshape(self.shape).cast(as_float(self).dtype), pivots.reshape((*shape, least))
    )


def plu(self: Tensor, *, pivot: bool = True) -> PLU:
    """Return P, L and U with P @ L @ U = self.

    PyTorch: linalg.lu.

    >>> from weft.tensor import Tensor
    >>> p, l, u = plu(Tensor([[2.0, 1.0], [4.0, 4.0]]))
    >>> l.tolist(), u.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [[4.0, 4.0], [0.0, -1.0]])
    """
    require_matrix("lu", self)
    lower, upper, _, order = _decomposed(self)
    dtype, shape = as_float(self).dtype, self.shape[:-2]
    parts = (_permutation(order, lower), lower, upper)
    return PLU(*(each.reshape((*shape, *each.shape[1:])).cast(dtype) for each in parts))


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return both factors in one matrix and the pivots, as the method of PyTorch does.

    `linalg.lu` gives P, L and U. With `get_infos` there is a third result: 0 for each matrix that
    is regular.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 1.0], [4.0, 4.0]]).lu()[1].tolist()
    [2, 2]
    """
    found = lu_factor(self, pivot=pivot)
    if not get_infos:
        return found
    singular = (found.LU.detach().diagonal(0, -2, -1) == 0).any(-1)
    return (*found, singular.cast(dtypes.int32))


def solve_by_factors(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return x with A @ x = self, from the factors that `lu` packed of A. PyTorch: lu_solve.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0], [4.0]]).lu_solve(*Tensor([[2.0, 0.0], [0.0, 4.0]]).lu()).tolist()
    [[1.0], [1.0]]
    """
    return lu_solve(LU_data, LU_pivots, self)


def _permutation(order: Tensor, like: Tensor) -> Tensor:
    """The matrix (batch, m, m) whose column k has its one in row order[k]."""
    numbers = like.__class__.arange(known(order.shape[1]), device=like.device)
    return (numbers.reshape(1, -1, 1) == order.unsqueeze(1)).cast(like.dtype)


def _swap(order: Tensor, pivots: Tensor) -> State:
    """Swap the first row with the one that the first pivot names; it goes to the end then."""
    size = known(order.shape[1])
    chosen = pivots[:, :1]
    numbers = order.__class__.arange(size, device=order.device).reshape(1, size)
    source = (numbers == 0).where(chosen, (numbers == chosen).where(0, numbers))
    return order.gather(1, source).roll(-1, 1), (pivots - 1).roll(-1, 1)


def _order(pivots: Tensor, rows: int) -> Tensor:
    """The rows (batch, m) in the order that pivots (batch, k) make of them."""
    count, steps = map(known, pivots.shape)
    start = pivots.__class__.arange(rows, dtype=dtypes.int32, device=pivots.device)
    order = start.expand(count, rows) + 0
    if not steps:
        return order
    order, _ = repeated(_swap, steps, order, pivots.cast(dtypes.int32) - 1)
    return order.roll(steps, 1)


def lu_unpack(
    self: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> PLU:
    """Return P, L and U of what `lu_factor` packed.

    PyTorch: lu_unpack.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 1.0], [4.0, 4.0]]).lu_factor().LU.lu_unpack(Tensor([2, 2])).P.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    rows, _ = require_matrix("lu_unpack", self)
    empty = self.zeros((0,), dtype=self.dtype, device=self.device)
    lower, upper = _factors(self) if unpack_data else (empty, empty)
    if not unpack_pivots:
        return PLU(empty, lower, upper)
    count = math.prod(known(size) for size in pivots.shape[:-1])
    order = _order(pivots.reshape((count, known(pivots.shape[-1]))), rows)
    permutation = _permutation(order, self).reshape((*self.shape[:-2], rows, rows))
    return PLU(permutation, lower, upper)


def lu_solve(
    self: Tensor, pivots: Tensor, other: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Return x with A @ x = other, from the factors that `lu_factor` packed of A.

    PyTorch: linalg.lu_solve.

    >>> from weft.tensor import Tensor
    >>> packed, pivots = Tensor([[2.0, 0.0], [0.0, 4.0]]).lu_factor()
    >>> lu_solve(packed, pivots, Tensor([[2.0], [4.0]])).tolist()
    [[1.0], [1.0]]
    """
    require_square("lu_solve", self)
    if not left:
        solved = lu_solve(self, pivots, transposed(other), adjoint=not adjoint)
        return transposed(solved)
    p, lower, upper = lu_unpack(self, pivots)
    if adjoint:
        first = transposed(upper).solve_triangular(other, upper=False)
        second = transposed(lower).solve_triangular(first, upper=True, unitriangular=True)
        return p.matmul(second)
    first = lower.solve_triangular(transposed(p).matmul(other), upper=False, unitriangular=True)
    return upper.solve_triangular(first, upper=True)


def cholesky_solve(self: Tensor, other: Tensor, upper: bool = False) -> Tensor:
    """Return x with A @ x = self, where `other` is the Cholesky factor of A.

    PyTorch: cholesky_solve.

    >>> from weft.tensor import Tensor
    >>> Tensor([[8.0]]).cholesky_solve(Tensor([[2.0]])).tolist()
    [[2.0]]
    """
    factor = transposed(other.triu()) if upper else other.tril()
    fixed = batched(factor.detach())
    inverse = lower_inverse(fixed)
    near = product(inverse, inverse, transpose_a=True).reshape(factor.shape)
    full = transposed(other) if upper else other
    batch = broadcast_shape("cholesky_solve", self.shape[:-2], other.shape[:-2])
    right, full, near = (each.expand((*batch, *each.shape[-2:])) for each in (self, full, near))
    if not right.numel():
        return right._same()
    found = product(near, right.detach())
    return with_tangent((found, near), (right, full), _factor_solution)[0]


def _factor_solution(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """dX = A⁻¹ (dB - dA X) with A = F Fᵀ; F counts whole, as in PyTorch"""
    (x, near), (_, factor), (of_right, of_factor) = results, inputs, changes
    half = product(of_factor, factor, transpose_b=True)
    of_matrix = half + transposed(half)
    moved = product(near, of_right - product(of_matrix, x))
    return moved, -product(product(near, of_matrix), near)


def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of A, where this tensor is the Cholesky factor of A.

    PyTorch: cholesky_inverse.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0]]).cholesky_inverse().tolist()
    [[0.25]]
    """
    size = require_square("cholesky_inverse", self)
    one = identity(self, size).expand(self.shape)
    return cholesky_solve(one, self, upper)


def triangular_solve(
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return x with A @ x = self for a triangular A, or Aᵀ @ x = self, and A.

    PyTorch: triangular_solve.

    >>> from weft.tensor import Tensor
    >>> Tensor([[4.0]]).triangular_solve(Tensor([[2.0]]))[0].tolist()
    [[2.0]]
    """
    matrix = transposed(A) if transpose else A
    is_upper = upper != transpose
    found = matrix.solve_triangular(self, upper=is_upper, unitriangular=unitriangular)
    return found, A.expand((*found.shape[:-2], *A.shape[-2:]))
