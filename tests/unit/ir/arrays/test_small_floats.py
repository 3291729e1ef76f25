"""Conversion of the small floats, against ml_dtypes and against a search with exact fractions.

ml_dtypes converts a double by way of float32 and so may round it twice. It is the oracle for
values that float32 holds; for the other doubles the oracle is the search.
"""

import bisect
import doctest
import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from weft.ir.arrays import small_floats
from weft.ir.arrays.small_floats import (
    FORMATS,
    FloatFormat,
    decode,
    encode,
    finfo,
    round_to,
    table,
)

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

PEER_NAMES = {
    "fp8e4m3": "float8_e4m3fn",
    "fp8e5m2": "float8_e5m2",
    "fp8e4m3fnuz": "float8_e4m3fnuz",
    "fp8e5m2fnuz": "float8_e5m2fnuz",
    "bfloat16": "bfloat16",
}
SMALL = [format for format in FORMATS.values() if format.bits <= 16]
EIGHT_BITS = [format for format in SMALL if format.bits == 8]

every_format = pytest.mark.parametrize("format", FORMATS.values(), ids=lambda f: f.name)
small_format = pytest.mark.parametrize("format", SMALL, ids=lambda f: f.name)
eight_bit_format = pytest.mark.parametrize("format", EIGHT_BITS, ids=lambda f: f.name)


def peer_dtype(format: FloatFormat) -> Any:
    name = PEER_NAMES.get(format.name)
    return np.dtype(getattr(ml_dtypes, name) if name else format.name)


def peer_decode(format: FloatFormat, patterns: list[int]) -> list[float]:
    unsigned = np.array(patterns, dtype=f"uint{format.bits}")
    with np.errstate(all="ignore"):
        return list(unsigned.view(peer_dtype(format)).astype(np.float64).tolist())


def peer_encode(format: FloatFormat, values: list[float]) -> list[int]:
    with np.errstate(all="ignore"):
        rounded = np.array(values, dtype=np.float64).astype(peer_dtype(format))
    return list(rounded.view(f"uint{format.bits}").tolist())


def to_float32(values: list[float]) -> list[float]:
    with np.errstate(all="ignore"):
        return list(np.array(values).astype(np.float32).astype(np.float64).tolist())


def same(left: float, right: float) -> bool:
    """Equal, where a NaN equals a NaN and zeros have signs."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)


def positive_values(format: FloatFormat) -> list[float]:
    """The finite values from zero up, and what would follow the largest: where overflow starts."""
    largest = format.largest_bits
    values = [decode(format, bits) for bits in range(largest + 1)]
    top_gap = math.ldexp(1.0, math.frexp(values[-1])[1] - 1 - format.mantissa_bits)
    return [*values, values[-1] + top_gap]


def nearest_bits(format: FloatFormat, values: list[float], value: float) -> int:
    """The pattern of the nearest of `values`, found by comparing exact distances."""
    sign = format.sign_bit if math.copysign(1.0, value) < 0 else 0
    magnitude = abs(value)
    above = min(bisect.bisect_left(values, magnitude), len(values) - 1)
    below = max(above - 1, 0)
    to_below = Fraction(magnitude) - Fraction(values[below])
    to_above = Fraction(values[above]) - Fraction(magnitude)
    if to_below == to_above:
        bits = below if below % 2 == 0 else above
    else:
        bits = below if to_below < to_above else above
    if bits > format.largest_bits:
        return sign | format.infinity_bits if format.infinities else sign | format.nan_bits
    return 0 if bits == 0 and format.nan == "negative-zero" else sign | bits


def probes(format: FloatFormat) -> list[float]:
    """Each value, each halfway point and its two neighbours, the overflow threshold included."""
    points = []
    for low, high in itertools.pairwise(positive_values(format)):
        half = (low + high) / 2
        points += [low, half, math.nextafter(half, -math.inf), math.nextafter(half, math.inf)]
    return points + [-point for point in points]


def random_doubles(format: FloatFormat, count: int) -> list[float]:
    generator = random.Random(f"doubles for {format.name}")
    info = finfo(format)
    lowest = math.frexp(info.smallest_subnormal)[1] - 3
    highest = math.frexp(info.max)[1] + 2
    return [
        generator.choice((-1.0, 1.0))
        * math.ldexp(1.0 + generator.random(), generator.randint(lowest, min(highest, 1023)))
        for _ in range(count)
    ]


SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, -5e-324]
SPECIAL += [1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 1e30, -1e30]


@small_format
def test_decode_of_every_pattern(format: FloatFormat) -> None:
    patterns = list(range(1 << format.bits))
    for bits, expected in zip(patterns, peer_decode(format, patterns), strict=True):
        assert same(decode(format, bits), expected), hex(bits)


@small_format
def test_encode_inverts_decode(format: FloatFormat) -> None:
    for bits in range(1 << format.bits):
        value = decode(format, bits)
        if not math.isnan(value):
            assert encode(format, value) == bits


@every_format
def test_encode_of_special_values(format: FloatFormat) -> None:
    found = [encode(format, value) for value in SPECIAL]
    assert found == peer_encode(format, SPECIAL)


@small_format
def test_encode_of_float32_values(format: FloatFormat) -> None:
    values = to_float32(probes(format) + random_doubles(format, 5000))
    found = [encode(format, value) for value in values]
    assert found == peer_encode(format, values)


@small_format
def test_encode_of_doubles_is_nearest(format: FloatFormat) -> None:
    generator = random.Random(f"probes for {format.name}")
    points = probes(format)
    if len(points) > 20_000:
        points = generator.sample(points, 20_000) + points[-8:]
    values = positive_values(format)
    for value in points + random_doubles(format, 2000):
        assert encode(format, value) == nearest_bits(format, values, value), value.hex()


@every_format
def test_encode_near_the_limits(format: FloatFormat) -> None:
    """The wide formats have no peer that rounds a double once but the hardware's float32."""
    info = finfo(format)
    half_gap = math.ldexp(1.0, math.frexp(info.max)[1] - 2 - format.mantissa_bits)
    tiny = info.smallest_subnormal / 2
    assert encode(format, info.max) == format.largest_bits
    assert encode(format, tiny) == 0
    if format.bits < 64:
        threshold = info.max + half_gap
        # The largest value is even only where all-ones is NaN, and there the tie stays finite.
        stays = format.largest_bits % 2 == 0
        assert (encode(format, threshold) == format.largest_bits) == stays
        assert encode(format, math.nextafter(threshold, 0.0)) == format.largest_bits
        assert encode(format, math.nextafter(threshold, math.inf)) != format.largest_bits
        assert encode(format, math.nextafter(tiny, 1.0)) == 1
        assert encode(format, 3 * tiny) == 2


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_struct_agrees_with_the_fields(name: str) -> None:
    format = FORMATS[name]
    for value in random_doubles(format, 5000):
        sign = format.sign_bit if math.copysign(1.0, value) < 0 else 0
        bits = encode(format, value)
        assert bits == small_floats._encode_fields(format, sign, abs(value)), value.hex()
        assert same(decode(format, bits), small_floats._decode_fields(format, bits))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_wide_formats_agree_with_numpy(name: str) -> None:
    format = FORMATS[name]
    values = random_doubles(format, 5000)
    assert [encode(format, value) for value in values] == peer_encode(format, values)


def test_doubles_are_rounded_once() -> None:
    # float32 would round the first addend away and leave an exact tie, which goes to even.
    assert round_to(FORMATS["bfloat16"], 1 + 2**-40 + 2**-8) == 1 + 2**-7
    assert round_to(FORMATS["fp8e4m3"], 1 + 2**-40 + 2**-4) == 1 + 2**-3
    assert round_to(FORMATS["float16"], 1 + 2**-40 + 2**-11) == 1 + 2**-10


@small_format
def test_round_to_is_idempotent(format: FloatFormat) -> None:
    for value in [*SPECIAL, *random_doubles(format, 500)]:
        once = round_to(format, value)
        assert same(round_to(format, once), once)


@eight_bit_format
def test_table_is_every_value(format: FloatFormat) -> None:
    assert len(table(format)) == 256
    assert table(format) is table(format)
    for found, expected in zip(table(format), peer_decode(format, list(range(256))), strict=True):
        assert same(found, expected)


@every_format
def test_finfo_agrees(format: FloatFormat) -> None:
    peer = ml_dtypes.finfo(peer_dtype(format))
    for field, found in finfo(format)._asdict().items():
        assert found == float(getattr(peer, field)), field


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="fp8e4m3: 0x100 does not fit in 8 bits"):
        decode(FORMATS["fp8e4m3"], 256)
    with pytest.raises(ValueError, match="only formats of 8 bits"):
        table(FORMATS["float16"])


def test_docstring_examples() -> None:
    assert doctest.testmod(small_floats).failed == 0
