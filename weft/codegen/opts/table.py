"""Opts: the recipe of a kernel, as data. Each row is one rewrite of the kernel's loops.

`apply_opts(kernel, opts)` applies them in order. An opt names ranges by their numbers in the
kernel as the opts before it have left it, and a kernel together with its opts says everything: no
opt looks at the target. What is not legal is refused, with the reason. `opts_of_loops` and
`opts_of_values` have the opts; the docstring of each shows a kernel before and after.

Rows to come stand here too: TensorCore and Pad.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.codegen.opts.loops import Bind, Merge, Order, Split, Unroll, Vectorize
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.values import Accumulate, Nest, Stage
from weft.ir.uop import UOp

__all__ = [
    "OPTS",
    "Accumulate",
    "Bind",
    "Merge",
    "Nest",
    "Opt",
    "Order",
    "Split",
    "Stage",
    "Unroll",
    "Vectorize",
    "apply_opts",
]

OPTS: Final = (
    *(Split, Merge, Order, Bind, Vectorize, Unroll),
    *(Stage, Accumulate, Nest),
)


def apply_opts(kernel: UOp, opts: Iterable[Opt]) -> UOp:
    """The kernel after these opts, in order; raises OptRefused at the first that is not legal."""
    for opt in opts:
        kernel = opt.apply(kernel)
    return kernel
