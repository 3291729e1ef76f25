"""Floats taken apart and put together: bits, exponents, and sums and products without error.

All of it is branch-free and works on scalars and vectors of float32 and float64 alike. A pair
(high, low) of floats stands for their sum, which is about twice as precise as one float; see
T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.ir.dtypes import SCALARS, DType, canonical, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make

Pair = tuple[UOp, UOp]


class FloatLayout(NamedTuple):
    """The bits of a float dtype, and the integers of its width."""

    mantissa: int
    bias: int
    signed: DType
    unsigned: DType

    @property
    def round_at(self) -> float:
        """Adding this to a number below 2**(mantissa - 2) rounds it to an integer."""
        return 1.5 * 2.0**self.mantissa

    @property
    def half_mask(self) -> int:
        """The bits of a float that keep the upper half of its mantissa."""
        width = self.signed.bits
        return (1 << width) - (1 << (self.mantissa + 2) // 2)


LAYOUTS: Final = {
    dtypes.float32: FloatLayout(23, 127, dtypes.int32, dtypes.uint32),
    dtypes.float64: FloatLayout(52, 1023, dtypes.int64, dtypes.uint64),
}


def layout_of(x: UOp) -> FloatLayout:
    return LAYOUTS[x.dtype.scalar]


def like(x: UOp, dtype: DType) -> DType:
    """A dtype with as many lanes as a node has."""
    return dtype.scalar.vector(x.dtype.lanes)


def bits_of(x: UOp) -> UOp:
    """The bits of a float as a signed integer of its width."""
    return make(Op.BITCAST, like(x, layout_of(x).signed), (x,))


def float_of(bits: UOp) -> UOp:
    """The float with these bits."""
    return make(Op.BITCAST, like(bits, SCALARS[f"float{bits.dtype.bits}"]), (bits,))


def where(condition: UOp, x: UOp, y: UOp | float) -> UOp:
    return condition.where(x, y)


def absolute(x: UOp) -> UOp:
    bits = bits_of(x)
    return float_of(bits & int(bits.dtype.max))


def sign_bits(x: UOp) -> UOp:
    """The sign bit of a float, in place."""
    bits = bits_of(x)
    return bits & int(bits.dtype.min)


def with_sign(magnitude: UOp, sign: UOp) -> UOp:
    """A float that is not negative, with a sign bit from `sign_bits` put on."""
    return float_of(bits_of(magnitude) | sign)


def is_nan(x: UOp) -> UOp:
    return ~x.equal(x)


def rounded(x: UOp) -> tuple[UOp, UOp]:
    """The nearest integer of a number, as a float and as an exponent for `scaled_from_one`.

    The number is below twice the bias in size. The exponent has twice the bias added, in its
    lowest bits; what stands above them is not defined.
    """
    layout = layout_of(x)
    at = layout.round_at + 2 * layout.bias
    shifted = x + at
    return shifted - at, bits_of(shifted)


def scaled_from_one(change: UOp, exponent: UOp) -> UOp:
    """(1 + change) * 2**n, rounded once, where 2**n may be too large or too small for a float.

    n is an exponent from `rounded`. It is cut in halves, whose powers of two are floats: the bits
    of the first are those of n but the lowest, and the second has the rest. A multiply-add takes
    the first together with the sum.
    """
    layout = layout_of(change)
    first = (exponent << (layout.mantissa - 1)) & (2 * layout.bias + 1 << layout.mantissa)
    second = float_of((exponent << layout.mantissa) - first)
    power = float_of(first)
    return (change * power + power) * second


def power_of_two(exponent: UOp) -> UOp:
    """2**n as a float, for an integer n that gives a normal number."""
    layout = LAYOUTS[SCALARS[f"float{exponent.dtype.bits}"]]
    return float_of((exponent + layout.bias) << layout.mantissa)


def scaled(x: UOp, exponent: UOp) -> UOp:
    """x * 2**n, rounded once, where 2**n itself may be too large or too small for a float."""
    half = exponent >> 1
    return x * power_of_two(half) * power_of_two(exponent - half)


def polynomial_in_pairs(x: UOp, square: UOp, coefficients: tuple[float, ...]) -> UOp:
    """The value of a polynomial in half as many steps, for its square is at hand."""
    terms = [x.const_like(c) for c in coefficients]
    pairs = [x * odd + even for even, odd in zip(terms[::2], terms[1::2], strict=False)]
    pairs += terms[2 * len(pairs) :]
    total = pairs.pop()
    while pairs:
        total = total * square + pairs.pop()
    return total


def polynomial(x: UOp, coefficients: tuple[float, ...]) -> UOp:
    """The value of a polynomial, its constant term first."""
    total = x.const_like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def pair_of(dtype: DType, numerator: int, denominator: int) -> tuple[float, float]:
    """The fraction as a pair of floats of a dtype."""
    high = _nearest(dtype, numerator, denominator)
    top, bottom = high.as_integer_ratio()
    low = _nearest(dtype, numerator * bottom - top * denominator, denominator * bottom)
    return high, low


def _nearest(dtype: DType, numerator: int, denominator: int) -> float:
    """The fraction in a dtype; through float64, which is close enough for the low parts."""
    shift = max(denominator.bit_length() - abs(numerator).bit_length() + 80, 0)
    value = math.ldexp(float((numerator << shift) // denominator), -shift)
    return float(canonical(dtype.scalar, value))


def sum_ordered(x: UOp, y: UOp) -> Pair:
    """x + y without error, where x is 0 or not smaller than y."""
    total = x + y
    return total, y - (total - x)


def sum_exact(x: UOp, y: UOp) -> Pair:
    """x + y without error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def upper_half(x: UOp) -> UOp:
    """A float with the lower half of its mantissa cut off."""
    bits = bits_of(x)
    return float_of(bits & layout_of(x).half_mask)


def product_exact(x: UOp, y: UOp) -> Pair:
    """x * y without error, but for the last bits of float64."""
    product = x * y
    x_high, y_high = upper_half(x), upper_half(y)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def add_pairs(x: Pair, y: Pair) -> Pair:
    """The sum of two pairs."""
    high, error = sum_exact(x[0], y[0])
    return sum_ordered(high, error + (x[1] + y[1]))


def multiply_pairs(x: Pair, y: Pair) -> Pair:
    """The product of two pairs."""
    high, error = product_exact(x[0], y[0])
    return sum_ordered(high, error + (x[0] * y[1] + x[1] * y[0]))


def divide_by_pair(x: UOp, y: Pair) -> Pair:
    """x / y for a float and a pair."""
    quotient = x / y[0]
    product, error = product_exact(quotient, y[0])
    rest = ((x - product) - error) - quotient * y[1]
    return sum_ordered(quotient, rest / y[0])
