"""`Model`: a loaded graph that is called with tensors.

A call is traced by the JIT; named sizes are symbolic where the graph allows. Where the graph needs
values to be built, an input that they come from becomes static (a trace for each of its values);
any other value makes the model run eagerly, node by node.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.onnx.dequantized import Dequantized, Scaled
from weft.onnx.elements import DTYPES, Small, element_name
from weft.onnx.execute import FLOATS, Run, run_graph, run_node
from weft.onnx.graph import Described, Graph, all_graphs
from weft.onnx.named_sizes import Limits, NamedSizes, Problem, Sizes, settled
from weft.onnx.values import NeedsValue, Weight, to_tensor
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    InternalError,
    ShapeError,
    UsageError,
)
from weft.support.settings import settings
from weft.tensor.checks import EQUAL_SIZES, GREATER_MIN, MULTIPLES
from weft.tensor.host.convert import dtype_of as read_dtype
from weft.tensor.jit.jit import Jit
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing

_MOST_STATIC_BYTES = 1 << 16
# Sizes that a graph is built with where nobody says one; windows need some.
_TRIED_SIZES = (1, 16, 64, 256)


class Model:
    """A graph of ONNX as a function of tensors, with its weights.

    `inputs` and `outputs` describe them. Called with tensors or arrays, by position or by name, it
    returns the output, or a tuple of them; `run` takes and returns dicts.
    """

    def __init__(
        self,
        graph: Graph,
        versions: dict[str, int],
        device: str | None,
        sizes: Sizes | None,
        most_iterations: int,
        uses_jit: bool,
    ) -> None:
        self.graph, self.opsets, self.device = graph, versions, device
        self.inputs = [each for each in graph.inputs if each.name not in graph.weights]
        self.optional_inputs = [each for each in graph.inputs if each.name in graph.weights]
        self.outputs = graph.outputs
        self.is_eager = not uses_jit
        self.sizes = NamedSizes(self.inputs, sizes)
        self._most_iterations = most_iterations
        self._static: set[str] = set()
        self._has_weights = False
        self._dtype: DType | None = None
        self._traced = Jit(self._graph_outputs)

    def __repr__(self) -> str:
        return f"<onnx model {self.graph.name}, {self._traced.traces} traces>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        if len(args) > len(self.inputs) + len(self.optional_inputs):
            raise ArgumentError(f"onnx: {len(args)} inputs for a model of {len(self.inputs)}")
        order = [each.name for each in (*self.inputs, *self.optional_inputs)]
        results = self._results({**dict(zip(order, args, strict=False)), **named})
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name."""
        names = [each.name for each in self.outputs]
        return dict(zip(names, self._results(dict(inputs)), strict=True))

    def _results(self, given: dict[str, Any]) -> list[Any]:
        self._require_names(given)
        values = {name: self._input(name, value) for name, value in given.items()}
        is_plain = all(isinstance(value, Tensor) for value in values.values())
        while is_plain and not self.is_eager:
            self._make_weights()
            try:
                return self._call_traced(values)
            except NeedsValue as needed:
                if needed.name in values and needed.name not in self._static:
                    self._static.add(needed.name)
                else:
                    self.is_eager = True
        run = Run(self.device, False, self._most_iterations, self._dtype)
        return [self._result(each) for each in run_graph(self.graph, values, run, {})]

    def _make_weights(self) -> None:
        """Make the tensors of all weights, so that a trace finds them."""
        if self._has_weights:
            return
        for graph in all_graphs(self.graph):
            for weight in graph.weights.values():
                if not weight.is_host:
                    weight.tensor(self.device)
        self._has_weights = True

    def _call_traced(self, values: dict[str, Any]) -> list[Any]:
        fixed: list[Any] = []
        for name in sorted(self._static & set(values)):
            array = values[name].numpy()
            if array.nbytes > _MOST_STATIC_BYTES:
                raise NeedsValue("")
            fixed.append((name, array.dtype.str, array.shape, array.tobytes()))
        free = {name: value for name, value in values.items() if name not in self._static}
        results = self._try_symbolic(free, tuple(fixed))
        if results is not None:
            return results
        try:
            return list(self._traced(free, tuple(fixed)))
        except UsageError:
            self.sizes.forget_problems()  # inputs that the model refuses say nothing of others
            raise

    def _try_symbolic(self, free: dict[str, Any], fixed: tuple[Any, ...]) -> list[Any] | None:
        """A call whose named sizes are symbolic; None where these sizes have their own trace."""

        if not self.sizes.names or tracing.depth or not settings.JIT:
            return None  # a trace around this one, or none
        chosen = self.sizes.for_call(free, partial(self._problem, free, fixed))
        if not chosen or not all(map(_is_plain, free.values())):
            return None
        limits = {name: self.sizes.limits[name] for name in chosen}
        inputs = self.sizes.bound_inputs(free, chosen, limits)
        try:
            return settled(list(self._traced(inputs, fixed)), inputs, free)
        except (UsageError, InternalError, NeedsValue) as error:
            if not self.sizes.is_given:
                self.sizes.give_up(_reason(error))
                return None
            if isinstance(error, UsageError) and error.fix == GREATER_MIN:
                error.fix = (
                    "give the names greater least sizes: load(path, sizes={name: (8, 512)})"
                )
            elif isinstance(error, UsageError) and error.fix in ("", EQUAL_SIZES, MULTIPLES):
                error.fix = (
                    "load the model without sizes=: then sizes that must be known are numbers"
                )
            raise

    def _problem(
        self, free: dict[str, Any], fixed: tuple[Any, ...], limits: Limits, is_kept: bool
    ) -> Problem | None:
        """What stands against symbolic sizes within these limits."""
        inputs = self.sizes.bound_inputs(free, self.sizes.sizes_of(free) or {}, limits)
        traced = self._traced if is_kept else Jit(self._graph_outputs)
        try:
            traced.program_for((inputs, fixed), {})
        except (UsageError, NeedsValue) as error:
            return Problem(_reason(error), _kind_of(error))
        return None

    def zeros(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Inputs of zeros, whose named sizes are these; None for what is not a tensor."""
        return {each.name: _zeros(each, sizes, self.device) for each in self.inputs}

    def find_sizes(self, sizes: Mapping[str, int]) -> None:
        """Find which named sizes can be symbolic, on inputs of zeros of these sizes.

        For others a few sizes are tried. Nothing is run, but weights are read.
        """
        self._make_weights()
        for others in _TRIED_SIZES:
            inputs = self.zeros({**dict.fromkeys(self.sizes.names, others), **sizes})
            probe = partial(self._problem, inputs, ())
            reason = probe({}, False)
            names = self.sizes.names
            self.sizes.problems = {} if reason is None else dict.fromkeys(names, reason.reason)
            if reason is None:
                self.sizes.find_limits(self.sizes.sizes_of(inputs) or {}, probe)
                break

    def shapes(self, inputs: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
        """The shapes of what nodes of the graph give for such inputs, by name; nothing is run."""
        self._make_weights()
        run = Run(self.device, True, self._most_iterations, self._dtype)
        scope: dict[str, Any] = {**self.graph.weights, **inputs}
        with suppress(NeedsValue, UsageError):
            for node in self.graph.nodes:
                run_node(node, scope, run, {})
        return {name: tuple(each.shape) for name, each in scope.items() if hasattr(each, "shape")}

    def _graph_outputs(self, values: dict[str, Any], fixed: tuple[Any, ...]) -> list[Any]:
        """What the JIT traces: outputs of tensors, where static inputs are known bytes."""
        run = Run(self.device, True, self._most_iterations, self._dtype)
        run.names = {id(value): name for name, value in values.items()}
        known = {
            name: np.frombuffer(content, dtype=kind).reshape(shape)
            for name, kind, shape, content in fixed
        }
        results = run_graph(self.graph, {**values, **known}, run, {})
        if not all(
            isinstance(each, (Tensor, np.ndarray, Weight, Dequantized, Scaled)) for each in results
        ):
            raise NeedsValue("")  # sequences, strings and small elements come from eager runs
        ready = [run.tensor(each) for each in results]
        if not all(isinstance(each, Tensor) for each in ready):
            raise NeedsValue("")
        return ready

    def _require_names(self, given: dict[str, Any]) -> None:
        wanted = [each.name for each in self.inputs]
        known = {*wanted, *(each.name for each in self.optional_inputs)}
        for name in given:
            if name not in known:
                raise ArgumentError(
                    f"onnx: the model has no input {name!r}",
                    rule="inputs are " + ", ".join(wanted),
                )
        optional = {each.name for each in self.inputs if each.kind == "optional"}
        missing = [name for name in wanted if name not in given and name not in optional]
        if missing:
            raise ArgumentError(
                f"onnx: inputs {', '.join(map(repr, missing))} are missing",
                rule="inputs are " + ", ".join(wanted),
            )
        for name in optional - set(given):
            given[name] = None

    def _input(self, name: str, value: Any) -> Any:
        """A value of the user's as one of the graph's, with the dtype and rank that it says."""
        said = next(each for each in self.graph.inputs if each.name == name)
        if isinstance(value, (list, tuple)) and said.kind != "tensor":
            return [self._value(each) for each in value]
        made = self._value(value)
        if said.kind == "tensor" and isinstance(made, Tensor):
            self._require_fit(said, made)
            if self._dtype is not None and made.dtype in FLOATS:
                return made.cast(self._dtype)
        return made

    def _value(self, value: Any) -> Any:
        if value is None or isinstance(value, (Tensor, Small)):
            return value
        if (
            isinstance(value, (list, tuple))
            and value
            and isinstance(value[0], (np.ndarray, Tensor))
        ):
            return [self._value(each) for each in value]
        if isinstance(value, (str, list)) and not isinstance(value, np.ndarray):
            value = np.array(value, dtype=object if _has_text(value) else None)
        if not isinstance(value, (np.ndarray, np.generic, bool, int, float)):
            raise ArgumentTypeError(
                f"onnx: an input of {type(value).__name__}",
                rule="inputs are tensors, arrays, numbers, and lists for sequences",
            )
        array = np.asarray(value)
        if array.dtype.kind in "OUS":
            return array.astype(object)
        made = to_tensor(array, self.device) if array.dtype.itemsize else array
        if isinstance(made, Tensor) and array.size == 1:
            return Tensor(array, device=self.device)  # an argument, not a constant of the graph
        return made

    def _require_fit(self, said: Described, value: Tensor) -> None:
        if (
            said.element in DTYPES
            and self._dtype is None
            and value.dtype is not DTYPES[said.element]
        ):
            raise ArgumentTypeError(
                f"onnx: input {said.name!r} has elements of {value.dtype.name}",
                rule=f"the model says {element_name(said.element)}",
                fix=f"cast it: x.cast(dtypes.{DTYPES[said.element].name})",
            )
        if said.shape is None:
            return
        wanted = said.shape
        pairs = zip(wanted, value.shape, strict=False)
        fits = len(wanted) == value.ndim and all(
            not isinstance(a, int) or a == b or not isinstance(b, int) for a, b in pairs
        )
        if not fits:
            raise ShapeError(
                f"onnx: input {said.name!r} has the shape {value.shape}",
                rule=f"the model says {_shown_shape(wanted)}",
            )

    def _result(self, value: Any) -> Any:
        if value is None or isinstance(value, Tensor):
            return value
        if isinstance(value, Weight):
            value = value.array if value.element == 8 else value.tensor(self.device)
        if isinstance(value, list):
            return [self._result(each) for each in value]
        if isinstance(value, dict):
            return value
        is_number = isinstance(value, np.ndarray) and not _is_text(value)
        if is_number or isinstance(value, (Dequantized, Scaled)):
            return Run(self.device, False, 0, self._dtype).tensor(value)
        return value

    def state_dict(self) -> dict[str, Any]:
        """The weights by name."""
        named = {
            name: weight.tensor(self.device)
            for name, weight in self.graph.weights.items()
            if not weight.is_host
        }
        return {name: value for name, value in named.items() if isinstance(value, Tensor)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Put other values into weights."""
        own = self.state_dict()
        for name, value in state.items():
            if name not in own:
                raise ArgumentError(f"onnx: the model has no weight {name!r}")
            if tuple(value.shape) != tuple(own[name].shape):
                raise ShapeError(
                    f"onnx: weight {name!r} has the shape {value.shape}",
                    rule=f"the model has {own[name].shape}",
                )
            own[name].assign(value.cast(own[name].dtype))
            self.graph.weights[name].replace(own[name].realize())
        self._traced = Jit(self._graph_outputs)  # what was made of weights is made again

    def to(self, target: Any) -> Model:
        """The same model on another device, or with all of its floats in another dtype."""
        if isinstance(target, str) and not hasattr(dtypes, target):
            self.device = target
        else:
            self._dtype = read_dtype(target, dtypes.float32)
            if not self._dtype.is_float:
                raise ArgumentError(f"onnx: to({target})", rule="a model is of a floating dtype")
        for name, value in self.state_dict().items():
            changed = Run(self.device, False, 0, self._dtype).fitted(value.to(self.device))
            self.graph.weights[name].replace(changed.realize())
        self._traced = Jit(self._graph_outputs)
        return self


def _zeros(said: Described, sizes: Mapping[str, int], device: str | None) -> Any:
    """An input of zeros as the graph describes it; None for what is not a tensor."""
    if said.kind != "tensor" or said.element not in DTYPES or said.shape is None:
        return None
    shape = [size if isinstance(size, int) else sizes.get(size or "", 1) for size in said.shape]
    return Tensor.zeros(*shape, dtype=DTYPES[said.element], device=device).contiguous().realize()


def _is_plain(value: Any) -> bool:
    """Whether a value may be seen with other sizes: on one device, and of no gradient."""
    return not isinstance(value, Tensor) or (isinstance(value.device, str) and not value._wants)


def _reason(error: Exception) -> str:
    if isinstance(error, NeedsValue):
        return f"{error.node or 'a result'}: a value that is computed decides shapes"
    return str(getattr(error, "what", error)).removeprefix("onnx: ")


def _kind_of(error: Exception) -> str:
    """Which other limits of symbolic sizes could help against an error."""
    fix = getattr(error, "fix", "")
    return "least" if fix == GREATER_MIN else "multiple" if fix in (EQUAL_SIZES, MULTIPLES) else ""


def _has_text(value: Any) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, str)


def _is_text(array: Any) -> bool:
    return array.dtype == object and (not array.size or isinstance(array.flat[0], str))


def _shown_shape(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"
