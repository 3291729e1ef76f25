"""Opts: the schedule of a kernel, as data. Each row is one rewrite of the kernel's loops.

`apply_opts(kernel, opts)` applies them in order. An opt names ranges by their numbers in the
kernel as the opts before it have left it, and a kernel together with its opts says everything: no
opt looks at the target. What is not legal is refused, with the reason. `loops`, `values`,
`tensor_core` and `tensor_chain` have the opts; the docstring of each shows a kernel before and
after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.codegen.opts.loops import Bind, Merge, Narrow, Order, Split, Unroll, Vectorize
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.tensor_chain import TensorChain
from weft.codegen.opts.tensor_core import TensorCore
from weft.codegen.opts.values import Accumulate, Carry, Join, Nest, Stage
from weft.ir.uop import UOp

__all__ = [
    "OPTS",
    "Accumulate",
    "Bind",
    "Carry",
    "Join",
    "Merge",
    "Narrow",
    "Nest",
    "Opt",
    "Order",
    "Split",
    "Stage",
    "TensorChain",
    "TensorCore",
    "Unroll",
    "Vectorize",
    "apply_opts",
]

OPTS: Final = (
    *(Split, Narrow, Merge, Order, Bind, Vectorize, Unroll),
    *(Stage, Accumulate, Carry, Nest, Join, TensorCore, TensorChain),
)


def apply_opts(kernel: UOp, opts: Iterable[Opt]) -> UOp:
    """The kernel after these opts, in order; raises OptRefused at the first that is not legal."""
    for opt in opts:
        kernel = opt.apply(kernel)
    return kernel
