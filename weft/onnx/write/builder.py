"""The graph that is being written: names, constants, nodes, and what each node of Weft became.

A function for an op takes the builder and the node, and returns the name of its value. Constants
are shared, and nodes with equal inputs and attributes too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.onnx.elements import DTYPES
from weft.support.errors import NotSupported

Emit = Callable[["Builder", UOp], str]
# Filled by the modules beside this one.
EMITS: Final[dict[int, Emit]] = {}
_NUMBERS: Final = {dtype: number for number, dtype in DTYPES.items()}


def emits(*ops: int) -> Callable[[Emit], Emit]:
    """Enter what writes an op."""

    def entered(function: Emit) -> Emit:
        for op in ops:
            EMITS[op] = function
        return function

    return entered


def element(dtype: DType) -> int:
    """The element type of a dtype; indices are int64."""
    return int(TensorProto.INT64 if dtype is dtypes.index else _NUMBERS[dtype])


def static_shape(node: UOp) -> tuple[int, ...]:
    """The shape of a node, whose sizes are ints."""
    shape = shape_of(node)
    if not all(isinstance(size, int) for size in shape):
        raise NotSupported(
            f"onnx.save: the shape {shape} has symbolic sizes",
            rule="a saved graph has the shapes of the inputs it is saved with",
        )
    return tuple(int(size) for size in shape)


class Builder:
    """Nodes and constants, in the order that they were made."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[UOp, str] = {}
        self.arguments: tuple[str, ...] = ()  # what the PARAMs of the body being written are
        self._shared: dict[Any, str] = {}
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output; the same node twice is one."""
        key = (operator, inputs, tuple(sorted((k, str(v)) for k, v in attributes.items())))
        if key not in self._shared:
            output = self.fresh()
            self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
            self._shared[key] = output
        return self._shared[key]

    def constant(self, array: Any) -> str:
        """An array as an initializer."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._shared:
            output = self.fresh()
            self.initializers.append(
                numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), output)
            )
            self._shared[key] = output
        return self._shared[key]

    def ints(self, values: Sequence[int]) -> str:
        return self.constant(np.array(list(values), dtype=np.int64))

    def scalar(self, value: Any, dtype: DType) -> str:
        """A number of a dtype."""
        return self.tensor(value, dtype, ())

    def tensor(self, value: Any, dtype: DType, shape: Sequence[int]) -> str:
        """A tensor of one number; small ones are constants."""
        kind = element(dtype)
        if dtype.name in ("bfloat16",) or dtype.name.startswith("fp8"):
            wide = self.constant(np.full((), float(value), np.float32))
            made = self.add("Cast", wide, to=kind)
        else:
            made = self.constant(np.array(value).astype(helper.tensor_dtype_to_np_dtype(kind)))
        if not shape:
            return made
        return self.add("Expand", made, self.ints(shape))

    def cast(self, value: str, dtype: DType) -> str:
        return self.add("Cast", value, to=element(dtype))

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", value, self.ints(shape), allowzero=int(0 in shape))

    def value(self, node: UOp) -> str:
        """The name of what a node became; it is written with its sources first."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.names:
                stack.pop()
                continue
            missing = [each for each in top.src if each not in self.names and _has_value(each)]
            if missing:
                stack += missing
                continue
            self.names[top] = self._emit(top)
            stack.pop()
        return self.names[node]

    def _emit(self, node: UOp) -> str:
        if node.op not in EMITS:
            raise NotSupported(
                f"onnx.save: {name(node.op)} cannot be written",
                rule="written are elementwise ops, movement, reductions, scans, indices, scatters"
                " and calls",
            )
        return EMITS[node.op](self, node)

    def inlined(self, body: UOp, arguments: Sequence[str]) -> str:
        """The value of a body whose PARAMs are these; names are its own."""
        outer, before = self.names, self.arguments
        self.names, self.arguments = {}, tuple(arguments)
        try:
            return self.value(body)
        finally:
            self.names, self.arguments = outer, before


def _has_value(node: UOp) -> bool:
    return node.op not in (Op.STORE,)


def size(shape: Sequence[int]) -> int:
    return math.prod(shape)


# A protobuf has at most 2 GB.
MOST_INSIDE: Final = 1_900_000_000


def _used(nodes: Sequence[Any]) -> set[str]:
    """What nodes read, also those of graphs inside of them."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            names |= _used(attribute.g.node)
    return names


def model_of(builder: Builder, inputs: list[Any], outputs: list[Any], title: str) -> Any:
    """The protobuf of everything that was written."""
    used = _used(builder.nodes)
    weights = [each for each in builder.initializers if each.name in used]
    graph = helper.make_graph(builder.nodes, title, inputs, outputs, weights)
    opset = helper.make_opsetid("", builder.opset)
    model = helper.make_model(graph, opset_imports=[opset], producer_name="weft")
    model.ir_version = min(model.ir_version, 10)
    if weight_bytes(model) <= MOST_INSIDE:  # the checker takes one protobuf
        onnx.checker.check_model(model)
    return model


def weight_bytes(model: Any) -> int:
    """The bytes of all weights."""
    return sum(len(each.raw_data) for each in model.graph.initializer)
