"""Every invariant of a tensor graph accepts a legal node and rejects an illegal one."""

import pytest

from weft.ir.build import (
    bind,
    buffer,
    call,
    param,
    range_,
    reduce_axes,
    scan_axis,
    scatter,
    sink,
    variable,
)
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import COUNT, Op, name
from weft.ir.spec.spec import verify
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.uop import UOp, complex_from, const, make
from weft.support.errors import InternalError

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void
n = variable("n", 1, 64)
x, y = buffer(0, f32, (4, 8), "CPU"), buffer(1, f32, (4, 8), "CPU")
rows = buffer(2, i32, (3,), "CPU")
small = buffer(3, f32, (4, 1), "CPU")
half = const(f32, 0.5)
true = const(dtypes.bool, True)


def move(op: int, source: UOp, arg: object, *sizes: UOp) -> UOp:
    return make(op, source.dtype, (source, *sizes), arg)


def gather(*indices: UOp, mask: UOp = true) -> UOp:
    return make(Op.INDEX, f32, (x, mask, *indices))


def write(address: UOp, value: UOp) -> UOp:
    return make(Op.STORE, void, (address, value))


body = param(0, f32, (4, 8)) * 2.0
pair = make(Op.TUPLE, void, (x, rows))


def custom(dtype: DType = f32, slot: int = 0) -> UOp:
    gradients = make(Op.TUPLE, void, (param(0, f32, (4, 8)),))
    return make(Op.CUSTOM_GRADIENT, dtype, (x, y), (gradients, 1, (slot,)))


# invariant -> a node that obeys it and one that breaks it.
CASES: dict[str, tuple[UOp, UOp]] = {
    "a tensor has no vector dtype": (half, const(f32.vector(4), 0.5)),
    "a constant is a canonical value of its dtype": (
        const(dtypes.uint8, 7),
        make(Op.CONST, dtypes.uint8, (), 300),
    ),
    "a VARIABLE is (name, least, most) of dtype index": (
        n,
        make(Op.VARIABLE, index, (), ("n", 4, 3)),
    ),
    "a BUFFER is (number, sizes, device)": (
        buffer(0, f32, (4, n), "CPU"),
        make(Op.BUFFER, f32, (), (0, (4, None), "CPU")),
    ),
    "a PARAM is (slot, sizes)": (param(0, f32, ()), make(Op.PARAM, f32, (), (0, (-1,)))),
    "an IOTA is (size,) of an integer dtype": (
        make(Op.IOTA, i32, (), (8,)),
        make(Op.IOTA, f32, (), (8,)),
    ),
    "BIND gives a VARIABLE a constant inside its bounds": (
        bind(n, 64),
        make(Op.BIND, index, (n, const(index, 65))),
    ),
    "an elementwise op has no arg": (x + y, make(Op.ADD, f32, (x, y), 1)),
    "the sources have one dtype": (x * y, make(Op.MUL, f32, (x, rows))),
    "the op is defined for the dtype of its sources": (
        make(Op.SQRT, f32, (x,)),
        make(Op.SQRT, i32, (rows,)),
    ),
    "the result has the dtype of the sources": (-x, make(Op.NEG, i32, (x,))),
    "a comparison gives bool, with as many lanes": (x < y, make(Op.LESS, f32, (x, y))),
    "WHERE chooses by a bool between two values of its dtype": (
        (x < y).where(x, 0.0),
        make(Op.WHERE, f32, (x, x, y)),
    ),
    "a cast keeps the number of lanes": (x.cast(i32), make(Op.CAST, void, (x,))),
    "COMPLEX is of two floats of the dtype of its parts": (
        complex_from(x, y),
        make(Op.COMPLEX, dtypes.complex128, (x, y)),
    ),
    "a part has the dtype of parts": (
        complex_from(x, y).real,
        make(Op.REAL, dtypes.float64, (complex_from(x, y),)),
    ),
    "a bitcast keeps the number of bits and of lanes": (
        make(Op.BITCAST, i32, (x,)),
        make(Op.BITCAST, dtypes.int64, (x,)),
    ),
    "the sources have one shape, or are scalars": (x + half, x + small),
    "the result has the dtype of the value": (
        make(Op.DETACH, f32, (x,)),
        make(Op.DETACH, i32, (x,)),
    ),
    "each size is an int, or None with a source": (
        move(Op.RESHAPE, x, (32,)),
        move(Op.RESHAPE, x, (4, None)),
    ),
    "RESHAPE keeps the number of elements": (
        move(Op.RESHAPE, x, (2, None), n),
        move(Op.RESHAPE, x, (4, 9)),
    ),
    "EXPAND repeats axes of size 1": (
        move(Op.EXPAND, small, (4, None), n),
        move(Op.EXPAND, small, (8, 8)),
    ),
    "PERMUTE names each axis once": (
        move(Op.PERMUTE, x, (1, 0)),
        move(Op.PERMUTE, x, (1, 1)),
    ),
    "there is a pair of bounds for each axis": (
        move(Op.PAD, x, ((0, 1), (None, 0)), n),
        move(Op.PAD, x, ((0, -1), (0, 0))),
    ),
    "SHRINK cuts inside the value": (
        move(Op.SHRINK, x, ((0, 4), (0, None)), n),
        move(Op.SHRINK, x, ((0, 4), (3, 9))),
    ),
    "FLIP names axes, each once": (move(Op.FLIP, x, (0,)), move(Op.FLIP, x, (2,))),
    "REDUCE reduces by an op over axes, and over no ranges": (
        reduce_axes(x, Op.MAX, (0, 1)),
        reduce_axes(x, Op.LESS, (0,)),
    ),
    "SCAN reduces by an op along one axis, and over no range": (
        scan_axis(x, Op.ADD, 1),
        make(Op.SCAN, f32, (x,), (Op.ADD, (0, 1))),
    ),
    "the reduction is defined for the dtype": (
        reduce_axes(rows, Op.AND, (0,)),
        reduce_axes(x, Op.AND, (0,)),
    ),
    "SCATTER reduces updates of the shape at its indices, by an op": (
        scatter(x, gather(rows), true, (rows,), Op.MAX),
        scatter(x, gather(rows, rows), true, (rows,), Op.ADD),
    ),
    "there is a bool mask, and integer indices, at most one per axis": (
        gather(rows),
        gather(rows, mask=x),
    ),
    "the indices and the mask have one shape, or are scalars": (
        gather(rows, rows, mask=rows < 4),
        gather(rows, make(Op.IOTA, i32, (), (8,))),
    ),
    "a STAGE is global and has no indices yet": (
        make(Op.STAGE, f32, (x,), ("global", ())),
        make(Op.STAGE, f32, (x,), ("local", ())),
    ),
    "STORE writes to a view of a BUFFER or PARAM": (
        write(move(Op.PERMUTE, x, (1, 0)), half),
        write(x + y, half),
    ),
    "STORE writes a value of the dtype and shape of its target": (write(x, y), write(x, small)),
    "AFTER has the dtype of its first source": (
        make(Op.AFTER, f32, (x, write(x, y))),
        make(Op.AFTER, i32, (x, write(x, y))),
    ),
    "AFTER waits for effects": (
        make(Op.AFTER, f32, (x, write(x, y))),
        make(Op.AFTER, f32, (x, y)),
    ),
    "DETACH and INLINE have no arg": (make(Op.DETACH, f32, (x,)), make(Op.DETACH, f32, (x,), 1)),
    "the arg of COPY is a device": (
        make(Op.COPY, f32, (x,), "CUDA"),
        make(Op.COPY, f32, (x,), 0),
    ),
    "the parts of SHARD make up its value": (
        make(Op.SHARD, f32, (x,), (("CPU", "CPU:1"), 1, (5, 3))),
        make(Op.SHARD, f32, (x,), (("CPU", "CPU:1"), 1, (4, 3))),
    ),
    "several values together are void": (pair, make(Op.TUPLE, f32, (x, rows))),
    "ITEM picks a value of a TUPLE, with its dtype": (
        make(Op.ITEM, i32, (pair,), 1),
        make(Op.ITEM, i32, (pair,), 2),
    ),
    "the arg of a CALL is a body of its dtype": (call(body, x), make(Op.CALL, i32, (x,), body)),
    "the arguments of a CALL fit the PARAMs of its body": (
        call(body, x + y),
        make(Op.CALL, f32, (small,), body),
    ),
    "CUSTOM_GRADIENT has the dtype of its value": (custom(), custom(dtype=i32)),
    "CUSTOM_GRADIENT has a body for the gradients of inputs": (custom(), custom(slot=1)),
}
FURTHER_FAULTS = {
    "a constant of another kind": make(Op.CONST, i32, (), 2.5),
    "a void constant": make(Op.CONST, void, (), 2),
    "SHARD over one device": make(Op.SHARD, f32, (x,), (("CPU",), None, ())),
    "SHARD over a device twice": make(Op.SHARD, f32, (x,), (("CPU", "CPU"), None, ())),
    "SHARD with a part of nothing": make(Op.SHARD, f32, (x,), (("CPU", "C"), 0, (4, 0))),
    "SHARD along no axis": make(Op.SHARD, f32, (x,), (("CPU", "C"), 2, (2, 2))),
    "a BUFFER whose parts are too few": make(
        Op.BUFFER, f32, (), (0, (4, 8), (("CPU", "C"), 0, (3,)))
    ),
    "NEG of bool": make(Op.NEG, dtypes.bool, (true,)),
    "AND of floats": make(Op.AND, f32, (x, y)),
    "SHL of bool": make(Op.SHL, dtypes.bool, (true, true)),
    "DIV of integers": make(Op.DIV, i32, (rows, rows)),
    "sizes that are bools": move(Op.RESHAPE, buffer(77, f32, (1,), "CPU"), (True,)),
    "a size without an address": move(Op.RESHAPE, x, (4, 8), n),
    "a size of another dtype": make(Op.RESHAPE, f32, (x, rows), (4, None)),
    "RESHAPE to nothing": move(Op.RESHAPE, x, (0, None), n),
    "EXPAND to another rank": move(Op.EXPAND, small, (4, 4, 8)),
    "pairs for too few axes": move(Op.PAD, x, ((0, 1),)),
    "SHRINK backwards": move(Op.SHRINK, x, ((3, 2), (0, 8))),
    "REDUCE over a range": make(Op.REDUCE, f32, (x, range_(0, 4)), (Op.ADD, ())),
    "SCAN over a range": make(Op.SCAN, f32, (x, range_(0, 4)), (Op.ADD, ())),
    "SCAN along an axis that is not there": scan_axis(x, Op.ADD, 2),
    "REDUCE over an axis twice": reduce_axes(x, Op.ADD, (1, 1)),
    "SCATTER by LOGADD": scatter(x, gather(rows), true, (rows,), Op.LOGADD),
    "SCATTER of another dtype": scatter(x, gather(rows).cast(i32), true, (rows,), Op.ADD),
    "SCATTER at floats": scatter(x, gather(rows), true, (gather(rows, rows),), Op.ADD),
    "too many indices": gather(rows, rows, rows),
    "float indices": gather(x),
    "STORE of ranges": make(Op.STORE, void, (x, y, range_(0, 4))),
    "STORE through EXPAND": write(move(Op.EXPAND, small, (4, 8)), half),
    "STORE of another dtype": write(x, rows),
    "an argument too few": make(Op.CALL, f32, (), body),
    "a kernel that fills memory with a gap": call(
        make(Op.PROGRAM, void, (param(2, f32, (4,)),), ("k", "", "", "", (2,), (1,), (1,))), x
    ),
    "ITEM of no tuple": make(Op.ITEM, f32, (x,), 0),
}


def test_every_invariant_has_a_case():
    assert {entry.invariant for entry in TENSOR_SPEC.rows} == CASES.keys()


@pytest.mark.parametrize("invariant", CASES)
def test_invariant(invariant: str):
    good, bad = CASES[invariant]
    verify(good, TENSOR_SPEC)
    fault = TENSOR_SPEC.fault_of(bad)
    assert fault is not None
    assert (fault.node, fault.invariant) == (bad, invariant)


@pytest.mark.parametrize("case", FURTHER_FAULTS)
def test_further_faults(case: str):
    assert TENSOR_SPEC.fault_of(FURTHER_FAULTS[case]) is not None


LEGAL = (
    "DETACH INLINE COPY SHARD BIND REDUCE SCAN INDEX STORE STAGE AFTER TUPLE ITEM SINK CALL "
    "BUFFER PARAM IOTA"
)


def test_legal_ops():
    illegal = {name(op) for op in range(COUNT)} - {name(op) for op in TENSOR_SPEC.ops}
    assert set(LEGAL.split()).isdisjoint(illegal)
    assert illegal == {
        *("RANGE", "LOAD", "READ", "MEMORY", "VECTOR", "LANES", "SPECIAL", "END"),
        *("BARRIER", "SHUFFLE", "KERNEL", "LINEAR", "PROGRAM", "CONTRACT", "TENSOR_MAP"),
        *("COPY_BOX", "MBARRIER", "MMA", "MMA_GROUP"),
    }


def test_bodies_are_checked_too():
    wrong = param(0, f32, (4, 8)) + make(Op.NEG, f32, (rows,))
    with pytest.raises(InternalError, match="NEG breaks an invariant of the tensor graph"):
        verify(sink(call(wrong, x)), TENSOR_SPEC)
