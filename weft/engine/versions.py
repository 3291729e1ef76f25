"""Versions of memory: which of them a graph writes last, and which are gone once it has run."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological


def _last_versions(versions: list[UOp]) -> dict[UOp, UOp]:
    """For each memory that is written, the version that no write replaces."""
    last: dict[UOp, UOp] = {}
    for version in versions:  # older ones come first
        memory = behind(version)
        if memory.op == Op.BUFFER:
            last[memory] = version
    return last


class Overwritten:
    """What is not there any more once some graphs have been computed: versions of memory.

    `written` has every version and all memory that changes, `last` for each memory the version
    that no write replaces.
    """

    def __init__(self, nodes: Iterable[UOp]) -> None:
        """`nodes` are all nodes of the graphs, sources first."""
        versions = [node for node in nodes if node.op == Op.AFTER]
        self.last = _last_versions(versions)
        self.written = set(versions) | set(self.last)
        self._kept = set(self.last.values())

    def read_by(self, graphs: Iterable[UOp]) -> list[UOp]:
        """The versions that other graphs read and that will be gone."""
        if not self.written:
            return []
        seen = topological(*graphs, enter=lambda node: node not in self.written)
        return [node for node in seen if node in self.written and node not in self._kept]
