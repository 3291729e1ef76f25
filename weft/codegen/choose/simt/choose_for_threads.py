"""Opts for targets of threads that compute on scalars: maps, rows and columns.

Neighboring threads touch neighboring memory, a thread moves the widest vector that there is, and
the threads of a group reduce together. A map has no reduction: one vector for each thread. Rows
reduce along memory: a group has a row, or several; what its threads have read stays in registers
for all reductions and stores of the row, because their loops are written out and shaped alike, so
that their loads are the same nodes. Columns reduce across memory: threads lie along the columns,
and further ones share the rows. What is none of these is left to the general heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    ORDERED,
    THREAD,
    kinds_of,
)
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.columns import reduce_columns
from weft.codegen.choose.simt.joins import join_streams
from weft.codegen.choose.simt.loops import (
    bind_grid,
    is_loop,
    is_product,
    lanes_along,
    stored_loops,
    to_thread,
    write_out_few,
)
from weft.codegen.choose.simt.maps import parallelize_map, transpose
from weft.codegen.choose.simt.near_rows import share_near_rows
from weft.codegen.choose.simt.share import addresses_of, share_along, share_anything
from weft.codegen.choose.simt.tensor_chain import use_tensor_chain
from weft.codegen.choose.simt.tensor_core import use_matrix_units
from weft.codegen.choose.simt.tiles import tile_product
from weft.codegen.lower.hardware import fits_a_group
from weft.codegen.opts.table import Bind, Split, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.uop import range_ids
from weft.target.compute import Simt
from weft.target.target import Target

# Elements of a row that a thread keeps, and how many vectors a thread of a full group reads.
KEPT_ELEMENTS: Final = 64
VECTORS: Final = 4
# Threads of a row that fewer could not keep.
WIDEST: Final = 1024
# Iterations that are written out where a row is too long to be kept.
COPIES: Final = 8
# Short rows of which a thread reads a vector each.
ROWS: Final = 2
# A reduction that is shorter is best done by one thread.
SHORT: Final = 32
# How much more a group does than what it computes again.
SHARE_AGAIN: Final = 4
_UNUSUAL: Final = 1 << Op.SCAN | 1 << Op.STAGE | 1 << Op.AFTER


def choose_for_threads(chooser: Chooser, target: Target) -> bool:
    """Shape a kernel of one of the kinds; False, and nothing taken, if it is none of them."""
    compute = target.compute
    assert isinstance(compute, Simt)
    kinds = kinds_of(chooser.kernel)
    if chooser.kernel.ops & _UNUSUAL or not set(kinds.values()) <= {LOOP, ORDERED}:
        return False
    if not all(chooser.extent(number) for number in kinds):
        return False
    shapes: tuple[Callable[[Chooser, Simt], bool], ...] = (parallelize_map,)
    if ORDERED not in kinds.values():
        mark = chooser.mark()
        if use_tensor_chain(chooser, compute):
            return True
        chooser.undo_to(mark)
        _share_out(chooser, compute)
        shapes = (
            *(use_matrix_units, tile_product, _rows, reduce_columns, transpose, parallelize_map),
            share_anything,
        )
    for shape in shapes:
        mark = chooser.mark()
        if shape(chooser, compute) and fits_a_group(chooser.kernel, target):
            return True
        chooser.undo_to(mark)
    return False


def _share_out(chooser: Chooser, compute: Simt) -> None:
    """Let groups share a long loop that not all reductions depend on.

    Each group computes the others again, which are short beside its part of the loop. Stores that
    are not inside of the loop are done by the first group. A loop that all reductions depend on,
    and stores without it do not, would be one after the other for these stores alone.
    """
    common, addresses = chooser.common_loops(), addresses_of(chooser)
    for number in kinds_of(chooser.kernel):
        is_stored = any(number in stored_loops(store) for store in chooser.stores())
        if number in common or not is_stored:
            continue
        each, again = _work(chooser, number, common)
        if (
            not again
            and _is_reduced_in(chooser, number)
            and share_along(chooser, number, addresses) < 0.5
        ):
            chooser.take(Bind(number, GRID))
        part = -(-SHARE_AGAIN * again // each)
        extent = chooser.extent(number) or 1
        if extent < SHARE_AGAIN * compute.units * part:
            part = -(-again // each)
        if not again or extent < 2 * part:
            continue
        if part < 2 and chooser.take(Bind(number, GRID)):
            return
        size = 1 << (part - 1).bit_length()
        if chooser.take(Split(number, size, chooser.safe_tail()), Bind(number, GRID)):
            return


def _is_reduced_in(chooser: Chooser, number: int) -> bool:
    """Whether a reduction depends on a loop."""
    return any(node.op == Op.REDUCE and node.ranges >> number & 1 for node, _ in chooser.closers())


def _work(chooser: Chooser, number: int, common: list[int]) -> tuple[int, int]:
    """Elements in an iteration of a loop, and those of reductions that do not depend on it."""
    each, again = 0, 0
    for node, own in chooser.closers():
        loops = {*own, *range_ids(node.ranges)} - {number, *common}
        size = math.prod(chooser.extent(n) or 1 for n in loops)
        if number in own or node.ranges >> number & 1:
            each += size
        elif node.op == Op.REDUCE:
            again += size
    return max(each, 1), again


def _rows(chooser: Chooser, compute: Simt) -> bool:
    """A group for each row, or for several; its threads read neighbors and keep them."""
    write_out_few(chooser)
    loops = _row_loops(chooser)
    if not loops:
        return False
    lanes = {number: lanes_along(chooser, number) for number in loops}
    vectors = max((chooser.extent(n) or 1) // lanes[n] for n in loops)
    around = chooser.common_loops()
    shared = [n for n, kind in kinds_of(chooser.kernel).items() if kind == GRID]
    count = math.prod(chooser.extent(n) or 1 for n in (*around, *shared))
    each = VECTORS if max(lanes.values()) > 1 else COPIES
    # Threads of few rows have less to do one after the other.
    while each > 1 and count * _row_threads(vectors, each, compute) < filled(compute):
        each //= 2
    threads = _row_threads(vectors, each, compute)
    longest = max(chooser.extent(n) or 1 for n in loops)
    if threads * KEPT_ELEMENTS < longest <= WIDEST * KEPT_ELEMENTS:
        threads = WIDEST  # the whole row is kept
    for number in loops:
        extent = 2 * (chooser.extent(number) or 1)
        while lanes[number] > 1 and extent // lanes[number] <= threads:
            lanes[number] //= 2
        is_short = extent <= threads  # each thread does all of it
        if not is_short and not _share_row(chooser, number, lanes[number], threads):
            return False
    join_streams(chooser)
    rows = max(compute.group_threads // threads, 1)
    if threads > compute.warp:  # warps of several rows would wait for each other
        rows = max(rows // 2, 1)
    around = chooser.common_loops()
    if around and share_near_rows(chooser, around[-1], threads, compute.group_threads):
        return bind_grid(chooser)
    is_reduced = all(n in around for store in chooser.stores() for n in stored_loops(store))
    if is_reduced and vectors <= threads and _is_many(chooser, around, compute):
        chooser.split_and(around[-1], ROWS, chooser.safe_tail(), Unroll)
    if rows > 1 and around and (chooser.extent(around[-1]) or 1) >= 2 * rows:
        chooser.split_and(around[-1], rows, chooser.safe_tail(), to_thread)
    return bind_grid(chooser)


def filled(compute: Simt) -> int:
    """Threads that give each multiprocessor a group."""
    return compute.units * compute.group_threads


def _is_many(chooser: Chooser, around: list[int], compute: Simt) -> bool:
    """Whether several rows for each warp leave warps enough to every multiprocessor."""
    count = math.prod(chooser.extent(n) or 1 for n in around)
    return 4 * count >= ROWS * compute.units * compute.threads_per_unit // compute.warp


def _row_threads(vectors: int, each: int, compute: Simt) -> int:
    """Threads of a row: `each` vectors for one; a warp at least where the row has as many."""
    wanted = 1 << max((vectors - 1) // each, 0).bit_length()
    least = min(compute.warp, 1 << (vectors.bit_length() - 1))
    threads = max(least, min(wanted, compute.group_threads))
    return 2 * threads if vectors > 2 * each * threads else threads


def _row_loops(chooser: Chooser) -> list[int]:
    """The loop along memory of each reduction and store that is not around all; [] for none."""
    addresses, common = addresses_of(chooser), chooser.common_loops()
    found: dict[int, None] = {}
    longest, has_reduction = 0, False
    for node, own in chooser.closers():
        inner = [number for number in own if number not in common]
        if not inner:
            continue
        if node.op == Op.REDUCE and is_product(chooser, node):
            return []
        number = max(
            inner, key=lambda n: (share_along(chooser, n, addresses), chooser.extent(n) or 0)
        )
        if share_along(chooser, number, addresses) < 0.5:
            return []
        found[number] = None
        if node.op == Op.REDUCE:
            has_reduction = True
            longest = max(longest, chooser.extent(number) or 0)
    return list(found) if has_reduction and longest >= SHORT else []


def _share_row(chooser: Chooser, number: int, lanes: int, threads: int) -> bool:
    """Vectors, threads and written-out iterations along one loop of a row.

    All loops of a row have masks at their ends, so that their loads are the same nodes.
    """
    if lanes > 1 and chooser.split_and(number, lanes, "mask", Vectorize) < 0:
        return False
    if not is_loop(chooser, number):
        return False
    extent = chooser.extent(number) or 1
    if extent < threads:
        inner = chooser.next_number()
        if not chooser.take(Split(number, threads, "mask"), Bind(inner, THREAD)):
            return False
    elif chooser.split_and(number, threads, "mask", to_thread) < 0:
        return False
    if not is_loop(chooser, number):
        return True
    left = chooser.extent(number) or 1
    if left * lanes <= KEPT_ELEMENTS:
        chooser.take(Unroll(number))
    else:
        chooser.split_and(number, COPIES if lanes > 1 else 2 * COPIES, "mask", Unroll)
    return True
