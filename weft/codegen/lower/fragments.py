"""Elements of tiles become registers: each thread has its elements of a tile at once.

In: a kernel with flat memory, in which a CONTRACT is the element of a tile at some position. Out:
CONTRACTs are vectors of all elements of a thread, stored in register memory.

    x = CONTRACT(…, warp, half, lane, block, quad, pair)   ->   m = memory "tile0" register
                                                                s = store m[0: x32] = CONTRACT(…)
                                                                load m.after(s)[16 block + …]

The positions of a thread are its counters, in the order in which threads are numbered: the opt
binds them so, and what it has bound is checked here.

A left factor that threads compute is a tile of all rows before. Then each thread has its own
elements of it, as it has those of a sum; whoever multiplies them takes those of all threads.

    s = store m[row·keys + key] = x for warp, half, lane, block, quad, pair
    -> store m[4 block + 2 half + pair] = x for half, block, pair
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.analysis.loops import kinds_of, rebuilt, without_unused
from weft.codegen.context import CodegenContext
from weft.ir.build import index, index_of, load, store, true
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.reduction.contract import (
    BLOCK_COLUMNS,
    PAIR,
    THREAD_COLUMNS,
    UNIT_COLUMNS,
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
    numbers: dict[object, int] = {}
    filled: dict[object, UOp] = {}

    def fragments(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.op != Op.CONTRACT:
            return new
        parts = contract_parts(new)
        warp, half, lane, block, quad, pair = parts.positions
        _verify_threads((quad, lane, warp), parts, context)
        if parts.is_computed:
            parts = _with_own_elements(parts, (warp, lane, quad))
        key = (parts.memories, parts.starts, new.arg, warp, lane, quad)
        if key not in filled:
            whole = contract(
                parts._replace(positions=(warp, lane, quad)), new.dtype.vector(parts.elements)
            )
            # The same tile at the counters of another loop is that of the same threads.
            same = (new.src[: -len(parts.positions)], new.arg)
            filled[key] = _stored(whole, numbers.setdefault(same, len(numbers)))
        columns = PAIR if parts.is_in_pairs else THREAD_COLUMNS
        element = simplify((block * (WARP_ROWS // 8) + half) * columns + pair)
        return load(index_of(filled[key], [element]))

    result = without_unused(map_graph(kernel, fragments))
    kinds = kinds_of(result)  # the counters of a computed factor are those of who multiplies it
    context.thread_axes = {n: axis for n, axis in context.thread_axes.items() if n in kinds}
    return result


def _stored(value: UOp, number: int) -> UOp:
    """Register memory with a vector in it."""
    scalar, lanes = value.dtype.scalar, value.dtype.lanes
    memory = make(Op.MEMORY, scalar, (), (f"tile{number}", "register", lanes))
    address = make(Op.INDEX, value.dtype, (memory, true(), index(0)))
    return make(Op.AFTER, scalar, (memory, store(address, value)))


def _with_own_elements(parts: ContractParts, threads: tuple[UOp, ...]) -> ContractParts:
    """The left factor as the elements of it that each thread has."""
    tile = parts.memories[0]
    memory, filled = tile.src
    address, value, *_ = filled.src
    by_stride = {stride: term for term, stride in linear(address.src[2])[1]}
    keys = parts.factors[0].strides[1]
    rows = [by_stride[keys * rows] for rows in (WARP_ROWS, WARP_ROWS // 2, 1)]
    columns = [by_stride[number] for number in (UNIT_COLUMNS, PAIR, 1)]
    known = dict(zip((rows[0], rows[2], columns[1]), threads, strict=True))

    def moved(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return rebuilt(node, made, {})

    half, block, pair = rows[1], columns[0], columns[2]
    name, space, size = memory.arg
    count = size // (WARP_ROWS // 2) // (UNIT_COLUMNS // PAIR) // parts.warps
    own = make(Op.MEMORY, memory.dtype, (), (name, space, count))
    at = simplify((block * (WARP_ROWS // 8) + half) * PAIR + pair)
    stored = store(index_of(own, [at]), map_graph(value, moved, known=known), [half, block, pair])
    return parts._replace(memories=(make(Op.AFTER, own.dtype, (own, stored)), parts.memories[1]))


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
