"""Small floats in NumPy, against `weft.ir.arrays.small_floats` and ml_dtypes, all patterns."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit.reference.array_memory import from_memory, to_memory
from tests.unit.reference.edge_values import DTYPES, EMULATED, edge_values, same
from weft.ir.arrays import small_floats
from weft.ir.arrays.values import (
    Array,
    from_bits,
    from_storage,
    round_values,
    storage_dtype,
    to_bits,
    to_storage,
    value_dtype,
)
from weft.ir.dtypes import INDEX, DType, dtypes
from weft.support.errors import InternalError

PEERS = {
    "fp8e4m3": ml_dtypes.float8_e4m3fn,
    "fp8e5m2": ml_dtypes.float8_e5m2,
    "fp8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "bfloat16": ml_dtypes.bfloat16,
}

emulated = pytest.mark.parametrize("dtype", EMULATED, ids=lambda dtype: dtype.name)


def all_patterns(dtype: DType) -> Array:
    return np.arange(1 << dtype.bits).astype(storage_dtype(dtype))


def finite_values(dtype: DType) -> Array:
    values = from_storage(dtype, all_patterns(dtype)).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def halfway_cases(dtype: DType) -> Array:
    """All ties, and the doubles just beside them."""
    values = finite_values(dtype)
    top_gap = values[-1] - values[-2]
    values = np.concatenate([[values[0] - top_gap], values, [values[-1] + top_gap]])
    ties = (values[1:] + values[:-1]) / 2
    return np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])


@emulated
def test_decoding_of_all_patterns(dtype: DType):
    raw = all_patterns(dtype)
    values = from_storage(dtype, raw)
    assert values.dtype == np.float32
    peer = raw.view(PEERS[dtype.name]).astype(np.float32)
    np.testing.assert_array_equal(values, peer)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(peer))


@emulated
def test_encoding_gives_the_pattern_back(dtype: DType):
    raw = all_patterns(dtype)
    values = from_storage(dtype, raw)
    keep = ~np.isnan(values)
    np.testing.assert_array_equal(to_storage(dtype, values)[keep], raw[keep])
    assert np.isnan(from_storage(dtype, to_storage(dtype, values[~keep]))).all()


@emulated
def test_halfway_cases_round_as_small_floats_do(dtype: DType):
    assert dtype.format is not None
    cases = halfway_cases(dtype)
    if dtype.bits == 16:
        cases = cases[::7]
    found = round_values(dtype, cases).tolist()
    for value, result in zip(cases.tolist(), found, strict=True):
        assert same(result, small_floats.round_to(dtype.format, value))


@emulated
def test_rounding_agrees_with_ml_dtypes(dtype: DType, seed: int):
    """On float32 values; ml_dtypes rounds a double twice."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 1 << 32, 200_000, dtype=np.uint32)
    ties = halfway_cases(dtype).astype(np.float32)
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)
    values = np.concatenate([patterns.view(np.float32), ties, special])
    with np.errstate(all="ignore"):
        peer = values.astype(PEERS[dtype.name]).astype(np.float32)
        found = round_values(dtype, values.astype(np.float64))
    np.testing.assert_array_equal(found, peer)
    signs = ~np.isnan(peer)
    np.testing.assert_array_equal(np.signbit(found)[signs], np.signbit(peer)[signs])


@emulated
def test_nan_patterns_are_those_of_small_floats(dtype: DType):
    assert dtype.format is not None
    for value in (np.nan, -np.nan, np.inf, -np.inf):
        raw = to_storage(dtype, round_values(dtype, np.array([value])))
        expected = small_floats.encode(dtype.format, small_floats.round_to(dtype.format, value))
        assert raw.tolist() == [expected]


def test_bits_of_nan_have_no_payload():
    quiet = np.array([0x7FC00123, 0xFFC00001], np.uint32).view(np.float32)
    assert to_bits(dtypes.float32, quiet).tolist() == [0x7FC00000, 0xFFC00000]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != INDEX], ids=lambda d: d.name)
def test_memory_there_and_back(dtype: DType):
    values = np.array(edge_values(dtype), value_dtype(dtype)).reshape(1, -1)
    memory = to_memory(dtype, values)
    assert memory.dtype is dtype
    assert memory.to_bytes() == to_storage(dtype, values).tobytes()
    back = from_memory(memory, values.shape)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_zero_dimensional_arrays_stay_arrays():
    for dtype in (dtypes.bfloat16, dtypes.float16, dtypes.fp8e4m3):
        rounded = round_values(dtype, np.array(1.1))
        assert isinstance(rounded, np.ndarray)
        raw = to_storage(dtype, rounded)
        assert isinstance(from_storage(dtype, raw), np.ndarray)
        assert from_bits(dtype, to_bits(dtype, rounded)) == rounded


def test_signaling_nan_is_no_warning():
    signaling = np.array([0x7F800001], np.uint32).view(np.float32)
    assert to_storage(dtypes.bfloat16, signaling).tolist() == [0x7FC0]


def test_wrong_array_dtypes_are_refused():
    with pytest.raises(InternalError, match="does not hold values of bfloat16"):
        to_storage(dtypes.bfloat16, np.zeros(2, np.uint16))
    with pytest.raises(InternalError, match="memory of bfloat16 is not held as float32"):
        from_storage(dtypes.bfloat16, np.zeros(2, np.float32))
    with pytest.raises(InternalError, match="no array holds"):
        value_dtype(dtypes.float32.vector(4))
