"""The meaning of every op on scalars, against NumPy and ml_dtypes."""

import itertools
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.reference.edge_values import DTYPES, FLOATS, INTEGERS, edge_values, same
from weft.ir.dtypes import FLOAT, INDEX, INT, DType, Scalar, dtypes
from weft.ir.ops import COMPARE, Op, name
from weft.ir.scalar import cast, evaluate, from_bits, meaning, to_bits
from weft.support.errors import InternalError

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

PEER_NAMES = {
    "fp8e4m3": "float8_e4m3fn",
    "fp8e5m2": "float8_e5m2",
    "fp8e4m3fnuz": "float8_e4m3fnuz",
    "fp8e5m2fnuz": "float8_e5m2fnuz",
    "bfloat16": "bfloat16",
}
FIXED = [dtype for dtype in INTEGERS if dtype.kind != INDEX]
NATIVE = [dtypes.float16, dtypes.float32, dtypes.float64]

# Ops whose result on floats is exact or correctly rounded, so that all libraries agree.
EXACT: dict[int, Callable[..., Any]] = {
    Op.ADD: np.add,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.DIV: np.divide,
    Op.SQRT: np.sqrt,
    Op.FLOOR: np.floor,
    Op.TRUNC: np.trunc,
    Op.ROUND: np.rint,
    Op.LESS: np.less,
    Op.LESS_EQUAL: np.less_equal,
    Op.EQUAL: np.equal,
}
REMAINDERS: dict[int, Callable[..., Any]] = {Op.FLOORMOD: np.remainder, Op.TRUNCMOD: np.fmod}
NEAR: dict[int, Callable[..., Any]] = {
    Op.EXP: np.exp,
    Op.EXP2: np.exp2,
    Op.LOG: np.log,
    Op.LOG2: np.log2,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TANH: np.tanh,
    Op.POW: np.power,
    Op.LOGADD: np.logaddexp,
}
INTEGER: dict[int, Callable[..., Any]] = {
    Op.ADD: np.add,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
    Op.NOT: np.invert,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.FLOORDIV: np.floor_divide,
    Op.FLOORMOD: np.remainder,
    Op.SHL: np.left_shift,
    Op.SHR: np.right_shift,
    Op.POW: np.power,
    Op.LESS: np.less,
    Op.LESS_EQUAL: np.less_equal,
    Op.EQUAL: np.equal,
}
UNARY = {Op.NEG, Op.NOT, Op.SQRT, Op.FLOOR, Op.TRUNC, Op.ROUND, *NEAR} - {Op.POW, Op.LOGADD}

float_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
native_float = pytest.mark.parametrize("dtype", NATIVE, ids=lambda dtype: dtype.name)
fixed_dtype = pytest.mark.parametrize("dtype", FIXED, ids=lambda dtype: dtype.name)


def peer(dtype: DType, values: list[Scalar]) -> Any:
    """The values in NumPy's or ml_dtypes' own dtype."""
    found = PEER_NAMES.get(dtype.name)
    return np.array(values, getattr(ml_dtypes, found) if found else dtype.name)


def operands(op: int, dtype: DType) -> list[tuple[Any, ...]]:
    return list(itertools.product(edge_values(dtype), repeat=1 if op in UNARY else 2))


def compare(op: int, dtype: DType, rows: list[tuple[Any, ...]], function: Any) -> None:
    result = dtypes.bool if op in COMPARE else dtype
    columns = [peer(dtype, list(column)) for column in zip(*rows, strict=True)]
    with np.errstate(all="ignore"):
        expected = function(*columns)
    expected = expected.astype(np.float64).tolist() if dtype in FLOATS else expected.tolist()
    for row, wanted in zip(rows, expected, strict=True):
        found = evaluate(op, result, row, dtype)
        assert same(found, wanted), f"{name(op)}{row} is {found}, not {wanted}"


@float_dtype
@pytest.mark.parametrize("op", EXACT, ids=name)
def test_exact_float_ops(op: int, dtype: DType):
    rows = operands(op, dtype)
    if dtype.name in PEER_NAMES and op in (Op.FLOOR, Op.TRUNC, Op.ROUND):
        rows = [row for row in rows if row[0] != 0]  # ml_dtypes drops the sign of some zeros
    compare(op, dtype, rows, EXACT[op])


@native_float
@pytest.mark.parametrize("op", REMAINDERS, ids=name)
def test_float_remainders(op: int, dtype: DType):
    compare(op, dtype, operands(op, dtype), REMAINDERS[op])


def test_float_floordiv_is_that_of_numpy():
    rows = operands(Op.FLOORDIV, dtypes.float64)
    rows += [(2.0**52 + 1, 1.0), (2.0**53 - 1, 1.0), (-(2.0**52) - 1, 1.0), (1e308, -1e308)]
    compare(Op.FLOORDIV, dtypes.float64, rows, np.floor_divide)


@pytest.mark.parametrize("dtype", NATIVE[:2], ids=lambda dtype: dtype.name)
def test_float_floordiv_of_narrow_floats(dtype: DType):
    """NumPy rounds in between, so large quotients differ in the last bit."""
    rows = [(x, y) for x, y in operands(Op.FLOORDIV, dtype) if not abs(x) / (abs(y) or 1) > 500]
    compare(Op.FLOORDIV, dtype, rows, np.floor_divide)


@float_dtype
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=name)
def test_max_and_min_order_zeros_and_keep_nan(op: int, dtype: DType):
    for x, y in operands(op, dtype):
        found = evaluate(op, dtype, (x, y), dtype)
        if x != x or y != y:
            assert found != found
            continue
        ordered = sorted((x, y), key=lambda value: (value, math.copysign(1.0, value)))
        assert same(found, ordered[op == Op.MAX])


@native_float
@pytest.mark.parametrize("op", NEAR, ids=name)
def test_transcendental_ops(op: int, dtype: DType):
    assert dtype.format is not None
    rows = operands(op, dtype)
    with np.errstate(all="ignore"):
        wide = NEAR[op](*[np.array(column, np.float64) for column in zip(*rows, strict=True)])
        expected = wide.astype(dtype.name).astype(np.float64)
    found = [evaluate(op, dtype, row, dtype) for row in rows]
    gap = 2.0 ** -(dtype.format.mantissa_bits - 1)
    np.testing.assert_allclose(found, expected, rtol=gap, atol=1e-307)


def test_erf():
    for x in (-3.0, -0.5, -0.0, 0.0, 1e-10, 0.5, 3.0):
        found = evaluate(Op.ERF, dtypes.float64, (x,), dtypes.float64)
        assert same(found, math.erf(x))


@fixed_dtype
@pytest.mark.parametrize("op", INTEGER, ids=name)
def test_integer_ops(op: int, dtype: DType):
    rows = operands(op, dtype)
    if op in (Op.SHL, Op.SHR, Op.POW):
        rows = [(x, y) for x, y in rows if 0 <= y <= 200]
    compare(op, dtype, rows, INTEGER[op])


@fixed_dtype
def test_integer_division_to_zero(dtype: DType):
    for x, y in operands(Op.TRUNCDIV, dtype):
        quotient = evaluate(Op.TRUNCDIV, dtype, (x, y), dtype)
        rest = evaluate(Op.TRUNCMOD, dtype, (x, y), dtype)
        if y == 0:
            assert (quotient, rest) == (0, 0)
            continue
        exact = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        wraps = exact > dtype.max
        assert quotient == (dtype.min if wraps else exact)
        assert rest == x - y * exact


@pytest.mark.parametrize("op", [Op.SHL, Op.SHR, Op.POW], ids=name)
def test_negative_amounts_are_refused(op: int):
    with pytest.raises(InternalError, match="negative"):
        evaluate(op, dtypes.int32, (1, -1), dtypes.int32)


@pytest.mark.parametrize("op", [Op.SHL, Op.SHR, Op.AND, Op.XOR], ids=name)
def test_bit_ops_have_no_meaning_on_floats(op: int):
    with pytest.raises(InternalError, match="no meaning on float32"):
        evaluate(op, dtypes.float32, (1.0, 1.0), dtypes.float32)
    with pytest.raises(InternalError, match="no meaning on float32"):
        meaning(op, dtypes.float32)


def test_bool_ops():
    table = {
        Op.AND: "0001", Op.OR: "0111", Op.XOR: "0110", Op.ADD: "0111", Op.MUL: "0001",
        Op.MAX: "0111", Op.MIN: "0001", Op.LESS: "0100", Op.LESS_EQUAL: "1101", Op.EQUAL: "1001",
    }  # fmt: skip
    for op, wanted in table.items():
        pairs = itertools.product((False, True), repeat=2)
        found = [evaluate(op, dtypes.bool, pair, dtypes.bool) for pair in pairs]
        assert found == [digit == "1" for digit in wanted]
    assert evaluate(Op.NOT, dtypes.bool, (False,), dtypes.bool) is True


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_where_picks_one_of_two(dtype: DType):
    low, *_, high = edge_values(dtype)
    assert same(evaluate(Op.WHERE, dtype, (True, low, high), dtype), low)
    assert same(evaluate(Op.WHERE, dtype, (False, low, high), dtype), high)


@fixed_dtype
@pytest.mark.parametrize("target", [*FIXED, *NATIVE], ids=lambda dtype: dtype.name)
def test_casts_of_integers(dtype: DType, target: DType):
    values = edge_values(dtype)
    with np.errstate(all="ignore"):
        expected = np.array(values, dtype.name).astype(target.name)
    wanted = expected.astype(np.float64) if target.kind == FLOAT else expected
    for value, result in zip(values, wanted.tolist(), strict=True):
        assert same(cast(value, dtype, target), result)


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64], ids=lambda dtype: dtype.name)
def test_casts_of_large_integers_round_once(dtype: DType):
    for high, low, sign in itertools.product((60, 62), (36, 37, 38, 39), (1, -1)):
        for near in (-1, 0, 1):
            value = 2**high + 2**low + near
            value = -value if sign < 0 and dtype.kind == INT else value
            assert cast(value, dtype, dtypes.float32) == float(np.array(value).astype(np.float32))
    assert cast(2**62 + 2**54 + 1, dtypes.int64, dtypes.bfloat16) == 2.0**62 + 2.0**55


@native_float
@pytest.mark.parametrize("target", FIXED, ids=lambda dtype: dtype.name)
def test_casts_of_floats_to_integers(dtype: DType, target: DType):
    """In range as in NumPy; out of range to the nearest of the working type, then wrapped."""
    for value in edge_values(dtype):
        found = cast(value, dtype, target)
        if value != value:
            assert found == 0
        elif target.min <= math.trunc(value) <= target.max if math.isfinite(value) else False:
            assert found == math.trunc(value)
    wide = target.bits == 64 or target is dtypes.uint32
    bits = 64 if wide else 32
    most = 2**64 - 1 if target is dtypes.uint64 else 2 ** (bits - 1) - 1
    wrapped = {math.inf: most, -math.inf: -(2 ** (bits - 1))}
    for value, nearest in wrapped.items():
        assert cast(value, dtype, target) == nearest % 2**target.bits - (
            2**target.bits if target.kind == INT and nearest >> target.bits - 1 & 1 else 0
        )


def test_casts_to_bool_and_index():
    assert cast(math.nan, dtypes.float32, dtypes.bool) is True
    assert cast(-0.0, dtypes.float32, dtypes.bool) is False
    assert cast(-2.9, dtypes.float32, dtypes.index) == -2
    with pytest.raises(InternalError, match="infinity"):
        cast(math.inf, dtypes.float32, dtypes.index)


@pytest.mark.parametrize("dtype", [*FIXED, *FLOATS], ids=lambda dtype: dtype.name)
def test_bits_there_and_back(dtype: DType):
    for value in edge_values(dtype):
        bits = to_bits(dtype, value)
        assert 0 <= bits < 1 << dtype.bits
        assert same(from_bits(dtype, bits), value)


def test_bitcast():
    for value in edge_values(dtypes.float32):
        found = evaluate(Op.BITCAST, dtypes.uint32, (value,), dtypes.float32)
        if value == value:
            assert found == struct.unpack("<I", struct.pack("<f", value))[0]
    assert evaluate(Op.BITCAST, dtypes.int8, (255,), dtypes.uint8) == -1
