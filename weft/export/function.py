"""Jitted functions as files: `save_function` writes one, `load_function` makes it callable again.

A file holds the graph as text, the contents of what the function captured, and how arguments and
results are laid out. A process that loads it needs neither the source nor the device that the
function was traced on. What the function writes between calls is the state of the loaded one.
"""

from __future__ import annotations

import os
import types
from typing import Any

from weft.engine.contents import buffer_from, read_bytes
from weft.engine.devices import canonical_name
from weft.export.container import read_container, write_container
from weft.export.describe import (
    leaf_from_json,
    leaf_to_json,
    recipe_from_json,
    recipe_to_json,
    shape_from_json,
    shape_to_json,
    structure_from_json,
    structure_to_json,
)
from weft.export.loaded import LoadedFunction
from weft.ir.dtypes import by_name, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump, parse
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentTypeError, FileFormatError, NotSupported
from weft.tensor.jit.graph import Graph, Output, Role
from weft.tensor.jit.jit import Jit
from weft.tensor.jit.program import InputRow, Program, TensorKind
from weft.tensor.jit.results import FromOutside, Results
from weft.tensor.jit.signature import argument_names
from weft.tensor.storage import Storage, realize


def save_function(jitted: Any, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write a jitted function to a file that `load_function` reads in any later process.

    A function has a trace for each signature. The arguments choose one, which is traced if it is
    new; nothing runs. They may be left out where there is only one.

    >>> import os, tempfile
    >>> from weft import Tensor, jit, load_function, save_function
    >>> path = os.path.join(tempfile.mkdtemp(), "double.weft")
    >>> save_function(jit(lambda x: x * 2), path, Tensor([1, 2]))
    >>> load_function(path)(Tensor([3, 4])).tolist()
    [6, 8]
    """
    if isinstance(jitted, types.MethodType):
        args = (jitted.__self__, *args) if args or kwargs else args
        jitted = jitted.__func__
    if not isinstance(jitted, Jit):
        raise ArgumentTypeError(
            f"save_function: a {type(jitted).__name__} is not jitted",
            law="a function is exported as its trace",
            fix="save_function(jit(f), path, *arguments)",
        )
    program = _chosen(jitted, args, kwargs)
    _require_exportable(program)
    realize(program.captured)
    memory = [*(storage.uop for storage in program.captured), *program.constants]
    text = dump(_all_of(program.graph)).encode()
    header = _header(jitted, program, memory)
    write_container(path, header, [text, *(bytes(read_bytes(node)) for node in memory)])


def _header(jitted: Jit, program: Program, memory: list[UOp]) -> dict[str, Any]:
    results = program.results
    return {
        "name": getattr(jitted, "__name__", "function"),
        "names": argument_names(jitted.function, program.structure),
        "arguments": structure_to_json(program.structure),
        "leaves": [leaf_to_json(leaf) for leaf in program.leaves],
        "variables": [dump(node) for node in program.variables],
        "rows": [list(row) for row in program.rows],
        "results": structure_to_json(results.structure),
        "recipes": [recipe_to_json(each, program.captured) for each in results.recipes],
        "memory": [_memory_to_json(node) for node in memory],
        "captured": len(program.captured),
        **_graph_to_json(program.graph),
    }


def _memory_to_json(node: UOp) -> Any:
    return [node.dtype.name, shape_to_json(shape_of(node)), node.arg[2]]


def _chosen(jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    if args or kwargs:
        return jitted.program_for(args, kwargs)[1]
    if len(jitted.programs) != 1:
        raise ArgumentTypeError(
            f"save_function: {jitted!r} has no single trace to save",
            law="a file holds one trace",
            fix="name it by arguments like those of a call: save_function(f, path, x, y)",
        )
    return jitted.programs[0]


def _require_exportable(program: Program) -> None:
    """A file cannot hold what only this process knows."""
    tensors = [n for n, leaf in enumerate(program.leaves) if isinstance(leaf, TensorKind)]
    problem = ""
    places = [*program.graph.devices, *(each.device for each in program.graph.outputs)]
    if any(not isinstance(place, str) for place in places):
        problem = "takes or returns tensors that lie on several devices"
    elif program.gradients_in or any(row.is_gradient for row in program.rows):
        problem = "reads gradients from outside"
    elif [row.leaf for row in program.rows] != tensors:
        problem = "has arguments that share memory with each other, or with a captured tensor"
    elif any(
        isinstance(each, FromOutside) and each.storage not in program.captured
        for each in program.results.recipes
    ):
        problem = "returns a tensor from outside that it does not use"
    if problem:
        raise NotSupported(
            f"save_function: the function {problem}",
            law="an exported function has arguments that are apart, on one device each, and"
            " returns what it computes",
        )


def _all_of(graph: Graph) -> UOp:
    values = [value for value in graph.values if value is not None]
    return make(Op.TUPLE, dtypes.void, (*graph.parameters, *graph.versions, *values))


def _graph_to_json(graph: Graph) -> dict[str, Any]:
    return {
        "roles": [list(role) for role in graph.roles],
        "devices": list(graph.devices),
        "versions": len(graph.versions),
        "is_value": [value is not None for value in graph.values],
        "outputs": [
            [each.dtype.name, shape_to_json(each.shape), each.device, each.donor]
            for each in graph.outputs
        ],
    }


def _graph(header: dict[str, Any], text: str, device: str | None) -> Graph:
    nodes = parse(text).src
    roles = tuple(Role(kind, number) for kind, number in header["roles"])
    first, last = len(roles), len(roles) + header["versions"]
    rest = iter(nodes[last:])
    return Graph(
        roles,
        tuple(nodes[:first]),
        tuple(device or name for name in header["devices"]),
        tuple(nodes[first:last]),
        tuple(next(rest) if is_value else None for is_value in header["is_value"]),
        tuple(
            Output(by_name(name), shape_from_json(shape), device or own, donor)
            for name, shape, own, donor in header["outputs"]
        ),
    )


def load_function(path: str | os.PathLike[str], device: str | None = None) -> LoadedFunction:
    """Read a function that `save_function` wrote; `device` is another one to run it on."""
    header, blocks = read_container(path)
    name = None if device is None else canonical_name(device)
    try:
        _require_one_device(header, name)
        program = _program(header, blocks, name)
        return LoadedFunction(header["name"], program, header["names"], name)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FileFormatError(
            f"load_function: {os.fspath(path)}: the header says what no function is",
            facts=[("found", type(error).__name__, str(error).partition("\n")[0])],
        ) from error


def _program(header: dict[str, Any], blocks: list[bytes], device: str | None) -> Program:
    text, *contents = blocks
    memory = [
        buffer_from(by_name(kind), shape_from_json(shape), device or own, memoryview(block))
        for (kind, shape, own), block in zip(header["memory"], contents, strict=True)
    ]
    count = header["captured"]
    captured = [Storage(node, node.arg[2]) for node in memory[:count]]
    program = Program(_graph(header, text.decode(), device), memory[count:], captured)
    program.rows = [InputRow(*row) for row in header["rows"]]
    program.leaves_more = any(row.is_donated or row.is_written for row in program.rows)
    program.structure = structure_from_json(header["arguments"])
    program.leaves = [leaf_from_json(leaf) for leaf in header["leaves"]]
    program.variables = [parse(node) for node in header["variables"]]
    recipes = tuple(recipe_from_json(each, captured) for each in header["recipes"])
    program.results = Results(structure_from_json(header["results"]), recipes)
    return program


def _require_one_device(header: dict[str, Any], device: str | None) -> None:
    names = {own for _, _, own in header["memory"]} | set(header["devices"])
    names |= {own for _, _, own, _ in header["outputs"]}
    if device is not None and len(names) > 1:
        raise NotSupported(
            f"load_function: the function runs on several devices ({', '.join(sorted(names))})",
            law="only a function of one device can move to another",
            fix="leave device= out",
        )
