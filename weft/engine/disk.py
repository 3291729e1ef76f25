"""Values between files and devices: what is read of a file, and how writes reach it.

`DISK` computes nothing. A copy from a file reads the bytes that its view shows; what else stands
between the file and the copy is computed where the copy goes. A write is computed where its value
lives and then put into the file. Views are boxes with strides, as NumPy has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.engine.buffer_nodes import BufferKind, adopt_buffer, hand_over
from weft.engine.buffers import Buffer, buffer_of
from weft.engine.contents import buffer_from, read_bytes
from weft.engine.devices import device, is_file
from weft.ir.arrays.values import Array, storage_dtype
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import substitute, topological
from weft.runtime.disk.device import DiskDevice, DiskMemory, HeldBytes
from weft.support.errors import NotSupported

Realize = Callable[[UOp], UOp]


class View(NamedTuple):
    """A box in memory: the first element, and sizes and steps in elements."""

    memory: UOp
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the elements lie side by side, in order."""
        return not math.prod(self.shape) or all(
            size == 1 or step == row
            for size, step, row in zip(self.shape, self.strides, _rows(self.shape), strict=True)
        )


def map_file(path: str) -> UOp:
    """A BUFFER node of the bytes of a file; nothing is read."""
    on = device(f"DISK:{path}")
    assert isinstance(on, DiskDevice)
    memory = on.open()
    return _adopt(dtypes.uint8, (memory.size,), on, memory)


def part_of_file(view: View, dtype: DType, shape: tuple[int, ...]) -> UOp:
    """A BUFFER node of the bytes of a whole view, read as another dtype; nothing is read."""
    memory = buffer_of(view.memory)
    size = math.prod(shape) * dtype.itemsize
    part = memory.allocated().part(view.first * view.memory.dtype.itemsize, size)
    return _adopt(dtype, shape, memory.device, part)


def _adopt(dtype: DType, shape: tuple[int, ...], on: Any, part: DiskMemory) -> UOp:
    memory = Buffer(on, part.size)
    memory.handle = memory.keep = part
    return adopt_buffer(dtype, shape, memory)


def mapped_bytes(view: View) -> memoryview:
    """The bytes of a whole view of a file, as they are mapped."""
    itemsize = view.memory.dtype.itemsize
    first = view.first * itemsize
    data: memoryview = buffer_of(view.memory).allocated().view
    return data[first : first + math.prod(view.shape) * itemsize]


def try_view(node: UOp) -> View | None:
    """The box that movement ops on memory show; None where they show none."""
    steps: list[UOp] = []
    while node.op in _STEPS:
        steps.append(node)
        node = node.src[0]
    node = behind(node)  # an address in memory is that of all its versions
    sizes = shape_of(node)
    if node.op != Op.BUFFER or not all(isinstance(size, int) for size in sizes):
        return None
    shape: Any = sizes
    view: View | None = View(node, 0, shape, _rows(shape))
    for step in reversed(steps):
        if view is None or len(step.src) > 1:  # a symbolic size
            return None
        view = _STEPS[step.op](view, step.arg)
    return view


def _rows(shape: Sequence[int]) -> tuple[int, ...]:
    """The steps of elements in order."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _shrunk(view: View, pairs: Any) -> View:
    first = sum(start * step for (start, _), step in zip(pairs, view.strides, strict=True))
    sizes = tuple(stop - start for start, stop in pairs)
    return view._replace(first=view.first + first, shape=sizes)


def _permuted(view: View, order: Any) -> View:
    return view._replace(
        shape=tuple(view.shape[axis] for axis in order),
        strides=tuple(view.strides[axis] for axis in order),
    )


def _flipped(view: View, axes: Any) -> View:
    if not math.prod(view.shape):
        return view
    last = sum((view.shape[axis] - 1) * view.strides[axis] for axis in axes)
    steps = tuple(-s if axis in axes else s for axis, s in enumerate(view.strides))
    return view._replace(first=view.first + last, strides=steps)


def _reshaped(view: View, shape: Any) -> View | None:
    """Whole views take any shape; others may gain and lose axes of size 1, and split axes."""
    if view.is_whole:
        return view._replace(shape=shape, strides=_rows(shape))
    axes = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides = []
    for size in reversed(shape):
        if size == 1:
            strides.append(0)
            continue
        if not axes or axes[-1][0] % size:
            return None
        rest, step = axes.pop()
        strides.append(step)
        if rest != size:
            axes.append((rest // size, step * size))
    return None if axes else view._replace(shape=shape, strides=tuple(reversed(strides)))


_STEPS: dict[int, Callable[[View, Any], View | None]] = {
    Op.SHRINK: _shrunk,
    Op.PERMUTE: _permuted,
    Op.FLIP: _flipped,
    Op.RESHAPE: _reshaped,
    Op.DETACH: lambda view, _: view,
}


def _array(view: View, data: memoryview) -> Array:
    """The elements of a view, as they lie in memory."""
    kind = storage_dtype(view.memory.dtype)
    steps = [step * kind.itemsize for step in view.strides]
    return np.ndarray(view.shape, kind, data, view.first * kind.itemsize, steps)


def _extent(view: View) -> tuple[int, int]:
    """The first byte of a view, and the one behind its last."""
    if not math.prod(view.shape):
        return 0, 0
    ways = [(size - 1) * step for size, step in zip(view.shape, view.strides, strict=True)]
    first = view.first + sum(way for way in ways if way < 0)
    last = view.first + sum(way for way in ways if way > 0)
    itemsize = view.memory.dtype.itemsize
    return first * itemsize, (last + 1) * itemsize


def _view_node(node: UOp) -> View | None:
    """The view that a node is, if it shows a file."""
    view = try_view(node) if node.op in _STEPS or node.op == Op.BUFFER else None
    return view if view is not None and is_file(view.memory.arg[2]) else None


def brought(graph: UOp, name: str) -> UOp:
    """The graph with each view of a file in it read into memory of a device."""
    seen: dict[UOp, UOp] = {}
    stack = [graph]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        view = _view_node(node)
        if view is None:
            stack.extend(node.src)
            continue
        data = np.ascontiguousarray(_array(view, buffer_of(view.memory).allocated().view))
        raw: Any = data.reshape(-1).view(np.uint8)
        seen[node] = buffer_from(node.dtype, view.shape, name, memoryview(raw))
    return substitute(graph, seen)


def write_files(graphs: Sequence[UOp], pending: Sequence[UOp], realize: Realize) -> dict[UOp, UOp]:
    """Carry out the writes to files that the graphs hold; what became of each version.

    What the other graphs, which stay lazy, read of an older version is held in memory for them.
    """
    made: dict[UOp, UOp] = {}
    if not any(graph.ops >> Op.AFTER & 1 for graph in graphs):
        return made
    for version in topological(*graphs):  # older ones come first
        before = version.src[0] if version.op == Op.AFTER else version
        memory = made.get(before, before)
        if version.op != Op.AFTER or memory.op != Op.BUFFER or not is_file(memory.arg[2]):
            continue
        value = _computed(substitute(version.src[1].src[1], made), realize)
        address = _address(version, memory)
        is_read = before in _without(version, [*graphs, *pending])
        old = _held(memory) if is_read else None
        _array(address, buffer_of(memory).allocated().writable(*_extent(address)))[...] = value
        made[version] = hand_over(memory)
        made.pop(before, None)
        if old is not None:
            made[before] = old
    return made


def written_file(source: UOp, name: str) -> UOp:
    """A BUFFER node of a new file that holds what some memory holds."""
    on = device(name)
    assert isinstance(on, DiskDevice)
    part = on.replace(memoryview(read_bytes(source)))
    memory = Buffer(on, part.size)
    memory.handle = memory.keep = part
    return BufferKind(source.dtype, shape_of(source), name).holding(memory)


def _without(node: UOp, graphs: Sequence[UOp]) -> list[UOp]:
    """What the graphs hold besides what is below a node."""
    return topological(*graphs, enter=lambda part: part is not node)


def _address(version: UOp, memory: UOp) -> View:
    """Where in a file a version writes."""
    store = version.src[1]
    view = try_view(store.src[0]) if store.op == Op.STORE and len(version.src) == 2 else None
    if view is None:
        raise NotSupported(
            "DISK: expected a write of a box",
            rule="a file is written in boxes: slices, reshapes and transposes of its tensor",
            fix="write the whole tensor: x.assign(...)",
        )
    return view._replace(memory=memory)


def _computed(value: UOp, realize: Realize) -> Array:
    """The elements of a value, computed on the device that it lives on."""
    while value.op == Op.COPY:  # it is going to a file, and this is how it gets there
        value = value.src[0]
    node = realize(value)
    shape: Any = shape_of(node)
    return np.frombuffer(read_bytes(node), storage_dtype(node.dtype)).reshape(shape)


def _held(memory: UOp) -> UOp:
    """A BUFFER node with what a file holds now."""
    now = buffer_of(memory)
    shape: Any = shape_of(memory)
    file: DiskMemory = now.allocated()
    old = HeldBytes(file.file.path, file.view)
    return _adopt(memory.dtype, shape, now.device, DiskMemory(old, 0, now.size))
