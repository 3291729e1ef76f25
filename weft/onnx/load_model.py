"""`load`: a model file as a function of tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.onnx.files import fault, parse
from weft.onnx.graph import Reader
from weft.onnx.model import Model
from weft.onnx.named_sizes import Sizes
from weft.support.errors import NotSupported
from weft.support.source_line import NOWHERE

MOST_ITERATIONS = 1_000_000


def load(
    source: str | Path | bytes | Any,
    device: str | None = None,
    sizes: Sizes | None = None,
    jit: bool = True,
    most_iterations: int = MOST_ITERATIONS,
) -> Model:
    """Load a model from a path, from bytes or from a ModelProto.

    Named dimensions are symbolic where the graph allows: one trace runs all sizes but the first.
    `sizes` gives the least and greatest value of those that are symbolic in every call, or one
    greatest value of all of them. `most_iterations` is how many a Loop may take.
    """
    proto, folder = parse(source)
    reader = Reader(proto.opset_import, folder, proto.functions)
    try:
        graph = reader.graph(proto.graph)
    except RecursionError:
        raise fault("the model is nested too deep") from None
    require_known(reader.missing)
    return Model(graph, reader.versions, device, sizes, most_iterations, jit)


def require_known(missing: list[tuple[str, str]]) -> None:
    """Raise if there are operators that nothing computes; the message names all of them."""
    if not missing:
        return
    nodes: dict[str, list[str]] = {}
    for name, node in missing:
        nodes.setdefault(name, []).append(node)
    facts = [(name, ", ".join(named[:4]) + (" …" if len(named) > 4 else ""))
             for name, named in sorted(nodes.items())]  # fmt: skip
    raise NotSupported(
        f"onnx: {len(nodes)} operators are not supported: {', '.join(sorted(nodes))}",
        facts=facts,
        rule="supported are those of docs/reference/onnx.md",
        where=NOWHERE,
    )
