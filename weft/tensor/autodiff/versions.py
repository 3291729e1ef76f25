"""Leaves that were written after they were used: a gradient is that of the value that was used.

A write makes another version of a leaf, and a graph that was built before reads the one in front
of it. So the gradient of a leaf is the sum of those of all its versions that the output depends
on. None of them leads to an earlier one: a write to a leaf is no part of what is differentiated.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from weft.ir.movement import apply_all
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute
from weft.tensor.autodiff.history import is_lost
from weft.tensor.autodiff.leaves import is_leaf

if TYPE_CHECKING:
    from weft.gradient.reverse import Watch
    from weft.tensor.tensor import Tensor

Name = TypeVar("Name", bound=Hashable)


def versions_of(leaf: Tensor) -> list[UOp]:
    """The value of a leaf now, and those that it had before a write, newest first."""
    earlier = leaf._storage.earlier
    if not earlier or not is_leaf(leaf):
        return [leaf.uop]
    alive = [node for each in reversed(earlier) if (node := each()) is not None]
    known = (node for node in dict.fromkeys(alive) if not is_lost(node))
    return [leaf.uop, *(apply_all(node, leaf._steps) for node in known)]


def gradients_of_versions(
    output: UOp, versions: Mapping[Name, Sequence[UOp]], seed: UOp, watch: Watch | None
) -> dict[Name, UOp]:
    """The gradient of each list of versions, the newest first; without those that have none."""
    from weft.gradient.reverse import gradients

    total: dict[Name, UOp] = {}
    ends: dict[UOp, UOp] = {}
    while versions:
        newest = [nodes[0] for nodes in versions.values()]
        found = gradients(substitute(output, ends), newest, seed, watch)
        for name, node in zip(versions, found, strict=True):
            if node is not None:
                total[name] = total[name] + node if name in total else node
        older = {name: nodes[1:] for name, nodes in versions.items() if len(nodes) > 1}
        for name in older:
            node = versions[name][0]
            ends[node] = make(Op.DETACH, node.dtype, (node,))
        versions = older
    return total
