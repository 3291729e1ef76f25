"""`save`: a function of tensors as an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from weft.engine.contents import read_bytes
from weft.ir.build import tuple_of
from weft.ir.dtypes import dtypes
from weft.ir.shapes import shape_of
from weft.ir.walk import topological
from weft.onnx.write import (  # noqa: F401 -- those of ops fill EMITS
    builder,
    elementwise,
    indexing,
    movement,
    reductions,
)
from weft.onnx.write.builder import Builder, element, model_of
from weft.schedule.lower_complex import take_complex_apart
from weft.support.atomic_write import write_atomically
from weft.support.errors import ArgumentTypeError, NotSupported, file_error
from weft.tensor.jit.graph import CAPTURED, CONSTANT, INPUT
from weft.tensor.jit.jit import Jit, jit
from weft.tensor.realize import realize
from weft.tensor.tensor import Tensor
from weft.tensor.trees import tensors_in

# The newest opset that onnxruntime 1.31 loads.
OPSET = 26
# Tensors of so many bytes are written beside a model that is too large.
_LEAST_OUTSIDE = 1024


def save(
    function: Any,
    path: str | os.PathLike[str] | None,
    inputs: Sequence[Any],
    names: Sequence[str] | None = None,
    opset: int = OPSET,
) -> Any:
    """Write a function, jitted or not, as an ONNX file; also return the ModelProto.

    `inputs` are tensors or arrays like those of a call; their shapes and dtypes are those of the
    file. What the function captures is saved with it. Without a path nothing is written.

    >>> import os, tempfile
    >>> from weft import Tensor, onnx
    >>> path = os.path.join(tempfile.mkdtemp(), "double.onnx")
    >>> model = onnx.save(lambda x: x * 2, path, [Tensor([1.0, 2.0])])
    >>> onnx.load(path)(Tensor([3.0, 4.0])).tolist()
    [6.0, 8.0]
    """
    given = [
        each.clone() if isinstance(each, Tensor) else Tensor(np.asarray(each)) for each in inputs
    ]
    plain = function.function if isinstance(function, Jit) else function
    title = getattr(plain, "__name__", "function").strip("<>")
    program = _traced(plain, given)
    _require_pure(program)
    writer = Builder(min(opset, onnx.defs.onnx_opset_version()))
    words = list(names or [f"input_{number}" for number in range(len(given))])
    if len(words) != len(given):
        raise ArgumentTypeError(f"onnx.save: {len(words)} names for {len(given)} inputs")
    writer.arguments = tuple(_arguments(program, words))
    for number, role in enumerate(program.graph.roles):
        if role.kind in (CAPTURED, CONSTANT):
            writer.initializers.append(_weight(program, role, writer.arguments[number]))
    outputs = []
    values = _real_values(program.graph.values, given)
    for number, (value, said) in enumerate(zip(values, program.graph.outputs, strict=True)):
        result = f"output_{number}"
        writer.nodes.append(helper.make_node("Identity", [writer.value(value)], [result]))
        outputs.append(_described(result, said.dtype, said.shape))
    sides = [
        _described(word, each.dtype, each.shape) for word, each in zip(words, given, strict=True)
    ]
    model = model_of(writer, sides, outputs, title)
    if path is not None:
        try:
            _write(Path(path), model)
        except OSError as error:
            raise file_error(f"onnx.save: {path}", error) from None
    return model


def _write(path: Path, model: Any) -> None:
    """Write a model; what one protobuf cannot hold has its large weights in a file beside it."""
    if builder.weight_bytes(model) > builder.MOST_INSIDE:
        apart = onnx.ModelProto()
        apart.CopyFrom(model)
        contents, offset = [], 0
        for tensor in apart.graph.initializer:
            if len(tensor.raw_data) < _LEAST_OUTSIDE:
                continue
            contents.append(tensor.raw_data)
            length = len(contents[-1])
            entries = {"location": f"{path.name}.data", "offset": offset, "length": length}
            offset += length
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
        write_atomically(path.with_name(f"{path.name}.data"), contents)
        model = apart
    write_atomically(path, [model.SerializeToString()])


def _traced(function: Any, given: list[Tensor]) -> Any:
    """The trace of a function whose results are values of their own."""

    def called(*values: Tensor) -> list[Tensor]:
        results = tensors_in(function(*values))
        if not results:
            raise ArgumentTypeError("onnx.save: the function returns no tensor")
        return [each.clone() for each in results]

    called.__qualname__ = getattr(function, "__qualname__", called.__qualname__)
    traced: Any = jit(called)
    return traced.program_for(tuple(given), {})[1]


def _real_values(values: Sequence[Any], given: list[Tensor]) -> Sequence[Any]:
    """The values without complex numbers between inputs and outputs, which a file can have."""
    if any(each.dtype.is_complex for each in (*values, *given)):
        raise NotSupported(
            "onnx.save: complex inputs and outputs cannot be written",
            rule="operators of ONNX take real numbers; complex ones may stand between them",
            fix="return the parts: view_as_real(y)",
        )
    root = tuple_of(list(values))
    if not any(node.dtype.is_complex for node in topological(root)):
        return values
    return take_complex_apart(root).src


def _require_pure(program: Any) -> None:
    """A file of ONNX has no memory between calls."""
    written = {program.graph.root_slot(version) for version in program.graph.versions}
    kinds = {program.graph.roles[slot].kind for slot in written}
    if kinds & {INPUT, CAPTURED, CONSTANT} or None in program.graph.values:
        raise NotSupported(
            "onnx.save: the function writes to tensors, or draws random numbers",
            rule="a saved function computes values of its inputs and of what it captures",
        )


def _arguments(program: Any, words: list[str]) -> list[str]:
    """The name of what each PARAM of the graph is."""
    names = []
    for number, role in enumerate(program.graph.roles):
        if role.kind == INPUT:
            names.append(words[program.rows[role.number].leaf])
        else:
            names.append(f"weight_{number}")
    return names


def _weight(program: Any, role: Any, name: str) -> Any:
    realize(program.captured)
    node = program.captured[role.number].uop if role.kind == CAPTURED else program.constants[
        role.number]  # fmt: skip
    shape = [int(size) for size in shape_of(node)]
    content = bytes(read_bytes(node))
    if node.dtype.is_complex:  # pairs, as they are taken apart
        part = dtypes.float32 if node.dtype is dtypes.complex64 else dtypes.float64
        return helper.make_tensor(name, element(part), [*shape, 2], content, raw=True)
    if node.dtype is dtypes.bool:
        return numpy_helper.from_array(np.frombuffer(content, np.bool_).reshape(shape), name)
    return helper.make_tensor(name, element(node.dtype), shape, content, raw=True)


def _described(name: str, dtype: Any, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, element(dtype), [int(size) for size in shape])
