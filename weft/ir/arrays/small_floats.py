"""The floating-point formats as data, and their exact conversion to and from Python floats.

A Python float is a double and holds every value of every format here, so decoding is exact and
encoding rounds once, to nearest with ties to even, straight from the double. Constant folding, the
interpreter and the emulation of formats that a target lacks all take their rounding from here, so
they agree bit for bit. Results equal those of ml_dtypes, except where that library rounds a double
twice by way of float32. Tables are built on first use; importing this module computes nothing.
"""

import math
import struct
from functools import cache
from typing import Literal, NamedTuple


class FloatFormat(NamedTuple):
    """Describe a format: one sign bit, then the exponent, then the mantissa.

    `nan` says which bit patterns are NaN: those with a full exponent and a mantissa that is not
    zero (`ieee`), those with every bit but the sign set (`all-ones`), or the one that would be
    negative zero (`negative-zero`).
    """

    name: str
    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    infinities: bool
    nan: Literal["ieee", "all-ones", "negative-zero"]

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity_bits(self) -> int:
        """The pattern of a full exponent and no mantissa: infinity, where the format has one."""
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def largest_bits(self) -> int:
        """The pattern of the largest finite value; patterns are ordered as their values are."""
        if self.nan == "ieee":
            return self.infinity_bits - 1
        return self.sign_bit - (2 if self.nan == "all-ones" else 1)

    @property
    def nan_bits(self) -> int:
        """The pattern of the quiet NaN that operations produce, with its sign bit clear."""
        if self.nan == "ieee":
            return self.infinity_bits | 1 << (self.mantissa_bits - 1)
        return self.sign_bit - 1 if self.nan == "all-ones" else self.sign_bit


FLOAT16 = FloatFormat("float16", 16, 5, 10, 15, True, "ieee")
BFLOAT16 = FloatFormat("bfloat16", 16, 8, 7, 127, True, "ieee")
FLOAT32 = FloatFormat("float32", 32, 8, 23, 127, True, "ieee")
FLOAT64 = FloatFormat("float64", 64, 11, 52, 1023, True, "ieee")
FP8E4M3 = FloatFormat("fp8e4m3", 8, 4, 3, 7, False, "all-ones")
FP8E5M2 = FloatFormat("fp8e5m2", 8, 5, 2, 15, True, "ieee")
FP8E4M3FNUZ = FloatFormat("fp8e4m3fnuz", 8, 4, 3, 8, False, "negative-zero")
FP8E5M2FNUZ = FloatFormat("fp8e5m2fnuz", 8, 5, 2, 16, False, "negative-zero")

FORMATS = {
    format.name: format
    for format in (
        FLOAT16,
        BFLOAT16,
        FLOAT32,
        FLOAT64,
        FP8E4M3,
        FP8E5M2,
        FP8E4M3FNUZ,
        FP8E5M2FNUZ,
    )
}

# The formats that `struct` converts, several times faster than arithmetic on exponents does:
# the code of the float and of the unsigned integer of the same size.
_STRUCT_CODES = {"float16": ("<e", "<H"), "float32": ("<f", "<I"), "float64": ("<d", "<Q")}


class FloatInfo(NamedTuple):
    """The limits of a format; `eps` is the gap between 1 and the next value."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float


def decode(format: FloatFormat, bits: int) -> float:
    """Return the value of a bit pattern, exactly.

    >>> decode(FP8E4M3, 0x7E)
    448.0
    """
    if not 0 <= bits < 1 << format.bits:
        raise ValueError(f"{format.name}: {bits:#x} does not fit in {format.bits} bits")
    codes = _STRUCT_CODES.get(format.name)
    if codes is not None:
        value: float = struct.unpack(codes[0], struct.pack(codes[1], bits))[0]
        return value
    return _decode_fields(format, bits)


def _decode_fields(format: FloatFormat, bits: int) -> float:
    sign = -1.0 if bits & format.sign_bit else 1.0
    magnitude = bits & (format.sign_bit - 1)
    if format.nan == "negative-zero" and bits == format.nan_bits:
        return math.copysign(math.nan, sign)
    if magnitude > format.largest_bits:
        infinite = format.infinities and magnitude == format.infinity_bits
        return math.copysign(math.inf if infinite else math.nan, sign)
    exponent = magnitude >> format.mantissa_bits
    mantissa = magnitude & ((1 << format.mantissa_bits) - 1)
    if exponent == 0:
        exponent = 1  # a subnormal has the exponent of the smallest normal, and no implied bit
    else:
        mantissa |= 1 << format.mantissa_bits
    return sign * math.ldexp(mantissa, exponent - format.bias - format.mantissa_bits)


def encode(format: FloatFormat, value: float) -> int:
    """Return the bit pattern of the nearest value, the even one of two at the same distance.

    What is too large becomes infinity or, in a format without infinities, NaN. A NaN keeps its
    sign where the format has more than one; its payload is dropped.

    >>> hex(encode(BFLOAT16, 1.0)), hex(encode(FP8E4M3FNUZ, -0.0))
    ('0x3f80', '0x0')
    """
    sign = format.sign_bit if math.copysign(1.0, value) < 0.0 else 0
    if math.isnan(value):
        return sign | format.nan_bits
    codes = _STRUCT_CODES.get(format.name)
    if codes is not None:
        try:
            bits: int = struct.unpack(codes[1], struct.pack(codes[0], value))[0]
        except OverflowError:
            return sign | format.infinity_bits
        return bits
    return _encode_fields(format, sign, abs(value))


def _encode_fields(format: FloatFormat, sign: int, magnitude: float) -> int:
    overflow = format.infinity_bits if format.infinities else format.nan_bits
    if math.isinf(magnitude):
        return sign | overflow
    lowest = 1 - format.bias
    exponent = max(math.frexp(magnitude)[1] - 1, lowest) if magnitude else lowest
    # The scaling is exact: it leaves at most mantissa_bits + 1 bits before the point and never
    # makes a small number smaller. So `round`, which is exact and to even, is the only rounding.
    mantissa = round(math.ldexp(magnitude, format.mantissa_bits - exponent))
    # The implied bit of a normal number adds the missing one to the exponent field, and so does
    # the carry of a mantissa that rounds up to the next power of two.
    bits = ((exponent - lowest) << format.mantissa_bits) + mantissa
    if bits > format.largest_bits:
        return sign | overflow
    if bits == 0 and format.nan == "negative-zero":
        return 0
    return sign | bits


def round_to(format: FloatFormat, value: float) -> float:
    """Return the value of the format that is nearest to this one, as `encode` chooses it.

    >>> round_to(FP8E5M2, 1.1)
    1.0
    """
    return decode(format, encode(format, value))


@cache
def table(format: FloatFormat) -> tuple[float, ...]:
    """Return the values of all 256 bit patterns of an 8-bit format, in order.

    >>> table(FP8E5M2)[0x3C]
    1.0
    """
    if format.bits != 8:
        raise ValueError(f"{format.name}: only formats of 8 bits have a table")
    return tuple(decode(format, bits) for bits in range(256))


@cache
def finfo(format: FloatFormat) -> FloatInfo:
    """Return the limits of a format.

    >>> finfo(FP8E4M3).max
    448.0
    """
    largest = decode(format, format.largest_bits)
    return FloatInfo(
        bits=format.bits,
        eps=math.ldexp(1.0, -format.mantissa_bits),
        max=largest,
        min=-largest,
        smallest_normal=decode(format, 1 << format.mantissa_bits),
        smallest_subnormal=decode(format, 1),
    )


def round_int(format: FloatFormat, value: int) -> float:
    """Return the value of the format nearest to an integer of any size."""
    try:
        exact = float(value) if format.bits == 64 else _odd_double(value)
    except OverflowError:  # past the largest double
        exact = math.copysign(math.inf, value)
    return round_to(format, exact)


def _odd_double(value: int) -> float:
    """Return a double that rounds on to a narrower format as the integer itself would.

    Rounding twice goes wrong where the first rounding lands on a tie of the second. Here the bits
    that a double has no room for set its last bit instead, so no tie arises that was none before.
    """
    excess = max(abs(value).bit_length() - 53, 0)
    lost = value & (1 << excess) - 1 != 0
    return math.ldexp(value >> excess | lost, excess)
