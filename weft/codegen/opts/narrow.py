"""The rewrite behind the opt Narrow: a loop has the length of the window that a mask leaves.

A row of a sliding window sees some keys of many, from the first one in its window on:

    reduce MAX over k < 8192: where((k < i + 1) & (i - 512 < k), x[i, k], -inf)
    ->  reduce MAX over k < 512: the same for k + min(max(i - 511, 0), 8192 - 512)

Blocks of such a loop begin where the window does, so that few of them stick out of it, and its
length is known: `trim_loops`, behind all opts, leaves out whole blocks from the first key on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.codegen.analysis.loops import (
    LOOP,
    extent_of,
    kinds_of,
    loops_of,
    ranges_of,
    replace_ranges,
)
from weft.codegen.lower.mask_limits import end_under, needed_by, start_under, zero_unless
from weft.codegen.opts.stage_value import reduction_over
from weft.ir.bounds import bounds
from weft.ir.build import index, range_
from weft.ir.ops import Op
from weft.ir.reduction.contraction import factors_of
from weft.ir.reduction.joined import is_joined
from weft.ir.uop import UOp
from weft.rules.simplify import simplify


class Window(NamedTuple):
    """The iterations of a loop that a mask leaves to those of another one."""

    start: UOp  # as the mask has it: it may be below 0, or too late for a whole window
    length: int


def window_of(kernel: UOp, number: int, around: int) -> Window | None:
    """The window of a loop over a reduction for each iteration of a loop around it, or None."""
    reduction = reduction_over(kernel, number)
    if reduction is None or is_joined(reduction):
        return None
    loop, needed = ranges_of(kernel)[number], _conditions(reduction)
    starts, ends = (
        [edge for each in needed if (edge := limit(each, loop, 1 << around)) is not None]
        for limit in (start_under, end_under)
    )
    found = [
        Window(start, int(bounds(simplify(end - start))[1])) for start in starts for end in ends
    ]
    if not found:
        return None
    window = min(found, key=lambda each: each.length)
    return window if 0 < window.length < (extent_of(loop) or 0) else None


def _conditions(reduction: UOp) -> list[UOp]:
    """Conditions without which an iteration changes nothing, whatever it is multiplied with."""
    found = needed_by(reduction, False)
    if reduction.arg[0] == Op.ADD:
        for factor in factors_of(reduction) or reduction.src[:1]:
            found += zero_unless(factor)
    return list(dict.fromkeys(found))


def faults_of_narrow(kernel: UOp, number: int, around: int, length: int) -> Iterator[str]:
    """Why a loop cannot be as long as a window, in words."""
    loop, extent = ranges_of(kernel)[number], extent_of(ranges_of(kernel)[number])
    kinds, order = kinds_of(kernel), [each for each, _ in loops_of(kernel)]
    if extent is None or extent <= length:
        yield f"a loop of {loop.src[0]} iterations is no longer than {length}"
    elif kinds[number] != LOOP or order.index(around) > order.index(number):
        yield f"r{number} is not a plain loop inside of r{around}"
    elif reduction_over(kernel, number) is None:
        yield f"r{number} is not the loop of one reduction"
    else:
        window = window_of(kernel, number, around)
        if window is None or window.length > length:
            yield f"no mask leaves at most {length} iterations of r{number} to one of r{around}"


def narrow_range(kernel: UOp, number: int, around: int, length: int) -> UOp:
    """The kernel whose reduction looks at a window alone."""
    old, window = ranges_of(kernel)[number], window_of(kernel, number, around)
    assert window is not None
    new = range_(number, length)
    start = window.start.maximum(index(0)).minimum(old.src[0] - length)
    value = simplify(new + start)
    return replace_ranges(kernel, {old: value}, {old: (new,)}, loops_of(kernel))
