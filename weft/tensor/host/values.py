"""Values of tensors on the host: realize, NumPy arrays, bytes, numbers and lists.

These, with `bool(t)`, `__array__` and iteration over values, are the only methods that compute
anything; `interop.py` hands memory to other libraries.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engine.buffers import buffer_of
from weft.engine.contents import read_bytes
from weft.ir.arrays.values import Array, from_storage, is_emulated, storage_dtype
from weft.ir.dtypes import Number
from weft.ir.movement import Movement, with_values
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value, size_value
from weft.ir.uop import UOp
from weft.runtime.copies import fresh_bytes
from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor.autodiff.leaves import remember_realized
from weft.tensor.core import realize_all
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def realize(self: Tensor, *lst: Tensor, do_update_stats: bool = True) -> Tensor:
    """Compute this tensor and the others now, and return this one.

    A float whose graph is not kept is a leaf from then on: `backward` gives it a gradient.

    >>> from weft.tensor import Tensor
    >>> (Tensor([1, 2], device="PYTHON") + 1).realize()
    <Tensor (2,) int32 PYTHON realized
      [2, 3]>
    """
    realize_all((self, *lst))
    for each in (self, *lst):
        is_realized = each._storage.uop.op == Op.BUFFER
        if each._wants is None and is_realized and not each._steps:
            remember_realized(each)
    return self


def numpy(self: Tensor) -> Array:
    """Compute the value and return it as a NumPy array that may not be written.

    On the CPU it is a view of the tensor's memory, which stays as it is: a later write to the
    tensor goes to other memory. `np.array(x)` and `x.numpy().copy()` are arrays of your own.
    Dtypes that NumPy lacks (bfloat16, fp8) come as float32. Symbolic sizes have the
    values that their variables are bound to.

    >>> from weft.tensor import Tensor
    >>> (Tensor([1, 2]) * 2).numpy()
    array([2, 4], dtype=int32)
    """
    values = from_storage(self._storage.uop.dtype, stored_array(self))
    values.flags.writeable = False
    return values


def stored_array(self: Tensor) -> Array:
    """The value in the storage form of its dtype: a view of memory where the host can read it."""
    if tracing.trace is not None:
        rows, steps = _read_rows(tracing.trace.constant(self.uop), ())
    else:
        realize_all((self,))
        steps = tuple(map(with_values, self._steps)) if self._steps else ()
        rows, steps = _read_rows(self._storage.uop, steps)
    for step in steps:
        rows = _moved(rows, step)
    return rows


def _read_rows(buffer: UOp, steps: tuple[Movement, ...]) -> tuple[Array, tuple[Movement, ...]]:
    """The contents of memory; where they are copied, without what a first SHRINK cuts away."""
    shape = [*shape_value(shape_of(buffer))]
    stored = storage_dtype(buffer.dtype)
    if not isinstance(buffer.arg[2], str):  # in parts, on several devices
        return np.frombuffer(read_bytes(buffer), stored).reshape(shape), steps
    lent = buffer_of(buffer).try_lend() if math.prod(shape) else None
    if lent is not None:
        return np.frombuffer(lent, stored, math.prod(shape)).reshape(shape), steps
    first = 0
    if steps and steps[0][0] == Op.SHRINK:
        pairs: Any = steps[0][1]
        if pairs:
            first, last = pairs[0]
            shape[0] = last - first
            box = ((0, shape[0]), *pairs[1:])
            steps = ((Op.SHRINK, box, ()), *steps[1:])
    row = math.prod(shape[1:]) * buffer.dtype.itemsize
    size = row * shape[0] if shape else buffer.dtype.itemsize
    data = _read_bytes(buffer, first * row, size) if size else memoryview(b"")
    return np.frombuffer(data, stored).reshape(shape), steps


def _read_bytes(buffer: UOp, start: int, size: int) -> memoryview:
    """Some bytes of memory, read from its beginning where no view of the device starts there."""
    memory = buffer_of(buffer)
    handle, skipped = memory.allocated(), 0
    try:
        part = memory.device.view(handle, start, size)
    except NotSupported:
        skipped = start
        part = memory.device.view(handle, 0, start + size)
    data = fresh_bytes(skipped + size)
    memory.device.copy_out(data, part)
    return data[skipped:]


def _moved(array: Array, step: Movement) -> Array:
    """A movement step on an array; all but some reshapes are views."""
    op, arg, _ = step
    found: Any = arg
    if op == Op.RESHAPE:
        return array.reshape(found)
    if op == Op.EXPAND:
        return np.broadcast_to(array, found)
    if op == Op.PERMUTE:
        return array.transpose(found)
    if op == Op.SHRINK:
        return array[tuple(slice(start, stop) for start, stop in found)]
    if op == Op.PAD:
        return np.pad(array, found) if found else array
    return np.flip(array, found) if op == Op.FLIP else array


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """Return the value as NumPy asks for it: `np.asarray(x)` is a view where it can be."""
    values = self.numpy()
    if copy is not False:
        wanted = values if dtype is None else values.astype(dtype, copy=False)
        return wanted.copy() if copy and wanted is values else wanted
    is_view = buffer_of(self._storage.uop).is_lent and not is_emulated(self.dtype)
    if not is_view or (dtype is not None and np.dtype(dtype) != values.dtype):
        raise ArgumentError(
            "__array__: this value can only be had as a copy",
            rule="np.asarray(x, copy=False) needs memory of the CPU and the dtype of the tensor",
            fix="leave copy out, or use copy=True",
        )
    return values


def item(self: Tensor) -> Any:
    """Compute the one element and return it as a Python number.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).sum().item()
    3.0
    """
    if math.prod(shape_value(self.shape)) != 1:
        raise ShapeError(
            f"item: the tensor has {self.numel()} elements",
            facts=[("shape", self.shape)],
            rule="item() returns the one element of a tensor that has one",
            fix="use tolist() for all of them, or index one: x[0].item()",
        )
    value: Number = self.numpy().reshape(()).item()
    return value


def tolist(self: Tensor) -> Any:
    """Compute the value and return it as nested lists; a number where there are no axes.

    Python ints, floats and bools. PyTorch and NumPy: tolist.

    >>> from weft.tensor import Tensor
    >>> (Tensor([1, 2]) + 1).tolist()
    [2, 3]
    """
    return self.numpy().tolist()


def data(self: Tensor) -> memoryview:
    """Compute the value and return its elements as a memoryview, a view of memory on the CPU.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).data().tolist()
    [1, 2]
    """
    elements: Any = np.ascontiguousarray(self.numpy())
    return memoryview(elements)


def buffer(self: Tensor, flags: int) -> memoryview:
    """Compute the value; `memoryview(t)` and `numpy.frombuffer(t)` see it where Python asks.

    That is so from Python 3.12 on. The memory is the tensor's own, so it is not written to.
    """
    if flags & 1:  # PyBUF_WRITABLE
        raise BufferError("a tensor is written by assign() and indices, not through its memory")
    return data(self).toreadonly()


def truth(self: Tensor) -> bool:
    """Return the truth of the one element; `if t:` computes it."""
    if math.prod(shape_value(self.shape)) != 1:
        raise ShapeError(
            f"bool: the truth of {self.numel()} elements is ambiguous",
            facts=[("shape", self.shape)],
            rule="bool(t) needs exactly one element",
            fix="use t.any() or t.all()",
        )
    return bool(self.item())


def length(self: Tensor) -> int:
    """Return the size of the first axis; of `max` along an axis 2, values and indices."""
    if self._pair is not None:
        return 2
    if not self.shape:
        raise ShapeError(
            "len: the tensor has no axes",
            facts=[("shape", ())],
            rule="len(t) is the size of the first axis",
        )
    return size_value(self.shape[0])


def formatted(self: Tensor, spec: str) -> str:
    """Write the number of a tensor that has one as `spec` says; without it, as `str` does.

    >>> from weft.tensor import Tensor
    >>> f"{Tensor([1.5, 2.25]).sum():.1f}"
    '3.8'
    """
    return format(self.item(), spec) if spec else str(self)


def as_int(self: Tensor) -> int:
    return int(self.item())


def as_float(self: Tensor) -> float:
    return float(self.item())


def as_index(self: Tensor) -> int:
    if not self.dtype.is_int:
        raise DTypeError(
            f"an index cannot be {self.dtype.name}",
            rule="only a tensor of one integer can be a Python index",
        )
    return int(self.item())
