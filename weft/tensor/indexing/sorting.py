"""Sorting along an axis: sort, argsort, topk.

An element and its position are packed into one integer, which is unique, so the order is stable
and a permutation comes out with the values. Blocks are sorted by counting: an element's rank is
the number of lesser ones. Then sorted blocks are merged in pairs. Each rank of a merged block
finds by bisection how many elements come from the left one, and reads its own; a merge is one
kernel of gathers, without writes. The work is n log(n) ** 2, in about log2(n) - 3 kernels.

NaN is greater than every number, as in PyTorch. The gradient goes to the elements that are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.ir import movement
from weft.ir.build import where
from weft.ir.dtypes import FLOAT, UINT, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import floor_quotient, most, times
from weft.ir.uop import UOp, const, make
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.checks import axis_of, known
from weft.tensor.methods.pairs import Picked
from weft.tensor.methods.sharding import whole_along

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Up to so many elements are counted at once; longer axes are merged from blocks of BLOCK.
MOST_COUNTED: Final = 256
BLOCK: Final = 64
LANES: Final = 16  # blocks are whole vectors
_LAST: Final = 2**63 - 1  # greater than every packed element
_HALF: Final = 2**31


def sort(
    self: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Picked:
    """Return the elements in order along an axis, and the positions they had, as int64.

    Equal elements keep their order, and NaN comes last, or first where the order descends. As
    `torch.sort(stable=True)`; `numpy.sort` and `numpy.argsort` give the two parts.

    >>> from weft.tensor import Tensor
    >>> values, positions = Tensor([3, 1, 2, 1]).sort()
    >>> values.tolist(), positions.tolist()
    ([1, 1, 2, 3], [1, 3, 2, 0])
    """
    return _first("sort", self, None, dim, descending)


def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the positions that put the elements along an axis in order, as int64.

    As `torch.argsort(stable=True)` and `numpy.argsort(kind="stable")`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[3.0, 1.0, 2.0]]).argsort(descending=True).tolist()
    [[0, 2, 1]]
    """
    return _first("argsort", self, None, dim, descending)[1]


def topk(
    self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
) -> Picked:
    """Return the `k` greatest elements along an axis, or the least, and their positions as int64.

    They come in order, also where `sorted_` does not ask for it; of equal elements the first are
    taken. As `torch.topk`.

    >>> from weft.tensor import Tensor
    >>> values, positions = Tensor([1.0, 4.0, 3.0, 2.0]).topk(2)
    >>> values.tolist(), positions.tolist()
    ([4.0, 3.0], [1, 2])
    """
    size = known(self.shape[axis_of("topk", dim, self.ndim)]) if self.ndim else 1
    if not 0 <= k <= size:
        raise ArgumentError(
            f"topk: {k} of {size} elements",
            facts=[("shape", self.shape), ("axis", dim)],
            rule="k is from 0 to the size of the axis",
        )
    return _first("topk", self, k, dim, largest)


def _first(name: str, self: Tensor, count: int | None, dim: int, descending: bool) -> Picked:
    """The first elements in order, all of them where there is no count, and their positions."""
    axis = axis_of(name, dim, self.ndim)
    if not self.ndim:
        flat, indices = _first(name, self.reshape(1), count, 0, descending)
        shape = () if count is None or count == 1 else (0,)
        return Picked(flat.reshape(shape), indices.reshape(shape))
    rows = self.movedim(axis, -1)
    order = positions_in_order(rows.detach(), count, descending).movedim(-1, axis)
    return Picked(self.gather(axis, order), order)


def positions_in_order(rows: Tensor, count: int | None = None, descending: bool = False) -> Tensor:
    """The positions of the elements along the last axis in order, as int64."""
    rows = whole_along(rows, -1)
    size = known(rows.shape[-1])
    count = size if count is None else count
    if 0 in rows.shape or count == 0:
        shape = (*rows.shape[:-1], count)
        return rows._new(movement.full(dtypes.int64, 0, shape))
    words = _words(rows.uop)
    if descending:
        words = [~word for word in words]
    order = None
    for number, word in enumerate(words):
        if order is not None:  # the order by a lower word is kept where the higher one is equal
            word = rows._new(word).gather(-1, order).uop
        is_last = number == len(words) - 1
        indices = _order_of_words(rows, word, count if is_last else size)
        order = indices if order is None else order.gather(-1, indices)
    assert order is not None
    return order


def _order_of_words(rows: Tensor, word: UOp, count: int) -> Tensor:
    """The positions of int64 numbers of 32 bits in order."""
    shape = shape_of(word)
    position = movement.positions(shape, len(shape) - 1, dtypes.int64)
    packed = sorted_rows(rows._new(word << 32 | position), count)
    return rows._new(packed.uop & 0xFFFFFFFF)


def _words(x: UOp) -> list[UOp]:
    """Numbers from -2**31 to below 2**31 as int64, the least significant first, that sort as x."""
    if x.dtype.is_complex:
        raise DTypeError(
            f"sort: not defined for {x.dtype.name}", rule="complex numbers have no order"
        )
    if x.dtype.kind == FLOAT:
        x = _sortable_bits(x)
    if x.dtype.bits < 64:
        wide = x.cast(dtypes.int64)
        return [wide + -_HALF if x.dtype is dtypes.uint32 else wide]
    low = (x & 0xFFFFFFFF).cast(dtypes.int64) + -_HALF
    high = (x >> 32).cast(dtypes.int64)
    return [low, high + -_HALF if x.dtype.kind == UINT else high]


def _sortable_bits(x: UOp) -> UOp:
    """Integers in the order of floats: zeros are equal, and NaN is the greatest."""
    if x.dtype.bits < 32:
        x = x.cast(dtypes.float32)
    whole = dtypes.int64 if x.dtype.bits == 64 else dtypes.int32
    bits = make(Op.BITCAST, whole, (x,))
    ordered = where(bits < 0, bits ^ whole.max, bits)
    ordered = where(x.equal(0), ordered.const_like(0), ordered)
    return where(x.equal(x), ordered, ordered.const_like(whole.max))


def sorted_rows(packed: Tensor, count: int) -> Tensor:
    """The least `count` numbers of each row of unique int64 numbers, in order."""
    *lead, last = packed.shape
    size, rows = known(last), times(*lead)
    node = movement.reshape(packed.uop, (rows, size))
    if size <= MOST_COUNTED:
        merged, width = _sorted_by_counting(packed, node), size
    else:
        blocks = 1 << (-(-size // BLOCK) - 1).bit_length()  # so that every merge is of pairs
        width = -(-size // blocks // LANES) * LANES
        node = _with_room(node, 1, blocks * width - size)
        node = movement.reshape(node, (times(rows, blocks), width))
        merged = _sorted_by_counting(packed, node)
        while blocks > 1:
            merged, width = _merged(merged, width, count)
            blocks //= 2
    least = movement.shrink(merged.uop, [(0, rows), (0, count)])
    return packed._new(movement.reshape(least, (*lead, count)))


def _with_room(node: UOp, axis: int, room: int) -> UOp:
    """The node with some of the last number behind an axis."""
    if not room:
        return node
    shape = shape_of(node)
    pairs = [(0, room if i == axis else 0) for i in range(len(shape))]
    position = movement.positions(shape_of(movement.pad(node, pairs)), axis)
    last = const(node.dtype, _LAST)
    return where(position < known(shape[axis]), movement.pad(node, pairs), last)


def _sorted_by_counting(like: Tensor, node: UOp) -> Tensor:
    """Rows in order: an element goes where as many are as are less than it.

    Past the end of the axis there may be several of the last number; what no element goes to is
    that number.
    """
    rows, size = shape_of(node)
    square = (rows, size, size)
    kept = like._new(node).contiguous().uop
    here = movement.broadcast(movement.reshape(kept, (rows, size, 1)), square)
    other = movement.broadcast(movement.reshape(kept, (rows, 1, size)), square)
    rank = like._new((other < here).cast(dtypes.int32)).sum(2, dtype=dtypes.int32)
    wanted = movement.broadcast(movement.reshape(rank.uop, (rows, 1, size)), square)
    hits = wanted.equal(movement.positions(square, 1))
    chosen = where(hits, other, const(node.dtype, _LAST))
    return like._new(chosen).min(2)


def _merged(like: Tensor, width: int, kept: int) -> tuple[Tensor, int]:
    """Rows of some width merged in pairs, and their width; of each the first `kept` stay."""
    node = like.uop
    rows = shape_of(node)[0]
    flat = like._new(movement.reshape(node, (times(rows, width),))).contiguous().uop
    wide = min(2 * width, kept)
    shape = (floor_quotient(rows, 2), wide)
    counter = dtypes.int32 if most(times(rows, width)) < _HALF else dtypes.int64
    rank = movement.positions(shape, 1, counter)
    left = movement.positions(shape, 0, counter) * (2 * width)
    right = left + width
    zero, full = rank.const_like(0), rank.const_like(width)
    taken = where(rank < width, zero, rank + -width)  # from the left block
    limit = where(rank < width, rank, full)
    step = 1 << width.bit_length() - 1
    while step:
        more = taken + step
        fits = more <= limit
        first = _at(flat, left + _inside(more + -1, width))
        second = _at(flat, right + _inside(rank - more, width))
        taken = where(fits & (first < second), more, taken)
        step //= 2
    rest, last = rank - taken, const(node.dtype, _LAST)
    merged = make(
        Op.MIN,
        node.dtype,
        (
            where(taken < width, _at(flat, left + _inside(taken, width)), last),
            where(rest < width, _at(flat, right + _inside(rest, width)), last),
        ),
    )
    return like._new(merged), wide


def _inside(index: UOp, size: int) -> UOp:
    """An index moved into an axis, so that a read needs no condition."""
    return index.maximum(index.const_like(0)).minimum(index.const_like(size - 1))


def _at(flat: UOp, index: UOp) -> UOp:
    return make(Op.INDEX, flat.dtype, (flat, const(dtypes.bool, True), index))
