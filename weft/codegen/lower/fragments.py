"""Elements of tiles become registers: each thread has its elements of a tile at once.

In: a kernel with flat memory, in which a CONTRACT is the element of a tile at some position. Out:
CONTRACTs are vectors of all elements of a thread, stored in register memory.

    x = CONTRACT(…, warp, half, lane, block, quad, pair)   ->   m = memory "tile0" register
                                                                s = store m[0: x32] = CONTRACT(…)
                                                                load m.after(s)[16 block + …]

The positions of a thread are its counters, in the order in which threads are numbered: the opt
binds them so, and what it has bound is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.analysis.loops import rebuilt
from weft.codegen.context import CodegenContext
from weft.ir.build import index, index_of, load, store, true
from weft.ir.ops import Op
from weft.ir.reduction.contract import (
    BLOCK_COLUMNS,
    THREAD_COLUMNS,
    WARP_ROWS,
    ContractParts,
    contract,
    contract_parts,
)
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph
from weft.rules.simplify import simplify
from weft.support.errors import InternalError


def fill_fragments(kernel: UOp, context: CodegenContext) -> UOp:
    """Let every CONTRACT be all elements of a thread, in memory of its own."""
    filled: dict[object, UOp] = {}

    def fragments(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.op != Op.CONTRACT:
            return new
        parts = contract_parts(new)
        warp, half, lane, block, quad, pair = parts.positions
        _verify_threads((quad, lane, warp), parts, context)
        key = (parts.memories, parts.starts, new.arg)
        if key not in filled:
            whole = contract(
                parts._replace(positions=(warp, lane, quad)), new.dtype.vector(parts.elements)
            )
            filled[key] = _stored(whole, len(filled))
        element = simplify((block * (WARP_ROWS // 8) + half) * THREAD_COLUMNS + pair)
        return load(index_of(filled[key], [element]))

    return map_graph(kernel, fragments)


def _stored(value: UOp, number: int) -> UOp:
    """Register memory with a vector in it."""
    scalar, lanes = value.dtype.scalar, value.dtype.lanes
    memory = make(Op.MEMORY, scalar, (), (f"tile{number}", "register", lanes))
    address = make(Op.INDEX, value.dtype, (memory, true(), index(0)))
    return make(Op.AFTER, scalar, (memory, store(address, value)))


def _verify_threads(
    counters: tuple[UOp, ...], parts: ContractParts, context: CodegenContext
) -> None:
    """Raise unless the counters are those of axes 0, 1 and 2, which warps are counted along."""
    wanted = (BLOCK_COLUMNS // THREAD_COLUMNS, WARP_ROWS // 2, parts.tile[0] // WARP_ROWS)
    for axis, (counter, extent) in enumerate(zip(counters, wanted, strict=True)):
        is_counter = counter.op == Op.RANGE and context.thread_axes.get(counter.arg) == axis
        if not is_counter or counter.src[0].arg != extent:
            raise InternalError(
                f"a tile is not bound to threads: expected {extent} threads along axis {axis}",
                pass_name="fill-fragments",
                facts=[("position", repr(counter)), ("axes", repr(context.thread_axes))],
            )
