"""Every invariant of a program accepts a legal node and rejects an illegal one."""

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


def at(i: UOp, dtype: object = f32, source: UOp = memory, mask: UOp = true) -> UOp:
    return make(Op.INDEX, dtype, (source, mask, i))


def end(node: UOp) -> UOp:
    return make(Op.END, void, (node,))


def linear(*nodes: UOp) -> UOp:
    return make(Op.LINEAR, void, nodes)


address = at(loop)
value = load(address)
vector = load(at(loop * 4, wide))
small = loop < 4

dynamic = make(Op.MEMORY, dtypes.uint16, (), ("tile", "dynamic", 4096))
room, barrier = at(loop, dtypes.uint16, dynamic), at(const(i32, 0), dtypes.uint16, dynamic)
sums = at(const(i32, 0), wide, scratch)
tensor = make(Op.TENSOR_MAP, f32, (memory,), (0, (8, 8), (1, 8), (8, 8), (1, 1)))
MULTIPLIES = (("float16", "float16"), (64, 64, 16), (0, 0))


def tile(lanes: int, positions: int) -> UOp:
    factor = ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1))
    src = (memory, memory, *[loop] * (4 + positions))
    arg = ((64, 64, 64), 2, (1,), factor, factor, "float32")
    return make(Op.CONTRACT, f32.vector(lanes), src, arg)


# invariant -> a node that obeys it and one that breaks it.
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
    "INDEX has memory, a bool mask and one flat index": (
        at(loop, source=scratch, mask=small),
        make(Op.INDEX, f32, (memory, true, loop, loop)),
    ),
    "an address holds one element of its memory, or a vector": (at(loop, wide), at(loop, i32)),
    "LOAD reads an address, with its dtype": (vector, make(Op.LOAD, f32, (at(loop, wide),))),
    "STORE writes a value of the dtype of its target": (
        store(at(loop, wide), vector),
        store(address, vector),
    ),
    "VECTOR joins lanes of one dtype": (
        make(Op.VECTOR, f32.vector(5), (vector, value)),
        make(Op.VECTOR, f32.vector(2), (value, loop)),
    ),
    "LANES picks lanes that exist": (
        make(Op.LANES, f32.vector(2), (vector,), (3, 0)),
        make(Op.LANES, f32, (vector,), (4,)),
    ),
    "SHUFFLE takes a value and a thread counter, and has (bits,)": (
        make(Op.SHUFFLE, f32, (value, loop), (4,)),
        make(Op.SHUFFLE, f32, (value, value), (4,)),
    ),
    "CONTRACT has two memories, a start for each axis, and positions": (
        tile(32, 3),
        tile(32, 6),
    ),
    "a TENSOR_MAP has an argument, an offset, and as many sizes, strides": (
        tensor,
        make(Op.TENSOR_MAP, f32, (memory,), (0, (8, 8), (1,), (8, 8), (1, 1))),
    ),
    "COPY_BOX has a target, a map, a barrier, a mask and coordinates": (
        make(Op.COPY_BOX, void, (room, tensor, barrier, true, loop, loop, loop)),
        make(Op.COPY_BOX, void, (room, tensor, barrier, true, loop, loop)),
    ),
    "MBARRIER has a barrier and a mask, and knows what it does": (
        make(Op.MBARRIER, void, (barrier, true, loop, loop), ("wait",)),
        make(Op.MBARRIER, void, (barrier, true, loop), ("wait",)),
    ),
    "MMA has sums in registers, and two tiles, of which the right is shared": (
        make(Op.MMA, void, (sums, room, room, loop), MULTIPLIES),
        make(Op.MMA, void, (room, room, room, loop), MULTIPLIES),
    ),
    "MMA_GROUP has sums in registers, and knows what it does": (
        make(Op.MMA_GROUP, void, (sums, loop), ("wait", 1)),
        make(Op.MMA_GROUP, void, (sums, loop), ("wait",)),
    ),
    "what runs beside the arithmetic is void": (
        make(Op.MMA_GROUP, void, (sums, loop), ("fence",)),
        make(Op.MMA_GROUP, f32, (sums, loop), ("fence",)),
    ),
    "control is void": (make(Op.BARRIER, void), make(Op.BARRIER, f32)),
    "END closes a RANGE": (end(loop), end(value)),
}
SHARED = (*LEAF_ROWS, *ELEMENTWISE_ROWS, *AFTER_ROWS)  # cases: test_spec_tensor
FURTHER_FAULTS = {
    "an address in a value": at(loop, source=value),
    "a float index": at(value),
    "a vector index": at(make(Op.VECTOR, i32.vector(2), (loop, loop))),
    "a mask that is not a bool": at(loop, mask=loop),
    "STORE of ranges": store(address, value, (loop,)),
    "VECTOR of another width": make(Op.VECTOR, wide, (value, value)),
    "unlike lanes": make(Op.ADD, wide, (vector, value)),
    "a comparison of vectors that gives one bool": make(Op.LESS, dtypes.bool, (vector, vector)),
    "SHUFFLE by no bits": make(Op.SHUFFLE, f32, (value, loop), (0,)),
    "a cast to other lanes": make(Op.CAST, i32, (vector,)),
    "WHERE with other lanes": make(
        Op.WHERE, wide, (make(Op.VECTOR, dtypes.bool.vector(2), (small, small)), vector, vector)
    ),
}


def test_every_invariant_has_a_case():
    shared = {entry.invariant for entry in SHARED}
    assert {entry.invariant for entry in PROGRAM_SPEC.rows} == CASES.keys() | shared


@pytest.mark.parametrize("invariant", CASES)
def test_invariant(invariant: str):
    good, bad = CASES[invariant]
    for node in (good, *good.src):
        assert PROGRAM_SPEC.fault_of(node) is None
    fault = PROGRAM_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.invariant) == (bad, invariant)


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert PROGRAM_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


written = store(address, value)
START = (loop, address, value)
PROGRAM = (*START, other, written, end(other), end(loop))
outside = at(const(i32, 0))

# invariant -> lists that break it, each with the guilty instruction.
GRAPHS: dict[str, list[tuple[UOp, UOp]]] = {
    "a program is one LINEAR": [
        (value, value),
        (linear(linear()), linear()),
    ],
    "an instruction is listed once": [(linear(*START, value, end(loop)), value)],
    "the sources of an instruction are listed before it": [
        (linear(address, loop, end(loop)), address),
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
        (linear(loop, end(loop), address), address),
    ],
}


def test_a_program_is_legal():
    verify(linear(*PROGRAM), PROGRAM_SPEC)
    verify(linear(), PROGRAM_SPEC)
    ids = make(Op.SPECIAL, i32, (const(i32, 4),), ("local", 0))
    spot = at(ids, wide, scratch)
    verify(linear(ids, make(Op.BARRIER, void), spot, load(spot)), PROGRAM_SPEC)


def test_every_invariant_of_graphs_has_a_case():
    assert {entry.invariant for entry in PROGRAM_SPEC.graph_rows} == GRAPHS.keys()


@pytest.mark.parametrize("invariant", GRAPHS)
def test_graph_invariant(invariant: str):
    for bad, guilty in GRAPHS[invariant]:
        fault = PROGRAM_SPEC.find_fault(bad)
        assert fault is not None
        assert fault.invariant == invariant
        assert fault.node is guilty


def test_illegal_ops():
    illegal = set(range(COUNT)) - PROGRAM_SPEC.ops
    assert illegal > MOVEMENT
    assert {name(op) for op in illegal - MOVEMENT} == {
        *("IOTA", "DETACH", "COPY", "BIND", "REDUCE", "SCAN", "SCATTER", "STAGE", "READ"),
        *(
            "TUPLE",
            "ITEM",
            "SINK",
            "KERNEL",
            "CALL",
            "PROGRAM",
            "CUSTOM_GRADIENT",
            "SHARD",
            "INLINE",
        ),
    }
    assert range_(0, 4).op in PROGRAM_SPEC.ops
