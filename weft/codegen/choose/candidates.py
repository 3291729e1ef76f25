"""Opts near given ones, for a search: one opt changed, one left out, or one more.

`engine/search.py` measures them. They come in a fixed order, each is legal, and none unrolls so
far that compiling it would take longer than it can gain.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Final

from weft.codegen.analysis.loops import GRID, LOOP, UNROLL, VECTOR, extent_of, kinds_of, ranges_of
from weft.codegen.choose.simt.tensor_core import other_tiles
from weft.codegen.opts.table import Bind, Opt, Split, TensorCore, Unroll, apply_opts
from weft.ir.uop import UOp
from weft.support.errors import OptRefused
from weft.target.target import Target

Opts = tuple[Opt, ...]
# Unrolled copies that a compiler takes quickly, and iterations of a loop that is worth unrolling.
MOST_COPIES: Final = 64
SMALL_LOOP: Final = 8


def neighbors(kernel: UOp, opts: Opts, target: Target) -> Iterator[Opts]:
    """The legal candidates one step away from this one, each once."""
    seen = {opts}
    for candidate in _changed(opts, target):
        if candidate not in seen and is_sensible(kernel, candidate):
            seen.add(candidate)
            yield candidate
    shaped = apply_opts(kernel, opts)
    for opt in _added(shaped, target):
        candidate = (*opts, opt)
        if candidate not in seen and is_sensible(kernel, candidate):
            seen.add(candidate)
            yield candidate


def _changed(opts: Opts, target: Target) -> Iterator[Opts]:
    for at, opt in enumerate(opts):
        before, after = opts[:at], opts[at + 1 :]
        if isinstance(opt, Split):
            sizes = (opt.factor * 2, opt.factor // 2, opt.factor + 1, opt.factor - 1)
            for factor in sizes:
                yield (*before, dataclasses.replace(opt, factor=factor), *after)
        elif isinstance(opt, TensorCore):
            for other in other_tiles(opt, target):
                yield (*before, other, *after)
        elif isinstance(opt, Unroll | Bind):
            yield (*before, *after)


def _added(kernel: UOp, target: Target) -> Iterator[Opt]:
    ranges = ranges_of(kernel)
    for number, kind in kinds_of(kernel).items():
        extent = extent_of(ranges[number])
        if kind == LOOP and extent is not None and extent <= SMALL_LOOP:
            yield Unroll(number)
        if kind == LOOP and not target.has_groups and target.units > 1:
            yield Bind(number, GRID)


def is_sensible(kernel: UOp, opts: Opts) -> bool:
    """Whether opts are legal and write out no more than a compiler takes quickly."""
    try:
        shaped = apply_opts(kernel, opts)
    except OptRefused:
        return False
    ranges, kinds = ranges_of(shaped), kinds_of(shaped)
    sizes = [extent_of(ranges[n]) or 1 for n, kind in kinds.items() if kind == UNROLL]
    lanes = [extent_of(ranges[n]) or 1 for n, kind in kinds.items() if kind == VECTOR]
    return math.prod(sizes) <= MOST_COPIES * 4 and max(lanes, default=1) <= MOST_COPIES
