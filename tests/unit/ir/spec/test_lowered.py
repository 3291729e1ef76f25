"""Each form of a kernel obeys its own spec, and breaks that of the form after it."""

import pytest

from tests.unit.codegen.kernel_parts import F32, at, kernel, put, total
from tests.unit.machines import machine
from weft.codegen.context import CodegenContext
from weft.codegen.opts.table import Bind, Split, Stage, Unroll, Vectorize
from weft.codegen.phases import CODEGEN
from weft.ir.build import index, load, param, range_, reduce_ranges, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.spec.lowered import (
    ACCUMULATED_SPEC,
    BOUND_SPEC,
    EXPANDED_SPEC,
    FLAT_SPEC,
    INDEXED_SPEC,
    NORMAL_SPEC,
    WIDENED_SPEC,
    decomposed_spec,
    emulated_floats_spec,
    native_spec,
)
from weft.ir.spec.spec import Spec
from weft.ir.uop import UOp, const, make

f16, f32, i32, i64, void = dtypes.float16, F32, dtypes.int32, dtypes.int64, dtypes.void
MACHINE = machine(
    group_threads=8,
    native_dtypes=frozenset((dtypes.bool, f32, i32, dtypes.uint32, dtypes.uint16, dtypes.uint8)),
    native_ops=frozenset(ELEMENTWISE) - {Op.EXP, Op.TRUNCMOD},
)
# The opts leave a loop of every kind.
OPTS = (
    Stage(("factor", 2, 1), (2, 1)),
    Split(1, 4),
    Vectorize(5),
    Split(0, 2),
    Unroll(6),
    Bind(0, "grid"),
    Bind(1, "thread"),
    Split(2, 3),
    Unroll(7, sequential=True),
)


def contraction() -> UOp:
    """exp of a matmul of halves, written to memory of wide integers."""
    out, a, b = param(0, i64, (4, 8)), param(1, f16, (4, 6)), param(2, f16, (6, 8))
    i, j, k = range_(0, 4), range_(1, 8), range_(2, 6)
    value = total(at(a, i, k) * at(b, k, j), k)
    exp = make(Op.EXP, f16, (value,))
    return kernel("matmul", put(out, [i, j], exp.cast(i64), [i, j]))


def forms() -> dict[str, tuple[UOp, Spec | None]]:
    """The kernel after each pass, with the spec of that pass."""
    root, context = contraction(), CodegenContext(MACHINE, OPTS)
    found: dict[str, tuple[UOp, Spec | None]] = {}
    for step in CODEGEN.passes:
        root = step.run(root, context)
        found[step.name] = (root, step.spec(context))
    return found


FORMS = forms()
# What the form before a pass has that is no longer legal after it.
GONE = {
    "widen-reductions": "a reduction of floats has 32 bits or more",
    "flatten-memory": "INDEX has memory, a bool mask and one flat index",
    "expand": "a loop is of a kind of grid, loop, ordered, sequential, thread",
    "lower-reductions": "REDUCE is not legal in a kernel with accumulators",
    "bind-hardware": "a loop is of a kind of loop, ordered",
    "lower-index": "an index has the width of a machine integer",
    "emulate-small-floats": "small floats are those that the target computes with",
    "decompose": "an op that can be decomposed is one that the target has",
    "emulate-wide-integers": "wide integers are those that the target computes with",
    "linearize": "STORE writes a value of the dtype of its target",
}


@pytest.mark.parametrize("name", FORMS)
def test_what_a_pass_gives_obeys_its_spec(name: str):
    root, spec = FORMS[name]
    assert spec is not None
    assert spec.find_fault(root) is None


@pytest.mark.parametrize("name", GONE)
def test_what_comes_before_a_pass_breaks_its_spec(name: str):
    names = list(FORMS)
    before, _ = FORMS[names[names.index(name) - 1]]
    spec = FORMS[name][1]
    assert spec is not None
    fault = spec.find_fault(before)
    assert fault is not None
    assert fault.invariant == GONE[name]


true = const(dtypes.bool, True)
r0, r1 = range_(0, 4), range_(1, 4)
memory = param(0, f32, (4,))
inside = make(Op.MEMORY, f32, (), ("acc0", "register", 1))


def spot(source: UOp, number: UOp) -> UOp:
    return make(Op.INDEX, source.dtype, (source, true, number))


def of_stores(*stores: UOp, loops: tuple[tuple[int, str], ...] = ((0, "loop"),)) -> UOp:
    return make(Op.KERNEL, void, stores, ("k", loops))


plain = store(spot(memory, r0), load(spot(memory, r0)) + 1.0, [r0])
NATIVE = frozenset((f32, i32, dtypes.bool))
# Kernels that a spec refuses, with the invariant that they break.
FAULTS: dict[str, tuple[Spec, UOp, str]] = {
    "a range that is not listed": (
        NORMAL_SPEC,
        of_stores(plain, loops=()),
        "the table lists the ranges of a kernel",
    ),
    "a listed range that there is not": (
        NORMAL_SPEC,
        of_stores(plain, loops=((0, "loop"), (1, "loop"))),
        "the table lists the ranges of a kernel",
    ),
    "a loop of an unknown kind": (
        NORMAL_SPEC,
        of_stores(plain, loops=((0, "sideways"),)),
        "a loop is of a kind of grid, loop, ordered, sequential, thread, unroll, vector",
    ),
    "an address as a value": (
        NORMAL_SPEC,
        of_stores(store(spot(memory, r0), spot(memory, r0), [r0])),
        "memory is read by LOAD only",
    ),
    "a range that the kernel closes": (
        NORMAL_SPEC,
        make(Op.KERNEL, void, (store(spot(memory, r0), const(f32, 1)), r0), ("k", ((0, "loop"),))),
        "a KERNEL holds STOREs, which close its ranges",
    ),
    "a sum of halves": (
        WIDENED_SPEC,
        of_stores(
            store(
                spot(memory, r0),
                reduce_ranges(load(spot(param(1, f16, (4,)), r1)), Op.ADD, [r1]).cast(f32),
                [r0],
            ),
            loops=((0, "loop"), (1, "loop")),
        ),
        "a reduction of floats has 32 bits or more",
    ),
    "a vector before expand": (
        FLAT_SPEC,
        of_stores(store(spot(memory, r0), make(Op.LANES, f32, (const(f32.vector(2), 1),), (0,)))),
        "a kernel computes scalars",
    ),
    "memory that nobody filled": (
        FLAT_SPEC,
        of_stores(store(spot(memory, r0), load(spot(inside, index(0))), [r0])),
        "memory inside a kernel is read after a STORE",
    ),
    "an AFTER of a value": (
        FLAT_SPEC,
        of_stores(store(spot(memory, r0), make(Op.AFTER, f32, (const(f32, 1), plain)), [r0])),
        "AFTER is memory once STOREs have happened",
    ),
    "a loop that carries memory before there are accumulators": (
        EXPANDED_SPEC,
        of_stores(
            store(spot(memory, r0), load(spot(make(Op.AFTER, f32, (memory, r0)), r0)), [r0])
        ),
        "AFTER is memory once STOREs have happened",
    ),
    "an AFTER behind a constant": (
        ACCUMULATED_SPEC,
        of_stores(
            store(spot(memory, r0), load(spot(make(Op.AFTER, f32, (memory, true)), r0)), [r0])
        ),
        "AFTER is memory once STOREs have happened, and may name the loop that carries it on",
    ),
    "a loop that is no longer bound": (
        BOUND_SPEC,
        of_stores(plain, loops=((0, "grid"),)),
        "a loop is of a kind of loop, ordered",
    ),
    "an index without a width": (
        INDEXED_SPEC,
        of_stores(plain),
        "an index has the width of a machine integer",
    ),
    "a machine integer too soon": (
        BOUND_SPEC,
        of_stores(store(spot(memory, const(i32, 0)), const(f32, 1)), loops=()),
        "an index is of dtype index",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults(case: str):
    spec, root, invariant = FAULTS[case]
    fault = spec.find_fault(root)
    assert fault is not None
    assert fault.invariant == invariant


def of_value(value: UOp) -> UOp:
    address = spot(param(0, value.dtype, (4,)), const(i32, 0))
    return of_stores(store(address, value), loops=())


def test_what_a_target_lacks():
    half = of_value(const(f16, 1) + const(f16, 1))
    wide = of_value(const(i64, 1) + const(i64, 1))
    power = of_value(make(Op.EXP, f32, (const(f32, 1),)))
    ops = frozenset(ELEMENTWISE) - {Op.EXP}
    lacking = frozenset((Op.EXP,))
    assert emulated_floats_spec(NATIVE).find_fault(half) is not None
    assert emulated_floats_spec(NATIVE | {f16}).find_fault(half) is None
    assert emulated_floats_spec(NATIVE).find_fault(wide) is None
    assert decomposed_spec(NATIVE, ops, lacking).find_fault(power) is not None
    assert decomposed_spec(NATIVE, ops | lacking, lacking).find_fault(power) is None
    assert native_spec(NATIVE, ops, lacking).find_fault(wide) is not None
    assert native_spec(NATIVE | {i64}, ops, lacking).find_fault(wide) is None
