"""Every op on every native dtype, scalar and vector: machine code against the interpreter."""

import itertools
import math

import pytest

from tests.unit.reference.edge_values import edge_values
from tests.unit.render.llvm_programs import (
    I32,
    agree,
    argument,
    at,
    counter,
    device,
    differences,
    end,
    get,
    lanes_of,
    memory,
    number,
    program,
    put,
    run_native,
    targets,
    vector,
)
from weft.ir.dtypes import BOOL, FLOAT, INT, INTEGER, DType, Scalar, dtypes
from weft.ir.ops import COMPARE, UNARY, Op, name
from weft.ir.scalar import KINDS
from weft.ir.uop import UOp, bool_like, const, make
from weft.reference.memory import ElementMemory
from weft.target.cpu import LLVM_OPS, NATIVE_DTYPES

DTYPES = sorted(NATIVE_DTYPES, key=lambda dtype: dtype.name)
CONVERSIONS = (Op.CAST, Op.BITCAST)
SHIFTS = (Op.SHL, Op.SHR)
LANES = (1, 4)
PAIRS = 160  # a multiple of all LANES


def ops_on(dtype: DType) -> list[int]:
    """The native ops on a dtype, without conversions and WHERE."""
    ops = LLVM_OPS - {*CONVERSIONS, Op.WHERE}
    return [op for op in sorted(ops) if KINDS[op] & dtype.kind]


def pairs(dtype: DType) -> list[tuple[Scalar, Scalar]]:
    """Pairs of edge values; all unless they are too many, then every so many-th."""
    every = list(itertools.product(edge_values(dtype), repeat=2))
    step = max(1, len(every) // PAIRS)
    while step > 1 and math.gcd(step, len(edge_values(dtype))) > 1:
        step -= 1
    picked = list(itertools.islice(itertools.cycle(every[::step]), PAIRS))
    return picked


def amounts(dtype: DType) -> list[Scalar]:
    """Amounts to shift by: up to the width and past it."""
    known = [0, 1, 3, dtype.bits - 1, dtype.bits, dtype.bits + 1, min(dtype.max, 200)]
    return list(itertools.islice(itertools.cycle(known), PAIRS))


def apply(op: int, x: UOp, y: UOp) -> UOp:
    sources = (x,) if op in UNARY else (x, y)
    return make(op, bool_like(x) if op in COMPARE else x.dtype, sources)


def is_zero_of_either_sign(op: int, left: Scalar | None, right: Scalar | None) -> bool:
    """MAX and MIN may choose either of two zeros."""
    return op in (Op.MAX, Op.MIN) and left == right == 0


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.arch)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_op(dtype: DType, lanes: int, target: object):
    ops = ops_on(dtype)
    bools = [op for op in ops if op in COMPARE]
    size = PAIRS * len(ops)
    values, truths = argument(0, dtype, size), argument(1, dtypes.bool, size)
    lefts, rights, shifts = (argument(slot, dtype, PAIRS) for slot in (2, 3, 4))
    iteration = counter(0, PAIRS // lanes)
    base = iteration * lanes
    x, y, amount = (get(at(source, base, lanes=lanes)) for source in (lefts, rights, shifts))
    stores = []
    for position, op in enumerate(ops):
        result = apply(op, x, amount if op in SHIFTS else y)
        out = truths if op in bools else values
        stores.append(put(at(out, base + position * PAIRS, lanes=lanes), result))
    code = program(iteration, *stores, end(iteration))
    chosen = pairs(dtype)
    arguments = [
        ElementMemory(dtype, size),
        ElementMemory(dtypes.bool, size),
        ElementMemory(dtype, PAIRS, [left for left, _ in chosen]),
        ElementMemory(dtype, PAIRS, [right for _, right in chosen]),
        ElementMemory(dtype, PAIRS, amounts(dtype)),
    ]
    used = arguments[: len(code.parameters)]
    wrong = [
        (name(ops[position // PAIRS]), chosen[position % PAIRS], found, wanted)
        for _, position, found, wanted in differences(code, used, cpu=device(target))
        if not is_zero_of_either_sign(ops[position // PAIRS], found, wanted)
    ]
    assert not wrong, wrong[:8]


SIGNED = [dtype for dtype in DTYPES if dtype.kind == INT]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("op", SHIFTS, ids=name)
@pytest.mark.parametrize("dtype", SIGNED, ids=lambda dtype: dtype.name)
def test_constant_amounts_outside_of_the_width_do_what_loaded_ones_do(
    dtype: DType, op: int, lanes: int
):
    """A negative one moves all bits out, as one past the width; LLVM itself defines neither."""
    values = [5, -5, dtype.max, dtype.min]
    amounts = [-1, -dtype.bits, dtype.min, dtype.bits, dtype.bits + 1]
    size = len(values) * len(amounts)
    out, loaded, given = (argument(slot, dtype, size) for slot in range(3))
    stores = []
    for start in range(0, size, lanes):
        x = get(at(given, start, lanes=lanes))
        constant = const(dtype.vector(lanes), amounts[start // len(values)])
        stores.append(put(at(out, start, lanes=lanes), make(op, x.dtype, (x, constant))))
        amount = get(at(argument(3, dtype, size), start, lanes=lanes))
        stores.append(put(at(loaded, start, lanes=lanes), make(op, x.dtype, (x, amount))))
    arguments = [
        ElementMemory(dtype, size),
        ElementMemory(dtype, size),
        ElementMemory(dtype, size, values * len(amounts)),
        ElementMemory(dtype, size, [amount for amount in amounts for _ in values]),
    ]
    constants, variables, *_ = run_native(program(*stores), arguments, {}, device(targets()[0]))
    wanted = [(-1 if op == Op.SHR and value < 0 else 0) for value in values] * len(amounts)
    assert list(constants.values) == wanted
    assert list(variables.values) == wanted


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", DTYPES, ids=lambda dtype: dtype.name)
def test_every_cast(source: DType, lanes: int):
    values = edge_values(source)
    if source.kind == FLOAT:
        big = (2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 2147483520.0, 65535.9, 255.5)
        values = [*values, *big, *(-x for x in big)]
    values += [0] * (-len(values) % lanes)
    size = len(values)
    iteration = counter(0, size // lanes)
    base = iteration * lanes
    x = get(at(argument(0, source, size), base, lanes=lanes))
    stores = []
    for slot, dtype in enumerate(DTYPES, 1):
        result = make(Op.CAST, dtype.vector(lanes), (x,))
        stores.append(put(at(argument(slot, dtype, size), base, lanes=lanes), result))
    code = program(iteration, *stores, end(iteration))
    agree(
        code,
        [ElementMemory(source, size, values), *(ElementMemory(dtype, size) for dtype in DTYPES)],
    )


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (dtypes.float32, dtypes.int32),
        (dtypes.uint32, dtypes.float32),
        (dtypes.float64, dtypes.uint64),
        (dtypes.int64, dtypes.float64),
        (dtypes.int16, dtypes.uint16),
    ],
)
def test_bitcast(source: DType, target: DType, lanes: int):
    values = [value for value in edge_values(source) if value == value]
    values += [0] * (-len(values) % lanes)
    iteration = counter(0, len(values) // lanes)
    x = get(at(argument(0, source, len(values)), iteration * lanes, lanes=lanes))
    result = make(Op.BITCAST, target.vector(lanes), (x,))
    code = program(
        iteration,
        put(at(argument(1, target, len(values)), iteration * lanes, lanes=lanes), result),
        end(iteration),
    )
    agree(code, [ElementMemory(source, len(values), values), ElementMemory(target, len(values))])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("lanes", LANES)
def test_where(dtype: DType, lanes: int):
    x, y = (get(at(argument(slot, dtype), 0, lanes=lanes)) for slot in (1, 2))
    chosen = get(at(argument(3, dtypes.bool), 0, lanes=lanes))
    out = argument(0, dtype)
    code = program(put(at(out, 0, lanes=lanes), make(Op.WHERE, x.dtype, (chosen, x, y))))
    values = edge_values(dtype)
    arguments = [
        ElementMemory(dtype, 64),
        ElementMemory(dtype, 64, list(itertools.islice(itertools.cycle(values), 64))),
        ElementMemory(dtype, 64, list(itertools.islice(itertools.cycle(values[::-1]), 64))),
        ElementMemory(dtypes.bool, 64, [i % 3 == 1 for i in range(64)]),
    ]
    agree(code, arguments)


def test_one_condition_for_all_lanes():
    x, y = (get(at(argument(slot, I32), 0, lanes=4)) for slot in (1, 2))
    condition = get(at(argument(3, dtypes.bool), 0))
    code = program(
        put(at(argument(0, I32), 0, lanes=4), make(Op.WHERE, x.dtype, (condition, x, y)))
    )
    for chosen, expected in ((True, [1, 2, 3, 4]), (False, [5, 6, 7, 8])):
        arguments = [
            ElementMemory(I32, 4),
            ElementMemory(I32, 4, [1, 2, 3, 4]),
            ElementMemory(I32, 4, [5, 6, 7, 8]),
        ]
        arguments.append(ElementMemory(dtypes.bool, 1, [chosen]))
        found = run_native(code, arguments, {}, device(targets()[0]))
        assert found[0].values == expected


@pytest.mark.parametrize("constant", [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=name)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
def test_extreme_against_a_constant_is_exact_on_either_side(
    dtype: DType, op: int, constant: float
):
    values = edge_values(dtype)
    size = len(values)
    iteration = counter(0, size)
    x, c = get(at(argument(2, dtype, size), iteration)), const(dtype, constant)
    code = program(
        iteration,
        put(at(argument(0, dtype, size), iteration), make(op, dtype, (x, c))),
        put(at(argument(1, dtype, size), iteration), make(op, dtype, (c, x))),
        end(iteration),
    )
    agree(
        code,
        [
            ElementMemory(dtype, size),
            ElementMemory(dtype, size),
            ElementMemory(dtype, size, values),
        ],
    )


@pytest.mark.parametrize("divisor", [1, 2, 7, 16, -1, -2, -7, 0])
@pytest.mark.parametrize(
    "dtype", [dtypes.int8, dtypes.int32, dtypes.uint32, dtypes.int64], ids=lambda d: d.name
)
def test_division_by_a_constant(dtype: DType, divisor: int):
    values = edge_values(dtype)
    size = len(values)
    iteration = counter(0, size)
    x = get(at(argument(0, dtype, size), iteration))
    ops = (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD)
    stores = [
        put(
            at(argument(slot, dtype, size), iteration), make(op, dtype, (x, const(dtype, divisor)))
        )
        for slot, op in enumerate(ops, 1)
    ]
    code = program(iteration, *stores, end(iteration))
    agree(code, [ElementMemory(dtype, size, values), *(ElementMemory(dtype, size) for _ in ops)])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_constants(dtype: DType):
    values = edge_values(dtype)
    out, wide = argument(0, dtype, 256), argument(1, dtype, 256)
    stores = [put(at(out, i), const(dtype, value)) for i, value in enumerate(values)]
    stores += [
        put(at(wide, 4 * i, lanes=4), const(dtype.vector(4), value))
        for i, value in enumerate(values[:16])
    ]
    agree(program(*stores), [ElementMemory(dtype, 256), ElementMemory(dtype, 256)])


def test_lanes_and_vectors():
    source, out = argument(1, I32), argument(0, I32)
    four = get(at(source, 0, lanes=4))
    one = get(at(source, 9))
    steps = [
        vector(four, one),
        vector(one, four),
        vector(one, one, one),
        vector(one, lanes_of(four, 2), number(7)),
        vector(four, lanes_of(four, 3, 1)),
        vector(lanes_of(four, 0, 0), one, four),
        lanes_of(four, 3),
        lanes_of(four, 2, 2, 0, 1, 3, 3),
        lanes_of(one, 0, 0),
    ]
    stores, position = [], 0
    for step in steps:
        stores.append(put(at(out, position, lanes=step.dtype.lanes), step))
        position += step.dtype.lanes
    agree(program(*stores), [ElementMemory(I32, 64), ElementMemory(I32, 64, list(range(64)))])


def test_lanes_of_bools():
    source, out = argument(1, I32), argument(0, dtypes.bool)
    x, y = (get(at(source, start, lanes=4)) for start in (0, 4))
    is_less = make(Op.LESS, dtypes.bool.vector(4), (x, y))
    steps = [
        lanes_of(is_less, 3, 1, 1, 0),
        lanes_of(is_less, 2, 0),
        lanes_of(vector(is_less, is_less), 6, 1, 4, 3, 0, 0, 7, 2),
        vector(is_less, lanes_of(is_less, 3, 2, 1, 0)),
    ]
    stores, position = [], 0
    for step in steps:
        stores.append(put(at(out, position, lanes=step.dtype.lanes), step))
        position += step.dtype.lanes
    given = ElementMemory(I32, 64, [0, 5, 2, 7] + [3] * 60)
    agree(program(*stores), [ElementMemory(dtypes.bool, 64), given])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_memory_inside_the_kernel_holds_every_dtype(dtype: DType):
    values = [value for value in edge_values(dtype) if value == value][:16]
    values = list(itertools.islice(itertools.cycle(values), 16))
    register, local = memory("r", "register", 16, dtype), memory("l", "local", 16, dtype)
    x = get(at(argument(1, dtype, 16), 0, lanes=16))
    first = put(at(register, 0, lanes=16), x)
    copied = get(at(make(Op.AFTER, dtype, (register, first)), 4, lanes=8))
    second = put(at(local, 2, lanes=8), copied)
    iteration = counter(0, 8)
    seen = get(at(make(Op.AFTER, dtype, (local, second)), iteration + 2))
    code = program(
        first,
        copied,
        second,
        iteration,
        put(at(argument(0, dtype, 8), iteration), seen),
        end(iteration),
    )
    agree(code, [ElementMemory(dtype, 8), ElementMemory(dtype, 16, values)])


def test_the_tables_cover_what_the_target_promises():
    for op in LLVM_OPS:
        assert KINDS[op] & (BOOL | INTEGER | FLOAT), name(op)
