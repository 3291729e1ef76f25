"""Losses between numbers: how far predictions are from targets, elementwise.

`size_average` and `reduce` are PyTorch's older names of `reduction`, at their old positions.
"""

from __future__ import annotations

import math
from typing import Any

from weft.nn.functional.common import reduced, reduction_of
from weft.support.errors import ArgumentError
from weft.tensor.autocast import in_float32
from weft.tensor.tensor import Tensor

Flag = bool | None


@in_float32
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(x - y)²; a mean with weights is one by weight."""
    kind = reduction_of(reduction, size_average, reduce)
    return _weighted((input - target).square(), weight, kind)


@in_float32
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|x - y|; a mean with weights is one by weight."""
    kind = reduction_of(reduction, size_average, reduce)
    return _weighted((input - target).abs(), weight, kind)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(loss, reduction)
    scaled = loss * weight
    if reduction == "mean":
        return scaled.sum() / weight.expand(loss.shape).sum()
    return reduced(scaled, reduction)


@in_float32
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) up to beta, d - beta / 2 beyond."""
    return input.smooth_l1_loss(target, reduction_of(reduction, size_average, reduce), beta)


@in_float32
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 up to delta, delta (d - delta / 2) beyond."""
    return _weighted(input.huber_loss(target, "none", delta), weight, reduction_of(reduction))


@in_float32
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """y (log y - x), where x holds logarithms of probabilities."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = input.kl_div(target, "sum", log_target)
        return total / int(input.shape[0]) if input.ndim else total
    return input.kl_div(target, reduction_of(reduction, size_average, reduce), log_target)


@in_float32
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)), logarithms being at least -100."""
    loss = input.binary_crossentropy(target, "none")
    loss = loss if weight is None else loss * weight
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of sigmoid(x), without overflow."""
    loss = input.binary_crossentropy_logits(target, "none", pos_weight)
    loss = loss if weight is None else loss * weight
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag = None,
    eps: float = 1e-8,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of counts y at the rate x, or exp(x)."""
    rate = input.exp() if log_input else input
    loss = rate - target * (input if log_input else (input + eps).log())
    if full:
        far = target > 1
        y = far.where(target, 2.0)
        loss = loss + far.where(y * y.log() - y + 0.5 * (2 * math.pi * y).log(), 0.0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of y at the mean x and a variance, which is at least eps."""
    spread: Tensor = input.full_like(var) if isinstance(var, (int, float)) else var
    if spread.shape != input.shape and spread.shape == input.shape[:-1]:
        spread = spread.unsqueeze(-1)
    # The clamp has no slope of its own, as in PyTorch.
    spread = spread + (spread.clamp(min_=eps) - spread).detach()
    loss = 0.5 * (spread.log() + (input - target).square() / spread)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return reduced(loss, reduction)


@in_float32
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-y x)) for y of ±1."""
    loss = (-target * input).exp().log1p()
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """x where y is 1, max(0, margin - x) where it is -1."""
    apart = (target != 1).where((margin - input).clamp(min_=0), 0.0)
    near = (target != -1).where(input, 0.0)
    return reduced(apart + near, reduction_of(reduction, size_average, reduce))


@in_float32
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -y (x₁ - x₂) + margin)."""
    loss = (-target * (input1 - input2) + margin).clamp(min_=0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where y is 1, max(0, cos - margin) where it is -1."""
    least = 1e-12
    products = (input1 * input2).sum(-1)
    sizes = (input1.square().sum(-1) + least) * (input2.square().sum(-1) + least)
    cosine = products / sizes.sqrt()
    near = (target == 1).where(1 - cosine, 0.0)
    apart = (target == -1).where((cosine - margin).clamp(min_=0), 0.0)
    return reduced(near + apart, reduction_of(reduction, size_average, reduce))


@in_float32
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x₁ - x₂ + eps along the last axis."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@in_float32
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences of all pairs of rows."""
    count = int(input.shape[0])
    if count < 2:
        return input.zeros((0,), dtype=input.dtype, device=input.device)
    rows, columns = Tensor.triu_indices(count, count, 1, device=input.device).unbind(0)
    return (input[rows] - input[columns]).norm(p, -1)


@in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis."""
    wide = [each.expand((x1 * x2).shape) for each in (x1, x2)]
    return wide[0].cosine_similarity(wide[1], dim, eps)


@in_float32
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |a - p| - |a - n|)."""
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: margin is {margin}", rule="it is above 0")

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    kind = reduction_of(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap,
        reduction=kind,
    )  # fmt: skip


@in_float32
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(a, p) - d(a, n)) for any distance."""
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = far.minimum(distance(positive, negative)) if swap else far
    return reduced((margin + near - far).clamp(min_=0), reduction)
