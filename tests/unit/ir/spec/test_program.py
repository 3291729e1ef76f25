"""Every law of a program accepts a legal node and rejects an illegal one."""

import pytest

from weft.ir.build import load, param, range_, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import COUNT, MOVEMENT, Op, name
from weft.ir.spec.common import AFTER_ROWS, ELEMENTWISE_ROWS, LEAF_ROWS
from weft.ir.spec.program import PROGRAM_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp, const, make

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void
wide = f32.vector(4)
memory = param(0, f32, (64,))
scratch = make(Op.MEMORY, f32, (), ("acc", "register", 4))
loop = make(Op.RANGE, i32, (const(i32, 16),), 0)
other = make(Op.RANGE, i32, (const(i32, 8),), 1)
true = const(dtypes.bool, True)


def at(i: UOp, dtype: object = f32, source: UOp = memory, gate: UOp = true) -> UOp:
    return make(Op.INDEX, dtype, (source, gate, i))


def end(node: UOp) -> UOp:
    return make(Op.END, void, (node,))


def linear(*nodes: UOp) -> UOp:
    return make(Op.LINEAR, void, nodes)


place = at(loop)
value = load(place)
vector = load(at(loop * 4, wide))
small = loop < 4

# law -> a node that obeys it and one that breaks it.
CASES: dict[str, tuple[UOp, UOp]] = {
    "MEMORY is (name, space, size)": (
        scratch,
        make(Op.MEMORY, f32, (), ("acc", "elsewhere", 4)),
    ),
    "a counter is an integer, as its extent is": (loop, make(Op.RANGE, f32, (value,), 0)),
    "a SPECIAL is (kind, axis)": (
        make(Op.SPECIAL, i32, (const(i32, 4),), ("group", 0)),
        make(Op.SPECIAL, i32, (const(i32, 4),), "group"),
    ),
    "INDEX has memory, a bool gate and one flat index": (
        at(loop, source=scratch, gate=small),
        make(Op.INDEX, f32, (memory, true, loop, loop)),
    ),
    "a place holds one element of its memory, or a vector": (at(loop, wide), at(loop, i32)),
    "LOAD reads a place, with its dtype": (vector, make(Op.LOAD, f32, (at(loop, wide),))),
    "STORE writes a value of the dtype of its place": (
        store(at(loop, wide), vector),
        store(place, vector),
    ),
    "VECTOR joins lanes of one dtype": (
        make(Op.VECTOR, f32.vector(5), (vector, value)),
        make(Op.VECTOR, f32.vector(2), (value, loop)),
    ),
    "LANES picks lanes that exist": (
        make(Op.LANES, f32.vector(2), (vector,), (3, 0)),
        make(Op.LANES, f32, (vector,), (4,)),
    ),
    "control is void": (make(Op.BARRIER, void), make(Op.BARRIER, f32)),
    "END closes a RANGE": (end(loop), end(value)),
}
SHARED = (*LEAF_ROWS, *ELEMENTWISE_ROWS, *AFTER_ROWS)  # cases: test_spec_tensor
FURTHER_FAULTS = {
    "a place in a value": at(loop, source=value),
    "a float index": at(value),
    "a vector index": at(make(Op.VECTOR, i32.vector(2), (loop, loop))),
    "a gate that is no bool": at(loop, gate=loop),
    "STORE of ranges": store(place, value, (loop,)),
    "VECTOR of another width": make(Op.VECTOR, wide, (value, value)),
    "unlike lanes": make(Op.ADD, wide, (vector, value)),
    "a comparison of vectors that gives one bool": make(Op.LESS, dtypes.bool, (vector, vector)),
    "a cast to other lanes": make(Op.CAST, i32, (vector,)),
    "WHERE with other lanes": make(
        Op.WHERE, wide, (make(Op.VECTOR, dtypes.bool.vector(2), (small, small)), vector, vector)
    ),
}


def test_every_law_has_a_case():
    shared = {entry.law for entry in SHARED}
    assert {entry.law for entry in PROGRAM_SPEC.rows} == CASES.keys() | shared


@pytest.mark.parametrize("law", CASES)
def test_law(law: str):
    good, bad = CASES[law]
    for node in (good, *good.src):
        assert PROGRAM_SPEC.fault_of(node) is None
    fault = PROGRAM_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.law) == (bad, law)


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert PROGRAM_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


written = store(place, value)
START = (loop, place, value)
PROGRAM = (*START, other, written, end(other), end(loop))
outside = at(const(i32, 0))

# law -> lists that break it, each with the guilty instruction.
GRAPHS: dict[str, list[tuple[UOp, UOp]]] = {
    "a program is one LINEAR": [
        (value, value),
        (linear(linear()), linear()),
    ],
    "an instruction is listed once": [(linear(*START, value, end(loop)), value)],
    "the sources of an instruction are listed before it": [
        (linear(place, loop, end(loop)), place),
        (linear(loop, value, end(loop)), value),
    ],
    "each RANGE is closed by an END, and they nest": [
        (linear(loop), loop),
        (linear(loop, other, end(loop), end(other)), end(loop)),
        (linear(loop, other, end(other)), loop),
        (linear(loop, end(loop), other), other),
    ],
    "a value is used inside the loop that makes it": [
        (linear(*START, end(loop), outside, store(outside, value)), store(outside, value)),
        (linear(loop, end(loop), place), place),
    ],
}


def test_a_program_is_legal():
    verify(linear(*PROGRAM), PROGRAM_SPEC)
    verify(linear(), PROGRAM_SPEC)
    ids = make(Op.SPECIAL, i32, (const(i32, 4),), ("local", 0))
    spot = at(ids, wide, scratch)
    verify(linear(ids, make(Op.BARRIER, void), spot, load(spot)), PROGRAM_SPEC)


def test_every_law_of_graphs_has_a_case():
    assert {entry.law for entry in PROGRAM_SPEC.graph_rows} == GRAPHS.keys()


@pytest.mark.parametrize("law", GRAPHS)
def test_graph_law(law: str):
    for bad, guilty in GRAPHS[law]:
        fault = PROGRAM_SPEC.find_fault(bad)
        assert fault is not None
        assert fault.law == law
        assert fault.node is guilty


def test_illegal_ops():
    illegal = set(range(COUNT)) - PROGRAM_SPEC.ops
    assert illegal > MOVEMENT
    assert {name(op) for op in illegal - MOVEMENT} == {
        *("IOTA", "DETACH", "COPY", "BIND", "REDUCE", "SCAN", "SCATTER", "STAGE", "READ"),
        *("TUPLE", "ITEM", "SINK", "KERNEL", "CALL", "PROGRAM", "CUSTOM_GRADIENT", "SHARD"),
    }
    assert range_(0, 4).op in PROGRAM_SPEC.ops
