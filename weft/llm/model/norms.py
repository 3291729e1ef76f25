"""Norms: of rows of a layer, and of heads."""

from __future__ import annotations

from typing import Literal

from weft.tensor.tensor import Tensor


def rms_norm(x: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    """Rows over the root of their mean square, times a weight.

    >>> from weft.tensor import Tensor
    >>> rms_norm(Tensor([3.0, 3.0]), Tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    scaled = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    return scaled if weight is None else scaled * weight


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float) -> Tensor:
    """Rows with the mean 0 and the variance 1, times a weight, plus a bias.

    >>> from weft.tensor import Tensor
    >>> layer_norm(Tensor([1.0, 3.0]), Tensor([2.0, 2.0]), None, 0.0).tolist()
    [-2.0, 2.0]
    """
    centered = x - x.mean(-1, keepdim=True)
    scaled = centered * (centered.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight
    return scaled if bias is None else scaled + bias


def norm(
    kind: Literal["rms", "layer"], x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float
) -> Tensor:
    """The norm of an architecture.

    >>> from weft.tensor import Tensor
    >>> norm("rms", Tensor([2.0]), Tensor([3.0]), None, 0.0).tolist()
    [3.0]
    """
    if kind == "layer":
        return layer_norm(x, weight, bias, epsilon)
    return rms_norm(x, weight, epsilon)
