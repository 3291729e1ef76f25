"""Layers as functions with the arguments of torch itself, whose order is not nn.functional's."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Mean 0 and variance 1 of each channel. PyTorch: batch_norm."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Mean 0 and variance 1 of each channel of each example. PyTorch: instance_norm."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The row of a table for each index. PyTorch: embedding.

    >>> embedding(Tensor([[1.0], [2.0]]), Tensor([1, 0])).tolist()
    [[2.0], [1.0]]
    """
    padding = None if padding_idx < 0 else padding_idx
    return F.embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def embedding_renorm_(
    weight: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Shrink the rows that are named to a length, in the table. PyTorch: embedding_renorm_."""
    F.embedding(indices, weight, max_norm=max_norm, norm_type=norm_type)
    return weight


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags of rows; and the bag of each index, the sizes of the bags, and those once more.

    `mode` is 0 (sum), 1 (mean) or 2 (max). PyTorch: embedding_bag, whose last result is where the
    greatest rows were.
    """
    names = ("sum", "mean", "max")
    if mode not in (0, 1, 2):
        raise ArgumentError(f"embedding_bag: mode is {mode!r}", rule="it is 0, 1 or 2")
    result = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, names[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    bags = int(offsets.shape[0]) - int(include_last_offset)
    positions = Tensor.arange(int(indices.shape[0]), device=indices.device)
    bag = (positions.unsqueeze(1) >= offsets[:bags].unsqueeze(0)).sum(1) - 1
    numbers = Tensor.arange(bags, device=indices.device).unsqueeze(1)
    belongs = bag.unsqueeze(0) == numbers
    if padding_idx is not None:
        belongs = belongs & (indices != padding_idx).unsqueeze(0)
    sizes = belongs.sum(1).cast("int64")
    return result, bag.cast("int64"), sizes, sizes


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution, or a transposed one, over as many axes as the weight has."""
    rank = weight.ndim - 2
    if transposed:
        function = getattr(F, f"conv_transpose{rank}d")
        found: Tensor = function(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
        return found
    plain: Tensor = getattr(F, f"conv{rank}d")(
        input, weight, bias, stride, padding, dilation, groups
    )
    return plain


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers for the modes. PyTorch: grid_sampler."""
    return F.grid_sample(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners
    )


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`. PyTorch: affine_grid_generator."""
    return F.affine_grid(theta, size, align_corners)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The greatest of windows that share the last axis out, and where."""
    found: tuple[Tensor, Tensor] = F.adaptive_max_pool1d(input, output_size, True)
    return found


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels. PyTorch: feature_dropout."""
    return F.dropout2d(input, p, train)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels of the tensor itself."""
    return F.dropout2d(input, p, train, True)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements of the tensor itself, and divide the others by 1 - p."""
    return F.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean and variance of what selu gives."""
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout`, written to the tensor itself."""
    return F.alpha_dropout(input, p, train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout`, written to the tensor itself."""
    return F.feature_alpha_dropout(input, p, train, True)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, and which elements were kept. PyTorch: native_dropout."""
    if train is False:
        return input, input.ones_like(dtype="bool")
    kept = Tensor.rand(*input.shape, device=input.device) >= p
    return (input * 0.0 if p == 1 else kept.where(input / (1 - p), 0.0)), kept
