"""The parts of a STAGE, in one place: who makes one and who takes it apart agree here.

`STAGE(value, indices…, sizes…, mask, ranges…; (space, sizes, "masked"))`: the value over its
ranges, materialized at indices. Only symbolic sizes are sources, as None in the arg says, and
most stages have no mask, which the arg leaves out then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.ir.build import Size, split_symbolic
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


class StageParts(NamedTuple):
    """What a STAGE is made of; without a mask all of its iterations write."""

    space: str
    value: UOp
    indices: tuple[UOp, ...]
    sizes: tuple[Size, ...]
    mask: UOp | None
    ranges: tuple[UOp, ...]


def stage(
    space: str,
    value: UOp,
    indices: Sequence[UOp],
    sizes: Sequence[Size],
    ranges: Sequence[UOp],
    mask: UOp | None = None,
) -> UOp:
    """The STAGE of these parts."""
    static, symbolic = split_symbolic(sizes)
    arg = (space, static) if mask is None else (space, static, "masked")
    masks = () if mask is None else (mask,)
    return make(Op.STAGE, value.dtype, (value, *indices, *symbolic, *masks, *ranges), arg)


def stage_parts(node: UOp) -> StageParts:
    """The parts of a STAGE, which has as many sources as its arg says."""
    space, static = node.arg[:2]
    value, *rest = node.src
    rank, holes = len(static), static.count(None)
    has_mask = len(node.arg) == 3
    symbolic = iter(rest[rank : rank + holes])
    sizes = tuple([next(symbolic) if size is None else size for size in static])
    behind = rank + holes + has_mask
    mask = rest[behind - 1] if has_mask else None
    return StageParts(space, value, tuple(rest[:rank]), sizes, mask, tuple(rest[behind:]))


def is_global(node: UOp) -> bool:
    """Whether a node is a value in global memory: the boundary of a kernel."""
    return node.op == Op.STAGE and node.arg[0] == "global"
