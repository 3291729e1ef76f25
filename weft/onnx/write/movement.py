"""Leaves, movement, and nodes that only hold others together."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtypes import BOOL, dtypes
from weft.ir.ops import Op
from weft.ir.results import FILLING
from weft.ir.shapes import fill_pairs
from weft.ir.uop import UOp
from weft.onnx.write.builder import Builder, emits, static_shape
from weft.onnx.write.elementwise import computing_dtype
from weft.support.errors import NotSupported

_MOST_COUNTED = 4096


@emits(Op.CONST)
def constant(b: Builder, node: UOp) -> str:
    return b.scalar(node.arg, node.dtype)


@emits(Op.IOTA)
def counted(b: Builder, node: UOp) -> str:
    (count,) = static_shape(node)
    if count <= _MOST_COUNTED:
        numbers = b.constant(np.arange(count, dtype=np.int64))
    else:
        ends = [b.constant(np.array(n, dtype=np.int64)) for n in (0, count, 1)]
        numbers = b.add("Range", *ends)
    return numbers if node.dtype in (dtypes.index, dtypes.int64) else b.cast(numbers, node.dtype)


@emits(Op.PARAM)
def argument(b: Builder, node: UOp) -> str:
    return str(b.arguments[node.arg[0]])


@emits(Op.RESHAPE)
def reshaped(b: Builder, node: UOp) -> str:
    return b.reshape(b.value(node.src[0]), static_shape(node))


@emits(Op.EXPAND)
def expanded(b: Builder, node: UOp) -> str:
    return b.add("Expand", b.value(node.src[0]), b.ints(static_shape(node)))


@emits(Op.PERMUTE)
def permuted(b: Builder, node: UOp) -> str:
    return b.add("Transpose", b.value(node.src[0]), perm=list(node.arg))


@emits(Op.PAD)
def padded(b: Builder, node: UOp) -> str:
    pairs = _pairs(node)
    amounts = [low for low, _ in pairs] + [high for _, high in pairs]
    value = b.value(node.src[0])
    if node.dtype.kind == BOOL:
        wide = b.add("Pad", b.cast(value, dtypes.int32), b.ints(amounts))
        return b.add("Not", b.add("Equal", wide, b.scalar(0, dtypes.int32)))
    wide_dtype = computing_dtype(node.dtype)
    if wide_dtype is node.dtype:
        return b.add("Pad", value, b.ints(amounts))
    return b.cast(b.add("Pad", b.cast(value, wide_dtype), b.ints(amounts)), node.dtype)


@emits(Op.SHRINK)
def cut(b: Builder, node: UOp) -> str:
    pairs, shape = _pairs(node), static_shape(node.src[0])
    axes = [
        n for n, (pair, size) in enumerate(zip(pairs, shape, strict=True)) if pair != (0, size)
    ]
    if not axes:
        return b.value(node.src[0])
    starts, ends = [pairs[n][0] for n in axes], [pairs[n][1] for n in axes]
    return b.add("Slice", b.value(node.src[0]), b.ints(starts), b.ints(ends), b.ints(axes))


@emits(Op.FLIP)
def flipped(b: Builder, node: UOp) -> str:
    axes = list(node.arg)
    count = len(axes)
    last = -(2**31)
    return b.add(
        "Slice", b.value(node.src[0]), b.ints([-1] * count), b.ints([last] * count),
        b.ints(axes), b.ints([-1] * count),
    )  # fmt: skip


def _pairs(node: UOp) -> list[tuple[int, int]]:
    pairs = [(low, high) for low, high in fill_pairs(node)]
    if not all(isinstance(each, int) for pair in pairs for each in pair):
        raise NotSupported("onnx.save: padding or cuts of symbolic sizes")
    return pairs  # type: ignore[return-value]


_TRANSPARENT = (Op.DETACH, Op.COPY, Op.STAGE, Op.CUSTOM_GRADIENT, Op.INLINE)


@emits(*_TRANSPARENT)
def passed_on(b: Builder, node: UOp) -> str:
    return b.value(node.src[0])


@emits(Op.TUPLE)
def several(b: Builder, node: UOp) -> str:
    """A tuple has no name; its items are asked for."""
    return ""


@emits(Op.ITEM)
def item(b: Builder, node: UOp) -> str:
    source = node.src[0]
    while source.op in _TRANSPARENT:
        source = source.src[0]
    if source.op == Op.TUPLE:
        return b.value(source.src[node.arg])
    if source.op == Op.CALL:
        return called(b, source, node.arg)
    raise NotSupported("onnx.save: an item of something that is not a tuple")


@emits(Op.CALL)
def call(b: Builder, node: UOp) -> str:
    return called(b, node, None)


def called(b: Builder, node: UOp, position: int | None) -> str:
    """A call, written out; of a tuple one item."""
    body: Any = node.arg
    if body.op in FILLING or body.op == Op.SINK:
        raise NotSupported(
            "onnx.save: a custom kernel, or a call that writes, cannot be written",
            rule="a saved function computes values of tensors",
        )
    if position is None and body.op == Op.TUPLE:
        return ""
    arguments = [b.value(source) for source in node.src]
    root = body if position is None else body.src[position]
    return b.inlined(root, arguments)
