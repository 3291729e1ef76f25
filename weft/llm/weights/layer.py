"""Weights by name, as graphs over bytes in memory: packed ones stay packed.

Values are float32, whatever is stored. Names are those of GGUF (`blk.3.attn_q.weight`); a
`LayerWeights` has those of one layer without their prefix, or those of the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.support.errors import FileFormatError
from weft.tensor.core import realize_all
from weft.tensor.tensor import Tensor

Progress = Callable[[int, int], None]  # bytes that are there, bytes in all


class LayerWeights:
    """A view of a model's weights: names under a prefix."""

    def __init__(self, graphs: Mapping[str, UOp], prefix: str = "") -> None:
        self._graphs = graphs
        self._prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._graphs

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        if found is None:
            raise FileFormatError(f"model: there is no tensor {self._prefix + name!r}")
        return found

    def get(self, name: str) -> Tensor | None:
        graph = self._graphs.get(self._prefix + name)
        return None if graph is None else Tensor(graph).cast(dtypes.float32)

    def names(self) -> Iterable[str]:
        return self._graphs.keys()

    def layer(self, number: int) -> LayerWeights:
        return LayerWeights(self._graphs, f"blk.{number}.")


def resident(weights: Mapping[str, Tensor], progress: Progress | None = None) -> dict[str, UOp]:
    """The graphs of weights, with the bytes of files in memory, as packed as they were.

    Nodes, not tensors: what is no tensor is not waiting to be computed.
    """
    graphs = {name: weight.uop for name, weight in weights.items()}
    copies = [node for node in topological(*graphs.values()) if node.op == Op.COPY]
    brought = [Tensor(node) for node in copies]
    total, done = sum(each.nbytes() for each in brought), 0
    for piece in _pieces(brought, total if progress is None else 1 << 26):
        realize_all(piece)
        done += sum(each.nbytes() for each in piece)
        if progress is not None:
            progress(done, total)
    made = {node: tensor.uop for node, tensor in zip(copies, brought, strict=True)}
    return {name: substitute(graph, made) for name, graph in graphs.items()}


def _pieces(tensors: list[Tensor], most: int) -> Iterable[list[Tensor]]:
    """Tensors in order, in groups of about so many bytes."""
    piece: list[Tensor] = []
    size = 0
    for tensor in tensors:
        piece.append(tensor)
        size += tensor.nbytes()
        if size >= most:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
