"""A factor of a contraction as a tensor that copies of boxes can read.

`TensorCore` and the chooser ask here. A factor is memory whose flat index is a sum of multiples of
ranges: each range is an axis of the tensor, with the range's extent and its multiple as stride.
What cannot be one comes with the reason, in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import extent_of
from weft.codegen.lower.flatten_memory import flat_index
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.reduction.contract import MOST_AXES, PART_BYTES, Factor
from weft.ir.reduction.contraction import contraction_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp

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


class Product(NamedTuple):
    """A reduction that sums products of elements of memory: the loads and the dtype of each."""

    reduction: UOp
    loads: tuple[UOp, UOp]


class Axis(NamedTuple):
    """An axis of a factor: the range that runs along it, its extent, and its stride."""

    number: int
    extent: int
    stride: int


def product_of(reduction: UOp) -> Product | str:
    """The product that a reduction is, or why it is none that a matrix unit computes."""
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
        mask = inner.src[0].src[1]
        if mask.op != Op.CONST or not mask.arg:
            return "a factor is masked"
        loads.append(inner)
    if loads[0].dtype.itemsize != loads[1].dtype.itemsize:
        return "the factors differ in the size of an element"
    return Product(reduction, (loads[0], loads[1]))


def axes_of(load: UOp) -> list[Axis] | str:
    """The axes of a factor, that with the least stride first, or why it is no tensor."""
    index = load.src[0]
    memory = index.src[0]
    if memory.op != Op.PARAM or memory.src:
        return "a factor is not an argument of known size"
    _, terms = linear(flat_index(index.src[2:], shape_of(memory)))
    axes: list[Axis] = []
    for term, stride in terms:
        extent = extent_of(term) if term.op == Op.RANGE else None
        if extent is None:
            return "the index of a factor is not a sum of multiples of its ranges"
        axes.append(Axis(term.arg, extent, stride))
    axes.sort(key=lambda axis: axis.stride)
    return axes


def faults_of_axes(axes: Sequence[Axis], row: int, step: int, load: UOp) -> Iterator[str]:
    """Why a tensor of these axes cannot be copied in boxes of rows and steps."""
    size = load.dtype.itemsize
    numbers = [axis.number for axis in axes]
    if row not in numbers or step not in numbers:
        yield "the row or the step is not an axis of a factor"
        return
    if not 2 <= len(axes) <= MOST_AXES:
        yield f"a factor has {len(axes)} axes, and a box 2 to {MOST_AXES}"
    if axes[0].stride != 1 or numbers[0] not in (row, step):
        yield "neither rows nor steps of a factor are contiguous"
    if numbers[0] == row and size != 2:
        yield "elements of this size are multiplied along the sum alone"
    for axis in axes[1:]:
        if axis.stride * size % PART_BYTES:
            yield f"rows {axis.stride * size} bytes apart are not a multiple of {PART_BYTES}"
        if axis.stride * size >= MOST_STRIDE:
            yield "a stride has more bits than a copy takes"
    offset = offset_of(load)
    if offset < 0 or offset * size % PART_BYTES:
        yield f"a factor starts {offset * size} bytes inside, not a multiple of {PART_BYTES}"
    if max(axis.extent for axis in axes) >= MOST_SIZE:
        yield "an axis is longer than a copy takes"


def offset_of(load: UOp) -> int:
    """Where a factor begins in its memory."""
    index = load.src[0]
    return int(linear(flat_index(index.src[2:], shape_of(index.src[0])))[0])


def tensor_of(
    load: UOp, axes: Sequence[Axis], row: int, height: int, steps: Sequence[int], depth: int
) -> Factor:
    """The factor with tiles of `height` rows; of the ranges of the sum, the last is cut."""
    numbers = [axis.number for axis in axes]
    moves = {number: tuple(int(number == s) for s in steps) for number in numbers}
    moves[steps[-1]] = tuple(depth * at for at in moves[steps[-1]])
    return Factor(
        dtype=load.dtype.name,
        offset=offset_of(load),
        sizes=tuple([axis.extent for axis in axes]),
        strides=tuple([axis.stride for axis in axes]),
        rows=((numbers.index(row), height),),
        depth=numbers.index(steps[-1]),
        moves=tuple([moves[number] for number in numbers]),
    )


def step_extents(reduction: UOp, last: int, depth: int) -> tuple[int, ...]:
    """How many steps the sum takes along each of its ranges, the last of which is cut."""
    found = {r.arg: extent_of(r) or 1 for r in reduction.src[1:]}
    rest = [extent for number, extent in found.items() if number != last]
    return (*rest, -(-found[last] // depth))


def step_ranges(reduction: UOp, last: int) -> tuple[int, ...]:
    """The ranges of the sum, in the order of `step_extents`."""
    return (*(r.arg for r in reduction.src[1:] if r.arg != last), last)
