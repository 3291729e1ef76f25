"""TRUNCMOD of floats: the exact remainder, from the digits of both numbers.

With x = mx * 2**ex and y = my * 2**ey the remainder is (mx * 2**(ex - ey) mod my) * 2**ey. The
power is multiplied in a few bits at a time, as many as fit above the mantissa in an integer of the
float's width. The number of steps is that of the greatest difference of exponents: 35 for float32,
191 for float64.
"""

from __future__ import annotations

from weft.codegen.decompose.float_parts import (
    FloatLayout,
    absolute,
    bits_of,
    layout_of,
    like,
    scaled,
    sign_bits,
    where,
    with_sign,
)
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


def remainder(x: UOp, y: UOp) -> UOp:
    """x - y * trunc(x / y), with the sign of x; NaN where x is infinite or y is 0."""
    layout = layout_of(x)
    size, divisor = absolute(x), absolute(y)
    digits, exponent = _parts(size, layout)
    by, least = _parts(divisor, layout)
    by = where(by.equal(0), by.const_like(1), by)
    rest = _remainder(digits, by)
    step = layout.signed.bits - layout.mantissa - 1
    left = exponent - least
    left = where(left < 0, left.const_like(0), left)
    most = (1 << layout.signed.bits - 1 - layout.mantissa) - 3
    for _ in range(-(-most // step)):
        taken = where(left < step, left, left.const_like(step))
        rest = _remainder(rest << make(Op.CAST, rest.dtype, (taken,)), by)
        left = left - taken
    number = make(Op.CAST, x.dtype, (make(Op.CAST, like(x, layout.signed), (rest,)),))
    result = scaled(number, least - (layout.bias + layout.mantissa))
    result = where(size < divisor, size, result)
    result = with_sign(result, sign_bits(x))
    is_number = (size < float("inf")) & (divisor > 0.0)
    return where(is_number, result, x.const_like(float("nan")))


def _parts(size: UOp, layout: FloatLayout) -> tuple[UOp, UOp]:
    """The mantissa as an unsigned integer, and the exponent it goes with, from 1 on."""
    bits = bits_of(size)
    exponent = bits >> layout.mantissa
    mantissa = bits & ((1 << layout.mantissa) - 1)
    is_normal = ~exponent.equal(0)
    mantissa = where(is_normal, mantissa | (1 << layout.mantissa), mantissa)
    exponent = where(is_normal, exponent, exponent.const_like(1))
    return make(Op.CAST, like(size, layout.unsigned), (mantissa,)), exponent


def _remainder(x: UOp, y: UOp) -> UOp:
    return x - make(Op.TRUNCDIV, x.dtype, (x, y)) * y
