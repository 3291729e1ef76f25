"""Runs a recorded graph on the storages of a call, in one of two ways.

`NativeRun` takes graphs that run on one device: the schedule was made once, memory is exchanged
slot by slot, values of symbolic sizes by name, and on CPU the run is one native call. `GraphRun`
takes all others: it runs what was planned for several devices, or, for the interpreter and sizes
that vary, puts the memory of the call into the graph and realizes it, as if the function had built
it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Final

from weft.engine.bindings import give_bindings
from weft.engine.buffer_nodes import BufferKind, hand_over, new_buffer
from weft.engine.buffers import BUFFERS, Buffer, buffer_of
from weft.engine.devices import device, is_file
from weft.engine.replay import Replay
from weft.engine.run import Prepared
from weft.ir.build import global_stage
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make_unique
from weft.ir.walk import substitute, substitute_all, topological
from weft.support.settings import settings
from weft.tensor.autodiff.history import forget_overwritten
from weft.tensor.jit.graph import CAPTURED, CONSTANT, INPUT, Graph, Slots, body_of, output_slot
from weft.tensor.jit.parts import PartsRun
from weft.tensor.realize import realize
from weft.tensor.storage import Storage, readers_of

Variables = dict[UOp, UOp]
# Graphs that hold one of these are not a program of one device.
_ANEW: Final = 1 << Op.COPY | 1 << Op.SHARD
_SIZES: Final = 1 << Op.BIND | 1 << Op.VARIABLE


class NativeRun:
    """A graph on one device, with all of its memory but that of the call.

    `work` is the graph as one SINK, or what another process prepared of it.
    """

    def __init__(
        self,
        slots: Slots,
        work: UOp | Prepared,
        name: str,
        constants: Sequence[UOp],
        hides: bool,
    ) -> None:
        self.slots = slots
        self.device = name
        self._hides = hides
        self.replay = Replay(work, name, slots.room)
        self._memory: list[Any] = [None] * slots.room
        self._keep = list(constants)
        roles = list(enumerate(slots.roles))
        for slot, role in roles:
            if role.kind == CONSTANT:
                self._memory[slot] = buffer_of(constants[role.number])
        self._locals = [
            (slot, BufferKind(dtype, shape, name)) for slot, dtype, shape in slots.locals
        ]
        self._inputs = [(slot, role.number) for slot, role in roles if role.kind == INPUT]
        self._captured = [(slot, role.number) for slot, role in roles if role.kind == CAPTURED]
        self._outputs = [
            (
                output_slot(slots.roles, number),
                BufferKind(each.dtype, each.shape, name),
                each.donor,
            )
            for number, each in enumerate(slots.outputs)
        ]
        # Memory of the call that is written in place; an array may be reading it.
        self._written_slots = [
            slot for slot in slots.written if slots.roles[slot].kind in (INPUT, CAPTURED)
        ]
        written = [slots.roles[slot] for slot in self._written_slots]
        self._donors = [each.donor for each in slots.outputs if each.donor is not None]
        self._written_inputs = [
            role.number
            for role in written
            if role.kind == INPUT and role.number not in self._donors
        ]
        self._written_captured = [role.number for role in written if role.kind == CAPTURED]
        self._writes = bool(written)

    def run(
        self, inputs: Sequence[Storage], captured: Sequence[Storage], variables: Variables
    ) -> list[Storage]:
        """Run on computed storages; the storages of the outputs, in their order."""
        memory = self._memory.copy()
        for slot, number in self._inputs:
            memory[slot] = BUFFERS[inputs[number].uop.arg[0]]
        for slot, number in self._captured:
            memory[slot] = BUFFERS[captured[number].uop.arg[0]]
        seen = None
        if self._writes:
            seen = self._seen(inputs, captured)
            for slot in self._written_slots:
                memory[slot].prepare_write()
        values: dict[str, int] | None = None
        if variables:
            values = {each.arg[0]: int(bound.src[1].arg) for each, bound in variables.items()}
        outputs = []
        for slot, kind, donor in self._outputs:
            if donor is None:
                size = kind.size if values is None else kind.size_for(values)
                memory[slot] = fresh = Buffer(kind.device, size)
                fresh.hides_graph = self._hides
                node = kind.holding(fresh, variables) if variables else kind.holding(fresh)
                outputs.append(Storage.over(node, self.device))
        for slot, kind in self._locals:
            size = kind.size if values is None else kind.size_for(values)
            memory[slot] = Buffer(kind.device, size)
        try:
            if values is None:
                self.replay.run(memory)
            else:
                self.replay.run(memory, values)
        finally:
            for slot, _ in self._locals:
                memory[slot].free()
        if seen:
            before = [storage.uop for storage in seen]
            for storage in seen:
                storage.take_over(hand_over(storage.uop))
            forget_overwritten(before)
        return self._with_donated(outputs, inputs) if self._donors else outputs

    def _seen(self, inputs: Sequence[Storage], captured: Sequence[Storage]) -> list[Storage]:
        """The storages that are written and whose node others hold: that becomes another node.

        What is lazy and reads such memory is computed first, because its line ran before.
        """
        seen = [
            inputs[number]
            for number in self._written_inputs
            if _references(inputs[number]) > _UNSEEN
        ]
        seen += [
            captured[number]
            for number in self._written_captured
            if _references(captured[number]) > _UNSEEN
        ]
        taken = [*seen, *(inputs[donor] for donor in self._donors)]
        if taken and (readers := readers_of([storage.uop for storage in taken])):
            realize(readers)
        return seen

    def _with_donated(self, made: list[Storage], inputs: Sequence[Storage]) -> list[Storage]:
        """All outputs in order, with those that take over the memory of an argument."""
        rest = iter(made)
        taken = {donor: hand_over(inputs[donor].uop) for donor in self._donors}
        return [
            next(rest) if donor is None else Storage.over(taken[donor], self.device)
            for _, _, donor in self._outputs
        ]


def _references(storage: Storage) -> int:
    return getrefcount(storage.uop)


# What is counted of a node that only its storage holds; interpreters count differently.
_UNSEEN: Final = _references(
    Storage.over(make_unique(Op.BUFFER, dtypes.void, (), (-1, (), "")), "")
)


class GraphRun:
    """A graph that is realized anew in every call, with other memory in it.

    Unless `parts` can run it: then the realize was planned once.
    """

    def __init__(
        self, graph: Graph, constants: Sequence[UOp], hides: bool, parts: PartsRun | None = None
    ) -> None:
        self._parts = parts
        self._graph = graph
        self._hides = hides
        self._constants = list(constants)

    def run(
        self, inputs: Sequence[Storage], captured: Sequence[Storage], variables: Variables
    ) -> list[Storage]:
        if self._parts is not None:
            found = self._parts.try_run(inputs, captured)
            if found is not None:
                return found
            self._parts = None
        owners, nodes = self._memory(inputs, captured, variables)
        graph = self._graph
        outputs: dict[int, Storage] = {}
        for number, (value, each) in enumerate(zip(graph.values, graph.outputs, strict=True)):
            if value is not None:
                node = give_bindings(substitute(value, nodes), variables)
                if node.op == Op.BUFFER:
                    node = global_stage(node)
                outputs[number] = Storage(node, each.device)
                outputs[number].keeps_graph = False
        written = [owners[graph.root_slot(version)] for version in graph.versions]
        versions = [
            give_bindings(version, variables) for version in substitute_all(graph.versions, nodes)
        ]
        for storage, version in zip(written, versions, strict=True):
            storage.set_version(version)
        realize([*written, *outputs.values()])
        for number, each in enumerate(graph.outputs):
            if each.donor is not None:
                outputs[number] = Storage.over(hand_over(inputs[each.donor].uop), each.device)
            elif number not in outputs:
                outputs[number] = owners[output_slot(graph.roles, number)]
            buffer_of(outputs[number].uop).hides_graph = self._hides
        return [outputs[number] for number in range(len(graph.outputs))]

    def _memory(
        self, inputs: Sequence[Storage], captured: Sequence[Storage], variables: Variables
    ) -> tuple[dict[int, Storage], dict[UOp, UOp]]:
        """The storage of each slot that has one, and what stands for each parameter."""
        graph = self._graph
        owners: dict[int, Storage] = {}
        nodes: dict[UOp, UOp] = dict(variables)
        for slot, (role, parameter) in enumerate(zip(graph.roles, graph.parameters, strict=True)):
            if role.kind == CONSTANT:
                nodes[parameter] = self._constants[role.number]
                continue
            if role.kind == INPUT:
                owners[slot] = inputs[role.number]
            elif role.kind == CAPTURED:
                owners[slot] = captured[role.number]
            else:
                shape = [
                    size if isinstance(size, int) else substitute(size, variables)
                    for size in shape_of(parameter)
                ]
                fresh = new_buffer(parameter.dtype, shape, graph.devices[slot])
                owners[slot] = Storage(fresh, graph.devices[slot])
            nodes[parameter] = owners[slot].uop
        return owners, nodes


def make_run(graph: Graph, constants: Sequence[UOp], hides: bool) -> NativeRun | GraphRun:
    """The quickest way to run a graph that is right for it.

    `hides` says that somebody may want gradients of what the function read.
    """
    names = {*graph.devices, *(each.device for each in graph.outputs)}
    ops = 0
    for root in (*graph.versions, *(value for value in graph.values if value is not None)):
        ops |= root.ops
    name = next(iter(names)) if len(names) == 1 else None
    is_plain = not (ops & _ANEW or settings.CHECK == "levels")
    if not isinstance(name, str) or not is_plain or device(name).graphs is not None:
        is_taped = not (ops & _SIZES or settings.CHECK == "levels" or _has_files(graph))
        parts = PartsRun(graph, constants, hides) if is_taped else None
        return GraphRun(graph, constants, hides, parts)
    return NativeRun(Slots.of(graph), body_of(graph), name, constants, hides)


def _has_files(graph: Graph) -> bool:
    roots = (*graph.versions, *(value for value in graph.values if value is not None))
    copies = [node.arg for node in topological(*roots) if node.op == Op.COPY]
    devices = [*graph.devices, *(each.device for each in graph.outputs), *copies]
    return any(map(is_file, devices))


def view_buffer(buffer: Buffer, offset: int, size: int) -> Buffer:
    """A part of some memory as memory of its own, which frees nothing."""
    part = Buffer(buffer.device, size)
    part.handle = buffer.device.view(buffer.allocated(), offset, max(size, 1))
    part.keep = buffer
    return part
