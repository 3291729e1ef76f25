"""A traced function, ready to be called: its graph, what it captured, and what every call does."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from weakref import ref

from weft.engine.buffer_nodes import BufferKind
from weft.engine.buffers import buffer_of
from weft.engine.watch.record import record_call
from weft.ir.build import bind, global_stage
from weft.ir.collector import is_frozen
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp
from weft.rewrite.trace_file import current
from weft.support.errors import NotSupported, UsageError
from weft.tensor.create.random_state import RandomState
from weft.tensor.jit.graph import Graph
from weft.tensor.jit.results import Results
from weft.tensor.jit.run import GraphRun, NativeRun, make_run, view_buffer
from weft.tensor.jit.signature import SCALARS, Arguments, unbound, values_of
from weft.tensor.jit.watch.guards import State
from weft.tensor.linked import linked_with
from weft.tensor.realize import realize
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import GoneStorage, Reason, retire
from weft.tensor.trees import LEAF
from weft.tensor.turns import tracer, wait_for_trace
from weft.tensor.views.contiguous import first_element


class InputRow(NamedTuple):
    """An argument whose memory the graph takes: a tensor, its gradient, or a view of either."""

    leaf: int
    is_gradient: bool
    is_view: bool
    is_written: bool
    is_donated: bool


class TensorKind(NamedTuple):
    """An argument that is a tensor."""

    dtype: DType
    shape: Shape
    requires_grad: bool | None


class ValueKind(NamedTuple):
    """An argument that is a number, a string, None or a bound size."""

    value: Any


class ObjectKind(NamedTuple):
    """An argument that is anything else."""

    name: str


class GradientIn(NamedTuple):
    """The gradient of a tensor from outside, as the trace found it; `number` if it is captured."""

    tensor: ref[Tensor]
    kind: tuple[Any, ...] | None
    number: int | None


class TracedProgram:
    """A trace. `call` does what the function does, without calling it."""

    def __init__(
        self,
        graph: Graph | Callable[[], Graph],
        constants: list[UOp],
        captured: list[Storage],
        run: NativeRun | None = None,
    ) -> None:
        self.name = "a function"  # of the user
        self._graph = graph
        self.constants = constants
        self.captured = captured
        self.rows: list[InputRow] = []
        self.results: Results
        self.structure = LEAF  # of the arguments
        self.leaves: list[TensorKind | ValueKind | ObjectKind] = []
        self.has_gradients = False
        self.variables: list[UOp] = []  # whose values come with the arguments
        self.read_gradients: list[int] = []  # leaves of the arguments
        self.gradients_in: list[GradientIn] = []
        self.gradients_out: list[tuple[ref[Tensor], Tensor | None]] = []
        self.argument_gradients: list[tuple[int, Tensor | None]] = []
        self.watched: set[Storage] = set()
        self.state = State()
        self.leaves_more = False  # than memory: gradients, views, donated arguments
        # Whether a tensor that the function reached is gone, so that it reaches another now.
        self.is_stale = False
        self._anchors: list[list[ref[Tensor]]] = []
        self._run: NativeRun | GraphRun | None = run

    @property
    def graph(self) -> Graph:
        """The graph; where the program came from disk without it, it is traced now."""
        if not isinstance(self._graph, Graph):
            self._graph = self._graph()
        return self._graph

    def describe(self, arguments: Arguments) -> None:
        """Remember what the arguments of a call are."""
        self.structure = arguments.structure
        self.leaves = [leaf_kind(leaf) for leaf in arguments.leaves]
        self.variables = arguments.variables

    def prepare(self) -> NativeRun | GraphRun:
        """Schedule and compile the graph, unless that is done."""
        if self._run is None:
            self._run = make_run(self.graph, self.constants, self.has_gradients)
        return self._run

    def watch_tensors(self, read: Sequence[tuple[ref[Any], ref[Storage]]]) -> None:
        """Be stale as soon as all tensors of a storage that was captured are gone.

        Then the function, if it ran, would find other tensors instead of them. `read` has those
        that it was seen to reach, and the storage of each; only for what else it captured the
        collector is asked, which does not know of frozen objects.
        """
        fetched = {row.number for row in self.gradients_in}
        watched = [
            storage
            for number, storage in enumerate(self.captured)
            if number not in fetched and not isinstance(storage, RandomState)
        ]
        found: dict[Storage, list[ref[Tensor]]] = {storage: [] for storage in watched}
        seen = {storage() for _, storage in read}
        unseen = [storage for storage in watched if storage not in seen]
        others = gc.get_referrers(*unseen) if unseen else ()
        tensors = [tensor for each, _ in read if (tensor := each()) is not None]
        tensors += [each for each in others if isinstance(each, Tensor)]
        for tensor in tensors:
            left = found.get(tensor._storage)
            if left is not None:
                left.append(ref(tensor, functools.partial(_lose, ref(self), left)))
        self._anchors = list(found.values())
        may_hide = is_frozen()
        self.is_stale = any(
            not left and (storage in seen or not may_hide) for storage, left in found.items()
        )

    @property
    def is_plain(self) -> bool:
        """Whether a call brings no part of a tensor, and no gradient."""
        return not any(row.is_view or row.is_gradient for row in self.rows)

    def fits(self, leaves: list[Any]) -> bool:
        """Whether a call of the program's signature finds all else as the trace did."""
        return self.state.holds() and self.fits_gradients(leaves)

    def fits_gradients(self, leaves: list[Any]) -> bool:
        """Whether tensors have gradients as they had when the function was traced.

        Of an argument this is in the signature, but for gradients that nobody can have any more.
        """
        for leaf in self.read_gradients:
            grad = leaves[leaf]._grad
            if grad is not None and isinstance(grad._storage, GoneStorage):
                return False
        for tensor, kind, _ in self.gradients_in:
            found = tensor()
            grad = None if found is None else found._grad
            if (None if grad is None else gradient_kind(grad)) != kind:
                return False
        return True

    def linked_writes(self, leaves: list[Any]) -> set[Storage]:
        """The storages of arguments whose bits a call writes, or others show that it writes.

        The trace has to see them as what they are, and not as memory of their own.
        """
        linked = [s for row in self.rows if (s := leaves[row.leaf]._storage).is_linked]
        if not linked:
            return set()
        written = {
            leaves[row.leaf]._storage for row in self.rows if row.is_written or row.is_donated
        }
        written |= self.watched
        groups = ((storage, linked_with([storage])) for storage in linked)
        return {
            storage
            for storage, group in groups
            if len(group) > 1 and not written.isdisjoint(group)
        }

    def call(self, leaves: list[Any]) -> Any:
        """Run on the leaves of the arguments, all computed, and return what the function does."""
        inputs = [_input_storage(row, leaves[row.leaf]) for row in self.rows]
        variables: dict[UOp, UOp] = {}
        if self.variables:
            values = values_of(leaves)
            variables = {node: bind(node, values[node.arg[0]]) for node in self.variables}
        finish = self.finish if current() is None else self.finish_watched
        return finish(leaves, inputs, variables)

    def finish_watched(self, leaves: Any, inputs: list[Storage], variables: dict[UOp, UOp]) -> Any:
        """`finish`, and a record of the call in the trace."""
        trace = current()
        if trace is None:  # it ended
            return self.finish(leaves, inputs, variables)
        spent, start = trace.spent, time.perf_counter()
        result = self.finish(leaves, inputs, variables)
        record_call(trace, self.name, start, spent)
        return result

    def finish(self, leaves: Any, inputs: list[Storage], variables: dict[UOp, UOp]) -> Any:
        """Run on the storages of the inputs; `leaves` are the arguments for what is returned."""
        captured = self.captured
        if self.gradients_in:
            captured = self._with_gradients()
        for storage in captured:
            if storage.uop.op != Op.BUFFER:
                realize(captured)
                break
        if tracer.thread and wait_for_trace():
            realize(captured)
        outputs = (self._run or self.prepare()).run(inputs, captured, variables)
        if self.leaves_more:
            self._after(leaves, inputs)
        return self.results.build(leaves, outputs, variables)

    def _with_gradients(self) -> list[Storage]:
        captured = list(self.captured)
        for tensor, _, number in self.gradients_in:
            found = tensor()
            if number is not None and found is not None and found._grad is not None:
                captured[number] = found._grad._storage
        return captured

    def _after(self, leaves: list[Any], inputs: list[Storage]) -> None:
        """What a call leaves behind beside memory: views, gradients, donated arguments."""
        for row, storage in zip(self.rows, inputs, strict=True):
            tensor = leaves[row.leaf]
            if row.is_view and row.is_written:
                shown = tensor._grad if row.is_gradient else tensor
                shown._storage.write(shown._steps, storage.uop)
            if row.is_donated:
                retire(tensor._storage, _DONATED)
        for reference, grad in self.gradients_out:
            if (found := reference()) is not None:
                found._grad = grad
        for leaf, grad in self.argument_gradients:
            leaves[leaf]._grad = grad


def _lose(program: ref[TracedProgram], left: list[ref[Tensor]], gone: ref[Tensor]) -> None:
    left[:] = [each for each in left if each is not gone]
    if not left and (found := program()) is not None:
        found.is_stale = True


def _donated(storage: Storage) -> UsageError:
    return NotSupported(
        "this tensor was donated to a jitted function, and has no value any more",
        rule="a donated argument gives its memory to the result",
        fix="use the result, or leave the argument out of donate=",
    )


_DONATED: Final = Reason("it was donated to a jitted function", _donated)


def leaf_kind(leaf: Any) -> TensorKind | ValueKind | ObjectKind:
    """What is remembered of an argument: nothing that keeps memory or objects alive."""
    if isinstance(leaf, Tensor):
        return TensorKind(leaf.dtype, tuple(map(unbound, leaf.shape)), leaf._wants)
    is_value = isinstance(leaf, (*SCALARS, UOp))
    return ValueKind(unbound(leaf)) if is_value else ObjectKind(type(leaf).__name__)


def gradient_kind(grad: Tensor) -> tuple[Any, ...]:
    if isinstance(grad._storage, GoneStorage):
        return ("gone",)
    storage = grad._storage
    return storage.uop.dtype, shape_of(storage.uop), storage.device, grad._steps


def _input_storage(row: InputRow, leaf: Tensor) -> Storage:
    """The memory that an argument brings; of a view, memory with just its elements."""
    tensor = leaf
    if row.is_gradient:
        assert leaf._grad is not None
        tensor = leaf._grad
    if not row.is_view:
        return tensor._storage
    found = None if row.is_written else _try_part(tensor)
    if found is None:
        node = global_stage(tensor.uop)
        found = Storage(node, tensor.device)
        realize([found])
    return found


def _try_part(tensor: Tensor) -> Storage | None:
    """The memory behind a view that shows one piece of it, without a copy."""
    node = tensor._storage.uop
    shape = shape_of(node)
    is_static = all(isinstance(size, int) for size in (*shape, *tensor.shape))
    if not is_static or not isinstance(tensor.device, str):
        return None
    offset = first_element(shape, tensor._steps)
    if offset is None:
        return None
    assert isinstance(offset, int)
    kind = BufferKind(tensor.dtype, tensor.shape, tensor.device)
    try:
        part = view_buffer(buffer_of(node), offset * tensor.dtype.itemsize, kind.size)
    except NotSupported:  # the device has rules of its own about where a part begins
        return None
    return Storage(kind.holding(part), tensor.device)
