"""The proof that a kernel touches only memory it has: every index is in bounds or behind its mask.

Runs after opts under SPEC. It finds what values hide: an access past the end that lands in other
memory of the process gives right results for a long time. `weft.rules.in_bounds` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.analysis.loops import first_range
from weft.ir.bounds import bounds
from weft.ir.build import Size
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import locate
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.rules.in_bounds import is_in_bounds
from weft.support.errors import InternalError


def verify_in_bounds(kernel: UOp, pass_name: str) -> None:
    """Raise an InternalError where an access is neither proven in bounds nor guarded."""
    for node in topological(kernel):
        if node.op in (Op.INDEX, Op.READ):
            mask, *indices = node.src[1:]
            memory = behind(node.src[0])
            sizes = memory.arg[1] if memory.op == Op.STAGE else shape_of(memory)
        elif node.op == Op.STAGE:
            mask, indices = None, list(node.src[1 : first_range(node)])
            sizes = node.arg[1]
        else:
            continue
        _verify(kernel, node, indices, sizes, mask, pass_name)


def _verify(
    kernel: UOp,
    node: UOp,
    indices: Sequence[UOp],
    sizes: Sequence[Size],
    mask: UOp | None,
    pass_name: str,
) -> None:
    for axis, (each, size) in enumerate(zip(indices, sizes, strict=True)):
        if is_in_bounds(each, size, mask):
            continue
        text, line = locate(kernel, node)
        low, high = bounds(each)
        raise InternalError(
            f"an access may be out of bounds on axis {axis}",
            pass_name=pass_name,
            ir_text=text,
            marked_line=line,
            facts=[("index", repr(each), f"{low}..{high}"), ("size", repr(size))],
        )
