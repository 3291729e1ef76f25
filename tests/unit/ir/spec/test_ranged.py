"""RANGED_SPEC: each invariant accepts a legal graph and names an illegal one."""

import pytest

from weft.ir.build import (
    index,
    index_of,
    load,
    param,
    range_,
    reduce_ranges,
    scan_range,
    sink,
    store,
    true,
    variable,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.spec.common import CALL_ROWS, ELEMENTWISE_ROWS, LEAF_ROWS
from weft.ir.spec.kernel import RANGE_ROWS, REDUCTION_ROWS
from weft.ir.spec.ranged import RANGED_SPEC
from weft.ir.spec.spec import verify
from weft.ir.stage import stage
from weft.ir.uop import UOp, const, make

f32, i32 = dtypes.float32, dtypes.int32
r0, r1 = range_(0, 4), range_(1, 3)
p0, p1, p2 = (param(slot, f32, (4,)) for slot in range(3))
address = index_of(p0, (r0,))
value = load(index_of(p1, (r0,)))
written = store(address, value, (r0,))
staged = stage("global", value + 1.0, (r0,), (4,), (r0,))
read = make(Op.READ, f32, (staged, true(), r0))
reader = store(index_of(p2, (r0,)), read, (r0,))
masked = stage("global", value, (r0 * 3 + r1,), (10,), (r0, r1), r0 * 3 + r1 < 10)
body = param(0, f32, (4,)) * 2.0
call = make(Op.CALL, f32, (staged,), body)
pair = make(Op.CALL, dtypes.void, (p1,), make(Op.TUPLE, dtypes.void, (body, body + 1.0)))
item = make(Op.ITEM, f32, (pair,), 0)


def void(op: int, *src: UOp, arg=None) -> UOp:
    return make(op, dtypes.void, src, arg)


# For each row a node that it accepts and one that it does not.
CASES: dict[str, tuple[UOp, UOp]] = {
    "a kernel computes scalars": (value, const(f32.vector(4), 1)),
    "memory is read before it is computed with": (read + 1.0, staged + 1.0),
    "INDEX is an address in a PARAM or BUFFER": (address, index_of(staged, (r0,))),
    "an address has the dtype of its memory": (address, make(Op.INDEX, i32, address.src)),
    "INDEX has a bool mask and one index per dimension": (address, index_of(p0, (r0, r0))),
    "LOAD reads an address": (value, load(p1)),
    "the result has the dtype of the value": (read, make(Op.READ, i32, read.src)),
    "a STAGE is global, with indices, sizes and ranges": (
        masked,
        stage("local", value, (r0,), (4,), (r0,)),
    ),
    "READ reads a STAGE or a result, at one index per size": (
        make(Op.READ, f32, (call, true(), r0)),
        make(Op.READ, f32, (p0, true(), r0)),
    ),
    "STORE writes a value at an index, or what a call gives": (
        store(p0, call),
        store(p0, value, (r0,)),
    ),
    "AFTER has the dtype of its first source": (
        make(Op.AFTER, f32, (p0, written)),
        make(Op.AFTER, i32, (p0, written)),
    ),
    "AFTER is memory once kernels or calls have run": (
        make(Op.AFTER, f32, (p0, staged)),
        make(Op.AFTER, f32, (staged, written)),
    ),
    "a TUPLE is the outputs of a kernel or of a call": (
        void(Op.TUPLE, written, staged),
        void(Op.TUPLE, written),
    ),
    "a SINK has kernels and calls, each once": (sink(staged, reader), sink(value)),
    "ITEM picks a value of a CALL, with its dtype": (item, make(Op.ITEM, i32, (pair,), 0)),
}
SHARED = (*LEAF_ROWS, *ELEMENTWISE_ROWS, *CALL_ROWS, *REDUCTION_ROWS, *RANGE_ROWS)


def test_every_row_has_a_case():
    shared = {entry.invariant for entry in SHARED}
    assert {entry.invariant for entry in RANGED_SPEC.rows} == CASES.keys() | shared


@pytest.mark.parametrize("invariant", CASES)
def test_row(invariant: str):
    good, bad = CASES[invariant]
    assert RANGED_SPEC.fault_of(good) is None
    fault = RANGED_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.invariant) == (bad, invariant)


FURTHER_FAULTS = {
    "a mask that is not bool": stage("global", value, (r0,), (4,), (r0,), index(1)),
    "a negative size": make(Op.STAGE, f32, (value, r0, r0), ("global", (-4,))),
    "too few sources": make(Op.STAGE, f32, (value,), ("global", (4, 4))),
    "no range": make(Op.STAGE, f32, (value, r0, index(4)), ("global", (4,))),
    "an odd arg of a STORE": void(Op.STORE, address, value, r0, arg="later"),
    "a call that fills another shape": store(param(3, f32, (5,)), call),
    "a member twice": sink(staged, staged),
    "calls and kernels together": void(Op.TUPLE, written, store(p2, call)),
}


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert RANGED_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


n = variable("n", 1, 9)
rn = range_(0, n)
symbolic = stage("global", load(index_of(param(6, f32, (n,)), (rn,))), (rn,), (n,), (rn,))
total = reduce_ranges(value, Op.ADD, (r0,))
scanned = scan_range(load(index_of(param(1, f32, (4, 3)), (r0, r1))), Op.ADD, r0)
gathered = index_of(p0, (load(index_of(param(4, i32, (3,)), (r1,))).cast(dtypes.index),))
added = (gathered, load(gathered) + 1.0, r1)
other = range_(0, 7)
after_reader = make(Op.AFTER, f32, (p1, reader))
late = store(index_of(after_reader, (r0,)), value, (r0,))

GRAPHS: dict[str, tuple[UOp, UOp]] = {
    "each output belongs to one member": (sink(staged, reader), sink(reader)),
    "members can be put in order": (
        sink(staged, reader, late),
        sink(void(Op.TUPLE, staged, late), reader),
    ),
    "two ranges of a kernel never share a number": (
        sink(stage("global", total, (), (), ())),
        sink(
            stage(
                "global",
                value + reduce_ranges(load(index_of(p2, (other,))), Op.ADD, (other,)),
                (r0,),
                (4,),
                (r0,),
            )
        ),
    ),
    "an output closes all ranges that it depends on": (sink(written), sink(store(address, value))),
    "what is carried from iteration to iteration is innermost": (
        sink(void(Op.STORE, *added, arg="ordered")),
        sink(void(Op.STORE, *added)),
    ),
}


def test_every_invariant_of_graphs_has_a_case():
    assert {entry.invariant for entry in RANGED_SPEC.graph_rows} == GRAPHS.keys()


@pytest.mark.parametrize("invariant", GRAPHS)
def test_graph_invariant(invariant: str):
    good, bad = GRAPHS[invariant]
    verify(good, RANGED_SPEC)
    fault = RANGED_SPEC.find_fault(bad)
    assert fault is not None
    assert fault.invariant == invariant


def test_a_scan_inside_a_loop_that_it_depends_on():
    bad = sink(store(index_of(param(0, f32, (4, 3)), (r0, r1)), scanned, (r0, r1)))
    fault = RANGED_SPEC.find_fault(bad)
    assert fault is not None
    assert fault.node is scanned


def test_symbolic_stages_and_results_of_calls_are_legal():
    reads = make(Op.READ, f32, (symbolic, true(), rn))
    verify(sink(symbolic, store(index_of(param(5, f32, (n,)), (rn,)), reads, (rn,))), RANGED_SPEC)
    verify(sink(staged, store(p2, call)), RANGED_SPEC)
    first = store(p0, item)
    second = store(p2, make(Op.ITEM, f32, (pair,), 1))
    verify(sink(void(Op.TUPLE, first, second)), RANGED_SPEC)
