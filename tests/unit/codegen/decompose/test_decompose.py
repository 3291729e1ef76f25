"""Decompositions against mpmath-quality references, on dense samples and on edge values.

Each function prints the greatest error it found, in ulps; `pytest -s` shows them.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import check
from tests.unit.machines import ALL_DTYPES, machine
from weft.codegen.decompose.decompose import FUNCTIONS, rules_for
from weft.ir.arrays.values import value_dtype
from weft.ir.build import buffer
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.ops import Op, name
from weft.ir.scalar import evaluate as evaluate_scalar
from weft.ir.uop import make
from weft.ir.walk import topological
from weft.reference.tensor import evaluate
from weft.rewrite.driver import rewrite
from weft.support.errors import NotSupported

BASIC_OPS = frozenset(
    (
        *(Op.ADD, Op.MUL, Op.NEG, Op.DIV, Op.SQRT, Op.TRUNCDIV),
        *(Op.LESS, Op.EQUAL, Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR),
        *(Op.WHERE, Op.CAST, Op.BITCAST),
    )
)
LARGE = frozenset(d for d in ALL_DTYPES if d.kind != FLOAT or d.bits >= 32)
POOR = machine(native_ops=BASIC_OPS, native_dtypes=LARGE)
F32, F64 = dtypes.float32, dtypes.float64
Array = Any


def run(op: int, dtype: DType, *arrays: Array) -> Array:
    """The decomposed op on arrays."""
    leaves = [buffer(i, dtype, array.shape, "CPU") for i, array in enumerate(arrays)]
    node = rewrite(make(op, dtype, tuple(leaves)), rules_for(BASIC_OPS))
    used = {part.op for part in topological(node)} - {Op.BUFFER, Op.CONST}
    assert used <= BASIC_OPS, [name(other) for other in used - BASIC_OPS]
    with np.errstate(all="ignore"):
        return evaluate(node, dict(enumerate(arrays)))


def edge_floats(dtype: DType) -> Array:
    info = np.finfo(value_dtype(dtype))
    edges = [0.0, math.inf, info.tiny, info.smallest_subnormal, info.max, 1.0, 0.5, 2.0, 3.0, 1e-3]
    edges += [0.99999, 1.00001, 100.0, 1e9, math.pi / 2, math.pi, 4 * info.tiny]
    return np.array([*edges, *(-x for x in edges), math.nan], value_dtype(dtype))


def every_magnitude(dtype: DType, count: int, rng: np.random.Generator) -> Array:
    """Floats with random bits: all exponents, both signs."""
    numbers = rng.integers(0, 1 << 63, count, dtype=np.uint64) >> np.uint64(63 - dtype.bits + 1)
    floats = numbers.astype(f"uint{dtype.bits}").view(value_dtype(dtype))
    floats = floats[np.isfinite(floats)]
    return np.concatenate([floats, -floats])


def exact(op: int, x: float) -> Any:
    """The value of a function with 60 digits more than anybody needs; None where C says NaN."""
    import mpmath

    with mpmath.workprec(1300 if op in (Op.SIN, Op.COS) else 160):
        if math.isnan(x) or (op in (Op.SIN, Op.COS) and math.isinf(x)):
            return None
        if op in (Op.LOG, Op.LOG2):
            if x < 0:
                return None
            if x == 0 or math.isinf(x):
                return mpmath.mpf(-math.inf if x == 0 else x)
        functions: dict[int, Callable[[Any], Any]] = {
            Op.EXP: mpmath.exp,
            Op.EXP2: lambda v: mpmath.power(2, v),
            Op.LOG: mpmath.log,
            Op.LOG2: lambda v: mpmath.log(v, 2),
            Op.SIN: mpmath.sin,
            Op.COS: mpmath.cos,
            Op.TANH: mpmath.tanh,
            Op.ERF: mpmath.erf,
        }
        return functions[op](mpmath.mpf(x))


def error_in_ulps(got: float, want: Any, dtype: DType) -> float:
    if want is None:
        return 0.0 if math.isnan(got) else math.inf
    kind = value_dtype(dtype).type
    with np.errstate(all="ignore"):
        near = kind(float(want))
        if np.isinf(near) or math.isinf(got) or math.isnan(got):
            return 0.0 if float(near) == got else math.inf
        ulp = float(np.spacing(abs(near))) if near else float(np.finfo(kind).smallest_subnormal)
    return float(abs(want - got) / ulp)


INTERVALS = {
    Op.EXP: ((-110, 95), (-750, 715)),
    Op.EXP2: ((-155, 130), (-1080, 1026)),
    Op.LOG: ((0.4, 2.5), (0.4, 2.5)),
    Op.LOG2: ((0.4, 2.5), (0.4, 2.5)),
    Op.SIN: ((-20, 20), (-20, 20)),
    Op.COS: ((-1e5, 1e5), (-1e5, 1e5)),
    Op.TANH: ((-12, 12), (-22, 22)),
    Op.ERF: ((-4.5, 4.5), (-6.5, 6.5)),
}
SAMPLES = 600


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", INTERVALS, ids=name)
def test_functions_of_one_argument(op: int, dtype: DType, seed: int):
    pytest.importorskip("mpmath")
    rng = np.random.default_rng(seed)
    low, high = INTERVALS[op][dtype is F64]
    dense = rng.uniform(low, high, SAMPLES).astype(value_dtype(dtype))
    near_zero = rng.uniform(-1, 1, SAMPLES).astype(value_dtype(dtype))
    parts = [dense, near_zero, edge_floats(dtype), every_magnitude(dtype, 300, rng)]
    x = np.concatenate(parts)
    results = run(op, dtype, x)
    errors = [
        error_in_ulps(float(got), exact(op, float(value)), dtype)
        for got, value in zip(results, x, strict=True)
    ]
    worst = int(np.argmax(errors))
    print(f"{name(op)} of {dtype.name}: {errors[worst]:.3f} ulp at {x[worst]!r}")
    assert errors[worst] < 1.5, x[worst]


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", [Op.SIN, Op.TANH, Op.ERF], ids=name)
def test_odd_functions_keep_the_sign_of_zero(op: int, dtype: DType):
    zeros = np.array([0.0, -0.0], value_dtype(dtype))
    assert np.signbit(run(op, dtype, zeros)).tolist() == [False, True]


@pytest.mark.parametrize("op", [Op.SIN, Op.COS], ids=name)
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
def test_arguments_near_multiples_of_a_quarter_iteration(op: int, dtype: DType):
    pytest.importorskip("mpmath")
    x = (np.arange(1, 2000, 7) * (np.pi / 2)).astype(value_dtype(dtype))
    results = run(op, dtype, x)
    for got, value in zip(results, x, strict=True):
        assert error_in_ulps(float(got), exact(op, float(value)), dtype) < 1.0, value


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
def test_power(dtype: DType, seed: int):
    import mpmath

    rng = np.random.default_rng(seed)
    kind = value_dtype(dtype)
    limit = 128 if dtype is F32 else 1024
    x = np.exp2(rng.uniform(-12, 12, SAMPLES)).astype(kind)
    y = (rng.uniform(-limit, limit, SAMPLES) * 1.1 / np.log2(x.astype(np.float64))).astype(kind)
    results = run(Op.POW, dtype, x, y)
    worst = 0.0
    with mpmath.workprec(200):
        for got, a, b in zip(results, x, y, strict=True):
            want = mpmath.power(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
            worst = max(worst, error_in_ulps(float(got), want, dtype))
    print(f"POW of {dtype.name}: {worst:.3f} ulp")
    assert worst < 1.5


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
def test_power_at_its_ends(dtype: DType):
    values = [*edge_floats(dtype), *np.array([-2.5, 7.0, -7.0, 1e30, -1e30], value_dtype(dtype))]
    pairs = np.array(list(itertools.product(values, repeat=2)), value_dtype(dtype))
    x, y = pairs[:, 0].copy(), pairs[:, 1].copy()
    for got, a, b in zip(run(Op.POW, dtype, x, y), x, y, strict=True):
        want = evaluate_scalar(Op.POW, dtype, (float(a), float(b)), dtype)
        assert same_or_near(float(got), float(want), dtype), (a, b, got, want)


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
def test_logarithm_of_a_sum(dtype: DType, seed: int):
    """The error is below 2 ulp of the result, or of the greater argument where they cancel."""
    import mpmath

    rng = np.random.default_rng(seed)
    kind = value_dtype(dtype)
    x = np.concatenate([rng.uniform(-2, 2, SAMPLES), rng.uniform(-900, 900, SAMPLES)]).astype(kind)
    gap = 10.0 ** rng.uniform(-6, 1.5, 2 * SAMPLES)
    y = (x + gap * rng.choice([-1, 1], 2 * SAMPLES)).astype(kind)
    with mpmath.workprec(2600):
        for got, a, b in zip(run(Op.LOGADD, dtype, x, y), x, y, strict=True):
            want = mpmath.log(mpmath.exp(mpmath.mpf(float(a))) + mpmath.exp(mpmath.mpf(float(b))))
            largest = max(abs(float(a)), abs(float(b)), abs(float(want)))
            assert abs(float(got) - float(want)) <= 2 * np.spacing(kind.type(largest)), (a, b)


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
def test_logarithm_of_a_sum_at_its_ends(dtype: DType):
    values = np.array([0.0, -0.0, 1.0, -1e30, 1e30, np.inf, -np.inf, np.nan], value_dtype(dtype))
    pairs = np.array(list(itertools.product(values, repeat=2)), value_dtype(dtype))
    x, y = pairs[:, 0].copy(), pairs[:, 1].copy()
    for got, a, b in zip(run(Op.LOGADD, dtype, x, y), x, y, strict=True):
        want = evaluate_scalar(Op.LOGADD, dtype, (float(a), float(b)), dtype)
        assert same_or_near(float(got), float(want), dtype), (a, b, got, want)


def same_or_near(got: float, want: float, dtype: DType) -> bool:
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return got == want or abs(got - want) <= 2 * float(
        np.spacing(value_dtype(dtype).type(abs(want)))
    )


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", [Op.FLOOR, Op.TRUNC, Op.ROUND], ids=name)
def test_rounding(op: int, dtype: DType, seed: int):
    rng = np.random.default_rng(seed)
    halves = np.arange(-9, 10).astype(value_dtype(dtype)) / 2
    parts = [halves, edge_floats(dtype), every_magnitude(dtype, 500, rng)]
    x = np.concatenate([*parts, rng.uniform(-5e6, 5e6, 500).astype(value_dtype(dtype))])
    check_exact(op, dtype, x)


@pytest.mark.parametrize("dtype", [F32, F64, dtypes.int32, dtypes.uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN, Op.LESS_EQUAL], ids=name)
def test_choices(op: int, dtype: DType):
    values = edge_floats(dtype) if dtype.kind == FLOAT else np.array([0, 1, 5, 127])
    pairs = np.array(list(itertools.product(values, repeat=2))).astype(value_dtype(dtype))
    check_exact(op, dtype, pairs[:, 0].copy(), pairs[:, 1].copy())


DIVISIONS = (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCMOD)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("op", DIVISIONS, ids=name)
def test_divisions_with_zero_and_the_least(op: int, dtype: DType):
    low, high = int(dtype.min), int(dtype.max)
    values = [low, low + 1, low // 2, *range(-9 if low else 0, 10), high // 2, high - 1, high]
    pairs = np.array(list(itertools.product(values, repeat=2)), value_dtype(dtype))
    check_exact(op, dtype, pairs[:, 0].copy(), pairs[:, 1].copy())


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("op", DIVISIONS, ids=name)
def test_remainders_of_floats(op: int, dtype: DType, seed: int):
    rng = np.random.default_rng(seed)
    values = np.concatenate([edge_floats(dtype), every_magnitude(dtype, 15, rng)])
    if op == Op.TRUNCMOD:
        pairs = np.array(list(itertools.product(values, repeat=2)), values.dtype)
    else:  # where the quotient is exact
        whole = rng.integers(-60, 60, (400, 2)).astype(values.dtype)
        pairs = whole / 4
    check_exact(op, dtype, pairs[:, 0].copy(), pairs[:, 1].copy())


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint16], ids=lambda d: d.name)
def test_integer_power(dtype: DType):
    pairs = np.array(list(itertools.product([0, 1, 2, 3, 10], range(12))), value_dtype(dtype))
    check_exact(Op.POW, dtype, pairs[:, 0].copy(), pairs[:, 1].copy())


def check_exact(op: int, dtype: DType, *arrays: Array) -> None:
    """Compare with the meaning of the op, to the bit; one NaN is as good as another."""
    leaves = [buffer(i, dtype, array.shape, "CPU") for i, array in enumerate(arrays)]
    compare = op == Op.LESS_EQUAL
    node = make(op, dtypes.bool if compare else dtype, tuple(leaves))
    made = rewrite(node, rules_for(BASIC_OPS))
    assert made is not node
    with np.errstate(all="ignore"):
        results = evaluate(made, dict(enumerate(arrays)))
    for got, *values in zip(results, *arrays, strict=True):
        scalars = tuple(value.item() for value in values)
        want = evaluate_scalar(op, node.dtype, scalars, dtype)
        is_same = got == want and math.copysign(1, got) == math.copysign(1, want)
        assert is_same or (got != got and want != want), (scalars, got, want)


@pytest.mark.parametrize("case", CASES)
def test_programs_of_a_poor_machine(case: str, seed: int):
    program = check(CASES[case](), POOR, (), seed)
    listed = {node.op for node in program.instructions.src}
    assert not listed & (FUNCTIONS.keys() - BASIC_OPS)


def test_what_cannot_be_decomposed_is_refused():
    with pytest.raises(NotSupported, match="SQRT on TEST:TEXT:any"):
        check(CASES["layernorm"](), machine(native_ops=BASIC_OPS - {Op.SQRT}), ())
    with pytest.raises(NotSupported, match="float32 on TEST:TEXT:any"):
        check(CASES["elementwise"](), machine(native_dtypes=LARGE - {F32}), ())
