"""BUFFER nodes: a node names memory by number, and the memory is freed when the node dies.

That happens as soon as no tensor's graph holds it. A write hands the memory over to a new node, so
that an old node never shows new contents.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import ref

from weft.engine.buffers import BUFFERS, Buffer, End, PartedBuffer
from weft.engine.devices import Placement, canonical_placement, device
from weft.ir.build import Size, split_symbolic
from weft.ir.dtypes import DType
from weft.ir.layouts import Layout
from weft.ir.ops import Op
from weft.ir.rooms import class_of, room
from weft.ir.uop import UOp, make_unique
from weft.ir.walk import substitute, try_line
from weft.support.source_line import SourceLine, user_line

_numbers: Final = itertools.count()
_NOTHING: Final[Mapping[UOp, UOp]] = {}
_NO_VALUES: Final[Mapping[str, int]] = {}


def _forget(end: ref[UOp], is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
    """Free the memory of a node that died, unless all goes: then names may be gone already."""
    if is_ending():
        return
    memory = BUFFERS.pop(end.number, None)  # type: ignore[attr-defined]
    if memory is not None:
        memory.free()


def _hold(
    memory: Buffer, dtype: DType, symbolic: tuple[UOp, ...], static: tuple[Any, ...], name: Any
) -> UOp:
    number = next(_numbers)
    node = make_unique(Op.BUFFER, dtype, symbolic, (number, static, name))
    if not symbolic:
        node.known_shape = static
    BUFFERS[number] = memory
    memory.end = end = End(node, _forget)
    end.number = number
    return node


class BufferKind:
    """Makes memory of one dtype, shape and device, with all that can be known before.

    `size` is its bytes; for variables that are not bound there is room for the greatest values.
    """

    __slots__ = ("_parts", "_sizes", "_symbolic", "device", "dtype", "name", "shape", "size")

    def __init__(self, dtype: DType, shape: Sequence[Size], placement: Placement) -> None:
        self.name = canonical_placement(placement)
        self.dtype = dtype
        self.size = room(shape, _NO_VALUES) * dtype.itemsize
        self.shape, self._symbolic = split_symbolic(shape)
        self._parts: list[BufferKind] = []
        self._sizes: dict[tuple[int, ...], int] = {}  # by the classes of values
        if isinstance(self.name, str):
            self.device = device(self.name)
            return
        layout = Layout(*self.name)
        for number, name in enumerate(layout.devices):
            self._parts.append(BufferKind(dtype, layout.part(tuple(shape), number), name))
        self.device = self._parts[0].device

    def size_for(self, values: Mapping[str, int]) -> int:
        """The bytes where variables that are not bound have these values."""
        if not self._symbolic:
            return self.size
        classes = tuple([class_of(value) for value in values.values()])
        found = self._sizes.get(classes)
        if found is None:
            count = room((*self._symbolic, *(n for n in self.shape if n is not None)), values)
            found = self._sizes[classes] = count * self.dtype.itemsize
        return found

    def new(self) -> UOp:
        """A BUFFER node with memory of its own, not yet written."""
        if self._parts:
            return self.holding(PartedBuffer([part.new() for part in self._parts]))
        memory = Buffer(self.device, self.size)
        if self.device.stores_files:
            memory.handle = memory.keep = self.device.allocate(memory.size)
        return self.holding(memory)

    def holding(self, memory: Buffer, bound: Mapping[UOp, UOp] = _NOTHING) -> UOp:
        """A BUFFER node for some memory, which is freed when the node dies.

        `bound` has what stands for the variables of the shape.
        """
        symbolic = self._symbolic
        if bound and symbolic:
            symbolic = tuple([substitute(size, bound) for size in symbolic])
        return _hold(memory, self.dtype, symbolic, self.shape, self.name)

    def without_memory(self) -> UOp:
        """A BUFFER node that stands for memory which is not there yet."""
        arg = (next(_numbers), self.shape, self.name)
        return make_unique(Op.BUFFER, self.dtype, self._symbolic, arg)


def new_buffer(dtype: DType, shape: Sequence[Size], placement: Placement) -> UOp:
    """A BUFFER node with memory of its own, not yet written.

    There is room for values around the one that is bound (`ir/rooms.py`), so that the runs of a
    loop over values ask for the same memory. Elements lie close together, by the value of now.
    """
    return BufferKind(dtype, shape, placement).new()


def adopt_buffer(dtype: DType, shape: Sequence[Size], memory: Buffer) -> UOp:
    """A BUFFER node for memory that exists."""
    return BufferKind(dtype, shape, memory.device.name).holding(memory)


def line_of(node: UOp) -> SourceLine:
    """The line that made a value: that of the node or of what it wraps, or the one that asks."""
    return try_line(node) or user_line()


def with_shape(node: UOp, shape: Sequence[Size]) -> UOp:
    """A new BUFFER node of another shape for the memory of one, which has none any more."""
    memory = BUFFERS.pop(node.arg[0])
    made = BufferKind(node.dtype, shape, node.arg[2]).holding(memory)
    made.line = node.line
    return made


def hand_over(node: UOp, parts: Sequence[UOp] = ()) -> UOp:
    """A new BUFFER node for memory that has been written; the old node has none any more.

    Memory over several devices has `parts` from now on, where they were handed over themselves.
    """
    number, static, name = node.arg
    memory = BUFFERS.pop(number)
    if parts and isinstance(memory, PartedBuffer):
        memory.parts = tuple(parts)
    made = _hold(memory, node.dtype, node.src, static, name)
    made.line = node.line
    return made
