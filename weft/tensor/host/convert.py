"""The same values in another dtype, on another device or in memory of their own, and their size.

Nothing is computed here: `values.py` has the methods that do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.engine.devices import canonical_name, is_file
from weft.ir.build import global_stage
from weft.ir.dtypes import DType, by_name, complex_of, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import times
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.checks import axis_of, devices_of
from weft.tensor.complexes.parts import warn_of_loss
from weft.tensor.methods.examples import with_example
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
