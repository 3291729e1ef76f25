"""A recorded function as a graph over parameters, and where each parameter's memory comes from.

`make_graph` takes what `jit_trace` recorded. The graph names no memory: the slots of its PARAMs
have roles, so that the same graph runs on the memory of every call, and in another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.engine.buffer_nodes import new_buffer
from weft.engine.buffers import buffer_of
from weft.ir.build import param, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import substitute_all, topological
from weft.tensor.jit.trace import Recording
from weft.tensor.storage import Storage, owner_of

INPUT: Final = "input"  # memory of an argument
CAPTURED: Final = "captured"  # memory of a storage that the function reaches by itself
CONSTANT: Final = "constant"  # memory that nobody writes
LOCAL: Final = "local"  # memory that holds nothing between calls
OUTPUT: Final = "output"  # memory that a call makes and gives away


class Role(NamedTuple):
    """What a slot is: a kind, and a number among those of the kind."""

    kind: str
    number: int


class Output(NamedTuple):
    """A storage that every call makes. `donor` is the input whose memory it takes, or None."""

    dtype: DType
    shape: Shape
    device: Any
    donor: int | None


class Graph(NamedTuple):
    """Versions to write and values to return, over PARAMs.

    `values` has None for an output that is written as a version of its own memory.
    """

    roles: tuple[Role, ...]
    parameters: tuple[UOp, ...]
    devices: tuple[Any, ...]
    versions: tuple[UOp, ...]
    values: tuple[UOp | None, ...]
    outputs: tuple[Output, ...]

    def root_slot(self, version: UOp) -> int:
        """The slot of the memory that a version is of."""
        return int(behind(version).arg[0])


class Slots(NamedTuple):
    """What a run does with the memory of a graph; all that it needs beside the programs.

    `locals` has the slots that hold nothing between calls; `written` those of the versions.
    """

    roles: tuple[Role, ...]
    locals: tuple[tuple[int, DType, Shape], ...]
    written: tuple[int, ...]
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, graph: Graph) -> Slots:
        """The slots of a graph."""
        kinds = enumerate(zip(graph.roles, graph.parameters, strict=True))
        return cls(
            graph.roles,
            tuple([(s, n.dtype, shape_of(n)) for s, (role, n) in kinds if role.kind == LOCAL]),
            tuple(dict.fromkeys(map(graph.root_slot, graph.versions))),
            graph.outputs,
        )

    @property
    def room(self) -> int:
        return len(self.roles) + len(self.outputs)


def output_slot(roles: tuple[Role, ...], number: int) -> int:
    """The slot of an output: the memory that was made for it, or one behind all others."""
    own = Role(OUTPUT, number)
    return roles.index(own) if own in roles else len(roles) + number


class Wanted(NamedTuple):
    """An output as it stood when the function returned."""

    storage: Storage
    node: UOp
    donor: int | None


class Made(NamedTuple):
    """A graph, and the memory that it captured."""

    graph: Graph
    captured: list[Storage]
    constants: list[UOp]


class _Maker:
    """Finds the role of all memory in a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.inputs = {each.node: number for number, each in enumerate(recording.inputs)}
        self.captured: list[Storage] = []
        self.constants: list[UOp] = []
        self.locals = 0
        self.own_memory: dict[UOp, int] = {}  # of an output -> its number

    def role(self, node: UOp) -> Role:
        if node in self.own_memory:
            return Role(OUTPUT, self.own_memory[node])
        if node in self.inputs:
            return Role(INPUT, self.inputs[node])
        storage = self.recording.owners.get(node.arg[0]) or owner_of(node)
        if storage is not None and (
            storage in self.recording.known or storage in self.recording.adopted
        ):
            if storage not in self.captured:
                self.captured.append(storage)
            return Role(CAPTURED, self.captured.index(storage))
        if self.is_inside(node) and not _has_contents(node):
            self.locals += 1
            return Role(LOCAL, self.locals - 1)
        self.constants.append(node)
        return Role(CONSTANT, len(self.constants) - 1)

    def is_inside(self, node: UOp) -> bool:
        """Whether memory was made while the function ran."""
        return bool(node.arg[0] > self.recording.first_number)

    def is_own(self, wanted: Wanted) -> bool:
        """Whether an output is written to memory that was made for it, in the trace."""
        memory = wanted.storage.memory
        return (
            wanted.node is wanted.storage.uop
            and wanted.node.op == Op.AFTER
            and memory is not None
            and memory not in self.own_memory
            and self.is_inside(memory)
            and not _has_contents(memory)
            and wanted.donor is None
        )


def make_graph(recording: Recording, wanted: Sequence[Wanted]) -> Made:
    """The graph of a recording whose results are these outputs."""
    maker = _Maker(recording)
    versions = list(recording.written.values())
    values = [_value(each, number, maker, versions) for number, each in enumerate(wanted)]
    _order(versions, [value for value in values if value is not None])
    versions += _kept(recording, values)
    roots = [*versions, *(value for value in values if value is not None)]
    roots = _with_fresh_constants(roots, maker)
    memory = [node for node in topological(*roots) if node.op == Op.BUFFER]
    mapping = {node: param(slot, node.dtype, shape_of(node)) for slot, node in enumerate(memory)}
    roles = tuple([maker.role(node) for node in memory])
    done = substitute_all(roots, mapping)
    rest = iter(done[len(versions) :])
    graph = Graph(
        roles,
        tuple(mapping.values()),
        tuple([node.arg[2] for node in memory]),
        tuple(done[: len(versions)]),
        tuple([None if value is None else next(rest) for value in values]),
        tuple(
            [
                Output(each.node.dtype, shape_of(each.node), each.storage.device, each.donor)
                for each in wanted
            ]
        ),
    )
    return Made(graph, maker.captured, maker.constants)


def _order(versions: list[UOp], values: list[UOp]) -> None:
    """Put versions in the order in which a realize() has them, so that kernels are fused alike."""
    ranks: dict[UOp, int] = {}
    for node in topological(*versions, *values):
        if node.op == Op.AFTER:
            ranks.setdefault(behind(node), len(ranks))
    versions.sort(key=lambda version: ranks[behind(version)])


def _kept(recording: Recording, values: Sequence[UOp | None]) -> list[UOp]:
    """Memory with the values that the function realizes and does not return.

    They are in memory in every call, so the kernels are those of the function itself, and round
    as they do.
    """
    return [
        _filled(new_buffer(node.dtype, shape_of(node), on), node)
        for node, on in recording.realized.items()
        if node.op != Op.BUFFER and node not in values
    ]


def _value(wanted: Wanted, number: int, maker: _Maker, versions: list[UOp]) -> UOp | None:
    """The value to be stored in an output, or None if it is a version of memory it has."""
    if maker.is_own(wanted):
        assert wanted.storage.memory is not None
        maker.own_memory[wanted.storage.memory] = number
        versions.append(wanted.node)
        return None
    if wanted.donor is not None:
        memory = maker.recording.inputs[wanted.donor].node
        versions.append(_filled(memory, wanted.node))
        return None
    return wanted.node


def _filled(memory: UOp, value: UOp) -> UOp:
    """Memory after a value has been written to all of it."""
    written = make(Op.STORE, dtypes.void, (memory, value))
    return make(Op.AFTER, memory.dtype, (memory, written))


def _with_fresh_constants(roots: list[UOp], maker: _Maker) -> list[UOp]:
    """Let every call write to a copy of data that the function made, never to the data itself."""
    versions = [node for node in topological(*roots) if node.op == Op.AFTER]
    bases = dict.fromkeys([node.src[0] for node in versions if node.src[0].op == Op.BUFFER])
    fresh = {
        base: _filled(new_buffer(base.dtype, shape_of(base), base.arg[2]), base)
        for base in bases
        if maker.is_inside(base) and _has_contents(base) and not _is_adopted(base, maker)
    }
    return substitute_all(roots, fresh)


def _is_adopted(node: UOp, maker: _Maker) -> bool:
    return owner_of(node) in maker.recording.adopted


def _has_contents(node: UOp) -> bool:
    return buffer_of(node).has_contents


def body_of(graph: Graph) -> UOp:
    """All of a graph as one SINK; outputs have the slots behind the memory, in their order."""
    first = len(graph.roles)
    stores = [
        store(param(first + number, output.dtype, output.shape), value)
        for number, (value, output) in enumerate(zip(graph.values, graph.outputs, strict=True))
        if value is not None
    ]
    # What nobody reads after the run is stored like an output.
    versions = [
        version.src[1]
        if version.src[0].op == Op.PARAM and graph.roles[graph.root_slot(version)].kind == LOCAL
        else version
        for version in graph.versions
    ]
    return make(Op.SINK, dtypes.void, (*versions, *stores))
