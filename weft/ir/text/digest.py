"""The name of a graph: a hash of its nodes, the same in every process.

What is kept on disk is found by it. Printing a graph gives a name as good, and takes several times
as long: the text form looks for what a reader wants to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import bodies, topological

_BYTES: Final = 20
# Their args hold graphs: bodies, and sizes of a grid.
_HOLDERS: Final = frozenset((Op.CALL, Op.CUSTOM_GRADIENT, Op.PROGRAM))


def digest(root: UOp) -> str:
    """A short text that two graphs share only if they are one, with the bodies of their calls."""
    known: dict[UOp, str] = {}
    for body in bodies(root):
        known[body] = _digest(body, known)
    return _digest(root, known)


def digest_over_memory(root: UOp) -> tuple[str, tuple[UOp, ...]]:
    """The name of a graph whichever memory it is over, and the BUFFER nodes that it names.

    Memory counts by its dtype, shape, device and index among the others.
    """
    known: dict[UOp, str] = {}
    for body in bodies(root):
        known[body] = _digest(body, known)
    memory: dict[UOp, int] = {}
    return _digest(root, known, memory), tuple(memory)


def _digest(root: UOp, known: Mapping[UOp, str], memory: dict[UOp, int] | None = None) -> str:
    """The name of one graph; BUFFER nodes are numbered anew where `memory` takes them."""
    numbers: dict[UOp, int] = {}
    rows: list[tuple[Any, ...]] = []
    for node in topological(root):
        numbers[node] = len(rows)
        arg = node.arg
        if node.op in _HOLDERS:
            arg = _named(arg, known)
        elif memory is not None and node.op == Op.BUFFER:
            arg = (memory.setdefault(node, len(memory)), *arg[1:])
        rows.append((node.op, node.dtype.name, arg, *map(numbers.__getitem__, node.src)))
    return blake2b(repr(rows).encode("utf-8", "surrogatepass"), digest_size=_BYTES).hexdigest()


def _named(arg: Any, known: Mapping[UOp, str]) -> Any:
    """An arg with names instead of its graphs."""
    if isinstance(arg, UOp):
        return ("graph", known[arg] if arg in known else digest(arg))
    return tuple([_named(part, known) for part in arg]) if isinstance(arg, tuple) else arg
