"""Linear recurrences in chunks: h[t] = a[t] * h[t - 1] + b[t], where `a` is small beside `b`.

`associative_scan` asks here first. A state of a linear attention or state-space layer is a matrix
for each token, and decays by a number, or by a row of them. In levels of pairs all of these states
are in memory; in chunks of some tokens

    h[t] = sum over s <= t of the chunk: decay[t, s] * b[s]  +  decay[t, 0] * a[0] * h[before]

they are a product, and where the reader of `h` sums over an axis of it and `b` is an outer
product, the scheduler orders both sums so that no state but the last of each chunk is computed
(`schedule/reductions/order_contractions.py`). All of it is ordinary tensor code, gradients
included.

What is a linear recurrence is found in the graph of the function: a' = a1 * a2, and
b' = a2 * b1 + b2, with the axes of `a` aligned to those of `b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.ir.build import range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.indexing import everywhere, seen_through
from weft.support.errors import UsageError
from weft.tensor.autodiff.custom_gradient import with_body
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor
from weft.tensor.trace.pure import Outside
from weft.tensor.trace.state import tracing
from weft.tensor.trace.tracing import placeholder

Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]

# Elements of `b` for each of `a` from which on chunks take less work than levels of pairs, and
# from which on the decays of longer chunks are few beside states.
LEAST_SHARE: Final = 16
LARGE_SHARE: Final = 512
# Tokens from which on there are chunks, and how many a chunk has.
LEAST_SIZE: Final = 64
CHUNKS: Final = range(16, 33)
LONG_CHUNKS: Final = range(32, 129)
BEST_CHUNK: Final = 64
# Rows that are one product, and tokens of a chunk of states.
FEW: Final = 16
# The leading size that a function is looked at with.
_SIZE: Final = 3


class _Recurrence(NamedTuple):
    """Which of two tensors decays the other, and its sizes among the axes of that."""

    decay: int
    sizes: list[int]


def try_linear_scan(fn: Combine, rows: list[Tensor], size: int) -> list[Tensor] | None:
    """The scan of a linear recurrence along axis 0; None where it is none, or pairs are better."""
    if len(rows) != 2 or size < LEAST_SIZE or any(r.dtype is not dtypes.float32 for r in rows):
        return None
    recurrence = _recurrence(fn, rows)
    if recurrence is None:
        return None
    a, b = rows[recurrence.decay], rows[1 - recurrence.decay]
    share = math.prod(map(known, b.shape[1:])) // max(math.prod(map(known, a.shape[1:])), 1)
    chunk = _chunk(size, share)
    if chunk is None:
        return None
    states = _states(a.reshape([size, *recurrence.sizes]), b, chunk)
    decays = a.cumprod(0)
    return [decays, states] if recurrence.decay == 0 else [states, decays]


def _chunk(size: int, share: int) -> int | None:
    """How many tokens a chunk has: a divisor of all of them near the best."""
    if share < LEAST_SHARE:
        return None
    allowed, best = (LONG_CHUNKS, BEST_CHUNK) if share >= LARGE_SHARE else (CHUNKS, CHUNKS[0])
    found = [each for each in allowed if size % each == 0]
    return min(found, key=lambda each: abs(math.log(each / best)), default=None)


def _states(a: Tensor, b: Tensor, chunk: int) -> Tensor:
    """All states, of tensors with the same number of axes."""
    size = known(b.shape[0])
    if size <= FEW:
        decay = _decays(a.unsqueeze(0))[0]
        return (decay * b.unsqueeze(0)).sum(1)
    count = -(-size // chunk)
    missing = count * chunk - size
    if missing:
        a = a.pad([(0, missing), *[(0, 0)] * (a.ndim - 1)], value=1.0)
        b = b.pad([(0, missing), *[(0, 0)] * (b.ndim - 1)])
    a = a.reshape([count, chunk, *a.shape[1:]])
    b = b.reshape([count, chunk, *b.shape[1:]])
    decay = _decays(a)  # (chunks, tokens, earlier tokens, …)
    near = (decay * b.unsqueeze(1)).sum(2)
    last = (decay[:, -1] * b).sum(1)
    whole = a.cumprod(1)  # of the state before the chunk
    after = _states(whole[:, -1], last, FEW)
    before = after[:-1].pad([(1, 0), *[(0, 0)] * (after.ndim - 1)])
    states = near + whole * before.unsqueeze(1)
    return states.reshape([count * chunk, *b.shape[2:]])[:size]


def _decays(a: Tensor) -> Tensor:
    """The product of what is behind one token up to another; 0 for later ones.

    (chunks, tokens, …) gives (chunks, tokens, earlier tokens, …), with both axes of tokens last
    in memory.
    """
    size = known(a.shape[1])
    later = Tensor.arange(size, device=a.device).reshape([size, 1])
    earlier = Tensor.arange(size, device=a.device)
    own = a.movedim(1, -1)  # (chunks, …, tokens)
    factors = (later > earlier).where(own.unsqueeze(-1), 1.0)
    found = (later >= earlier).where(factors.cumprod(-2), 0.0).contiguous()
    found = with_body(found, [own], "decays", _slopes_of_decays)
    return found.movedim((-2, -1), (1, 2))


def _slopes_of_decays(inputs: tuple[Tensor], decays: Tensor, slopes: Tensor) -> Tensor:
    """decays[t, s] has the slope decays[t, r] * decays[r - 1, s] for a[r]; nothing is divided."""
    size = known(decays.shape[-1])
    before = decays[..., :-1, :].pad([*[(0, 0)] * (decays.ndim - 2), (1, 0), (0, 0)])
    lower = Tensor.ones(size, size, device=decays.device).tril()
    return ((decays.transpose(-2, -1) @ (slopes * lower)) * before).sum(-1)


# ---- what is a linear recurrence


def _recurrence(fn: Combine, rows: list[Tensor]) -> _Recurrence | None:
    """The linear recurrence that a function of two slices is, if it is one."""
    found = _looked_at(fn, rows)
    if found is None:
        return None
    first, then, made = found
    for decay in range(2):
        other = 1 - decay
        if not _is_of(made[decay], Op.MUL, first[decay], then[decay]):
            continue
        sizes = _aligned_sizes(made[other], first[other], then[other], then[decay])
        if sizes is not None:
            return _Recurrence(decay, sizes)
    return None


def _looked_at(fn: Combine, rows: list[Tensor]) -> tuple[list[UOp], list[UOp], list[UOp]] | None:
    """Two slices, and what a function makes of them; None of one that does more than that."""
    outside = Outside()
    shapes = [(_SIZE, *map(known, each.shape[1:])) for each in rows]
    sides = [
        [each._new(placeholder(each.uop, shape)) for each, shape in zip(rows, shapes, strict=True)]
        for _ in range(2)
    ]
    placeholders = [each.uop for side in sides for each in side]
    tracing.depth += 1
    try:
        made = [each.uop for each in fn(*sides)]
    except UsageError:  # said again where slices are combined, unless it is about this size
        return None
    finally:
        tracing.depth -= 1
    if outside.written(placeholders):
        outside.undo(placeholders)
        return None
    first, then = ([each.uop for each in side] for side in sides)
    return first, then, made


def _is_of(node: UOp, op: int, x: UOp, y: UOp) -> bool:
    return node.op == op and set(node.src) == {x, y}


def _aligned_sizes(node: UOp, before: UOp, then: UOp, decay: UOp) -> list[int] | None:
    """The sizes of a decay among the axes of states, if a node is decay * before + then."""
    if node.op != Op.ADD or then not in node.src:
        return None
    product = node.src[0] if node.src[1] is then else node.src[1]
    if product.op != Op.MUL or before not in product.src:
        return None
    factor = product.src[0] if product.src[1] is before else product.src[1]
    shape = shape_of(before)
    ranges = [range_(axis, size) for axis, size in enumerate(shape)]
    factor, address = seen_through(factor, everywhere(tuple(ranges)))
    used = [index for index in address.indices if index.ranges]
    axes = [index.arg for index in used if index.op == Op.RANGE]
    is_plain = factor is decay and len(axes) == len(used) and axes == sorted(set(axes))
    if not is_plain or 0 not in axes or address.mask.ranges:
        return None
    return [int(size) if axis in axes else 1 for axis, size in enumerate(shape)][1:]
