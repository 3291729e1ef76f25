"""Reductions become accumulators: memory with a first value and a store that updates it.

In: a kernel with flat memory, in which REDUCEs close loops only. Out: no REDUCE. A fold is

    reduce ADD over k: v   ->   a = memory "acc0" register: float32[1]
                                s = store a[0] = 0.0
                                u = store a.after(s)[0] = load a.after(s)[0] + v for k
                                load a.after(u)[0]

The store `s` depends on no range. Linearize runs it where the loop of `u` starts.
"""

from __future__ import annotations

from weft.codegen.context import Context
from weft.codegen.loops import rebuilt
from weft.ir.build import index, load, store, true
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.folds import identity
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological


def widen_reductions(kernel: UOp, context: Context) -> UOp:
    """Fold small floats in float32 and round once, at the end."""
    made: dict[UOp, UOp] = {}
    for node in topological(kernel):
        new = rebuilt(node, made, {})
        if new.op == Op.REDUCE and new.dtype.kind == FLOAT and new.dtype.bits < 32:
            wide = make(Op.CAST, dtypes.float32, (new.src[0],))
            folded = make(Op.REDUCE, dtypes.float32, (wide, *new.src[1:]), new.arg)
            new = make(Op.CAST, new.dtype, (folded,))
        made[node] = new
    return made[kernel]


def lower_reductions(kernel: UOp, context: Context) -> UOp:
    """Make the accumulator of every REDUCE explicit."""
    made: dict[UOp, UOp] = {}
    count = 0
    for node in topological(kernel):
        new = rebuilt(node, made, {})
        if new.op == Op.REDUCE:
            new = _accumulated(new, count)
            count += 1
        made[node] = new
    return made[kernel]


def _accumulated(node: UOp, number: int) -> UOp:
    value, *ranges = node.src
    dtype, op = node.dtype, node.arg[0]
    memory = make(Op.MEMORY, dtype.scalar, (), (f"acc{number}", "register", dtype.lanes))

    def place(version: UOp) -> UOp:
        return make(Op.INDEX, dtype, (version, true(), index(0)))

    start = store(place(memory), const(dtype, identity(op, dtype.scalar)))
    started = make(Op.AFTER, memory.dtype, (memory, start))
    total = make(op, dtype, (load(place(started)), value))
    update = store(place(started), total, ranges)
    return load(place(make(Op.AFTER, memory.dtype, (memory, update))))
