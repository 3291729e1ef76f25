"""Every law of a kernel accepts a legal node and rejects an illegal one."""

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
place = index_of(x, (r0, r1))
value = load(place)
number = load(index_of(flags, (r0,)))
stage = make(Op.STAGE, f32, (value, r1, r1), ("local", (8,)))


def kernel(*loops: object, source: UOp | None = None) -> UOp:
    closed = store(place, value, (r0, r1)) if source is None else source
    return make(Op.KERNEL, void, (closed,), ("k", loops))


def program(argument: UOp, written: int = 0) -> UOp:
    return make(Op.PROGRAM, void, (argument,), ("k", "C:C:any", "", "", (written,), (1,), (1,)))


def read(*indices: UOp, gate: UOp = true) -> UOp:
    return make(Op.READ, f32, (stage, gate, *indices))


numbers = param(3, i32, (4,))
named = index_of(x, (load(index_of(numbers, (r0,))).cast(dtypes.index), r1))
folded = store(named, load(named) + value, (r0, r1))
scanned = store(place, scan_range(value, Op.ADD, r1), (r0, r1))

# law -> a node that obeys it and one that breaks it.
CASES: dict[str, tuple[UOp, UOp]] = {
    "STORE has no arg": (
        store(place, value, (r0,)),
        make(Op.STORE, dtypes.void, (place, value, r0), "ordered"),
    ),
    "a kernel computes scalars": (value, const(f32.vector(4), 1)),
    "memory is read by LOAD before it is computed with": (value + 1.0, x + 1.0),
    "a RANGE has a number and an extent of dtype index": (
        range_(0, variable("n", 1, 9)),
        make(Op.RANGE, i32, (const(i32, 4),), 0),
    ),
    "INDEX is a place in a PARAM or BUFFER": (
        index_of(buffer(0, f32, (4,), "CPU"), (r0,)),
        index_of(value, ()),
    ),
    "a place has the dtype of its memory": (place, make(Op.INDEX, i32, place.src)),
    "INDEX has a bool gate and one index per dimension": (
        index_of(x, (r0, r1), r0 < 3),
        index_of(x, (r0,)),
    ),
    "LOAD reads a place": (value, make(Op.LOAD, f32, (x,))),
    "the result has the dtype of the value": (value, make(Op.LOAD, i32, (place,))),
    "STORE writes a value of the dtype of its place": (
        store(place, value, (r0, r1)),
        store(place, number),
    ),
    "STORE closes ranges, each once": (store(place, value, (r0,)), store(place, value, (r0, r0))),
    "a STAGE has a space, an index for each size, and ranges": (
        stage,
        make(Op.STAGE, f32, (value, r1), ("shared", (8,))),
    ),
    "READ has a STAGE, a bool gate and one index per size": (read(r0), read(r0, r1)),
    "REDUCE folds by an op over ranges, and over no axes": (
        reduce_ranges(value, Op.ADD, (r1,)),
        make(Op.REDUCE, f32, (value,), (Op.ADD, (0,))),
    ),
    "SCAN folds by an op over one range, and over no axes": (
        scan_range(value, Op.ADD, r1),
        make(Op.SCAN, f32, (value,), (Op.ADD, (0,))),
    ),
    "a fold keeps the dtype": (
        reduce_ranges(number, Op.MAX, (r0,)),
        make(Op.REDUCE, i32, (value, r1), (Op.ADD, ())),
    ),
    "the fold is defined for the dtype": (
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
    "a gate that is no bool": index_of(x, (r0, r1), number),
    "STORE to no place": make(Op.STORE, void, (x, value)),
    "STORE over an index": store(place, value, (r0 * 2,)),
    "a STAGE with too few indices": make(Op.STAGE, f32, (value,), ("local", (8,))),
    "a STAGE of size 0": make(Op.STAGE, f32, (value, r1, r1), ("local", (0,))),
    "READ of no STAGE": make(Op.READ, f32, (value, true, r0)),
    "READ with a wrong gate": read(r0, gate=r0),
    "REDUCE over nothing": make(Op.REDUCE, f32, (value,), (Op.ADD, ())),
    "REDUCE by LESS": reduce_ranges(value, Op.LESS, (r0,)),
    "SCAN by LESS": scan_range(value, Op.LESS, r0),
    "SCAN over an index": scan_range(value, Op.ADD, r0 * 2),
    "a loop without a kind": kernel(0),
    "a PROGRAM that writes what it does not take": program(x, written=7),
    "SQRT of integers": make(Op.SQRT, i32, (number,)),
    "a call with too few arguments": call(value),
}


def test_every_law_has_a_case():
    shared = {entry.law for entry in SHARED}
    assert {entry.law for entry in KERNEL_SPEC.rows} == CASES.keys() | shared


@pytest.mark.parametrize("law", CASES)
def test_law(law: str):
    good, bad = CASES[law]
    for node in (good, *good.src):
        assert KERNEL_SPEC.fault_of(node) is None
    fault = KERNEL_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.law) == (bad, law)


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert KERNEL_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


GRAPHS = {
    "two ranges never share a number": (
        sink(store(place, value, (r0, r1))),
        sink(store(place, value, (r0, r1)), store(place, value, (range_(0, 5), r0, r1))),
        range_(0, 5),
    ),
    "a SCAN runs over the innermost of its loops, which is ordered": (
        kernel((0, "grid"), (1, "ordered"), source=scanned),
        kernel((1, "ordered"), (0, "loop"), source=scanned),
        scanned.src[1],
    ),
    "a loop whose turns fold into one place is ordered": (
        kernel((1, "grid"), (0, "ordered"), source=folded),
        kernel((0, "loop"), (1, "ordered"), source=folded),
        folded,
    ),
    "no range is free at the root": (
        kernel(source=store(place, value)),
        sink(store(place, value, (r0,))),
        r1,
    ),
}


def test_every_law_of_graphs_has_a_case():
    assert {entry.law for entry in KERNEL_SPEC.graph_rows} == GRAPHS.keys()


@pytest.mark.parametrize("law", GRAPHS)
def test_graph_law(law: str):
    good, bad, guilty = GRAPHS[law]
    verify(good, KERNEL_SPEC)
    fault = KERNEL_SPEC.find_fault(bad)
    assert fault is not None
    assert (fault.node, fault.law) == (guilty, law)


def test_the_loop_of_a_scan_is_listed_as_ordered():
    for loops in ([(0, "loop"), (1, "loop")], [(0, "loop")]):
        fault = KERNEL_SPEC.find_fault(kernel(*loops, source=scanned))
        assert fault is not None
        assert "not listed as ordered" in fault.detail


def test_a_staged_kernel_is_legal():
    out = index_of(param(2, f32, (4, 8)), (r0, r1))
    after = make(Op.AFTER, f32, (stage, store(place, value, (r0, r1))))
    first = make(Op.READ, f32, (after, r0 < 3, r1))
    verify(kernel((0, "grid"), source=store(out, first + 1.0, (r0, r1))), KERNEL_SPEC)


def test_illegal_ops():
    illegal = set(range(COUNT)) - KERNEL_SPEC.ops
    assert illegal > MOVEMENT
    assert {name(op) for op in illegal - MOVEMENT} == {
        *("IOTA", "DETACH", "COPY", "BIND", "MEMORY", "VECTOR", "LANES", "SPECIAL", "END"),
        *("BARRIER", "TUPLE", "ITEM", "LINEAR", "CUSTOM_GRADIENT", "SCATTER", "SHARD"),
    }
