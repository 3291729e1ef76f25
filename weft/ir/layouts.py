"""Layouts of values on several devices: whole on each, or cut along an axis.

A graph over several devices is the graph of one machine. Memory says its layout, SHARD
says that of a value, and `layout_of` finds it for everything in between: each op has a rule,
`flow`, that says the layouts that its sources must have and that of its result then. The tensor
layer asks here before it builds, the pass `shard` follows the same rules when it makes a graph for
each device.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from weft.ir.build import Size
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.results import FILLING, results_of
from weft.ir.shapes import Shape, fill_pairs, same_size, shape_of
from weft.ir.sizes import times
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import DeviceError


class Layout(NamedTuple):
    """The devices of a value; the axis along which it is cut and the size of each part."""

    devices: tuple[str, ...]
    axis: int | None = None
    sizes: tuple[int, ...] = ()

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each part begins and ends."""
        ends = [sum(self.sizes[: count + 1]) for count in range(len(self.sizes))]
        return [(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def part(self, shape: Shape, number: int) -> Shape:
        """The shape of one part of a value."""
        if self.axis is None:
            return shape
        return (*shape[: self.axis], self.sizes[number], *shape[self.axis + 1 :])

    def __str__(self) -> str:
        where = ", ".join(self.devices)
        return f"whole on {where}" if self.axis is None else f"axis {self.axis} over {where}"


# A layout, None for a value of one device or of none, or a list of them for several values.
Found = Any
Given = Sequence[Layout | None]


class Flow(NamedTuple):
    """Layouts that the sources of a node must have (None: as they are), and that of its value
    then.

    Where `reduction` is an op, every device has a value of its own, and their reduction is the
    value.
    """

    sources: tuple[Layout | None, ...]
    result: Layout
    reduction: int | None = None


def even_layout(devices: Sequence[str], axis: int | None, size: int = 0) -> Layout:
    """An axis cut into parts that differ by one element at most, the greater ones first.

    >>> even_layout(("CPU", "CPU:1"), 0, 5).sizes
    (3, 2)
    """
    count = len(devices)
    if axis is None:
        return Layout(tuple(devices))
    sizes = tuple((size + count - 1 - number) // count for number in range(count))
    return Layout(tuple(devices), axis, sizes)


_KNOWN: Final[WeakKeyDictionary[UOp, Found]] = WeakKeyDictionary()
_SHARDING: Final = 1 << Op.BUFFER | 1 << Op.SHARD | 1 << Op.CALL


def layout_of(node: UOp) -> Layout | None:
    """The layout of a value over several devices; None if it is on one, or has no memory.

    Operands that are cut differently meet in the layout of the first.
    """
    if not node.ops & _SHARDING:
        return None
    found = _find(node, _KNOWN, ())
    return found if isinstance(found, Layout) else None


def has_layout(node: UOp) -> bool:
    """Whether a node says by itself that something is on several devices."""
    if node.op == Op.BUFFER:
        return node.arg[2].__class__ is not str
    if node.op == Op.CALL and node.arg.ops & _SHARDING:
        return any(map(has_layout, topological(node.arg)))
    return node.op == Op.SHARD


def _find(root: UOp, known: MutableMapping[UOp, Found], arguments: Sequence[Found]) -> Found:
    for node in topological(root, enter=lambda part: part not in known):
        if node not in known:
            given = [known[source] for source in node.src]
            known[node] = _layout(node, given, arguments)
    return known[root]


def _layout(node: UOp, given: list[Found], arguments: Sequence[Found]) -> Found:
    if node.op == Op.BUFFER:
        return Layout(*node.arg[2]) if node.arg[2].__class__ is not str else None
    if node.op == Op.SHARD:
        return Layout(*node.arg)
    if node.op == Op.PARAM:
        return arguments[node.arg[0]] if arguments else None
    if node.op == Op.TUPLE:
        return given
    if node.op == Op.ITEM:
        return given[0][node.arg] if isinstance(given[0], list) else None
    if node.op == Op.CALL:
        return _called(node, given)
    if node.op in (Op.AFTER, Op.CUSTOM_GRADIENT):
        return given[0]
    if node.op in (Op.COPY, Op.STORE, Op.SINK) or not any(given):
        return None
    return flow(node, given).result


def _called(node: UOp, given: list[Found]) -> Found:
    """The layouts of a call: those of its body with arguments of these layouts."""
    sharded = [each for each in given if isinstance(each, Layout)]
    if node.arg.op not in FILLING and node.arg.op not in (Op.SINK, Op.LINEAR):
        inside: dict[UOp, Found] = {}
        return _find(node.arg, inside, given)
    values = results_of(node)
    whole = Layout(sharded[0].devices) if sharded else None
    return whole if values is None else [whole] * len(values)


def flow(node: UOp, given: Given) -> Flow:
    """The rule of an op: how sources of different layouts are brought together."""
    devices = next(each.devices for each in given if each)
    others = [each for each in given if each and each.devices != devices]
    if others:
        raise DeviceError(
            f"{name(node.op).lower()}: operands are on different devices"
            f" ({', '.join(devices)} and {', '.join(others[0].devices)})",
            rule="operands on several devices are on the same ones, in the same order",
            fix="lay one out like the other: y.shard_like(x)",
        )
    return _RULES.get(node.op, _whole)(node, given)


def _devices(given: Given) -> Layout:
    """The layout of a value that is whole on each device."""
    return Layout(next(each.devices for each in given if each))


def _whole(node: UOp, given: Given) -> Flow:
    """All sources are brought together on each device."""
    whole = _devices(given)
    return Flow((whole,) * len(given), whole)


def _elementwise(node: UOp, given: Given) -> Flow:
    """The layout of the first that is cut; the others are cut like it"""
    whole = _devices(given)
    result = next((each for each in given if each and each.axis is not None), whole)
    return Flow(tuple(result if shape_of(source) else whole for source in node.src), result)


def _moved(axis_of: Callable[[UOp, Layout], tuple[int, tuple[int, ...]] | None]) -> Any:
    """The rule of a movement op, which says where the axis is afterwards, if it is one still."""

    def rule(node: UOp, given: Given) -> Flow:
        layout = given[0]
        if layout is None or layout.axis is None:
            return _first(node, given)
        moved = axis_of(node, layout)
        if moved is None:
            return _whole(node, given)
        return _first(node, given)._replace(result=Layout(layout.devices, *moved))

    return rule


def _first(node: UOp, given: Given) -> Flow:
    """As the first source; the others are sizes"""
    assert given[0] is not None
    return Flow((given[0], *[None] * (len(given) - 1)), given[0])


def _reshaped(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]] | None:
    """RESHAPE: an axis that begins where the cut one did, and whose rows lie in one part each"""
    before, after = shape_of(node.src[0]), shape_of(node)
    assert layout.axis is not None
    outer, inner = _around(before, layout.axis)
    for axis, size in enumerate(after):
        first, rest = _around(after, axis)
        if not same_size(first, outer) or same_size(size, 1):
            continue
        if same_size(rest, inner):
            return axis, layout.sizes
        if isinstance(rest, int) and isinstance(inner, int) and rest:
            sizes = [divmod(part * inner, rest) for part in layout.sizes]
            if not any(left for _, left in sizes):
                return axis, tuple(count for count, _ in sizes)
    return None


def _around(shape: Shape, axis: int) -> tuple[Size, Size]:
    return times(*shape[:axis]), times(*shape[axis + 1 :])


def _kept(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]]:
    assert layout.axis is not None
    return layout.axis, layout.sizes


def _permuted(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]]:
    """PERMUTE: wherever the axis went"""
    return node.arg.index(layout.axis), layout.sizes


def _shrunk(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]] | None:
    """SHRINK: as before if all of the axis is left"""
    axis, sizes = _kept(node, layout)
    return (axis, sizes) if node.arg[axis] == (0, sum(sizes)) else None


def _padded(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]] | None:
    """PAD: as before if nothing is around the axis"""
    axis, sizes = _kept(node, layout)
    return (axis, sizes) if fill_pairs(node)[axis] == (0, 0) else None


def _along(node: UOp, layout: Layout) -> tuple[int, tuple[int, ...]] | None:
    """FLIP, SCAN: as before unless it is along the axis"""
    axes = node.arg if node.op == Op.FLIP else node.arg[1]
    return None if layout.axis in axes else _kept(node, layout)


def _reduced(node: UOp, given: Given) -> Flow:
    """REDUCE: over the cut axis, the reduction of what the devices have; else as before"""
    kept = _first(node, given)
    op, axes = node.arg
    if kept.result.axis in axes:
        return kept._replace(result=Layout(kept.result.devices), reduction=op)
    return kept


def _placed(node: UOp, given: Given) -> Flow:
    """INDEX, SCATTER: by the rules of `weft.ir.layouts_index`"""
    from weft.ir.layouts_index import indexed, scattered

    return (indexed if node.op == Op.INDEX else scattered)(node, given)


_RULES: Final[dict[int, Callable[[UOp, Given], Flow]]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys((Op.DETACH, Op.STAGE, Op.INLINE), _first),
    **dict.fromkeys((Op.FLIP, Op.SCAN), _moved(_along)),
    **dict.fromkeys((Op.INDEX, Op.SCATTER), _placed),
    Op.RESHAPE: _moved(_reshaped),
    Op.EXPAND: _moved(_kept),
    Op.PERMUTE: _moved(_permuted),
    Op.SHRINK: _moved(_shrunk),
    Op.PAD: _moved(_padded),
    Op.REDUCE: _reduced,
}
