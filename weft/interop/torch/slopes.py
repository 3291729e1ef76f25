"""Gradients of what is computed here, for operators of ATen that are gradients of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tensor.autodiff.transforms import vjp
from weft.tensor.tensor import Tensor


def slopes_of(
    function: Callable[..., Tensor], inputs: tuple[Tensor, ...], slope: Tensor
) -> tuple[Any, ...]:
    """The gradient of each input, where `slope` is that of the function's result."""
    _, back = vjp(function, *inputs)
    found = back(slope)
    return found if isinstance(found, tuple) else (found,)
