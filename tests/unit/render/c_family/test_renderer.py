"""Every op of the C family on every dtype, on C and on OpenCL, against the interpreter."""

import itertools

import pytest

from tests.unit.reference.edge_values import edge_values
from tests.unit.render.c_family_cases import DEVICES, argument, at, check, end, loop, program
from weft.ir.build import load, store
from weft.ir.dtypes import BOOL, FLOAT, DType, dtypes
from weft.ir.ops import COMPARE, COMPLEX_OPS, UNARY, Op, name
from weft.ir.scalar import KINDS
from weft.ir.uop import UOp, const, make
from weft.reference.memory import ElementMemory
from weft.target.c import EXACT_OPS, INTEGERS
from weft.target.opencl import opencl_target

DTYPES = sorted(
    {dtypes.bool, dtypes.float32, dtypes.float64, *INTEGERS}, key=lambda dtype: dtype.name
)
# Four lanes are a type of both languages, three are a struct.
SHAPES = [(dtype, lanes) for dtype in DTYPES for lanes in (1, 4)]
SHAPES += [(dtype, 3) for dtype in (dtypes.bool, dtypes.int8, dtypes.uint32, dtypes.float64)]
SHIFTS = (Op.SHL, Op.SHR)


def pairs(dtype: DType, count: int) -> tuple[list[object], list[object]]:
    """Every value of a dtype at which arithmetic goes wrong, next to about `count` others."""
    values = edge_values(dtype)
    stride = max(1, len(values) ** 2 // count)
    chosen = list(itertools.product(values, values))[::stride]
    chosen += [(x, x) for x in values]
    chosen += [chosen[0]] * (-len(chosen) % 12)
    return [x for x, _ in chosen], [y for _, y in chosen]


def results(dtype: DType, x: UOp, y: UOp) -> list[UOp]:
    """Every exact op on two values, and casts to all dtypes."""
    lanes = x.dtype.lanes
    flags = dtypes.bool.vector(lanes)
    found = []
    for op in sorted(EXACT_OPS - {Op.CAST, Op.BITCAST, Op.WHERE}):
        if not KINDS[op] & dtype.kind:
            continue
        amount = y & const(y.dtype, 127) if op in SHIFTS else y
        sources = (x,) if op in UNARY else (x, amount)
        found.append(make(op, flags if op in COMPARE else x.dtype, sources))
    found.append(make(Op.WHERE, x.dtype, (make(Op.LESS, flags, (x, y)), x, y)))
    found += [
        make(Op.CAST, target.vector(lanes), (x,)) for target in DTYPES if target is not dtype
    ]
    found += [
        make(Op.BITCAST, target.vector(lanes), (x,))
        for target in DTYPES
        if target.bits == dtype.bits
        and target is not dtype
        and BOOL not in (target.kind, dtype.kind)
    ]
    return found


@pytest.mark.parametrize("dtype, lanes", SHAPES, ids=lambda x: getattr(x, "name", str(x)))
@pytest.mark.parametrize("device", DEVICES)
def test_every_op_on_every_dtype(device: str, dtype: DType, lanes: int):
    left, right = pairs(dtype, 150 if lanes == 1 else 40)
    size = len(left)
    i = loop(0, size // lanes)
    x, y = (load(at(argument(slot, size, dtype), i * lanes, lanes=lanes)) for slot in (0, 1))
    values = results(dtype, x, y)
    outputs = [argument(slot, size, value.dtype.scalar) for slot, value in enumerate(values, 2)]
    stores = [
        store(at(out, i * lanes, lanes=lanes), value)
        for out, value in zip(outputs, values, strict=True)
    ]
    memories = [ElementMemory(dtype, size, left), ElementMemory(dtype, size, right)]
    memories += [ElementMemory(out.dtype, size) for out in outputs]
    check(device, program(i, x, y, *stores, end(i)), memories)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("device", DEVICES)
def test_constants(device: str, dtype: DType):
    values = edge_values(dtype)
    out = argument(0, len(values), dtype)
    steps = [store(at(out, i), const(dtype, value)) for i, value in enumerate(values)]
    wide = argument(1, 4, dtype)
    steps.append(store(at(wide, 0, lanes=4), const(dtype.vector(4), values[-1])))
    check(device, program(*steps), [ElementMemory(dtype, len(values)), ElementMemory(dtype, 4)])


@pytest.mark.parametrize("dtype", sorted(INTEGERS, key=lambda dtype: dtype.name), ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_division_by_constants(device: str, dtype: DType):
    values = edge_values(dtype)
    i = loop(0, len(values))
    x = load(at(argument(0, len(values), dtype), i))
    divisors = [value for value in (0, 1, 2, 3, 7, 100, -1, -3) if value >= dtype.min]
    steps, memories = [], [ElementMemory(dtype, len(values), values)]
    for op in (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD):
        for divisor in divisors:
            result = make(op, dtype, (x, const(dtype, divisor)))
            slot = len(memories)
            steps.append(store(at(argument(slot, len(values), dtype), i), result))
            memories.append(ElementMemory(dtype, len(values)))
    check(device, program(i, *steps, end(i)), memories)


def test_the_targets_name_exactly_the_ops_that_are_rendered():
    rendered = {op for dtype in DTYPES for op in EXACT_OPS if KINDS[op] & dtype.kind}
    assert rendered == opencl_target().native_ops
    # Complex numbers are taken apart, and products of bytes written as shifts, before.
    others = {*COMPLEX_OPS, Op.DOT_BYTES}
    missing = {name(op) for op in KINDS.keys() - others} - {name(op) for op in EXACT_OPS}
    transcendental = {"POW", "EXP", "EXP2", "LOG", "LOG2", "SIN", "COS", "TANH", "ERF", "LOGADD"}
    assert missing == transcendental
    assert all(KINDS[op] & FLOAT for op in (Op.SQRT, Op.DIV))
