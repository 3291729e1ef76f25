"""First values of parameters and state, which the layers share.

A parameter requires a gradient, so it has memory of its own; it is drawn when it is first needed,
and never if a loaded value takes its place. State that no gradient reaches does not require one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def uniform(shape: Sequence[int], fan_in: int) -> Tensor:
    """A parameter drawn between ±1/√fan_in, as PyTorch's linear and convolution layers are."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return Tensor.uniform(*shape, low=-bound, high=bound, requires_grad=True)


def constant(shape: Sequence[int], value: float) -> Tensor:
    """A parameter with one value everywhere."""
    return Tensor.full(tuple(shape), float(value), requires_grad=True)


def state(shape: Sequence[int], value: float, **kwargs: Any) -> Tensor:
    """A tensor that belongs to a layer and has no gradient, such as a running mean."""
    return Tensor.full(tuple(shape), value, requires_grad=False, **kwargs)


def require_positive(layer: str, **sizes: int) -> None:
    """Raise unless every size is an int from 1 on."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"{layer}: {name} is {size}", law=f"{name} is an int from 1 on")
