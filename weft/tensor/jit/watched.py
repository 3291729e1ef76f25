"""Calls of jitted functions that somebody watches: `weft diff` puts itself here.

While there is a watch, every call comes this way. It hands over what a call returned and what it
wrote, which no realize shows: a jitted call is one run of a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from weft.support.settings import settings
from weft.tensor.jit.graph import CAPTURED, INPUT
from weft.tensor.jit.program import TracedProgram
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trees import flatten

if TYPE_CHECKING:
    from weft.tensor.jit.jit import Jit


class CallWatch(Protocol):
    """Somebody who sees the calls of jitted functions."""

    def before_call(self, jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def after_call(
        self, jitted: Jit, results: Sequence[Tensor], written: Sequence[Storage]
    ) -> None: ...


WATCHES: Final[list[CallWatch]] = []


def call_watched(jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a jitted function, jitted or not as the settings say, and tell those who watch."""
    for watch in WATCHES:
        watch.before_call(jitted, args, kwargs)
    written: list[Storage] = []
    if settings.JIT:
        arguments, program = jitted.program_for(args, kwargs)
        result = program.call(arguments.leaves)
        written = _written(program, arguments.leaves)
    else:
        result = jitted.function(*args, **kwargs)
    for watch in WATCHES:
        watch.after_call(jitted, tensors_of(result), written)
    return result


def tensors_of(tree: Any) -> list[Tensor]:
    """The tensors of a result, in their order."""
    leaves: list[Any] = []
    flatten(tree, leaves)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _written(program: TracedProgram, leaves: list[Any]) -> list[Storage]:
    """The memory from outside of the function that a call writes."""
    graph, found = program.graph, []
    for slot in dict.fromkeys(map(graph.root_slot, graph.versions)):
        role = graph.roles[slot]
        if role.kind == CAPTURED:
            found.append(program.captured[role.number])
        elif role.kind == INPUT:
            row = program.rows[role.number]
            tensor = leaves[row.leaf]
            if not (row.is_donated or row.is_gradient or row.is_view):
                found.append(tensor._storage)
    return found
