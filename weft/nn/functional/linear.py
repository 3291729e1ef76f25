"""Products with weights: linear, bilinear, convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.errors import ShapeError
from weft.tensor.autocast import lowered
from weft.tensor.methods.matmul import biased
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b for a weight (out, in), or (in,)."""
    input, weight, bias = lowered(input, weight, bias)
    if weight.ndim == 2:
        transposed = weight.transpose(0, 1)
        return input.matmul(transposed) if bias is None else biased(input, transposed, bias)
    return input.matmul(weight) if bias is None else input.matmul(weight) + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x₁ W x₂ + b for a weight (out, in1, in2)."""
    input1, input2, weight, bias = lowered(input1, input2, weight, bias)
    result = Tensor.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


def _listed(value: Ints, rank: int) -> tuple[int, ...]:
    listed = (value,) if isinstance(value, int) else tuple(value)
    return listed * rank if len(listed) == 1 else listed


def _batched(name: str, x: Tensor, rank: int) -> tuple[Tensor, bool]:
    """The input with a batch axis, and whether it had none."""
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: an input with {x.ndim} axes",
            facts=[("input", x.shape)],
            rule=f"the input is (batch, channels) or (channels), and {rank} spatial axes",
        )
    return (x.unsqueeze(0), True) if x.ndim == rank + 1 else (x, False)


def _convolved(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
) -> Tensor:
    x, is_single = _batched(f"conv{rank}d", input, rank)
    pad = padding if isinstance(padding, str) else _listed(padding, rank)
    result = x.conv2d(weight, bias, groups, _listed(stride, rank), _listed(dilation, rank), pad)
    return result.squeeze(0) if is_single else result


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (batch, in, length), or one without a batch."""
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (batch, in, height, width), or one without a batch."""
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (batch, in, depth, height, width), or one without a batch."""
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    x, is_single = _batched(f"conv_transpose{rank}d", input, rank)
    result = x.conv_transpose2d(
        weight,
        bias,
        groups,
        _listed(stride, rank),
        _listed(dilation, rank),
        _listed(padding, rank),
        _listed(output_padding, rank),
    )
    return result.squeeze(0) if is_single else result


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of conv1d by its input, as a layer."""
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of conv2d by its input, as a layer."""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of conv3d by its input, as a layer."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Slide a kernel along time: (time, batch, in) by (kernel, in, out), plus bias (out)."""
    moved = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return moved.permute(2, 0, 1)
