"""Movement ops, INDEX and SCATTER on arrays. Where NumPy forgives an unfit shape, they raise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.ir.arrays.values import Array
from weft.ir.build import Size
from weft.ir.ops import Op, name
from weft.ir.shapes import fill_pairs, fill_sizes
from weft.ir.uop import UOp
from weft.reference.fault import fault
from weft.reference.numpy_ops import elementwise
from weft.reference.reductions import accumulator

SizeOf = Callable[[Size], int]


def move(node: UOp, source: Array, size_of: SizeOf) -> Array:
    """The value of a movement op; `size_of` gives the value of a size that may be symbolic."""
    if node.op == Op.PERMUTE:
        return source.transpose(node.arg)
    if node.op == Op.FLIP:
        return np.flip(source, node.arg)
    if node.op in (Op.PAD, Op.SHRINK):
        pairs = [(size_of(low), size_of(high)) for low, high in fill_pairs(node)]
        return (_pad if node.op == Op.PAD else _shrink)(node, source, pairs)
    shape = tuple(size_of(extent) for extent in fill_sizes(node, node.arg, 1))
    return (_reshape if node.op == Op.RESHAPE else _expand)(node, source, shape)


def _pad(node: UOp, source: Array, pairs: list[tuple[int, int]]) -> Array:
    if len(pairs) != source.ndim or any(low < 0 or high < 0 for low, high in pairs):
        raise _misfit(node, source, pairs)
    return np.pad(source, pairs) if pairs else source


def _shrink(node: UOp, source: Array, pairs: list[tuple[int, int]]) -> Array:
    if len(pairs) != source.ndim or not all(
        0 <= low <= high <= extent for (low, high), extent in zip(pairs, source.shape, strict=True)
    ):
        raise _misfit(node, source, pairs)
    return source[tuple(slice(low, high) for low, high in pairs)]


def _reshape(node: UOp, source: Array, shape: tuple[int, ...]) -> Array:
    if math.prod(shape) != source.size:
        raise _misfit(node, source, shape)
    return source.reshape(shape)


def _expand(node: UOp, source: Array, shape: tuple[int, ...]) -> Array:
    if len(shape) != source.ndim or any(
        before not in (1, after) for before, after in zip(source.shape, shape, strict=True)
    ):
        raise _misfit(node, source, shape)
    return np.broadcast_to(source, shape)


def _misfit(node: UOp, source: Array, wanted: object) -> Exception:
    return fault(f"{name(node.op)} does not fit its source", node, source=source.shape, arg=wanted)


def pick(node: UOp, source: Array, mask: Array, indices: list[Array]) -> Array:
    """The value of INDEX: the elements of the leading axes, 0 where the mask is false.

    Where the mask is false an index may be anything; elsewhere it must lie in its axis.
    """
    mask, safe = _addresses(node, source, mask, indices)
    rest = source.shape[len(indices) :]
    if not mask.any():
        return np.zeros(mask.shape + rest, source.dtype)
    wide = mask.reshape(mask.shape + (1,) * len(rest))
    return np.where(wide, source[safe], np.zeros((), source.dtype))


def _addresses(
    node: UOp, source: Array, mask: Array, indices: list[Array]
) -> tuple[Array, tuple[Array, ...]]:
    """The mask of each position, and the indices there, 0 where it is false."""
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    mask = np.broadcast_to(mask, shape)
    for axis, index in enumerate(indices):
        extent = source.shape[axis]
        outside = mask & ((index < 0) | (index >= extent))
        if outside.any():
            wrong = np.broadcast_to(index, shape)[outside].flat[0]
            what = f"{name(node.op)} is on axis {axis} out of bounds at {wrong}"
            raise fault(what, node, index=wrong, size=extent)
    return mask, tuple(np.where(mask, index, 0).astype(np.int64) for index in indices)


def scatter(node: UOp, source: Array, updates: Array, mask: Array, indices: list[Array]) -> Array:
    """The value of SCATTER: updates reduced in one after the other, floats rounded at the end."""
    mask, safe = _addresses(node, source, mask, indices)
    op, dtype = node.arg[0], node.dtype
    wide = accumulator(dtype)
    reduced = elementwise(Op.CAST, wide, dtype, source).copy()
    rows = elementwise(Op.CAST, wide, dtype, updates)
    for position in zip(*np.nonzero(mask), strict=True) if mask.ndim else [()] * bool(mask):
        address = tuple(int(index[position]) for index in safe)
        reduced[address] = elementwise(op, wide, wide, reduced[address], rows[position])
    return elementwise(Op.CAST, dtype, wide, reduced)
