"""Tensors over several devices: shard, shard_, shard_like.

A tensor over several devices is used like any other. Each device computes its shard; a
reduction over the sharded axis ends with an all-reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.ir.layouts import Layout, even_layout, layout_of
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import ShapeError
from weft.tensor.autodiff.leaves import remember
from weft.tensor.checks import axis_of, devices_of, known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def shard(self: Tensor, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """Put the value on several devices: sharded along an axis, or replicated without one.

    Shards differ by one element at most; the first devices have the greater ones. The shape and
    the dtype stay, and `device` is the tuple of names. PyTorch: distribute_tensor with Shard(axis)
    or Replicate().

    >>> from weft.tensor import Tensor
    >>> devices = ("CPU:0", "CPU:1")
    >>> x = Tensor.arange(6).reshape(3, 2).shard(devices, axis=0)
    >>> x.device, x.sum(0).tolist()
    (('CPU', 'CPU:1'), [6, 9])
    """
    names = devices_of("shard", devices)
    if isinstance(names, str):
        return self.to(names)
    if axis is None:
        return _with_layout(self, Layout(names))
    number = axis_of("shard", axis, self.ndim)
    size = known(self.shape[number]) if self.ndim else 0
    if size < len(names):
        raise ShapeError(
            f"shard: {size} elements along axis {axis} for {len(names)} devices",
            facts=[("shape", self.shape), ("devices", ", ".join(names))],
            rule="each device has at least one element of the sharded axis",
            fix="choose a longer axis or fewer devices, or leave axis out: whole on each device",
        )
    return _with_layout(self, even_layout(names, number, size))


def shard_(self: Tensor, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """Lay this tensor itself over several devices, and return it; see `shard`.

    Parameters of a model are moved with this. A tensor that requires a gradient goes on doing so;
    gradients that it has are moved too.

    >>> from weft.tensor import Tensor
    >>> w = Tensor([1.0, 2.0], requires_grad=True)
    >>> _ = w.shard_(("CPU:0", "CPU:1"))
    >>> (w * w).sum().backward().item(), w.grad.tolist()
    (5.0, [2.0, 4.0])
    """
    return _become(self, self.shard(devices, axis))


def shard_like(self: Tensor, y: Tensor) -> Tensor:
    """Return the value in the layout of another: sharded along the same axis, on the same devices.

    An axis is counted from the last one, as shapes broadcast: what is sharded along one that this
    tensor lacks, or has with size 1, is replicated here.

    >>> from weft.tensor import Tensor
    >>> x = Tensor.ones(4, 6).shard(("CPU:0", "CPU:1"), axis=1)
    >>> row = Tensor.arange(6).shard_like(x)
    >>> (x * row).sum().item()
    60.0
    """
    if isinstance(y.device, str):
        return self.to(y.device)
    layout = layout_of(y.uop) or Layout(y.device)
    if layout.axis is None:
        return _with_layout(self, Layout(layout.devices))
    axis = layout.axis - y.ndim + self.ndim
    if axis < 0 or self.shape[axis] == 1:
        return _with_layout(self, Layout(layout.devices))
    if self.shape[axis] != sum(layout.sizes):
        raise ShapeError(
            f"shard_like: axis {axis} has {self.shape[axis]} elements, and that of the other "
            f"{sum(layout.sizes)}",
            facts=[("tensor", self.shape), ("other", y.shape, str(layout))],
            rule="counted from the last axis, the sharded axis has the same size, or size 1",
            fix=f"shard it by itself: .shard({layout.devices!r}, axis={axis})",
        )
    return _with_layout(self, layout._replace(axis=axis))


def whole_along(self: Tensor, axis: int) -> Tensor:
    """The tensor, replicated if it is sharded along an axis whose elements are combined."""
    layout = None if isinstance(self.device, str) else layout_of(self.uop)
    if layout is None or layout.axis != axis % self.ndim:
        return self
    return _with_layout(self, Layout(layout.devices))


def _with_layout(self: Tensor, layout: Layout) -> Tensor:
    if self.device == layout.devices and layout_of(self.uop) == layout:
        return self
    node = make(Op.SHARD, self.dtype, (self.uop,), tuple(layout))
    return self._value(node, layout.devices)


def _become(self: Tensor, moved: Tensor) -> Tensor:
    self._storage, self._steps, self._seen = moved._storage, moved._steps, None
    if self.grad is not None and moved.device != self.grad.device:
        self.grad = self.grad.shard_like(moved)
    if self._wants:
        remember(self, True)
    return self
