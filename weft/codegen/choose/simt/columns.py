"""Opts for threads that reduce columns: what is reduced lies across memory, what is kept along it.

Threads of a warp lie along the columns, each with a vector of them, and further ones share the
rows. A thread has several rows written out, so that their loads wait together, and adds them up
in registers; at the end the threads of a column join theirs. Several reductions over the same
rows, as those of a normalization and of its gradient, go through them together.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

from weft.codegen.analysis.accesses import Access
from weft.codegen.analysis.loops import UNROLL, kinds_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.loops import (
    MOST_LANES,
    bind_grid,
    is_loop,
    is_product,
    lanes_of_narrow,
    to_thread,
    write_out_few,
)
from weft.codegen.choose.simt.share import addresses_of, share_along
from weft.codegen.opts.table import Opt, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.views import behind
from weft.target.compute import Simt

# Rows that a thread has at least before another one shares them, and that are written out.
LEAST_ROWS: Final = 4
COPIES: Final = 8
# Registers of a thread for what it has read, and for its sums: more would leave fewer threads.
READ_REGISTERS: Final = 64
SUMS: Final = 32
# Those for elements that a thread keeps from one reduction to the next. Rows beyond come again,
# from the cache beside the threads.
KEPT_REGISTERS: Final = 64
# Lanes of them: with fewer there are fewer threads for each column, which join what they have.
KEPT_LANES: Final = 2
# Groups that share the cache beside the threads.
GROUPS_BESIDE: Final = 4
# Rows that a thread by itself has read sooner than several could join what they have.
LEAST_LENGTH: Final = 16
# How much larger a group is where there are few.
LARGE_GROUPS: Final = 2


def reduce_columns(chooser: Chooser, compute: Simt) -> bool:
    """Vectors and threads along the columns, and threads that share the rows."""
    write_out_few(chooser)
    common = chooser.common_loops()
    found = _rows(chooser, common)
    column = _column(chooser, common)
    if not found or column is None:
        return False
    is_short = math.prod(chooser.extent(n) or 1 for n in found[0]) < LEAST_LENGTH
    if is_short or not _read(chooser, found[0]):
        return False
    rows = [number for each in found for number in each]
    longest = [max(each, key=lambda n: chooser.extent(n) or 0) for each in found]
    sums = [own for node, own in chooser.closers() if node.op == Op.REDUCE]
    count = max(sum(set(each) <= set(own) for own in sums) for each in found)
    extent = max(chooser.extent(down) or 1 for down in longest)
    is_nested = len(found) > 1
    is_near = is_nested and _is_near(chooser, rows, extent, compute)
    lanes = min(lanes_of_narrow(chooser, column, rows), KEPT_LANES if is_near else MOST_LANES)
    while lanes > 1 and lanes * count > SUMS:
        lanes //= 2
    copies = _copies(chooser, rows, lanes, is_nested)
    if lanes > 1 and chooser.split_and(column, lanes, "clamp", _vectors) < 0:
        return False
    if not is_loop(chooser, column):
        return False
    vector = lanes * max(access.dtype.itemsize for access in _read(chooser, rows))
    most = max(compute.line_bytes // vector, 1) if is_near else compute.warp
    across = min(_columns_at_once(chooser, column, vector, compute), most)
    if across * vector < compute.sector_bytes:
        return False
    along = chooser.split_and(column, across, chooser.safe_tail(), to_thread)
    if along < 0:
        return False
    if not _share_rows(chooser, longest, (along, across), copies, lanes * count, compute):
        return False
    others = [number for number in kinds_of(chooser.kernel) if number != along]
    return chooser.order([*others, along]) and bind_grid(chooser)


def _share_rows(
    chooser: Chooser,
    longest: list[int],
    columns: tuple[int, int],
    copies: int,
    sums: int,
    compute: Simt,
) -> bool:
    """Threads along the rows, beside those along the columns; some rows of each written out."""
    along, across = columns
    groups = math.prod(chooser.extent(n) or 1 for n in chooser.common_loops() if n != along)
    most, least = _threads(groups, across, compute)
    if most * across > compute.group_threads:
        copies = max(copies // LARGE_GROUPS, 1)
    extent = max(chooser.extent(down) or 1 for down in longest)
    share, copies = _shares(extent, most, least, copies)
    for down in longest:
        if share > 1 and chooser.split_and(down, share, "mask", to_thread) < 0:
            return False
        _write_out_rows(chooser, down, copies, sums)
    return True


def _vectors(number: int) -> Opt:
    return Vectorize(number)


def _rows(chooser: Chooser, common: list[int]) -> list[list[int]]:
    """The loops of each reduction, equal ones once; none where there is something else to do.

    A reduction that needs another has loops of its own, over as many rows. They are shared out
    alike, so that what a thread has read stays in its registers where these have room for it.
    """
    found: list[list[int]] = []
    for node, own in chooser.closers():
        if node.op != Op.REDUCE:
            if any(n not in common for n in own):
                return []
            continue
        inner = [n for n in own if n not in common]
        if is_product(chooser, node) or not inner:
            return []
        if inner not in found:
            found.append(inner)
    extents = {tuple(chooser.extent(n) for n in inner) for inner in found}
    is_nested = any(set(one) & set(two) for one, two in itertools.combinations(found, 2))
    return found if len(extents) == 1 and not is_nested else []


def _column(chooser: Chooser, common: list[int]) -> int | None:
    """The common loop along memory."""
    addresses = addresses_of(chooser)
    shares = {n: share_along(chooser, n, addresses) for n in common}
    column = max(common, key=lambda n: (shares[n], common.index(n)), default=None)
    return column if column is not None and shares[column] >= 0.5 else None


def _copies(chooser: Chooser, rows: list[int], lanes: int, is_nested: bool) -> int:
    """How many rows a thread has room for; what several loops read is there once.

    What is kept from one reduction to the next is there as numbers that are computed with.
    """
    widths = {behind(a.node.src[0]): a.dtype.itemsize for a in _read(chooser, rows)}
    if is_nested:
        return max(KEPT_REGISTERS // (lanes * len(widths)), 1)
    registers = sum(-(-lanes * width // 4) for width in widths.values())
    return max(min(READ_REGISTERS // max(registers, 1), COPIES), 1)


def _is_near(chooser: Chooser, rows: list[int], extent: int, compute: Simt) -> bool:
    """Whether rows of a line for each thread group stay in the cache beside the threads."""
    memories = {behind(access.node.src[0]) for access in _read(chooser, rows)}
    near = extent * compute.line_bytes * len(memories)
    return near * GROUPS_BESIDE <= chooser.target.caches[0].size


def _read(chooser: Chooser, rows: list[int]) -> list[Access]:
    """What each row has of its own."""
    return [a for a in addresses_of(chooser) if any(a.stride(n) != 0 for n in rows)]


def _columns_at_once(chooser: Chooser, column: int, vector: int, compute: Simt) -> int:
    """Threads along the columns: a warp, or a line of memory where that leaves too few groups.

    The parts of a sum that was done in parts come from a cache, which has them in sectors.
    """
    extent = chooser.extent(column) or 1
    around = math.prod(chooser.extent(n) or 1 for n in chooser.common_loops() if n != column)
    across = 1 << int(math.log2(min(extent, compute.warp)))
    while across * vector > compute.line_bytes and around * extent < compute.units * across:
        across //= 2
    while across * vector > compute.sector_bytes and 2 * around * extent < compute.units * across:
        across //= 2
    return across


def _threads(groups: int, across: int, compute: Simt) -> tuple[int, int]:
    """How many threads share rows at most, and at least where they are not equally many then.

    Few groups leave multiprocessors to large ones, which wait for memory less often.
    """
    if 2 * groups > compute.units:
        return compute.group_threads // across, compute.group_threads // (4 * across)
    return LARGE_GROUPS * compute.group_threads // across, compute.group_threads // across


def _shares(extent: int, most: int, least: int, copies: int) -> tuple[int, int]:
    """How many threads share the rows, and how many of theirs are written out.

    Where all have as many, no load needs a mask, and those of a thread are on their way together.

    >>> _shares(512, 32, 8, 8), _shares(392, 32, 8, 8), _shares(392, 32, 16, 8)
    ((32, 8), (8, 7), (32, 8))
    >>> _shares(1000, 64, 16, 8), _shares(96, 256, 64, 8)
    ((64, 8), (16, 6))
    """
    most = 1 << int(math.log2(max(min(most, extent // LEAST_ROWS), 1)))
    least = max(min(most, least), 1)
    share = most
    while share > least and extent % share:
        share //= 2
    if extent % share == 0:
        each = extent // share
        exact = [n for n in range(LEAST_ROWS, copies + 1) if each % n == 0]
        if each <= copies or exact:
            return share, each if each <= copies else exact[-1]
    return most, copies


def _write_out_rows(chooser: Chooser, down: int, copies: int, sums: int) -> None:
    """Rows of a thread side by side; each with sums of its own where there is room."""
    if not is_loop(chooser, down) or copies < 2:
        return
    is_full = sums * copies > SUMS or UNROLL in kinds_of(chooser.kernel).values()
    if (chooser.extent(down) or 1) > 1:
        chooser.split_and(down, copies, "mask", lambda n: Unroll(n, sequential=is_full))
