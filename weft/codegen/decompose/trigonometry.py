"""SIN and COS of float32 and float64, right for every argument however large.

An argument is reduced by the method of M. Payne and R. Hanek (1983): a float is an integer times a
power of two, so of the binary digits of 2/pi only a window matters for the quadrant and the rest.
The window is chosen by the exponent without a branch: the digits are a table of words, and each
bit of the position moves the table or leaves it. The product is exact fixed-point arithmetic in 64
bits for float32, and in 128 for float64, which leaves enough digits for the argument that comes
closest to a multiple of pi/2. Arguments below pi/4 are not reduced.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Final

from weft.codegen.decompose.float_parts import (
    Pair,
    absolute,
    bits_of,
    layout_of,
    like,
    multiply_pairs,
    pair_of,
    polynomial,
    sign_bits,
    sum_ordered,
    where,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.support import polynomials

# The first 1344 binary digits of 2/pi after the point.
_DIGITS: Final = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561"
    "b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484"
    "e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b"
    "3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
    "a9e391615ee61b08",
    16,
)
_DIGIT_COUNT: Final = 1344
_HALF_PI: Final = Fraction("1.5707963267948966192313216916397514420985846996875529")


def sine(x: UOp) -> UOp:
    """The sine of x radians."""
    quadrant, angle = _reduced(x)
    return where(x.equal(0.0), x, _of_quadrant(x, quadrant, angle))


def cosine(x: UOp) -> UOp:
    """The cosine of x radians: the sine, a quadrant further."""
    quadrant, angle = _reduced(x)
    return _of_quadrant(x, quadrant + 1, angle)


def _of_quadrant(x: UOp, quadrant: UOp, angle: Pair) -> UOp:
    """The sine of an angle, some quadrants further."""
    value = where(_has_bit(quadrant, 0), _cosine_near(angle), _sine_near(angle))
    value = where(_has_bit(quadrant, 1), -value, value)
    return where(absolute(x) < math.inf, value, x - x)


def _has_bit(number: UOp, bit: int) -> UOp:
    return ~(number & (1 << bit)).equal(0)


def _sine_near(angle: Pair) -> UOp:
    """The sine of an angle of at most pi/4."""
    high, low = angle
    square = high * high
    tail = high * square * polynomial(square, polynomials.SIN[high.dtype.scalar.name])
    return high + (tail + (low - square * low * 0.5))


def _cosine_near(angle: Pair) -> UOp:
    """The cosine of an angle of at most pi/4."""
    high, low = angle
    square = high * high
    tail = square * square * polynomial(square, polynomials.COS[high.dtype.scalar.name])
    half = square * 0.5
    total, error = sum_ordered(high.const_like(1.0), -half)
    return total + (error + (tail - high * low))


def _reduced(x: UOp) -> tuple[UOp, Pair]:
    """The nearest quadrant, an integer modulo 4, and the angle that is left, as a pair."""
    count = 2 if x.dtype.bits == 32 else 4
    limbs = _iterations(x, count)
    high = limbs[-1] << 32 | limbs[-2]
    quadrant = (high + (1 << 61)) >> 62
    rest = make(Op.BITCAST, like(x, dtypes.int64), (high - (quadrant << 62),))
    first = make(Op.CAST, x.dtype, (rest,))
    second = make(Op.CAST, x.dtype, (rest - make(Op.CAST, rest.dtype, (first,)),))
    if count == 4:
        low = make(Op.CAST, x.dtype, (limbs[1] << 32 | limbs[0],))
        second = second + low * 2.0**-64
    unit = pair_of(x.dtype.scalar, _HALF_PI.numerator, _HALF_PI.denominator << 62)
    unit_pair = (x.const_like(unit[0]), x.const_like(unit[1]))
    angle = multiply_pairs(sum_ordered(first, second), unit_pair)
    whole = make(Op.CAST, like(x, layout_of(x).signed), (quadrant,))
    is_near = absolute(x) < math.pi / 4
    is_negative = ~sign_bits(x).equal(0)
    quadrant = where(is_near, whole.const_like(0), where(is_negative, -whole, whole))
    high_angle = where(is_near, x, where(is_negative, -angle[0], angle[0]))
    low_angle = where(is_negative, -angle[1], angle[1])
    return quadrant, (high_angle, where(is_near, x.const_like(0.0), low_angle))


def _iterations(x: UOp, count: int) -> list[UOp]:
    """|x| * 2/pi modulo 4 as a fixed-point number, in `count` limbs of 32 bits, the lowest first.

    The two highest bits are the quadrant.
    """
    layout = layout_of(x)
    bits = bits_of(x)
    exponent = (bits >> layout.mantissa) & (2 * layout.bias + 1)
    mantissa = bits & ((1 << layout.mantissa) - 1) | 1 << layout.mantissa
    wide = make(Op.CAST, like(x, dtypes.uint64), (mantissa,))
    factors = [wide] if count == 2 else [wide & _MASK, wide >> 32]
    extra = len(factors)  # limbs below the last that is kept, for what they carry into it
    padding = 32 * extra
    start = exponent - (layout.bias + layout.mantissa + 2 - padding)
    window = _window(start, padding, count + extra, layout.bias)
    columns = [wide.const_like(0)] * (count + extra + 2)
    for i, limb in enumerate(reversed(window)):
        for j, factor in enumerate(factors):
            product = limb * factor
            columns[i + j] = columns[i + j] + (product & _MASK)
            columns[i + j + 1] = columns[i + j + 1] + (product >> 32)
    for i in range(count + extra - 1):
        columns[i + 1] = columns[i + 1] + (columns[i] >> 32)
    return [column & _MASK for column in columns[extra : extra + count]]


def _window(start: UOp, padding: int, count: int, most: int) -> list[UOp]:
    """Some limbs of 32 digits of 2/pi from a position on, the first digits first.

    The digits have `padding` zeros before them, and the position is at most `most` beyond those.
    """
    words = (padding + most) // 32 + count + 1
    digits = _DIGITS >> (_DIGIT_COUNT - (words * 32 - padding))
    table = [digits >> 32 * i & _MASK for i in range(words - 1, -1, -1)]
    dtype = like(start, dtypes.uint32)
    limbs = [const(dtype, word) for word in table]
    position = start >> 5
    for bit in reversed(range((words - count).bit_length())):
        is_set = _has_bit(position, bit)
        limbs += [const(dtype, 0)] * (count + 1 + (2 << bit) - len(limbs))
        limbs = [where(is_set, limbs[i + (1 << bit)], limbs[i]) for i in range(count + (1 << bit))]
    wide = like(start, dtypes.uint64)
    chosen = [make(Op.CAST, wide, (limb,)) for limb in limbs[: count + 1]]
    by = make(Op.CAST, wide, (start & 31,))
    back = by.const_like(32) - by
    return [(left << by | right >> back) & _MASK for left, right in itertools.pairwise(chosen)]


_MASK: Final = 0xFFFFFFFF
