"""Running a graph: node after node, each building lazy tensors or computing on the host.

The host computes where it knows all inputs of a node and has a function for it (`fold.py`): shapes
and what is made of them. Everything else is tensors. A node that needs the value of a tensor reads
it, which computes; while a model is traced that raises `NeedsValue`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.onnx import fold
from weft.onnx.compared import computed_once
from weft.onnx.elements import Small
from weft.onnx.graph import Body, Graph, Node
from weft.onnx.table import Row, try_fold
from weft.onnx.values import NeedsValue, Weight, host_array, is_host, plain, to_tensor
from weft.support.errors import (
    ArgumentError,
    InternalError,
    NotSupported,
    OutOfMemory,
    UsageError,
)
from weft.support.source_line import NOWHERE
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing

Scope = dict[str, Any]
# What becomes the dtype of a run that has one; smaller floats are quantized numbers.
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_MOST_ELEMENTS = 1 << 40
# What has another value in another call, or in another iteration of a scan.
_OPEN = 1 << Op.PARAM | 1 << Op.VARIABLE | 1 << Op.BIND


_MOST_FINITE = {
    "float16": 65504.0,
    "bfloat16": 2.0**127 * (2 - 2.0**-7),
    "float32": 2.0**127 * (2 - 2.0**-23),
}


class Run:
    """What all nodes of one evaluation share."""

    def __init__(
        self,
        device: str | None,
        is_traced: bool,
        most_iterations: int,
        dtype: DType | None = None,
    ) -> None:
        self.device, self.is_traced = device, is_traced
        self.most_iterations = most_iterations
        self.dtype = dtype  # of all floats, where it is not that of the file
        self.names: dict[int, str] = {}  # graph inputs by the identity of their values
        # What tensors were made of, by their identity; they stay alive with it.
        self._sources: dict[int, tuple[Any, Any]] = {}

    def tensor(self, value: Any) -> Any:
        made = self.fitted(to_tensor(value, self.device))
        if made is not value and isinstance(value, (Weight, np.ndarray)):
            self._sources[id(plain(made))] = (value, made)
        return made

    def fitted(self, value: Any) -> Any:
        """A float in the dtype of this run; what is finite, as the least float, stays so."""
        if self.dtype is None or not isinstance(value, Tensor) or value.dtype not in FLOATS:
            return value
        if value.dtype is self.dtype or self.dtype.itemsize >= value.dtype.itemsize:
            return value.cast(self.dtype)
        most = _MOST_FINITE[self.dtype.name]
        return value.isinf().where(value, value.clamp(-most, most)).cast(self.dtype)

    def weight_of(self, tensor: Any) -> Weight | None:
        """The weight that a tensor is, if it is one."""
        found = self._sources.get(id(tensor), (None, None))[0]
        return found if isinstance(found, Weight) else None

    def known_array(self, tensor: Any) -> Any:
        """The array that a tensor was made of, where the host computes with it; or None."""
        found = self._sources.get(id(tensor), (None, None))[0]
        return host_array(found) if is_host(found) else None

    def array_of(self, tensor: Any) -> Any:
        """The array that a tensor was made of, also where the host does not compute with it."""
        found = self._sources.get(id(tensor), (None, None))[0]
        return found.array if isinstance(found, Weight) else found

    def host(self, value: Any) -> Any:
        """The array of a value; of a tensor it is computed now."""
        if value is None or isinstance(value, (list, dict)):
            return value
        if isinstance(value, (np.ndarray, Weight)):
            return host_array(value)
        tensor = plain(self.tensor(value))
        if self.is_traced and not _is_constant(tensor):
            raise NeedsValue(self.names.get(id(value), ""))
        return tensor.numpy()


def _is_constant(tensor: Tensor) -> bool:
    """Whether a value follows from constants of the graph alone, so that a trace may read it."""
    trace = tracing.trace
    if trace is None or tensor.uop.ops & _OPEN:
        return False
    try:
        trace.require_readable(tensor.uop, "onnx")
    except NotSupported:
        return False
    return True


class Call:
    """A node that is being computed: its attributes, opset, scope and run."""

    __slots__ = ("attributes", "node", "run", "scope")

    def __init__(self, node: Node, run: Run, scope: Scope, around: dict[str, Any]) -> None:
        self.node, self.run, self.scope = node, run, scope
        self.attributes = node.attributes
        if node.references:
            given = {
                name: around[other] for name, other in node.references.items() if other in around
            }
            self.attributes = {**node.attributes, **given}

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or what it is where it is left out."""
        return self.attributes.get(name, default)

    def axis(self, default: int, rank: int) -> int:
        """The attribute `axis`, which is one of a value of this rank, counted from the front."""
        axis = int(self.get("axis", default))
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} of {rank} axes")
        return axis % rank

    @property
    def version(self) -> int:
        return self.node.version

    @property
    def device(self) -> str | None:
        return self.run.device

    @property
    def wants(self) -> int:
        """How many outputs somebody reads, up to the last one."""
        used = [number for number, name in enumerate(self.node.outputs, 1) if name]
        return max(used, default=0)

    def is_wanted(self, number: int) -> bool:
        outputs = self.node.outputs
        return number < len(outputs) and bool(outputs[number])

    def error(self, what: str, rule: str = "") -> ArgumentError:
        return ArgumentError(f"onnx: {self.node}: {what}", rule=rule, where=NOWHERE)


def run_graph(
    graph: Graph, inputs: Scope, run: Run, outer: Scope, around: dict[str, Any] | None = None
) -> list[Any]:
    """The outputs of a graph, whose inputs are given by name."""
    scope: Scope = {**outer, **graph.weights, **inputs}
    for node in graph.nodes:
        run_node(node, scope, run, around or {})
        for name in graph.compared.intersection(node.outputs):
            scope[name] = computed_once(scope[name])
    return [scope[result.name] for result in graph.outputs]


def run_node(node: Node, scope: Scope, run: Run, around: dict[str, Any]) -> None:
    """Compute a node and enter its outputs in the scope."""
    values = [scope[name] if name else None for name in node.inputs]
    call = Call(node, run, scope, around)
    try:
        results = compute(call, values)
    except NeedsValue as needed:
        needed.node = needed.node or str(node)
        raise
    except InternalError:
        raise
    except UsageError as error:
        if not error.what.startswith("onnx: "):
            error.what = f"onnx: {node}: {error.what}"
            error.args = (error.what,)
        raise
    except MemoryError as error:
        raise OutOfMemory(
            f"onnx: {node} needs more memory than there is", where=NOWHERE
        ) from error
    except Exception as error:
        raise ArgumentError(
            f"onnx: {node} cannot be computed: {type(error).__name__}: {error}",
            facts=[_shown(name, value) for name, value in zip(node.inputs, values, strict=True)],
            where=NOWHERE,
        ) from error
    for name, value in zip(node.outputs, results, strict=False):
        if name:
            _require_possible(call, value)
            scope[name] = run.fitted(value)
    for name in node.outputs[len(results) :]:
        if name:
            raise call.error(f"makes {len(results)} outputs, and {name!r} is one more")


def _require_possible(call: Call, value: Any) -> None:
    """Raise for a tensor that no machine holds, before anything is made for it."""
    if isinstance(value, Tensor):
        sizes = [size for size in value.shape if isinstance(size, int)]
        if math.prod(sizes) > _MOST_ELEMENTS:
            raise call.error(f"a result of shape {value.shape}")


def _shown(name: str, value: Any) -> tuple[str, object]:
    if isinstance(value, (Tensor, Small, Weight, np.ndarray)):
        return name, value.shape
    return name, type(value).__name__


def compute(call: Call, values: list[Any]) -> tuple[Any, ...]:
    """The outputs of a node."""
    node = call.node
    if node.body is not None:
        return tuple(_call_body(node.body, call, values))
    folded = try_fold(node.domain, node.op)
    if folded is not None and all(value is None or is_host(value) for value in values):
        results = folded(call, *[host_array(value) for value in values])
        if results is not NotImplemented:
            listed = results if isinstance(results, tuple) else (results,)
            return tuple(fold.settled(each) for each in listed)
    row = node.row
    if row is None:
        raise call.error("no function computes it")
    return _by_row(row, call, values)


def _by_row(row: Row, call: Call, values: list[Any]) -> tuple[Any, ...]:
    run = call.run
    if row.raw:
        results = row.function(call, *values)
        return results if isinstance(results, tuple) else (results,)
    ready = [
        run.host(value) if number in row.host else run.tensor(value)
        for number, value in enumerate(values)
    ]
    first = ready[0] if ready else None
    results = row.function(call, *[plain(value) for value in ready])
    results = results if isinstance(results, tuple) else (results,)
    if row.keeps_element and isinstance(first, Small):
        return tuple(Small(each, first.element) for each in results)
    return results


def _call_body(body: Body, call: Call, values: list[Any]) -> list[Any]:
    given = dict.fromkeys(body.inputs)
    given.update(zip(body.inputs, values, strict=False))
    around = {**body.attributes, **call.attributes}
    return run_graph(body.graph, given, call.run, {}, around)
