"""FLOOR, TRUNC, ROUND, MAX and MIN of targets that lack them, NaN and signed zeros included."""

from __future__ import annotations

from weft.codegen.decompose.float_parts import (
    absolute,
    bits_of,
    float_of,
    layout_of,
    sign_bits,
    where,
    with_sign,
)
from weft.ir.dtypes import BOOL, FLOAT
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


def _nearest(size: UOp) -> UOp:
    """The nearest integral value of a number that is not negative, halves to even."""
    first_without_fraction = 2.0 ** layout_of(size).mantissa
    near = (size + first_without_fraction) - first_without_fraction
    return where(size < first_without_fraction, near, size)


def round_to_even(node: UOp) -> UOp:
    """ROUND: the nearest integral float, halves to even."""
    x = node.src[0]
    return with_sign(_nearest(absolute(x)), sign_bits(x))


def truncate(node: UOp) -> UOp:
    """TRUNC: the integral part."""
    x = node.src[0]
    size = absolute(x)
    near = _nearest(size)
    return with_sign(where(near > size, near + -1.0, near), sign_bits(x))


def round_down(node: UOp) -> UOp:
    """FLOOR: the greatest integral float that is not greater."""
    x = node.src[0]
    whole = make(Op.TRUNC, x.dtype, (x,))
    return where(x < whole, whole + -1.0, whole)


def greater(node: UOp) -> UOp:
    """MAX: NaN if either is, and 0.0 is greater than -0.0."""
    x, y = node.src
    return _chosen(x, y, x < y, y < x, Op.OR, Op.AND)


def lesser(node: UOp) -> UOp:
    """MIN: NaN if either is, and -0.0 is less than 0.0."""
    x, y = node.src
    return _chosen(x, y, y < x, x < y, Op.AND, Op.OR)


def _chosen(
    x: UOp, y: UOp, prefers_y: UOp, prefers_x: UOp, join_bools: int, join_zeros: int
) -> UOp:
    """The one of two values that is preferred; where neither is, the two ops say."""
    if x.dtype.kind == BOOL:
        return make(join_bools, x.dtype, (x, y))
    if x.dtype.kind != FLOAT:
        return where(prefers_y, y, x)
    bits = make(join_zeros, bits_of(x).dtype, (bits_of(x), bits_of(y)))
    # Equal floats differ in bits only if they are zeros; what is left has a NaN.
    same = where(x.equal(y), float_of(bits), x + y)
    return where(prefers_y, y, where(prefers_x, x, same))
