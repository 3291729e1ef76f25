"""From lazy values to numbers and back: realize, numpy, item, casts, copies between devices.

These, with `bool(t)`, `__array__` and iteration over values, are the only places that compute
anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.engine.buffers import buffer_of
from weft.engine.contents import read_bytes
from weft.engine.devices import canonical_name, is_file
from weft.ir.arrays.values import Array, from_storage, is_emulated, storage_dtype
from weft.ir.build import global_stage
from weft.ir.dtypes import DType, Number, by_name, complex_of, dtypes
from weft.ir.movement import Movement, with_values
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value, size_value, times
from weft.ir.uop import UOp, make
from weft.runtime.copies import fresh_bytes
from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor.autodiff.leaves import remember_realized
from weft.tensor.checks import axis_of, devices_of
from weft.tensor.complexes.parts import warn_of_loss
from weft.tensor.core import realize_all
from weft.tensor.methods.examples import with_example
from weft.tensor.trace.state import tracing
from weft.tensor.views.contiguous import first_element

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def dtype_of(dtype: DType | str | None, default: DType) -> DType:
    """A dtype given as itself, by name, as NumPy's or Python's, or left out."""
    if dtype is None:
        return default
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        return by_name(dtype)
    return _foreign_dtype(dtype)


def _foreign_dtype(dtype: Any) -> DType:
    python: dict[Any, DType] = {bool: dtypes.bool, int: dtypes.default_int}
    python |= {float: dtypes.default_float, complex: complex_of(dtypes.default_float)}
    if dtype in python:
        return python[dtype]
    try:
        return by_name(
            str(dtype).removeprefix("torch.") if _is_torch(dtype) else np.dtype(dtype).name
        )
    except Exception:  # whatever an object of somebody else does when it is asked
        raise DTypeError(
            f"expected a dtype, got {dtype!r}",
            rule="a dtype is one of dtypes, its name, a NumPy dtype, or bool, int or float",
            fix="write dtypes.float32, for example",
        ) from None


def _is_torch(dtype: Any) -> bool:
    return type(dtype).__module__ == "torch"


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


def cast(self: Tensor, dtype: DType | str) -> Tensor:
    """Convert every element to another dtype.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.9, -1.9]).cast("int32").tolist()
    [1, -1]
    """
    target = dtype_of(dtype, self.dtype)
    if target is self.dtype:
        return self
    if target.lanes != 1 or target in (dtypes.void, dtypes.index):
        raise DTypeError(
            f"cast: expected a scalar dtype, got {target.name}", rule="tensors hold scalar types"
        )
    warn_of_loss(self, target)
    return self._new(self.uop.cast(target))


def _caster(dtype: DType, name: str, shown: str) -> Callable[..., Tensor]:
    def function(self: Tensor, memory_format: Any = None) -> Tensor:
        return self.cast(dtype)

    function.__name__ = function.__qualname__ = name
    summary = f"Convert every element to {dtype.name}, as `cast` does. PyTorch: {name}."
    function.__doc__ = with_example(summary, f"Tensor([0.0, 1.5]).{name}().tolist()", shown)
    return function


to_bool: Final = _caster(dtypes.bool, "bool", "[False, True]")
to_half: Final = _caster(dtypes.float16, "half", "[0.0, 1.5]")
to_bfloat16: Final = _caster(dtypes.bfloat16, "bfloat16", "[0.0, 1.5]")
to_float: Final = _caster(dtypes.float32, "float", "[0.0, 1.5]")
to_double: Final = _caster(dtypes.float64, "double", "[0.0, 1.5]")
to_cfloat: Final = _caster(dtypes.complex64, "cfloat", "[0j, (1.5+0j)]")
to_cdouble: Final = _caster(dtypes.complex128, "cdouble", "[0j, (1.5+0j)]")
to_byte: Final = _caster(dtypes.uint8, "byte", "[0, 1]")
to_char: Final = _caster(dtypes.int8, "char", "[0, 1]")
to_short: Final = _caster(dtypes.int16, "short", "[0, 1]")
to_int: Final = _caster(dtypes.int32, "int", "[0, 1]")
to_long: Final = _caster(dtypes.int64, "long", "[0, 1]")


def to(
    self: Tensor,
    device: str | tuple[str, ...] | DType | Tensor | None = None,
    dtype: DType | str | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return the value on another device, in another dtype, or in those of another tensor.

    What is there already is returned as it is. Nothing is copied before it is needed, so
    `non_blocking` and `memory_format` change nothing; `copy` asks for a value of its own. What is
    on several devices is gathered on one; on several, it is whole on each, as `shard` says.
    PyTorch: to.

    >>> from weft import dtypes
    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.5], device="PYTHON")
    >>> x.to("CPU").device, x.to(dtypes.int32).tolist(), x.to("CPU", "float16").dtype.name
    ('CPU', [1], 'float16')
    """
    if isinstance(device, DType):
        device, dtype = None, device
    elif isinstance(device, self.__class__):
        like: Tensor = device
        device, dtype = like.device, like.dtype
    moved = self if device is None or device == self.device else _moved_to(self, device)
    result = moved if dtype is None or isinstance(dtype, bool) else moved.cast(dtype)
    return result.clone() if copy and result is self else result


def _moved_to(self: Tensor, device: Any) -> Tensor:
    if not isinstance(device, str):
        names = devices_of("to", device)
        return self if names == self.device else self.shard(device)
    name = canonical_name(device)
    if name == self.device:
        return self
    if is_file(name) and not isinstance(self.device, str):
        return self.to("CPU").to(name)
    return self._value(make(Op.COPY, self.dtype, (self.uop,), name), name)


def to_in_place(self: Tensor, device: str | tuple[str, ...] | None) -> Tensor:
    """Move this tensor to another device.

    >>> from weft.tensor import Tensor
    >>> Tensor([1]).to_("NULL").device
    'NULL'
    """
    moved = self.to(device)
    self._storage, self._steps, self._seen = moved._storage, moved._steps, None
    if self.grad is not None:
        self.grad = self.grad.to(device)
    return self


def contiguous(self: Tensor, **kwargs: Any) -> Tensor:
    """Return the value with its elements side by side in memory: fusion stops here.

    A tensor that is so in memory already, a view too, is returned as it is and sees later writes;
    `clone` is a copy in any case. PyTorch: contiguous; NumPy: ascontiguousarray.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
    [[1, 3], [2, 4]]
    """
    kwargs.pop("memory_format", None)
    if kwargs:
        raise ArgumentError(f"contiguous: unknown arguments {', '.join(kwargs)}")
    storage = self._storage
    if storage.is_realized and (
        not self._steps or first_element(shape_of(storage.uop), self._steps) is not None
    ):
        return self
    return self._new(_staged(self.uop))


def clone(self: Tensor, device: str | None = None, *, memory_format: Any = None) -> Tensor:
    """Return a copy that later writes to this tensor do not reach.

    On the same device unless one is named. PyTorch: clone; NumPy: copy.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).clone().tolist()
    [1, 2]
    """
    moved = self.to(device)
    return moved if moved is not self else self._new(_staged(self.uop))


def _staged(node: UOp) -> UOp:
    return global_stage(node)


def detach(self: Tensor) -> Tensor:
    """Return the same storage as a view through which no gradient flows.

    PyTorch: detach.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).detach().requires_grad
    False
    """
    view = self._view((Op.DETACH, None, ()))
    view.requires_grad = False
    return view


def numel(self: Tensor) -> Any:
    """Return the number of elements, symbolic where a size is; `int()` gives its value.

    PyTorch: numel; NumPy: size.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).numel()
    4
    """
    return times(*self.shape)


def element_size(self: Tensor) -> int:
    """Return the bytes of one element.

    PyTorch: element_size; NumPy: itemsize.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).element_size()
    4
    """
    return self.dtype.itemsize


def nbytes(self: Tensor) -> Any:
    """Return the bytes of all elements, symbolic where a size is.

    PyTorch and NumPy: nbytes.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).nbytes()
    8
    """
    return times(*self.shape, self.dtype.itemsize)


def size(self: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of one axis.

    PyTorch: size; NumPy: shape.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2, 3]]).size(1)
    3
    """

    return self.shape if dim is None else self.shape[axis_of("size", dim, self.ndim)]


def is_floating_point(self: Tensor) -> bool:
    """Tell whether the dtype is a float.

    PyTorch: is_floating_point.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).is_floating_point()
    True
    """
    return self.dtype.is_float
