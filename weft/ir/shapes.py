"""The shape of every tensor-level value, with sizes that may be symbolic.

A size is an int or an index node. Elementwise ops take sources of one shape, or scalars `()`,
which stand with any shape; the tensor layer writes every other broadcast as EXPAND. In kernels all
values are scalars, so the same rule gives `()` everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.ir.build import Size
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.results import results_of
from weft.ir.sizes import minus, most, plus, times
from weft.ir.uop import UOp
from weft.ir.walk import bodies, topological
from weft.support.errors import InternalError

Shape = tuple[Size, ...]
_WITH_BODIES: Final = 1 << Op.CALL | 1 << Op.CUSTOM_GRADIENT


def shape_of(node: UOp) -> Shape:
    """The shape of a value; remembered on the node."""
    known = node.known_shape
    if known is None:
        for source in node.src:
            if source.known_shape is None:
                break
        else:  # the common case while a graph is built: it needs no walk
            if node.op != Op.CALL or node.arg.known_shape is not None:
                node.known_shape = known = _RULES.get(node.op, _scalar)(node)
                return known
        if node.ops & _WITH_BODIES:
            for body in bodies(node, enter=lambda part: part.known_shape is None):
                _fill_shapes(body)
        _fill_shapes(node)
        known = node.known_shape
        assert known is not None
    return known


def _fill_shapes(node: UOp) -> None:
    for part in topological(node, enter=lambda part: part.known_shape is None):
        if part.known_shape is None:
            part.known_shape = _RULES.get(part.op, _scalar)(part)


def size(shape: Shape) -> Size:
    """The number of elements."""
    return times(*shape)


def largest_size(shape: Shape) -> int:
    """The number of elements when every symbolic size has its greatest value."""
    product = 1
    for extent in shape:
        product *= most(extent)
    return product


def fill_sizes(node: UOp, static: tuple[int | None, ...], first: int) -> Shape:
    """The sizes of an arg, with the sources from `first` on for the Nones."""
    if len(node.src) == first:
        return static  # type: ignore[return-value]  # no None without a source
    symbolic = iter(node.src[first:])
    return tuple(_filled(value, symbolic) for value in static)


def fill_pairs(node: UOp) -> tuple[tuple[Size, Size], ...]:
    """The pairs of a PAD or SHRINK, with its further sources for the Nones."""
    symbolic = iter(node.src[1:])
    return tuple((_filled(low, symbolic), _filled(high, symbolic)) for low, high in node.arg)


def _filled(value: int | None, symbolic: Iterator[UOp]) -> Size:
    return next(symbolic) if value is None else value


def same_size(a: Size, b: Size) -> bool:
    return a is b if isinstance(a, UOp) or isinstance(b, UOp) else a == b


def same_shape(a: Shape, b: Shape) -> bool:
    return tuple(a) == tuple(b)  # nodes are equal where they are the same


def _scalar(node: UOp) -> Shape:
    return ()


def _of_first(node: UOp) -> Shape:
    return shape_of(node.src[0])


def _elementwise(node: UOp) -> Shape:
    shape: Shape = ()
    for source in node.src:
        other = shape_of(source)
        if not other or other is shape:
            continue
        if shape and not same_shape(shape, other):
            raise InternalError(f"{name(node.op)} of unlike shapes {shape} and {other}")
        shape = other
    return shape


def _of_arg(first: int) -> Callable[[UOp], Shape]:
    return lambda node: fill_sizes(node, node.arg, first)


def _staged(node: UOp) -> Shape:
    """A value in global memory has the shape it is stored in; in a kernel all are scalars."""
    space, sizes = node.arg[:2]
    if space == "global" and sizes:
        return fill_sizes(node, sizes, 1 + len(sizes))
    return _of_first(node)


def _permuted(node: UOp) -> Shape:
    source = shape_of(node.src[0])
    return tuple(source[axis] for axis in node.arg)


def _padded(node: UOp) -> Shape:
    source = shape_of(node.src[0])
    pairs = fill_pairs(node)
    return tuple(
        plus(plus(extent, low), high) for extent, (low, high) in zip(source, pairs, strict=True)
    )


def _shrunk(node: UOp) -> Shape:
    return tuple(minus(high, low) for low, high in fill_pairs(node))


def _reduced(node: UOp) -> Shape:
    axes = node.arg[1]
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(_of_first(node)))


def _indexed(node: UOp) -> Shape:
    """The common shape of the indices, then the axes of the value that are not indexed."""
    return shape_at(node.src[0], node.src[2:])


def shape_at(memory: UOp, indices: Sequence[UOp]) -> Shape:
    """The shape of a value at the indices of its first axes."""
    shape: Shape = ()
    for source in indices:
        shape = shape_of(source) or shape
    return shape + shape_of(memory)[len(indices) :]


def _item(node: UOp) -> Shape:
    values = results_of(node.src[0])
    if values is None:
        raise InternalError("ITEM of a node that has no values", ir_text=repr(node))
    return shape_of(values[node.arg])


_LIKE_FIRST: Final = (
    *(Op.DETACH, Op.COPY, Op.SHARD, Op.AFTER, Op.LOAD, Op.SCAN, Op.SCATTER),
    *(Op.CUSTOM_GRADIENT, Op.INLINE),
)
_RULES: Final[dict[int, Callable[[UOp], Shape]]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(_LIKE_FIRST, _of_first),
    Op.BUFFER: lambda node: fill_sizes(node, node.arg[1], 0),
    Op.PARAM: lambda node: fill_sizes(node, node.arg[1], 0),
    Op.IOTA: _of_arg(0),
    Op.RESHAPE: _of_arg(1),
    Op.EXPAND: _of_arg(1),
    Op.STAGE: _staged,
    Op.PERMUTE: _permuted,
    Op.PAD: _padded,
    Op.SHRINK: _shrunk,
    Op.FLIP: _of_first,
    Op.REDUCE: _reduced,
    Op.INDEX: _indexed,
    Op.ITEM: _item,
    Op.CALL: lambda node: shape_of(node.arg),
}
