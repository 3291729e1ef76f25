"""Gathers, scatters, and writes to parts of a tensor."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import BOOL, dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.reduction.reductions import identity
from weft.ir.shapes import fill_pairs
from weft.ir.uop import UOp
from weft.onnx.write.builder import Builder, emits, static_shape
from weft.onnx.write.elementwise import computing_dtype
from weft.support.errors import NotSupported

_REDUCTIONS: Final = {Op.ADD: "add", Op.MUL: "mul", Op.MAX: "max", Op.MIN: "min"}
_OF_BOOLS: Final = {Op.ADD: Op.MAX, Op.OR: Op.MAX, Op.MUL: Op.MIN, Op.AND: Op.MIN}


def _positions(b: Builder, node: UOp, first: int, sizes: tuple[int, ...]) -> tuple[str, Any]:
    """The flat position that the indices of a node mean, and the shape of it."""
    shapes = [static_shape(index) for index in node.src[first:]]
    shape = np.broadcast_shapes(*shapes)
    total = b.ints([0])
    number: Any = None
    for index, size in zip(node.src[first:], sizes, strict=True):
        own = b.cast(b.value(index), dtypes.int64) if index.dtype not in (
            dtypes.index, dtypes.int64) else b.value(index)  # fmt: skip
        if number is None:
            number = own
        else:
            scaled = b.add("Mul", number, b.constant(np.array(size, np.int64)))
            number = b.add("Add", scaled, own)
    if static_shape(node.src[first]) != shape or number is None:
        number = b.add("Expand", number or total, b.ints(shape))
    return number, shape


@emits(Op.INDEX)
def picked(b: Builder, node: UOp) -> str:
    """INDEX(x, mask, i0, …): a gather of rows of the flat leading axes, 0 where masked."""
    source, mask = node.src[:2]
    count = len(node.src) - 2
    sizes = static_shape(source)[:count]
    rest = static_shape(source)[count:]
    number, shape = _positions(b, node, 2, sizes)
    flags = b.value(mask)
    safe = b.add("Where", flags, number, b.constant(np.array(0, np.int64)))
    safe = b.add("Expand", safe, b.ints(shape)) if shape else safe
    flat = b.reshape(b.value(source), [math.prod(sizes), *rest])
    if math.prod(sizes) == 0:
        return b.tensor(0, node.dtype, static_shape(node))
    found = b.add("Gather", flat, safe, axis=0)
    flags = b.add("Expand", flags, b.ints(shape))
    flags = b.reshape(flags, [*shape, *[1] * len(rest)])
    return _masked(b, node, flags, b.reshape(found, static_shape(node)))


def _masked(b: Builder, node: UOp, flags: str, found: str) -> str:
    if node.dtype.kind == BOOL:
        return b.add("And", flags, found)
    wide = computing_dtype(node.dtype)
    if wide is node.dtype:
        return b.add("Where", flags, found, b.scalar(0, node.dtype))
    return b.cast(b.add("Where", flags, b.cast(found, wide), b.scalar(0, wide)), node.dtype)


@emits(Op.SCATTER)
def scattered(b: Builder, node: UOp) -> str:
    """Updates go to rows of the flat leading axes; masked ones to a row that is cut off again."""
    source, updates, mask = node.src[:3]
    count = len(node.src) - 3
    sizes, rest = static_shape(source)[:count], static_shape(source)[count:]
    rows = math.prod(sizes)
    number, shape = _positions(b, node, 3, sizes)
    flags = b.add("Expand", b.value(mask), b.ints(shape))
    where = b.add("Where", flags, number, b.constant(np.array(rows, np.int64)))
    is_bool = node.dtype.kind == BOOL
    dtype = dtypes.int32 if is_bool else computing_dtype(node.dtype)
    op = _OF_BOOLS.get(node.arg[0], node.arg[0]) if is_bool else node.arg[0]
    values = [b.value(source), b.value(updates)]
    if dtype is not node.dtype:
        values = [b.cast(value, dtype) for value in values]
    flat = b.reshape(values[0], [rows, *rest])
    flat = b.add("Concat", flat, b.tensor(identity(op, dtype), dtype, [1, *rest]), axis=0)
    new = b.reshape(b.add("Expand", values[1], b.ints([*shape, *rest])), [math.prod(shape), *rest])
    index = b.reshape(where, [math.prod(shape), 1])
    done = b.add("ScatterND", flat, index, new, reduction=_REDUCTIONS[op])
    kept = b.add("Slice", done, b.ints([0]), b.ints([rows]), b.ints([0]))
    result = b.reshape(kept, static_shape(node))
    if is_bool:
        return b.add("Not", b.add("Equal", result, b.scalar(0, dtypes.int32)))
    return result if dtype is node.dtype else b.cast(result, node.dtype)


@emits(Op.AFTER)
def written(b: Builder, node: UOp) -> str:
    """Memory after writes to parts of it that are known when the graph is written."""
    value = b.value(node.src[0])
    shape = static_shape(node)
    for write in node.src[1:]:
        if write.op != Op.STORE or write.src[2:]:
            raise NotSupported("onnx.save: a write by indices of tensors inside of the function")
        target, new = write.src[:2]
        value = _with_part(b, value, shape, node, target, b.value(new))
    return value


def _moved(step: UOp, numbers: Any) -> Any:
    """Positions after a movement op of a view, which neither pads nor repeats."""
    if step.op == Op.PERMUTE:
        return numbers.transpose(step.arg)
    if step.op == Op.FLIP:
        return np.flip(numbers, step.arg)
    if step.op == Op.SHRINK:
        return numbers[tuple(slice(low, high) for low, high in fill_pairs(step))]
    if step.op == Op.RESHAPE:
        return numbers.reshape(static_shape(step))
    raise NotSupported("onnx.save: a write to a part of memory that overlaps itself")


def _with_part(
    b: Builder, value: str, shape: tuple[int, ...], node: UOp, target: UOp, new: str
) -> str:
    steps = []
    below = target
    while below.op in MOVEMENT:
        steps.append(below)
        below = below.src[0]
    if static_shape(below) != shape or below.op not in (Op.AFTER, Op.PARAM, Op.BUFFER):
        raise NotSupported(
            "onnx.save: a write to another part of memory than the one that is read"
        )
    if not steps:
        return b.add("Expand", new, b.ints(shape))
    numbers = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    for step in steps[::-1]:
        numbers = _moved(step, numbers)
    wide = computing_dtype(node.dtype) if node.dtype.kind != BOOL else dtypes.int32
    flat, rows = (b.reshape(b.cast(each, wide), [-1]) for each in
                  (value, b.add("Expand", new, b.ints(static_shape(target)))))  # fmt: skip
    index = b.constant(numbers.reshape(-1))
    done = b.add("ScatterElements", flat, index, rows, axis=0)
    return b.cast(b.reshape(done, shape), node.dtype)
