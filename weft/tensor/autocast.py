"""`weft.autocast`: products in a small float dtype, sums and losses in float32.

Inside of the scope matrix products, convolutions and attention take their floats in the small
dtype and give it back; softmax, norms and losses take theirs in float32. Everything else has the
dtype of its operands, as ever. Parameters stay what they are, and so does the dtype of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import wraps
from typing import Any, TypeVar

from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.support.errors import ArgumentError
from weft.support.settings import Context, settings
from weft.tensor.host.convert import dtype_of
from weft.tensor.small_floats import rounded_once, rounded_to_input

Function = TypeVar("Function", bound=Callable[..., Any])
DTypeLike = DType | str | None


class autocast(ContextDecorator):  # noqa: N801 -- PyTorch's name
    """Multiply matrices in bfloat16, or in another small float dtype, in a scope or a function.

    `device_type` is the kind of device that a program of PyTorch names; every device casts alike.
    The scope of a thread is its own, and a jitted function is traced for each dtype.

    >>> from weft import Tensor, autocast
    >>> x = Tensor.ones(2, 2)
    >>> with autocast("cpu"):
    ...     (x @ x).dtype, (x @ x).softmax().dtype, (x + x).dtype
    (dtypes.bfloat16, dtypes.float32, dtypes.float32)
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: DTypeLike = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        small = dtype_of(dtype, dtypes.bfloat16)
        if small.kind != FLOAT or small.bits not in (16, 32):
            raise ArgumentError(
                f"autocast: dtype is {small.name}",
                rule="products are cast to bfloat16, float16, or to float32, which casts nothing",
            )
        is_cast = enabled and small.bits == 16
        self.device_type, self.dtype, self.enabled = device_type, small, enabled
        self._context = Context(AUTOCAST=small.name if is_cast else "")

    def __enter__(self) -> autocast:
        self._context.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._context.__exit__(*failure)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether this line is inside of an `autocast` that is enabled."""
    return bool(settings.AUTOCAST)


def get_autocast_dtype(device_type: str | None = None) -> DType:
    """The dtype of products inside of `autocast`; bfloat16 where there is none."""
    return dtype_of(settings.AUTOCAST or None, dtypes.bfloat16)


def lowered(*tensors: Any) -> tuple[Any, ...]:
    """Operands of a product: floats of at most 32 bits in the dtype of the scope."""
    name = settings.AUTOCAST
    if not name:
        return tensors
    small = dtype_of(name, dtypes.bfloat16)
    return tuple(each.cast(small) if _is_cast(each) else each for each in tensors)


def in_float32(
    function: Function, rounded: Callable[[Function], Function] = rounded_once
) -> Function:
    """Give a function its small floats in float32; inside of the scope the result stays so."""
    once = rounded(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not settings.AUTOCAST:
            return once(*args, **kwargs)
        wide = [each.float() if _is_cast(each) else each for each in args]
        named = {key: each.float() if _is_cast(each) else each for key, each in kwargs.items()}
        return function(*wide, **named)

    return call  # type: ignore[return-value]


def norm_in_float32(function: Function) -> Function:
    """`in_float32` for norms, whose results have the dtype of their input outside of the scope."""
    return in_float32(function, rounded_to_input)


def _is_cast(value: Any) -> bool:
    """Whether this is a tensor of floats that `autocast` may cast; float64 stays."""
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, DType) and dtype.kind == FLOAT and 16 <= dtype.bits <= 32
