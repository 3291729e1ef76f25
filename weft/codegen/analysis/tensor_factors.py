"""A factor of a contraction as a tensor that copies of boxes can read.

`TensorCore` and the chooser ask here. A factor is memory whose flat index is a sum of multiples of
ranges: each range is an axis of the tensor, with the range's extent and its multiple as stride.
Where several ranges move along an axis of memory, as the pixels of an image and the taps of a
window do, the axes are those of the memory, and outside of them is the padding of the image. What
cannot be one comes with the reason, in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import extent_of
from weft.codegen.lower.flatten_memory import flat_index
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.reduction.contract import MOST_AXES, PART_BYTES, ROW_BYTES, Factor
from weft.ir.reduction.contraction import contraction_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.rules.logic import conditions
from weft.rules.simplify import simplify

# What is multiplied, and the dtype in which a matrix unit sums it.
SUMS: Final[dict[DType, DType]] = {
    dtypes.bfloat16: dtypes.float32,
    dtypes.float16: dtypes.float32,
    dtypes.fp8e4m3: dtypes.float32,
    dtypes.fp8e5m2: dtypes.float32,
    dtypes.int8: dtypes.int32,
    dtypes.uint8: dtypes.int32,
}
# Strides are numbers of so many bits, in bytes.
MOST_STRIDE: Final = 1 << 40
MOST_SIZE: Final = 1 << 31
# The elements of an axis that a box reaches over, and of which it may take one.
MOST_SPAN: Final = 256
MOST_TRAVERSAL: Final = 8


class Product(NamedTuple):
    """A reduction that sums products of elements of memory: the loads and the dtype of each."""

    reduction: UOp
    loads: tuple[UOp, UOp]


# Ranges with how many iterations of each are in a tile, the fastest first.
Extents = tuple[tuple[int, int], ...]


class Axis(NamedTuple):
    """An axis of a factor: the ranges that move along it and how far, its extent and its stride.

    The first iterations of all ranges are at `start`.
    """

    terms: Extents
    extent: int
    stride: int
    start: int = 0

    def step_of(self, number: int) -> int:
        """How far an iteration of a range moves."""
        return dict(self.terms).get(number, 0)

    def ends_with(self, range_: UOp) -> bool:
        """Whether iterations past the end of a range, and no others, are outside of the axis."""
        return self.terms == ((range_.arg, 1),) and (self.start, self.extent) == (
            0,
            extent_of(range_),
        )


def product_of(reduction: UOp) -> Product | str:
    """The product that a reduction is, or why it is none that a matrix unit computes.

    Whether its factors are tensors, `axes_of` says.
    """
    if contraction_of(reduction) is None or reduction.src[0].op != Op.MUL:
        return "it does not sum products of which each factor has ranges of its own"
    loads: list[UOp] = []
    for factor in reduction.src[0].src:
        inner = factor.src[0] if factor.op == Op.CAST else factor
        if inner.op != Op.LOAD:
            return "a factor is computed, and a copy of a box brings memory as it is"
        if inner.dtype not in SUMS:
            return f"there are none for {inner.dtype.name}"
        # A sum of bytes that wraps is one of 32 bits, cut off.
        wraps = reduction.dtype is inner.dtype and inner.dtype.kind != FLOAT
        if not wraps and SUMS.get(inner.dtype) is not reduction.dtype:
            return (
                f"products of {inner.dtype.name} are not summed in {reduction.dtype.name} by one"
            )
        loads.append(inner)
    if loads[0].dtype.itemsize != loads[1].dtype.itemsize:
        return "the factors differ in the size of an element"
    return Product(reduction, (loads[0], loads[1]))


def axes_of(load: UOp) -> list[Axis] | str:
    """The axes of a factor, that with the least stride first, or why it is not a tensor.

    They are its ranges where these are few and nothing is masked, otherwise those of its memory:
    what lies outside of them is 0, so a mask has to say just that.
    """
    index = load.src[0]
    memory = index.src[0]
    if memory.op != Op.PARAM or memory.src:
        return "a factor is not an argument of known size"
    mask = index.src[1]
    axes = _ranges_of(index) if mask.op == Op.CONST and mask.arg else None
    return axes if axes is not None else _axes_of_memory(index)


def _ranges_of(index: UOp) -> list[Axis] | None:
    """An axis for each range, if a copy takes as many and none is another's multiple."""
    _, terms = linear(flat_index(index.src[2:], shape_of(index.src[0])))
    axes: list[Axis] = []
    for term, stride in terms:
        extent = extent_of(term) if term.op == Op.RANGE else None
        if extent is None:
            return None
        axes.append(Axis(((term.arg, 1),), extent, stride))
    axes.sort(key=lambda axis: axis.stride)
    is_plain = len({axis.stride for axis in axes}) == len(axes) <= MOST_AXES
    return axes if is_plain else None


def _axes_of_memory(index: UOp) -> list[Axis] | str:
    """The axes of memory along which ranges move; neighbors that one range walks are one."""
    axes: list[Axis] = []
    sums: list[tuple[UOp, int]] = []
    stride, room = 1, 1
    inner: UOp | None = None  # what is left of axes that only together have such an index
    pairs = zip(reversed(index.src[2:]), reversed(shape_of(index.src[0])), strict=True)
    for position, size in pairs:
        assert isinstance(size, int)
        whole = position if inner is None else simplify(position * room + inner)
        room *= size
        start, terms = linear(whole)
        if any(term.op != Op.RANGE or step <= 0 for term, step in terms):
            inner = whole
            continue
        sums.append((whole, room))
        if terms:
            axes += _apart(start, terms, room, stride)
        stride, room, inner = stride * room, 1, None
    if inner is not None:
        return "the index of a factor is not a sum of multiples of its ranges"
    if all(any(_is_bound(each, *pair) for pair in sums) for each in conditions(index.src[1])):
        return axes
    return "a factor is masked, and not where its memory ends"


def _apart(start: int, terms: Sequence[tuple[UOp, int]], size: int, stride: int) -> list[Axis]:
    """An axis of memory; two of them where a range walks it in equal parts, as of a long sum."""
    if len(terms) == 2 and not start:
        (inner, one), (outer, step) = sorted(terms, key=lambda each: each[1])
        whole = (extent_of(inner) or 0) * (extent_of(outer) or 0)
        if one == 1 and step == extent_of(inner) and whole == size:
            return [
                Axis(((inner.arg, 1),), step, stride),
                Axis(((outer.arg, 1),), size // step, stride * step),
            ]
    if len(terms) == 1 and terms[0][1] == 1 and not start:  # what is behind it is not read
        size = min(size, extent_of(terms[0][0]) or size)
    return [Axis(tuple([(term.arg, step) for term, step in terms]), size, stride, start)]


def _is_bound(condition: UOp, position: UOp, size: int) -> bool:
    """Whether a condition holds wherever a position along an axis is inside of it."""
    is_least = condition.op == Op.NOT
    compared = condition.src[0] if is_least else condition
    if condition.op == Op.CONST:
        return bool(condition.arg)
    if compared.op != Op.LESS or compared.src[1].op != Op.CONST:
        return False
    limit = int(compared.src[1].arg)
    start, terms = linear(position)
    first, parts = linear(compared.src[0])
    if not parts or len(parts) != len(terms):
        return False
    factor = dict(terms).get(parts[0][0], 0) // parts[0][1]
    if factor < 1 or {(t, step * factor) for t, step in parts} != set(terms):
        return False
    # The position is `factor * x + start`, and the condition says that `x + first` is less.
    if is_least:
        return -(start // factor) + first >= limit
    return (size - 1 - start) // factor + first < limit


def faults_of_axes(
    axes: Sequence[Axis],
    rows: Extents,
    steps: Extents,
    parts: int,
    ranges: Mapping[int, UOp],
    load: UOp,
) -> Iterator[str]:
    """Why a tensor of these axes cannot be copied in boxes of rows and steps.

    A step of the sum takes so many `parts` of the last of `steps`.
    """
    size = load.dtype.itemsize
    tile = dict((*rows, *steps))
    found = [[number for number, _ in axis.terms if number in tile] for axis in axes]
    if sorted(number for each in found for number in each) != sorted(tile):
        yield "the row or the step is not an axis of a factor"
        return
    if any(len(each) > 1 for each in found):
        yield "rows or steps lie along the same axis"
        return
    if not 2 <= len(axes) <= MOST_AXES:
        yield f"a factor has {len(axes)} axes, and a box 2 to {MOST_AXES}"
    nearest = rows if found[0] and found[0][0] == rows[0][0] else steps
    if axes[0].stride != 1 or found[0] != [nearest[0][0]] or axes[0].step_of(nearest[0][0]) != 1:
        yield "neither rows nor steps of a factor are contiguous"
    if len(nearest) > 1 and (nearest is steps or rows[0][1] % (ROW_BYTES // size)):
        yield "what is contiguous in a tile is along several axes"
    if nearest is rows and size != 2:
        yield "elements of this size are multiplied along the sum alone"
    for axis, numbers in zip(axes, found, strict=True):
        for number in numbers:
            yield from _faults_of_box(axis, number, tile[number], ranges)
    for number, extent in steps:
        count = extent * (parts if number == steps[-1][0] else 1)
        (axis,) = [axis for axis in axes if axis.step_of(number)]
        if not axis.ends_with(ranges[number]) and (extent_of(ranges[number]) or 1) % count:
            yield "the last step of a sum reads elements of others"
    yield from _faults_of_layout(axes, load)


def _faults_of_box(
    axis: Axis, number: int, extent: int, ranges: Mapping[int, UOp]
) -> Iterator[str]:
    step = axis.step_of(number)
    if step > MOST_TRAVERSAL:
        yield f"elements are {step} apart along an axis, and a copy skips {MOST_TRAVERSAL - 1}"
    if step > 1 and extent * step > MOST_SPAN:
        yield f"a box reaches over {extent * step} elements of an axis, more than {MOST_SPAN}"


def _faults_of_layout(axes: Sequence[Axis], load: UOp) -> Iterator[str]:
    size = load.dtype.itemsize
    for axis in axes[1:]:
        if axis.stride * size % PART_BYTES:
            yield f"rows {axis.stride * size} bytes apart are not a multiple of {PART_BYTES}"
        if axis.stride * size >= MOST_STRIDE:
            yield "a stride has more bits than a copy takes"
    offset = offset_of(load, axes)
    if offset < 0 or offset * size % PART_BYTES:
        yield f"a factor starts {offset * size} bytes inside, not a multiple of {PART_BYTES}"
    if max(axis.extent for axis in axes) >= MOST_SIZE:
        yield "an axis is longer than a copy takes"


def offset_of(load: UOp, axes: Sequence[Axis]) -> int:
    """Where the first element of all axes is in its memory."""
    index = load.src[0]
    first = int(linear(flat_index(index.src[2:], shape_of(index.src[0])))[0])
    return first - sum(axis.start * axis.stride for axis in axes)


def tensor_of(
    load: UOp,
    axes: Sequence[Axis],
    rows: Extents,
    steps: Extents,
    parts: int,
    order: Sequence[int],
) -> Factor:
    """The factor in tiles of rows and steps; counters of the sum come in an order."""
    position = {number: at for at, axis in enumerate(axes) for number, _ in axis.terms}
    taken = dict(steps)
    taken[steps[-1][0]] *= parts
    tile = {number for number, _ in (*rows, *steps)}
    return Factor(
        dtype=load.dtype.name,
        offset=offset_of(load, axes),
        sizes=tuple([axis.extent for axis in axes]),
        strides=tuple([axis.stride for axis in axes]),
        rows=tuple([(position[number], extent) for number, extent in rows]),
        depth=tuple([(position[number], extent) for number, extent in steps]),
        moves=tuple([tuple([axis.step_of(n) * taken.get(n, 1) for n in order]) for axis in axes]),
        traversal=tuple([next((step for n, step in axis.terms if n in tile), 1) for axis in axes]),
    )


def step_extents(
    reduction: UOp, steps: Extents, parts: int, order: Sequence[int]
) -> tuple[int, ...]:
    """How many steps the sum takes along each of its ranges."""
    extents = {r.arg: extent_of(r) or 1 for r in reduction.src[1:]}
    taken = dict(steps)
    taken[steps[-1][0]] *= parts
    return tuple([-(-extents[number] // taken.get(number, 1)) for number in order])


def step_ranges(reduction: UOp, steps: Extents) -> tuple[int, ...]:
    """The ranges of the sum, those outside of tiles first."""
    inside = [number for number, _ in reversed(steps)]
    return (*(r.arg for r in reduction.src[1:] if r.arg not in inside), *inside)
