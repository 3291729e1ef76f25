"""Floats of less than 32 bits: what is made of several ops is computed in float32, rounded once.

Rounding after every op would leave a gelu of bfloat16 with half of its digits. A kernel has no
more memory to move for it, and gradients are float32 inside too. A single op needs none of this:
it is exact to the last bit as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from weft.ir.dtypes import FLOAT, DType, promote

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


def widened(self: Tensor) -> Tensor:
    """A tensor of small floats in float32, any other as it is."""
    return self.float() if is_small(self) else self


def is_small(value: Any) -> bool:
    """Whether this is a tensor of floats with less than 32 bits."""
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, DType) and dtype.kind == FLOAT and dtype.bits < 32


def rounded_once(function: Function) -> Function:
    """Give a function its small floats in float32; round its results to the dtype they meet in.

    Where that dtype is a wider one, because another operand is float32, results stay.
    """
    return _rounded(function, lambda values: promote(*_inexact_dtypes(values)))


def rounded_to_input(function: Function) -> Function:
    """Give a function its small floats in float32; round its results to the dtype of the first.

    So norms do it: their weights may be float32, and activations stay as small as they are.
    """
    return _rounded(function, lambda values: values[0].dtype)


def _rounded(function: Function, dtype_of: Callable[[tuple[Any, ...]], DType]) -> Function:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_small, args)) and not any(map(is_small, kwargs.values())):
            return function(*args, **kwargs)
        wide = [widened(each) if is_small(each) else each for each in args]
        named = {key: widened(x) if is_small(x) else x for key, x in kwargs.items()}
        results = function(*wide, **named)
        dtype = dtype_of((*args, *kwargs.values()))
        if isinstance(results, tuple):
            return tuple(_narrowed(each, dtype) for each in results)
        return _narrowed(results, dtype)

    return call  # type: ignore[return-value]


def _inexact_dtypes(values: tuple[Any, ...]) -> list[DType]:
    dtypes = [getattr(each, "dtype", None) for each in values]
    return [each for each in dtypes if isinstance(each, DType) and each.is_inexact]


def _narrowed(result: Tensor, dtype: DType) -> Tensor:
    """A result in a small dtype; bools, integers and complex numbers stay."""
    is_narrower = dtype.kind == FLOAT and dtype.bits < 32
    return result.cast(dtype) if is_narrower and result.dtype.kind == FLOAT else result
