"""What a model file is: opsets, inputs, outputs, operators, weights, what is not supported.

Nothing is computed. The cost is that of products and convolutions, as far as shapes are known.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from weft.onnx.elements import element_name
from weft.onnx.files import fault, parse
from weft.onnx.graph import Described, Graph, Reader, all_graphs


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
    multiplications: int | None
    unsupported: dict[str, list[str]] = field(default_factory=dict)


def info(source: str | Path | bytes | Any) -> ModelInfo:
    """Describe a model; also one with operators that are not supported."""
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
    return ModelInfo(
        reader.versions,
        f"{proto.producer_name} {proto.producer_version}".strip(),
        [each for each in graph.inputs if each.name not in graph.weights],
        graph.outputs,
        operators,
        sum(operators.values()),
        sum(weight.size for weight in graph.weights.values()),
        sum(_bytes(weight) for weight in graph.weights.values()),
        _multiplications(proto, graph),
        unsupported,
    )


def _bytes(weight: Any) -> int:
    try:
        width = onnx.helper.tensor_dtype_to_np_dtype(weight.element).itemsize
    except (KeyError, ValueError):
        width = 1
    return int(weight.size * width)


def _multiplications(proto: Any, graph: Graph) -> int | None:
    """Multiplications of products and convolutions; None where no shape could be inferred."""
    try:
        shapes = _inferred_shapes(proto)
    except Exception:  # inference refuses models for reasons of its own
        return None
    total = 0
    for node in graph.nodes:
        sizes = [shapes.get(name) for name in (*node.inputs[:2], *node.outputs[:1])]
        if node.op not in ("Conv", "MatMul", "Gemm", "ConvTranspose") or None in sizes:
            continue
        left, right, result = ([*size] if size else [1, 1] for size in sizes)
        if node.op == "Conv":
            total += math.prod(result) * math.prod(right[1:])
        elif node.op == "ConvTranspose":
            total += math.prod(left) * math.prod(right[1:])
        else:
            depth = left[-1] if not node.attributes.get("transA") else left[0]
            total += math.prod(result) * depth
    return total


def _inferred_shapes(proto: Any) -> dict[str, Any]:
    inferred = onnx.shape_inference.infer_shapes(proto)
    shapes: dict[str, Any] = {}
    graph = inferred.graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        shapes[value.name] = tuple(dim.dim_value or 1 for dim in dims)
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
    if found.multiplications is not None:
        cost = f"{found.multiplications / 1e6:,.1f} million multiplications"
        lines.append(f"cost       {cost}, where sizes without a number count as 1")
    counted = ", ".join(f"{name} {count}" for name, count in found.operators.most_common())
    lines.append(f"operators  {found.nodes} nodes: {counted}")
    if not found.unsupported:
        return "\n".join([*lines, "supported  yes, every operator"])
    lines.append("supported  no; these operators are not:")
    for name, nodes in sorted(found.unsupported.items()):
        lines.append(f"  {name}: {', '.join(nodes[:8])}{' …' if len(nodes) > 8 else ''}")
    return "\n".join(lines)
