"""The program of an exported function, made of a header and blocks of which nothing is believed.

Each part is checked against the others before memory is made or code is generated: parameters
against what their roles say, versions and values against the outputs, contents against their
shapes, results against what they are views of. `RefusedError` says what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.engine.contents import buffer_from
from weft.export.container import CONTAINER_KEYS
from weft.export.describe import StateView, plan_of
from weft.export.header import Decoder, Kind, require_int, require_list, require_text
from weft.export.sizes import RefusedError
from weft.export.verify import base_of, verified
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, same_shape, shape_of
from weft.ir.text import parse
from weft.ir.uop import UOp
from weft.ir.walk import bodies, topological
from weft.tensor.jit.graph import CAPTURED, CONSTANT, INPUT, LOCAL, OUTPUT, Graph, Output, Role
from weft.tensor.jit.program import InputRow, TensorKind, TracedProgram
from weft.tensor.jit.results import FromOutput, ResultPlan, Results
from weft.tensor.storage import Storage
from weft.tensor.trees import Structure

_KINDS: Final = (INPUT, CAPTURED, CONSTANT, LOCAL, OUTPUT)
_KEYS: Final = CONTAINER_KEYS.union(
    ("name", "names", "arguments", "leaves", "rows", "results", "recipes", "device", "memory"),
    ("captured", "roles", "versions", "outputs"),
)


class Checked(NamedTuple):
    """The parts of a file, as they are once they fit each other."""

    name: str
    names: list[str]
    structure: Structure
    leaves: list[Any]
    rows: list[InputRow]
    variables: list[UOp]
    graph: Graph
    memory: list[Kind]
    captured: int
    results: Structure
    plans: list[ResultPlan | StateView]


class Loader:
    """Reads one file. `device` is where it will run."""

    def __init__(self, header: dict[str, Any], blocks: Sequence[bytes], device: str) -> None:
        if header.keys() != _KEYS:
            wrong = sorted(map(str, header.keys() ^ _KEYS))
            raise RefusedError(f"the header lacks or does not know {', '.join(wrong)[:200]}")
        self._header = header
        self._blocks = blocks
        self._device = device
        self._decoder = Decoder()
        self._sizes = self._decoder.sizes

    def check(self) -> Checked:
        """All parts, which fit each other; raises RefusedError. No memory is made."""
        decoder = self._decoder
        structure = decoder.structure(self._header["arguments"])
        leaves = [decoder.leaf(leaf) for leaf in require_list(self._header["leaves"])]
        _require_arguments(structure, len(leaves))
        names = [require_text(name) for name in require_list(self._header["names"])]
        if len(names) != len(leaves):
            raise RefusedError("expected a name for each argument")
        inputs = [(leaf.dtype, leaf.shape) for leaf in leaves if isinstance(leaf, TensorKind)]
        given = dict(self._sizes.variables)
        memory, captured = self._memory_kinds()
        graph = self._graph(inputs, memory[:captured], memory[captured:])
        rows = rows_of(graph, leaves)
        if self._header["rows"] != [list(row) for row in rows]:
            raise RefusedError("the rows of the arguments are not those of the graph")
        results, plans = self._results(leaves, graph, memory[:captured])
        self._require_known_variables(graph, given)
        variables = list(given.values())
        return Checked(
            require_text(self._header["name"]), names, structure, leaves, rows, variables,
            graph, memory, captured, results, plans,
        )  # fmt: skip

    def program(self, parts: Checked) -> TracedProgram:
        """The program of parts that were checked, with its memory."""
        storages, constants = self._make_memory(parts.memory, parts.captured)
        program = TracedProgram(parts.graph, constants, storages)
        program.name = parts.name
        plans = tuple([plan_of(each, storages) for each in parts.plans])
        program.results = Results(parts.results, plans)
        program.structure, program.leaves = parts.structure, parts.leaves
        program.variables, program.rows = parts.variables, parts.rows
        program.leaves_more = any(row.is_donated or row.is_written for row in parts.rows)
        return program

    def _make_memory(self, kinds: list[Kind], captured: int) -> tuple[list[Storage], list[UOp]]:
        """What is captured, and constants, with their contents; the last step."""
        nodes = [
            buffer_from(dtype, shape, self._device, memoryview(data))
            for (dtype, shape), data in zip(kinds, self._blocks[1:], strict=True)
        ]
        return [Storage(node, self._device) for node in nodes[:captured]], nodes[captured:]

    def _memory_kinds(self) -> tuple[list[Kind], int]:
        """The dtype and shape of all memory of the file, and how many of them are captured."""
        found = []
        for entry in require_list(self._header["memory"]):
            kind, shape = require_list(entry, 2)
            dtype, sizes = self._decoder.dtype(kind), self._decoder.shape(shape)
            if any(isinstance(size, UOp) for size in sizes):
                raise RefusedError("contents have a symbolic shape")
            found.append((dtype, sizes))
        if len(self._blocks) != 1 + len(found):
            raise RefusedError(f"there are {len(self._blocks)} blocks for {len(found)} tensors")
        for (dtype, sizes), block in zip(found, self._blocks[1:], strict=True):
            if len(block) != largest_size(sizes) * dtype.itemsize:
                raise RefusedError(f"a block has {len(block)} bytes for {dtype.name} of {sizes}")
        captured = require_int(self._header["captured"], len(found) + 1)
        return found, captured

    def _graph(
        self, inputs: Sequence[Kind], captured: Sequence[Kind], constants: Sequence[Kind]
    ) -> Graph:
        outputs = []
        is_value = []
        for entry in require_list(self._header["outputs"]):
            kind, shape, donor, has_value = require_list(entry, 4)
            dtype, sizes = self._decoder.dtype(kind), self._decoder.shape(shape)
            if donor is not None:
                require_int(donor, len(inputs))
            outputs.append(Output(dtype, sizes, self._device, donor))
            is_value.append(has_value is True)
        roles = tuple(_role(entry) for entry in require_list(self._header["roles"]))
        if len(set(roles)) != len(roles):
            raise RefusedError("two parameters are the same memory")
        root = verified(parse(self._blocks[0].decode(), "the graph"), self._sizes)
        first = len(roles)
        last = first + require_int(self._header["versions"], len(root.src) + 1)
        if len(root.src) != last + sum(is_value):
            raise RefusedError("the graph has not as many values as the header says")
        rest = iter(root.src[last:])
        graph = Graph(
            roles,
            root.src[:first],
            (self._device,) * first,
            root.src[first:last],
            tuple([next(rest) if has_value else None for has_value in is_value]),
            tuple(outputs),
        )
        declared: dict[str, Sequence[Kind]] = {
            INPUT: inputs,
            CAPTURED: captured,
            CONSTANT: constants,
            OUTPUT: [(each.dtype, each.shape) for each in outputs],
        }
        _require_parameters(graph, declared)
        _require_versions(graph)
        _require_outputs(graph, inputs)
        return graph

    def _results(
        self, leaves: Sequence[Any], graph: Graph, captured: Sequence[Kind]
    ) -> tuple[Structure, list[ResultPlan | StateView]]:
        """The structure of what is returned, and how its leaves are made."""
        structure = self._decoder.structure(self._header["results"])
        outputs = [(each.dtype, each.shape) for each in graph.outputs]
        plans = [
            self._decoder.plan(entry, leaves, outputs, captured)
            for entry in require_list(self._header["recipes"])
        ]
        if len(plans) != count_leaves(structure):
            raise RefusedError("expected a description of each result")
        for number, plan in enumerate(plans):
            if isinstance(plan, FromOutput) and plan.twin is not None:
                twin = plans[require_int(plan.twin, number)]
                if not isinstance(twin, FromOutput) or twin.output != plan.output:
                    raise RefusedError("a result is the same as another one, and of other memory")
        return structure, plans

    def _require_known_variables(self, graph: Graph, given: dict[str, UOp]) -> None:
        """The values of all variables come with the arguments, or are bound."""
        roots = [*graph.versions, *(value for value in graph.values if value is not None)]
        sizes = [size for output in graph.outputs for size in output.shape]
        scopes = [*roots, *bodies(*roots), *(size for size in sizes if isinstance(size, UOp))]
        scopes += self._decoder.result_sizes
        for node in topological(*scopes, enter=lambda node: node.op != Op.BIND):
            if node.op == Op.VARIABLE and given.get(node.arg[0]) is not node:
                raise RefusedError(f"no argument says what {node.arg[0]!r} is")


def _require_arguments(structure: Structure, leaves: int) -> None:
    is_call = structure.kind is tuple and [part.kind for part in structure.parts] == [tuple, dict]
    if not is_call or any(type(name) is not str for name in structure.parts[1].names):
        raise RefusedError("the arguments are not positions and names")
    if count_leaves(structure) != leaves:
        raise RefusedError("the structure of the arguments has not as many leaves as there are")


def _role(entry: Any) -> Role:
    kind, number = require_list(entry, 2)
    if kind not in _KINDS:
        raise RefusedError(f"expected a role of memory, got {str(kind)[:40]}")
    return Role(kind, require_int(number))


def _require_parameters(graph: Graph, declared: dict[str, Sequence[Kind]]) -> None:
    """Every parameter is what its role says, and there are no others."""
    for slot, (role, node) in enumerate(zip(graph.roles, graph.parameters, strict=True)):
        if node.op != Op.PARAM or node.arg[0] != slot:
            raise RefusedError(f"the graph does not begin with PARAM {slot}")
        if role.kind == LOCAL:
            continue
        kinds = declared[role.kind]
        if role.number >= len(kinds):
            raise RefusedError(f"there is no {role.kind} {role.number} for PARAM {slot}")
        dtype, shape = kinds[role.number]
        if node.dtype is not dtype or not same_shape(shape_of(node), shape):
            raise RefusedError(
                f"PARAM {slot} is {node.dtype.name} of {shape_of(node)} in the graph, "
                f"and {role.kind} {role.number} is {dtype.name} of {shape}"
            )
    known = set(graph.parameters)
    roots = [*graph.versions, *(value for value in graph.values if value is not None)]
    for node in topological(*roots):
        if node.op == Op.PARAM and node not in known:
            raise RefusedError(
                f"the graph has a PARAM {node.arg[0]} that is not among its parameters"
            )


def _require_versions(graph: Graph) -> None:
    """What is written is memory that may be, in one row of versions whose last one is listed."""
    if any(version.op != Op.AFTER for version in graph.versions):
        raise RefusedError("expected a version that is a write to memory")
    roots = [*graph.versions, *(value for value in graph.values if value is not None)]
    following: dict[UOp, UOp] = {}  # of each version, the next one
    for node in topological(*roots):
        if node.op != Op.AFTER:
            continue
        if graph.roles[base_of(node).arg[0]].kind == CONSTANT:
            raise RefusedError("a constant is written")
        if following.setdefault(node.src[0], node) is not node:
            raise RefusedError("two versions of memory follow one")
    written = list(map(graph.root_slot, graph.versions))
    if len(set(written)) != len(written):
        raise RefusedError("memory has two last versions")
    for node in following.values():
        role = graph.roles[base_of(node).arg[0]]
        is_last = node not in following
        if is_last and node not in graph.versions and role.kind != LOCAL:
            raise RefusedError(f"{role.kind} {role.number} is written, and no version says so")
        if not is_last and node in graph.versions:
            raise RefusedError("the last version of memory is followed by another one")


def _require_outputs(graph: Graph, inputs: Sequence[Kind]) -> None:
    """Every output has one source: a value, memory of its own, or the memory of an argument."""
    written = {graph.roles[graph.root_slot(version)] for version in graph.versions}
    donors = [output.donor for output in graph.outputs if output.donor is not None]
    if len(set(donors)) != len(donors):
        raise RefusedError("two outputs take the memory of one argument")
    for number, (value, output) in enumerate(zip(graph.values, graph.outputs, strict=True)):
        own = Role(OUTPUT, number)
        sources = [value is not None, own in graph.roles, output.donor is not None]
        if sum(sources) != 1:
            raise RefusedError(f"output {number} has {sum(sources)} sources")
        if value is not None:
            found: Kind = value.dtype, shape_of(value)
        elif output.donor is not None:
            found = inputs[output.donor]
            own = Role(INPUT, output.donor)
        else:
            found = output.dtype, output.shape
        if value is None and own not in written:
            raise RefusedError(f"output {number} is not written")
        if found[0] is not output.dtype or not same_shape(found[1], output.shape):
            raise RefusedError(
                f"output {number} is {found[0].name} of {found[1]} in the graph, "
                f"and {output.dtype.name} of {output.shape} in the header"
            )


def rows_of(graph: Graph, leaves: Sequence[Any]) -> list[InputRow]:
    """What a call does with each tensor among its arguments, as the graph has it."""
    tensors = [n for n, leaf in enumerate(leaves) if isinstance(leaf, TensorKind)]
    written = {graph.roles[graph.root_slot(version)] for version in graph.versions}
    donors = {output.donor for output in graph.outputs}
    return [
        InputRow(
            leaf,
            is_gradient=False,
            is_view=False,
            is_written=Role(INPUT, number) in written and number not in donors,
            is_donated=number in donors,
        )
        for number, leaf in enumerate(tensors)
    ]


def count_leaves(structure: Structure) -> int:
    if structure.kind is None:
        return 1
    return sum(count_leaves(part) for part in structure.parts)
