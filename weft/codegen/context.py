"""What a codegen pass may know beside the graph: the target, and the opts if somebody chose them.

`choose-opts` writes down what it chose, so that whoever asked for a program can see them,
`flatten-memory` the axes of thread ranges, which later passes close no more, and `bind-hardware`
the extents of the counters, before they get a width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.ir.uop import UOp
from weft.target.target import Target

if TYPE_CHECKING:
    from weft.codegen.opts.table import Opt


@dataclass
class CodegenContext:
    """One run of codegen. `opts` is None where the heuristic is to choose."""

    target: Target
    opts: tuple[Opt, ...] | None = None
    chosen: tuple[Opt, ...] = field(default=())
    thread_axes: dict[int, int] = field(default_factory=dict)  # by the number of the range
    extents: dict[tuple[str, int], UOp] = field(default_factory=dict)  # by kind and axis
