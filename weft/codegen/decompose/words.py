"""Arithmetic of 64-bit integers as pairs of 32-bit words, for targets without them.

A `Wide` holds the low and the high word, both uint32, of scalars or of vectors alike. Signs are in
the bits; where an op depends on them there is a flag. Shifts rely on the op table: bits that are
moved beyond the width are gone, however far they are moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.codegen.decompose.float_parts import like
from weft.ir.dtypes import BOOL, DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make

WORD = (1 << 32) - 1
_BITS = 64


class Wide(NamedTuple):
    """low + 2**32 * high"""

    low: UOp
    high: UOp


def cast(x: UOp, dtype: DType) -> UOp:
    wanted = like(x, dtype)
    return x if x.dtype is wanted else make(Op.CAST, wanted, (x,))


def signed(word: UOp) -> UOp:
    """The bits of a word as an int32."""
    return make(Op.BITCAST, like(word, dtypes.int32), (word,))


def word_of(x: UOp) -> UOp:
    """The bits of an int32 as a word."""
    return make(Op.BITCAST, like(x, dtypes.uint32), (x,))


def constant(value: int, lanes: int) -> Wide:
    dtype = dtypes.uint32.vector(lanes)
    return Wide(const(dtype, value & WORD), const(dtype, value >> 32 & WORD))


def _one(flag: UOp) -> UOp:
    """1 where a bool holds, else 0, as a word."""
    return cast(flag, dtypes.uint32)


def each(change: Callable[..., UOp], *values: Wide) -> Wide:
    """An op that treats the words alike."""
    low = change(*(value.low for value in values))
    return Wide(low, change(*(value.high for value in values)))


def add(x: Wide, y: Wide) -> Wide:
    low = x.low + y.low
    return Wide(low, x.high + y.high + _one(low < x.low))


def negate(x: Wide) -> Wide:
    low = ~x.low + 1
    return Wide(low, ~x.high + _one(low.equal(0)))


def product_of_words(x: UOp, y: UOp) -> Wide:
    """All 64 bits of the product of two words."""
    x_low, x_high, y_low, y_high = x & 0xFFFF, x >> 16, y & 0xFFFF, y >> 16
    low = x_low * y_low
    first = x_high * y_low + (low >> 16)  # at most 0xFFFF * 0xFFFF + 0xFFFF, which fits
    second = x_low * y_high + (first & 0xFFFF)
    return Wide(x * y, x_high * y_high + (first >> 16) + (second >> 16))


def multiply(x: Wide, y: Wide) -> Wide:
    product = product_of_words(x.low, y.low)
    return Wide(product.low, product.high + x.low * y.high + x.high * y.low)


def _amount(y: Wide) -> UOp:
    """How far to shift, as a word; 64 stands for all that is farther."""
    is_far = ~y.high.equal(0) | ~(y.low < _BITS)
    return is_far.where(y.low.const_like(_BITS), y.low)


def shift_left(x: Wide, y: Wide) -> Wide:
    n = _amount(y)
    carried = x.low >> (n.const_like(32) - n) | x.low << (n + (WORD - 31))
    return Wide(x.low << n, x.high << n | carried)


def shift_right(x: Wide, y: Wide, is_signed: bool) -> Wide:
    n = _amount(y)
    low = x.low >> n | x.high << (n.const_like(32) - n)
    if not is_signed:
        return Wide(low | x.high >> (n + (WORD - 31)), x.high >> n)
    far = signed(n)
    high = signed(x.high)
    beyond = word_of(high >> (far < 32).where(far.const_like(0), far + -32))
    return Wide((far < 32).where(low, beyond), word_of(high >> far))


def less(x: Wide, y: Wide, is_signed: bool) -> UOp:
    high = signed(x.high) < signed(y.high) if is_signed else x.high < y.high
    return high | (x.high.equal(y.high) & (x.low < y.low))


def equal(x: Wide, y: Wide) -> UOp:
    return x.low.equal(y.low) & x.high.equal(y.high)


def where(condition: UOp, x: Wide, y: Wide) -> Wide:
    return Wide(condition.where(x.low, y.low), condition.where(x.high, y.high))


def is_negative(x: Wide) -> UOp:
    return signed(x.high) < 0


def magnitude(x: Wide) -> Wide:
    return where(is_negative(x), negate(x), x)


def divide(x: Wide, y: Wide, is_signed: bool) -> Wide:
    """The quotient rounded to zero; 0 where y is 0."""
    if not is_signed:
        return _quotient(x, y)
    quotient = _quotient(magnitude(x), magnitude(y))
    return where(is_negative(x) ^ is_negative(y), negate(quotient), quotient)


def _quotient(x: Wide, y: Wide) -> Wide:
    if y.low.op == y.high.op == Op.CONST and y.high.arg == 0 and 0 < y.low.arg < 1 << 16:
        return _by_half_word(x, y.low)
    rest = Wide(x.low.const_like(0), x.low.const_like(0))
    quotient = [x.low.const_like(0), x.low.const_like(0)]  # high, low
    one = constant(1, x.low.dtype.lanes)
    minus = negate(y)
    for bit in reversed(range(_BITS)):
        source = x.high if bit >= 32 else x.low
        # The bit that leaves `rest` says that it is greater than any divisor.
        leaves = signed(rest.high) < 0
        rest = each(_or, shift_left(rest, one), _bit(source, bit % 32))
        fits = leaves | ~less(rest, y, is_signed=False)
        rest = where(fits, add(rest, minus), rest)
        address = 0 if bit >= 32 else 1
        quotient[address] = quotient[address] << 1 | _one(fits)
    is_zero = equal(y, constant(0, x.low.dtype.lanes))
    return where(is_zero, constant(0, x.low.dtype.lanes), Wide(quotient[1], quotient[0]))


def _or(x: UOp, y: UOp) -> UOp:
    return x | y


def _bit(word: UOp, number: int) -> Wide:
    return Wide(word >> number & 1, word.const_like(0))


def _by_half_word(x: Wide, divisor: UOp) -> Wide:
    """Digit by digit: a rest and the next 16 bits fit into a word."""
    rest = x.low.const_like(0)
    digits: list[UOp] = []
    for part in (x.high >> 16, x.high & 0xFFFF, x.low >> 16, x.low & 0xFFFF):
        number = rest << 16 | part
        digit = make(Op.TRUNCDIV, number.dtype, (number, divisor))
        rest = number - digit * divisor
        digits.append(digit)
    return Wide(digits[2] << 16 | digits[3], digits[0] << 16 | digits[1])


def from_narrow(x: UOp) -> Wide:
    """A bool or an integer of at most 32 bits, with its sign."""
    low = cast(x, dtypes.uint32)
    if x.dtype.kind == BOOL or x.dtype.is_unsigned:
        return Wide(low, low.const_like(0))
    return Wide(low, word_of(cast(x, dtypes.int32) >> 31))


def from_float(x: UOp, is_signed: bool) -> Wide:
    """A float rounded to zero, kept in the range; NaN becomes 0. All steps are exact."""
    is_below = x < 0.0
    size = is_below.where(-x, x)
    rest = make(Op.TRUNC, x.dtype, (size,))
    limit = 2.0**63 if is_signed else 2.0**64
    fits = rest < limit
    rest = fits.where(rest, 0.0)
    digits: list[UOp] = []
    for power in (48, 32, 16, 0):
        digit = make(Op.TRUNC, x.dtype, (rest * 2.0**-power,))
        rest = rest - digit * 2.0**power
        digits.append(cast(cast(digit, dtypes.int32), dtypes.uint32))
    number = Wide(digits[2] << 16 | digits[3], digits[0] << 16 | digits[1])
    lanes = x.dtype.lanes
    most = constant((1 << 63 if is_signed else 1 << 64) - 1, lanes)
    least = constant(1 << 63, lanes)
    above = where(fits, number, where(x.equal(x), most, constant(0, lanes)))
    below = where(size < 2.0**63, negate(number), least)
    return where(is_below, below, above)


def to_float(x: Wide, dtype: DType, is_signed: bool) -> UOp:
    """The nearest float. Of a number that is too long the upper 32 bits count, the last of which
    says whether any bit below them is set, so that it is rounded once."""
    size = magnitude(x) if is_signed else x
    wide = like(x.low, dtype)
    if dtype.bits == 64:
        result = cast(size.high, dtype) * 2.0**32 + cast(size.low, dtype)
    else:
        length = _bit_length(size.high)
        shift = Wide(length, length.const_like(0))
        top = shift_right(size, shift, is_signed=False).low
        lost = size.low & ((length.const_like(1) << length) + WORD)
        lost = length.equal(32).where(size.low, lost)
        number = cast(top | _one(~lost.equal(0)), dtype)
        exponent = cast(length, dtypes.int32) + 127
        result = number * make(Op.BITCAST, wide, (exponent << 23,))
    return is_negative(x).where(-result, result) if is_signed else result


def _bit_length(word: UOp) -> UOp:
    """The position above the highest bit that is set; 0 for 0."""
    total = word.const_like(0)
    for step in (16, 8, 4, 2, 1):
        is_long = ~(word < 1 << step)
        total = is_long.where(total + step, total)
        word = is_long.where(word >> step, word)
    return total + word
