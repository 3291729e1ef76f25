"""Gradients of the movement ops: each moves its gradient the other way.

All but EXPAND only put elements elsewhere, so these rules serve values of any dtype; the rules of
memory push masks of bools through them.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.ir.build import reduce_axes
from weft.ir.movement import as_shape, flip, pad, permute, reshape, shrink
from weft.ir.ops import Op
from weft.ir.shapes import fill_pairs, same_size, shape_of
from weft.ir.sizes import minus, plus
from weft.ir.uop import UOp


def _reshape(node: UOp, g: UOp) -> Parts:
    """RESHAPE: back to the old shape"""
    return (reshape(g, shape_of(node.src[0])),)


def _expand(node: UOp, g: UOp) -> Parts:
    """EXPAND: the sum over the repeated axes"""
    sizes = zip(shape_of(node.src[0]), shape_of(node), strict=True)
    axes = [axis for axis, (old, new) in enumerate(sizes) if not same_size(old, new)]
    return (reduce_axes(g, Op.ADD, axes) if axes else g,)


def _permute(node: UOp, g: UOp) -> Parts:
    """PERMUTE: the inverse permutation"""
    inverse = sorted(range(len(node.arg)), key=node.arg.__getitem__)
    return (permute(g, inverse),)


def _pad(node: UOp, g: UOp) -> Parts:
    """PAD: without the padding"""
    shape = shape_of(node.src[0])
    inner = [
        (before, plus(before, size))
        for (before, _), size in zip(fill_pairs(node), shape, strict=True)
    ]
    return (as_shape(shrink(g, inner), shape),)


def _shrink(node: UOp, g: UOp) -> Parts:
    """SHRINK: zeros where it cut"""
    shape = shape_of(node.src[0])
    around = [
        (start, minus(size, stop))
        for (start, stop), size in zip(fill_pairs(node), shape, strict=True)
    ]
    return (as_shape(pad(g, around), shape),)


def _flip(node: UOp, g: UOp) -> Parts:
    """FLIP: the same flip"""
    return (flip(g, node.arg),)


MOVEMENT_RULES: Final[dict[int, SlopeRule]] = {
    Op.RESHAPE: _reshape,
    Op.EXPAND: _expand,
    Op.PERMUTE: _permute,
    Op.PAD: _pad,
    Op.SHRINK: _shrink,
    Op.FLIP: _flip,
}
