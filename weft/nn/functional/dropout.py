"""Dropout of elements and of channels; `training` decides, not `Tensor.training`."""

from __future__ import annotations

from weft.ir.shapes import Shape
from weft.nn.functional.common import written
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

# What selu gives of minus infinity: alpha' of Klambauer et al.
_ALPHA = -1.7580993408473766


def _mask(x: Tensor, shape: Shape, p: float) -> Tensor:
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout: p is {p}", rule="a probability is from 0 to 1")
    return Tensor.rand(*shape, device=x.device) >= p


def _dropped(x: Tensor, shape: Shape, p: float, inplace: bool, name: str) -> Tensor:
    kept = _mask(x, shape, p)
    result = x * 0.0 if p == 1 else kept.where(x / (1 - p), 0.0)
    return written(x, result, inplace, name)


def _channels(x: Tensor, rank: int) -> Shape:
    """One number for each channel: (batch, channels, 1…), or without a batch."""
    lead = x.ndim - rank
    return tuple(size if axis < lead else 1 for axis, size in enumerate(x.shape))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability p, and divide the others by 1 - p."""
    if not training:
        return input
    return _dropped(input, input.shape, p, inplace, "dropout")


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (batch, channels, length)."""
    return _dropped(input, _channels(input, 1), p, inplace, "dropout1d") if training else input


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (batch, channels, height, width)."""
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _dropped(input, shape, p, inplace, "dropout2d") if training else input


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (batch, channels, depth, height, width)."""
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _dropped(input, shape, p, inplace, "dropout3d") if training else input


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what selu gives."""
    shape = input.shape
    return _alpha(input, shape, p, inplace, "alpha_dropout") if training else input


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _alpha(input, shape, p, inplace, "feature_alpha_dropout") if training else input


def _alpha(x: Tensor, shape: Shape, p: float, inplace: bool, name: str) -> Tensor:
    if p == 1:
        return written(x, x * 0.0, inplace, name)
    kept = _mask(x, shape, p)
    scale = ((1 - p) * (1 + p * _ALPHA**2)) ** -0.5
    shift = -scale * _ALPHA * p
    return written(x, kept.where(x, _ALPHA) * scale + shift, inplace, name)
