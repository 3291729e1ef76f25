"""The Schur form of general matrices: Householder's Hessenberg form, then QR iterations.

Both are loops of one body (`repeat.py`), so nothing is read on the way and the number of steps
follows from the size alone. A step of the iteration is one rotation of two neighboring rows and
columns: each matrix of a batch has its own block, shift and index, as part of the state, and one
that is done rotates by nothing. Rotations are complex and shifts are Wilkinson's, so real and
complex matrices are computed alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.checks import known
from weft.tensor.linalg.checks import EPSILON, identity
from weft.tensor.linalg.repeat import State, repeated

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Schur(NamedTuple):
    """A unitary Z and an upper triangular T with A = Z T Zᴴ, and which are not finished."""

    Z: Tensor
    T: Tensor
    is_open: Tensor


def _square(x: Tensor) -> Tensor:
    """|x|², which is real."""
    return x.real * x.real + x.imag * x.imag  # type: ignore[no-any-return]


def _complex_of(x: Tensor) -> Tensor:
    return x.__class__.complex(x, x.zeros_like())


def _on_parts(step: Callable[..., State], complexes: int) -> Callable[..., State]:
    """A step whose first values are complex, as one of their real and imaginary parts.

    Those are separate memory between steps, where a complex tensor would be put together.
    """

    def of_parts(*parts: Tensor) -> State:
        pairs = [parts[2 * i : 2 * i + 2] for i in range(complexes)]
        found = step(*(x.__class__.complex(x, y) for x, y in pairs), *parts[2 * complexes :])
        halves = [half for each in found[:complexes] for half in (each.real, each.imag)]
        return (*halves, *found[complexes:])

    return of_parts


def _repeated(step: Callable[..., State], steps: int, *state: Tensor) -> State:
    """`repeated`, with a state that begins with two complex values."""
    x, y, *rest = state
    parts = repeated(_on_parts(step, 2), steps, x.real, x.imag, y.real, y.imag, *rest)
    joined = (x.__class__.complex(*parts[i : i + 2]) for i in (0, 2))
    return (*joined, *parts[4:])


def _reflect(work: Tensor, basis: Tensor, below: Tensor) -> State:
    """Clear the first column under its second active row, then move it to the end.

    `below` (1, n) is 1 for the active rows without the first.
    """
    n = known(work.shape[1])
    numbers = work.__class__.arange(n, device=work.device).reshape(1, n)
    head_at = (numbers == 1) & (below > 0)
    x = (below > 0).where(work[:, :, 0], 0)  # (batch, n)
    rest = (head_at.logical_not().where(_square(x), 0)).sum(1, keepdim=True)
    head = head_at.where(x, 0).sum(1, keepdim=True)
    of_head = _square(head)
    length = (of_head + rest).sqrt()
    size = of_head.sqrt()
    phase = (size > 0).where(head / _complex_of((size > 0).where(size, 1)), 1)
    mirror = x + head_at.where(phase * length, 0)
    norm = (length * (length + size)).contiguous()  # half of |mirror|²
    is_needed = rest > 0
    factor = is_needed.where(1 / is_needed.where(norm, 1), 0).unsqueeze(2)
    row = (mirror.conj().unsqueeze(2) * work).sum(1, keepdim=True)  # (batch, 1, n)
    left = work - mirror.unsqueeze(2) * row * factor
    column = (left * mirror.unsqueeze(1)).sum(2, keepdim=True)
    both = left - column * mirror.conj().unsqueeze(1) * factor
    of_basis = (basis * mirror.unsqueeze(1)).sum(2, keepdim=True)
    turned = basis - of_basis * mirror.conj().unsqueeze(1) * factor
    below = (below > 0) & (numbers > 1)  # the first of them is done
    return both.roll(-1, 1).roll(-1, 2), turned.roll(-1, 2), below.roll(-1, 1).cast(dtypes.int32)


def hessenberg(x: Tensor) -> tuple[Tensor, Tensor]:
    """H with zeros below its first subdiagonal, and Q with x = Q H Qᴴ, of (batch, n, n)."""
    count, n = known(x.shape[0]), known(x.shape[1])
    basis = identity(x, n).expand(count, n, n) + 0
    if n < 3:
        return x, basis
    below = x.__class__([[0] + [1] * (n - 1)], dtype=dtypes.int32, device=x.device)
    work, basis, _ = _repeated(_reflect, n - 2, x, basis, below)
    work, basis = work.roll(n - 2, 1).roll(n - 2, 2), basis.roll(n - 2, 2)
    return work.triu(-1), basis


def _pick(x: Tensor, index: Tensor) -> Tensor:
    """The element (batch, 1) of (batch, n) that an index names; 0 beyond both ends."""
    numbers = x.__class__.arange(known(x.shape[1]), device=x.device).reshape(1, -1)
    return (numbers == index).where(x, 0).sum(1, keepdim=True)


def _shift(head: Tensor, right: Tensor, low: Tensor, tail: Tensor) -> Tensor:
    """The eigenvalue of two by two that is nearer to the last element."""
    half = (head - tail) * 0.5
    root = (half * half + right * low).sqrt()
    is_same = half.real * root.real + half.imag * root.imag >= 0
    total = half + is_same.where(root, -root)
    is_zero = _square(total) == 0
    return tail - is_zero.where(0, right * low / is_zero.where(1, total))


def _rotation(work: Tensor, k: Tensor, last: Tensor, tries: Tensor) -> tuple[Tensor, ...]:
    """Cosine and sine (batch, 1) of the next rotation, its index, the block's end, the tries.

    At the start of a sweep, where k is -1, the block is looked for: `work` is returned with zeros
    where its subdiagonal vanishes.
    """
    n = known(work.shape[1])
    numbers = work.__class__.arange(n, device=work.device).reshape(1, n)
    diagonal = work.diagonal(0, 1, 2)
    sub = work.diagonal(-1, 1, 2).pad((0, 1))  # (batch, n), the last is 0
    over = work.diagonal(1, 1, 2).pad((0, 1))
    sizes = _square(diagonal).sqrt()
    beside = sizes + sizes.roll(-1, 1)
    limit = (beside > 0).where(beside, 1) * EPSILON[work.dtype]
    is_small = _square(sub).sqrt() <= limit
    is_start = k < 0
    end = (is_small.where(-1, numbers).max(1, keepdim=True) + 1).cast(k.dtype)
    begin = ((is_small & (numbers < end - 1)).where(numbers, -1).max(1, keepdim=True) + 1).cast(
        k.dtype
    )
    tries = is_start.where((end == last).where(tries + 1, 0), tries)
    last = is_start.where(end, last)
    at = is_start.where(begin, k)
    low = _pick(sub, last - 1)
    usual = _shift(_pick(diagonal, last - 1), _pick(over, last - 1), low, _pick(diagonal, last))
    strange = _pick(diagonal, last) + low * 0.75
    shift = ((tries % 10) == 9).where(strange, usual)
    bulge = work.diagonal(-2, 1, 2).pad((0, min(2, n))) if n > 2 else sub * 0
    x = is_start.where(_pick(diagonal, begin) - shift, _pick(sub, k - 1))
    y = is_start.where(_pick(sub, begin), _pick(bulge, k - 1))
    length = (_square(x) + _square(y)).sqrt()
    is_needed = (last > 0) & (length > 0)
    divisor = is_needed.where(length, 1)
    cosine = is_needed.where(x / _complex_of(divisor), 1)
    sine = is_needed.where(y / _complex_of(divisor), 0)
    clears = is_start & is_small
    return cosine, sine, at, last, tries, clears


def _turned(x: Tensor, at: Tensor, cosine: Tensor, sine: Tensor, axis: int) -> Tensor:
    """Combine two neighbors along an axis: c x + s y, and c̄ y - s̄ x."""
    n = known(x.shape[2])
    numbers = x.__class__.arange(n, device=x.device).reshape(1, n)
    is_first, is_second = numbers == at, numbers == at + 1
    partner = is_first.where(at + 1, is_second.where(at, numbers)).clamp(0, n - 1)
    own = is_first.where(cosine, is_second.where(cosine.conj(), 1))
    other = is_first.where(sine, is_second.where(-sine.conj(), 0))
    moved = x.gather(axis, partner.unsqueeze(3 - axis).expand(x.shape).cast(dtypes.int32))
    return x * own.unsqueeze(3 - axis) + moved * other.unsqueeze(3 - axis)


def _iterate(work: Tensor, basis: Tensor, k: Tensor, last: Tensor, tries: Tensor) -> State:
    """One rotation of a sweep of each matrix."""
    n = known(work.shape[1])
    numbers = work.__class__.arange(n, device=work.device)
    rows, columns = numbers.reshape(1, n, 1), numbers.reshape(1, 1, n)
    cosine, sine, at, last, tries, clears = (
        each.contiguous() for each in _rotation(work, k, last, tries)
    )
    cleared = ((rows == columns + 1) & clears.unsqueeze(1)).where(0, work)
    left = _turned(cleared, at, cosine.conj(), sine.conj(), 1)
    both = _turned(left, at, cosine, sine, 2)
    is_gone = (rows == at.unsqueeze(2) + 1) & (columns == at.unsqueeze(2) - 1)
    following = (at + 1 < last).where(at + 1, -1)
    turned = _turned(basis, at, cosine, sine, 2)
    return is_gone.where(0, both), turned, following.cast(k.dtype), last, tries


def schur(x: Tensor) -> Schur:
    """The decomposition of complex (batch, n, n) whose elements are around 1, as constants."""
    count, n = known(x.shape[0]), known(x.shape[1])
    work, basis = hessenberg(x.detach())
    cls = x.__class__
    if n > 1:
        k = cls.full((count, 1), -1, dtype=dtypes.int32, device=x.device)
        zero = cls.zeros(count, 1, dtype=dtypes.int32, device=x.device)
        steps = 3 * n * n + 20 * n
        work, basis, *_ = _repeated(_iterate, steps, work, basis, k, zero, zero)
    sizes = _square(work.diagonal(0, 1, 2)).sqrt()
    sub = _square(work.diagonal(-1, 1, 2)).sqrt()
    beside = sizes[:, 1:] + sizes[:, : n - 1]
    limit = (beside > 0).where(beside, 1) * (4 * EPSILON[x.dtype])
    is_open = (sub > limit).any(1, keepdim=True)
    return Schur(basis, work.triu(), is_open)
