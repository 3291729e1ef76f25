"""Methods named as functions of torch.nn.functional, with the arguments they have there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.autocast import norm_in_float32
from weft.tensor.checks import known
from weft.tensor.complexes.parts import require_real
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


def conv1d(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (batch, in, length) with weight (out, in / groups, k), as `conv2d` does.

    The order of arguments is that of `torch.nn.functional.conv1d`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[[1.0, 2.0, 3.0]]]).conv1d(Tensor([[[1.0, 1.0]]])).tolist()
    [[[3.0, 5.0]]]
    """
    return _convolved("conv1d", 1, self, weight, bias, stride, padding, dilation, groups)


def conv3d(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (batch, in, depth, height, width) with weight (out, in / groups, kd, kh, kw).

    The order of arguments is that of `torch.nn.functional.conv3d`.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(1, 2, 4, 4, 4).conv3d(Tensor.ones(3, 2, 3, 3, 3), padding=1).shape
    (1, 3, 4, 4, 4)
    """
    return _convolved("conv3d", 3, self, weight, bias, stride, padding, dilation, groups)


def _convolved(
    name: str,
    rank: int,
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
) -> Tensor:
    if weight.ndim != rank + 2:
        raise ShapeError(
            f"{name}: the weight has {weight.ndim} axes",
            facts=[("weight", weight.shape)],
            rule=f"a weight is (out, in / groups) and {rank} spatial axes here",
        )
    return self.conv2d(weight, bias, groups, stride, dilation, padding)


@norm_in_float32
def layer_norm(
    self: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last axes, then times weight plus bias.

    `normalized_shape` is the shape of those axes. PyTorch: nn.functional.layer_norm; `layernorm`
    takes the axes.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0]]).layer_norm((2,), bias=Tensor([5.0, 5.0]), eps=0).tolist()
    [[4.0, 6.0]]
    """
    axes = _last_axes("layer_norm", self, normalized_shape)
    return _scaled(self.layernorm(axes, eps), weight, bias)


@norm_in_float32
def rms_norm(
    self: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root of the mean square over the last axes, then times weight.

    `eps`, which is added to the mean, is the distance from 1 to the next number of the dtype, of
    float32 at least, unless it is given. PyTorch: nn.functional.rms_norm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[3.0, 3.0]]).rms_norm((2,), eps=0).tolist()
    [[1.0, 1.0]]
    """
    require_real(self, "rms_norm")
    axes = _last_axes("rms_norm", self, normalized_shape)
    x = as_float(self)
    layout = x.dtype.format
    assert layout is not None, "a float has a format"
    least = 2.0**-layout.mantissa_bits if eps is None else eps
    scale = ((x * x).mean(axes, keepdim=True) + least).rsqrt()
    return _scaled(x * scale, weight, None)


@norm_in_float32
def group_norm(
    self: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale groups of channels of (batch, channels, …) to mean 0 and variance 1.

    `weight` and `bias` are (channels,). PyTorch: nn.functional.group_norm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0, 5.0, 9.0]]).group_norm(2, eps=0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    if self.ndim < 2 or known(self.shape[1]) % num_groups:
        raise ArgumentError(
            f"group_norm: {num_groups} groups of a tensor of shape {self.shape}",
            rule="group_norm takes (batch, channels, …), and the groups divide the channels",
        )
    grouped = self.unflatten(1, (num_groups, -1))
    result = grouped.layernorm(tuple(range(2, grouped.ndim)), eps).reshape(self.shape)
    shape = (-1, *[1] * (self.ndim - 2))
    weight = None if weight is None else weight.reshape(shape)
    bias = None if bias is None else bias.reshape(shape)
    return _scaled(result, weight, bias)


def _last_axes(name: str, self: Tensor, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes: tuple[Any, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or self.shape[-len(sizes) :] != sizes:
        raise ShapeError(
            f"{name}: the last axes are not of the shape {sizes}",
            facts=[("shape", self.shape)],
            rule="normalized_shape is the shape of the last axes",
        )
    return tuple(range(-len(sizes), 0))


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
