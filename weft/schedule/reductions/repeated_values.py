"""Values that are the same along some axes, without these: what is computed once for each row.

A mean that was expanded to all elements, negated and permuted is still a number for each row.
`thin` finds the smaller value that it repeats, and `with_rows` writes a body so that it is
expanded last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from weft.ir.build import Size
from weft.ir.movement import expand, permute
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import topological, with_sources


def thin(node: UOp, axes: Collection[int]) -> UOp | None:
    """A value with size 1 along axes; None where it may differ along them.

    before: permute (1, 0): neg (expand (64, 8): x[64, 1]), along axis 0
    after:  permute (1, 0): neg x[64, 1]
    """
    shape = shape_of(node)
    wide = [axis for axis in axes if shape and shape[axis] != 1]
    if not wide:
        return node
    if node.op == Op.PERMUTE:
        below = thin(node.src[0], [node.arg[axis] for axis in wide])
        return None if below is None else permute(below, node.arg)
    if node.op == Op.EXPAND and len(shape_of(node.src[0])) == len(shape):
        below = thin(node.src[0], wide)
        sizes = tuple([1 if axis in wide else size for axis, size in enumerate(shape)])
        return None if below is None else _expanded(below, sizes)
    if node.op not in ELEMENTWISE or not node.src:
        return None
    src = [thin(source, wide) for source in node.src]
    found = [source for source in src if source is not None]
    return make(node.op, node.dtype, tuple(found), node.arg) if len(found) == len(src) else None


def _expanded(node: UOp, sizes: tuple[Size, ...]) -> UOp:
    return node if shape_of(node) == sizes else expand(node, sizes)


def with_rows(body: UOp, axes: Sequence[int]) -> UOp:
    """A body in which values that are the same along axes are expanded to its shape last."""
    shape = shape_of(body)

    def is_inside(node: UOp) -> bool:
        return node.op in ELEMENTWISE and shape_of(node) == shape

    made: dict[UOp, UOp] = {}
    for node in topological(body, enter=is_inside):
        made[node] = _with_rows(node, shape, axes, made, is_inside(node))
    return made[body]


def _with_rows(
    node: UOp, shape: Shape, axes: Sequence[int], made: Mapping[UOp, UOp], is_inside: bool
) -> UOp:
    below = thin(node, axes) if shape_of(node) == shape and node.op != Op.EXPAND else None
    if below is not None and below is not node:
        return expand(below, shape)
    return with_sources(node, made) if is_inside else node
