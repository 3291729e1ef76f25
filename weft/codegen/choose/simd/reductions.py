"""The part of the heuristic that shapes reductions: accumulators, tiles of products, some rows.

A reduction that only reads is as fast as memory if its loads are many and in the order that memory
has: what fetches ahead in a machine follows one stream better than several. One that multiplies
keeps in registers what it uses again.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import NEAR, Access
from weft.codegen.analysis.estimate import estimate
from weft.codegen.analysis.loops import LOOP, UNROLL, VECTOR, kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser, width
from weft.codegen.opts.table import Accumulate, Nest, Unroll
from weft.ir.dtypes import FLOAT
from weft.ir.ops import TRANSCENDENTAL, Op, mask_of
from weft.ir.reduction.contraction import (
    Contraction,
    contraction_of,
    factors_of,
    is_contraction,
)
from weft.ir.reduction.joined import is_joined
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.target.compute import Simd

# Iterations of a reduction that is written out, and nodes that it may become: more take long to
# compile.
SHORT_REDUCTION: Final = 16
MOST_NODES: Final = 512
# Iterations of a sum whose rounding would be seen, and of the blocks that it is made of then: the
# error grows with the longer of the two.
LONG_SUM: Final = 4096
BLOCK: Final = 512


def read_in_order(chooser: Chooser, number: int, is_reduction: bool) -> bool:
    """Let a reduction that only reads take memory in the order it has, as fast as that comes.

    The range has just lost its lanes. Where it is reduced over, some vectors behind each other are
    accumulators side by side; where it is not, those of a whole row of results are.
    """
    reduction = _reading_reduction(chooser)
    if reduction is None:
        return False
    if is_contraction(reduction):
        return is_reduction and _tile_products(chooser, reduction)
    if chooser.target.has_groups:
        return False
    return (_read_rows if is_reduction else _keep_columns)(chooser, number, reduction)


def streamed_lanes(chooser: Chooser, lanes: int) -> int:
    """Lanes of a reduction that reads more than the second cache holds.

    Memory sets its speed, and a line of it that comes in two vectors is asked for sooner than one
    that comes in one.
    """
    reduction, compute = _reading_reduction(chooser), chooser.target.compute
    if reduction is None or is_contraction(reduction) or not isinstance(compute, Simd):
        return lanes
    if estimate(chooser.original).bytes_read <= chooser.target.caches[1].size:
        return lanes
    return min(lanes, max(lanes * compute.loops.streamed_bits // compute.vector_bits, 1))


def _reading_reduction(chooser: Chooser) -> UOp | None:
    """The reduction of a kernel that does little else than to read for it."""
    nodes = nodes_of(chooser.kernel)
    reductions = [node for node in nodes if node.op == Op.REDUCE]
    reads = [node for node in nodes if node.op == Op.LOAD]
    is_light = len(reads) <= 2 and not chooser.kernel.ops & mask_of(*TRANSCENDENTAL)
    return reductions[0] if len(reductions) == 1 and is_light else None


def _read_rows(chooser: Chooser, number: int, reduction: UOp) -> bool:
    """Several accumulators for a row, and several rows where a row is short."""
    extent, compute = chooser.extent(number) or 1, chooser.target.compute
    is_lane = kinds_of(chooser.kernel)[number] == VECTOR
    if not is_lane:
        wanted = compute.accumulators
        even = [n for n in range(wanted, wanted // 2 - 1, -1) if extent % n == 0]
        copies = min(extent, *even[:1], wanted)
        if chooser.split_and(number, copies, "clamp", Unroll) < 0:
            return False
    rows = [n for node, own in chooser.closers() if node.op == Op.STORE for n in own]
    row = next((n for n in reversed(rows) if reduction.ranges >> n & 1), None)
    # Vectors of a row that start in one cycle are too few; rows for all cycles of one are enough.
    is_short = is_lane or extent <= compute.multiply_adds
    if is_short and row is not None and (chooser.extent(row) or 0) > compute.latency:
        chooser.split_and(row, compute.latency, "clamp", Unroll)
    return True


def _keep_columns(chooser: Chooser, number: int, reduction: UOp) -> bool:
    """All columns of a reduction down the rows in registers, so that whole rows are read."""
    is_lane = kinds_of(chooser.kernel)[number] == VECTOR
    vectors = 1 if is_lane else chooser.extent(number) or 1
    room = chooser.target.vectors_in_registers - (0 if reduction.src[0].op == Op.LOAD else 2)
    own = [r.arg for r in own_ranges(reduction)]
    stores = chooser.stores()
    if vectors > room or len(stores) != 1 or not reduction.ranges >> number & 1:
        return False
    addresses = [a for a in chooser.accesses() if a.node.op == Op.INDEX]
    steps = {a.stride(number) for a in addresses} - {0}
    if len(steps) != 1 or not (is_lane or chooser.take(Unroll(number))):
        return False
    down = max(own, key=lambda n: chooser.extent(n) or 0)
    copies = chooser.target.compute.latency // vectors
    if copies > 1 and (chooser.extent(down) or 0) >= 4 * copies:
        chooser.split_and(down, copies, "clamp", Unroll)
    return True


def _tile_products(chooser: Chooser, reduction: UOp) -> bool:
    """Sums of products along the lanes: some rows of one factor with some of the other."""
    parts = contraction_of(reduction)
    assert parts is not None
    few, many = sorted(
        (max(range_ids(part), key=lambda n: chooser.extent(n) or 0) for part in _sides(parts)),
        key=lambda n: chooser.extent(n) or 0,
    )
    compute = chooser.target.compute
    rows = min(chooser.extent(few) or 1, compute.accumulators)
    columns = (chooser.target.vectors_in_registers - 1) // (rows + 1)
    mark = chooser.mark()
    inner = [chooser.split_and(few, rows, "clamp", Unroll)]
    inner.append(chooser.split_and(many, min(columns, compute.streams), "clamp", Unroll))
    loops = [n for n, kind in kinds_of(chooser.kernel).items() if kind == LOOP]
    around = [n for n in loops if reduction.ranges >> n & 1 and n not in (few, many)]
    nest = [n for n in (many, few) if n in loops]
    own = [n for n in loops if n not in (*around, *nest)]
    if min(inner) < 0 or not chooser.order([*around, *nest, *own]):
        chooser.undo_to(mark)
        return False
    return True


def tile_rows(chooser: Chooser) -> None:
    """Unroll a loop of the store over which a contraction uses each vector again."""
    if not _tile_contractions(chooser):
        _share_scattered(chooser)


def _share_scattered(chooser: Chooser) -> None:
    """Unroll a loop of the store over which a reduction uses what lanes scatter again.

    Lanes at addresses that are far from each other take an instruction each.
    """
    if chooser.target.has_groups:
        return
    kinds = kinds_of(chooser.kernel)
    vectors = [number for number, kind in kinds.items() if kind == VECTOR]
    for node, _ in chooser.closers():
        if node.op != Op.REDUCE or is_joined(node) or not vectors:
            continue
        inside = set(topological(node.src[0]))
        reads = [a for a in chooser.accesses() if a.node.op == Op.INDEX and a.node in inside]
        scattered = [a for a in reads if any(abs(a.stride(n) or 0) > NEAR for n in vectors)]
        for number in reversed([n for n in range_ids(node.ranges) if kinds[n] == LOOP]):
            is_shared = scattered and all(a.stride(number) == 0 for a in scattered)
            most = chooser.target.compute.unrolled_rows
            if is_shared and len(scattered) < len(reads) and _tile(chooser, number, most):
                return


def _tile_contractions(chooser: Chooser) -> bool:
    kinds = kinds_of(chooser.kernel)
    vectors = sum(1 << n for n, kind in kinds.items() if kind == VECTOR)
    for node in nodes_of(chooser.kernel):
        if node.op != Op.REDUCE or not node.ranges & vectors or not is_contraction(node):
            continue
        factors = factors_of(node)
        assert factors is not None
        x, y = factors
        lean = x if not x.ranges & vectors else y
        rows = lean.ranges & node.ranges & ~(x.ranges & y.ranges)
        most = chooser.target.compute.unrolled_rows
        for _, own in chooser.closers():
            for number in reversed(own):
                if rows >> number & 1 and _tile(chooser, number, most):
                    return True
    return False


def _tile(chooser: Chooser, number: int, most: int) -> bool:
    extent = chooser.extent(number) or 1
    for rows in range(min(most, extent), 1, -1):
        if extent % rows == 0:
            break
    else:
        rows = 4 if extent > 8 else 1
    return rows > 1 and chooser.split_and(number, rows, "clamp", Unroll) >= 0


def unroll_short_reductions(chooser: Chooser) -> bool:
    """Unroll reductions of a few iterations: no loop, and those of like elements share them."""
    mark = chooser.mark()
    kinds = kinds_of(chooser.kernel)
    for node, own in chooser.closers():
        if node.op != Op.REDUCE or is_joined(node):
            continue
        all_iterations = [r.arg for r in own_ranges(node) if kinds[r.arg] != VECTOR]
        iterations = math.prod(chooser.extent(number) or 1 << 30 for number in all_iterations)
        if iterations > SHORT_REDUCTION:
            continue
        nodes = topological(node.src[0])
        if any(
            part.op in TRANSCENDENTAL for part in nodes
        ):  # slow functions are better computed in lanes
            continue
        if iterations * len(nodes) * _tile_of(chooser, node) <= MOST_NODES:
            chooser.take(*map(Unroll, own))
    return chooser.mark() != mark


def _tile_of(chooser: Chooser, reduction: UOp) -> int:
    """How many results of a reduction are computed side by side, written out: a tile of them."""
    kinds = kinds_of(chooser.kernel)
    free = [n for n in range_ids(reduction.ranges) if kinds[n] == UNROLL]
    return math.prod(chooser.extent(n) or 1 for n in free)


def nest_long_sums(chooser: Chooser) -> None:
    """Sum blocks first where a sum is so long that its rounding would be seen."""
    for node, own in chooser.closers():
        is_rounded = node.dtype.kind == FLOAT and node.dtype.bits <= 32
        if node.op != Op.REDUCE or node.arg[0] != Op.ADD or not is_rounded:
            continue
        number = max(own, key=lambda n: chooser.extent(n) or 0)
        extent = chooser.extent(number) or 0
        if extent >= LONG_SUM:
            even = [n for n in range(BLOCK // 4, 2 * BLOCK + 1) if extent % n == 0]
            size = min(even, key=lambda n: abs(n - BLOCK), default=BLOCK)
            chooser.split_and(number, size, "mask", Nest)


def copies_of(chooser: Chooser, reduction: UOp) -> int:
    """How often the body of a reduction is written out already."""
    kinds = kinds_of(chooser.kernel)
    own = [r.arg for r in own_ranges(reduction)]
    return math.prod(chooser.extent(n) or 1 for n in own if kinds[n] == UNROLL)


def walk_row_by_row(chooser: Chooser) -> None:
    """Reduction down long columns a few rows at a time, so that memory is read in its order.

    The reductions of a block of rows go on in the result, which stays in the cache.
    """
    reductions = [(node, own) for node, own in chooser.closers() if node.op == Op.REDUCE]
    stores, compute = chooser.stores(), chooser.target.compute
    if not isinstance(compute, Simd):
        return
    numbers = compute.loops
    if len(reductions) != 1 or len(reductions[0][1]) != 1 or len(stores) != 1:
        return
    (number,) = reductions[0][1]
    (result,) = chooser.accesses(stores[0].src[0])
    kinds = kinds_of(chooser.kernel)
    columns = [n for n, kind in kinds.items() if kind == LOOP and _is_column(chooser, n, result)]
    rows = [a for a in chooser.accesses() if a.node.op == Op.INDEX and a is not result]
    long = [a for a in rows if (a.stride(number) or 0) * a.dtype.itemsize >= numbers.long_step]
    if not columns or not long:
        return
    if (chooser.extent(number) or 0) < 4 * numbers.rows_at_once:
        return
    column = columns[-1]
    iterations = chooser.extent(column) or 1
    parts = min(2 * compute.units, iterations) if compute.units > 1 else 1
    mark = chooser.mark()
    inner = chooser.split(column, -(-iterations // parts))
    rows_at_once = chooser.split(number, numbers.rows_at_once)
    outer = [column] if inner != column else []
    others = [n for n in kinds if n not in (column, number) and kinds[n] == LOOP]
    batch = [n for n in others if any(a.stride(n) != 0 for a in long)]
    again = [n for n in others if n not in batch]  # they use what was just read
    if not (
        min(inner, rows_at_once) >= 0
        and chooser.take(Accumulate(number))
        and chooser.order([*batch, *outer, number, inner, *again, rows_at_once])
    ):
        chooser.undo_to(mark)


def _is_column(chooser: Chooser, number: int, result: Access) -> bool:
    """Whether the iterations of a loop are vectors behind each other in the result."""
    lanes = chooser.target.access_bits // width(result)
    return result.stride(number) in (lanes, 2 * lanes, 4 * lanes)


def _sides(parts: Contraction) -> tuple[int, int]:
    return parts.rows, parts.columns
