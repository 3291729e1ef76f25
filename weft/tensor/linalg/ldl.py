"""The LDL decomposition of symmetric and Hermitian matrices, and systems solved by its factors.

Pivots are those of Bunch and Kaufman's diagonal pivoting, as LAPACK's sytrf and hetrf choose
them: blocks of size 1 or 2 stand on the diagonal of D. LAPACK works on the lower triangle from
the first column on, and this does too, a column for each iteration. For the second column of a
block of size 2 an iteration does nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.checks import known
from weft.tensor.linalg.checks import batched, identity, require_square
from weft.tensor.linalg.repeat import State, repeated

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# The growth of blocks of size 1 and of size 2 is bounded alike (Bunch and Kaufman, 1977).
_ALPHA = (1 + math.sqrt(17)) / 8


class LDL(NamedTuple):
    """Both factors in one matrix, and LAPACK's pivots: below 0 for blocks of size 2."""

    LD: Tensor
    pivots: Tensor


class LDLWithInfo(NamedTuple):
    """The factors and the pivots, and the first block of D that is 0, or 0."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _at(x: Tensor, index: Tensor) -> Tensor:
    """The columns (batch, n) of (batch, n, n) that an index (batch, 1) names."""
    numbers = x.__class__.arange(known(x.shape[2]), device=x.device).reshape(1, 1, -1)
    return (numbers == index.unsqueeze(2)).where(x, 0).sum(2)


def _swapped(x: Tensor, one: Any, other: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Indices `one` and `other` (batch, 1) of (batch, n, …) exchanged along axes."""
    numbers = x.__class__.arange(known(x.shape[1]), device=x.device).reshape(1, -1)
    source = (numbers == one).where(other, (numbers == other).where(one, numbers))
    for axis in axes:
        index = source if x.ndim == 2 else source.unsqueeze(3 - axis)
        x = x.gather(axis, index.expand(x.shape))
    return x


def _kind_of_pivot(work: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """Which index (batch, 1) comes to the front, and whether two columns are one block."""
    numbers = work.__class__.arange(known(work.shape[1]), device=work.device).reshape(1, -1)
    # Of complex numbers LAPACK compares the sum of both parts.
    sizes = work.real.abs() + work.imag.abs() if work.dtype.is_complex else work.abs()
    first = (active & (numbers > 0)).where(sizes[:, :, 0], 0)
    greatest = first.max(1, keepdim=True)
    row = first.argmax(1, keepdim=True)
    row = (greatest > 0).where(row, 0)
    others = _at(sizes, row)
    in_row = (active & (numbers != row)).where(others, 0).max(1, keepdim=True)
    own = (numbers == row).where(others, 0).sum(1, keepdim=True)
    head = sizes[:, :1, 0]
    stays = (head >= _ALPHA * greatest) | (head * in_row >= _ALPHA * greatest * greatest)
    is_double = stays.logical_not() & (own < _ALPHA * in_row)
    return stays.where(0, row), is_double


def _columns(work: Tensor, is_double: Tensor, conjugate: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The two columns (batch, n) of L D that a block has, and what the others lose by it."""
    n = known(work.shape[1])
    numbers = work.__class__.arange(n, device=work.device).reshape(1, -1)
    is_first, is_second = numbers == 0, numbers == 1
    a, b = work[:, :, 0], work[:, :, min(1, n - 1)]  # (batch, n)
    head, low, tail = a[:, :1], a[:, min(1, n - 1), None], b[:, min(1, n - 1), None]
    # One column: l = a / d.
    single = is_first.where(0, a / (head == 0).where(1, head))
    # Two: W D = [a b], by the determinant of D.
    determinant = head * tail - low * conjugate(low)
    determinant = (determinant == 0).where(1, determinant)
    beyond = numbers > 1
    left = beyond.where((a * tail - b * low) / determinant, 0)
    right = beyond.where((b * head - a * conjugate(low)) / determinant, 0)
    first = is_double.where(left, single)
    second = is_double.where(right, 0)
    lost = first.unsqueeze(2) * conjugate(a).unsqueeze(1)
    lost = lost + second.unsqueeze(2) * conjugate(b).unsqueeze(1)
    of_block = is_first.where(head, (is_second & is_double).where(low, first))
    return of_block, (is_second & is_double).where(tail, second), lost


def _step(hermitian: bool) -> Any:
    def conjugate(x: Tensor) -> Tensor:
        return x.conj() if hermitian and x.dtype.is_complex else x

    def step(
        work: Tensor, result: Tensor, active: Tensor, pivots: Tensor, is_done: Tensor, k: Tensor
    ) -> State:
        """The first column, or two, then each goes to the end. `is_done`: it was a second one."""
        n = known(work.shape[1])
        numbers = work.__class__.arange(n, device=work.device).reshape(1, -1)
        is_active = active.reshape(1, -1) > 0
        chosen, is_double = _kind_of_pivot(work, is_active)
        moved = _swapped(work, is_double.where(1, 0), chosen, (1, 2))
        first, second, lost = _columns(moved, is_double, conjugate)
        both = is_active.unsqueeze(1) & is_active.unsqueeze(2)
        rest = both.where(moved - lost, 0)
        taken = (numbers == 0).unsqueeze(1), ((numbers == 1) & is_double).unsqueeze(1)
        column = taken[0].where(first.unsqueeze(2), taken[1].where(second.unsqueeze(2), result))
        whole = is_active.unsqueeze(2).where(column, result)
        done = is_done.unsqueeze(2)
        pivot = is_double.where(-1, 1) * (chosen + k + 1).cast(pivots.dtype)
        pivot = is_done.where(pivots[:, -1:], pivot)
        return (
            done.where(work, rest).roll(-1, 1).roll(-1, 2),
            done.where(result, whole).roll(-1, 1).roll(-1, 2),
            active[1:].pad((0, 1)),
            pivots[:, 1:].cat(pivot.cast(pivots.dtype), dim=1),
            is_double & is_done.logical_not(),
            k + 1,
        )

    return step


def _whole(x: Tensor, hermitian: bool) -> Tensor:
    """The matrix whose lower triangle is that of (batch, n, n)."""
    below = x.tril(-1).transpose(1, 2)
    diagonal = x.tril() - x.tril(-1)
    if hermitian and x.dtype.is_complex:
        below, diagonal = below.conj(), diagonal.real.cast(x.dtype)
    return x.tril(-1) + diagonal + below


def ldl_factor(self: Tensor, *, hermitian: bool = False) -> LDLWithInfo:
    """Return the factors L and D of a symmetric (…, n, n) in one matrix, pivots, and an info.

    The lower triangle is read. There is no gradient, as in PyTorch: linalg.ldl_factor_ex.

    >>> from weft.tensor import Tensor
    >>> ldl_factor(Tensor([[4.0, 2.0], [2.0, 5.0]])).LD.tolist()
    [[4.0, 0.0], [0.5, 4.0]]
    """
    n = require_square("ldl_factor", self)
    x = batched(self, is_complex_too=True).detach()
    count, cls, device = known(x.shape[0]), x.__class__, x.device
    pivots = cls.zeros(count, n, dtype=dtypes.int32, device=device)
    found = x
    if n and count:
        start = _whole(x, hermitian)
        active = cls.ones(n, dtype=dtypes.int32, device=device)
        flags = cls.zeros(count, 1, dtype=dtypes.bool, device=device)
        k = cls.zeros(1, 1, dtype=dtypes.int32, device=device)
        _, found, _, pivots, _, _ = repeated(
            _step(hermitian), n, start, start.zeros_like(), active, pivots, flags, k
        )
        found = found.tril()
    is_zero = (found.diagonal(0, 1, 2) == 0) & (pivots > 0)
    numbers = cls.arange(1, n + 1, dtype=dtypes.int32, device=device)
    first = is_zero.where(numbers, n + 1).min(1) if n else pivots.sum(1)
    info = (first > n).where(0, first).cast(dtypes.int32)
    batch = self.shape[:-2]
    return LDLWithInfo(found.reshape(self.shape), pivots.reshape((*batch, n)), info.reshape(batch))


def _permute(lower: Tensor, order: Tensor, pivots: Tensor, is_done: Tensor, k: Tensor) -> State:
    """Exchange the rows of earlier columns, which LAPACK leaves as they were."""
    numbers = order.__class__.arange(known(order.shape[1]), device=order.device).reshape(1, -1)
    pivot = pivots[:, :1]
    is_double = pivot < 0
    one = k + is_double.where(1, 0)
    other = is_done.where(one, pivot.abs() - 1)
    moved = _swapped(lower, one, other, (1,))
    earlier = (numbers < k).unsqueeze(1)
    return (
        earlier.where(moved, lower),
        _swapped(order, one, other, (1,)),
        pivots.roll(-1, 1),
        is_double & is_done.logical_not(),
        k + 1,
    )


def _unpacked(work: Tensor, pivots: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """L with ones on its diagonal, D, and the order of rows, for which A[order] = L D Lᵀ."""
    count, n = known(work.shape[0]), known(work.shape[1])
    cls, device = work.__class__, work.device
    numbers = cls.arange(n, dtype=dtypes.int32, device=device)
    # The second of two columns is where the pivots before it, of one value, are odd in number.
    is_double = (pivots < 0).cast(dtypes.int32)
    second = ((is_double.cumsum(1) % 2 == 0) & (pivots < 0)).cast(work.dtype)  # (batch, n)
    beside = work.diagonal(-1, 1, 2) * second[:, 1:]
    off = beside.diag_embed(-1)
    other = off.transpose(1, 2)
    other = other.conj() if hermitian and work.dtype.is_complex else other
    middle = work.diagonal(0, 1, 2).diag_embed() + off + other
    lower = work.tril(-1) - off
    order = numbers.expand(count, n) + 0
    flags = cls.zeros(count, 1, dtype=dtypes.bool, device=device)
    k = cls.zeros(1, 1, dtype=dtypes.int32, device=device)
    lower, order, _, _, _ = repeated(_permute, n, lower, order, pivots, flags, k)
    return lower + identity(work, n), middle, order


def ldl_solve(self: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Return x with A @ x = B, from the factors that `ldl_factor` packed of A.

    PyTorch: linalg.ldl_solve.

    >>> from weft.tensor import Tensor
    >>> packed = ldl_factor(Tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> ldl_solve(packed.LD, packed.pivots, Tensor([[6.0], [7.0]])).tolist()
    [[1.0], [1.0]]
    """
    n = require_square("ldl_solve", self)
    if not n or not B.numel():
        return B._same()
    x = batched(self, is_complex_too=True).detach()
    lower, middle, order = _unpacked(x, pivots.reshape((known(x.shape[0]), n)), hermitian)
    batch = self.shape[:-2]
    lower, middle = (each.reshape((*batch, n, n)) for each in (lower, middle))
    rows = order.__class__.arange(n, device=order.device).reshape(1, 1, n)
    swap = (order.unsqueeze(2) == rows).cast(self.dtype).reshape((*batch, n, n))
    upper = lower.transpose(-1, -2)
    upper = upper.conj() if hermitian and upper.dtype.is_complex else upper
    solved = upper.solve(middle.solve(lower.solve(swap.matmul(B))))
    return swap.transpose(-1, -2).matmul(solved)
