"""Runs a recorded graph over several devices: planned once, on a tape, and replayed from it.

`jit_run` makes a `PartsRun` for graphs that are not a program of one device. What a realize of the
graph would do to memory is written to a tape, and every call does that to its own memory. A call
whose memory has other layouts makes another tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.engine.buffer_nodes import BufferKind, hand_over, new_buffer
from weft.engine.buffers import Buffer, buffer_of, parts_of
from weft.engine.realize import realize as realize_graphs
from weft.engine.replay import TapeRun
from weft.engine.request import Request
from weft.engine.tape import NotTapedError, Tape
from weft.ir.build import global_stage
from weft.ir.layouts import layout_of
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, substitute_all
from weft.tensor.autodiff.history import forget_overwritten
from weft.tensor.jit.graph import CAPTURED, CONSTANT, INPUT, LOCAL, Graph, output_slot
from weft.tensor.realize import realize
from weft.tensor.storage import Storage, placement_of, readers_of


class _Taped(NamedTuple):
    """The steps for memory in these placements, and what is made for each value."""

    run: TapeRun
    placements: list[Any]
    values: list[BufferKind]


class PartsRun:
    """A graph over several devices, with all of its memory but that of the call."""

    def __init__(self, graph: Graph, constants: Sequence[UOp], hides: bool) -> None:
        self._graph = graph
        self._hides = hides
        self._taped: _Taped | None = None
        self._fixed: dict[int, UOp] = {}  # by slot: memory that is the same in every call
        for slot, (role, node) in enumerate(zip(graph.roles, graph.parameters, strict=True)):
            if role.kind == CONSTANT:
                self._fixed[slot] = constants[role.number]
            elif role.kind == LOCAL:
                self._fixed[slot] = new_buffer(node.dtype, shape_of(node), graph.devices[slot])
        self._written = list(dict.fromkeys(map(graph.root_slot, graph.versions)))

    def try_run(
        self, inputs: Sequence[Storage], captured: Sequence[Storage]
    ) -> list[Storage] | None:
        """Run on computed storages; None if what is to be done cannot be written to a tape."""
        written = self._written_storages(inputs, captured)
        if written and (readers := readers_of([storage.uop for storage in written])):
            realize(readers)  # their lines ran before
        nodes = [self._node(slot, inputs, captured) for slot in range(len(self._graph.roles))]
        placements = [node.arg[2] for node in nodes]
        if self._taped is None or self._taped.placements != placements:
            self._taped = self._try_tape(placements)
        if self._taped is None:
            return None
        made = [kind.new() for kind in self._taped.values]
        self._taped.run.run(_buffers([*nodes, *made]))
        before = [storage.uop for storage in written]
        donors = [inputs[each.donor] for each in self._graph.outputs if each.donor is not None]
        for storage in written:
            if storage not in donors:
                storage.take_over(hand_over(storage.uop))
        forget_overwritten(before)
        return self._outputs(nodes, made, inputs)

    def _node(self, slot: int, inputs: Sequence[Storage], captured: Sequence[Storage]) -> UOp:
        """The memory of a slot in this call."""
        if slot in self._fixed:
            return self._fixed[slot]
        role, node = self._graph.roles[slot], self._graph.parameters[slot]
        if role.kind in (INPUT, CAPTURED):
            return (inputs if role.kind == INPUT else captured)[role.number].uop
        return new_buffer(node.dtype, shape_of(node), self._graph.devices[slot])

    def _written_storages(
        self, inputs: Sequence[Storage], captured: Sequence[Storage]
    ) -> list[Storage]:
        roles = [self._graph.roles[slot] for slot in self._written]
        return [
            (inputs if role.kind == INPUT else captured)[role.number]
            for role in roles
            if role.kind in (INPUT, CAPTURED)
        ]

    def _outputs(
        self, nodes: list[UOp], made: list[UOp], inputs: Sequence[Storage]
    ) -> list[Storage]:
        """The storages that the call gives away."""
        values = iter(made)
        outputs: list[Storage] = []
        for number, (value, each) in enumerate(
            zip(self._graph.values, self._graph.outputs, strict=True)
        ):
            if each.donor is not None:
                node = hand_over(inputs[each.donor].uop)
            elif value is not None:
                node = next(values)
            else:
                node = nodes[output_slot(self._graph.roles, number)]
            buffer_of(node).hides_graph = self._hides
            outputs.append(Storage.over(node, each.device))
        return outputs

    def _try_tape(self, placements: list[Any]) -> _Taped | None:
        """The steps of the graph, planned on memory that is never used."""
        graph = self._graph
        placeholders = [
            new_buffer(node.dtype, shape_of(node), placement)
            for node, placement in zip(graph.parameters, placements, strict=True)
        ]
        given = _buffers(placeholders)
        nodes = dict(zip(graph.parameters, placeholders, strict=True))
        versions = substitute_all(graph.versions, nodes)
        values: list[UOp] = []
        for value, each in zip(graph.values, graph.outputs, strict=True):
            if value is not None:
                node = _placed(substitute(value, nodes), each.device)
                if node is None:
                    return None
                while node.op == Op.BUFFER or node in (*versions, *values):
                    node = global_stage(node)
                values.append(node)
        tape = Tape()
        try:
            made = realize_graphs(Request([*versions, *values]), (), tape)
        except NotTapedError:
            return None
        results = [made[node] for node in values]
        kinds = [BufferKind(node.dtype, shape_of(node), node.arg[2]) for node in results]
        return _Taped(TapeRun(tape, [*given, *_buffers(results)]), placements, kinds)


def _placed(node: UOp, device: Any) -> UOp | None:
    """A value that says where it is computed; None where it cannot."""
    if isinstance(device, str):
        return node if node.ops & (1 << Op.BUFFER | 1 << Op.COPY) else None
    if layout_of(node) is None:
        return make(Op.SHARD, node.dtype, (node,), placement_of(node, device))
    return node


def _buffers(nodes: Sequence[UOp]) -> list[Buffer]:
    """The memory of nodes, part by part."""
    found: list[Buffer] = []
    for node in nodes:
        parts = (node,) if isinstance(node.arg[2], str) else parts_of(node)
        found += [buffer_of(part) for part in parts]
    return found
