"""First values of parameters and state, which the layers share.

A parameter requires a gradient, so it has memory of its own; it is drawn when it is first needed,
and never if a loaded value replaces it. State that no gradient reaches does not require one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.ir.arrays.values import storage_dtype
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def uniform(shape: Sequence[int], fan_in: int) -> Tensor:
    """A parameter drawn between ±1/√fan_in, as PyTorch's linear and convolution layers are."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return Tensor.uniform(*shape, low=-bound, high=bound, requires_grad=True)


def constant(shape: Sequence[int], value: float) -> Tensor:
    """A parameter with one value everywhere."""
    return Tensor.full(tuple(shape), float(value), requires_grad=True)


def state(shape: Sequence[int], value: float, dtype: DType | None = None) -> Tensor:
    """A tensor that belongs to a layer and has no gradient, such as a running mean.

    It is in memory from the start: writes to memory happen with whatever is computed next, and no
    chain of them grows while nobody reads it.
    """
    return in_memory(value, shape, dtype or dtypes.default_float, None)


def in_memory(value: float, shape: Sequence[int], dtype: DType, device: str | None) -> Tensor:
    """A tensor without gradient whose elements have one value, in memory from the start."""
    numbers = np.full(tuple(shape), value, storage_dtype(dtype) if dtype.bits > 16 else "float32")
    return Tensor(numbers, device=device, dtype=dtype, requires_grad=False)


def require_positive(layer: str, **sizes: int) -> None:
    """Raise unless every size is an int from 1 on."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"{layer}: {name} is {size}", rule=f"{name} is an int from 1 on")
