"""Small floats computed in float32, to the bit as `weft.ir.arrays.small_floats` defines them."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.unit.machines import ALL_DTYPES, machine
from weft.codegen.context import CodegenContext
from weft.codegen.decompose.decompose import rules_for
from weft.codegen.decompose.small_floats import emulate_small_floats
from weft.ir.arrays import small_floats
from weft.ir.arrays.values import value_dtype
from weft.ir.build import buffer
from weft.ir.dtypes import FLOAT, SCALARS, DType, dtypes
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.scalar import evaluate as evaluate_scalar
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.reference.tensor import evaluate
from weft.rewrite.driver import rewrite
from weft.tensor import Tensor

LARGE = frozenset(d for d in ALL_DTYPES if d.kind != FLOAT or d.bits >= 32)
POOR = machine(native_dtypes=LARGE)
WIDENS = machine(native_dtypes=LARGE, widened_dtypes=frozenset((dtypes.float16,)))
F32, F64 = dtypes.float32, dtypes.float64
Array = Any

SMALL = [SCALARS[name] for name in small_floats.FORMATS if small_floats.FORMATS[name].bits < 32]


def emulated(node: UOp) -> UOp:
    """A value of a small float as its target without small floats sees it: a float32."""
    return emulate_small_floats(node, CodegenContext(POOR))


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.name)
def test_every_pattern_is_decoded_and_encoded(dtype: DType):
    unsigned = SCALARS[f"uint{dtype.bits}"]
    patterns = np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}")
    raw = buffer(0, unsigned, patterns.shape, "CPU")
    value = make(Op.BITCAST, dtype, (raw,))
    assert dtype.format is not None
    floats = evaluate(emulated(value.cast(F32)), {0: patterns})
    for pattern, got in zip(patterns, floats, strict=True):
        want = small_floats.decode(dtype.format, int(pattern))
        same = got == want and math.copysign(1, got) == math.copysign(1, want)
        assert same or (math.isnan(got) and math.isnan(want)), hex(pattern)
    back = evaluate(emulated(make(Op.BITCAST, unsigned, (value,))), {0: patterns})
    for pattern, got, value_ in zip(patterns, back, floats, strict=True):
        if not math.isnan(value_):
            assert got == pattern, hex(pattern)


@pytest.mark.parametrize("source", [F32, F64, dtypes.int32, dtypes.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.name)
def test_conversions_round_to_nearest_even(dtype: DType, source: DType, seed: int):
    rng = np.random.default_rng(seed)
    assert dtype.format is not None
    values = samples_around(dtype.format, source, rng)
    leaf = buffer(0, source, values.shape, "CPU")
    results = evaluate(emulated(leaf.cast(dtype).cast(F32)), {0: values})
    for value, got in zip(values, results, strict=True):
        want = evaluate_scalar(Op.CAST, dtype, (value.item(),), source)
        same = got == want and math.copysign(1, got) == math.copysign(1, want)
        assert same or (math.isnan(got) and math.isnan(want)), (value, got, want)


def samples_around(format: small_floats.FloatFormat, source: DType, rng: Any) -> Array:
    """Values, midpoints between neighbors and what is next to those, and random ones."""
    kind = value_dtype(source)
    if source.kind != FLOAT:
        near = [
            (1 << e) + d for e in range(source.bits - 1) for d in (-1, 0, 1, 1 << max(e - 9, 0))
        ]
        near += [n + (1 << e) for n in near[-80:] for e in (3, 8, 17) if n + (1 << e) < 1 << 31]
        numbers = [n for n in near if n < 1 << source.bits - 1]
        random_ones = rng.integers(-(1 << source.bits - 2), 1 << source.bits - 2, 300)
        return np.array([*numbers, *(-n for n in numbers), *random_ones], kind)
    patterns = rng.integers(0, format.largest_bits, 300)
    grid = [small_floats.decode(format, int(p)) for p in [*patterns, *range(6)]]
    above = [small_floats.decode(format, int(p) + 1) for p in [*patterns, *range(6)]]
    pairs = zip(grid, above, strict=True)
    middles = np.array([float((Fraction(a) + Fraction(b)) / 2) for a, b in pairs])
    exact_ones = np.array([*grid, *middles, 0.0, math.inf, math.nan]).astype(kind)
    most = small_floats.finfo(format).max
    with np.errstate(over="ignore"):
        edge = np.array([most, most * 1.03125, most * 1.0625, most * 1.25, most * 2]).astype(kind)
        around = [
            np.nextafter(exact_ones, kind.type(math.inf)),
            np.nextafter(exact_ones, kind.type(0)),
        ]
        x = np.concatenate([exact_ones, *around, edge])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.DIV, Op.MAX], ids=name)
def test_emulated_arithmetic_is_correctly_rounded(op: int, dtype: DType, seed: int):
    rng = np.random.default_rng(seed)
    assert dtype.format is not None
    patterns = rng.integers(0, 1 << dtype.bits, (2, 400)).astype(f"uint{dtype.bits}")
    leaves = [
        make(Op.BITCAST, dtype, (buffer(i, SCALARS[f"uint{dtype.bits}"], (400,), "CPU"),))
        for i in range(2)
    ]
    node = emulated(make(op, dtype, tuple(leaves)).cast(F32))
    results = evaluate(rewrite(node, rules_for(ELEMENTWISE - {Op.MAX})), dict(enumerate(patterns)))
    for a, b, got in zip(*patterns, results, strict=True):
        x, y = (small_floats.decode(dtype.format, int(p)) for p in (a, b))
        want = evaluate_scalar(op, dtype, (x, y), dtype)
        assert got == want or (math.isnan(got) and math.isnan(float(want))), (x, y, got, want)


def test_a_target_widens_by_itself():
    """Every float16 is read by one conversion where the target has it; rounding stays as it is."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    raw = buffer(0, dtypes.uint16, patterns.shape, "CPU")
    value = make(Op.BITCAST, dtypes.float16, (raw,)).cast(F32)
    made = emulate_small_floats(value, CodegenContext(WIDENS))
    found = {node.op for node in topological(made)} & ELEMENTWISE
    assert found == {Op.CAST, Op.BITCAST}
    want = patterns.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(evaluate(made, {0: patterns}), want)


def test_every_float16_on_the_cpu():
    patterns = np.arange(1 << 16, dtype=np.uint16)
    halves = patterns.view(np.float16)
    with np.errstate(invalid="ignore"):
        want = halves.astype(np.float32)
    np.testing.assert_array_equal(Tensor(halves).float().numpy(), want)
    joined = Tensor(patterns.view(np.uint8).reshape(-1, 2)).bitcast(dtypes.float16)
    np.testing.assert_array_equal(joined.float().numpy()[:, 0], want)


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.name)
def test_bits_that_are_moved_stay_as_they_are(dtype: DType):
    """Of every NaN too: read as another small float, copied, joined and cut out by a mask."""
    unsigned = SCALARS[f"uint{dtype.bits}"]
    patterns = np.arange(1 << dtype.bits, dtype=unsigned.name)
    x = Tensor(patterns).bitcast(dtype).realize()
    for other in SMALL:
        if other.bits == dtype.bits:
            found = x.bitcast(other).contiguous().realize().bitcast(unsigned)
            np.testing.assert_array_equal(found.numpy(), patterns)
    found = x.flip(0).cat(x).pad((1, 0)).realize().bitcast(unsigned)
    want = np.concatenate([patterns[:1] * 0, patterns[::-1], patterns])
    np.testing.assert_array_equal(found.numpy(), want)
    doubled = (x.float() * 0 + 2).cast(dtype)  # computed, and then read as something else
    known = ~np.isnan(x.float().numpy()) & np.isfinite(x.float().numpy())
    two = small_floats.encode(dtype.format, 2.0)
    assert (doubled.bitcast(unsigned).numpy()[known] == two).all()
