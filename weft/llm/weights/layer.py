"""Weights by name, as graphs over bytes in memory: packed ones stay packed.

Values are float32, whatever is stored. Names are those of GGUF (`blk.3.attn_q.weight`); a
`LayerWeights` has those of one layer without their prefix, or those of the whole model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

from weft.io.gguf import StoredTensor
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text.digest import digest_over_memory
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.support.errors import FileFormatError
from weft.tensor.core import realize_all
from weft.tensor.tensor import Tensor

Progress = Callable[[int, int], None]  # bytes that are there, bytes in all


class Weight:
    """A weight as a graph over memory, which is made when somebody computes with it.

    `what` says all that its values depend on beside the memory, for keys of what follows.
    """

    def __init__(self, what: str, memory: tuple[UOp, ...], make: Callable[[], UOp]) -> None:
        self.what = what
        self.memory = memory
        self._make = make

    @functools.cached_property
    def graph(self) -> UOp:
        return self._make()

    @classmethod
    def of(cls, graph: UOp) -> Weight:
        """The weight of a graph that is there."""
        what, memory = digest_over_memory(graph)
        return cls(what, memory, lambda: graph)


class LayerWeights:
    """A view of a model's weights: names under a prefix. They are fixed once it is made."""

    def __init__(self, weights: Mapping[str, Weight], prefix: str = "") -> None:
        self._weights = weights
        self._prefix = prefix

    @functools.cached_property
    def described(self) -> tuple[str, tuple[UOp, ...]]:
        """All that is read of any weight as a text, and the memory that they are over."""
        numbers: dict[UOp, int] = {}
        rows = [
            (name, each.what, [numbers.setdefault(node, len(numbers)) for node in each.memory])
            for name, each in self._weights.items()
        ]
        return repr((self._prefix, rows)), tuple(numbers)

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._weights

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        if found is None:
            raise FileFormatError(f"model: there is no tensor {self._prefix + name!r}")
        return found

    def get(self, name: str) -> Tensor | None:
        found = self._weights.get(self._prefix + name)
        return None if found is None else Tensor(found.graph).cast(dtypes.float32)

    def names(self) -> Iterable[str]:
        return self._weights.keys()

    def layer(self, number: int) -> LayerWeights:
        return LayerWeights(self._weights, f"blk.{number}.")


def resident(
    weights: Mapping[str, Tensor | StoredTensor], progress: Progress | None = None
) -> dict[str, Weight]:
    """Weights with the bytes of files in memory, as packed as they were.

    Nodes, not tensors: what is not a tensor is not waiting to be computed.
    """
    stored = {n: each for n, each in weights.items() if isinstance(each, StoredTensor)}
    graphs = {n: each.uop for n, each in weights.items() if isinstance(each, Tensor)}
    copies = [node for node in topological(*graphs.values()) if node.op == Op.COPY]
    brought = [*(Tensor(node) for node in copies), *(each.data for each in stored.values())]
    total, done = sum(each.nbytes() for each in brought), 0
    for piece in _pieces(brought, total if progress is None else 1 << 26):
        realize_all(piece)
        done += sum(each.nbytes() for each in piece)
        if progress is not None:
            progress(done, total)
    made = {node: tensor.uop for node, tensor in zip(copies, brought, strict=False)}
    found = {name: Weight.of(substitute(graph, made)) for name, graph in graphs.items()}
    return found | {name: _weight(each) for name, each in stored.items()}


def _weight(stored: StoredTensor) -> Weight:
    node, unpacked = stored.data.uop, stored._replace(data=None)  # type: ignore[arg-type]
    if stored.has_table:  # which is memory as well, and made outside of every trace
        return Weight.of(stored.over(Tensor(node)).uop)
    what = f"{stored.format} {stored.shape}"
    return Weight(what, (node,), lambda: unpacked.over(Tensor(node)).uop)


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
