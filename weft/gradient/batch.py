"""Batching: a tensor graph of one example becomes one of many, with the batch as the first axis.

`vmap` and `jacobian` call `batch`. A rule takes a node and its sources, some of which have grown a
batch axis, and gives the node with one; a node that depends on no batched source stays as it is.
The result holds ordinary ops only, so it can be batched, differentiated and scheduled like any
other graph. The bodies of calls are batched too, once for each set of batched arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.movement import as_shape, expand, iota, reshape
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.shapes import Shape, fill_sizes, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.support.errors import NotSupported


class Sources(NamedTuple):
    """The sources of a node, which of them are batched, and the size of the batch."""

    nodes: tuple[UOp, ...]
    are_batched: tuple[bool, ...]
    size: int

    def fitted(self, position: int, shape: Shape) -> UOp:
        """As `lifted`, but a scalar that is the same for all stands with any shape."""
        node = self.nodes[position]
        is_free = not self.are_batched[position] and not shape_of(node)
        return node if is_free else self.lifted(position, shape)

    def lifted(self, position: int, shape: Shape) -> UOp:
        """A source with a batch axis, in the shape of one example after it."""
        node = self.nodes[position]
        if self.are_batched[position]:
            own = shape_of(node)[1:]
            return node if own else _scalars_in(node, shape)
        return repeated(_broadcast(node, shape), self.size)


BatchRule = Callable[[UOp, Sources], UOp]


def repeated(node: UOp, size: int) -> UOp:
    """The same value for every example."""
    own = shape_of(node)
    return expand(reshape(node, (1, *own)), (size, *own))


def _broadcast(node: UOp, shape: Shape) -> UOp:
    """A scalar in every element of a shape; anything else has that shape already."""
    if shape_of(node) or not shape:
        return node
    return expand(reshape(node, (1,) * len(shape)), shape)


def _scalars_in(node: UOp, shape: Shape) -> UOp:
    """Numbers (batch,), one for each example, in every element of an example of a shape."""
    size = shape_of(node)[0]
    return expand(as_shape(node, (size, *(1,) * len(shape))), (size, *shape))


def _like(node: UOp, src: Sequence[UOp], arg: object = None) -> UOp:
    return make(node.op, node.dtype, tuple(src), node.arg if arg is None else arg)


def _elementwise(node: UOp, sources: Sources) -> UOp:
    """The same op; sources have one shape, or are scalars"""
    shape = shape_of(node)
    return _like(node, [sources.fitted(position, shape) for position in range(len(node.src))])


def _resized(node: UOp, sources: Sources) -> UOp:
    """RESHAPE, EXPAND: the batch in front of the sizes"""
    return _like(node, sources.nodes, (sources.size, *node.arg))


def _permute(node: UOp, sources: Sources) -> UOp:
    """PERMUTE: the batch stays in front"""
    return _like(node, sources.nodes, (0, *(axis + 1 for axis in node.arg)))


def _pad(node: UOp, sources: Sources) -> UOp:
    """PAD: nothing around the batch"""
    return _like(node, sources.nodes, ((0, 0), *node.arg))


def _shrink(node: UOp, sources: Sources) -> UOp:
    """SHRINK: all of the batch"""
    return _like(node, sources.nodes, ((0, sources.size), *node.arg))


def _flip(node: UOp, sources: Sources) -> UOp:
    """FLIP: axes count from after the batch"""
    return _like(node, sources.nodes, tuple(axis + 1 for axis in node.arg))


def _reduce(node: UOp, sources: Sources) -> UOp:
    """REDUCE, SCAN: axes count from after the batch"""
    op, axes = node.arg
    return _like(node, sources.nodes, (op, tuple(axis + 1 for axis in axes)))


def _same(node: UOp, sources: Sources) -> UOp:
    """DETACH, COPY, STAGE: the value as it is"""
    return _like(node, sources.nodes)


def _shard(node: UOp, sources: Sources) -> UOp:
    """SHARD: the axis counts from after the batch"""
    devices, axis, sizes = node.arg
    return _like(node, sources.nodes, (devices, None if axis is None else axis + 1, sizes))


def _index(node: UOp, sources: Sources) -> UOp:
    """INDEX: positions of all examples; where the memory is batched, of each in its own part"""
    count = len(node.src) - 2
    rest = len(shape_of(node.src[0])) - count
    own = shape_of(node)
    positions = own[: len(own) - rest]
    src = [sources.fitted(position, positions) for position in range(1, count + 2)]
    memory = sources.nodes[0]
    if sources.are_batched[0]:
        numbers = iota(sources.size, dtypes.int64)
        src.insert(1, _scalars_in(numbers, positions))
    return _like(node, (memory, *src))


def _scatter(node: UOp, sources: Sources) -> UOp:
    """SCATTER: every example into its own part"""
    count = len(node.src) - 3
    updates = shape_of(node.src[1])
    positions = updates[: len(updates) - len(shape_of(node.src[0])) + count]
    value = sources.lifted(0, shape_of(node))
    src = [sources.fitted(position, positions) for position in range(2, count + 3)]
    numbers = iota(sources.size, dtypes.int64)
    src.insert(1, _scalars_in(numbers, positions))
    return _like(node, (value, sources.lifted(1, updates), *src))


def _item(node: UOp, sources: Sources) -> UOp:
    """ITEM: of the batched values"""
    return _like(node, sources.nodes)


def _tuple(node: UOp, sources: Sources) -> UOp:
    """TUPLE: every value has the batch"""
    shapes = map(shape_of, node.src)
    return _like(node, [sources.lifted(i, shape) for i, shape in enumerate(shapes)])


BATCH_RULES: Final[dict[int, BatchRule]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    Op.RESHAPE: _resized,
    Op.EXPAND: _resized,
    Op.PERMUTE: _permute,
    Op.PAD: _pad,
    Op.SHRINK: _shrink,
    Op.FLIP: _flip,
    **dict.fromkeys((Op.DETACH, Op.COPY, Op.STAGE, Op.INLINE), _same),
    Op.SHARD: _shard,
    **dict.fromkeys((Op.REDUCE, Op.SCAN), _reduce),
    Op.INDEX: _index,
    Op.SCATTER: _scatter,
    Op.TUPLE: _tuple,
    Op.ITEM: _item,
}

WITHOUT_BATCH: Final[dict[int, str]] = {
    **dict.fromkeys((Op.CONST, Op.BUFFER, Op.IOTA), "it has no sources with values"),
    Op.PARAM: "it is replaced, or the same for all",
    **dict.fromkeys((Op.VARIABLE, Op.BIND), "a size is the same for all"),
    **dict.fromkeys((Op.STORE, Op.AFTER), "memory has one value, not one for each example"),
    Op.SINK: "it has no value",
    Op.CALL: "its body is batched",
    Op.CUSTOM_GRADIENT: "its body is batched; what does not depend on examples has no value of it",
}


class _Body(NamedTuple):
    """What decides a batched body: the body, and which of its arguments are batched."""

    body: UOp
    are_batched: tuple[bool, ...]
    shapes: tuple[Shape, ...]


class _Batching:
    """One run: what has become of each node, and the bodies that were batched on the way."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._bodies: dict[_Body, UOp] = {}

    def of(self, roots: Sequence[UOp], batched: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
        """The nodes below the roots that depend on what is batched, each with its batch."""
        found: dict[UOp, UOp] = dict(batched)
        for node in topological(*roots, enter=lambda node: node not in batched):
            if node in found or not any(source in found for source in node.src):
                continue
            sources = Sources(
                tuple(found.get(source, source) for source in node.src),
                tuple(source in found for source in node.src),
                self.size,
            )
            found[node] = self._node(node, sources)
            found[node].line = found[node].line or node.line
        return found

    def _node(self, node: UOp, sources: Sources) -> UOp:
        if node.op == Op.CALL and node.arg.op not in (Op.KERNEL, Op.LINEAR):
            return self._call(node, sources)
        if node.op == Op.CUSTOM_GRADIENT and sources.are_batched[0]:
            return self._custom_gradient(node, sources)
        rule = BATCH_RULES.get(node.op)
        if rule is None:
            reason = WITHOUT_BATCH.get(node.op, "it is written for one example")
            raise NotSupported(
                f"vmap: {name(node.op)} of a value that differs between examples",
                facts=[("because", reason)],
                rule="inside vmap a function computes values; it writes to no memory of others",
                fix="return the value, and write it outside",
                where=node.line,
            )
        return rule(node, sources)

    def _call(self, node: UOp, sources: Sources) -> UOp:
        """A call of the body for many; all of its values have the batch."""
        key = _Body(node.arg, sources.are_batched, tuple(map(shape_of, node.src)))
        if key not in self._bodies:
            self._bodies[key] = self._body(key)
        return call(self._bodies[key], *sources.nodes)

    def _custom_gradient(self, node: UOp, sources: Sources) -> UOp:
        """A value with its gradient for many: all that the body is handed has the batch."""
        body, inputs, slots = node.arg
        given = [
            sources.lifted(position, shape_of(part))
            for position, part in enumerate(node.src[1:], 1)
        ]
        params = {part.arg[0]: part for part in topological(body) if part.op == Op.PARAM}
        count = 1 + max(params, default=-1)
        grown = self._body(_Body(body, (True,) * count, ()))
        return _like(node, (sources.nodes[0], *given), (grown, inputs, slots))

    def _body(self, key: _Body) -> UOp:
        grown: dict[UOp, UOp] = {}
        for part in topological(key.body):
            if part.op == Op.PARAM and key.are_batched[part.arg[0]]:
                shape = fill_sizes(part, part.arg[1], 0)
                grown[part] = param(part.arg[0], part.dtype, (self.size, *shape))
        made = self.of([key.body], grown)
        if key.body in made:
            return made[key.body]
        if key.body.op == Op.TUPLE:
            return _like(key.body, [repeated(part, self.size) for part in key.body.src])
        return repeated(key.body, self.size)


def batch(roots: Sequence[UOp], batched: Mapping[UOp, UOp], size: int) -> list[UOp]:
    """The roots for a batch of examples: nodes of one example stand for those of many.

    Every root has the batch as its first axis, also one that is the same for all examples.

    >>> from weft.ir.build import buffer
    >>> x = buffer(0, dtypes.float32, (3,), "CPU")
    >>> many = buffer(1, dtypes.float32, (5, 3), "CPU")
    >>> batch([x * x], {x: many}, 5)[0] is many * many
    True
    """
    found = _Batching(size).of(roots, batched)
    return [found[root] if root in found else repeated(root, size) for root in roots]
