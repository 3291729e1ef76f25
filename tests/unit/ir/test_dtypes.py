"""Promotion, weak scalars, names and limits of the dtypes."""

import math

import pytest

import weft
from weft.ir.dtypes import (
    SCALARS,
    by_name,
    canonical,
    dtypes,
    holds_exactly,
    promote,
    promote_scalar,
)
from weft.ir.scalar import cast
from weft.support.settings import Context

NUMBERS = [d for d in SCALARS.values() if d not in (dtypes.void, dtypes.index)]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("bool", "bool", "bool"),
        ("bool", "int8", "int8"),
        ("int8", "uint8", "int16"),
        ("int32", "uint8", "int32"),
        ("int32", "uint32", "int64"),
        ("int64", "uint64", "float64"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float32", "float32"),
        ("fp8e4m3", "fp8e5m2", "float16"),
        ("fp8e4m3", "bfloat16", "bfloat16"),
        ("float32", "float64", "float64"),
    ],
)
def test_promotion(a, b, expected):
    assert promote(by_name(a), by_name(b)) is by_name(expected)
    assert promote(by_name(b), by_name(a)) is by_name(expected)


@pytest.mark.parametrize("a", NUMBERS, ids=lambda d: d.name)
def test_promotion_is_commutative_and_idempotent(a):
    assert promote(a, a) is a
    for b in NUMBERS:
        both = promote(a, b)
        assert promote(b, a) is both
        assert promote(both, a) is both


def test_python_scalars_are_weak():
    assert promote_scalar(dtypes.int8, 1000) is dtypes.int8
    assert promote_scalar(dtypes.float16, 1) is dtypes.float16
    assert promote_scalar(dtypes.int8, 0.5) is dtypes.float32
    assert promote_scalar(dtypes.bool, 1) is dtypes.int32
    assert promote_scalar(dtypes.bool, True) is dtypes.bool
    with Context(DEFAULT_FLOAT="float16"):
        assert promote_scalar(dtypes.int8, 0.5) is dtypes.float16


def test_names_and_aliases():
    assert dtypes.half is dtypes.float16
    assert dtypes.long is by_name("int64")
    assert by_name("float32x4") is dtypes.float32.vector(4)
    assert repr(dtypes.float32) == "dtypes.float32"
    assert dtypes.float32.vector(1) is dtypes.float32
    with pytest.raises(weft.DTypeError, match="unknown dtype 'flaot32'") as caught:
        by_name("flaot32")
    assert caught.value.fix == "write 'float32'"


def test_limits():
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.max(dtypes.uint64) == (1 << 64) - 1
    assert dtypes.max(dtypes.float32) == math.inf
    assert dtypes.max(dtypes.fp8e4m3) == 448.0
    assert dtypes.finfo(dtypes.float32).eps == 2**-23
    assert dtypes.bool.itemsize == 1
    assert dtypes.bfloat16.vector(8).itemsize == 16
    with pytest.raises(weft.DTypeError):
        dtypes.finfo(dtypes.int32)


@pytest.mark.parametrize("narrow", NUMBERS, ids=lambda d: d.name)
def test_what_holds_exactly_survives_the_round_trip(narrow):
    edges = [0, 1, 2, 3, -1, 7, 100, 127, 128, 255, 256, 32767, 65535, 2**24 - 1, 2**31 - 1]
    edges += [2**53 + 1, 0.5, -0.75, 448.0, 2.0**-9, 2.0**-16, 2.0**-24, 2.0**-126, 2.0**-149]
    values = [canonical(narrow, edge) for edge in edges] + [narrow.min, narrow.max]
    for wide in NUMBERS:
        if holds_exactly(wide, narrow):
            for value in filter(math.isfinite, values):
                assert cast(cast(value, narrow, wide), wide, narrow) == value, (wide, value)
