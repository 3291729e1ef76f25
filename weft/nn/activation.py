"""Layers without parameters, for lists of layers: Sequential, Dropout, activations, pools.

A method of Tensor does the same: `x.sequential([layer, Tensor.relu])`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


class Sequential(list[Callable[..., Any]]):
    """Layers that are called one after another; a list, so its state is named 0.weight, 1.bias …

    >>> Sequential(Tensor.relu, Tensor.sqrt)(Tensor([-1.0, 4.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        super().__init__(layers)

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self)


class Identity:
    """Return the input."""

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Dropout:
    """Zero elements with probability `p` and divide the others by 1 - p, while training.

    >>> Dropout(0.5)(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"Dropout: p is {p}", law="a probability is from 0 to 1")
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


class Flatten:
    """Make one axis of several, all but the first unless told otherwise."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)


class ReLU:
    """max(x, 0)."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.relu()


class LeakyReLU:
    """x, scaled below 0."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def __call__(self, x: Tensor) -> Tensor:
        return x.leaky_relu(self.negative_slope)


class GELU:
    """x Φ(x); `approximate` is "none" (erf) or "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def __call__(self, x: Tensor) -> Tensor:
        return x.gelu(self.approximate)


class SiLU:
    """x sigmoid(x)."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.silu()


class Tanh:
    """tanh(x)."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()


class Sigmoid:
    """1 / (1 + exp(-x))."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class Softmax:
    """exp(x) / Σ exp(x) along an axis."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def __call__(self, x: Tensor) -> Tensor:
        return x.softmax(self.dim)


class MaxPool2d:
    """The greatest element of each window over the last two axes."""

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.ceil_mode = dilation, ceil_mode

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = x.max_pool2d(
            self.kernel_size, self.stride, self.dilation, self.padding, self.ceil_mode
        )
        return result


class AvgPool2d:
    """The average of each window over the last two axes."""

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def __call__(self, x: Tensor) -> Tensor:
        return x.avg_pool2d(
            self.kernel_size,
            self.stride,
            1,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
