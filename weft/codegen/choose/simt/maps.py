"""Opts for maps on threads: a vector for each, or squares that are transposed in local memory.

Threads of a warp lie along memory. Where a map reads values of each channel, as a normalization
does, a thread has several rows, so that it reads those and computes with them once.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import Access, is_looked_up
from weft.codegen.analysis.loops import (
    GRID,
    ORDERED,
    THREAD,
    extent_of,
    kinds_of,
    own_ranges,
    ranges_of,
)
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.loops import (
    bind_grid,
    is_loop,
    lanes_along,
    lanes_of_narrow,
    stored_loops,
    to_thread,
)
from weft.codegen.choose.simt.share import addresses_of, share_along
from weft.codegen.lower.hardware import MOST_AXES
from weft.codegen.opts.table import Bind, Stage, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.views import behind
from weft.target.compute import Simt

# Elements of a thread that reads neighbors one by one, or waits for what it looks up.
COPIES: Final = 4
# The share of threads that may have nothing to do.
IDLE: Final = 0.125
# Elements of a thread that lie together in what it reads, and apart in what it writes.
TAPS: Final = 32
# Rows of a thread that have values of channels in common.
ROWS: Final = 32
# Groups that a multiprocessor has at least before threads have several rows, and before they have
# more than are written out.
GROUPS: Final = 2
WAVES: Final = 4


def parallelize_map(chooser: Chooser, compute: Simt) -> bool:
    """A vector for each thread; where rows are not aligned, several elements a group apart."""
    if chooser.kernel.ops >> Op.REDUCE & 1:
        return False
    addresses = addresses_of(chooser)
    own = dict.fromkeys(r.arg for store in chooser.stores() for r in own_ranges(store))
    common = [number for number in chooser.common_loops() if number in own]
    if not common:
        return False
    number = max(common, key=lambda n: (share_along(chooser, n, addresses), common.index(n)))
    if number != common[-1] and share_along(chooser, number, addresses) <= 0.5:
        return False
    # Updates of ordered loops are skipped one by one, which copies of a row would forbid.
    is_ordered = ORDERED in kinds_of(chooser.kernel).values()
    rows = -1 if is_ordered else _rows_of_channels(chooser, number, addresses)
    lanes = lanes_of_narrow(chooser, number, [rows]) if rows >= 0 else lanes_along(chooser, number)
    taps = _taps(chooser, number, addresses)
    if taps and chooser.take(*map(Unroll, taps)):
        lanes = _lanes_of_taps(chooser, taps, lanes, compute)
    if lanes > 1 and chooser.split_and(number, lanes, "clamp", Vectorize) < 0:
        return False
    if rows >= 0 and is_loop(chooser, number) and _take_rows(chooser, number, rows, compute):
        return True
    # What a thread has waited for, it uses several times; updates are one after the other.
    gathers = any(is_looked_up(access.node) for access in addresses)
    copies = COPIES if (lanes == 1 or gathers) and not is_ordered else 1
    return _bind(chooser, compute, number, copies)


def _taps(chooser: Chooser, number: int, addresses: list[Access]) -> list[int]:
    """Short loops along which a value lies in memory that is written along another, `number`.

    A thread reads all taps of a channel, which come together, and writes them apart.
    """
    loops = [n for n in chooser.common_loops() if n != number and is_loop(chooser, n)]
    for access in addresses:
        step = abs(access.stride(number) or 0)
        below = [n for n in loops if 0 < abs(access.stride(n) or 0) < step]
        if 1 < step <= TAPS and math.prod(chooser.extent(n) or 1 for n in below) == step:
            return below
    return []


def _lanes_of_taps(chooser: Chooser, taps: list[int], lanes: int, compute: Simt) -> int:
    """How many channels a thread has all taps of, where threads are enough without them."""
    each = math.prod(chooser.extent(n) or 1 for n in taps)
    threads = math.prod(chooser.extent(n) or 1 for n in chooser.common_loops()) // each
    most = min(TAPS // each, threads // (compute.units * compute.group_threads))
    while lanes > max(most, 1):
        lanes //= 2
    return lanes


def _rows_of_channels(chooser: Chooser, number: int, addresses: list[Access]) -> int:
    """A loop across memory for whose iterations some values are the same; -1 where there is none.

    `number` is the loop along memory.
    """
    near = [a for a in addresses if a.stride(number) == 1 and not is_looked_up(a.node)]
    found = -1
    for row in chooser.common_loops():
        is_plain = row != number and is_loop(chooser, row)
        is_shared = any(access.stride(row) == 0 for access in near)
        if is_plain and is_shared and (chooser.extent(row) or 1) % 2 == 0:
            found = row
    return found


def _take_rows(chooser: Chooser, number: int, rows: int, compute: Simt) -> bool:
    """Several rows for each thread, if there are threads enough without them.

    Threads lie along memory, and further ones along rows. Some rows of a thread are written out,
    so that their loads wait together, and it takes such rows one after the other.
    """
    extents = [chooser.extent(n) or 1 for n in chooser.common_loops()]
    threads = math.prod(extents) // (compute.units * compute.group_threads)
    copies = _divisor(chooser.extent(rows) or 1, min(threads // GROUPS, COPIES))
    if copies < 2:
        return False
    mark, tail = chooser.mark(), chooser.safe_tail()
    along = _threads_along(chooser, number, compute.group_threads, compute)
    down = _divisor((chooser.extent(rows) or 1) // copies, compute.group_threads // along)
    again = _divisor(
        (chooser.extent(rows) or 1) // (copies * down),
        min(threads // (WAVES * copies), ROWS // copies),
    )
    kept = -1
    is_taken = along < 2 or chooser.split_and(number, along, tail, to_thread) >= 0
    is_taken = is_taken and (down < 2 or chooser.split_and(rows, down, tail, to_thread) >= 0)
    is_taken = is_taken and chooser.split_and(rows, copies, tail, Unroll) >= 0
    if is_taken and again > 1 and is_loop(chooser, rows):
        kept = chooser.split(rows, again, tail)
    if is_taken and (kept < 0 or kept != rows) and bind_grid(chooser, kept):
        return True
    chooser.undo_to(mark)
    return False


def _divisor(extent: int, most: int) -> int:
    """The greatest power of two that divides an extent and is not above the other number.

    >>> _divisor(48, 8), _divisor(48, 100), _divisor(7, 4), _divisor(8, 0)
    (8, 16, 1, 1)
    """
    found = 1
    while 2 * found <= most and extent % (2 * found) == 0:
        found *= 2
    return found


def transpose(chooser: Chooser, compute: Simt) -> bool:
    """Squares that are read along one loop and written along another, by way of local memory.

    A warp reads a row of a square and writes a column of it. Rows are rotated in local memory, so
    that the elements of a column lie in different banks.
    """
    transposed = _transposed(chooser)
    if transposed is None:
        return False
    slot, along, across = transposed
    side, down = compute.warp, compute.group_threads // compute.warp
    if min(chooser.extent(along) or 1, chooser.extent(across) or 1) < side:
        return False
    column, row = chooser.split(along, side), chooser.split(across, side)
    fresh = chooser.next_number()
    layout = ("i0", "i0 ^ i1")
    if not chooser.take(Stage(("load", slot), (column, row), "local", layout)):
        return False
    filled, read = fresh, fresh + 1
    rows, fills = chooser.split(row, down), chooser.split(filled, down)
    inner = [row, rows, column, filled, fills, read]
    outer = [number for number in kinds_of(chooser.kernel) if number not in inner]
    binds = [Bind(number, THREAD) for number in (rows, column, fills, read)]
    if not chooser.order([*outer, *inner]) or not chooser.take(*binds):
        return False
    return chooser.take(Unroll(row), Unroll(filled)) and all(
        chooser.take(Bind(number, GRID)) for number in outer
    )


def _transposed(chooser: Chooser) -> tuple[int, int, int] | None:
    """The argument that is read along another loop than the result, and the loops of both."""
    stores, addresses = chooser.stores(), addresses_of(chooser)
    if chooser.kernel.ops >> Op.REDUCE & 1 or len(stores) != 1:
        return None
    own = stored_loops(stores[0])
    written = next(access for access in addresses if access.node is stores[0].src[0])
    along = next((n for n in own if written.stride(n) == 1), None)
    if along is None:
        return None
    apart = [a for a in addresses if a is not written and a.stride(along) not in (0, 1)]
    across = [n for n in own if len(apart) == 1 and apart[0].stride(n) == 1]
    memory = behind(apart[0].node.src[0]) if across else None
    if memory is None or memory.op != Op.PARAM:
        return None
    return memory.arg[0], along, across[-1]


def _bind(chooser: Chooser, compute: Simt, first: int, copies: int) -> bool:
    """Threads along a loop, then along those around it until a group is full; groups beyond."""
    tail = chooser.safe_tail()
    most = min(compute.group_threads, chooser.target.grid.group_threads)
    others = [n for n in reversed(chooser.common_loops()) if n != first]
    for number in [first, *others][:MOST_AXES]:
        extent = chooser.extent(number) or 1
        if not is_loop(chooser, number) or extent < 2 or most < 2:
            continue
        count = _threads_along(chooser, number, most, compute)
        if count < 2 or chooser.split_and(number, count, tail, to_thread) < 0:
            continue
        most //= count
        left = chooser.extent(number) or 1
        if number == first and 1 < left <= copies and is_loop(chooser, number):
            chooser.take(Unroll(number))
        elif number == first and left >= 2 * copies > 2 and is_loop(chooser, number):
            chooser.split_and(number, copies, tail, Unroll)
    return bind_grid(chooser)


def _threads_along(chooser: Chooser, number: int, most: int, compute: Simt) -> int:
    """A power of two of threads, of which few have nothing to do; else as many as there are."""
    extent = chooser.extent(number) or 1
    largest = count = 1 << int(math.log2(max(min(extent, most), 1)))
    while count > compute.warp and -(-extent // count) * count > extent * (1 + IDLE):
        count //= 2
    if -(-extent // count) * count <= extent * (1 + IDLE):
        return count
    is_known = extent_of(ranges_of(chooser.kernel)[number]) is not None
    return extent if is_known and extent <= most else largest
