"""The part of the heuristic that shapes folds: streams of loads, tiles of products, some rows.

A fold that only reads is as fast as memory if loads are many, at several places, in the order that
memory has. One that multiplies keeps in registers what it uses again.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.accesses import Access
from weft.codegen.chooser import HEAVY, Chooser, width
from weft.codegen.contraction import Contraction, contraction_of, factors_of, is_contraction
from weft.codegen.loops import LOOP, VECTOR, kinds_of, nodes_of
from weft.codegen.opts import Accumulate, Split, Unroll
from weft.ir.ops import Op
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological

MOST_ROWS: Final = 6
# Places in memory that a fold reads at once: its parts, if it has so many vectors, or rows.
STREAMS: Final = 4
LONG_FOLD: Final = 4096
# Bytes from row to row that make it slow to walk down a column, and rows to walk at once.
LONG_STEP: Final = 2048
ROWS_AT_ONCE: Final = 8
# Turns of a fold that is written out, and nodes that it may become.
SHORT_FOLD: Final = 16
MOST_NODES: Final = 512
# Rows of a factor whose vectors stay in registers.
MOST_TOGETHER: Final = 8


def read_streams(chooser: Chooser, number: int, extent: int) -> bool:
    """Let a fold that only reads walk through memory at several places at once.

    One stream of loads does not use the memory of the machine; parts of a long fold do, or
    several results side by side.
    """
    nodes = nodes_of(chooser.kernel)
    closers = chooser.closers()
    folds = [node for node, _ in closers if node.op == Op.REDUCE]
    reads = [node for node in nodes if node.op == Op.LOAD]
    if len(folds) != 1 or len(reads) > 2 or any(node.op in HEAVY for node in nodes):
        return False
    if is_contraction(folds[0]):
        return _tile_products(chooser, folds[0])
    if extent >= LONG_FOLD and extent % (STREAMS * STREAMS) == 0:
        block = math.gcd(extent, 2 * LONG_FOLD)  # streams that are far apart share cache lines
        number = chooser.split(number, block)
        inner = chooser.next_number()
        parts = Split(number, block // STREAMS), Unroll(number)
        return chooser.take(*parts, Split(inner, STREAMS), Unroll(inner + 1))
    rows = {n: None for node, own in closers if node.op == Op.STORE for n in own}
    row = next(reversed(rows), None)
    if row is None or not all(folds[0].ranges >> n & 1 for n in rows):
        return False
    if (chooser.extent(row) or 0) <= STREAMS:
        return False
    chooser.split_and(row, STREAMS, "clamp", Unroll)
    if extent % 2 == 0 and extent > 2:
        chooser.split_and(number, 2, "clamp", Unroll)
    return True


def _tile_products(chooser: Chooser, fold: UOp) -> bool:
    """Sums of products along the lanes: some rows of one factor with some of the other."""
    parts = contraction_of(fold)
    assert parts is not None
    few, many = sorted(
        (max(range_ids(part), key=lambda n: chooser.extent(n) or 0) for part in _sides(parts)),
        key=lambda n: chooser.extent(n) or 0,
    )
    rows = min(chooser.extent(few) or 1, MOST_TOGETHER)
    columns = (chooser.target.vector_registers - 1) // (rows + 1)
    mark = chooser.mark()
    inner = [chooser.split_and(few, rows, "clamp", Unroll)]
    inner.append(chooser.split_and(many, min(columns, STREAMS), "clamp", Unroll))
    loops = [n for n, kind in kinds_of(chooser.kernel).items() if kind == LOOP]
    around = [n for n in loops if fold.ranges >> n & 1 and n not in (few, many)]
    nest = [n for n in (many, few) if n in loops]
    own = [n for n in loops if n not in (*around, *nest)]
    if min(inner) < 0 or not chooser.order([*around, *nest, *own]):
        chooser.undo_to(mark)
        return False
    return True


def tile_rows(chooser: Chooser) -> None:
    """Unroll a loop of the store over which a contraction uses each vector again."""
    kinds = kinds_of(chooser.kernel)
    vectors = sum(1 << n for n, kind in kinds.items() if kind == VECTOR)
    for node in nodes_of(chooser.kernel):
        if not is_contraction(node) or not node.ranges & vectors:
            continue
        factors = factors_of(node)
        assert factors is not None
        x, y = factors
        lean = x if not x.ranges & vectors else y
        rows = lean.ranges & node.ranges & ~(x.ranges & y.ranges)
        for _, own in chooser.closers():
            for number in reversed(own):
                if rows >> number & 1 and _tile(chooser, number, MOST_ROWS):
                    return


def _tile(chooser: Chooser, number: int, most: int) -> bool:
    extent = chooser.extent(number) or 1
    for rows in range(min(most, extent), 1, -1):
        if extent % rows == 0:
            break
    else:
        rows = 4 if extent > 8 else 1
    return rows > 1 and chooser.split_and(number, rows, "clamp", Unroll) >= 0


def unroll_short_folds(chooser: Chooser) -> bool:
    """Write folds of a few turns out: no loop, and folds over the same elements share them."""
    mark = chooser.mark()
    for node, own in chooser.closers():
        if node.op != Op.REDUCE:
            continue
        turns = math.prod(chooser.extent(number) or 1 << 30 for number in own)
        size = len(topological(node.src[0]))
        if turns <= SHORT_FOLD and turns * size <= MOST_NODES:
            chooser.take(*map(Unroll, own))
    return chooser.mark() != mark


def walk_row_by_row(chooser: Chooser) -> None:
    """Sum down long columns a few rows at a time, so that memory is read in its order.

    The sums of a block of rows go on in the result, which stays in the cache.
    """
    folds = [(node, own) for node, own in chooser.closers() if node.op == Op.REDUCE]
    stores = chooser.stores()
    if len(folds) != 1 or len(folds[0][1]) != 1 or len(stores) != 1:
        return
    (number,) = folds[0][1]
    (result,) = chooser.accesses(stores[0].src[0])
    kinds = kinds_of(chooser.kernel)
    columns = [n for n, kind in kinds.items() if kind == LOOP and _is_column(chooser, n, result)]
    rows = [a for a in chooser.accesses() if a.node.op == Op.INDEX and a is not result]
    steps = [(a.stride(number) or 0) * a.dtype.itemsize for a in rows]
    if not columns or max(steps, default=0) < LONG_STEP:
        return
    if (chooser.extent(number) or 0) < 4 * ROWS_AT_ONCE or chooser.target.has_groups:
        return
    column = columns[-1]
    turns = chooser.extent(column) or 1
    parts = min(2 * chooser.target.threads, turns) if chooser.target.threads > 1 else 1
    mark = chooser.mark()
    inner = chooser.split(column, -(-turns // parts))
    rows_at_once = chooser.split(number, ROWS_AT_ONCE)
    outer = [column] if inner != column else []
    others = [n for n in kinds if n not in (column, number) and kinds[n] == LOOP]
    if not (
        min(inner, rows_at_once) >= 0
        and chooser.take(Accumulate(number))
        and chooser.order([*outer, number, inner, *others, rows_at_once])
    ):
        chooser.undo_to(mark)


def _is_column(chooser: Chooser, number: int, result: Access) -> bool:
    """Whether the turns of a loop are vectors behind each other in the result."""
    lanes = chooser.target.vector_bits // width(result)
    return result.stride(number) in (lanes, 2 * lanes, 4 * lanes)


def _sides(parts: Contraction) -> tuple[int, int]:
    return parts.rows, parts.columns
