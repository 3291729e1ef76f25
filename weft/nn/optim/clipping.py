"""Gradients clipped to bounds: by their common norm, or each element by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from weft.nn.optim.method import require_nonnegative
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def global_norm(grads: Sequence[Tensor], norm_type: float = 2.0) -> Tensor:
    """Return the norm of all gradients together, as if they were one vector."""
    wide = [g.float() if g.dtype.bits < 32 else g for g in grads]
    if not wide:
        raise ArgumentError("global_norm: no gradients", rule="a norm needs a gradient")
    if math.isinf(norm_type):
        largest = [g.abs().max() for g in wide]
        return largest[0].stack(*largest[1:]).max()
    powers = [(g * g if norm_type == 2 else g.abs() ** norm_type).sum() for g in wide]
    total = sum(powers[1:], powers[0])
    return total.sqrt() if norm_type == 2 else total ** (1 / norm_type)


def clip_by_norm(
    grads: Sequence[Tensor], max_norm: float, norm_type: float = 2.0
) -> tuple[list[Tensor], Tensor]:
    """Return the gradients scaled to a common norm of at most `max_norm`, and the norm before.

    >>> (clipped,), norm = clip_by_norm([Tensor([3.0, 4.0])], 1.0)
    >>> norm.item(), [round(each, 4) for each in clipped.tolist()]
    (5.0, [0.6, 0.8])
    """
    require_nonnegative(max_norm=max_norm)
    norm = global_norm(grads, norm_type)
    scale = (max_norm / (norm + 1e-6)).minimum(1.0)
    return [(g * scale).cast(g.dtype) for g in grads], norm


def clip_grad_norm_(params: Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale `.grad` of all parameters to a common norm of at most `max_norm`; return the norm."""
    held = [p for p in params if p.grad is not None]
    clipped, norm = clip_by_norm([p.grad for p in held if p.grad is not None], max_norm, norm_type)
    for p, g in zip(held, clipped, strict=True):
        p.grad = g
    return norm


def clip_grad_value_(params: Iterable[Tensor], clip_value: float) -> None:
    """Clamp each element of `.grad` of all parameters to ±`clip_value`."""
    require_nonnegative(clip_value=clip_value)
    for p in params:
        if p.grad is not None:
            p.grad = p.grad.clamp(-clip_value, clip_value)
