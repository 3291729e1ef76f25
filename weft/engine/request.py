"""What a realize is asked for: graphs, and all that one walk over them can say.

The tensor layer makes a `Request` and hands it to `realize`. Who needs a fact of the graphs, on
either side, reads it here, so no graph is walked twice for it.

`key` is the structure of the graphs. Two requests with equal keys are the same work on other
memory: a BUFFER stands in the key as what it looks like, and a node above memory as its op, its
arg and the numbers of its sources. A node without memory below it is interned for as long as
somebody holds it, so it stands there itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from weft.engine.devices import default_device, is_file
from weft.engine.versions import Overwritten
from weft.ir.ops import Op
from weft.ir.uop import UOp

_BUFFER: Final = 1 << Op.BUFFER


class Request:
    """Graphs to compute, each once. `nodes` are all of theirs, sources first, `memory` those that
    are BUFFERs, and `ops` the ops of all. `overwritten` says what is gone once it is done.

    `device` is where a value is computed that no memory leads to; None is the default device.
    """

    __slots__ = ("_names", "device", "key", "memory", "nodes", "ops", "overwritten", "roots")

    def __init__(self, roots: Sequence[UOp], device: str | None = None) -> None:
        self.roots = roots
        self.device = device
        self.nodes: list[UOp] = []
        self.memory: list[UOp] = []
        self._names: dict[UOp, Hashable] = {}
        self.key = self._walk()
        self.ops = 0
        for root in roots:
            self.ops |= root.ops
        self.overwritten = Overwritten(self.nodes) if self.ops >> Op.AFTER & 1 else NOTHING

    def _walk(self) -> tuple[Hashable, ...]:
        """List the nodes and name them; the key. Every realize comes here: it calls nothing."""
        nodes, memory, names = self.nodes, self.memory, self._names
        name_of = names.__getitem__
        parts: list[Hashable] = []
        # Below a None lies a node whose sources have all been listed.
        stack: list[Any] = [*reversed(self.roots)]
        while stack:
            node = stack.pop()
            if node is None:
                node = stack.pop()
            elif node in names:
                continue
            elif node.src:
                stack += (node, None)
                for source in node.src[::-1]:
                    if source not in names:
                        stack.append(source)
                continue
            nodes.append(node)
            if not node.ops & _BUFFER:
                names[node] = node
                continue
            names[node] = len(parts)
            if node.op == Op.BUFFER:
                memory.append(node)
                parts.append((node.dtype, node.arg[1], node.src))
            else:
                sources = tuple(map(name_of, node.src))
                parts.append((node.op, node.dtype, node.arg, sources))
        return tuple(parts)

    def try_device(self) -> str | None:
        """The device of all the graphs; None where they are on several, or none of them computes.

        That is also the result for graphs that hold copies, which a device cannot carry out alone.
        """
        if self.ops >> Op.COPY & 1:
            return None
        name: Any = self.memory[0].arg[2] if self.memory else None
        for node in self.memory:
            if node.arg[2] != name:
                return None
        for root in self.roots:
            if root.op == Op.BUFFER:
                return None
            if not root.ops & _BUFFER:
                default = self.device or default_device()
                if name is not None and name != default:
                    return None
                name = default
        return None if is_file(name) else name

    def names(self, nodes: Iterable[UOp]) -> tuple[Hashable, ...]:
        """How the key calls some of the nodes."""
        return tuple(map(self._names.__getitem__, nodes))


NOTHING: Final = Overwritten(())
