"""The bits of elements read as another dtype, of equal or of another width.

Of a file it is a view: the same bytes under another dtype, and nothing is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engine.devices import is_file
from weft.engine.disk import part_of_file, try_view
from weft.ir import movement
from weft.ir.dtypes import BOOL, DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, const, make
from weft.support.errors import DTypeError, NotSupported, ShapeError
from weft.tensor.checks import known
from weft.tensor.host.convert import dtype_of
from weft.tensor.linked import link

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def bitcast(self: Tensor, dtype: DType | str) -> Tensor:
    """Read the same bits as another dtype; with another width, the last axis scales.

    The lowest bits come first, as in memory. A write to either of the two is seen by the other.
    PyTorch calls it `view(dtype)`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).bitcast("int32").tolist()
    [1065353216]
    >>> Tensor([258], dtype="uint16").bitcast("uint8").tolist()
    [2, 1]
    """
    target = dtype_of(dtype, self.dtype)
    if target is self.dtype:
        return self
    if target.is_complex or (self.dtype.is_complex and not is_file(self.device)):
        return _complex_bits(self, target)
    if BOOL in (target.kind, self.dtype.kind) and not is_file(self.device):
        raise DTypeError(
            f"bitcast: {self.dtype.name} and {target.name} differ in width",
            facts=[
                (self.dtype.name, f"{self.dtype.bits} bits"),
                (target.name, f"{target.bits} bits"),
            ],
            rule="a bitcast keeps every bit of every element, and bool has no bits to keep",
        )
    if is_file(self.device):
        return _file_view(self, target)
    source = self.dtype
    made = self._new(_as(self.uop, target))
    link(self, made, lambda node: _as(node, target), lambda node, _: _as(node, source))
    return made


def _as(node: UOp, target: DType) -> UOp:
    """The bits of a value as another dtype; with another width, the last axis scales."""
    source = node.dtype
    if target.bits == source.bits:
        return make(Op.BITCAST, target, (node,))
    shape = _scaled("bitcast", shape_of(node), source, target)
    word = _joined if target.bits > source.bits else _parted
    return _bits(word(_bits(node, _word(source)), _word(target), shape), target)


def _complex_bits(self: Tensor, target: DType) -> Tensor:
    """The bits of complex numbers are those of their parts, the real one first."""
    if self.dtype.is_complex:
        return self.view_as_real().flatten(-2).bitcast(target)
    parts = self.bitcast(target.part)
    _scaled("bitcast", parts.shape, parts.dtype, target)
    return parts.unflatten(-1, (-1, 2)).view_as_complex()


def _word(dtype: DType) -> DType:
    return {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits]


def _bits(node: UOp, dtype: DType) -> UOp:
    return node if node.dtype is dtype else make(Op.BITCAST, dtype, (node,))


def _scaled(name: str, shape: Shape, source: DType, target: DType) -> tuple[int, ...]:
    """The shape under another width."""
    sizes = tuple(known(size) for size in shape)
    total = sizes[-1] * source.itemsize if sizes else 0
    if not sizes or total % target.itemsize:
        raise ShapeError(
            f"{name}: the last axis of {shape} {source.name} is not a whole number of"
            f" {target.name}",
            facts=[
                (source.name, f"{source.itemsize} bytes"),
                (target.name, f"{target.itemsize} bytes"),
            ],
            rule="the bytes of the last axis are a whole number of elements",
        )
    return (*sizes[:-1], total // target.itemsize)


def _joined(node: UOp, word: DType, shape: tuple[int, ...]) -> UOp:
    """Neighbors as the parts of wider words; elementwise, so that it fuses with its users."""
    count = word.bits // node.dtype.bits
    rows = movement.reshape(node, (*shape, count))
    total: UOp | None = None
    for number in range(count):
        box = [(0, size) for size in shape]
        part = movement.reshape(movement.shrink(rows, [*box, (number, number + 1)]), shape).cast(
            word
        )
        part = part << number * node.dtype.bits if number else part
        total = part if total is None else total | part
    assert total is not None
    return total


def _parted(node: UOp, word: DType, shape: tuple[int, ...]) -> UOp:
    """Words cut into narrower ones, the low ones first."""
    count = node.dtype.bits // word.bits
    before = shape_of(node)
    wide = movement.broadcast(movement.reshape(node, (*before, 1)), (*before, count))
    amount = movement.iota(count, node.dtype) * const(node.dtype, word.bits)
    shifted = make(Op.SHR, node.dtype, (wide, movement.broadcast(amount, (*before, count))))
    return movement.reshape(shifted.cast(word), shape)


def _file_view(self: Tensor, target: DType) -> Tensor:
    """The bytes of a view of a file, as a tensor of its own on the same file."""
    view = try_view(self.uop) if self._storage.is_realized else None
    if view is None or not view.is_whole:
        raise NotSupported(
            "bitcast: this view of a file is not one run of bytes that are there",
            rule="a bitcast of a file shows neighboring bytes, after writes were realized",
            fix="call realize() after a write, or bring the tensor to a device: x.to('CPU')",
        )
    shape = _scaled("bitcast", self.shape, self.dtype, target)
    return self._value(part_of_file(view, target, shape), self.device)
