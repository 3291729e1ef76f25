"""New tensors: from data of the host, from constants, from counting.

Constants and counts are graphs without memory, so they cost nothing until something needs them in
memory. Data of the host is copied at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engine.buffer_nodes import new_buffer
from weft.engine.devices import canonical_name, default_device
from weft.ir import movement
from weft.ir.build import index
from weft.ir.dtypes import DType, Number, Scalar, dtypes, scalar_dtype
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.sizes import least, minus, normal_size
from weft.ir.uop import UOp, const, make
from weft.support.errors import ArgumentError, ArgumentTypeError, NotSupported
from weft.support.message import nearest
from weft.tensor.autodiff.leaves import remember
from weft.tensor.checks import (
    devices_of,
    ints_of,
    known,
    require_number_fits,
    shape_from,
    size_node,
    size_of,
    symbolic_number,
)
from weft.tensor.host.convert import dtype_of
from weft.tensor.storage import placement_of

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def device_name(device: Any) -> Any:
    """The full name of a device; of several, the names of all."""
    if isinstance(device, (tuple, list)):
        return devices_of("device", device)
    return default_device() if device is None else canonical_name(device)


def constant(
    cls: type[Tensor], uop: UOp, device: str | None, requires_grad: bool | None
) -> Tensor:
    """A new tensor that no other was computed from."""
    made = cls._value(uop, device_name(device))
    return remember(made, requires_grad)


def full(
    cls: type[Tensor],
    shape: Any,
    fill_value: Number,
    dtype: DTypeLike = None,
    device: str | None = None,
    buffer: bool = True,
    requires_grad: bool | None = None,
) -> Tensor:
    """Create a tensor with one value everywhere.

    It has no memory until it is realized or written to by an index tensor. `buffer` is accepted
    for programs that choose, and changes nothing.

    >>> from weft.tensor import Tensor
    >>> Tensor.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    sizes = shape_from("full", ints_of("full", shape, ()))
    value = _filled("full", fill_value, dtype, sizes)
    return constant(cls, value, device, requires_grad)


def _filled(name: str, value: Any, dtype: DTypeLike, shape: Shape) -> UOp:
    """One number everywhere: Python's, another library's, or a symbolic one."""
    if isinstance(value, UOp) and value.dtype is dtypes.index:
        number = symbolic_number(name, value, dtype_of(dtype, dtypes.default_int))
        return movement.broadcast(number, shape)
    if not isinstance(value, (bool, int, float, complex)):
        value = _number(name, value)
    target = dtype_of(dtype, scalar_dtype(value))
    require_number_fits(name, value, target)
    return movement.full(target, value, shape)


def _number(name: str, value: Any) -> Number:
    """A number of another library."""
    try:
        number = np.asarray(value).item()
    except Exception as failure:  # whatever an object of somebody else does when it is asked
        number = failure
    if not isinstance(number, (bool, int, float, complex)):
        raise ArgumentTypeError(
            f"{name}: expected a number, got {type(value).__name__}",
            rule="a number is a bool, an int, a float, a complex, or an array of one",
        )
    return number


def zeros(cls: type[Tensor], /, *shape: Any, **kwargs: Any) -> Tensor:
    """Create a tensor of zeros, floats unless a dtype is given.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2).tolist()
    [0.0, 0.0]
    """
    shape = with_size(shape, kwargs)
    require_known("zeros", kwargs)
    return cls.full(_shape("zeros", shape), 0.0, **{"dtype": dtypes.default_float, **kwargs})


def ones(cls: type[Tensor], /, *shape: Any, **kwargs: Any) -> Tensor:
    """Create a tensor of ones, floats unless a dtype is given.

    The dtype is the default float, or what dtype= says. PyTorch and NumPy: ones.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    shape = with_size(shape, kwargs)
    require_known("ones", kwargs)
    return cls.full(_shape("ones", shape), 1.0, **{"dtype": dtypes.default_float, **kwargs})


_KEYWORDS = ("dtype", "device", "requires_grad", "buffer", "contiguous")
# What PyTorch's programs pass and what changes nothing: memory has no strides here.
_IGNORED = ("layout", "memory_format", "pin_memory")


def with_size(shape: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The shape, also where it was given as PyTorch's `size=`."""
    return (kwargs.pop("size"),) if not shape and "size" in kwargs else shape


def require_known(name: str, kwargs: dict[str, Any]) -> None:
    """Keyword arguments that every creation function takes."""
    for keyword in kwargs:
        if keyword not in _KEYWORDS and keyword not in _IGNORED:
            guess = nearest(keyword, _KEYWORDS)
            raise ArgumentError(
                f"{name}: unknown argument {keyword!r}",
                rule="the keyword arguments are " + ", ".join(_KEYWORDS[:3]),
                fix=f"write {guess}=" if guess else "",
            )


def _shape(name: str, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return shape_from(name, ints_of(name, sizes[0], sizes[1:]) if sizes else ())


def empty(
    cls: type[Tensor],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Create a tensor in memory whose elements are anything until they are written.

    PyTorch and NumPy: empty.

    >>> from weft.tensor import Tensor
    >>> Tensor.empty(2, 3).shape
    (2, 3)
    """
    sizes = _shape("empty", shape)
    buffer = new_buffer(dtype_of(dtype, dtypes.default_float), sizes, device_name(device))
    return constant(cls, buffer, device, requires_grad)


def arange(
    cls: type[Tensor],
    /,
    start: Scalar | UOp,
    stop: Scalar | UOp | None = None,
    step: Scalar | UOp = 1,
    dtype: DTypeLike = None,
    device: str | None = None,
    requires_grad: bool | None = None,
    *,
    end: Scalar | UOp | None = None,
    **ignored: Any,
) -> Tensor:
    """Create the numbers from `start` to below `stop`, which is `end` in PyTorch.

    >>> from weft.tensor import Tensor
    >>> Tensor.arange(5, 0, -2).tolist()
    [5, 3, 1]
    """
    require_known("arange", ignored)
    stop = end if stop is None else stop
    if stop is None:
        start, stop = 0, start
    if isinstance(step, int) and step == 0:
        raise ArgumentError("arange: the step is 0", rule="arange needs a step above or below 0")
    has_floats = any(isinstance(each, float) for each in (start, stop, step))
    target = dtype_of(dtype, dtypes.default_float if has_floats else dtypes.default_int)
    if isinstance(start, UOp) or isinstance(stop, UOp) or isinstance(step, UOp):
        return constant(cls, _counted(start, stop, step, dtype), device, requires_grad)
    count = max(0, math.ceil((stop - start) / step))
    if not has_floats and count:
        for end in (start, start + (count - 1) * step):
            require_number_fits("arange", end, target)
    # Exact arithmetic comes first: counting in a small float would lose numbers.
    inner = dtypes.float64 if has_floats else dtypes.int64
    if not has_floats and max(abs(start), abs(stop)) < 2**31:
        inner = dtypes.int32
    if has_floats and target is dtypes.float32:
        inner = target
    numbers = movement.iota(count, dtypes.int32 if count < 2**31 else dtypes.int64).cast(inner)
    return constant(cls, (numbers * step + start).cast(target), device, requires_grad)


def _counted(start: Any, stop: Any, step: Any, dtype: DTypeLike) -> UOp:
    """The numbers of an arange whose ends are symbolic."""
    first, end = size_of("arange", start), size_of("arange", stop)
    if not isinstance(step, int) or step < 1:
        raise NotSupported(
            f"arange: the step {step} beside symbolic ends",
            rule="the step of a symbolic arange is an int above 0",
        )
    span = minus(end, first)
    if least(span) < 0:
        raise ArgumentError(
            f"arange: {first} to {end} can be less than nothing",
            rule="a symbolic arange has start <= stop for every value of its variables",
        )
    count = normal_size((index(span) + (step - 1)) // step)
    numbers = movement.iota(count) * step + size_node(first, dtypes.int32)
    return numbers.cast(dtype_of(dtype, dtypes.default_int))


def linspace(
    cls: type[Tensor],
    start: float,
    stop: float,
    steps: int,
    dtype: DTypeLike = None,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Create `steps` numbers from `start` to `stop`, both included.

    >>> from weft.tensor import Tensor
    >>> Tensor.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if isinstance(start, cls) or isinstance(stop, cls):
        return _between_tensors(cls, start, stop, steps, dtype)
    if isinstance(steps, int) and steps < 0:
        raise ArgumentError(f"linspace: steps is {steps}", rule="linspace needs steps >= 0")
    steps = known(size_of("linspace", steps))
    target = dtype_of(dtype, dtypes.default_float)
    for end in (start, stop):
        require_number_fits("linspace", end, target)
    inner = target if target.is_float and target.bits >= 32 else dtypes.float32
    inner = dtypes.float64 if target.is_int else inner
    numbers = movement.iota(steps).cast(inner)
    gap = (stop - start) / max(steps - 1, 1)
    # Each half counts from its own end, so that both ends are exact.
    rising = numbers * gap + start
    falling = (numbers * -1.0 + float(steps - 1)) * -gap + stop
    value = make(Op.WHERE, inner, (numbers < steps / 2, rising, falling))
    return constant(cls, value.cast(target), device, requires_grad)


def _between_tensors(cls: type[Tensor], start: Any, stop: Any, steps: int, dtype: Any) -> Tensor:
    """`linspace` whose ends are tensors without axes."""
    target = dtype_of(dtype, dtypes.default_float)
    inner = target if target.is_float and target.bits >= 32 else dtypes.float32
    first, last = (each.cast(inner) if isinstance(each, cls) else each for each in (start, stop))
    share = cls.linspace(0, 1, steps, dtype=inner)
    from_end = cls.linspace(1, 0, steps, dtype=inner)
    found = (share < 0.5).where(first + (last - first) * share, last - (last - first) * from_end)
    return found.cast(target)


def logspace(
    cls: type[Tensor],
    /,
    start: float,
    stop: float,
    steps: int,
    base: float = 10.0,
    dtype: DTypeLike = None,
    **kwargs: Any,
) -> Tensor:
    """Create base ** start up to base ** stop, at equal distances of the exponent.

    PyTorch and NumPy: logspace.

    >>> from weft.tensor import Tensor
    >>> Tensor.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    target = dtype_of(dtype, dtypes.default_float)
    exponents = cls.linspace(start, stop, steps, dtype=dtypes.float64, **kwargs)
    return (base**exponents).cast(target)


def eye(
    cls: type[Tensor],
    n: int,
    m: int | None = None,
    dtype: DTypeLike = None,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Create a matrix with ones on its diagonal.

    >>> from weft.tensor import Tensor
    >>> Tensor.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = shape_from("eye", ints_of("eye", (n, n if m is None else m), ()))
    same = movement.positions(shape, 0).equal(movement.positions(shape, 1))
    value = same.cast(dtype_of(dtype, dtypes.default_float))
    return constant(cls, value, device, requires_grad)


def tril_indices(
    cls: type[Tensor],
    row: int,
    col: int | None = None,
    offset: int = 0,
    dtype: DTypeLike = None,
    device: str | None = None,
) -> Tensor:
    """Create the rows and columns of what `tril` keeps, as int64. PyTorch, NumPy: tril_indices.

    >>> from weft.tensor import Tensor
    >>> Tensor.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _numbered(
        cls, np.tril(np.ones((row, row if col is None else col)), offset), dtype, device
    )


def triu_indices(
    cls: type[Tensor],
    row: int,
    col: int | None = None,
    offset: int = 0,
    dtype: DTypeLike = None,
    device: str | None = None,
) -> Tensor:
    """Create the rows and columns of what `triu` keeps, as int64. PyTorch, NumPy: triu_indices.

    >>> from weft.tensor import Tensor
    >>> Tensor.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return _numbered(
        cls, np.triu(np.ones((row, row if col is None else col)), offset), dtype, device
    )


def _numbered(cls: type[Tensor], mask: Any, dtype: DTypeLike, device: str | None) -> Tensor:
    """Where a mask of the host holds: a row of numbers for each of its axes."""
    found = np.stack(mask.nonzero()).astype(np.int64)
    return cls(found, dtype=dtype_of(dtype, dtypes.int64), device=device)


def _like(self: Tensor, fill_value: Number, dtype: DTypeLike, device: str | None) -> Tensor:
    value = _filled("full_like", fill_value, dtype_of(dtype, self.dtype), self.shape)
    if device is not None:
        return self._value(value, device_name(device))
    return self._value(value, self.device).shard_like(self)


def full_like(
    self: Tensor,
    fill_value: Number,
    dtype: DTypeLike = None,
    device: str | None = None,
    buffer: bool = True,
    **ignored: Any,
) -> Tensor:
    """Create a tensor of this shape, dtype and device with one value everywhere.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch and NumPy:
    full_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).full_like(7).tolist()
    [7, 7]
    """
    require_known("full_like", ignored)
    return _like(self, fill_value, dtype, device)


def zeros_like(self: Tensor, **kwargs: Any) -> Tensor:
    """Create zeros of this shape, dtype and device.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch and NumPy:
    zeros_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).zeros_like().tolist()
    [0, 0]
    """
    require_known("zeros_like", kwargs)
    return _like(self, 0, kwargs.get("dtype"), kwargs.get("device"))


def ones_like(self: Tensor, **kwargs: Any) -> Tensor:
    """Create ones of this shape, dtype and device.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch and NumPy:
    ones_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).ones_like().tolist()
    [1, 1]
    """
    require_known("ones_like", kwargs)
    return _like(self, 1, kwargs.get("dtype"), kwargs.get("device"))


def empty_like(
    self: Tensor, dtype: DTypeLike = None, device: str | None = None, **ignored: Any
) -> Tensor:
    """Create a tensor of this shape whose elements are anything until they are written.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch and NumPy:
    empty_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).empty_like().shape
    (2,)
    """
    require_known("empty_like", ignored)
    name = device_name(self.device if device is None else device)
    placement = placement_of(self.uop, name) if name == self.device else name
    buffer = new_buffer(dtype_of(dtype, self.dtype), self.shape, placement)
    return constant(self.__class__, buffer, name, None)


def scalar_node(value: Number, dtype: DTypeLike) -> UOp:
    """A Python number as a constant; one that does not fit its dtype is refused."""
    target = dtype_of(dtype, scalar_dtype(value))
    require_number_fits("Tensor", value, target)
    return const(target, value)
