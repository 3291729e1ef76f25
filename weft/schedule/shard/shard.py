"""The pass `shard`: a graph over several devices becomes a graph for each, and copies.

In: a SINK of values, writes and versions, with memory over several devices and SHARD ops. Out: a
SINK with a TUPLE for each of them: its part on each device, one part for what is on one device.
Every part is an ordinary tensor graph of one device; what comes from another one stands behind a
COPY. `weft.ir.layouts` has the rules of layouts; here they are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Union

from weft.ir.dtypes import dtypes
from weft.ir.layouts import Flow, Layout, flow, has_layout
from weft.ir.movement import zeros_like
from weft.ir.ops import Op, name
from weft.ir.results import FILLING, results_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of
from weft.ir.walk import rebuild, topological
from weft.schedule.shard.moves import boxed, gathered, has_address, reduced
from weft.support.errors import DeviceError, NotSupported


class Parts(NamedTuple):
    """A value in parts, one for each device of its layout; one part where there is no layout."""

    layout: Layout | None
    nodes: tuple[UOp, ...]


class Several(NamedTuple):
    """The values of a TUPLE or a CALL."""

    values: tuple[Value, ...]


Value = Union[Parts, "Several"]
PartsOf = Callable[[UOp], Sequence[UOp]]


def shard(root: UOp, parts_of: PartsOf) -> UOp:
    """The graph with the parts of each value; `parts_of` names the parts of memory.

    before: sink(b.reduce(ADD, 0))         # b is cut along axis 0 over two devices
    after:  sink(tuple(b0.reduce(ADD, 0) + b1.reduce(ADD, 0).copy("CPU"), …))
    """
    values = _Sharding(parts_of, ()).of(root.src)
    tuples = [make(Op.TUPLE, dtypes.void, _flat(value)) for value in values]
    return make(Op.SINK, dtypes.void, tuple(tuples))


def _flat(value: Value) -> tuple[UOp, ...]:
    if isinstance(value, Parts):
        return value.nodes
    return tuple(node for each in value.values for node in _flat(each))


class _Sharding:
    """One walk over a scope, whose PARAMs stand for `arguments`."""

    def __init__(self, parts_of: PartsOf, arguments: Sequence[Value]) -> None:
        self._parts_of = parts_of
        self._arguments = arguments
        self._found: dict[UOp, Value] = {}

    def of(self, roots: Sequence[UOp]) -> list[Value]:
        for node in topological(*roots):
            value = self._value(node, [self._found[source] for source in node.src])
            for made in _flat(value):
                made.line = made.line or node.line
            self._found[node] = value
        return [self._found[root] for root in roots]

    def _value(self, node: UOp, given: list[Value]) -> Value:
        if node.op == Op.TUPLE:
            return Several(tuple(given))
        if node.op == Op.ITEM and isinstance(given[0], Several):
            return given[0].values[node.arg]
        if node.op == Op.PARAM and self._arguments:
            argument: Value = self._arguments[node.arg[0]]
            return argument
        if node.op == Op.BUFFER and has_layout(node):
            return Parts(Layout(*node.arg[2]), tuple(self._parts_of(node)))
        if node.op == Op.SHARD:
            return _with_layout(node, _one(given[0]), Layout(*node.arg))
        if node.op == Op.CUSTOM_GRADIENT:
            return given[0]
        if node.op == Op.CALL and self._is_opened(node, given):
            return _Sharding(self._parts_of, given).of((node.arg,))[0]
        sources = [_one(each) for each in given]
        if all(each.layout is None for each in sources):
            return Parts(None, (rebuild(node, tuple(each.nodes[0] for each in sources)),))
        if node.op == Op.COPY:
            return Parts(None, (_at(sources[0], node.arg),))
        if node.op == Op.STORE:
            return self._store(node, sources[1])
        if node.op == Op.AFTER:
            return _after(node, sources)
        return _computed(node, sources)

    def _is_opened(self, node: UOp, given: list[Value]) -> bool:
        """Whether the body of a call is made part of the graphs: something in it is in parts."""
        if node.arg.op in FILLING or node.arg.op in (Op.SINK, Op.LINEAR):
            return False
        is_given = any(not isinstance(each, Parts) or each.layout for each in given)
        return is_given or has_layout(node)

    def _store(self, node: UOp, value: Parts) -> Parts:
        """A write to each part; an INDEX writes to the parts that its addresses are in."""
        address = node.src[0]
        is_index = address.op == Op.INDEX
        target = self._index_addresses(address) if is_index else _one(self._found[address])
        layout = target.layout
        if layout is None or not all(map(_is_memory, target.nodes)):
            raise NotSupported(
                "a write to a view that mixes what several devices have",
                facts=[("view", name(address.op), shape_of(address))],
                rule="memory over several devices is written as a whole, or in views that leave"
                " the axis alone along which it is cut",
                fix="write the whole tensor: x.assign(...)",
                where=node.line,
            )
        wanted = _brought(value, layout, node)
        stores = [
            make(Op.STORE, dtypes.void, pair) for pair in zip(target.nodes, wanted, strict=True)
        ]
        return Parts(layout, tuple(stores))

    def _index_addresses(self, address: UOp) -> Parts:
        """The addresses of an INDEX in each part, with the layout of what is written there.

        Where the axis that is cut is indexed, an index outside of a part names no address in it.
        """
        memory = _one(self._found[address.src[0]])
        layout = memory.layout
        assert layout is not None
        whole = Layout(layout.devices)
        rest = [_brought(_one(self._found[each]), whole, address) for each in address.src[1:]]
        count = len(rest) - 1
        nodes = []
        for number, part in enumerate(memory.nodes):
            mask, *indices = [each[number] for each in rest]
            if layout.axis is not None and layout.axis < count:
                start, stop = layout.bounds[number]
                index = indices[layout.axis]
                mask = mask & ~(index < start) & (index < stop)
                indices[layout.axis] = index - start
            nodes.append(make(Op.INDEX, address.dtype, (part, mask, *indices)))
        if layout.axis is None or layout.axis < count:
            return Parts(whole, tuple(nodes))
        moved = layout.axis + len(shape_of(address)) - len(shape_of(address.src[0]))
        return Parts(layout._replace(axis=moved), tuple(nodes))


def _one(value: Value) -> Parts:
    assert isinstance(value, Parts)
    return value


def _is_memory(node: UOp) -> bool:
    return memory_of(node).op == Op.BUFFER


def _after(node: UOp, sources: list[Parts]) -> Parts:
    """Each part after what was written to it."""
    layout = sources[0].layout
    assert layout is not None
    parts = [
        make(Op.AFTER, node.dtype, tuple(s.nodes[number if s.layout else 0] for s in sources))
        for number in range(len(layout.devices))
    ]
    return Parts(layout, tuple(parts))


def _at(value: Parts, device: str) -> UOp:
    """A value in parts as a whole on one device."""
    assert value.layout is not None
    return gathered(value.nodes, value.layout, device, Layout((device,)), 0)


def _with_layout(node: UOp, value: Parts, layout: Layout) -> Parts:
    """SHARD: a value of one device, or one of another layout, in this layout."""
    if value.layout is not None:
        return Parts(layout, _moved(value, value.layout, layout))
    whole = value.nodes[0]
    parts = [boxed(whole, layout, number) for number in range(len(layout.devices))]
    if not has_address(whole):
        return Parts(layout, tuple(parts))
    copies = zip(parts, layout.devices, strict=True)
    return Parts(
        layout, tuple(make(Op.COPY, part.dtype, (part,), device) for part, device in copies)
    )


def _moved(value: Parts, old: Layout, new: Layout) -> tuple[UOp, ...]:
    if old == new:
        return value.nodes
    return tuple(
        gathered(value.nodes, old, device, new, number)
        for number, device in enumerate(new.devices)
    )


def _brought(value: Parts, layout: Layout, user: UOp) -> tuple[UOp, ...]:
    """The parts of a value as a user on several devices wants them."""
    if value.layout is not None:
        fits = layout if shape_of(value.nodes[0]) else Layout(layout.devices)
        return _moved(value, value.layout, fits)
    whole = value.nodes[0]
    if has_address(whole):
        raise DeviceError(
            f"{name(user.op).lower()}: an operand is on one device, another on several"
            f" ({', '.join(layout.devices)})",
            facts=[("operand", shape_of(whole), "on one device")],
            rule="operands on several devices are cut alike, or are whole on each device",
            fix="lay it out like the other: y.shard_like(x), or .shard(devices)",
            where=user.line,
        )
    return tuple(boxed(whole, layout, number) for number in range(len(layout.devices)))


def _computed(node: UOp, sources: list[Parts]) -> Parts:
    """An op on each device, on sources that were brought there."""
    if node.op == Op.CALL and node.dtype is dtypes.void and any(map(_is_cut, sources)):
        _require_no_writes(node)
    rule = flow(node, [each.layout for each in sources])
    brought = [
        each.nodes * len(rule.result.devices)
        if wanted is None or source.dtype is dtypes.index
        else _brought(each, wanted, node)
        for source, each, wanted in zip(node.src, sources, rule.sources, strict=True)
    ]
    nodes = [
        _local(node, rule, [each[number] for each in brought], number)
        for number in range(len(rule.result.devices))
    ]
    if rule.reduction is not None:
        return Parts(rule.result, reduced(nodes, rule.result.devices, rule.reduction))
    return Parts(rule.result, tuple(nodes))


def _is_cut(value: Parts) -> bool:
    return value.layout is not None and value.layout.axis is not None


def _require_no_writes(node: UOp) -> None:
    """A call of kernels that write their arguments is written for whole memory."""
    if node.arg.op in FILLING and results_of(node):
        return
    raise NotSupported(
        "a custom kernel that writes memory which is cut over several devices",
        rule="a custom kernel runs on whole tensors, on each device",
        fix="return a value instead, or keep the memory whole: x.shard(devices)",
        where=node.line,
    )


def _local(node: UOp, rule: Flow, src: list[UOp], number: int) -> UOp:
    """The op of one device: sizes and indices are those of its part."""
    arg, result, first = node.arg, rule.result, rule.sources[0]
    if result.axis is not None and node.op in (Op.RESHAPE, Op.EXPAND):
        arg = (*arg[: result.axis], result.sizes[number], *arg[result.axis + 1 :])
    if result.axis is not None and node.op == Op.SHRINK:
        arg = (*arg[: result.axis], (0, result.sizes[number]), *arg[result.axis + 1 :])
    if node.op in (Op.INDEX, Op.SCATTER):
        before = 2 if node.op == Op.INDEX else 3
        if first is not None and first.axis is not None and first.axis < len(src) - before:
            src[before + first.axis] -= first.bounds[number][0]
        if rule.reduction is not None and number:  # what was there before counts once
            src[0] = zeros_like(src[0])
    return make(node.op, node.dtype, tuple(src), arg)
