"""What a model file is: opsets, inputs, outputs, operators, weights, what is not supported.

Nothing is run. Which named sizes can be symbolic, and shapes that ONNX does not infer, are found
by building the graph. The cost is that of products and convolutions, as far as shapes are known:
named sizes have the numbers that are given for them, or 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from weft.onnx.elements import element_name
from weft.onnx.files import fault, parse
from weft.onnx.graph import Described, Reader, all_graphs
from weft.onnx.load_model import MOST_ITERATIONS
from weft.onnx.model import Model
from weft.onnx.named_sizes import Limit
from weft.support.errors import UsageError


@dataclass(slots=True)
class Cost:
    """Multiplications of products and convolutions, and how many of these have unknown shapes."""

    multiplications: int
    unknown: int
    sizes: dict[str, int]  # those that were named


@dataclass(slots=True)
class ModelInfo:
    """What `weft onnx info` prints."""

    opsets: dict[str, int]
    producer: str
    inputs: list[Described]
    outputs: list[Described]
    operators: Counter[str]
    nodes: int
    weights: int
    weight_bytes: int
    cost: Cost | None
    symbolic: dict[str, Limit] = field(default_factory=dict)  # named sizes, and their limits
    traced_alone: dict[str, str] = field(default_factory=dict)  # other ones, and what needs them
    unsupported: dict[str, list[str]] = field(default_factory=dict)


def info(source: str | Path | bytes | Any, sizes: Mapping[str, int] | None = None) -> ModelInfo:
    """Describe a model; also one with operators that are not supported.

    The cost is one with these named sizes; others are 1.
    """
    proto, folder = parse(source)
    reader = Reader(proto.opset_import, folder, proto.functions)
    try:
        graph = reader.graph(proto.graph)
    except RecursionError:
        raise fault("the model is nested too deep") from None
    operators: Counter[str] = Counter()
    for inner in all_graphs(graph):
        for node in inner.nodes:
            operators[f"{node.domain}.{node.op}" if node.domain else node.op] += 1
    unsupported: dict[str, list[str]] = {}
    for name, node_name in reader.missing:
        unsupported.setdefault(name, []).append(node_name)
    model = Model(graph, reader.versions, None, None, MOST_ITERATIONS, True)
    if not unsupported:
        _find_sizes(model, sizes or {})
    return ModelInfo(
        reader.versions,
        f"{proto.producer_name} {proto.producer_version}".strip(),
        [each for each in graph.inputs if each.name not in graph.weights],
        graph.outputs,
        operators,
        sum(operators.values()),
        sum(weight.size for weight in graph.weights.values()),
        sum(_bytes(weight) for weight in graph.weights.values()),
        _cost(proto, model, sizes or {}, not unsupported),
        model.sizes.limits,
        model.sizes.problems,
        unsupported,
    )


def _find_sizes(model: Model, sizes: Mapping[str, int]) -> None:
    """Find which named sizes are symbolic, as far as the weights are there."""
    try:
        if model.sizes.names:
            model.find_sizes(sizes)
    except (UsageError, OSError) as error:
        reason = str(getattr(error, "what", error))
        model.sizes.problems = dict.fromkeys(model.sizes.names, reason)


def _bytes(weight: Any) -> int:
    try:
        width = onnx.helper.tensor_dtype_to_np_dtype(weight.element).itemsize
    except (KeyError, ValueError):
        width = 1
    return int(weight.size * width)


# Where operators have their second factor, which has the features of the result first or last.
_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "FusedConv": 1, "ConvTranspose": 1}
_PRODUCTS = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "Gemm", "FusedGemm", "FusedMatMul"), 1),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "Attention"), 1),
    **dict.fromkeys(("QLinearMatMul", "QGemm"), 3),
    "QAttention": 1,
}
_COUNTED = {*_CONVOLUTIONS, *_PRODUCTS, "MatMulNBits"}


def _cost(proto: Any, model: Model, sizes: Mapping[str, int], is_whole: bool) -> Cost | None:
    """Multiplications of products and convolutions; None where no shape could be inferred."""
    names: dict[str, int] = {}
    try:
        shapes = _inferred_shapes(proto, sizes, names)
    except Exception:  # inference refuses models for reasons of its own
        return None
    nodes = [n for n in model.graph.nodes if n.op in _COUNTED]
    if is_whole and any(_multiplications(node, shapes) is None for node in nodes):
        with suppress(UsageError, OSError):
            shapes = {**model.shapes(model.zeros({**names, **sizes})), **shapes}
    counts = [_multiplications(node, shapes) for node in nodes]
    return Cost(sum(filter(None, counts)), counts.count(None), names)


def _multiplications(node: Any, shapes: Mapping[str, Any]) -> int | None:
    left = shapes.get(node.inputs[0])
    if node.op == "MatMulNBits":
        return None if left is None else int(math.prod(left) * node.attributes["N"])
    number = _CONVOLUTIONS.get(node.op) or _PRODUCTS[node.op]
    right, result = shapes.get(node.inputs[number]), shapes.get(node.outputs[0])
    if left is None or right is None or not left or not right:
        return None
    if node.op == "ConvTranspose":
        return int(math.prod(left) * math.prod(right[1:]))
    if node.op in _CONVOLUTIONS:
        return None if result is None else math.prod(result) * math.prod(right[1:])
    features = right[-2] if node.attributes.get("transB") and len(right) > 1 else right[-1]
    rows = left if math.prod(left[:-2]) >= math.prod(right[:-2]) else (*right[:-2], *left[-2:])
    return int(math.prod(rows) * (features if len(right) > 1 else 1))


def _inferred_shapes(
    proto: Any, sizes: Mapping[str, int], names: dict[str, int]
) -> dict[str, Any]:
    """Shapes by name, where they are known; `names` gets the named sizes of inputs."""
    sized = onnx.ModelProto()
    sized.CopyFrom(proto)
    weights = {each.name for each in sized.graph.initializer}
    for value in sized.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if value.name not in weights and not dim.HasField("dim_value"):
                name = dim.dim_param or "?"
                names[name] = int(sizes.get(name, 1))
                dim.dim_value = names[name]
    # What is said of other values may be said in these names.
    for value in (*sized.graph.output, *sized.graph.value_info) if names else ():
        value.type.tensor_type.ClearField("shape")
    graph = onnx.shape_inference.infer_shapes(sized, data_prop=True).graph
    shapes: dict[str, Any] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    for tensor in graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
    return shapes


def shown(each: Described) -> str:
    """An input or output in a line."""
    if each.kind != "tensor":
        return f"{each.name}: {each.kind}"
    sizes = "?" if each.shape is None else ", ".join(
        "?" if size is None else str(size) for size in each.shape)  # fmt: skip
    return f"{each.name}: {element_name(each.element).lower()} ({sizes})"


def _shown_cost(cost: Cost) -> str:
    text = f"{cost.multiplications / 1e6:,.1f} million multiplications"
    if cost.sizes:
        text += " at " + ", ".join(f"{name} {size}" for name, size in cost.sizes.items())
    if cost.unknown:
        text += f", and {cost.unknown} products whose shapes are not known"
    return text


def _shown_sizes(found: ModelInfo) -> list[str]:
    """Which named sizes share a trace, and what the others need one of their own for."""
    lines = [
        f"size       {name}: symbolic, one trace for all{_shown_limit(limit)}"
        for name, limit in found.symbolic.items()
    ]
    alone = [
        f"size       {name}: a trace for each, because of {reason.splitlines()[0]}"
        for name, reason in found.traced_alone.items()
    ]
    return lines + alone


def _shown_limit(limit: Limit) -> str:
    multiples = "" if limit.multiple == 1 else f" multiples of {limit.multiple}"
    least = "" if limit.least == 1 else f" from {limit.least}"
    return f"{multiples}{least} up to {limit.most}"


def report(found: ModelInfo) -> str:
    """The text of an info."""
    opsets = ", ".join(f"{name or 'ai.onnx'} {version}" for name, version in found.opsets.items())
    lines = [f"opsets     {opsets}"]
    if found.producer:
        lines.append(f"producer   {found.producer}")
    lines += [f"input      {shown(each)}" for each in found.inputs]
    lines += [f"output     {shown(each)}" for each in found.outputs]
    size = found.weight_bytes / 1e6
    lines.append(f"weights    {found.weights:,} in {size:,.1f} MB")
    lines += _shown_sizes(found)
    if found.cost is not None:
        lines.append(f"cost       {_shown_cost(found.cost)}")
    counted = ", ".join(f"{name} {count}" for name, count in found.operators.most_common())
    lines.append(f"operators  {found.nodes} nodes: {counted}")
    if not found.unsupported:
        return "\n".join([*lines, "supported  yes, every operator"])
    lines.append("supported  no; these operators are not:")
    for name, nodes in sorted(found.unsupported.items()):
        lines.append(f"  {name}: {', '.join(nodes[:8])}{' …' if len(nodes) > 8 else ''}")
    return "\n".join(lines)
