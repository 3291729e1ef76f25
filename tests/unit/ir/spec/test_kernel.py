"""Every invariant of a kernel accepts a legal node and rejects an illegal one."""

import pytest

from weft.ir.build import (
    buffer,
    call,
    index_of,
    load,
    param,
    range_,
    reduce_ranges,
    scan_range,
    sink,
    store,
    variable,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import COUNT, MOVEMENT, Op, name
from weft.ir.spec.common import AFTER_ROWS, CALL_ROWS, ELEMENTWISE_ROWS, LEAF_ROWS
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp, const, make

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void
x, flags = param(0, f32, (4, 8)), param(1, i32, (4,))
r0, r1 = range_(0, 4), range_(1, 8)
true = const(dtypes.bool, True)
address = index_of(x, (r0, r1))
value = load(address)
number = load(index_of(flags, (r0,)))
stage = make(Op.STAGE, f32, (value, r1, r1), ("local", (8,)))


def kernel(*loops: object, source: UOp | None = None) -> UOp:
    closed = store(address, value, (r0, r1)) if source is None else source
    return make(Op.KERNEL, void, (closed,), ("k", loops))


def program(argument: UOp, written: int = 0) -> UOp:
    return make(Op.PROGRAM, void, (argument,), ("k", "C:C:any", "", "", (written,), (1,), (1,)))


def read(*indices: UOp, mask: UOp = true) -> UOp:
    return make(Op.READ, f32, (stage, mask, *indices))


numbers = param(3, i32, (4,))
named = index_of(x, (load(index_of(numbers, (r0,))).cast(dtypes.index), r1))
reduced = store(named, load(named) + value, (r0, r1))
scanned = store(address, scan_range(value, Op.ADD, r1), (r0, r1))


def tile(positions: int) -> UOp:
    factor = ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1))
    arg = ((64, 64, 64), 2, (1,), factor, factor, "float32")
    return make(Op.CONTRACT, f32, (x, x, *[r0] * (4 + positions)), arg)


# invariant -> a node that obeys it and one that breaks it.
CASES: dict[str, tuple[UOp, UOp]] = {
    "STORE has no arg": (
        store(address, value, (r0,)),
        make(Op.STORE, dtypes.void, (address, value, r0), "ordered"),
    ),
    "a kernel computes scalars": (value, const(f32.vector(4), 1)),
    "memory is read by LOAD before it is computed with": (value + 1.0, x + 1.0),
    "a RANGE has a number and an extent of dtype index": (
        range_(0, variable("n", 1, 9)),
        make(Op.RANGE, i32, (const(i32, 4),), 0),
    ),
    "INDEX is an address in a PARAM or BUFFER": (
        index_of(buffer(0, f32, (4,), "CPU"), (r0,)),
        index_of(value, ()),
    ),
    "an address has the dtype of its memory": (address, make(Op.INDEX, i32, address.src)),
    "INDEX has a bool mask and one index per dimension": (
        index_of(x, (r0, r1), r0 < 3),
        index_of(x, (r0,)),
    ),
    "LOAD reads an address": (value, make(Op.LOAD, f32, (x,))),
    "the result has the dtype of the value": (value, make(Op.LOAD, i32, (address,))),
    "STORE writes a value of the dtype of its target": (
        store(address, value, (r0, r1)),
        store(address, number),
    ),
    "STORE closes ranges, each once": (
        store(address, value, (r0,)),
        store(address, value, (r0, r0)),
    ),
    "a STAGE has a space, an index for each size, and ranges": (
        stage,
        make(Op.STAGE, f32, (value, r1), ("shared", (8,))),
    ),
    "READ has a STAGE, a bool mask and one index per size": (read(r0), read(r0, r1)),
    "REDUCE reduces by an op over ranges, and over no axes": (
        reduce_ranges(value, Op.ADD, (r1,)),
        make(Op.REDUCE, f32, (value,), (Op.ADD, (0,))),
    ),
    "SCAN reduces by an op over one range, and over no axes": (
        scan_range(value, Op.ADD, r1),
        make(Op.SCAN, f32, (value,), (Op.ADD, (0,))),
    ),
    "CONTRACT has two memories, a start for each axis, and positions": (tile(6), tile(3)),
    "a reduction keeps the dtype": (
        reduce_ranges(number, Op.MAX, (r0,)),
        make(Op.REDUCE, i32, (value, r1), (Op.ADD, ())),
    ),
    "the reduction is defined for the dtype": (
        reduce_ranges(number, Op.OR, (r0,)),
        reduce_ranges(value, Op.OR, (r0,)),
    ),
    "a KERNEL is (name, loops), each loop once": (
        kernel((0, "grid"), (1, "loop")),
        kernel((0, "grid"), (0, "loop")),
    ),
    "a PROGRAM is a kernel of some target, over memory and sizes": (program(x), program(value)),
    "a KERNEL and a SINK hold effects": (kernel(), kernel(source=value)),
}
SHARED = (*LEAF_ROWS, *ELEMENTWISE_ROWS, *AFTER_ROWS, *CALL_ROWS)  # cases: test_spec_tensor
FURTHER_FAULTS = {
    "an index of another dtype": index_of(x, (r0, number)),
    "a mask that is not a bool": index_of(x, (r0, r1), number),
    "STORE to no address": make(Op.STORE, void, (x, value)),
    "STORE over an index": store(address, value, (r0 * 2,)),
    "a STAGE with too few indices": make(Op.STAGE, f32, (value,), ("local", (8,))),
    "a STAGE of size 0": make(Op.STAGE, f32, (value, r1, r1), ("local", (0,))),
    "READ of no STAGE": make(Op.READ, f32, (value, true, r0)),
    "READ with a wrong mask": read(r0, mask=r0),
    "REDUCE over nothing": make(Op.REDUCE, f32, (value,), (Op.ADD, ())),
    "REDUCE by LESS": reduce_ranges(value, Op.LESS, (r0,)),
    "SCAN by LESS": scan_range(value, Op.LESS, r0),
    "SCAN over an index": scan_range(value, Op.ADD, r0 * 2),
    "a loop without a kind": kernel(0),
    "a PROGRAM that writes what it does not take": program(x, written=7),
    "SQRT of integers": make(Op.SQRT, i32, (number,)),
    "a call with too few arguments": call(value),
}


def test_every_invariant_has_a_case():
    shared = {entry.invariant for entry in SHARED}
    assert {entry.invariant for entry in KERNEL_SPEC.rows} == CASES.keys() | shared


@pytest.mark.parametrize("invariant", CASES)
def test_invariant(invariant: str):
    good, bad = CASES[invariant]
    for node in (good, *good.src):
        assert KERNEL_SPEC.fault_of(node) is None
    fault = KERNEL_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.invariant) == (bad, invariant)


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert KERNEL_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


GRAPHS = {
    "two ranges never share a number": (
        sink(store(address, value, (r0, r1))),
        sink(store(address, value, (r0, r1)), store(address, value, (range_(0, 5), r0, r1))),
        range_(0, 5),
    ),
    "a SCAN runs over the innermost of its loops, which is ordered": (
        kernel((0, "grid"), (1, "ordered"), source=scanned),
        kernel((1, "ordered"), (0, "loop"), source=scanned),
        scanned.src[1],
    ),
    "a loop whose iterations reduce into one address is sequential": (
        kernel((1, "grid"), (0, "ordered"), source=reduced),
        kernel((0, "loop"), (1, "ordered"), source=reduced),
        reduced,
    ),
    "no range is free at the root": (
        kernel(source=store(address, value)),
        sink(store(address, value, (r0,))),
        r1,
    ),
}


def test_every_invariant_of_graphs_has_a_case():
    assert {entry.invariant for entry in KERNEL_SPEC.graph_rows} == GRAPHS.keys()


@pytest.mark.parametrize("invariant", GRAPHS)
def test_graph_invariant(invariant: str):
    good, bad, guilty = GRAPHS[invariant]
    verify(good, KERNEL_SPEC)
    fault = KERNEL_SPEC.find_fault(bad)
    assert fault is not None
    assert (fault.node, fault.invariant) == (guilty, invariant)


def test_the_loop_of_a_scan_is_listed_as_ordered():
    for loops in ([(0, "loop"), (1, "loop")], [(0, "loop")]):
        fault = KERNEL_SPEC.find_fault(kernel(*loops, source=scanned))
        assert fault is not None
        assert "not listed as ordered" in fault.detail


def test_a_staged_kernel_is_legal():
    out = index_of(param(2, f32, (4, 8)), (r0, r1))
    after = make(Op.AFTER, f32, (stage, store(address, value, (r0, r1))))
    first = make(Op.READ, f32, (after, r0 < 3, r1))
    verify(kernel((0, "grid"), source=store(out, first + 1.0, (r0, r1))), KERNEL_SPEC)


def test_illegal_ops():
    illegal = set(range(COUNT)) - KERNEL_SPEC.ops
    assert illegal > MOVEMENT
    assert {name(op) for op in illegal - MOVEMENT} == {
        *("IOTA", "DETACH", "COPY", "BIND", "MEMORY", "VECTOR", "LANES", "SPECIAL", "END"),
        *("BARRIER", "SHUFFLE", "TUPLE", "ITEM", "LINEAR", "CUSTOM_GRADIENT", "SCATTER", "SHARD"),
        *("TENSOR_MAP", "COPY_BOX", "MBARRIER", "MMA", "MMA_GROUP", "INLINE"),
    }
