"""Jitted functions as files: `save_function` writes one, `load_function` makes it callable again.

A file holds the graph as text, the contents of what the function captured, and how arguments and
results are laid out. A process that loads it needs neither the source nor the device that the
function was traced on. What the function writes between calls is the state of the loaded one.
"""

from __future__ import annotations

import json
import os
import types
from typing import Any

from weft.engine.contents import read_bytes
from weft.engine.devices import canonical_name, default_device, is_computing, is_file
from weft.export.container import CONTAINER_KEYS, read_container, write_container
from weft.export.describe import (
    leaf_to_json,
    plan_to_json,
    shape_to_json,
    structure_to_json,
)
from weft.export.load import Loader, rows_of
from weft.export.loaded import LoadedFunction
from weft.export.sizes import RefusedError
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentTypeError, FileFormatError, NotSupported
from weft.tensor.jit.graph import Graph
from weft.tensor.jit.jit import Jit
from weft.tensor.jit.program import TensorKind, TracedProgram
from weft.tensor.jit.results import FromOutside
from weft.tensor.jit.signature import argument_names
from weft.tensor.realize import realize


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
            rule="a function is exported as its trace",
            fix="save_function(jit(f), path, *arguments)",
        )
    program = _chosen(jitted, args, kwargs)
    realize(program.captured)
    memory = [*(storage.uop for storage in program.captured), *program.constants]
    _require_exportable(program, memory)
    text = dump(_all_of(program.graph)).encode()
    header = _header(jitted, program, memory)
    blocks = [text, *(bytes(read_bytes(node)) for node in memory)]
    _require_loadable(header, blocks)
    write_container(path, header, blocks)


def _header(jitted: Jit, program: TracedProgram, memory: list[UOp]) -> dict[str, Any]:
    results, graph = program.results, program.graph
    return {
        "name": getattr(jitted, "__name__", "function"),
        "names": argument_names(jitted.function, program.structure),
        "arguments": structure_to_json(program.structure),
        "leaves": [leaf_to_json(leaf) for leaf in program.leaves],
        "rows": [list(row) for row in rows_of(graph, program.leaves)],
        "results": structure_to_json(results.structure),
        "recipes": [plan_to_json(each, program.captured) for each in results.plans],
        "device": _devices(program).pop(),
        "memory": [[node.dtype.name, list(shape_of(node))] for node in memory],
        "captured": len(program.captured),
        "roles": [list(role) for role in graph.roles],
        "versions": len(graph.versions),
        "outputs": [
            [each.dtype.name, shape_to_json(each.shape), each.donor, value is not None]
            for each, value in zip(graph.outputs, graph.values, strict=True)
        ],
    }


def _devices(program: TracedProgram) -> set[Any]:
    """All devices of a program; without memory, it runs on the default one."""
    graph = program.graph
    return {*graph.devices, *(each.device for each in graph.outputs)} or {default_device()}


def _chosen(jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedProgram:
    if args or kwargs:
        return jitted.program_for(args, kwargs)[1]
    if len(jitted.programs) != 1:
        raise ArgumentTypeError(
            f"save_function: {jitted!r} has no single trace to save",
            rule="a file holds one trace",
            fix="name it by arguments like those of a call: save_function(f, path, x, y)",
        )
    return jitted.programs[0]


def _require_exportable(program: TracedProgram, memory: list[UOp]) -> None:
    """A file cannot hold what only this process knows."""
    tensors = [n for n, leaf in enumerate(program.leaves) if isinstance(leaf, TensorKind)]
    problem = ""
    if len(devices := _devices(program)) > 1 or not isinstance(next(iter(devices)), str):
        problem = "takes or returns tensors that are on several devices"
    elif any(map(is_file, devices)):
        problem = "works on files"
    elif program.gradients_in or any(row.is_gradient for row in program.rows):
        problem = "reads gradients from outside"
    elif [row.leaf for row in program.rows] != tensors:
        problem = "has arguments that share memory with each other, or with a captured tensor"
    elif any(
        isinstance(each, FromOutside) and each.storage not in program.captured
        for each in program.results.plans
    ):
        problem = "returns a tensor from outside that it does not use"
    elif any(isinstance(size, UOp) for node in memory for size in shape_of(node)):
        problem = "captures a tensor of a symbolic shape"
    if problem:
        raise NotSupported(
            f"save_function: the function {problem}",
            rule="an exported function has arguments that share no memory, on one device each, and"
            " returns what it computes",
        )


def _require_loadable(header: dict[str, Any], blocks: list[bytes]) -> None:
    """What is saved passes the checks of what is loaded."""
    read = json.loads(json.dumps({**header, **dict.fromkeys(CONTAINER_KEYS)}))
    try:
        Loader(read, blocks, header["device"]).check()
    except RefusedError as error:
        raise NotSupported(
            f"save_function: {error}",
            rule="a file holds tensor ops alone: no kernels of your own, no copies to devices",
        ) from None


def _all_of(graph: Graph) -> UOp:
    values = [value for value in graph.values if value is not None]
    return make(Op.TUPLE, dtypes.void, (*graph.parameters, *graph.versions, *values))


def load_function(path: str | os.PathLike[str], device: str | None = None) -> LoadedFunction:
    """Read a function that `save_function` wrote; `device` is another one to run it on.

    A file is data: it is checked, and code is generated for it here. One that says anything else
    than a function of tensors raises FileFormatError, and nothing of it has happened.
    """
    header, blocks = read_container(path)
    name = _device_of(header, path) if device is None else canonical_name(device)
    try:
        loader = Loader(header, blocks, name)
        parts = loader.check()
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FileFormatError(
            f"load_function: {os.fspath(path)}: the header does not describe a function: "
            + reason.partition("\n")[0][:400],
            rule="the parts of a file fit each other, and its graph is made of tensor ops alone",
        ) from None
    return LoadedFunction(parts.name, loader.program(parts), parts.names, name)


def _device_of(header: dict[str, Any], path: str | os.PathLike[str]) -> str:
    """The device that a file names. It is a kind and a number, never a path."""
    name = header.get("device")
    if not is_computing(name):
        raise FileFormatError(
            f"load_function: {os.fspath(path)}: the function is for the device {name!r:.60}",
            rule="a function runs on a device that computes, such as CPU or CPU:1",
        )
    return canonical_name(str(name))
