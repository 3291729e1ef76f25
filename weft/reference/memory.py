"""Memory that trusts nobody: it knows its bounds, what was written, and who touched it.

The interpreters of kernels and of programs keep every buffer in such memory, of Python scalars.
Reading outside it, or an element that nobody wrote, raises and names the node. `SharedMemory` is
the local memory of a group of threads; it also finds two threads that touch one element, one of
them writing, without a barrier in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from weft.ir.dtypes import INDEX, DType, Scalar, canonical
from weft.ir.scalar import from_bits, to_bits
from weft.ir.uop import UOp
from weft.reference.fault import fault

# A scalar, or the lanes of a vector.
Value = Scalar | tuple[Scalar, ...]


class ElementMemory:
    """`size` elements of a scalar dtype. None stands for an element that was never written.

    >>> from weft.ir.dtypes import dtypes
    >>> ElementMemory(dtypes.int16, 2, [1, 70000]).to_bytes().hex()
    '01007011'
    """

    def __init__(
        self,
        dtype: DType,
        size: int,
        data: Iterable[Scalar | None] | None = None,
        name: str = "memory",
    ) -> None:
        if dtype.lanes != 1 or dtype.kind == INDEX or not dtype.bits:
            raise fault(f"{dtype.name} has no form in memory")
        self.dtype = dtype
        self.size = size
        self.name = name
        self.values: list[Scalar | None] = [None] * size
        if data is not None:
            self.values = [x if x is None else canonical(dtype, x) for x in data]
        if len(self.values) != size:
            raise fault(f"{name} has {size} elements, not {len(self.values)}")

    @classmethod
    def from_bytes(cls, dtype: DType, data: bytes, name: str = "memory") -> ElementMemory:
        """Memory with the contents of a buffer, little-endian."""
        width = dtype.itemsize
        starts = range(0, len(data), width)
        bits = [int.from_bytes(data[start : start + width], "little") for start in starts]
        return cls(dtype, len(bits), [from_bits(dtype, pattern) for pattern in bits], name)

    def to_bytes(self) -> bytes:
        """The contents as a buffer holds them; every element must have been written."""
        width = self.dtype.itemsize
        return b"".join(
            to_bits(self.dtype, self.get(i)).to_bytes(width, "little") for i in range(self.size)
        )

    def copy(self) -> ElementMemory:
        return ElementMemory(self.dtype, self.size, self.values, self.name)

    def get(self, index: int, node: UOp | None = None) -> Scalar:
        """The element at `index`; `node` is who reads it."""
        self._verify_bounds("read", index, node)
        value = self.values[index]
        if value is None:
            raise fault(
                f"{self.name} is read at {index} before it is written", node, size=self.size
            )
        return value

    def set(self, index: int, value: Scalar, node: UOp | None = None) -> None:
        """Write an element; `node` is who writes it."""
        self._verify_bounds("written", index, node)
        self.values[index] = canonical(self.dtype, value)

    def _verify_bounds(self, verb: str, index: int, node: UOp | None) -> None:
        if not 0 <= index < self.size:
            raise fault(
                f"{self.name} is {verb} out of bounds at {index}",
                node,
                index=index,
                size=self.size,
            )


def reinterpreted(memory: ElementMemory, dtype: DType) -> ElementMemory:
    """The same bytes as elements of another dtype; those that nobody wrote stay so.

    >>> from weft.ir.dtypes import dtypes
    >>> reinterpreted(ElementMemory(dtypes.int64, 2, [-1, None]), dtypes.uint32).values
    [4294967295, 4294967295, None, None]
    """
    if memory.dtype is dtype:
        return memory.copy()
    data: list[int | None] = []
    for value in memory.values:
        width = memory.dtype.itemsize
        bits = None if value is None else to_bits(memory.dtype, value).to_bytes(width, "little")
        data += [None] * width if bits is None else bits
    values: list[Scalar | None] = []
    for start in range(0, len(data), dtype.itemsize):
        written = [byte for byte in data[start : start + dtype.itemsize] if byte is not None]
        is_whole = len(written) == dtype.itemsize
        pattern = int.from_bytes(bytes(written), "little")
        values.append(from_bits(dtype, pattern) if is_whole else None)
    return ElementMemory(dtype, len(values), values, memory.name)


class SharedMemory(ElementMemory):
    """The local memory of one group; `thread` is who runs now, `epoch` counts the barriers."""

    def __init__(self, dtype: DType, size: int, name: str = "memory") -> None:
        super().__init__(dtype, size, None, name)
        self.thread = 0
        self.epoch = 0
        self._writers: dict[int, tuple[int, int]] = {}
        self._readers: dict[int, tuple[int, set[int]]] = {}

    def get(self, index: int, node: UOp | None = None) -> Scalar:
        self._verify_writer("reads", index, node)
        epoch, readers = self._readers.get(index, (-1, set()))
        if epoch != self.epoch:
            readers = set()
        self._readers[index] = (self.epoch, readers | {self.thread})
        return super().get(index, node)

    def set(self, index: int, value: Scalar, node: UOp | None = None) -> None:
        self._verify_writer("writes", index, node)
        epoch, readers = self._readers.get(index, (-1, set()))
        if epoch == self.epoch and readers - {self.thread}:
            raise self._race("writes", index, "read", min(readers - {self.thread}), node)
        self._writers[index] = (self.epoch, self.thread)
        super().set(index, value, node)

    def _verify_writer(self, verb: str, index: int, node: UOp | None) -> None:
        epoch, writer = self._writers.get(index, (-1, 0))
        if epoch == self.epoch and writer != self.thread:
            raise self._race(verb, index, "wrote", writer, node)

    def _race(self, verb: str, index: int, past: str, other: int, node: UOp | None) -> Exception:
        return fault(
            f"thread {self.thread} {verb} {self.name} at {index}, which thread {other} {past}"
            " since the last barrier",
            node,
        )


class Cell(NamedTuple):
    """Where an INDEX points. A false mask, or false lanes of it, means that nothing is touched."""

    memory: ElementMemory
    mask: Value
    position: int


def load(address: Cell, node: UOp) -> Value:
    """The value at an address, 0 where it is masked; a vector is consecutive elements."""
    dtype = node.dtype
    masks = _masks(address, dtype.lanes, node)
    zero = canonical(dtype, 0)
    lanes = tuple(
        address.memory.get(address.position + lane, node) if mask else zero
        for lane, mask in enumerate(masks)
    )
    return lanes if dtype.lanes > 1 else lanes[0]


def store(address: Cell, value: Value, node: UOp) -> None:
    """Write a value at an address, where it is not masked; a vector fills consecutive elements."""
    lanes = value if isinstance(value, tuple) else (value,)
    for lane, mask in enumerate(_masks(address, len(lanes), node)):
        if mask:
            address.memory.set(address.position + lane, lanes[lane], node)


def _masks(address: Cell, lanes: int, node: UOp) -> tuple[Scalar, ...]:
    if not isinstance(address.mask, tuple):
        return (address.mask,) * lanes
    if len(address.mask) != lanes:
        raise fault(f"a mask of {len(address.mask)} lanes guards {lanes} lanes", node)
    return address.mask
