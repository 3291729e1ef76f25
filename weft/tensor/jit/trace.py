"""Runs a function once and records what it does: the trace of a jitted function.

Arguments are seen as memory that does not exist. A tensor that was made before and is still lazy
counts as computed. When the function has returned, everything is as it was; what is left is a
`Recording`: the values that are returned and the last version of every storage that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from weft.engine.buffer_nodes import BufferKind
from weft.engine.devices import Placement
from weft.engine.realize import realize as realize_graphs
from weft.engine.request import Request
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import NotSupported
from weft.tensor.autodiff.leaves import live_leaves, remember
from weft.tensor.core import Core
from weft.tensor.jit.escape import require_unchanged
from weft.tensor.jit.host import KeptArray
from weft.tensor.jit.signature import (
    Arguments,
    grad_of,
    is_by_value,
    unbound,
    unbound_steps,
)
from weft.tensor.storage import (
    Placeholder,
    Storage,
    drop_writes,
    lazy_storages,
    live_storages,
    owner_of,
    placement_of,
)
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing
from weft.tensor.trees import build


class Input(NamedTuple):
    """Memory that every call brings: an argument, and what stands for it in the trace."""

    leaf: int  # among the leaves of the arguments
    is_gradient: bool
    is_view: bool
    placeholder: Storage
    node: UOp


class Recording(NamedTuple):
    """What a function did while it was traced."""

    name: str
    result: Any
    inputs: list[Input]
    inside: dict[int, Tensor]  # id of a leaf -> the tensor that stood for it
    written: dict[Storage, UOp]  # of inputs and of storages that were there before
    realized: dict[UOp, Placement]  # values that the function wanted in memory, and where
    adopted: set[Storage]
    known: set[Storage]
    owners: dict[int, Storage]  # of memory that exists only in the trace
    first_number: int
    grads_read: list[tuple[Tensor, Tensor | None]]
    grads_written: list[Tensor]
    error: Exception | None  # that the function raised; what it wrote before stays written


class Recorder:
    """The trace of one call; a `Trace` while the function runs."""

    def __init__(self, name: str, shared: set[Storage]) -> None:
        self.is_seeded = False
        self.arrays: list[KeptArray] = []
        self._name = name
        self._shared = shared
        self._inputs: list[Input] = []
        self._inside: dict[int, Tensor] = {}
        self._argument_names: dict[UOp, str] = {}
        self._adopted: set[Storage] = set()
        self._realized: dict[UOp, Placement] = {}
        self._asked: list[Storage] = []
        self._grads_read: dict[int, tuple[Any, Tensor | None]] = {}
        self._grads_written: dict[int, Any] = {}
        self._grads_summed: set[int] = set()
        self._first_number = 0

    def record(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        names: list[str],
        watch: AbstractContextManager[Any],
    ) -> Recording:
        """Call the function. Whatever it does to storages is undone, also where it fails."""
        known = live_storages()
        placeholders = [Placeholder(storage) for storage in known if not storage.is_realized]
        owners = {each.node.arg[0]: each.storage for each in placeholders}
        written: dict[Storage, UOp] = {}
        tracing.depth += 1
        try:
            leaves = self._enter(arguments, names)
            self._first_number = _next_number()
            args, kwargs = build(arguments.structure, iter(leaves))
            tracing.trace = self
            with watch:
                result, error = _outcome(function, args, kwargs)
            if error is None:
                require_unchanged(self._name, (args, kwargs), arguments.structure, leaves, names)
        finally:
            tracing.trace = None
            tracing.depth -= 1
            order = self._asked + lazy_storages()
            standing = {each.storage for each in placeholders}
            for each in placeholders:
                if (version := each.remove()) is not None:
                    written[each.storage] = version
            others = [each for each in known if each not in standing]
            own = [each.placeholder for each in self._inputs]
            for storage in (*others, *self._adopted, *own):
                if (version := drop_writes(storage)) is not None:
                    written[storage] = version
            self._asked = []
        return Recording(
            self._name,
            result,
            self._inputs,
            self._inside,
            _in_order(written, order),
            self._realized,
            self._adopted,
            set(known),
            owners,
            self._first_number,
            list(self._grads_read.values()),
            list(self._grads_written.values()),
            error,
        )

    def _enter(self, arguments: Arguments, names: list[str]) -> list[Any]:
        """The leaves as the function sees them: tensors that stand for the arguments."""
        storages = [tensor._storage for tensor in arguments.tensors]
        are_leaves = {id(tensor) for tensor in live_leaves()}
        found: dict[Storage, Storage] = {}
        seen: list[Any] = []
        for number, leaf in enumerate(arguments.leaves):
            if not isinstance(leaf, Tensor) or leaf._storage in self._shared:
                seen.append(unbound(leaf))
                continue
            if id(leaf) not in self._inside:
                is_view = is_by_value(leaf, storages)
                if is_view or leaf._storage not in found:
                    found[leaf._storage] = self._placeholder(leaf, number, names[number], is_view)
                made = Tensor._of(
                    found[leaf._storage], () if is_view else unbound_steps(leaf._steps)
                )
                made.requires_grad = leaf._wants
                if id(leaf) in are_leaves:
                    remember(made, leaf._wants)
                grad = grad_of(leaf)
                made._grad = leaf._grad  # one that nobody can have stays so
                if grad is not None:
                    made._grad = Tensor._of(
                        self._placeholder(grad, number, f"{names[number]}.grad", True, True)
                    )
                self._inside[id(leaf)] = made
            seen.append(self._inside[id(leaf)])
        return seen

    def _placeholder(
        self, tensor: Tensor, leaf: int, name: str, is_view: bool, is_gradient: bool = False
    ) -> Storage:
        base = tensor.uop if is_view else tensor._storage.uop
        shape = tuple(map(unbound, shape_of(base)))
        kind = BufferKind(tensor.dtype, shape, placement_of(base, tensor.device))
        node = kind.without_memory()
        storage = Storage(node, tensor.device)
        self._inputs.append(
            Input(leaf, is_gradient, bool(is_view and tensor._steps), storage, node)
        )
        self._argument_names[node] = name
        return storage

    def adopted_storages(self) -> set[Storage]:
        return self._adopted

    # What the tensor layer says and asks while the function runs.

    def note_realized(self, storages: Iterable[Storage]) -> None:
        for storage in storages:
            self._asked.append(storage)
            if storage.memory is None:
                self._realized[storage.uop] = storage.placement

    def adopt(self, storage: Storage) -> None:
        self._adopted.add(storage)

    def note_array(self, array: Any) -> None:
        self.arrays.append(KeptArray.of(array))

    def note_grad_read(self, tensor: Core) -> None:
        if id(tensor) not in self._grads_written or id(tensor) in self._grads_summed:
            self._grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def note_grad_write(self, tensor: Core) -> None:
        self._grads_written[id(tensor)] = tensor
        self._grads_summed.discard(id(tensor))

    def note_grad_sum(self, tensor: Core) -> None:
        if id(tensor) in self._grads_written:
            return
        self._grads_written[id(tensor)] = tensor
        if any(tensor is each for each in self._inside.values()):
            self._grads_summed.add(id(tensor))  # whoever reads it reads what was there before, too
        else:
            self._grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def depends_on_call(self, node: UOp) -> bool:
        """Whether a value may be another one in the next call."""
        return bool(node.ops >> Op.AFTER & 1) or bool(self._foreign_memory(node))

    def _foreign_memory(self, node: UOp) -> list[UOp]:
        """Memory below a value that was there before the call."""
        memory = [part for part in topological(node) if part.op == Op.BUFFER]
        return [
            part
            for part in memory
            if part.arg[0] < self._first_number or owner_of(part) in self._adopted
        ]

    def require_readable(self, node: UOp, name: str) -> None:
        if not self.depends_on_call(node):
            return
        foreign = self._foreign_memory(node)
        names = [self._argument_names[part] for part in foreign if part in self._argument_names]
        depends = ", ".join(dict.fromkeys(names)) or "a tensor that was made before the call"
        facts: list[tuple[str, ...]] = [("value", f"{node.dtype.name} of shape {shape_of(node)}")]
        if node.line is not None and node.line.file:
            facts.append(("made at", f"{node.line.file}:{node.line.line}", node.line.text))
        raise NotSupported(
            f"{name}: {self._name} is being traced, so this value is not known yet",
            facts=[*facts, ("depends on", depends)],
            rule="a jitted function is traced once and replayed; what Python reads of a value\n"
            "would be the same in every call",
            fix="return the tensor and read it outside, pass a number as an argument, or choose\n"
            "with where()",
        )

    def constant(self, node: UOp) -> UOp:
        self.require_readable(node, "read")
        return realize_graphs(Request([node]))[node]


def _outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    """What a function returns, or the error that it raises when it runs without a trace, too."""
    try:
        return function(*args, **kwargs), None
    except NotSupported:  # most are of the trace alone: the function is refused
        raise
    except Exception as error:
        return None, error


def _in_order(written: dict[Storage, UOp], order: list[Storage]) -> dict[Storage, UOp]:
    """The versions in the order in which the function itself computes them."""
    ordered = dict.fromkeys([*(each for each in order if each in written), *written])
    return {storage: written[storage] for storage in ordered}


def _next_number() -> int:
    """A number that every BUFFER made from now on is above."""
    return int(BufferKind(dtypes.bool, (), "PYTHON").without_memory().arg[0])
