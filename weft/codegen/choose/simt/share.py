"""Opts for kernels of no particular shape on targets of threads.

A thread has one element of what is stored. Where that leaves too few threads to fill the machine,
those of a group share the outermost reductions, until there are enough or nothing is left to
share. Reductions inside of others stay with their thread, and short loops are written out.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import Access
from weft.codegen.analysis.loops import GRID, LOOP, THREAD, kinds_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.lower.hardware import MOST_AXES
from weft.codegen.opts.table import Bind, Opt, Split, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.uop import UOp, range_ids
from weft.target.compute import Simt

# Iterations that are written out, of one loop and of all together.
COPIES: Final = 8
ALL_COPIES: Final = 32
# Threads of the whole machine beyond which a thread is better off with a vector.
WAVES: Final = 4
# Elements that a thread reads at least of a row that it shares.
VECTOR: Final = 4


def share_anything(chooser: Chooser, compute: Simt) -> bool:
    """Threads along what is stored, and along the outermost reductions where those are too few."""
    common = [n for n in chooser.common_loops() if (chooser.extent(n) or 1) > 1]
    outermost = _outermost(chooser, common)
    if not outermost and not common:
        return False
    stored = math.prod(chooser.extent(n) or 1 for n in common)
    wanted = compute.units * compute.group_threads
    along = _along_memory(chooser, common)
    addresses = addresses_of(chooser)
    is_near = any(_is_near(chooser, number, addresses) for number in outermost)
    share = _threads_that_share(chooser, outermost, stored, wanted, compute)
    if share > 1:
        share = _share_of_a_line(chooser, outermost, along, share, compute, is_near)
    if share == 1 and along is not None:
        _take_lanes(chooser, along, stored, WAVES * wanted)
    if share > 1 and not _share_loops(chooser, outermost, share):
        return False
    axes = MOST_AXES - (share > 1)
    first = _bind_results(chooser, along, compute.group_threads // share, axes)
    if first >= 0 and not (share > 1 and is_near):  # threads are neighbors along memory
        rest = [number for number in kinds_of(chooser.kernel) if number != first]
        if not chooser.order([*rest, first]):
            return False
    _write_out(chooser)
    return all(chooser.take(Bind(number, GRID)) for number in chooser.common_loops())


def addresses_of(chooser: Chooser) -> list[Access]:
    """The accesses of memory."""
    return [access for access in chooser.accesses() if access.node.op == Op.INDEX]


def share_along(chooser: Chooser, number: int, addresses: list[Access]) -> float:
    """Which share of the elements that a loop walks over lies side by side along it."""
    whole = side_by_side = 0
    for access in addresses:
        if access.stride(number) == 0:
            continue
        ranges = range_ids(access.node.ranges)
        elements = math.prod(chooser.extent(n) or 1 for n in ranges if access.stride(n) != 0)
        whole += elements
        side_by_side += elements if access.stride(number) == 1 else 0
    return side_by_side / whole if whole else 0.0


def _is_near(chooser: Chooser, number: int, addresses: list[Access]) -> bool:
    return share_along(chooser, number, addresses) >= 0.5


def _outermost(chooser: Chooser, common: list[int]) -> list[int]:
    """Of each reduction and store that depends on common loops alone, the loop to share.

    It is the longest one, and one along memory among those that are long enough.
    """
    addresses = addresses_of(chooser)
    found: dict[int, None] = {}
    for node, own in chooser.closers():
        inner = [n for n in own if n not in common]
        depends = set(range_ids(node.ranges)) - {*own, *common}
        if not inner or depends:
            continue
        near = [n for n in inner if _is_near(chooser, n, addresses)]
        long = [n for n in near if (chooser.extent(n) or 1) >= COPIES]
        found[max(long or inner, key=lambda n: chooser.extent(n) or 1)] = None
    return list(found)


def _along_memory(chooser: Chooser, common: list[int]) -> int | None:
    """The common loop that most accesses walk element by element, else the innermost."""
    addresses = addresses_of(chooser)
    shares = {n: share_along(chooser, n, addresses) for n in common}
    return max(common, key=lambda n: (shares[n], common.index(n))) if common else None


def _threads_that_share(
    chooser: Chooser, outermost: list[int], stored: int, wanted: int, compute: Simt
) -> int:
    """How many threads share a reduction, a power of two."""
    longest = max((chooser.extent(n) or 1 for n in outermost), default=1)
    share = 1
    while stored * share < wanted and 2 * share <= min(longest, compute.group_threads):
        share *= 2
    return share


def _share_of_a_line(
    chooser: Chooser,
    outermost: list[int],
    along: int | None,
    share: int,
    compute: Simt,
    is_near: bool,
) -> int:
    """Neighbors use what comes together: a warp along a row, or a few columns side by side."""
    longest = max(chooser.extent(n) or 1 for n in outermost)
    if is_near:
        while share < compute.warp and 2 * VECTOR * share <= longest:
            share *= 2
        return share
    columns = 1 if along is None else min(chooser.extent(along) or 1, COPIES)
    while share > 1 and share * columns > compute.group_threads:
        share //= 2
    return share


def _take_lanes(chooser: Chooser, along: int, stored: int, enough: int) -> None:
    """Vectors where there are threads enough without them."""
    addresses = [access for access in addresses_of(chooser) if access.stride(along) == 1]
    if not addresses:
        return
    lanes = chooser.target.access_bits // max(8 * access.dtype.itemsize for access in addresses)
    others = [n for n in kinds_of(chooser.kernel) if n != along]
    steps = [access.stride(n) or 0 for access in addresses for n in others]
    extent = chooser.extent(along) or 1
    while lanes > 1 and (any(x % lanes for x in (extent, *steps)) or stored < lanes * enough):
        lanes //= 2
    if lanes > 1:
        chooser.split_and(along, lanes, "clamp", Vectorize)


def _share_loops(chooser: Chooser, outermost: list[int], share: int) -> bool:
    """Bind a part of each loop to the same threads; a loop that is too short stays whole."""
    for number in outermost:
        extent = chooser.extent(number) or 1
        if 2 * extent <= share:
            continue
        if extent == share:
            taken = chooser.take(Bind(number, THREAD))
        else:
            inner = chooser.next_number()
            taken = chooser.take(Split(number, share, "mask"), Bind(inner, THREAD))
        if not taken:
            return False
    return True


def _bind_results(chooser: Chooser, along: int | None, most: int, axes: int) -> int:
    """Let the rest of a group lie along what is stored; the loop of threads along memory."""
    tail = chooser.safe_tail()
    common = chooser.common_loops()
    others = [n for n in reversed(common) if n != along]
    first = -1
    for number in [n for n in (along, *others) if n is not None and n in common][:axes]:
        extent = chooser.extent(number) or 1
        count = 1 << int(math.log2(max(min(extent, most), 1)))
        if count < 2 or kinds_of(chooser.kernel)[number] != LOOP:
            continue
        inner = chooser.split_and(number, count, tail, _to_thread)
        if inner < 0:
            continue
        most //= count
        first = inner if number == along else first
    return first


def _to_thread(number: int) -> Opt:
    return Bind(number, THREAD)


def _write_out(chooser: Chooser) -> None:
    """Unroll the loops of reductions, the innermost first, as far as a kernel stays short."""
    written: dict[UOp, int] = {}  # how often the body of a reduction is written
    for node, own in chooser.closers():
        if node.op != Op.REDUCE:
            continue
        copies = 1
        for number in reversed(own):
            nested = [n for other, n in written.items() if other.ranges >> number & 1]
            most = ALL_COPIES // (copies * max(nested, default=1))
            copies *= _unrolled(chooser, number, most)
        written[node] = copies


def _unrolled(chooser: Chooser, number: int, most: int) -> int:
    """Write out a loop, or a part of its iterations; how many of them."""
    if kinds_of(chooser.kernel)[number] != LOOP:
        return 1
    extent = chooser.extent(number) or 1
    if extent <= min(2 * COPIES, most) and chooser.take(Unroll(number)):
        return extent
    part = 1 << max(min(COPIES, most).bit_length() - 1, 0)
    if part > 1 and chooser.split_and(number, part, "mask", Unroll) >= 0:
        return part
    return 1
