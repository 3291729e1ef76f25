"""Convolutions and transposed convolutions over one, two or three spatial axes.

One class does the work; those with a number in their name fix how many spatial axes an int for
the kernel size means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from weft.nn.arguments import also_named
from weft.nn.initial import require_positive, uniform
from weft.nn.module import Layer
from weft.support.errors import ArgumentError
from weft.tensor.checks import known
from weft.tensor.neural.convolution import each_axis, named_padding
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


class _Convolution(Layer):
    """The parts of every convolution: sizes, weight and bias.

    Both are drawn between ±1/√fan, where fan is the weight's second axis times the kernel's
    elements, as in PyTorch.
    """

    spatial_axes: ClassVar[int] = 2

    def __init__(
        self, channels: tuple[int, int], kernel_size: Ints, groups: int, bias: bool
    ) -> None:
        name, rank = type(self).__name__, self.spatial_axes
        require_positive(name, in_channels=channels[0], out_channels=channels[1], groups=groups)
        kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(kernel) != rank:
            raise ArgumentError(
                f"{name}: a kernel of {len(kernel)} sizes",
                rule=f"the kernel size is an int or {rank} ints here",
            )
        if channels[0] % groups or channels[1] % groups:
            raise ArgumentError(
                f"{name}: {groups} groups of {channels[0]} to {channels[1]} channels",
                rule="groups divides the input channels and the output channels",
            )
        self.kernel_size, self.groups = kernel, groups
        shape = (*self._weight_channels(*channels), *kernel)
        fan = math.prod(shape[1:])
        self.weight = uniform(shape, fan)
        self.bias = uniform((channels[1],), fan) if bias else None

    def _weight_channels(self, inputs: int, outputs: int) -> tuple[int, int]:
        return outputs, inputs // self.groups

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Convolve a batch, or one input of its own."""
        if isinstance(x, Tensor) and x.ndim == self.spatial_axes + 1:
            return super().__call__(x.unsqueeze(0), *args, **kwargs).squeeze(0)
        return super().__call__(x, *args, **kwargs)


class Conv2d(_Convolution):
    """Slide a kernel: (batch, in, height, width) to (batch, out, height', width').

    `weight` is (out_channels, in_channels / groups, *kernel_size), `bias` (out_channels) or None.
    `padding` is an int, one for each spatial axis, "same" (the size stays; stride 1) or "valid".

    >>> Conv2d(1, 8, 3, padding=1)(Tensor.ones(2, 1, 5, 5)).shape
    (2, 8, 5, 5)
    """

    @also_named()
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__((in_channels, out_channels), kernel_size, groups, bias)
        self.stride, self.dilation, self.padding_mode = stride, dilation, padding_mode
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ArgumentError(
                f"{type(self).__name__}: unknown padding_mode {padding_mode!r}",
                rule="it is zeros, reflect, replicate or circular",
            )
        self.padding = self._edges(padding) if isinstance(padding, str) else padding

    def _edges(self, padding: str) -> Ints:
        """The padding that a word means: (before, after) of each axis, the last axis first."""
        name = type(self).__name__
        strides, gaps = (
            each_axis(name, each, self.spatial_axes) for each in (self.stride, self.dilation)
        )
        pairs = named_padding(name, padding, self.kernel_size, strides, gaps)
        return tuple(edge for pair in reversed(pairs) for edge in pair)

    def _pairs(self) -> tuple[int, ...]:
        """The padding, flat with the last axis first."""
        rank = self.spatial_axes
        given = (self.padding,) * rank if isinstance(self.padding, int) else tuple(self.padding)
        if len(given) == 2 * rank:
            return given
        return tuple(amount for each in reversed(given) for amount in (each, each))

    def forward(self, x: Tensor) -> Tensor:
        assert not isinstance(self.padding, str)
        if self.padding_mode != "zeros":
            padded = x.pad(self._pairs(), self.padding_mode)
            return padded.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation)
        return x.conv2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding
        )


class Conv1d(Conv2d):
    """Conv2d with one spatial axis: (batch, in, length) to (batch, out, length').

    >>> Conv1d(4, 6, 3)(Tensor.ones(2, 4, 9)).shape
    (2, 6, 7)
    """

    spatial_axes = 1


class Conv3d(Conv2d):
    """Conv2d with three spatial axes.

    >>> Conv3d(1, 2, 3, padding="same")(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 2, 4, 4, 4)
    """

    spatial_axes = 3


class ConvTranspose2d(_Convolution):
    """Spread each element by a kernel: the gradient of Conv2d as a layer.

    `weight` is (in_channels, out_channels / groups, *kernel_size). The size of a spatial axis
    becomes (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.

    >>> ConvTranspose2d(3, 2, 2, stride=2)(Tensor.ones(1, 3, 4, 4)).shape
    (1, 2, 8, 8)
    """

    @also_named()
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__((in_channels, out_channels), kernel_size, groups, bias)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.output_padding = output_padding

    def _weight_channels(self, inputs: int, outputs: int) -> tuple[int, int]:
        return inputs, outputs // self.groups

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Spread the elements; `output_size` names the spatial sizes, for output_padding."""
        extra = self.output_padding if output_size is None else self._extra(x, output_size)
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, extra
        )

    def _extra(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output_padding that makes these sizes."""
        name, rank = type(self).__name__, self.spatial_axes
        wanted = tuple(output_size)[-rank:]
        strides, pads, gaps = (
            each_axis(name, each, rank) for each in (self.stride, self.padding, self.dilation)
        )
        sizes = tuple(known(size) for size in x.shape[-rank:])
        found = tuple(
            wanted[axis]
            - ((sizes[axis] - 1) * strides[axis] - 2 * pads[axis])
            - gaps[axis] * (self.kernel_size[axis] - 1)
            - 1
            for axis in range(len(wanted))
        )
        if len(wanted) != rank or not all(
            0 <= extra < step for extra, step in zip(found, strides, strict=True)
        ):
            raise ArgumentError(
                f"{name}: output_size is {tuple(output_size)}",
                facts=[("input", x.shape)],
                rule="a size is that of output_padding=0, and up to stride - 1 more",
            )
        return found


class ConvTranspose1d(ConvTranspose2d):
    """ConvTranspose2d with one spatial axis.

    >>> ConvTranspose1d(3, 2, 2, stride=2)(Tensor.ones(1, 3, 4)).shape
    (1, 2, 8)
    """

    spatial_axes = 1


class ConvTranspose3d(ConvTranspose2d):
    """ConvTranspose2d with three spatial axes.

    >>> ConvTranspose3d(3, 2, 2, stride=2)(Tensor.ones(1, 3, 2, 2, 2)).shape
    (1, 2, 4, 4, 4)
    """

    spatial_axes = 3
